//! Rows of applications: of a table that an application has by a number, values by keys.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::layout::{self, RowOwner, TablePrefix};
use crate::handle::session::Session;
use crate::state::application::{
    ApplicationKey, ApplicationRow, MAX_ROW_CHANGE_BYTES, MAX_ROW_CHANGES, MAX_ROW_PAGE,
    MAX_ROW_PAGE_BYTES, Owner, RowChange, RowPage, RowRange, check_table,
};
use crate::state::powers::Power;
use crate::state::view::View;

/// A row with its owner.
type Owned = (RowOwner, ApplicationRow);

impl Session {
    /// Writes a row of a table of an application. Returns `true` if it replaced one. The table is a number that the
    /// application gives it.
    ///
    /// ```
    /// use grainstore::{Owner, RowRange};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// session.put_row("notes", 1, "color", b"red", Owner::Store)?;
    /// assert_eq!(session.row("notes", 1, "color")?, Some(b"red".to_vec()));
    /// for number in [7, 8, 9] {
    ///     session.put_row("notes", 2, number, [1], Owner::User("ann".into()))?;
    /// }
    /// let page = session.rows("notes", 2, &RowRange::Numbers(8..=u64::MAX), 100)?;
    /// assert_eq!(page.rows.len(), 2);
    /// assert!(session.remove_row("notes", 1, "color")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::write_rows`].
    pub fn put_row(
        &self,
        application: &str,
        table: u8,
        key: impl Into<ApplicationKey>,
        value: impl AsRef<[u8]>,
        owner: Owner,
    ) -> Result<bool> {
        let change = RowChange::put(application, table, key, value).owner(owner);
        Ok(self.write_rows([change])?.first().copied().unwrap_or_default())
    }

    /// Removes a row. Returns `true` if there was one. What [`Session::remove_side_blob`] says of bytes holds for its
    /// value.
    ///
    /// # Errors
    /// As [`Session::write_rows`].
    pub fn remove_row(
        &self,
        application: &str,
        table: u8,
        key: impl Into<ApplicationKey>,
    ) -> Result<bool> {
        let change = RowChange::remove(application, table, key);
        Ok(self.write_rows([change])?.first().copied().unwrap_or_default())
    }

    /// Makes all of these changes, in this order and in one commit, or none of them. Returns for each whether there
    /// was a row under its key.
    ///
    /// ```
    /// use grainstore::{Owner, RowChange};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    ///
    /// let status = RowChange::put("notes", 1, "a record", b"archived").owner(Owner::Grain(tea));
    /// let change = RowChange::put("notes", 2, 77, b"a record");
    /// assert_eq!(session.write_rows([status, change])?, [false, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_LIMIT` beyond [`MAX_ROW_CHANGES`](crate::limits::MAX_ROW_CHANGES) or
    /// [`MAX_ROW_CHANGE_BYTES`](crate::limits::MAX_ROW_CHANGE_BYTES). For a change, whose place is
    /// [`Error::batch_index`](crate::Error::batch_index): `ERR_EMPTY` and `ERR_TOO_LARGE` for a name, a key or a
    /// value; `ERR_NOT_FOUND`, `ERR_ERASED` for an owner that is no stored grain. `ERR_ACCESS` unless the session
    /// is the operator's, without a namespace and a user; `ERR_READ_ONLY`, `ERR_INTEGRITY`, `ERR_IO`.
    pub fn write_rows(&self, changes: impl IntoIterator<Item = RowChange>) -> Result<Vec<bool>> {
        self.check_power(Power::Application)?;
        let (mut checked, mut bytes) = (Vec::new(), 0_usize);
        for (place, change) in changes.into_iter().enumerate() {
            let change = change.checked().map_err(|error| error.with_batch_index(place))?;
            bytes = bytes.saturating_add(change.bytes());
            if place >= MAX_ROW_CHANGES || bytes > MAX_ROW_CHANGE_BYTES {
                let message = format!(
                    "a batch has {MAX_ROW_CHANGES} changes and {MAX_ROW_CHANGE_BYTES} bytes at most"
                );
                return Err(Error::new(ErrorKind::Limit, message).with_hint("divide it"));
            }
            checked.push(change);
        }
        let author = self.principal();
        match checked.is_empty() {
            true => Ok(Vec::new()),
            false => self.store().run_exclusive(move |writer| writer.write_rows(&checked, &author)),
        }
    }

    /// Returns the value of a row, `None` if there is none. If a read of a grain is refused, or noted in the audit
    /// log, so is that of a row that belongs to it.
    ///
    /// # Errors
    /// `ERR_ACCESS`, `ERR_EMPTY` and `ERR_TOO_LARGE` as for [`Session::write_rows`]; the errors of
    /// [`Session::get`] for the grain it belongs to; `ERR_INTEGRITY`, `ERR_IO`.
    pub fn row(
        &self,
        application: &str,
        table: u8,
        key: impl Into<ApplicationKey>,
    ) -> Result<Option<Vec<u8>>> {
        self.check_power(Power::Application)?;
        let key = key.into();
        check_table(application)?;
        key.check()?;
        let view = self.view()?;
        let prefix = TablePrefix::of(view.vault(), application, table);
        let place = place_of(&view, prefix, &key);
        let found = catch_storage_panic(|| {
            view.check_application_rows()?;
            view.application_row(&place)
        })?;
        let Some((owner, row)) = found else { return Ok(None) };
        self.audit_read(self.shown_owner(&view, &owner)?)?;
        Ok(Some(row.value))
    }

