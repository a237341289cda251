//! Who asks: the holder of a bearer token, or who has signed in to the console.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use grainstore_rpc::Client;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::complete::Values;
use super::failure::{Failure, Result};
use super::limits::{
    Bucket, Failed, MAX_HELD_BYTES_OF_TOKEN, MAX_OF_TOKEN, MAX_RUNNING_OF_TOKEN, Room,
};
use super::tokens::{Directory, Grant, Kept, Stamp, Tokens, Unknown, now_ms, random};

/// Streams of CAL of one token at once (CAL 11.6).
pub(super) const MAX_STREAMS: usize = 3;
/// WebSockets of one token at once.
pub(super) const MAX_SOCKETS: usize = 8;
/// Change feeds of one token at once.
pub(super) const MAX_FEEDS: usize = 8;
/// How long somebody stays signed in to the console.
const SIGNED_IN: Duration = Duration::from_secs(12 * 3600);
/// How long the URL holds that signs in.
const CODE_LIFE: Duration = Duration::from_secs(600);
/// Most that are signed in at once by one token, or by the URL; beyond, the oldest of them gives way.
const MAX_SIGNED_IN: usize = 16;
/// What the name of the console's cookie begins with. The port follows: browsers send the cookies of one port of a
/// machine to its others, too, and two servers must not sign each other's people out.
const COOKIE: &str = "grainstore_console_";
/// What it begins with where browsers connect encrypted: they take such a cookie from this host alone, and no other of
/// its domain can set it.
const OWN_HOST: &str = "__Host-";
/// The header that a page of the console adds, and no other page can.
const CSRF: &str = "x-csrf-token";
/// What a client is told to send.
const CHALLENGE: &str = "Bearer realm=\"grainstore\"";
const CHALLENGE_INVALID: &str = "Bearer realm=\"grainstore\", error=\"invalid_token\"";

/// What somebody may do here: of a token, or of who started the server.
pub(super) struct Access {
    /// The id of the token; `console` of who started the server.
    pub(super) id: Arc<str>,
    pub(super) label: String,
    pub(super) grant: Grant,
    pub(super) expires_at: Option<i64>,
    /// The store, in the session that is granted.
    pub(super) client: Client,
    pub(super) bucket: Bucket,
    /// Requests at once, and those of them that run.
    pub(super) places: Arc<Semaphore>,
    pub(super) running: Arc<Semaphore>,
    /// Streams of CAL, WebSockets and change feeds at once.
    pub(super) streams: Arc<Semaphore>,
    pub(super) sockets: Arc<Semaphore>,
    pub(super) feeds: Arc<Semaphore>,
    /// Room for its large bodies.
    pub(super) room: Room,
    /// Values that are offered while a statement is typed.
    pub(super) values: Values,
}

impl Access {
    fn new(
        id: &str,
        label: &str,
        grant: Grant,
        expires_at: Option<i64>,
        store: &Client,
        rate: u32,
    ) -> Self {
        Self {
            id: id.into(),
            label: label.to_owned(),
            client: store.with_session(grant.session()),
            grant,
            expires_at,
            bucket: Bucket::new(rate),
            places: Arc::new(Semaphore::new(MAX_OF_TOKEN)),
            running: Arc::new(Semaphore::new(MAX_RUNNING_OF_TOKEN)),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            sockets: Arc::new(Semaphore::new(MAX_SOCKETS)),
            feeds: Arc::new(Semaphore::new(MAX_FEEDS)),
            room: Room::new(MAX_HELD_BYTES_OF_TOKEN),
            values: Values::default(),
        }
    }

    /// What its holder is told of it.
    pub(super) fn told(&self) -> Value {
        let Grant { namespace, user_id, actor, purposes, writes, operator } = &self.grant;
        json!({
            "id": &*self.id,
            "label": self.label,
            "namespace": namespace,
            "user_id": user_id,
            "actor": actor,
            "purposes": purposes,
            "tier": u8::from(*writes),
            "operator": operator,
            "expires_at": self.expires_at,
        })
    }
}

