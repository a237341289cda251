//! The tables of the index in one read snapshot: its runs, and the row that lists them.
//!
//! Knows which runs there are; the bytes of a row belong to `keys` and `layout`, blocks to `run`.

use std::sync::{Arc, OnceLock};

use redb::{ReadOnlyTable, ReadTransaction};

use crate::block_seal::{self, BlockSeal};
use crate::error::{Error, Result};
use crate::known_terms::KnownTerms;
use crate::layout;
use crate::merge::SortedInput;
use crate::meta::{self, HISTORY, META};
use crate::part::AddressEntry;
use crate::posting::{Sequence, Watermark};
use crate::run::cursor::RunCursor;
use crate::run::directory::RunDirectory;
use crate::run::filter::FilterKey;
use crate::run::lists::{ADDRESS_ROW_BYTES, RunList};
use crate::run::rows::MergedRows;
use crate::run::table::{Run, RunCache};
use crate::term::{NextIds, TermId};

/// The prefix of all derived tables' names, in every layout version.
pub(crate) const NAME_PREFIX: &str = "index.";

/// A row of a list of [`Tables`]: its key and its value, which is empty in most lists.
pub type TableRow = (Vec<u8>, Vec<u8>);

pub(crate) type MetaRows = ReadOnlyTable<&'static str, &'static [u8]>;

/// The derived tables of one read snapshot.
///
/// They are opened when they are first read. The handles keep the snapshot alive and can be used from several
/// threads.
///
/// ```
/// use grainstore_index::{Tables, reset};
/// use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
///
/// let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// let txn = db.begin_write()?;
/// reset(&txn, None, [0; 16])?;
/// txn.commit()?;
/// let tables = Tables::open(db.begin_read()?, None);
/// assert_eq!((tables.watermark()?, tables.run_count()?), (None, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tables {
    txn: ReadTransaction,
    seal: Option<Arc<dyn BlockSeal>>,
    cache: RunCache,
    meta: OnceLock<MetaRows>,
    runs: OnceLock<Vec<Arc<Run>>>,
    next_ids: OnceLock<NextIds>,
    known_terms: KnownTerms,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = self.runs.get().map(Vec::len);
        f.debug_struct("Tables").field("runs", &runs).finish_non_exhaustive()
    }
}

impl Tables {
    /// Wraps a snapshot. Reads nothing yet. In an encrypted store `seal` is given: each block is compared with its
    /// tag when it is first read.
    #[must_use]
    pub fn open(txn: ReadTransaction, seal: Option<Arc<dyn BlockSeal>>) -> Self {
        let (meta, runs, next_ids) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (cache, known_terms) = (RunCache::default(), KnownTerms::default());
        Self { txn, seal, cache, meta, runs, next_ids, known_terms }
    }

    /// Takes what is kept in memory of runs from a cache, which snapshots of one index share.
    #[must_use]
    pub fn with_cache(self, cache: &RunCache) -> Self {
        Self { cache: cache.clone(), ..self }
    }

    /// The last grain folded into these tables.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY` if there is no index.
    pub fn watermark(&self) -> Result<Option<Watermark>> {
        meta::watermark(self.meta()?)
    }

