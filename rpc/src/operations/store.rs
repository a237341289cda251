//! Operations on the connection and its store: `clock`, `open`, `session`, `close`.

use std::path::PathBuf;
use std::time::Duration;

use grainstore::{EpochMs, MasterKey, OpenOptions, Passphrase, SessionOptions};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::embedder::Maker;
use crate::arguments::{MAX_NAMES, Nothing, PresetName, read};
use crate::dids::DidSources;
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::json::{Few, Form, Formed, SecretBytes};
use crate::sharing::ClientOptions;

/// Sets the test clock.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetClock {
    now_ms: i64,
}

pub(crate) fn clock(given: SetClock, host: &mut Host) -> Result<Nothing> {
    if let Some(clock) = host.clock() {
        clock.set(EpochMs::new(given.now_ms));
    }
    Ok(Nothing {})
}

/// Opens a store in place of the open one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    path: String,
    create: Option<bool>,
    read_only: Option<bool>,
    preset: Option<PresetName>,
    compress: Option<bool>,
    key: Option<SecretBytes>,
    passphrase: Option<String>,
    wait_ms: Option<u64>,
    operator: Option<String>,
    #[serde(default)]
    reviewers: Few<String, MAX_NAMES>,
    audit_reads: Option<bool>,
    count_access: Option<bool>,
    memory_bytes: Option<usize>,
    #[serde(default)]
    languages: Few<Formed<Spoken>, MAX_NAMES>,
    #[serde(default)]
    observer_domains: Few<Formed<Domain>, MAX_NAMES>,
    locked_accepts_authorized_signature: Option<bool>,
    did_documents: Option<PathBuf>,
    did_resolver: Option<Formed<Resolver>>,
    embedder: Option<Formed<Maker>>,
    former_embedder: Option<Formed<Maker>>,
    session: Option<Formed<Scope>>,
    #[serde(default)]
    exclusive: bool,
}

/// The language of a namespace, or of all without one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spoken {
    namespace: Option<String>,
    language: String,
}

impl Form for Spoken {
    const FORM: &'static str = "an object {namespace?, language}";
}

/// The domain of some types of observer, and whether their texts are indexed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Domain {
    domain: String,
    observer_types: Few<String, MAX_NAMES>,
    searched: Option<bool>,
}

impl Form for Domain {
    const FORM: &'static str = "an object {domain, observer_types: [name ...], searched?}";
}

pub(crate) fn open(given: Open, host: &mut Host) -> Result<Value> {
    check_connection(host)?;
    let (path, options) = given.client_options()?;
    let store = host.open(&path, options)?;
    Ok(match store.owner() {
        None => match store.unshared() {
            None => json!({ "created": store.has_created() }),
            Some(why) => json!({ "created": store.has_created(), "unshared": why }),
        },
        Some(owner) => json!({ "created": false, "owner_pid": owner }),
    })
}

impl ClientOptions {
    /// The path and the options that the parameters of the method `open` (docs/rpc.md) say, for hosts in other languages.
    ///
    /// ```
    /// use grainstore_rpc::ClientOptions;
    ///
    /// let params = serde_json::value::RawValue::from_string(r#"{"path": "a", "exclusive": true}"#.into())?;
    /// let (path, options) = ClientOptions::from_params(&params)?;
    /// assert!(path == "a" && options.exclusive);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Of wrong usage, for parameters that are unknown, missing or of the wrong type; those of [`OpenOptions`].
    pub fn from_params(params: &RawValue) -> Result<(String, Self)> {
        read::<Open>(Some(params))?.client_options()
    }
}

/// Refuses to change the store or the session of a process that has joined.
fn check_connection(host: &Host) -> Result<()> {
    match host.is_fixed() {
        false => Ok(()),
        true => Err(Error::arguments("the store and the session of this connection are fixed")),
    }
}

/// The program that resolves DIDs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolver {
    command: Few<String, MAX_NAMES>,
    deadline_ms: Option<u64>,
}

impl Form for Resolver {
    const FORM: &'static str = "an object {command: [program, argument ...], deadline_ms?}";
}

impl Open {
    fn client_options(mut self) -> Result<(String, ClientOptions)> {
        if self.path.is_empty() {
            return Err(Error::arguments("path must not be empty"));
        }
        let session = self.session.take().map(|Formed(scope)| scope.options()).transpose()?;
        let path = std::mem::take(&mut self.path);
        let sources = self.did_sources()?;
        let settings = sources.settings();
        let (exclusive, resolver) = (self.exclusive, sources.resolver()?);
        let options = ClientOptions {
            exclusive,
            settings,
            resolver,
            ..ClientOptions::new(self.options()?, session.unwrap_or_default())
        };
        Ok((path, options))
    }

