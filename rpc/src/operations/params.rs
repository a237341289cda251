//! Parameters of methods. Unknown, missing and wrongly typed ones are refused before the method runs.

use grainstore::cal::{CalOperation, Format};
use grainstore::embed::Embedding;
use grainstore::format::Encoding;
use grainstore::format::cose::Algorithm;
use grainstore::limits::MAX_BATCH;
use grainstore::{
    CalSwitch, ContentAddress, EpochMs, Grain, Offer, Preset, SameFact, SessionOptions,
};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::embedder::Maker;
use super::vectors::{Given, embeddings};
use crate::error::Error;
use crate::protocol::fault::Fault;
use crate::protocol::json::{Base64, Few, Form, Formed, Object, Pairs};
use crate::protocol::misread::misread;

/// Vectors of one grain.
pub(crate) const MAX_VECTORS: usize = 10_000;
/// Names in one list: purposes, reviewers, tags.
pub(crate) const MAX_NAMES: usize = 1_000;

/// Parses the parameters of a method; missing parameters are an empty object.
pub(crate) fn read<'p, T: Deserialize<'p>>(params: Option<&'p RawValue>) -> Result<T, Fault> {
    let text = params.map_or("{}", RawValue::get);
    let Object(params) =
        serde_json::from_str(text).map_err(|error| Fault::params(misread(&error, text)))?;
    Ok(params)
}

/// No parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Parameters of `verify`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verify {
    pub(crate) full: Option<bool>,
    pub(crate) checkpoint: Option<grainstore::Checkpoint>,
    pub(crate) signer: Option<String>,
    #[serde(default)]
    pub(crate) certificates: Few<grainstore::ErasureCertificate, MAX_BATCH>,
}

/// Parameters of `checkpoint`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    pub(crate) key: Option<Base64>,
}

/// Parameters of `stats`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stats {
    pub(crate) pages: Option<bool>,
}

/// Parameters of `remove_vectors`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveVectors {
    pub(crate) model: String,
}

/// Parameters of `backup`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Backup {
    pub(crate) path: String,
}

/// Parameters of `encode`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Encode<'p> {
    #[serde(borrow)]
    pub(crate) grain: &'p RawValue,
    #[serde(default)]
    pub(crate) encoding: Encoding,
}

/// Parameters of `decode`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decode {
    pub(crate) blob: Base64,
}

/// Parameters of `sign`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sign<'p> {
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    pub(crate) key: Base64,
    #[serde(default)]
    pub(crate) algorithm: Algorithm,
    pub(crate) iat: Option<i64>,
}

impl Sign<'_> {
    /// Returns the blob to sign.
    pub(crate) fn blob(&mut self) -> Result<Vec<u8>, Fault> {
        match (self.grain, self.blob.take()) {
            (Some(grain), None) => Ok(encoded(grain)?),
            (None, Some(Base64(blob))) => Ok(blob),
            _ => Err(Fault::params("give exactly one of grain and blob")),
        }
    }
}

/// Parameters of `prove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prove<'p> {
    pub(crate) operation: Proved,
    pub(crate) address: String,
    #[serde(borrow)]
    pub(crate) grain: Option<&'p RawValue>,
    /// True if the grain will be in a signed envelope.
    #[serde(default)]
    pub(crate) signed: bool,
    pub(crate) key: Base64,
    #[serde(default)]
    pub(crate) algorithm: Algorithm,
}

/// The operation that a proof is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Proved {
    Supersede,
    Contradict,
    Contest,
    Retract,
    LiftHold,
}

/// Parameters of `policy_explain`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyExplain<'p> {
    pub(crate) address: Option<String>,
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    pub(crate) supersede: Option<String>,
    pub(crate) justification: Option<String>,
}

impl PolicyExplain<'_> {
    /// Returns the grain that is given instead of an address.
    pub(crate) fn offer(&mut self) -> Result<Offer, Fault> {
        offer(self.grain, self.blob.take(), self.cose.take())
    }

    /// Returns `true` if a grain is given.
    pub(crate) fn has_offer(&self) -> bool {
        self.grain.is_some() || self.blob.is_some() || self.cose.is_some()
    }
}

/// Parameters of `verify_signature`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifySignature {
    pub(crate) cose: Base64,
}

/// Parameters of `disclose`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disclose<'p> {
    pub(crate) address: Option<String>,
    #[serde(borrow)]
    pub(crate) grain: Option<&'p RawValue>,
    pub(crate) hide: Few<String, MAX_NAMES>,
}

