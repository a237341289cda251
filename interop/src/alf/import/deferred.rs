//! Records that come before those whose places they take: they wait in a file without a name, and are taken once
//! everything else is, each after the one that it waits for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use super::records::LineKey;
use crate::alf::record::Record;
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::scratch;

/// Records that wait.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    lines: BTreeMap<LineKey, Wait>,
    file: Option<File>,
    end: u64,
}

/// A record that waits: its number and that of the one it waits for, and where it is in the file.
#[derive(Debug, Clone, Copy)]
struct Wait {
    id: u128,
    target: u128,
    at: u64,
    bytes: u64,
}

/// The turn of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) line: LineKey,
    /// True if it waits for itself, by way of others or not.
    pub(super) is_circular: bool,
}

impl Deferred {
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Adds a record that waits for another.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(super) fn add(&mut self, line: LineKey, record: &Record, target: u128) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(scratch::file()?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let text = json::line(&record.whole());
        file.write_all(text.as_bytes()).map_err(scratch::failed)?;
        let bytes = text.len() as u64;
        self.lines.insert(line, Wait { id: record.number, target, at: self.end, bytes });
        self.end = self.end.saturating_add(bytes);
        Ok(())
    }

    /// Returns a record that waits.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_CORRUPT` for one that does not.
    pub(super) fn read(&self, line: LineKey) -> Result<Value> {
        let (Some(mut file), Some(wait)) = (self.file.as_ref(), self.lines.get(&line)) else {
            return Err(Error::corrupt("no record of this line waits"));
        };
        file.seek(SeekFrom::Start(wait.at)).map_err(scratch::failed)?;
        let mut text = Vec::new();
        file.take(wait.bytes).read_to_end(&mut text).map_err(scratch::failed)?;
        json::parse(&text)
    }

    /// The number of the record that one waits for.
    pub(super) fn target(&self, line: LineKey) -> Option<u128> {
        self.lines.get(&line).map(|wait| wait.target)
    }

    /// Returns all of them in an order in which each comes after the one that it waits for. Those that wait in a circle
    /// begin it all at once. Each is looked at a fixed number of times.
    pub(super) fn turns(&self) -> Vec<Turn> {
        let mut order = Order::of(&self.lines);
        for (line, wait) in &self.lines {
            if !order.first.contains_key(&wait.target) {
                order.take(*line, false);
            }
        }
        for line in self.lines.keys() {
            if !order.done.contains(line) {
                for member in order.circle(*line) {
                    order.done.insert(member);
                    order.turns.push(Turn { line: member, is_circular: true });
                }
                order.follow();
            }
        }
        order.turns
    }
}

struct Order<'l> {
    lines: &'l BTreeMap<LineKey, Wait>,
    /// The first line of each record that waits.
    first: HashMap<u128, LineKey>,
    /// Lines that wait for a record.
    after: HashMap<u128, Vec<LineKey>>,
    done: HashSet<LineKey>,
    turns: Vec<Turn>,
    /// Turns whose followers have been taken.
    followed: usize,
}

impl<'l> Order<'l> {
    fn of(lines: &'l BTreeMap<LineKey, Wait>) -> Self {
        let (mut first, mut after) = (HashMap::new(), HashMap::<u128, Vec<LineKey>>::new());
        for (line, wait) in lines {
            first.entry(wait.id).or_insert(*line);
            after.entry(wait.target).or_default().push(*line);
        }
        Self { lines, first, after, done: HashSet::new(), turns: Vec::new(), followed: 0 }
    }

    /// Takes a line, and all that wait for it.
    fn take(&mut self, line: LineKey, is_circular: bool) {
        if self.done.insert(line) {
            self.turns.push(Turn { line, is_circular });
        }
        self.follow();
    }

    /// Takes all that wait for lines that were taken.
    fn follow(&mut self) {
        while let Some(turn) = self.turns.get(self.followed) {
            self.followed += 1;
            let Some(wait) = self.lines.get(&turn.line) else { continue };
            for line in self.after.remove(&wait.id).unwrap_or_default() {
                if self.done.insert(line) {
                    self.turns.push(Turn { line, is_circular: false });
                }
            }
        }
    }

    /// The lines of the circle that one leads to, in order.
    fn circle(&self, from: LineKey) -> Vec<LineKey> {
        let next = |line: &LineKey| {
            self.lines.get(line).and_then(|wait| self.first.get(&wait.target)).copied()
        };
        let (mut walked, mut seen, mut at) = (Vec::new(), HashMap::new(), from);
        while !seen.contains_key(&at) {
            seen.insert(at, walked.len());
            walked.push(at);
            match next(&at) {
                Some(line) => at = line,
                None => break,
            }
        }
        let begin = seen.get(&at).copied().unwrap_or_default();
        let mut circle = walked.split_off(begin);
        circle.sort_unstable();
        circle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alf::record::uuid_number;

    fn record(number: u32) -> Record {
        let id = format!("019470a0-0000-7000-8000-{number:012x}");
        Record::of(serde_json::json!({"id": id, "content": number})).unwrap()
    }

    fn deferred(waits: &[(u32, u32)]) -> Deferred {
        let mut deferred = Deferred::default();
        for (line, (id, target)) in (1..).zip(waits) {
            let target = uuid_number(&record(*target).id).unwrap();
            deferred.add((0, line), &record(*id), target).unwrap();
        }
        deferred
    }

    #[test]
    fn each_comes_after_the_one_it_waits_for() {
        for (waits, expected, circular) in [
            (&[(3, 2), (2, 1), (9, 1)][..], vec![2, 1, 3], 0),
            // A circle, one that hangs on it, and one that waits for nobody here.
            (&[(10, 9), (9, 8), (8, 9), (7, 77)], vec![4, 2, 3, 1], 2),
            (&[(5, 5)], vec![1], 1),
            // Two lines of one record.
            (&[(2, 1), (2, 3), (3, 2)], vec![1, 3, 2], 0),
            (&[], vec![], 0),
        ] {
            let turns = deferred(waits).turns();
            let lines: Vec<u64> = turns.iter().map(|turn| turn.line.1).collect();
            assert_eq!(lines, expected, "{waits:?}");
            assert_eq!(turns.iter().filter(|turn| turn.is_circular).count(), circular, "{waits:?}");
        }
    }

    #[test]
    fn what_waits_is_read_as_it_came() {
        let deferred = deferred(&[(3, 2), (2, 1)]);
        assert_eq!(deferred.len(), 2);
        for (line, number) in [(2, 2), (1, 3)] {
            let value = deferred.read((0, line)).unwrap();
            assert!(json::equal(&value, &record(number).whole()));
        }
        assert!(deferred.read((0, 3)).is_err());
    }
}
