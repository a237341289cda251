//! The `mg:` relation vocabulary (OMS 8, CAL 7.1) and its categories (CAL 7.2).

use crate::words::Keyword;

/// A named group of `mg:` relations, for `relation IS category`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RelationCategory {
    pub(crate) keyword: Keyword,
    pub(crate) relations: &'static [&'static str],
}

/// The seven categories.
pub(crate) static CATEGORIES: [RelationCategory; 7] = [
    RelationCategory {
        keyword: Keyword::Preference,
        relations: &["mg:prefers", "mg:avoids", "mg:requires"],
    },
    RelationCategory { keyword: Keyword::Knowledge, relations: &["mg:knows", "mg:infers"] },
    RelationCategory {
        keyword: Keyword::Permission,
        relations: &["mg:permits", "mg:revokes", "mg:prohibits"],
    },
    RelationCategory {
        keyword: Keyword::Interaction,
        relations: &["mg:said", "mg:did", "mg:handed_off_to"],
    },
    RelationCategory {
        keyword: Keyword::Agency,
        relations: &["mg:delegates_to", "mg:has_capability", "mg:assigned_to"],
    },
    RelationCategory { keyword: Keyword::Lifecycle, relations: &["mg:intends", "mg:depends_on"] },
    RelationCategory { keyword: Keyword::Observation, relations: &["mg:perceives", "mg:state_at"] },
];

/// Relations of the vocabulary that are in no category.
const UNCATEGORISED: [&str; 3] = ["mg:agrees_with", "mg:requires_steps", "mg:owned_by"];

/// Returns every relation of the vocabulary.
pub(crate) fn vocabulary() -> impl Iterator<Item = &'static str> {
    let categorised = CATEGORIES.iter().flat_map(|category| category.relations);
    categorised.chain(&UNCATEGORISED).copied()
}

/// Returns `true` if `relation` is in the reserved `mg:` space but not in the vocabulary.
pub(crate) fn is_unknown_mg(relation: &str) -> bool {
    relation.starts_with("mg:")
        && !UNCATEGORISED.contains(&relation)
        && !CATEGORIES.iter().any(|category| category.relations.contains(&relation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strangers_in_the_reserved_space_are_unknown() {
        for (relation, unknown) in
            [("mg:prefers", false), ("mg:owned_by", false), ("mg:likes", true), ("likes", false)]
        {
            assert_eq!(is_unknown_mg(relation), unknown, "{relation}");
        }
    }
}
