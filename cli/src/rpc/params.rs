//! The parameters of methods. Unknown, missing and wrongly typed ones are refused before anything is
//! done.

use grainstore::cal::Operation;
use grainstore::embed::Embedding;
use grainstore::format::Encoding;
use grainstore::{
    CalSwitch, ContentAddress, EpochMs, Grain, MAX_BATCH, Offer, Preset, SessionOptions,
};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::embedder::Maker;
use super::fault::Fault;
use super::json::{Base64, Few, Form, Formed, Object, Pairs};
use super::misread::misread;
use super::vectors::{Given, embeddings};
use crate::ask::FormatName;
use crate::shape::{AlgorithmName, EncodingName, SameFact};

/// Vectors of one grain.
const MAX_VECTORS: usize = 10_000;

/// Reads the parameters of a method; without any, an empty object is read.
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

/// `verify`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Verify {
    pub(crate) full: Option<bool>,
    pub(crate) checkpoint: Option<grainstore::Checkpoint>,
    pub(crate) signer: Option<String>,
    #[serde(default)]
    pub(crate) certificates: Vec<grainstore::Certificate>,
}

/// `checkpoint`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    pub(crate) key: Option<Base64>,
}

/// `stats`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stats {
    pub(crate) pages: Option<bool>,
}

/// `remove_vectors`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveVectors {
    pub(crate) model: String,
}

/// `backup`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Backup {
    pub(crate) path: String,
}

/// `encode`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Encode<'p> {
    #[serde(borrow)]
    pub(crate) grain: &'p RawValue,
    #[serde(default)]
    pub(crate) encoding: EncodingName,
}

/// `decode`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decode {
    pub(crate) blob: Base64,
}

/// `sign`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sign<'p> {
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    pub(crate) key: Base64,
    #[serde(default)]
    pub(crate) algorithm: AlgorithmName,
    pub(crate) iat: Option<i64>,
}

impl Sign<'_> {
    /// The blob to be signed.
    pub(crate) fn blob(&mut self) -> Result<Vec<u8>, Fault> {
        match (self.grain, self.blob.take()) {
            (Some(grain), None) => Ok(encoded(grain)?),
            (None, Some(Base64(blob))) => Ok(blob),
            _ => Err(Fault::params("give exactly one of grain and blob")),
        }
    }
}

/// `prove`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prove<'p> {
    pub(crate) operation: Proved,
    pub(crate) address: String,
    #[serde(borrow)]
    pub(crate) grain: Option<&'p RawValue>,
    /// Whether the grain will come in an envelope.
    #[serde(default)]
    pub(crate) signed: bool,
    pub(crate) key: Base64,
    #[serde(default)]
    pub(crate) algorithm: AlgorithmName,
}

/// What `prove` signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Proved {
    Supersede,
    Contradict,
    Contest,
    Retract,
    LiftHold,
}

/// `policy_explain`.
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
    /// The grain that is given instead of an address.
    pub(crate) fn offer(&mut self) -> Result<Offer, Fault> {
        offer(self.grain, self.blob.take(), self.cose.take())
    }

    /// Whether a grain is given.
    pub(crate) fn has_offer(&self) -> bool {
        self.grain.is_some() || self.blob.is_some() || self.cose.is_some()
    }
}

/// `verify_signature`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifySignature {
    pub(crate) cose: Base64,
}

/// `disclose`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Disclose<'p> {
    pub(crate) address: Option<String>,
    #[serde(borrow)]
    pub(crate) grain: Option<&'p RawValue>,
    pub(crate) hide: Vec<String>,
}

/// The blob of a grain in JSON.
pub(crate) fn encoded(grain: &RawValue) -> Result<Vec<u8>, Fault> {
    Ok(Grain::from_json(grain.get())?.encode(Encoding::default())?.into_bytes())
}

/// `clock`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clock {
    pub(crate) now_ms: i64,
}

/// `open`.
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
    pub(crate) reviewers: Vec<String>,
    pub(crate) audit_reads: Option<bool>,
    #[serde(default)]
    pub(crate) languages: Vec<Formed<Spoken>>,
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

/// `policy_show`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyShow {
    pub(crate) preset: Option<PresetName>,
}

/// `policy_set`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicySet {
    pub(crate) rules: String,
    #[serde(default)]
    pub(crate) allow_weaker: bool,
    pub(crate) reason: String,
}

/// Who is asking, in `open`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scope {
    namespace: Option<String>,
    user_id: Option<String>,
    actor: Option<String>,
    purposes: Option<Vec<String>>,
}

impl Form for Scope {
    const FORM: &'static str = "an object {namespace?, user_id?, actor?, purposes?}";
}

/// `session`: who is asking from now on. The namespace must be named, if only as null for all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Session {
    #[serde(deserialize_with = "named")]
    namespace: Option<String>,
    user_id: Option<String>,
    actor: Option<String>,
    purposes: Option<Vec<String>>,
}

impl From<Scope> for SessionOptions {
    fn from(scope: Scope) -> Self {
        Self {
            namespace: scope.namespace,
            user_id: scope.user_id,
            actor: scope.actor,
            purposes: scope.purposes.unwrap_or_default(),
            ..Self::default()
        }
    }
}

