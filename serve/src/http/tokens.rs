//! Bearer tokens: made, listed and revoked in a file beside the store, and looked up by their text.
//!
//! `tokens.json` in the directory of the store has for each token an id, a label, times, and the SHA-256 of its text.
//! What it grants (namespace, user, actor, purposes) is encrypted under a key that only the text of the token gives,
//! so that the file names nobody: neither in an encrypted store, nor after an erasure.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aes_gcm::aead::{Aead as _, Payload};
use aes_gcm::{Aes256Gcm, KeyInit as _, Nonce};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use grainstore::SessionOptions;
use grainstore_rpc::{Code, Error, Result};
use hkdf::Hkdf;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// Name of the file in the directory of a store.
const FILE: &str = "tokens.json";
/// Its name until it is whole.
const NEW_FILE: &str = "tokens.json.new";
/// Held while the file is changed.
const LOCK_FILE: &str = "tokens.lock";
/// Version of the file.
const VERSION: u32 = 1;
/// What the text of a token begins with.
const PREFIX: &str = "gst_";
/// Bytes of an id.
const ID_BYTES: usize = 4;
/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Bytes of a nonce.
const NONCE_BYTES: usize = 12;
/// Most tokens of a store, revoked ones included.
pub(super) const MAX_TOKENS: usize = 10_000;
/// Largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Longest label, in bytes.
const MAX_LABEL_BYTES: usize = 256;
/// Most bytes of what a token grants, as JSON.
const MAX_GRANT_BYTES: usize = 16 << 10;

/// What the holder of a token may do, and as whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The namespace it works in, with those below it; `None` for all.
    pub namespace: Option<String>,
    /// The user it works for, whose grains it sees beside those of nobody; `None` for all.
    pub user_id: Option<String>,
    /// Whom its writes are recorded under; a name made of the token's id if not given.
    pub actor: Option<String>,
    /// The purposes of its reads.
    pub purposes: Vec<String>,
    /// Whether it may write (Tier 1 of CAL, and the routes that write), or read alone.
    pub writes: bool,
    /// Whether it has the rights of the operator of the whole store.
    pub operator: bool,
}

impl Grant {
    /// The session of who holds this.
    pub(super) fn session(&self) -> SessionOptions {
        SessionOptions {
            namespace: self.namespace.clone(),
            user_id: self.user_id.clone(),
            actor: self.actor.clone(),
            purposes: self.purposes.clone(),
            unprivileged: !self.operator,
            ..SessionOptions::default()
        }
    }
}

/// A token to be made.
///
/// ```
/// use grainstore_serve::{Grant, NewToken, Tokens};
///
/// # let dir = tempfile::tempdir()?;
/// # grainstore::Store::open(dir.path(), &grainstore::OpenOptions::new().create(true))?.close()?;
/// let tokens = Tokens::of(dir.path());
/// let grant = Grant { namespace: Some("team".into()), writes: true, ..Grant::default() };
/// let made = tokens.create(NewToken { label: "the bot of the team".into(), grant, expires_at: None })?;
/// assert!(made.text.starts_with("gst_"));
/// assert_eq!(tokens.list()?.len(), 1);
/// assert!(tokens.revoke(&made.token.id)?.is_some());
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct NewToken {
    /// What it is for, in the clear; 256 bytes at most.
    pub label: String,
    /// What it may do.
    pub grant: Grant,
    /// When it ends, in epoch milliseconds; `None` for never.
    pub expires_at: Option<i64>,
}

/// A token that was made: its text is shown once, and kept nowhere.
pub struct MadeToken {
    /// What a client sends as `Authorization: Bearer`.
    pub text: Zeroizing<String>,
    /// What the file says of it.
    pub token: Token,
}

impl std::fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MadeToken({:?})", self.token)
    }
}

/// What is told of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Token {
    /// The public part of its text, 8 hex digits.
    pub id: String,
    /// What it is for.
    pub label: String,
    /// Whether it may write.
    pub writes: bool,
    /// Whether it has the rights of the operator.
    pub operator: bool,
    /// When it was made, in epoch milliseconds.
    pub created_at: i64,
    /// When it ends; `None` for never.
    pub expires_at: Option<i64>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<i64>,
}

/// The tokens of a store.
#[derive(Debug, Clone)]
pub struct Tokens {
    directory: PathBuf,
}

