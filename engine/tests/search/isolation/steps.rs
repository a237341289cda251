//! What is done to a random store.

use proptest::prelude::*;

use crate::isolation::kit::NOW;

/// Namespaces of grains; those of sessions have one more, that of all.
pub(crate) const SPACES: [Option<&str>; 5] =
    [None, Some("a"), Some("a:b"), Some("ab"), Some("agent:identity")];
pub(crate) const USERS: [Option<&str>; 4] = [None, Some("ann"), Some("bob"), Some("")];
/// The agent whose skills some grains tell of.
pub(crate) const AGENT: &str = "did:web:agent";
/// What every grain that is searched has.
pub(crate) const COMMON: &str = "common";
/// When windows end and begin: between what the clock says while grains are written, and later.
pub(crate) const LATER: i64 = NOW + 5_000;

/// What is done to a store.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A grain of a kind, in a namespace, for a user; on a consent, and with a link to an earlier grain.
    Put {
        kind: u8,
        place: (usize, usize),
        on: Option<usize>,
        link: Option<usize>,
    },
    /// A grant that holds always, until soon, from later on, or not any more.
    Grant {
        place: (usize, usize),
        window: u8,
    },
    /// A withdrawal of a consent, or a grant in the place of its last version.
    Withdraw {
        place: (usize, usize),
        which: usize,
    },
    Renew {
        place: (usize, usize),
        which: usize,
        window: u8,
    },
    /// A belief in the place of another.
    Supersede {
        place: (usize, usize),
        which: usize,
    },
    Contradict {
        which: usize,
    },
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..SPACES.len(), 0..USERS.len());
    let any = || any::<prop::sample::Index>().prop_map(|index| index.index(64));
    let step = prop_oneof![
        6 => (0..5_u8, place(), prop::option::of(any()), prop::option::of(any()))
            .prop_map(|(kind, place, on, link)| Step::Put { kind, place, on, link }),
        2 => (place(), 0..4_u8).prop_map(|(place, window)| Step::Grant { place, window }),
        1 => (place(), any()).prop_map(|(place, which)| Step::Withdraw { place, which }),
        1 => (place(), any(), 0..4_u8)
            .prop_map(|(place, which, window)| Step::Renew { place, which, window }),
        1 => (place(), any()).prop_map(|(place, which)| Step::Supersede { place, which }),
        1 => any().prop_map(|which| Step::Contradict { which }),
    ];
    prop::collection::vec(step, 8..24)
}

/// From and to when a grant holds.
pub(crate) fn window(which: u8) -> (Option<i64>, Option<i64>) {
    match which {
        0 => (None, None),
        1 => (None, Some(NOW + 1_000)),
        2 => (Some(LATER), None),
        _ => (None, Some(NOW - 1)),
    }
}

/// A word of letters alone that is the beginning of no other.
pub(crate) fn secret(number: usize) -> String {
    let letter = |digit: usize| char::from(b'b' + u8::try_from(digit).unwrap());
    format!("zq{}{}x", letter(number / 20), letter(number % 20))
}
