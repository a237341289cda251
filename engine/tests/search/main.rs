//! Searching: queries, words, vectors, links, and what a session does not see.

#[path = "../kit/locomo.rs"]
mod conversations;
mod embedder;
mod expand;
mod foreign_index;
mod graph;
mod isolation;
mod locomo;
mod moving;
mod query;
#[path = "../kit/random.rs"]
mod random;
mod search;
mod vectors;