impl From<Session> for SessionOptions {
    fn from(session: Session) -> Self {
        let Session { namespace, user_id, actor, purposes } = session;
        Scope { namespace, user_id, actor, purposes }.into()
    }
}

fn named<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(source)
}

/// `put`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Put<'p> {
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    #[serde(default)]
    vectors: Vec<Formed<Given>>,
    #[serde(default)]
    pub(crate) same_fact: SameFact,
}

impl Put<'_> {
    /// What is offered.
    pub(crate) fn offer(&mut self) -> Result<Offer, Fault> {
        let offer = offer(self.grain, self.blob.take(), self.cose.take())?;
        Ok(offer.with_vectors(embeddings(std::mem::take(&mut self.vectors))?))
    }
}

/// `put_batch`.
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
    /// The vectors of each grain, in their order; none where none are given.
    pub(crate) fn vectors(&mut self) -> Result<Vec<Vec<Embedding>>, Fault> {
        let of_each = std::mem::take(&mut self.vectors).all("vectors")?;
        of_each.into_iter().map(|vectors| embeddings(vectors.all("vectors")?)).collect()
    }
}

/// `supersede`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Supersede<'p> {
    pub(crate) old: String,
    #[serde(borrow)]
    grain: Option<&'p RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
    #[serde(default)]
    vectors: Vec<Formed<Given>>,
    pub(crate) justification: Option<String>,
}

impl Supersede<'_> {
    /// What is offered.
    pub(crate) fn offer(&mut self) -> Result<Offer, Fault> {
        let offer = offer(self.grain, self.blob.take(), self.cose.take())?;
        Ok(offer.with_vectors(embeddings(std::mem::take(&mut self.vectors))?))
    }
}

/// `contradict`, `hold` and `lift_hold`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mark {
    pub(crate) address: String,
    pub(crate) reason: String,
    /// A COSE_Sign1 without a payload.
    pub(crate) cose: Option<Base64>,
}

/// `set_verification`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetVerification {
    pub(crate) address: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) cose: Option<Base64>,
}

/// `get` and `exists`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Address {
    pub(crate) address: String,
}

/// `get_batch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Addresses {
    pub(crate) addresses: Few<String, MAX_BATCH>,
}

/// `history`: of an address, or of a subject's relation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    pub(crate) address: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) relation: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) as_of: Option<i64>,
    /// Versions to leave out, the newest first; and how many to answer at most.
    pub(crate) cursor: Option<usize>,
    pub(crate) limit: Option<usize>,
}

/// `cal`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cal {
    /// As it was sent: a query in JSON keeps its places and the spelling of its numbers.
    pub(crate) query: Box<RawValue>,
    pub(crate) params: Option<Pairs>,
    pub(crate) now: Option<i64>,
    #[serde(rename = "as")]
    pub(crate) format: Option<FormatName>,
    #[serde(default)]
    pub(crate) auto_toon: bool,
    pub(crate) tier: Option<u8>,
    pub(crate) namespace: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
}

/// `cal_stream`: a query as `cal` takes it, or the token of one that was prepared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalStream {
    pub(crate) query: Option<Box<RawValue>>,
    pub(crate) token: Option<serde_json::Value>,
    pub(crate) params: Option<Pairs>,
    pub(crate) now: Option<i64>,
    #[serde(rename = "as")]
    pub(crate) format: Option<FormatName>,
    #[serde(default)]
    pub(crate) auto_toon: bool,
    pub(crate) namespace: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
}

/// `prepare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepare {
    pub(crate) query: Box<RawValue>,
    pub(crate) params: Option<Pairs>,
    pub(crate) now: Option<i64>,
    #[serde(rename = "as")]
    pub(crate) format: Option<FormatName>,
    pub(crate) tier: Option<u8>,
    pub(crate) namespace: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) agent_id: Option<String>,
    pub(crate) terms: Option<Terms>,
}

/// `cal_convert`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalConvert {
    pub(crate) query: Box<RawValue>,
}

/// What a token is to allow.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terms {
    pub(crate) max_uses: Option<u32>,
    pub(crate) life_ms: Option<u32>,
    pub(crate) allowed_ops: Option<Vec<Operation>>,
    pub(crate) allowed_grain_types: Option<Vec<String>>,
    pub(crate) write_quota: Option<u32>,
}

/// `execute`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Execute {
    pub(crate) token: serde_json::Value,
}

/// `cal_switch`: without anything, how far CAL runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CalSwitched {
    pub(crate) to: Option<CalSwitch>,
    pub(crate) reason: Option<String>,
}

/// `audit`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    pub(crate) reads: Option<bool>,
    pub(crate) by: Option<String>,
    pub(crate) after: Option<u64>,
    pub(crate) limit: Option<usize>,
}

/// A whole address.
pub(crate) fn address(text: &str) -> Result<ContentAddress, Fault> {
    text.parse::<ContentAddress>().map_err(Fault::from)
}

/// A time, in epoch milliseconds.
pub(crate) fn time(ms: Option<i64>) -> Option<EpochMs> {
    ms.map(EpochMs::new)
}

/// Exactly one of the three forms a grain comes in.
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