/// Who asks, for one request.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) access: Arc<Access>,
    /// Whether a browser asks, by its cookie.
    pub(super) is_console: bool,
    /// Its place among the requests of the token, which goes with the work.
    pub(super) place: Option<Arc<OwnedSemaphorePermit>>,
}

/// Somebody who has signed in to the console.
struct SignedIn {
    access: Arc<Access>,
    csrf: String,
    since: Instant,
}

/// Who may ask, of one server.
pub(super) struct Accesses {
    tokens: Tokens,
    store: Client,
    rate: u32,
    /// The name of the console's cookie.
    cookie: String,
    /// The attribute of a cookie that is sent encrypted alone.
    secure: &'static str,
    /// The file of tokens, as it was read last.
    kept: RwLock<(Stamp, Arc<Kept>)>,
    /// Held while it is read.
    reading: Mutex<()>,
    /// The directory that it is in.
    directory: Directory,
    /// What tokens have granted, by their ids, with the hash of their texts.
    granted: Mutex<HashMap<String, (String, Arc<Access>)>>,
    /// The one-time code of the console, by its hash.
    code: Mutex<Option<([u8; 32], Instant)>>,
    console: Arc<Access>,
    /// By the hash of the cookie.
    signed_in: Mutex<HashMap<[u8; 32], SignedIn>>,
    failed: Failed,
}