/// The file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    version: u32,
    tokens: Vec<KeptToken>,
}

/// A token, as the file has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptToken {
    pub(super) id: String,
    label: String,
    writes: bool,
    operator: bool,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
    /// SHA-256 of the text, in hex.
    pub(super) hash: String,
    /// Nonce and encrypted [`Grant`], base64url.
    grant: String,
}

/// Why a token opens nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// It was one, until its end.
    Expired,
    /// It was revoked.
    Revoked,
}

impl KeptToken {
    fn token(&self) -> Token {
        Token {
            id: self.id.clone(),
            label: self.label.clone(),
            writes: self.writes,
            operator: self.operator,
            created_at: self.created_at,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
        }
    }

    /// What is told of it and cannot be changed without its text.
    fn bound(&self) -> Vec<u8> {
        let Self { id, writes, operator, created_at, expires_at, .. } = self;
        format!("{VERSION} {id} {writes} {operator} {created_at} {expires_at:?}").into_bytes()
    }

    /// Whether it holds at a time.
    pub(super) fn check(&self, now: i64) -> std::result::Result<(), Unknown> {
        if self.revoked_at.is_some() {
            return Err(Unknown::Revoked);
        }
        match self.expires_at.is_some_and(|end| end <= now) {
            true => Err(Unknown::Expired),
            false => Ok(()),
        }
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn expires_at(&self) -> Option<i64> {
        self.expires_at
    }

    /// What it grants, by the secret of its text.
    fn open(&self, secret: &Secret) -> Option<Grant> {
        let sealed = BASE64URL_NOPAD.decode(self.grant.as_bytes()).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: &self.bound() };
        let grant = secret.cipher()?.decrypt(&Nonce::from(*nonce), payload).ok()?;
        let grant: Grant = serde_json::from_slice(&grant).ok()?;
        (grant.writes == self.writes && grant.operator == self.operator).then_some(grant)
    }
}

/// The secret part of a token's text.
struct Secret(Zeroizing<[u8; SECRET_BYTES]>);

impl Secret {
    fn cipher(&self) -> Option<Aes256Gcm> {
        let mut key = Zeroizing::new([0; 32]);
        let derived =
            Hkdf::<Sha256>::new(None, &*self.0).expand(b"grainstore token grant", &mut *key);
        derived.is_ok().then(|| Aes256Gcm::new((&*key).into()))
    }
}

/// Splits the text of a token into its id and its secret.
fn read(text: &str) -> Option<(&str, Secret)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let is_id = id.len() == 2 * ID_BYTES && HEXLOWER.decode(id.as_bytes()).is_ok();
    let bytes = Zeroizing::new(BASE64URL_NOPAD.decode(secret.as_bytes()).ok()?);
    let secret = Zeroizing::new(bytes.as_slice().try_into().ok()?);
    is_id.then_some((id, Secret(secret)))
}

fn hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

/// The time now, in epoch milliseconds.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Kept {
    /// Finds the token of this text, whether it holds or not. Takes as long for a wrong secret as for a right one.
    pub(super) fn find(&self, text: &str) -> Option<&KeptToken> {
        let (id, _) = read(text)?;
        let given = hash(text);
        let found = self.tokens.iter().find(|token| token.id == id);
        let expected = found.map_or("", |token| token.hash.as_str());
        let same = given.as_bytes().ct_eq(expected.as_bytes());
        found.filter(|_| bool::from(same))
    }

    /// What a token grants that [`Kept::find`] has found by its text.
    pub(super) fn grant(token: &KeptToken, text: &str) -> Option<Grant> {
        read(text).and_then(|(_, secret)| token.open(&secret))
    }

    /// The token of an id.
    pub(super) fn by_id(&self, id: &str) -> Option<&KeptToken> {
        self.tokens.iter().find(|token| token.id == id)
    }
}

/// What tells that a file has changed: its directory, time, length and number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    directory: Directory,
    file: Option<(SystemTime, u64, (u64, u64))>,
}

/// Device and number of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Directory(Option<(u64, u64)>);

