//! The store as its host holds it: opening, closing, sessions, and what it says of itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use grainstore_format::{Envelope, SignatureVerdict};

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::disk::directory;
use crate::handle::inner::StoreInner;
use crate::handle::options::OpenOptions;
use crate::handle::session::Session;
use crate::state::audit::AuditRecord;
use crate::state::session_options::SessionOptions;
use crate::write::writer::{Request, Writer};

/// What to do about a store that met a failing disk when it was closed.
const NOT_CLOSED: &str = "look after the disk and its room, and open the store again: everything that was \
                          acknowledged is there";

/// An open store. Cheap to clone; dropping the last clone closes it.
///
/// ```
/// use grainstore::prelude::*;
///
/// # let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// let other = store.clone();
/// store.session(SessionOptions::default()).ask("DESCRIBE server")?;
/// store.close()?; // for `other` as well
/// assert!(other.stats().is_err_and(|error| error.code() == "ERR_IO"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store(pub(super) Arc<StoreInner>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({:?})", self.0.path)
    }
}
impl Store {
    /// Opens the store in a directory, or creates it if the options say so.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let missing = Store::open(dir.path(), &OpenOptions::new());
    /// assert!(missing.is_err_and(|error| error.code() == "ERR_NOT_FOUND"));
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// assert!(store.was_created());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if there is no store and none is to be created, `ERR_BUSY` if another handle has it
    /// open for longer than the options wait, `ERR_STORE_VERSION` for a directory that is no store of this
    /// format, `ERR_DIMENSION` and `ERR_SCHEMA` for an embedder that does not fit, `ERR_POLICY` for another
    /// preset than the store's, `ERR_KEY` for a missing or wrong key, `ERR_INTEGRITY` for damage, `ERR_IO`.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        catch_storage_panic(|| Self::open_at(path, options)).map_err(|error| match error.kind() {
            // The options are at fault, not the directory.
            ErrorKind::NotFound | ErrorKind::Busy | ErrorKind::Dimension | ErrorKind::Policy => {
                error
            }
            ErrorKind::Format(
                grainstore_format::ErrorKind::Schema | grainstore_format::ErrorKind::Key,
            ) => error,
            // These have their hints.
            ErrorKind::StoreVersion
            | ErrorKind::NotLeader
            | ErrorKind::Fenced
            | ErrorKind::Diverged => error.at_path(path),
            _ => error.at_path(path).or_hint(
                "check the path, its permissions and its disk; what cannot be written can be read with \
                 --read-only (OpenOptions::read_only)",
            ),
        })
    }
    /// Returns `true` if it was opened [read-only](OpenOptions::read_only), so that no file is written, or
    /// [follows](OpenOptions::following) a journal: no read is audited.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.read_only || self.0.follows().is_some()
    }

    /// Returns the error that ended writing: nothing more is written until the store is opened again. It is noticed
    /// by the thread that writes, so a moment after it was answered. That of a store that was closed is `ERR_IO`.
    #[must_use]
    pub fn stopped(&self) -> Option<Error> {
        self.0.stopped.get().cloned()
    }

    /// Returns `true` if [`Store::open`] created it.
    #[must_use]
    pub fn was_created(&self) -> bool {
        self.0.created
    }

    /// Returns why the full text had to be rebuilt since the store was opened: the fault of the files under
    /// `text/`. `None` if they were read, or if there were none. [`Store::reindex`] rebuilds it on request.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn rebuilt_text(&self) -> Result<Option<String>> {
        let view = self.0.view()?;
        Ok(self.0.retrieval.text_index.status(&view)?.rebuilt)
    }

    /// Waits, at most `patience`, until the store's [embedder](crate::embed::Embedder) has reached the end of
    /// the log and a move to its model is complete. Returns `true` if it has, and at once for a store without
    /// an embedder.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed; `ERR_INTEGRITY`.
    pub fn wait_for_vectors(&self, patience: Duration) -> Result<bool> {
        match self.0.retrieval.embedder() {
            Some(keeping) => keeping.wait(patience, || self.0.view()),
            None => Ok(true),
        }
    }

    /// Waits, at most `patience`, until graphs over the current vectors are built and saved. Returns `true`
    /// if they are. Graphs are built in the background after the first vector search or a call of this;
    /// searches are answered meanwhile. A store in memory has none.
    ///
    /// ```
    /// use grainstore::embed::{Embedding, Metric};
    /// use grainstore::{Offer, prelude::*};
    /// use std::time::Duration;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let vector = Embedding::new("my-model", Metric::Cosine, vec![0.6, 0.8])?;
    /// session.put(Offer::from(grain).with_vectors(vec![vector]))?;
    /// assert!(store.wait_for_graphs(Duration::from_secs(10))?);
    /// assert_eq!(store.remade_graphs(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed; `ERR_INTEGRITY`.
    pub fn wait_for_graphs(&self, patience: Duration) -> Result<bool> {
        self.0.retrieval.vectors.wait(patience, || self.0.view())
    }

    /// Number of saved vector graphs that had to be rebuilt since the store was opened;
    /// [`Store::wait_for_graphs`] waits for them.
    #[must_use]
    pub fn remade_graphs(&self) -> usize {
        self.0.retrieval.vectors.unusable_graphs()
    }

    /// Returns the number that the store was given at random when it was created. Copies of it have the same.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// assert_ne!(store.id()?, [0; 16]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn id(&self) -> Result<[u8; 16]> {
        self.inner().view()?.store_id()
    }

    /// The directory of the store, as given to [`Store::open`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns `true` if the store had not been closed cleanly, so that its files were repaired on opening.
    /// [`Store::close`] closes it cleanly.
    #[must_use]
    pub fn was_repaired(&self) -> bool {
        self.0.opening.has_repaired()
    }

    /// Size of the page caches of both files, in bytes.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.0.opening.cache_bytes().saturating_mul(2)
    }

    /// Path of the truth.
    pub(crate) fn truth_path(&self) -> PathBuf {
        directory::truth_path(&self.0.path)
    }

    /// Returns a session, which reads and writes.
    ///
    /// Its identity is what the options say: the host decides it, and it is not checked.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let ann = store.session(SessionOptions { user_id: Some("ann".into()), ..Default::default() });
    /// assert!(session.has_powers() && !ann.has_powers());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn session(&self, options: SessionOptions) -> Session {
        Session::new(self.clone(), options)
    }

    /// Verifies the signature of a grain that need not be stored, with the keys that the store finds:
    /// [`OpenOptions::resolver`]. Of one that is stored, [`Session::signature`] tells it.
    ///
    /// ```
    /// use grainstore::format::{SignatureVerdict, SigningKey, sign};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    ///
    /// let key = SigningKey::ed25519_from_seed(&[7; 32]);
    /// let grain = BeliefBuilder::new(store.session(SessionOptions::default()).now(), "alice", "prefers", "tea", 0.9);
    /// let blob = grain.author_did(key.did().as_str()).build()?.encode(Default::default())?;
    /// let envelope = sign(blob.bytes(), &key, None)?;
    /// assert_eq!(store.verdict(&envelope), SignatureVerdict::Valid(key.did()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn verdict(&self, envelope: &Envelope) -> SignatureVerdict {
        envelope.verify(self.inner().resolver())
    }

    /// Waits until all writes so far are durable and folded into the derived indexes, and the full text and
    /// the graphs there are are saved. Builds no graph: [`Store::wait_for_graphs`] waits for those.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// session.put(grain)?;
    /// store.flush()?;
    /// assert_eq!(store.stats()?.tail_grains, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn flush(&self) -> Result<()> {
        let (reply, pending) = Pending::new();
        self.0.hand_over(Request::Flush(reply))?;
        pending.wait()
    }

    /// Closes the store for every handle: finishes submitted writes, folds, and releases the lock. The store
    /// is closed when this returns, also if another thread was closing it. The exception is a call on the
    /// writer thread itself, where a task may be polled when its write is answered: that does not wait, and
    /// the store closes afterwards.
    ///
    /// A store that is dropped closes as well, and tells nobody what failed of it.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// store.close()?;
    /// assert!(!Store::open(dir.path(), &OpenOptions::new())?.was_repaired());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The failure that ended writing before, or the first that was met while closing: `ERR_IO`, or
    /// `ERR_INTEGRITY` where the truth is damaged. The store is closed all the same, everything that was
    /// acknowledged is on the disk, and who closes it again is told the same.
    pub fn close(&self) -> Result<()> {
        self.0.close().map_err(|error| match error.kind() {
            ErrorKind::Io => error.at_path(&self.0.path).with_hint(NOT_CLOSED),
            _ => error.at_path(&self.0.path),
        })
    }

    /// Writes an audit entry without any other effect.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn record_audit(&self, record: AuditRecord) -> Result<()> {
        self.run_exclusive(move |writer| writer.write_audit_record(record, |_| Ok(())))
    }

    pub(crate) fn inner(&self) -> &StoreInner {
        &self.0
    }

    /// Runs a task on the writer thread, after the writes of its group.
    pub(crate) fn run_exclusive<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner().check_writable()?;
        self.run_exclusive_on_index(step)
    }

    /// Runs a task on the writer thread that writes at most the index; allowed in a read-only store.
    pub(crate) fn run_exclusive_on_index<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, pending) = Pending::new();
        self.inner().hand_over(Request::Exclusive(Box::new(move |writer| {
            // The caller may have stopped waiting.
            let _ = reply.send(writer.and_then(|writer| catch_storage_panic(|| step(writer))));
        })))?;
        pending.wait()
    }
}
