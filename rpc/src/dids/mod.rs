//! Keys of DIDs that do not hold theirs, such as did:web: from a file of DID documents, or by a program.
//!
//! Nothing here opens a connection: the host fetches documents, or names the program that does.

mod document;
mod program;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grainstore::format::{Did, DidResolver, VerifyingKey};

use self::document::{Answer, Document};
use self::program::Program;
use crate::error::{Code, Error, Result};

/// Most bytes of a file of DID documents.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Time a program has for one DID, if no other is given.
const USUAL_DEADLINE: Duration = Duration::from_secs(10);
/// Longest time a program can be given.
const MAX_DEADLINE: Duration = Duration::from_secs(600);

/// Where keys of DIDs come from that do not hold theirs. The file is asked first.
///
/// ```
/// use grainstore::format::Did;
/// use grainstore_rpc::DidSources;
///
/// # let dir = tempfile::tempdir()?;
/// let file = dir.path().join("dids.json");
/// let key = grainstore_rpc::signing_key(Default::default(), &[7; 32])?;
/// let multibase = key.did().as_str().trim_start_matches("did:key:").to_owned();
/// let document = serde_json::json!([{
///     "id": "did:web:alice.example",
///     "verificationMethod": [{ "id": "#key-1", "publicKeyMultibase": multibase }],
///     "assertionMethod": ["#key-1"],
/// }]);
/// std::fs::write(&file, document.to_string())?;
/// let sources = DidSources { documents: Some(file), ..DidSources::default() };
/// let resolver = sources.resolver()?.ok_or("a resolver")?;
/// let alice: Did = "did:web:alice.example".parse()?;
/// assert_eq!(resolver.resolve(&alice), Some(key.verifying_key()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct DidSources {
    /// A file with one DID document or a list of them, in JSON, 16 MiB at most. It is read once.
    pub documents: Option<PathBuf>,
    /// A program and its arguments. It is run with the DID as its last argument, without a shell and without
    /// input; it prints the document and ends with 0. Its answer is used again for a minute.
    pub program: Vec<String>,
    /// The time that program has; ten seconds if not given, ten minutes at most.
    pub deadline: Option<Duration>,
}

/// A resolver for [`OpenOptions::resolver`](grainstore::OpenOptions::resolver); [`DidSources`] makes one.
pub type SharedResolver = Arc<dyn DidResolver + Send + Sync>;

impl DidSources {
    /// The file and the program as settings that all processes on one store must agree on
    /// ([`ClientOptions`](crate::ClientOptions)).
    #[must_use]
    pub fn settings(&self) -> BTreeMap<String, String> {
        let file = self.documents.as_ref().map(|file| {
            let whole = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            ("did_documents".to_owned(), whole.display().to_string())
        });
        let program =
            (!self.program.is_empty()).then(|| ("did_resolver".to_owned(), self.program.join(" ")));
        file.into_iter().chain(program).collect()
    }

    /// Reads the file, and returns what resolves DIDs; `None` without a file and a program.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_TOO_LARGE`; `ERR_SCHEMA` for what is no list of DID documents, for two documents of one
    /// DID, and for a deadline of nothing or of more than ten minutes; `ERR_NOT_FOUND` for a program that is not
    /// there, and `ERR_IO` for one that cannot be run. It is not run before a key is wanted.
    pub fn resolver(self) -> Result<Option<SharedResolver>> {
        let documents = self.documents.as_deref().map(read_documents).transpose()?;
        let deadline = self.deadline.unwrap_or(USUAL_DEADLINE);
        if deadline.is_zero() || deadline > MAX_DEADLINE {
            let message = "a program that resolves DIDs has from a millisecond to ten minutes";
            return Err(Error::new(Code::Schema, message, "give another deadline"));
        }
        let command = self.program;
        let program = match command.first() {
            Some(name) => {
                program::check(name)?;
                Some(Program::new(command, deadline))
            }
            None => None,
        };
        Ok(match (&documents, &program) {
            (None, None) => None,
            _ => Some(Arc::new(Sources { documents: documents.unwrap_or_default(), program })),
        })
    }
}

/// The documents of a file, and a program.
struct Sources {
    documents: HashMap<String, Document>,
    program: Option<Program>,
}

impl DidResolver for Sources {
    fn resolve(&self, did: &Did) -> Option<VerifyingKey> {
        match self.documents.get(did.as_str()) {
            Some(document) => document.key(now_ms()),
            None => self.program.as_ref()?.resolve(did),
        }
    }

    fn why_not(&self, did: &Did) -> Option<String> {
        match (self.documents.get(did.as_str()), &self.program) {
            (Some(_), _) => Some(NO_KEY.to_owned()),
            (None, Some(program)) => program.why_not(did),
            (None, None) => Some("the file of DID documents has none of it".to_owned()),
        }
    }
}

/// Why there is no key though there is a document.
const NO_KEY: &str =
    "its document has no key that signs claims, is of a kind that is known, and holds";

/// Reads a file of DID documents, by their DIDs.
fn read_documents(path: &Path) -> Result<HashMap<String, Document>> {
    let name = path.display();
    let io = |error| Error::new(Code::Io, format!("cannot read {name}: {error}"), "check the path");
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let message = format!("{name} holds more than {MAX_FILE_BYTES} bytes");
        return Err(Error::new(
            Code::TooLarge,
            message,
            "name a program that resolves DIDs instead",
        ));
    }
    let hint = "it is a DID document in JSON, or a list of them";
    let no_documents =
        |why: String| Error::new(Code::Schema, format!("{name} has no DID documents: {why}"), hint);
    let is_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let answers: Vec<Answer> = match is_list {
        true => serde_json::from_slice(&bytes),
        false => serde_json::from_slice(&bytes).map(|answer| vec![answer]),
    }
    .map_err(|error| no_documents(error.to_string()))?;
    let mut documents = HashMap::new();
    for document in answers.into_iter().filter_map(Answer::document) {
        let id = document.id().to_owned();
        let did = id.parse::<Did>().map_err(|error| no_documents(error.to_string()))?;
        if documents.insert(id, document).is_some() {
            return Err(no_documents(format!("there are two of {did}")));
        }
    }
    Ok(documents)
}

/// The time by the clock of the machine, in epoch milliseconds: that of a store may be set by a test.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
