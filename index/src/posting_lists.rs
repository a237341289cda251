//! The posting lists as data: their tables, their names and the widths of their rows.
//!
//! The seven lists of triples are the hexastore: for every combination of bound subject, relation and object
//! the postings are one range of one list, newest first. Rows are ordered by time after the bound parts, so
//! each combination needs a list of its own (ADR 0004).

/// A posting list. The discriminant is its index in [`POSTING_LISTS`] and the first byte of its keys in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PostingList {
    All,
    Type,
    Subject,
    Relation,
    Object,
    SubjectRelation,
    SubjectObject,
    RelationObject,
    Triple,
    Value,
}

/// The fixed properties of a posting list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PostingListDef {
    /// The name of the list in figures and reports.
    pub(crate) table: &'static str,
    /// The name of the index in explanations.
    pub(crate) name: &'static str,
    /// True if each row is stored a second time under the namespace 0, so that a reader of the whole store
    /// has one range instead of one for each namespace.
    pub(crate) has_global_rows: bool,
    /// The bytes of a row.
    pub(crate) width: usize,
}

/// Bytes of a namespace id, a term id and a order key in every row.
pub(crate) const NAMESPACE_BYTES: usize = 4;
pub(crate) const TERM_BYTES: usize = 5;
pub(crate) const ORDER_KEY_BYTES: usize = 14;

const fn list(
    width: usize,
    table: &'static str,
    name: &'static str,
    everywhere: bool,
) -> PostingListDef {
    PostingListDef { table, name, has_global_rows: everywhere, width }
}

/// All lists, in the order of [`PostingList`].
#[rustfmt::skip]
pub(crate) static POSTING_LISTS: [PostingListDef; PostingList::COUNT] = [
    list(18, "index.all", "time", true),
    list(19, "index.type", "type", false),
    list(23, "index.s", "SPO", true),
    list(23, "index.p", "PSO", false),
    list(26, "index.o", "OPS", false),
    list(28, "index.sp", "SPO", true),
    list(27, "index.so", "SOP", false),
    list(27, "index.po", "POS", false),
    list(32, "index.spo", "SPO", false),
    list(27, "index.value", "value", false),
];

impl PostingList {
    /// The number of lists.
    pub(crate) const COUNT: usize = 10;

    /// The properties of the list.
    pub(crate) fn def(self) -> &'static PostingListDef {
        match self {
            Self::All => &POSTING_LISTS[0],
            Self::Type => &POSTING_LISTS[1],
            Self::Subject => &POSTING_LISTS[2],
            Self::Relation => &POSTING_LISTS[3],
            Self::Object => &POSTING_LISTS[4],
            Self::SubjectRelation => &POSTING_LISTS[5],
            Self::SubjectObject => &POSTING_LISTS[6],
            Self::RelationObject => &POSTING_LISTS[7],
            Self::Triple => &POSTING_LISTS[8],
            Self::Value => &POSTING_LISTS[9],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_stand_at_their_numbers() {
        let last = PostingList::Value;
        assert_eq!((last as usize + 1, last.def().name), (PostingList::COUNT, "value"));
        assert_eq!(PostingList::SubjectRelation.def().table, "index.sp");
    }
}
