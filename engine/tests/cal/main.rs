//! The language over a store: its corpus, its calls, prepared statements and streams.

mod cal_corpus;
mod calls;
mod language;