/// Encodes a grain in JSON.
pub(crate) fn encoded(grain: &RawValue) -> Result<Vec<u8>, Fault> {
    Ok(Grain::from_json(grain.get())?.encode(Encoding::default())?.into_bytes())
}

/// Parameters of `clock`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clock {
    pub(crate) now_ms: i64,
}

/// Parameters of `open`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    pub(crate) path: String,
    pub(crate) create: Option<bool>,
    pub(crate) read_only: Option<bool>,
    pub(crate) preset: Option<PresetName>,
    pub(crate) compress: Option<bool>,
    pub(crate) key: Option<Base64>,
    pub(crate) passphrase: Option<String>,
    pub(crate) wait_ms: Option<u64>,
    pub(crate) operator: Option<String>,
    #[serde(default)]
    pub(crate) reviewers: Few<String, MAX_NAMES>,
    pub(crate) audit_reads: Option<bool>,
    #[serde(default)]
    pub(crate) languages: Few<Formed<Spoken>, MAX_NAMES>,
    pub(crate) embedder: Option<Formed<Maker>>,
    pub(crate) former_embedder: Option<Formed<Maker>>,
    pub(crate) session: Option<Formed<Scope>>,
}

/// The language of a namespace, or of all without one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spoken {
    pub(crate) namespace: Option<String>,
    pub(crate) language: String,
}

impl Form for Spoken {
    const FORM: &'static str = "an object {namespace?, language}";
}

/// The name of a compliance preset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PresetName(pub(crate) Preset);

impl<'de> Deserialize<'de> for PresetName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Preset::named(&name).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Parameters of `policy_show`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyShow {
    pub(crate) preset: Option<PresetName>,
}

/// Parameters of `policy_set`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicySet {
    pub(crate) rules: String,
    #[serde(default)]
    pub(crate) allow_weaker: bool,
    pub(crate) reason: String,
}

/// The member `session` of `open`: the identity of the session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scope {
    namespace: Option<String>,
    user_id: Option<String>,
    actor: Option<String>,
    purposes: Option<Few<String, MAX_NAMES>>,
}

impl Form for Scope {
    const FORM: &'static str = "an object {namespace?, user_id?, actor?, purposes?}";
}

/// Parameters of `session`: the identity from now on. The namespace is required, if only as null for all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Session {
    #[serde(deserialize_with = "named")]
    namespace: Option<String>,
    user_id: Option<String>,
    actor: Option<String>,
    purposes: Option<Few<String, MAX_NAMES>>,
}

impl TryFrom<Scope> for SessionOptions {
    type Error = Error;

    fn try_from(scope: Scope) -> Result<Self, Error> {
        Ok(Self {
            namespace: scope.namespace,
            user_id: scope.user_id,
            actor: scope.actor,
            purposes: scope.purposes.unwrap_or_default().all("purposes")?,
            ..Self::default()
        })
    }
}

impl TryFrom<Session> for SessionOptions {
    type Error = Error;

    fn try_from(session: Session) -> Result<Self, Error> {
        let Session { namespace, user_id, actor, purposes } = session;
        Scope { namespace, user_id, actor, purposes }.try_into()
    }
}

fn named<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(source)
}

/// Parameters of `put`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put<'p> {
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    #[serde(default)]
    vectors: Few<Formed<Given>, MAX_VECTORS>,
    #[serde(default)]
    pub(crate) same_fact: SameFact,
}

impl Put<'_> {
    /// Returns the grain with its vectors.
    pub(crate) fn offer(&mut self) -> Result<Offer, Fault> {
        let offer = offer(self.grain, self.blob.take(), self.cose.take())?;
        Ok(offer.with_vectors(embeddings(std::mem::take(&mut self.vectors))?))
    }
}

/// Parameters of `put_batch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutBatch<'p> {
    #[serde(borrow)]
    pub(crate) grains: Option<Few<&'p RawValue, MAX_BATCH>>,
    pub(crate) blobs: Option<Few<Base64, MAX_BATCH>>,
    pub(crate) cose: Option<Few<Base64, MAX_BATCH>>,
    #[serde(default)]
    vectors: Few<Few<Formed<Given>, MAX_VECTORS>, MAX_BATCH>,
}

impl PutBatch<'_> {
    /// Returns the vectors of each grain, in order; empty if there are none.
    pub(crate) fn vectors(&mut self) -> Result<Vec<Vec<Embedding>>, Fault> {
        let of_each = std::mem::take(&mut self.vectors).all("vectors")?;
        of_each.into_iter().map(embeddings).collect()
    }
}

