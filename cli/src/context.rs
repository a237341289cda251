//! The context of every command: the common options, the two output streams, and the store.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use grainstore::{KeyFile, OpenOptions, Session, SessionOptions, Store};
use grainstore_rpc::{Client, ClientOptions, DidSources, SharedResolver};

use crate::error::{Code, Error, Result};
use crate::globals::Globals;
use crate::output::Output;
use crate::reach::Reach;

/// Hint if there is no store.
const NO_STORE_HINT: &str = "create one with `grain init`, or name another with --store";

/// Hint if a store is too damaged to be opened.
const NOT_OPENED_HINT: &str = "copy the directory first; `grain verify` tells what is damaged and needs no \
                          index to do so; then restore a backup";

/// Hint if the key of a store is missing or wrong.
const NO_KEY_HINT: &str = "name the file of the key the store was created with: --key-file FILE, or \
                      GRAIN_KEY_FILE in the environment";

/// Hint if another process has the store open.
const BUSY_HINT: &str = "close the other process, or wait longer (--wait-ms)";

/// Returns a better hint for an error on opening a store, if the command line has one.
pub(crate) fn opening_hint(code: &str) -> Option<&'static str> {
    match code {
        code if code == Code::NotFound.name() => Some(NO_STORE_HINT),
        code if code == Code::Integrity.name() => Some(NOT_OPENED_HINT),
        "ERR_BUSY" => Some(BUSY_HINT),
        _ => None,
    }
}

/// The context of one command.
pub(crate) struct Context<'w> {
    pub(crate) globals: Globals,
    pub(crate) output: Output<'w>,
    /// The store of the prompt, which is open already.
    opened: Option<Reach>,
    /// The store of this command, which is closed when it is done.
    own: RefCell<Option<Own>>,
}

/// The store of a command.
enum Own {
    /// Shared with other processes.
    Client(Client),
    /// Open for this process alone.
    Store(Store),
}

impl<'w> Context<'w> {
    pub(crate) fn new(globals: Globals, output: Output<'w>) -> Self {
        Self { globals, output, opened: None, own: RefCell::default() }
    }

    /// The context of a command in the prompt, which uses the prompt's session.
    pub(crate) fn for_prompt(reach: &Reach, globals: Globals, output: Output<'w>) -> Self {
        Self { globals, output, opened: Some(reach.clone()), own: RefCell::default() }
    }

    /// Returns the options for opening the store in this process.
    pub(crate) fn options(&self) -> Result<OpenOptions> {
        let options = self.own_options()?;
        Ok(match self.resolver()? {
            Some(resolver) => options.resolver(resolver),
            None => options,
        })
    }

    /// The options without what resolves DIDs.
    pub(crate) fn own_options(&self) -> Result<OpenOptions> {
        let mut options = OpenOptions::new()
            .wait(Duration::from_millis(self.globals.wait_ms))
            .audit_reads(!self.globals.no_audit_reads)
            .count_access(!self.globals.no_access_counts)
            .read_only(self.globals.read_only)
            .locked_accepts_authorized_signature(self.globals.locked_accepts_authorized_signature);
        if let Some(file) = &self.globals.key_file {
            options = options.key(key_file(file)?);
        }
        if let Some(bytes) = self.globals.memory {
            options = options.memory_bytes(bytes);
        }
        for reviewer in &self.globals.reviewers {
            options = options.reviewer(reviewer);
        }
        Ok(match &self.globals.operator {
            Some(operator) => options.operator(operator),
            None => options,
        })
    }

    /// Returns the options for a store that is shared with other processes.
    pub(crate) fn client_options(&self, create: bool) -> Result<ClientOptions> {
        let sources = self.did_sources();
        Ok(ClientOptions {
            exclusive: self.globals.exclusive,
            settings: sources.settings(),
            resolver: sources.resolver()?,
            ..ClientOptions::new(self.own_options()?.create(create), self.session_options())
        })
    }

    /// Returns what resolves the DIDs of signers, if something is named.
    pub(crate) fn resolver(&self) -> Result<Option<SharedResolver>> {
        self.did_sources().resolver()
    }

    fn did_sources(&self) -> DidSources {
        DidSources {
            documents: self.globals.did_documents.clone(),
            program: self.globals.did_resolver.iter().cloned().collect(),
            deadline: None,
        }
    }

    /// Notes on a terminal that a command takes a while.
    pub(crate) fn note_progress(&mut self, what: &str) {
        if io::stderr().is_terminal() && !self.output.is_json() {
            self.output.note(&format!("{what} {} ...", self.globals.store.display()));
        }
    }