    /// Returns a page of the rows of a table, of `limit` at most. It ends before that where the values take more
    /// than [`MAX_ROW_PAGE_BYTES`](crate::limits::MAX_ROW_PAGE_BYTES). Rows of a grain that the session is not
    /// shown are left out.
    ///
    /// ```
    /// use grainstore::{Owner, RowRange};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// # for key in ["red", "green", "blue"] {
    /// #     session.put_row("notes", 1, key, [], Owner::Store)?;
    /// # }
    /// let (mut next, mut found) = (Some(RowRange::BytesAfter(None)), Vec::new());
    /// while let Some(range) = next {
    ///     let page = session.rows("notes", 1, &range, 2)?;
    ///     found.extend(page.rows);
    ///     next = page.next;
    /// }
    /// assert_eq!(found.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_RANGE` for a range whose end is before its start; `ERR_LIMIT` for a page of none, or of more than
    /// [`MAX_ROW_PAGE`](crate::limits::MAX_ROW_PAGE); otherwise as [`Session::row`].
    pub fn rows(
        &self,
        application: &str,
        table: u8,
        range: &RowRange,
        limit: usize,
    ) -> Result<RowPage> {
        self.check_power(Power::Application)?;
        check_table(application)?;
        check_range(range)?;
        if !(1..=MAX_ROW_PAGE).contains(&limit) {
            let message = format!("a page has 1 to {MAX_ROW_PAGE} rows");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let view = self.view()?;
        let prefix = TablePrefix::of(view.vault(), application, table);
        let (found, next) = catch_storage_panic(|| {
            view.check_application_rows()?;
            page_of(&view, prefix, range, limit)
        })?;
        let (mut rows, mut grains) = (Vec::with_capacity(found.len()), BTreeSet::new());
        for (owner, row) in found {
            // Those that a read rule keeps back are left out, as in a query.
            if let Some(shown) = self.owner_if_shown(&view, &owner)? {
                grains.extend(shown);
                rows.push(row);
            }
        }
        self.audit_read(grains)?;
        Ok(RowPage { rows, next })
    }
}

fn check_range(range: &RowRange) -> Result<()> {
    match range {
        RowRange::Numbers(numbers) if numbers.is_empty() => {
            let kind = ErrorKind::Format(grainstore_format::ErrorKind::Range);
            Err(Error::new(kind, "the range ends before it begins"))
        }
        RowRange::BytesAfter(Some(key)) => ApplicationKey::Bytes(key.clone()).check(),
        _ => Ok(()),
    }
}

/// The key of a row as it is in the table.
fn place_of(view: &View, prefix: TablePrefix, key: &ApplicationKey) -> Vec<u8> {
    match key {
        ApplicationKey::Number(number) => prefix.number(*number),
        ApplicationKey::Bytes(bytes) => prefix.bytes(view.vault(), bytes),
    }
}

/// Reads the rows of a page, and the range of the next one.
fn page_of(
    view: &View,
    prefix: TablePrefix,
    range: &RowRange,
    limit: usize,
) -> Result<(Vec<Owned>, Option<RowRange>)> {
    let Some(table) = view.keyed(layout::APPLICATION_ROWS)? else { return Ok((Vec::new(), None)) };
    let (from, begin, to) = match range {
        RowRange::Numbers(numbers) => {
            let [from, to] = [numbers.start(), numbers.end()].map(|at| prefix.number(*at));
            (Bound::Included(from), Vec::new(), Some(to))
        }
        RowRange::BytesAfter(after) => {
            let all = prefix.all_bytes();
            let from = match after {
                Some(key) => Bound::Excluded(prefix.bytes(view.vault(), key)),
                None => Bound::Included(all.clone()),
            };
            (from, all, None)
        }
    };
    let (mut rows, mut bytes) = (Vec::<Owned>::new(), 0_usize);
    let from = from.as_ref().map(Vec::as_slice);
    for row in table.range::<&[u8]>((from, Bound::Unbounded))? {
        let (key, row) = row?;
        let key = key.value();
        if !key.starts_with(&begin) || to.as_deref().is_some_and(|to| key > to) {
            return Ok((rows, None));
        }
        if rows.len() >= limit || bytes >= MAX_ROW_PAGE_BYTES {
            let next = rows.last().map(|(_, last)| next_range(range, &last.key));
            return Ok((rows, next));
        }
        let opened = match view.open_application_row(key, row.value()) {
            // Its key was destroyed since this view was made.
            Err(error) if error.is_erased() => continue,
            opened => opened?,
        };
        bytes = bytes.saturating_add(opened.1.value.len());
        rows.push(opened);
    }
    Ok((rows, None))
}

/// The range behind a key.
fn next_range(range: &RowRange, last: &ApplicationKey) -> RowRange {
    match (range, last) {
        (RowRange::Numbers(numbers), ApplicationKey::Number(last)) => {
            RowRange::Numbers(last.saturating_add(1)..=*numbers.end())
        }
        (_, ApplicationKey::Bytes(last)) => RowRange::BytesAfter(Some(last.clone())),
        (range, _) => range.clone(),
    }
}
