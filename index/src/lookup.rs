//! The conditions of an index lookup: namespaces, and a value its grains share. Plain data.

use grainstore_format::GrainType;

use crate::field::{Digest, Field};
use crate::posting_lists::PostingList;
use crate::term::TermValue;

/// The namespaces a lookup of an [`IndexReader`](crate::IndexReader) covers. The empty name is the partition
/// of grains without a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope<'a> {
    /// All namespaces.
    All,
    /// This namespace only.
    Exact(TermValue<'a>),
    /// This namespace and those below it: `a` covers `a`, `a:b` and `a:b:c`, but not `ab`. Blinded namespaces
    /// are not found this way.
    Subtree(&'a str),
}

/// The object of a triple. A map never equals a text.
///
/// ```
/// use grainstore_format::{Map, Value};
/// use grainstore_index::{Object, TermValue, object_hash};
///
/// let text = Object::Text(TermValue::Plain("tea"));
/// let map = Object::Map(object_hash(&Value::Map(Map::new())));
/// assert_ne!(text.digest(), map.digest());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object<'a> {
    /// Text.
    Text(TermValue<'a>),
    /// A map, by the SHA-256 of its canonical MessagePack, independent of the grain's own encoding.
    Map([u8; 32]),
}

impl Object<'_> {
    /// The digest it is indexed under.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Text(word) => Digest::of_text(*word),
            Self::Map(hash) => Digest::of_map(hash),
        }
    }
}

/// The condition of an index lookup.
///
/// ```
/// use grainstore_index::{Field, IndexLookup, TermValue};
///
/// let likes = IndexLookup::subject_relation("alice".into(), "mg:prefers".into());
/// assert_eq!(likes.bound_fields(), ["subject", "relation"]);
/// let tagged = IndexLookup::Value(Field::Tag, TermValue::Plain("travel"));
/// assert_eq!(tagged.bound_fields(), ["structural_tags"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexLookup<'a> {
    /// No condition: every grain.
    All,
    /// A grain type, by header byte.
    Type(GrainType),
    /// The bound parts of a triple. With no part bound, every grain.
    Triple {
        /// The subject, if it is bound.
        subject: Option<TermValue<'a>>,
        /// The relation, if it is bound.
        relation: Option<TermValue<'a>>,
        /// The object, if it is bound.
        object: Option<Object<'a>>,
    },
    /// A value of a field.
    Value(Field<'a>, TermValue<'a>),
}

impl<'a> IndexLookup<'a> {
    /// The grains about a subject.
    #[must_use]
    pub const fn subject(subject: TermValue<'a>) -> Self {
        Self::Triple { subject: Some(subject), relation: None, object: None }
    }

    /// The grains about a subject in a relation.
    #[must_use]
    pub const fn subject_relation(subject: TermValue<'a>, relation: TermValue<'a>) -> Self {
        Self::Triple { subject: Some(subject), relation: Some(relation), object: None }
    }

    /// The name of the index that answers it: a permutation of the hexastore, `time`, `type`, or the field.
    #[must_use]
    pub fn index_name(&self) -> &str {
        match self {
            Self::Value(field, _) => field.name(),
            _ => self.posting_list().def().name,
        }
    }

    /// The payload names of the fields it binds.
    #[must_use]
    pub fn bound_fields(&self) -> Vec<&str> {
        match self {
            Self::All => Vec::new(),
            Self::Type(_) => vec!["type"],
            Self::Triple { subject, relation, object } => {
                let subject = subject.map(|_| "subject");
                let relation = relation.map(|_| "relation");
                let object = object.map(|_| "object");
                [subject, relation, object].into_iter().flatten().collect()
            }
            Self::Value(field, _) => vec![field.name()],
        }
    }

    /// The posting list that answers it.
    pub(crate) fn posting_list(&self) -> PostingList {
        match self {
            Self::All => PostingList::All,
            Self::Type(_) => PostingList::Type,
            Self::Value(..) => PostingList::Value,
            Self::Triple { subject, relation, object } => {
                match (subject.is_some(), relation.is_some(), object.is_some()) {
                    (false, false, false) => PostingList::All,
                    (true, false, false) => PostingList::Subject,
                    (false, true, false) => PostingList::Relation,
                    (false, false, true) => PostingList::Object,
                    (true, true, false) => PostingList::SubjectRelation,
                    (true, false, true) => PostingList::SubjectObject,
                    (false, true, true) => PostingList::RelationObject,
                    (true, true, true) => PostingList::Triple,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_names_its_index_and_what_it_binds() {
        let (subject, relation) = (Some(TermValue::Plain("s")), Some(TermValue::Plain("r")));
        let object = Some(Object::Map([0; 32]));
        let triple = |subject, relation, object| IndexLookup::Triple { subject, relation, object };
        for (shape, name, fields) in [
            (IndexLookup::All, "time", vec![]),
            (IndexLookup::Type(GrainType::Goal), "type", vec!["type"]),
            (triple(None, None, None), "time", vec![]),
            (triple(subject, None, None), "SPO", vec!["subject"]),
            (triple(None, relation, None), "PSO", vec!["relation"]),
            (triple(None, None, object), "OPS", vec!["object"]),
            (triple(subject, relation, None), "SPO", vec!["subject", "relation"]),
            (triple(subject, None, object), "SOP", vec!["subject", "object"]),
            (triple(None, relation, object), "POS", vec!["relation", "object"]),
            (triple(subject, relation, object), "SPO", vec!["subject", "relation", "object"]),
            (
                IndexLookup::Value(Field::Tag, "t".into()),
                "structural_tags",
                vec!["structural_tags"],
            ),
            (IndexLookup::Value(Field::Domain("hc:x"), "t".into()), "hc:x", vec!["hc:x"]),
        ] {
            assert_eq!((shape.index_name(), shape.bound_fields()), (name, fields), "{shape:?}");
        }
    }
}