    /// Opens the store, or joins the process that has it open. It must exist unless `create` is set.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub(crate) fn client(&self, create: bool) -> Result<Client> {
        if let Some(Own::Client(client)) = &*self.own.borrow() {
            return Ok(client.clone());
        }
        let options = self.client_options(create)?;
        let opened = Client::open(&self.globals.store, options).map_err(with_opening_hint)?;
        *self.own.borrow_mut() = Some(Own::Client(opened.clone()));
        Ok(opened)
    }

    /// Opens the store, or joins the process that has it open, in the session of the common options.
    ///
    /// # Errors
    /// As [`Client::open`].
    pub(crate) fn reach(&self) -> Result<Reach> {
        match &self.opened {
            Some(opened) => Ok(opened.clone()),
            None => Ok(Reach::Shared(self.client(false)?)),
        }
    }

    /// Says it if no other process can use the store while this one has it open.
    pub(crate) fn tell_unshared(&mut self) {
        let why = match &*self.own.borrow() {
            Some(Own::Client(client)) => client.unshared(),
            _ => None,
        };
        if let Some(why) = why {
            self.output.note(&unshared_note(&why));
        }
    }

    /// Keeps the store of this command, to close it.
    pub(crate) fn keep(&self, store: &Store) {
        *self.own.borrow_mut() = Some(Own::Store(store.clone()));
    }

    /// Closes the store of this command, if there is one. Waits for what other processes asked of it.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub(crate) fn close(&mut self) -> Result<()> {
        match self.own.take() {
            Some(Own::Client(client)) => client.close_telling(&mut |left| {
                self.output.note(&format!(
                    "waiting until {left} requests of other processes are answered; Ctrl-C ends it at once"
                ));
            }),
            Some(Own::Store(store)) => Ok(store.close()?),
            None => Ok(()),
        }
    }

    /// Opens the store with these options, for a command that changes its settings; a session on it.
    ///
    /// # Errors
    /// `ERR_CONFLICT` in the prompt, whose store is open already; those of opening.
    pub(crate) fn session_as(&self, options: &OpenOptions) -> Result<Session> {
        if self.opened.is_some() {
            let message = "the settings of a store cannot be changed while the prompt has it open";
            return Err(Error::new(
                Code::Conflict,
                message,
                "leave the prompt, and run the command",
            ));
        }
        let store = Store::open(&self.globals.store, options).map_err(opening_error)?;
        self.keep(&store);
        Ok(self.session_on(&store))
    }

    /// The session of the whole store, for commands whose --namespace and --user say what they are about. In the
    /// prompt it is the prompt's.
    pub(crate) fn whole(&self) -> Result<Reach> {
        match &self.opened {
            Some(opened) => Ok(opened.clone()),
            None => {
                let options =
                    SessionOptions { namespace: None, user_id: None, ..self.session_options() };
                Ok(Reach::Shared(self.client(false)?.with_session(options)))
            }
        }
    }

    /// The --namespace and the --user of the command.
    pub(crate) fn named(&self) -> (Option<String>, Option<String>) {
        (self.globals.namespace.clone(), self.globals.user.clone())
    }

    /// The session for what concerns a user: the operator's, or else the user's own.
    ///
    /// # Errors
    /// Those of opening.
    pub(crate) fn about(&self, user: Option<&str>) -> Result<Reach> {
        let reach = self.reach()?;
        let Some(user) = user.filter(|_| self.opened.is_none() && !self.has_powers()) else {
            return Ok(reach);
        };
        let options = SessionOptions { user_id: Some(user.to_owned()), ..self.session_options() };
        Ok(Reach::Shared(self.client(false)?.with_session(options)))
    }

    /// Returns a session of a store with the common options.
    pub(crate) fn session_on(&self, store: &Store) -> Session {
        store.session(self.session_options())
    }

    /// Whether it is the operator of the whole store who asks, also of one that cannot be opened.
    pub(crate) fn has_powers(&self) -> bool {
        match &self.opened {
            Some(Reach::Here(opened)) => opened.has_powers(),
            _ => self.session_options().have_powers(self.globals.operator.as_deref()),
        }
    }

    fn session_options(&self) -> SessionOptions {
        SessionOptions {
            namespace: self.globals.namespace.clone(),
            user_id: self.globals.user.clone(),
            actor: self.globals.actor.clone(),
            purposes: self.globals.purposes.clone(),
            ..SessionOptions::default()
        }
    }
}

/// Refers to a key file, which is read when the store is opened.
pub(crate) fn key_file(file: &Path) -> Result<KeyFile> {
    if file.is_dir() {
        let message = format!("{} is a directory, and no key file", file.display());
        return Err(Error::new(Code::Key, message, NO_KEY_HINT));
    }
    Ok(KeyFile::new(file))
}

/// Writes a new key into a new file.
pub(crate) fn new_key_file(file: &Path) -> Result<KeyFile> {
    KeyFile::create(file).map_err(|error| {
        let place = format!("the key file {} cannot be made", file.display());
        let hint = "name a file in a directory that is there";
        Error::from(error).in_context(&place).with_hint_for(Code::Io.name(), hint)
    })
}

/// Returns the error on opening a store, with a hint for the command line.
pub(crate) fn opening_error(error: grainstore::Error) -> Error {
    with_opening_hint(Error::from(error))
}

/// Gives the error of opening a store a hint for the command line.
pub(crate) fn with_opening_hint(error: Error) -> Error {
    let Some(refusal) = error.refusal() else { return error };
    // Only the generic hint about keys is replaced: the specific ones say more.
    if error.has_code(Code::Key) && refusal.hint.starts_with("give the key or the passphrase") {
        return error.with_hint_for(Code::Key.name(), NO_KEY_HINT);
    }
    // A process that does not answer is another matter.
    if refusal.code == "ERR_BUSY" && !refusal.hint.starts_with("close the other process") {
        return error;
    }
    let code = refusal.code.to_string();
    match opening_hint(&code) {
        Some(hint) => error.with_hint_for(&code, hint),
        None => error,
    }
}

/// Says that no other process can use the store meanwhile.
pub(crate) fn unshared_note(why: &str) -> String {
    format!("note: no other process can use the store meanwhile: {why}")
}
