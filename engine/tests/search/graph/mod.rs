//! Graph reads as a host uses them, on small graphs made by hand and on hostile ones.
//!
//! The full run adds a supersession chain of 100,000:
//! `GRAINSTORE_SWEEP=full cargo test --release -p grainstore --test search graph::`.

#[cfg(test)]
mod edges;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod lineage;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod thread;
#[cfg(test)]
mod versions;
