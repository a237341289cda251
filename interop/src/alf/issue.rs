//! What is wrong with an archive, or not known of it, with the place of each: a bounded list, and counts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most issues that a report lists of each kind; further ones are counted.
pub const MAX_ISSUES: usize = 1_000;

/// Something that is wrong with an archive, or not known: in the reports of [`validate`](super::validate) and
/// [`import`](super::import).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Issue {
    /// The entry of the archive, the line of it, and the member: `identity.json/structured/role`.
    pub path: String,
    /// What is the matter, for people.
    pub message: String,
}

/// How much an issue matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// A reader cannot take it.
    Error,
    /// It is against the standard, and a reader takes it all the same.
    Tolerable,
    Warning,
    /// It is from a newer version, or somebody's own.
    Notice,
}

/// Issues of a whole archive, or of one line of it.
#[derive(Debug, Default)]
pub(super) struct Issues {
    pub(super) errors: List,
    pub(super) warnings: List,
    /// How many of the errors a reader cannot take.
    pub(super) fatal: u64,
}

/// A list of bounded length.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) listed: Vec<Issue>,
    pub(super) count: u64,
}

impl List {
    pub(super) fn add(&mut self, issue: Issue) {
        self.count = self.count.saturating_add(1);
        if self.listed.len() < MAX_ISSUES {
            self.listed.push(issue);
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        let unlisted = other.count.saturating_sub(other.listed.len() as u64);
        other.listed.into_iter().for_each(|issue| self.add(issue));
        self.count = self.count.saturating_add(unlisted);
    }
}

impl Issues {
    pub(super) fn add(&mut self, severity: Severity, at: &Place<'_>, message: impl Into<String>) {
        let list = match severity {
            Severity::Error | Severity::Tolerable => &mut self.errors,
            Severity::Warning | Severity::Notice => &mut self.warnings,
        };
        if severity == Severity::Error {
            self.fatal = self.fatal.saturating_add(1);
        }
        // Text is made only of what is listed.
        match list.listed.len() < MAX_ISSUES {
            true => list.add(Issue { path: at.to_string(), message: message.into() }),
            false => list.count = list.count.saturating_add(1),
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.fatal = self.fatal.saturating_add(other.fatal);
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
    }
}

/// A place in an archive: an entry, a line, a member of a member. Its text is made when it is needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'p> {
    above: Option<&'p Place<'p>>,
    part: Part<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Part<'p> {
    Entry(&'p str),
    Line(u64),
    Member(&'p str),
    Item(usize),
}

impl<'p> Place<'p> {
    pub(super) fn entry(name: &'p str) -> Self {
        Self { above: None, part: Part::Entry(name) }
    }

    pub(super) fn line(&'p self, number: u64) -> Self {
        Self { above: Some(self), part: Part::Line(number) }
    }

    /// The number of the line, 0 if it is no line.
    pub(super) fn number(&self) -> u64 {
        match self.part {
            Part::Line(number) => number,
            _ => 0,
        }
    }

    pub(super) fn member(&'p self, name: &'p str) -> Self {
        Self { above: Some(self), part: Part::Member(name) }
    }

    pub(super) fn item(&'p self, number: usize) -> Self {
        Self { above: Some(self), part: Part::Item(number) }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            fmt::Display::fmt(above, f)?;
        }
        match self.part {
            Part::Entry(name) => f.write_str(name),
            Part::Line(number) => write!(f, ":{number}"),
            Part::Member(name) => write!(f, "/{name}"),
            Part::Item(number) => write!(f, "/{number}"),
        }
    }
}