impl Tokens {
    /// The tokens of the store in a directory.
    #[must_use]
    pub fn of(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Makes a token.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for an operator with a namespace or a user, and for an end that has passed; `ERR_TOO_LARGE`,
    /// `ERR_LIMIT`; `ERR_NOT_FOUND` where there is no store; `ERR_IO`.
    pub fn create(&self, new: NewToken) -> Result<MadeToken> {
        let NewToken { label, mut grant, expires_at } = new;
        let created_at = now_ms();
        check(&label, &grant, expires_at, created_at)?;
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        random(&mut *secret)?;
        let _lock = self.lock()?;
        let mut kept = self.read()?.0;
        if kept.tokens.len() >= MAX_TOKENS {
            let message = format!("a store has at most {MAX_TOKENS} tokens");
            return Err(Error::new(Code::Limit, message, "take revoked ones out of tokens.json"));
        }
        let id = kept.new_id()?;
        // Without an actor its writes would be recorded as the operator's.
        if grant.actor.is_none() && !grant.operator {
            grant.actor = Some(format!("urn:grainstore:token:{id}"));
        }
        let secret_text = Zeroizing::new(BASE64URL_NOPAD.encode(&*secret));
        let text = Zeroizing::new(format!("{PREFIX}{id}_{}", *secret_text));
        let mut token = KeptToken {
            id,
            label,
            writes: grant.writes,
            operator: grant.operator,
            created_at,
            expires_at,
            revoked_at: None,
            hash: hash(&text),
            grant: String::new(),
        };
        token.grant = seal(&token, &grant, &Secret(secret))?;
        let told = token.token();
        kept.tokens.push(token);
        self.write(&kept)?;
        Ok(MadeToken { text, token: told })
    }

    /// Lists all tokens, the oldest first.
    ///
    /// # Errors
    /// `ERR_CORRUPT`, `ERR_IO`.
    pub fn list(&self) -> Result<Vec<Token>> {
        Ok(self.read()?.0.tokens.iter().map(KeptToken::token).collect())
    }

    /// Revokes a token for good, by its id; `None` if there is none. What it has under way is answered yet; a running
    /// server takes notice with the next request.
    ///
    /// # Errors
    /// `ERR_CORRUPT`, `ERR_IO`.
    pub fn revoke(&self, id: &str) -> Result<Option<Token>> {
        let _lock = self.lock()?;
        let mut kept = self.read()?.0;
        let Some(token) = kept.tokens.iter_mut().find(|token| token.id == id) else {
            return Ok(None);
        };
        if token.revoked_at.is_none() {
            token.revoked_at = Some(now_ms());
            token.grant.clear();
        }
        let told = token.token();
        self.write(&kept)?;
        Ok(Some(told))
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// What tells whether the file has changed since, or is in another directory.
    pub(super) fn stamp(&self) -> Stamp {
        let file = fs::symlink_metadata(self.path()).ok();
        let file = file.and_then(|file| Some((file.modified().ok()?, file.len(), number(&file))));
        Stamp { directory: self.directory(), file }
    }

    /// What tells the directory from one that takes its place.
    pub(super) fn directory(&self) -> Directory {
        Directory(fs::metadata(&self.directory).ok().map(|found| number(&found)))
    }

    /// Refuses another directory than that.
    ///
    /// # Errors
    /// `ERR_CONFLICT`.
    pub(super) fn check_directory(&self, known: &Directory) -> Result<()> {
        if self.directory() == *known {
            return Ok(());
        }
        let message = format!("{} is another directory by now", self.directory.display());
        Err(Error::new(Code::Conflict, message, "start the server again"))
    }

    /// Reads the file, with what it was like.
    pub(super) fn read(&self) -> Result<(Kept, Stamp)> {
        // Taken first: what changes meanwhile is read again.
        let stamp = self.stamp();
        let path = self.path();
        if fs::symlink_metadata(&path).is_ok_and(|file| !file.is_file()) {
            let message = format!("{} is no file", path.display());
            return Err(Error::new(
                Code::Corrupt,
                message,
                "a link would hide that it changes: put the file itself there",
            ));
        }
        let mut file = match File::open(&path) {
            Ok(file) => file.take(MAX_FILE_BYTES),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok((Kept { version: VERSION, tokens: Vec::new() }, stamp));
            }
            Err(error) => return Err(failed("read", &path, &error)),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| failed("read", &path, &error))?;
        let kept: Kept = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} is no file of tokens: {error}", path.display());
            Error::new(Code::Corrupt, message, "restore it, or remove it and make new tokens")
        })?;
        if kept.version != VERSION {
            let message = format!("{} is of version {}", path.display(), kept.version);
            return Err(Error::of_code(
                "ERR_STORE_VERSION",
                message,
                "use the version that made it",
            ));
        }
        Ok((kept, stamp))
    }

    /// Replaces the file.
    fn write(&self, kept: &Kept) -> Result<()> {
        let (new, path) = (self.directory.join(NEW_FILE), self.path());
        let write = || -> std::io::Result<()> {
            match fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = private().write(true).create_new(true).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(kept)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            // So that a token that was revoked stays revoked past a crash.
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| failed("write", &path, &error))
    }

    /// Waits until nobody else changes the file.
    fn lock(&self) -> Result<File> {
        if !self.directory.join("grains.redb").is_file() {
            let message = format!("there is no store at {}", self.directory.display());
            return Err(Error::new(Code::NotFound, message, "make one with `grain init`"));
        }
        let path = self.directory.join(LOCK_FILE);
        let locked = || {
            let file = private().write(true).create(true).truncate(false).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        locked().map_err(|error| failed("lock", &path, &error))
    }
}

