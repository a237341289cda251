//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::peer::CONTENDERS;
use crate::{facts, retrieval, vectors};

/// Measures Grainstore beside areev, SQLite, redb and tantivy: the same facts, one run, one disk.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) facts: facts::Run,
    #[command(subcommand)]
    pub(crate) child: Option<Child>,
}

/// What to measure of every shape of question.
#[derive(Debug, Clone, Args)]
pub(crate) struct Run {
    /// Grains a store holds; 1000000 takes many minutes
    #[arg(long, visible_alias = "facts", value_delimiter = ',', default_value = "1000,100000")]
    pub(crate) sizes: Vec<usize>,
    /// Calls behind each percentile
    #[arg(long, default_value_t = 2000)]
    pub(crate) calls: usize,
    /// Seconds after which a slow question is asked no more, and reported with its number of calls
    #[arg(long, default_value_t = 10)]
    pub(crate) patience: u64,
    /// Rounds of everything, each on new stores
    #[arg(long, default_value_t = 2)]
    pub(crate) passes: usize,
    /// Who is compared
    #[arg(long, value_delimiter = ',', value_parser = names(), default_values = names())]
    pub(crate) peers: Vec<String>,
    /// Where the stores are made: a disk, not memory. The system's temporary directory if not given
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Where the data.* files of WordNet are
    #[arg(long, env = "GRAINSTORE_WORDNET", default_value = "/usr/share/wordnet")]
    pub(crate) wordnet: PathBuf,
    /// Writes every figure to this file, too
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

/// Other things to compare, and what the program starts itself for: opening and crashing need
/// processes of their own.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Child {
    /// Draws the figures of a file that --json wrote, as SVG
    Plot {
        /// The file
        figures: PathBuf,
        /// Where the pictures go
        directory: PathBuf,
    },
    /// Asks Grainstore, raw redb and SQLite every shape of question, of WordNet and conversations
    Shapes(Run),
    /// Compares nearest neighbours: recall, microseconds, seconds to build
    Vectors(vectors::Run),
    /// Searches a store by words and vectors, against its targets
    Retrieval(retrieval::Run),
    /// Reads an order, and measures a store of facts
    #[command(hide = true)]
    Store {
        /// Which
        name: String,
    },
    /// Opens a store, reads, and prints how long it took and what memory it takes
    #[command(hide = true)]
    Open {
        /// Who
        peer: String,
        /// The directory of the store
        directory: PathBuf,
    },
    /// Opens a store, puts fresh rows one by one, and aborts
    #[command(hide = true)]
    Crash {
        /// Who
        peer: String,
        /// The directory of the store
        directory: PathBuf,
        /// The number of the first fresh row
        first: usize,
        /// How many
        count: usize,
    },
}

fn names() -> [&'static str; CONTENDERS.len()] {
    CONTENDERS.map(|contender| contender.name)
}
