//! Grainstore beside areev, SQLite, redb and tantivy: the same grains, one run, one disk, answers
//! checked.
//!
//! `cargo run --release` in this directory; `--help` lists what can be changed.
//!
//! - `options`: the command line. `machine`, `figures`: what it ran on, the file of figures.
//! - `facts`: what users call, in all of them, by the crate `facts`. `plot`: figures as pictures.
//! - `rounds`: every shape of question, in Grainstore, redb and SQLite; `data`, `ask`, `shapes`: its
//!   rows and questions; `peer`, `peers`: its stores; `trial`: one of them at one size.
//! - `report`: the tables of both.
//! - `vectors`: a comparison of its own, of nearest neighbours. `retrieval`: searches against their
//!   targets.

mod options;

mod data;

mod ask;
mod shapes;

mod peer;
mod peers;

mod figures;
mod machine;

mod trial;

mod report;

mod facts;
mod plot;
mod rounds;

mod retrieval;
mod vectors;

use clap::Parser;
use compare_facts::Result;

use crate::options::{Child, Options};
use crate::peer::Contender;

fn main() -> Result<()> {
    let Options { facts: run, child } = Options::parse();
    let named = |name: &str| Contender::named(name).ok_or(format!("there is no peer {name:?}"));
    match child {
        None => facts::run(&run),
        Some(Child::Store { name }) => facts::serve(&name),
        Some(Child::Plot { figures, directory }) => plot::draw(&figures, &directory),
        Some(Child::Shapes(run)) => rounds::run(&run),
        Some(Child::Open { peer, directory }) => trial::open(named(&peer)?, &directory),
        Some(Child::Crash { peer, directory, first, count }) => {
            trial::crash(named(&peer)?, &directory, first, count)
        }
        Some(Child::Vectors(run)) => vectors::run(&run),
        Some(Child::Retrieval(run)) => retrieval::run(&run),
    }
}
