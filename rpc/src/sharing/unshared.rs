//! Systems where processes do not share an open store: each has it alone.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Instant;

use grainstore::{OpenOptions, SessionOptions};
use serde_json::value::RawValue;

use super::{Converse, Hosting};
use crate::error::{Error, Result};

/// A connection, of which there are none.
#[derive(Debug)]
pub(crate) enum Connection {}

pub(crate) enum Sought<C = Connection> {
    #[expect(dead_code, reason = "nobody is joined")]
    Joined(Box<C>),
    Nobody,
}

#[derive(Debug)]
#[expect(dead_code, reason = "nothing is sent")]
pub(crate) enum Lost {
    Unsent,
    Unanswered,
    Stuck,
    Hangs,
    Listener(Error),
}

pub(crate) struct Joining<'j> {
    pub(super) directory: &'j Path,
    pub(super) open: &'j OpenOptions,
    pub(super) settings: &'j BTreeMap<String, String>,
    pub(super) session: &'j SessionOptions,
}

pub(crate) type Answered = std::result::Result<Box<RawValue>, Box<RawValue>>;

impl Connection {
    pub(super) fn join(_: &Joining<'_>, _: Instant) -> Result<Sought> {
        Ok(Sought::Nobody)
    }

    pub(crate) fn exchange(
        &mut self,
        _: &[u8],
        _: &dyn Fn() -> bool,
        _: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> std::result::Result<Answered, Lost> {
        match *self {}
    }

    pub(super) fn offer(_: &Joining<'_>, _: Instant) -> Result<Offered> {
        Ok(Offered {})
    }

    pub(super) fn pid(&self) -> u32 {
        match *self {}
    }

    pub(super) fn owner(&self) -> u64 {
        match *self {}
    }

    pub(super) fn store(&self) -> &str {
        match *self {}
    }
}

/// An embedder that is offered to nobody.
#[derive(Debug)]
pub(crate) struct Offered {}

impl Offered {
    pub(super) fn holds(&self, _: u64) -> bool {
        true
    }
}

/// Nothing that serves.
#[derive(Debug)]
pub(crate) enum Service {}

impl Service {
    pub(super) fn start(_: &Path, _: Hosting, _: Converse) -> io::Result<Self> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(crate) fn stop(&mut self, _: &mut dyn FnMut(usize)) {
        match *self {}
    }

    pub(super) fn connections(&self) -> usize {
        match *self {}
    }
}
