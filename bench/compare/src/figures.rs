//! The file of figures: what `--json` writes and `plot` reads.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use compare_facts::Record;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::machine::Machine;

/// All figures of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// What it ran on.
    pub(crate) machine: Machine,
    /// What was stored.
    pub(crate) data: String,
    /// The figures.
    pub(crate) records: Vec<Record>,
}

impl Figures {
    /// Writes them, one record a line, so that two runs can be compared line by line.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        let (machine, data) =
            (serde_json::to_string(&self.machine)?, serde_json::to_string(&self.data)?);
        writeln!(out, "{{\"machine\": {machine},\n\"data\": {data},\n\"records\": [")?;
        for (at, record) in self.records.iter().enumerate() {
            let comma = if at + 1 < self.records.len() { "," } else { "" };
            writeln!(out, "{}{comma}", serde_json::to_string(record)?)?;
        }
        writeln!(out, "]}}")?;
        Ok(out.flush()?)
    }

    /// Reads them.
    ///
    /// # Errors
    /// The file system's; for a file that has no figures.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    }
}

#[cfg(test)]
mod tests {
    use compare_facts::{Figure, Unit};

    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let figure = Figure { p50: 1.5, p90: None, p99: Some(3.25), calls: 7 };
        let (peer, work) = ("a \"peer\"".to_owned(), "work".to_owned());
        let record = Record { grains: 10, pass: 1, peer, work, unit: Unit::Micros, figure };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("figures.json");
        for records in [vec![], vec![record.clone()], vec![record.clone(), record]] {
            let machine = Machine::of(directory.path());
            let figures = Figures { machine, data: "facts".to_owned(), records };
            figures.write(&path).unwrap();
            let read = Figures::read(&path).unwrap();
            assert_eq!((read.data, read.records), (figures.data, figures.records));
        }
    }
}
