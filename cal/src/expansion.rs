//! Expansion of a recall along links: which links are followed, how far and how many (OMS 14, 28.6).
//!
//! The memory resolves links to grains.

use serde::{Deserialize, Serialize};

/// The direction in which an [`Expansion`] follows links.
///
/// ```
/// use grainstore_cal::Direction;
///
/// assert!(Direction::Both.goes_out() && Direction::Both.goes_in());
/// assert_eq!(Direction::Out.reversed(), Direction::In);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Outgoing: from subject to object; from a grain to those it names.
    Out,
    /// Incoming: from object to subject; from a grain to those that name it.
    In,
    /// Both directions.
    #[default]
    Both,
}

impl Direction {
    /// Returns `true` if outgoing links are followed.
    #[must_use]
    pub fn goes_out(self) -> bool {
        self != Self::In
    }

    /// Returns `true` if incoming links are followed.
    #[must_use]
    pub fn goes_in(self) -> bool {
        self != Self::Out
    }

    /// Returns the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
            Self::Both => Self::Both,
        }
    }
}

/// A kind of link between two grains; [`Links`] is a set of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The object of the first, a text, is the subject of the second.
    Triple,
    /// Both have the same subject. This link has no direction.
    Subject,
    /// The first names the second in `derived_from` (OMS 14.1).
    DerivedFrom,
    /// The first names the second in `related_to`, with any relation type (OMS 14.2).
    RelatedTo,
    /// The first names the second as its `parent_message_id` (OMS 28.6).
    Reply,
}

impl Link {
    /// All kinds of links.
    pub const ALL: [Self; 5] =
        [Self::Triple, Self::Subject, Self::DerivedFrom, Self::RelatedTo, Self::Reply];

    /// Returns the name: `triple`, `subject`, `derived_from`, `related_to`, `reply`.
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

    /// Returns the kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|link| link.name() == name)
    }
}

/// A set of kinds of links.
///
/// ```
/// use grainstore_cal::{Link, Links};
///
/// assert!(Links::default().contains(Link::Reply) && !Links::default().contains(Link::Subject));
/// let replies: Links = [Link::Reply].into_iter().collect();
/// assert_eq!(replies.iter().map(Link::name).collect::<Vec<_>>(), ["reply"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Links(u8);

impl Links {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns `true` if the kind is in the set.
    #[must_use]
    pub fn contains(self, link: Link) -> bool {
        self.0 & 1 << link as u8 != 0
    }

    /// Returns the kinds in the set, in the order of [`Link::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Link> {
        Link::ALL.into_iter().filter(move |link| self.contains(*link))
    }
}

impl Default for Links {
    /// All kinds but [`Link::Subject`], because grains about one person often have little else in common.
    fn default() -> Self {
        Link::ALL.into_iter().filter(|link| *link != Link::Subject).collect()
    }
}

impl FromIterator<Link> for Links {
    fn from_iter<T: IntoIterator<Item = Link>>(links: T) -> Self {
        Self(links.into_iter().fold(0, |all, link| all | 1 << link as u8))
    }
}

/// Options for adding grains linked to the best answers of a recall.
///
/// An answer with score `s` raises the score `o` of a grain `d` links away, by the shortest path, to
/// `o + decay^d (s - o)`; the best of these values counts. A grain that is not an answer has `o` = 0. So no
/// grain scores higher than the answer that led to it, and no score decreases.
///
/// Grains on the path must be in the namespaces, of the user and in a state the query admits, at the time
/// it asks about; its conditions on types, times and fields do not apply to them.
///
/// ```
/// use grainstore_cal::{Direction, Expansion, Link, Links, Query};
///
/// let links: Links = [Link::DerivedFrom, Link::RelatedTo].into_iter().collect();
/// let expansion = Expansion { links, direction: Direction::Out, ..Expansion::default() };
/// let query = Query::default().searching("budget").expanding(expansion);
/// assert_eq!(query.expansion().map(|expansion| expansion.hops), Some(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expansion {
    /// Maximum links from an answer to an added grain: 1 to [`Expansion::MAX_HOPS`].
    pub hops: usize,
    /// Number of best answers whose links are followed: 1 to [`Expansion::MAX_SEEDS`]. Without a search,
    /// the first ones in the order of the query.
    pub seeds: usize,
    /// The kinds of links followed; not empty.
    pub links: Links,
    /// The direction in which they are followed.
    pub direction: Direction,
    /// Maximum grains reached from one grain by one kind of link in one direction, the newest ones, or the
    /// first it names: 1 to [`Expansion::MAX_FAN_OUT`].
    pub fan_out: usize,
    /// Maximum grains reached in all: 1 to [`Expansion::MAX_REACHED`].
    pub reached: usize,
    /// Factor applied to a score for each link: more than 0, less than 1.
    pub decay: f64,
    /// True if conditions on types, times, fields and addresses apply to the seeds only and not to the
    /// grains reached from them; otherwise grains that do not meet them are not shown.
    pub freely: bool,
}

impl Expansion {
    /// The largest `hops`.
    pub const MAX_HOPS: usize = 3;
    /// The largest `seeds`.
    pub const MAX_SEEDS: usize = 64;
    /// The largest `fan_out`.
    pub const MAX_FAN_OUT: usize = 256;
    /// The largest `reached`.
    pub const MAX_REACHED: usize = 4_096;
}

impl Default for Expansion {
    /// One link from the best 16 answers, in both directions, to at most 32 grains each and 512 in all,
    /// with a decay of a quarter; linked grains must meet the conditions.
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
