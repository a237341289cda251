//! Who is compared, in the order of the columns.

use std::path::PathBuf;
use std::process::Command;

use super::{grainstore_store, redb_store, sqlite_store, tantivy_store};
use crate::Result;

/// The store this is about.
pub(super) const OURS: &str = "grainstore";

/// Everybody.
pub(super) const STORES: [Store; 5] = [
    Store {
        name: OURS,
        terms: "everything the engine does, words and CAL included; a commit is synced before it returns; page \
                cache 128 MiB",
        start: Start::Here(compare_facts::serve::<grainstore_store::Grainstore>),
    },
    Store {
        name: "sqlite",
        terms: "by hand: the fields and a key, (subject, time), (subject, relation, time), FTS5 with the Porter \
                stemmer; WAL, synchronous=FULL, cache 128 MiB; ANALYZE after the load",
        start: Start::Here(compare_facts::serve::<sqlite_store::Sqlite>),
    },
    Store {
        name: "redb",
        terms: "by hand: the grain, address, (subject, !sequence), (subject, relation, !sequence); no words; \
                Durability::Immediate, cache 128 MiB",
        start: Start::Here(compare_facts::serve::<redb_store::Redb>),
    },
    Store {
        name: "tantivy",
        terms: "words alone, with the number of each fact; a commit a batch, synced; one segment before it is asked",
        start: Start::Here(compare_facts::serve::<tantivy_store::Tantivy>),
    },
    Store {
        name: "areev",
        terms: "a program of its own with areev-store, areev-core and areev-cal at their defaults: Turso with a full \
                sync a commit, words in the same transaction, no embedder",
        start: Start::Program("areev/Cargo.toml"),
    },
];

/// A store that is compared.
#[derive(Clone, Copy)]
pub(super) struct Store {
    /// Its name in reports and on the command line.
    pub(super) name: &'static str,
    /// What it stores and how it commits, for the report.
    pub(super) terms: &'static str,
    /// Where it is.
    pub(super) start: Start,
}

/// The program a store is in.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// This one.
    Here(fn() -> Result<()>),
    /// One of its own, by its manifest.
    Program(&'static str),
}

impl Store {
    /// The store of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        STORES.into_iter().find(|store| store.name == name)
    }

    /// Builds the program of its own, if it has one.
    ///
    /// # Errors
    /// Where that fails.
    pub(super) fn prepare(&self) -> Result<()> {
        let Start::Program(manifest) = self.start else { return Ok(()) };
        let built = cargo("build", manifest).status();
        if built.as_ref().is_ok_and(std::process::ExitStatus::success) {
            return Ok(());
        }
        let name = self.name;
        Err(format!(
            "{name} could not be built (cargo build --release --locked --manifest-path {manifest}): see above. It \
             needs crates.io, once; to go on without it, leave it out of --peers"
        )
        .into())
    }

    /// The command that measures it: it reads an order from its input.
    ///
    /// # Errors
    /// Where this program has no path.
    pub(super) fn command(&self) -> Result<Command> {
        Ok(match self.start {
            Start::Here(_) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["store", self.name]);
                command
            }
            Start::Program(manifest) => cargo("run", manifest),
        })
    }
}

/// The names on the command line.
pub(super) fn names() -> [&'static str; STORES.len()] {
    STORES.map(|store| store.name)
}

fn cargo(verb: &str, manifest: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(manifest);
    command.args([verb, "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
    command
}