    /// Takes where keys of DIDs come from.
    fn did_sources(&mut self) -> Result<DidSources> {
        let documents = self.did_documents.take();
        let Some(Formed(resolver)) = self.did_resolver.take() else {
            return Ok(DidSources { documents, ..DidSources::default() });
        };
        let program = resolver.command.all("command")?;
        if program.is_empty() {
            return Err(Error::arguments("the command of did_resolver names no program"));
        }
        let deadline = resolver.deadline_ms.map(Duration::from_millis);
        Ok(DidSources { documents, program, deadline })
    }

    fn options(self) -> Result<OpenOptions> {
        let mut options = OpenOptions::new()
            .create(self.create.unwrap_or_default())
            .read_only(self.read_only.unwrap_or_default());
        options = match (self.key, self.passphrase) {
            (None, None) => options,
            (Some(key), None) => options.key(master_key(&key.0)?),
            (None, Some(passphrase)) => options.key(Passphrase::new(passphrase)),
            (Some(_), Some(_)) => {
                return Err(Error::arguments("give a key or a passphrase, not both"));
            }
        };
        if let Some(wait) = self.wait_ms {
            options = options.wait(Duration::from_millis(wait));
        }
        if let Some(PresetName(preset)) = self.preset {
            options = options.preset(preset);
        }
        if let Some(compress) = self.compress {
            options = options.compress(compress);
        }
        for Formed(spoken) in self.languages.all("languages")? {
            options = options.language(spoken.namespace.as_deref(), &spoken.language)?;
        }
        for Formed(of) in self.observer_domains.all("observer_domains")? {
            let types = of.observer_types.all("observer_types")?;
            let types = types.iter().map(String::as_str);
            options = options.observer_domain(&of.domain, types, of.searched.unwrap_or(true));
        }
        if let Some(accepts) = self.locked_accepts_authorized_signature {
            options = options.locked_accepts_authorized_signature(accepts);
        }
        if let Some(Formed(maker)) = self.embedder {
            let (embedder, metric) = maker.embedder()?;
            options = options.embedder(embedder, metric);
        }
        if let Some(Formed(maker)) = self.former_embedder {
            let (embedder, metric) = maker.embedder()?;
            options = options.former_embedder(embedder, metric);
        }
        if let Some(audit) = self.audit_reads {
            options = options.audit_reads(audit);
        }
        if let Some(count) = self.count_access {
            options = options.count_access(count);
        }
        if let Some(bytes) = self.memory_bytes {
            options = options.memory_bytes(bytes);
        }
        if let Some(operator) = self.operator {
            options = options.operator(operator);
        }
        for reviewer in self.reviewers.all("reviewers")? {
            options = options.reviewer(reviewer);
        }
        Ok(options)
    }
}

fn master_key(bytes: &[u8]) -> Result<MasterKey> {
    let key = bytes.try_into().map_err(|_| {
        let message = format!("a key has 32 bytes, not {}", bytes.len());
        Error::new(Code::Key, message, "give the base64 of 32 bytes")
    })?;
    Ok(MasterKey::new(key))
}

/// The member `session` of `open`: the identity of the session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope {
    namespace: Option<String>,
    user_id: Option<String>,
    actor: Option<String>,
    purposes: Option<Few<String, MAX_NAMES>>,
}

impl Form for Scope {
    const FORM: &'static str = "an object {namespace?, user_id?, actor?, purposes?}";
}

impl Scope {
    fn options(self) -> Result<SessionOptions> {
        Ok(SessionOptions {
            namespace: self.namespace,
            user_id: self.user_id,
            actor: self.actor,
            purposes: self.purposes.unwrap_or_default().all("purposes")?,
            ..SessionOptions::default()
        })
    }
}

/// Changes the identity of the session. The namespace is required, if only as null for all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rescope {
    #[serde(deserialize_with = "named")]
    namespace: Option<String>,
    user_id: Option<String>,
    actor: Option<String>,
    purposes: Option<Few<String, MAX_NAMES>>,
}

pub(crate) fn session(given: Rescope, host: &mut Host) -> Result<Nothing> {
    check_connection(host)?;
    let Rescope { namespace, user_id, actor, purposes } = given;
    host.change_session(Scope { namespace, user_id, actor, purposes }.options()?)?;
    Ok(Nothing {})
}

fn named<'de, D: Deserializer<'de>>(source: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(source)
}

/// Closes the store.
pub(crate) fn close(_: Nothing, host: &mut Host) -> Result<Nothing> {
    check_connection(host)?;
    host.close()?;
    Ok(Nothing {})
}
