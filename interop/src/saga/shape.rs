//! Shapes of JSON values, as data, and the check of a value against one.
//!
//! Knows JSON and no field of SAGA: those are in `schema`.

use grainstore::format::parse_datetime;
use serde_json::{Map, Value};

use super::finding::{Finding, Findings, Level};

/// What a value must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Any,
    Flag,
    Text,
    /// Text of so many characters at most.
    ShortText(usize),
    /// Text of a form, told by its name.
    Form(&'static str, fn(&str) -> bool),
    /// Text that is exactly this.
    Exactly(&'static str),
    /// One of these words. The formats grow such lists, so that another word is kept.
    Word(&'static [&'static str]),
    /// One of these words and no other.
    Closed(&'static [&'static str]),
    /// An RFC 3339 time.
    Time,
    /// An absolute URI.
    Uri,
    /// An integer, and the least it may be.
    Integer(Option<i64>),
    /// A number between these, both included.
    Number(f64, f64),
    /// Such a value, or null.
    OrNull(&'static Shape),
    List(&'static Shape),
    /// A list of so many at most.
    ShortList(&'static Shape, usize),
    /// An object of any names, whose values are such.
    MapOf(&'static Shape),
    Object(&'static [Member]),
    /// An object without other members.
    ClosedObject(&'static [Member]),
}

/// A member of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    pub(super) shape: Shape,
}

/// A member that must be there.
pub(super) const fn must(name: &'static str, shape: Shape) -> Member {
    Member { name, is_required: true, shape }
}

/// A member that may be there.
pub(super) const fn may(name: &'static str, shape: Shape) -> Member {
    Member { name, is_required: false, shape }
}

/// Tells of all that differs from a shape.
pub(super) fn check(value: &Value, shape: Shape, path: &str, found: &mut Findings) {
    let error = |message: String| Finding::new(Level::Error, path, message);
    let unlike = |message: String| Finding::new(Level::Schema, path, message);
    match shape {
        Shape::Any => {}
        Shape::OrNull(inner) => {
            if !value.is_null() {
                check(value, *inner, path, found);
            }
        }
        Shape::Flag => found.unless(value.is_boolean(), || error("it is true or false".into())),
        Shape::Integer(least) => {
            found.unless(is_integer(value, least), || {
                let from = least.map_or_else(String::new, |least| format!(" from {least}"));
                error(format!("it is an integer{from}"))
            });
        }
        Shape::Number(from, to) => {
            let fits = value.as_f64().is_some_and(|number| (from..=to).contains(&number));
            found.unless(fits, || error(format!("it is a number from {from} to {to}")));
        }
        Shape::List(inner) => check_list(value, *inner, usize::MAX, path, found),
        Shape::ShortList(inner, most) => check_list(value, *inner, most, path, found),
        Shape::MapOf(inner) => match value.as_object() {
            None => found.add(error("it is an object".into())),
            Some(members) => {
                for (name, value) in members {
                    check(value, *inner, &member_path(path, name), found);
                }
            }
        },
        Shape::Object(members) => check_object(value, members, false, path, found),
        Shape::ClosedObject(members) => check_object(value, members, true, path, found),
        text => match value.as_str() {
            None => found.add(error("it is text".into())),
            Some(value) => found.extend(check_text(value, text).map(|(level, message)| {
                if level == Level::Error { error(message) } else { unlike(message) }
            })),
        },
    }
}

/// The path of a member: `memory.episodic`.
pub(super) fn member_path(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The path of an item: `skills.verified[2]`.
pub(super) fn item_path(path: &str, at: usize) -> String {
    format!("{path}[{at}]")
}

/// What is wrong with a text, if anything is.
fn check_text(value: &str, shape: Shape) -> Option<(Level, String)> {
    match shape {
        Shape::ShortText(most) if value.chars().count() > most => {
            Some((Level::Schema, format!("it has {most} characters at most")))
        }
        Shape::Form(name, fits) if !fits(value) => Some((Level::Error, format!("it is {name}"))),
        Shape::Exactly(text) if value != text => Some((Level::Error, format!("it is {text:?}"))),
        Shape::Word(words) if !words.contains(&value) => {
            Some((Level::Schema, format!("it is one of {}", words.join(", "))))
        }
        Shape::Closed(words) if !words.contains(&value) => {
            Some((Level::Error, format!("it is one of {}", words.join(", "))))
        }
        Shape::Time if parse_datetime(value).is_err() => {
            Some((Level::Schema, "it is a time such as 2026-03-20T10:00:00Z".to_owned()))
        }
        Shape::Uri if !is_uri(value) => {
            Some((Level::Schema, "it is a URI such as https://example.org/a".to_owned()))
        }
        _ => None,
    }
}

fn check_list(value: &Value, inner: Shape, most: usize, path: &str, found: &mut Findings) {
    let Some(items) = value.as_array() else {
        return found.add(Finding::new(Level::Error, path, "it is a list"));
    };
    found.unless(items.len() <= most, || {
        Finding::new(Level::Schema, path, format!("it has {most} items at most"))
    });
    for (at, item) in items.iter().enumerate() {
        check(item, inner, &item_path(path, at), found);
    }
}

fn check_object(
    value: &Value,
    members: &[Member],
    is_closed: bool,
    path: &str,
    found: &mut Findings,
) {
    let Some(object) = value.as_object() else {
        return found.add(Finding::new(Level::Error, path, "it is an object"));
    };
    for member in members {
        let at = member_path(path, member.name);
        match object.get(member.name) {
            Some(value) => check(value, member.shape, &at, found),
            None => found
                .unless(!member.is_required, || Finding::new(Level::Error, &at, "it is missing")),
        }
    }
    if is_closed {
        unknown_members(object, members, path, found);
    }
}

/// Tells of the members that a closed object does not have.
fn unknown_members(
    object: &Map<String, Value>,
    members: &[Member],
    path: &str,
    found: &mut Findings,
) {
    for name in object.keys().filter(|name| members.iter().all(|member| member.name != *name)) {
        let at = member_path(path, name);
        found.add(Finding::new(Level::Schema, &at, "the schema has no such member here"));
    }
}

fn is_integer(value: &Value, least: Option<i64>) -> bool {
    let Some(number) = value.as_f64() else { return false };
    let is_whole = value.is_i64() || value.is_u64() || number.fract() == 0.0;
    let reaches = match (least, value.as_i64()) {
        (Some(least), Some(value)) => value >= least,
        // Beyond 64 bits only its sign matters.
        (Some(_), None) => number > 0.0,
        (None, _) => true,
    };
    is_whole && reaches
}

/// Returns `true` for a scheme, a colon, and something without spaces.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        && !rest.is_empty()
        && !rest.contains(|char: char| char.is_whitespace() || char.is_control())
}