/// Parameters of `supersede`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Supersede<'p> {
    pub(crate) old: String,
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    #[serde(default)]
    vectors: Few<Formed<Given>, MAX_VECTORS>,
    pub(crate) justification: Option<String>,
}

impl Supersede<'_> {
    /// Returns the new grain with its vectors.
    pub(crate) fn offer(&mut self) -> Result<Offer, Fault> {
        let offer = offer(self.grain, self.blob.take(), self.cose.take())?;
        Ok(offer.with_vectors(embeddings(std::mem::take(&mut self.vectors))?))
    }
}

/// Parameters of `contradict`, `hold` and `lift_hold`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mark {
    pub(crate) address: String,
    pub(crate) reason: String,
    /// A COSE_Sign1 with a detached payload.
    pub(crate) cose: Option<Base64>,
}

/// Parameters of `set_verification`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetVerification {
    pub(crate) address: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) cose: Option<Base64>,
}

/// Parameters of `get` and `exists`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    pub(crate) address: String,
}

/// Parameters of `get_batch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Addresses {
    pub(crate) addresses: Few<String, MAX_BATCH>,
}

/// Parameters of `history`: an address, or a subject and a relation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    pub(crate) address: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) relation: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) as_of: Option<i64>,
    /// Versions to skip, the newest first; and the most to answer.
    pub(crate) cursor: Option<usize>,
    pub(crate) limit: Option<usize>,
}

/// Parameters of `cal`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cal {
    /// The unparsed text: a query in JSON keeps its positions and the spelling of its numbers.
    pub(crate) query: Box<RawValue>,
    pub(crate) params: Option<Pairs>,
    pub(crate) now: Option<i64>,
    #[serde(rename = "as")]
    pub(crate) format: Option<Format>,
    #[serde(default)]
    pub(crate) auto_toon: bool,
    pub(crate) tier: Option<u8>,
    pub(crate) namespace: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
}

/// Parameters of `cal_stream`: a query like that of `cal`, or the token of a prepared statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalStream {
    pub(crate) query: Option<Box<RawValue>>,
    pub(crate) token: Option<serde_json::Value>,
    pub(crate) params: Option<Pairs>,
    pub(crate) now: Option<i64>,
    #[serde(rename = "as")]
    pub(crate) format: Option<Format>,
    #[serde(default)]
    pub(crate) auto_toon: bool,
    pub(crate) namespace: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
}

/// Parameters of `prepare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepare {
    pub(crate) query: Box<RawValue>,
    pub(crate) params: Option<Pairs>,
    pub(crate) now: Option<i64>,
    #[serde(rename = "as")]
    pub(crate) format: Option<Format>,
    pub(crate) tier: Option<u8>,
    pub(crate) namespace: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
    pub(crate) terms: Option<Terms>,
}

/// Parameters of `cal_convert`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalConvert {
    pub(crate) query: Box<RawValue>,
}

/// Limits of a token.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    pub(crate) max_uses: Option<u32>,
    pub(crate) life_ms: Option<u32>,
    pub(crate) allowed_ops: Option<Few<CalOperation, MAX_NAMES>>,
    pub(crate) allowed_grain_types: Option<Few<String, MAX_NAMES>>,
    pub(crate) write_quota: Option<u32>,
}

/// Parameters of `execute`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Execute {
    pub(crate) token: serde_json::Value,
}

/// Parameters of `cal_switch`; without any it only answers the setting.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalSwitched {
    pub(crate) to: Option<CalSwitch>,
    pub(crate) reason: Option<String>,
}

/// Parameters of `audit`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    pub(crate) reads: Option<bool>,
    pub(crate) by: Option<String>,
    pub(crate) after: Option<u64>,
    pub(crate) limit: Option<usize>,
}

/// Parses a full address.
pub(crate) fn address(text: &str) -> Result<ContentAddress, Fault> {
    text.parse::<ContentAddress>().map_err(Fault::from)
}

/// Converts epoch milliseconds.
pub(crate) fn time(ms: Option<i64>) -> Option<EpochMs> {
    ms.map(EpochMs::new)
}

/// Returns the grain in exactly one of its three forms.
fn offer(
    grain: Option<&RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
) -> Result<Offer, Fault> {
    match (grain, blob, cose) {
        (Some(grain), None, None) => Ok(Offer::Grain(Grain::from_json(grain.get())?)),
        (None, Some(Base64(blob)), None) => Ok(Offer::Blob(blob)),
        (None, None, Some(Base64(cose))) => Ok(Offer::Signed(cose)),
        _ => Err(Fault::params("give exactly one of grain, blob and cose")),
    }
}