impl Kept {
    /// An id that no token has.
    fn new_id(&self) -> Result<String> {
        loop {
            let mut bytes = [0; ID_BYTES];
            random(&mut bytes)?;
            let id = HEXLOWER.encode(&bytes);
            if self.by_id(&id).is_none() {
                return Ok(id);
            }
        }
    }
}

/// Checks what a token is to be.
fn check(label: &str, grant: &Grant, expires_at: Option<i64>, now: i64) -> Result<()> {
    let schema = |message: &str, hint: &str| Err(Error::usage(Code::Schema, message, hint));
    if label.len() > MAX_LABEL_BYTES || label.chars().any(char::is_control) {
        return schema("a label is one line of 256 bytes at most", "say it in short");
    }
    if grant.operator && (grant.namespace.is_some() || grant.user_id.is_some()) {
        let message =
            "the operator's rights are over the whole store, not over a namespace or a user";
        return schema(message, "leave out --as-operator, or --namespace and --user");
    }
    if expires_at.is_some_and(|end| end <= now) {
        return schema("that end has passed", "give a time to come");
    }
    let named = [&grant.namespace, &grant.user_id, &grant.actor];
    if named.into_iter().flatten().any(|name| name.trim().is_empty()) {
        return schema(
            "a namespace, a user and an actor are not empty",
            "leave it out, or name it",
        );
    }
    if serde_json::to_vec(grant)?.len() > MAX_GRANT_BYTES {
        let message = format!("what a token grants has at most {MAX_GRANT_BYTES} bytes");
        return Err(Error::usage(Code::TooLarge, message, "name fewer purposes"));
    }
    Ok(())
}

/// Encrypts what a token grants.
fn seal(token: &KeptToken, grant: &Grant, secret: &Secret) -> Result<String> {
    let mut nonce = [0; NONCE_BYTES];
    random(&mut nonce)?;
    let message = Zeroizing::new(serde_json::to_vec(grant)?);
    let payload = Payload { msg: &message, aad: &token.bound() };
    let sealed =
        secret.cipher().and_then(|cipher| cipher.encrypt(&Nonce::from(nonce), payload).ok());
    let sealed = sealed.ok_or_else(|| Error::new(Code::Io, "the token cannot be encrypted", ""))?;
    Ok(BASE64URL_NOPAD.encode(&[nonce.as_slice(), &sealed].concat()))
}

/// Fills bytes at random.
pub(super) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|error| {
        let message = format!("the system gives no random numbers: {error}");
        Error::new(Code::Io, message, "look after the machine")
    })
}

/// Files that nobody but their owner reads.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