    /// What the engine knew of the history of the log when the tables were last folded.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY` if there is no index.
    pub fn history(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.meta()?.get(HISTORY)?.map(|row| row.value().to_vec()))
    }

    /// The next ids of namespaces, subjects and relations, which depend on the log alone.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn counters(&self) -> Result<[u64; 3]> {
        let ids = self.next_ids()?;
        Ok([ids.namespace, ids.subject, ids.relation].map(TermId::get))
    }

    /// The number of runs: a look-up reads each.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn run_count(&self) -> Result<usize> {
        Ok(self.runs()?.len())
    }

    /// The next id of each kind.
    pub(crate) fn next_ids(&self) -> Result<NextIds> {
        get_or_try_init(&self.next_ids, || meta::next_ids(self.meta()?)).copied()
    }

    /// The runs, the newest first.
    pub(crate) fn runs(&self) -> Result<&[Arc<Run>]> {
        let runs = get_or_try_init(&self.runs, || {
            let meta = self.meta()?;
            block_seal::check_marks(self.seal.as_deref(), meta)?;
            let directory = RunDirectory::stored(meta)?;
            let with = (self.seal.as_ref(), &self.cache);
            let mut runs = Run::open_all(&self.txn, directory, with)?;
            runs.reverse();
            Ok(runs)
        });
        runs.map(Vec::as_slice)
    }

    pub(crate) fn seal(&self) -> Option<Arc<dyn BlockSeal>> {
        self.seal.clone()
    }

    /// The row of the term with this key; `None` if it is not in the tables.
    pub(crate) fn term_row(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.term_with(key, |row| Ok(row.to_vec()))
    }

    /// The id of the term with this key; `None` if it is not in the tables.
    pub(crate) fn term_id(&self, key: &[u8]) -> Result<Option<TermId>> {
        self.term_with(key, |row| {
            let id = layout::split_term_row(row).map(|(id, _)| id);
            id.ok_or_else(|| Error::integrity("a term row is too short"))
        })
    }

    /// As [`term_id`](Self::term_id), for a term of which there are few: it is kept in memory.
    pub(crate) fn frequent_term_id(&self, key: &[u8]) -> Result<Option<TermId>> {
        self.known_terms.id(key, || self.term_id(key))
    }

    /// What `read` makes of the row of the term with this key.
    fn term_with<T>(&self, key: &[u8], read: impl Fn(&[u8]) -> Result<T>) -> Result<Option<T>> {
        let (wanted, read) = (FilterKey::of_term(key), |_: &[u8], row: &[u8]| read(row));
        for run in self.runs()? {
            if run.may_have(wanted)?
                && let Some(found) = run.find(RunList::TERMS, (key, key), read)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The sequence of an address.
    pub(crate) fn sequence_of(&self, address: &[u8; 32]) -> Result<Option<Sequence>> {
        let wanted = FilterKey::of_address(address);
        let mut last = [u8::MAX; ADDRESS_ROW_BYTES];
        last.iter_mut().zip(address).for_each(|(to, byte)| *to = *byte);
        let sequence = |row: &[u8], _: &[u8]| address_entry(row).map(|(_, at)| Sequence::new(at));
        for run in self.runs()? {
            if run.may_have(wanted)?
                && let Some(found) = run.find(RunList::ADDRESSES, (address, &last), sequence)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The addresses from `start` on, one input for each run.
    pub(crate) fn addresses_from(
        &self,
        start: &[u8; 32],
    ) -> Result<Vec<SortedInput<'static, AddressEntry>>> {
        let entry = |key: &[u8], _: &[u8]| address_entry(key);
        self.inputs(RunList::ADDRESSES, start, entry)
    }

    /// The rows of a list from `start` on, one input for each run.
    pub(crate) fn inputs<T: 'static>(
        &self,
        list: RunList,
        start: &[u8],
        make: impl Fn(&[u8], &[u8]) -> Result<T> + Copy + 'static,
    ) -> Result<Vec<SortedInput<'static, T>>> {
        let mut inputs = Vec::new();
        for run in self.runs()? {
            let mut cursor = RunCursor::new(run, list);
            let mut next = Some(cursor.seek(start));
            inputs.push(Box::new(std::iter::from_fn(move || {
                match next.take().unwrap_or_else(|| cursor.advance()) {
                    Ok(true) => Some(make(cursor.key(), cursor.value())),
                    Ok(false) => None,
                    Err(error) => Some(Err(error)),
                }
            })) as SortedInput<'static, T>);
        }
        Ok(inputs)
    }

    /// The names of the lists, as [`rows`](Self::rows) takes them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        RunList::all().map(RunList::name)
    }

    /// The rows of a list in order, with their values, whatever runs they are in; none for a name that is not one of
    /// [`names`](Self::names). Two indexes of one log have the same.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`, also for each row.
    pub fn rows(&self, name: &str) -> Result<impl Iterator<Item = Result<TableRow>> + use<>> {
        let list = RunList::all().find(|list| list.name() == name);
        let runs = if list.is_some() { self.runs()? } else { &[] };
        let mut rows = MergedRows::of(runs, list.unwrap_or(RunList::TERMS), true)?;
        let mut is_over = false;
        Ok(std::iter::from_fn(move || {
            let (key, value) = rows.least().filter(|_| !is_over)?;
            let row = (key.to_vec(), value.to_vec());
            let next = rows.advance();
            is_over = next.is_err();
            Some(next.map(|()| row))
        }))
    }

    /// Reads every block; in an encrypted store each is compared with its tag.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if one cannot be read, or somebody without the key changed it; `ERR_IO`.
    pub fn check_blocks(&self) -> Result<()> {
        for run in self.runs()? {
            for list in RunList::all() {
                let mut rows = MergedRows::of(std::slice::from_ref(run), list, false)?;
                while rows.least().is_some() {
                    rows.advance()?;
                }
            }
        }
        Ok(())
    }

    fn meta(&self) -> Result<&MetaRows> {
        get_or_try_init(&self.meta, || Ok(self.txn.open_table(META)?))
    }
}

/// Decodes a row of addresses.
fn address_entry(row: &[u8]) -> Result<AddressEntry> {
    let entry = row.split_first_chunk().and_then(|(address, sequence)| {
        Some((*address, u64::from(u32::from_be_bytes(sequence.try_into().ok()?))))
    });
    entry.ok_or_else(|| Error::integrity("a row of addresses cannot be read"))
}

/// Returns the value of a cell, initialising it if it is empty.
fn get_or_try_init<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(made) = cell.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}
