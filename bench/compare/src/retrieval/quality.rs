//! How well searches find, on real questions: hit@10, hit@20, MRR@10 by words, and by both.

use grainstore_bench::locomo::{NAMES, folder};
use grainstore_bench::quality::{Figures, Library, Mode};

use super::table::{self, Target};
use crate::Result;

/// What words have to find.
const WORDS: [f64; 3] = [82.0, 87.0, 0.52];

/// Asks every question, or says that there are none.
pub(super) fn measure() -> Result<()> {
    let Some(folder) = folder() else {
        return table::row("quality", "skipped: no data/locomo", "", (0.0, Target::None));
    };
    let library = Library::of(&folder, &NAMES, true).map_err(|error| error.to_string())?;
    let of = |mode| library.measure(mode).map_err(|error| error.to_string());
    let (words, both) = (of(Mode::Text)?, of(Mode::Hybrid)?);
    let figures = |of: &Figures| [of.hit_at_10, of.hit_at_20, of.mrr_at_10];
    let names = ["hit@10", "hit@20", "MRR@10"];
    let (words, both) = (figures(&words.total), figures(&both.total));
    for ((name, words), least) in names.into_iter().zip(words).zip(WORDS) {
        let work = format!("LoCoMo by words, {name}");
        table::row(work, "", "", (words, Target::AtLeast(least)))?;
    }
    for ((name, words), both) in names.into_iter().zip(words).zip(both) {
        let work = format!("LoCoMo by words and vectors, {name}");
        table::row(work, "", "words alone", (both, Target::AtLeast(words)))?;
    }
    Ok(())
}
