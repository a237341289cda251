//! The lists of a run: the posting lists, the sample of them, the terms and the addresses.

use crate::keys::SAMPLE_ROW_BYTES;
use crate::posting_lists::{NAMESPACE_BYTES, POSTING_LISTS, PostingList};

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RowForm {
    /// So many bytes, all of them: rows that share little, and are looked up one by one.
    Fixed(usize),
    /// So many bytes, without those that are as in the row before.
    FixedPrefixed(usize),
    /// A key of any length, without the bytes that are as in the row before, and a value.
    #[default]
    KeyValue,
}

/// Bytes of a row of addresses.
pub(crate) const ADDRESS_ROW_BYTES: usize = 36;

/// The number of a list in a run; a posting list has the number of its place in [`POSTING_LISTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunList(u8);

impl RunList {
    /// `level:1 list:1 row:32`, shorter rows padded with zeros, see [`sample`](crate::sample).
    pub(crate) const SAMPLE: Self = Self(PostingList::Value as u8 + 1);
    /// Term key -> term row; a relation's id key -> its term key.
    pub(crate) const TERMS: Self = Self(Self::SAMPLE.0 + 1);
    /// `address:32 sequence:4`.
    pub(crate) const ADDRESSES: Self = Self(Self::TERMS.0 + 1);
    /// The number of lists.
    pub(crate) const COUNT: usize = Self::ADDRESSES.0 as usize + 1;

    /// All lists, in the order they stand in a run.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=Self::ADDRESSES.0).map(Self)
    }

    /// A posting list by its number.
    pub(crate) const fn of_posting(list: u8) -> Self {
        Self(list)
    }

    /// The number.
    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    /// The number, as an index.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The name of the list in figures and reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SAMPLE => "index.sample",
            Self::TERMS => "index.terms",
            Self::ADDRESSES => "index.address",
            Self(list) => POSTING_LISTS.get(usize::from(list)).map_or("", |def| def.table),
        }
    }

    /// The form of its rows.
    pub(crate) fn form(self) -> RowForm {
        match self {
            Self::SAMPLE => RowForm::FixedPrefixed(SAMPLE_ROW_BYTES),
            Self::TERMS => RowForm::KeyValue,
            Self::ADDRESSES => RowForm::Fixed(ADDRESS_ROW_BYTES),
            Self(list) => {
                let def = POSTING_LISTS.get(usize::from(list));
                def.map_or(RowForm::KeyValue, |def| RowForm::FixedPrefixed(def.width))
            }
        }
    }

    /// The bytes of a row, which has no value then; `None` if rows are keys of any length with values.
    pub(crate) fn width(self) -> Option<usize> {
        match self.form() {
            RowForm::Fixed(width) | RowForm::FixedPrefixed(width) => Some(width),
            RowForm::KeyValue => None,
        }
    }

    /// Where the namespace of a row stands that also stands under the namespace 0, for readers of the whole
    /// store; `None` for other rows.
    pub(crate) fn global_namespace_at(self, row: &[u8]) -> Option<usize> {
        const SAMPLE_HEAD_BYTES: usize = 2;
        let (list, at) = match self {
            Self::SAMPLE => (*row.get(1)?, SAMPLE_HEAD_BYTES),
            Self(list) => (list, 0),
        };
        let def = POSTING_LISTS.get(usize::from(list))?;
        def.has_global_rows.then_some(at)
    }

    /// Returns `true` for a row under the namespace 0.
    pub(crate) fn is_global(self, row: &[u8]) -> bool {
        self.global_namespace_at(row).is_some_and(|at| {
            row.get(at..).and_then(<[u8]>::first_chunk) == Some(&[0; NAMESPACE_BYTES])
        })
    }
}

impl From<PostingList> for RunList {
    fn from(list: PostingList) -> Self {
        Self(list as u8)
    }
}