#[cfg(unix)]
fn number(file: &fs::Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> (u64, u64) {
    (0, 0)
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let message = format!("cannot {what} {}: {error}", path.display());
    Error::new(Code::Io, message, "check the directory of the store and the disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Tokens) {
        let dir = tempfile::tempdir().unwrap();
        let store =
            grainstore::Store::open(dir.path(), &grainstore::OpenOptions::new().create(true));
        store.unwrap().close().unwrap();
        let tokens = Tokens::of(dir.path());
        (dir, tokens)
    }

    fn new(grant: Grant) -> NewToken {
        NewToken { label: "a test".into(), grant, expires_at: None }
    }

    fn team() -> Grant {
        let text = |text: &str| Some(text.to_owned());
        Grant {
            namespace: text("acme-7"),
            user_id: text("ann-7"),
            writes: true,
            ..Grant::default()
        }
    }

    #[test]
    fn a_token_is_found_by_its_whole_text_alone() {
        let (_dir, tokens) = store();
        let made = tokens.create(new(team())).unwrap();
        let kept = tokens.read().unwrap().0;
        let found = kept.find(&made.text).unwrap();
        let grant = Kept::grant(found, &made.text).unwrap();
        assert_eq!(grant.namespace.as_deref(), Some("acme-7"));
        let actor = format!("urn:grainstore:token:{}", made.token.id);
        assert_eq!(grant.actor, Some(actor), "its writes are its own");
        let text = made.text.as_str();
        let mut shorter = text.to_owned();
        let last = shorter.pop();
        let flipped = format!("{shorter}{}", if last == Some('A') { 'E' } else { 'A' });
        let upper = text.to_uppercase();
        for other in [flipped.as_str(), &shorter, &upper, "gst_", "", "gst_00000000_"] {
            assert!(kept.find(other).is_none(), "{other}");
        }
        assert!(kept.find(&format!("{text} ")).is_none());
    }

    #[test]
    fn the_file_names_nobody_and_is_its_owners() {
        let (dir, tokens) = store();
        let made = tokens.create(new(team())).unwrap();
        let text = fs::read_to_string(dir.path().join(FILE)).unwrap();
        let secret = made.text.rsplit('_').next().unwrap();
        for named in ["acme-7", "ann-7", secret] {
            assert!(!text.contains(named), "{named} in {text}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn what_is_told_of_a_token_cannot_be_changed_without_its_text() {
        let (_dir, tokens) = store();
        let made = tokens.create(new(team())).unwrap();
        let kept = tokens.read().unwrap().0;
        let token = kept.find(&made.text).unwrap();
        let changes: [fn(&mut KeptToken); 3] = [
            |token| token.operator = true,
            |token| token.writes = false,
            |token| token.expires_at = Some(9),
        ];
        for change in changes {
            let mut changed = token.clone();
            change(&mut changed);
            assert_eq!(Kept::grant(&changed, &made.text), None, "{changed:?}");
        }
    }

    #[test]
    fn a_token_ends_by_its_time_and_by_revocation() {
        let (_dir, tokens) = store();
        let end = now_ms() + 60_000;
        let made = tokens.create(NewToken { expires_at: Some(end), ..new(team()) }).unwrap();
        let kept = tokens.read().unwrap().0;
        let token = kept.find(&made.text).unwrap();
        assert_eq!((token.check(end - 1), token.check(end)), (Ok(()), Err(Unknown::Expired)));
        let before = tokens.stamp();
        assert!(tokens.revoke(&made.token.id).unwrap().unwrap().revoked_at.is_some());
        assert_ne!(before, tokens.stamp());
        let kept = tokens.read().unwrap().0;
        let token = kept.find(&made.text).unwrap();
        assert_eq!(token.check(0), Err(Unknown::Revoked));
        assert_eq!(Kept::grant(token, &made.text), None, "what it granted is gone");
        assert_eq!(tokens.revoke("00000000").unwrap(), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let (_dir, tokens) = store();
        let operator = Grant { operator: true, ..team() };
        let past = NewToken { expires_at: Some(1), ..NewToken::default() };
        let empty = Grant { user_id: Some(" ".into()), ..Grant::default() };
        let long = NewToken { label: "l".repeat(257), ..NewToken::default() };
        let line = NewToken { label: "a\nb".into(), ..NewToken::default() };
        for refused in [new(operator), past, new(empty), long, line] {
            assert!(tokens.create(refused.clone()).is_err(), "{refused:?}");
        }
        let nowhere = Tokens::of(tempfile::tempdir().unwrap().path());
        assert!(nowhere.create(new(team())).is_err());
        assert_eq!(tokens.list().unwrap(), []);
    }

    #[test]
    fn tokens_made_at_once_are_all_there() {
        let (_dir, tokens) = store();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| tokens.create(new(team())).unwrap());
            }
        });
        assert_eq!(tokens.list().unwrap().len(), 8);
    }
}
