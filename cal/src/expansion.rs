//! What is linked to the best answers of a recall: by which links, how far, how much of it (OMS 14, 28.6).
//!
//! Which grains a link leads to is the memory's business.

use serde::Serialize;

/// Which way links are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From subject to object; from a grain to those it names.
    Out,
    /// From object to subject; from a grain to those that name it.
    In,
    /// Both ways.
    #[default]
    Both,
}

impl Direction {
    /// Whether links are followed from where they start.
    #[must_use]
    pub fn goes_out(self) -> bool {
        self != Self::In
    }

    /// Whether links are followed from where they end.
    #[must_use]
    pub fn goes_in(self) -> bool {
        self != Self::Out
    }

    /// The same links, followed from their other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
            Self::Both => Self::Both,
        }
    }
}

/// How one grain is linked to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The object of the one, a text, is the subject of the other.
    Triple,
    /// Both have the same subject. This has no direction.
    Subject,
    /// The one names the other in `derived_from` (OMS 14.1).
    DerivedFrom,
    /// The one names the other in `related_to`, whatever the relation type (OMS 14.2).
    RelatedTo,
    /// The one names the other as its `parent_message_id` (OMS 28.6).
    Reply,
}

impl Link {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Triple, Self::Subject, Self::DerivedFrom, Self::RelatedTo, Self::Reply];

    /// Its name: `triple`, `subject`, `derived_from`, `related_to`, `reply`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Triple => "triple",
            Self::Subject => "subject",
            Self::DerivedFrom => "derived_from",
            Self::RelatedTo => "related_to",
            Self::Reply => "reply",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|link| link.name() == name)
    }
}

/// A set of kinds of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Links(u8);

impl Links {
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether this kind is among them.
    #[must_use]
    pub fn contains(self, link: Link) -> bool {
        self.0 & 1 << link as u8 != 0
    }

    /// Those that are among them, in the order of [`Link::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Link> {
        Link::ALL.into_iter().filter(move |link| self.contains(*link))
    }
}

impl Default for Links {
    /// All but [`Link::Subject`]: about one person there is much that has little to do with each other.
    fn default() -> Self {
        Link::ALL.into_iter().filter(|link| *link != Link::Subject).collect()
    }
}

impl FromIterator<Link> for Links {
    fn from_iter<T: IntoIterator<Item = Link>>(links: T) -> Self {
        Self(links.into_iter().fold(0, |all, link| all | 1 << link as u8))
    }
}

/// What is linked to the best answers is an answer too.
///
/// An answer with the score `s` gives a grain that is `d` links away, by the shortest way, `decay`^`d`
/// of what that grain's own score `o` is short of it: `o + decay^d (s - o)`, and the best of these
/// offers counts. A grain that answers nothing has 0 of its own. So no grain gets a higher score than
/// the answer that led to it, and no score goes down.
///
/// What lies on the way meets what an answer does but for conditions on types, times and fields: it is
/// in the namespaces, of the user and in a state the query asks for, at the time it asks about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expansion {
    /// Links from an answer to what it leads to at most: 1 to [`Expansion::MAX_HOPS`].
    pub hops: usize,
    /// Answers that are followed, the best ones: 1 to [`Expansion::MAX_SEEDS`]. Where nothing is
    /// searched for, the first ones in the order of the query.
    pub seeds: usize,
    /// The links that are followed; not none.
    pub links: Links,
    /// Which way they are followed.
    pub direction: Direction,
    /// Grains that one grain leads to by one kind of link and direction, the newest ones, or the first
    /// it names: 1 to [`Expansion::MAX_FAN_OUT`].
    pub fan_out: usize,
    /// Grains that are reached in all: 1 to [`Expansion::MAX_REACHED`].
    pub reached: usize,
    /// What is left of a score behind each link: more than 0, less than 1.
    pub decay: f64,
    /// Whether conditions on types, times, fields and addresses are for the answers that are followed
    /// and not for what they lead to. Else nothing is shown that does not meet them.
    pub freely: bool,
}

impl Expansion {
    /// Links on a way at most.
    pub const MAX_HOPS: usize = 3;
    /// Answers followed at most.
    pub const MAX_SEEDS: usize = 64;
    /// Grains one grain leads to at most, by one kind of link and direction.
    pub const MAX_FAN_OUT: usize = 256;
    /// Grains reached at most.
    pub const MAX_REACHED: usize = 4_096;
}

impl Default for Expansion {
    /// One link from the best 16, both ways, to at most 32 grains each and 512 in all, for a quarter of what
    /// they are short of; what is linked meets the conditions.
    fn default() -> Self {
        Self {
            hops: 1,
            seeds: 16,
            links: Links::default(),
            direction: Direction::Both,
            fan_out: 32,
            reached: 512,
            decay: 0.25,
            freely: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_links_has_what_was_put_in() {
        for link in Link::ALL {
            let set = Links::from_iter([link]);
            assert_eq!(set.iter().collect::<Vec<_>>(), [link]);
            assert_eq!(Link::named(link.name()), Some(link));
            assert!(!Links::NONE.contains(link));
            assert_eq!(Links::default().contains(link), link != Link::Subject);
        }
        assert_eq!(Link::named("SUBJECT"), None);
    }
}