/// The answer to a sign-in: the cookie to set, and what the page is told.
pub(super) struct Welcome {
    pub(super) cookie: HeaderValue,
    pub(super) told: Value,
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// A secret that nobody guesses.
fn secret() -> grainstore_rpc::Result<String> {
    let mut bytes = [0; 32];
    random(&mut bytes)?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

impl Accesses {
    /// `console` is what who started the server may do. Each token may ask `rate` times a second. The server listens on
    /// `port`, and browsers reach it encrypted or not.
    pub(super) fn new(
        tokens: Tokens,
        store: Client,
        console: Grant,
        rate: u32,
        (port, is_encrypted): (u16, bool),
    ) -> grainstore_rpc::Result<Self> {
        let directory = tokens.directory();
        let (kept, stamp) = tokens.read()?;
        let console = Access::new("console", "who started the server", console, None, &store, rate);
        Ok(Self {
            tokens,
            store,
            rate,
            cookie: format!("{}{COOKIE}{port}", if is_encrypted { OWN_HOST } else { "" }),
            secure: if is_encrypted { "; Secure" } else { "" },
            kept: RwLock::new((stamp, Arc::new(kept))),
            reading: Mutex::default(),
            directory,
            granted: Mutex::default(),
            code: Mutex::default(),
            console: Arc::new(console),
            signed_in: Mutex::default(),
            failed: Failed::default(),
        })
    }

    /// Makes the code of a URL that signs in once. The one before ends.
    ///
    /// # Errors
    /// `ERR_IO` where the system gives no random numbers.
    pub(super) fn new_code(&self) -> grainstore_rpc::Result<String> {
        let code = secret()?;
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((digest(&code), Instant::now()));
        Ok(code)
    }

    /// The file of tokens, read anew where it has changed. One that cannot be read opens nothing, nor one in a directory
    /// that has taken the place of the store's.
    fn kept(&self) -> Result<Arc<Kept>> {
        let stamp = self.tokens.stamp();
        if let Some(known) = self.known(&stamp) {
            return Ok(known);
        }
        // One reads it, whoever else waits.
        let _turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.known(&stamp) {
            return Ok(known);
        }
        let read = || {
            self.tokens.check_directory(&self.directory)?;
            self.tokens.read()
        };
        let (kept, stamp) = read().map_err(|error| Failure::of_server(&error))?;
        let kept = Arc::new(kept);
        *self.kept.write().unwrap_or_else(PoisonError::into_inner) = (stamp, Arc::clone(&kept));
        // What is no more, or is something else, is forgotten.
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, (hash, _)| {
            kept.by_id(id).is_some_and(|token| token.hash == *hash && token.check(now_ms()).is_ok())
        });
        Ok(kept)
    }

    /// The file as it was read last, if it is as it was.
    fn known(&self, stamp: &Stamp) -> Option<Arc<Kept>> {
        let known = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        (known.0 == *stamp).then(|| Arc::clone(&known.1))
    }

    /// What the token of this text grants.
    fn of_token(&self, text: &str) -> Result<Arc<Access>> {
        let kept = self.kept()?;
        let invalid = |why: &str| Failure::unauthorized(why, CHALLENGE_INVALID);
        let token = kept.find(text).ok_or_else(|| invalid("this is no token of this store"))?;
        token.check(now_ms()).map_err(|unknown| {
            invalid(match unknown {
                Unknown::Expired => "this token has expired",
                Unknown::Revoked => "this token was revoked",
            })
        })?;
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((hash, access)) = granted.get(&token.id)
            && *hash == token.hash
        {
            return Ok(Arc::clone(access));
        }
        let grant = Kept::grant(token, text).ok_or_else(|| invalid("this token is damaged"))?;
        let access = Access::new(
            &token.id,
            token.label(),
            grant,
            token.expires_at(),
            &self.store,
            self.rate,
        );
        let access = Arc::new(access);
        granted.insert(token.id.clone(), (token.hash.clone(), Arc::clone(&access)));
        Ok(access)
    }

    /// Whether what somebody may do still holds: for what goes on after its request was let in.
    pub(super) fn holds(&self, access: &Access) -> bool {
        let is_console = access.id == self.console.id;
        is_console
            || self.kept().is_ok_and(|kept| {
                kept.by_id(&access.id).is_some_and(|token| token.check(now_ms()).is_ok())
            })
    }

    /// Finds out who asks. `from` is where the request comes from, `needs_csrf` false for what a page cannot add a
    /// header to.
    ///
    /// # Errors
    /// 401 for nobody, 403 for a cookie without its header, 429 after too many tries.
    pub(super) fn caller(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        needs_csrf: bool,
    ) -> Result<Caller> {
        self.try_caller(headers, needs_csrf).or_else(|failure| {
            self.failed.count(from)?;
            Err(failure)
        })
    }

    fn try_caller(&self, headers: &HeaderMap, needs_csrf: bool) -> Result<Caller> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        if let Some(authorization) = given.next() {
            let malformed = || Failure::unauthorized("this is no bearer token", CHALLENGE_INVALID);
            let text = authorization.to_str().ok().filter(|_| given.next().is_none());
            let (scheme, token) =
                text.and_then(|text| text.split_once(' ')).ok_or_else(malformed)?;
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Err(malformed());
            }
            return Ok(Caller {
                access: self.of_token(token.trim_start())?,
                is_console: false,
                place: None,
            });
        }
        let cookie = self
            .cookie_of(headers)
            .ok_or_else(|| Failure::unauthorized("no bearer token was sent", CHALLENGE))?;
        let (access, csrf) = self.signed_in(cookie)?;
        if needs_csrf {
            let given = headers.get(CSRF).map(HeaderValue::as_bytes).unwrap_or_default();
            if !bool::from(given.ct_eq(csrf.as_bytes())) {
                let message = "a call with the cookie of the console has its X-CSRF-Token";
                return Err(Failure::forbidden(message, "sign in again"));
            }
        }
        Ok(Caller { access, is_console: true, place: None })
    }

    /// What somebody who has signed in may do, with the value of the header.
    fn signed_in(&self, cookie: &str) -> Result<(Arc<Access>, String)> {
        let over = || Failure::unauthorized("nobody is signed in, or no more", CHALLENGE);
        let key = digest(cookie);
        let (access, csrf) = {
            let mut all = self.signed_in.lock().unwrap_or_else(PoisonError::into_inner);
            let found = all.get(&key).ok_or_else(over)?;
            if found.since.elapsed() >= SIGNED_IN {
                all.remove(&key);
                return Err(over());
            }
            (Arc::clone(&found.access), found.csrf.clone())
        };
        if !self.holds(&access) {
            self.signed_in.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
            return Err(over());
        }
        Ok((access, csrf))
    }

    /// Signs in to the console, by the code of the URL or by a token.
    ///
    /// # Errors
    /// 401 for what does not hold, or not any more; 429 after too many tries.
    pub(super) fn sign_in(
        &self,
        code: Option<&str>,
        token: Option<&str>,
        from: IpAddr,
    ) -> Result<Welcome> {
        let access = match (code, token) {
            (Some(code), None) => self.by_code(code),
            (None, Some(token)) => self.of_token(token.trim()),
            _ => return Err(Failure::malformed("give code or token")),
        };
        let access = access.or_else(|failure| {
            self.failed.count(from)?;
            Err(failure)
        })?;
        if !access.bucket.take() {
            let status = StatusCode::TOO_MANY_REQUESTS;
            return Err(Failure::too_many(status, "this token asks too often", 1));
        }
        let (cookie, csrf) = (secret()?, secret()?);
        let told = json!({ "csrf": csrf, "access": access.told() });
        let mut all = self.signed_in.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, one| one.since.elapsed() < SIGNED_IN);
        let own = all.iter().filter(|(_, one)| one.access.id == access.id);
        let oldest = own.clone().min_by_key(|(_, one)| one.since).map(|(key, _)| *key);
        if let Some(oldest) = oldest.filter(|_| own.count() >= MAX_SIGNED_IN) {
            all.remove(&oldest);
        }
        all.insert(digest(&cookie), SignedIn { access, csrf, since: Instant::now() });
        let cookie = self.cookie(&cookie, SIGNED_IN.as_secs())?;
        Ok(Welcome { cookie, told })
    }

    /// Takes the code of the URL, which works once.
    fn by_code(&self, given: &str) -> Result<Arc<Access>> {
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = code.as_ref().is_some_and(|(hash, since)| {
            since.elapsed() < CODE_LIFE && bool::from(hash.ct_eq(&digest(given)))
        });
        if !holds {
            let message = "this link was used already, or is too old";
            let hint = "sign in with a token (grain tokens create), or start the server again for a new link";
            return Err(Failure::unauthorized(message, CHALLENGE).with_hint(hint));
        }
        *code = None;
        Ok(Arc::clone(&self.console))
    }

    /// What a page is told of who is signed in.
    pub(super) fn who(&self, headers: &HeaderMap) -> Result<Value> {
        let nobody = || Failure::unauthorized("nobody is signed in", CHALLENGE);
        let (access, csrf) = self.signed_in(self.cookie_of(headers).ok_or_else(nobody)?)?;
        Ok(json!({ "csrf": csrf, "access": access.told() }))
    }

    /// The value of the console's cookie, where a request has one.
    fn cookie_of<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|value| value.split(';'));
        pairs.find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie).then_some(value)
        })
    }

    /// Signs out who asks. Returns the cookie to set.
    pub(super) fn sign_out(&self, headers: &HeaderMap) -> Result<HeaderValue> {
        if let Some(cookie) = self.cookie_of(headers) {
            let mut all = self.signed_in.lock().unwrap_or_else(PoisonError::into_inner);
            all.remove(&digest(cookie));
        }
        self.cookie("", 0)
    }

    /// The cookie that a browser is to keep.
    fn cookie(&self, value: &str, seconds: u64) -> Result<HeaderValue> {
        let (name, secure) = (&self.cookie, self.secure);
        let cookie =
            format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::from_str(&cookie).map_err(|_| Failure::malformed("no cookie"))
    }
}

/// A name that nobody guesses, for what a client comes back to.
pub(super) fn new_name() -> grainstore_rpc::Result<String> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}
