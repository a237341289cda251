//! What was measured, as tables and as JSON. Measures nothing.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use serde::Serialize;

use super::tally::Figures;
use super::{Mode, Outcome};

/// The kinds of questions, as the data set names them.
const CATEGORIES: [(u8, &str); 5] =
    [(1, "multi-hop"), (2, "temporal"), (3, "open-domain"), (4, "single-hop"), (5, "adversarial")];

/// The kind whose questions no turn answers, though turns use their words: they are put about the wrong person.
const UNANSWERABLE: u8 = 5;
/// Floors that are tried.
const FLOORS: [f64; 6] = [0.1, 0.15, 0.2, 0.3, 0.5, 0.6];

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// With the turns in their sessions, as users store them.
    pub as_shipped: Vec<ModeFigures>,
    /// With turns that are in no session.
    pub without_context: Vec<ModeFigures>,
}

/// What one way of asking found.
#[derive(Debug, Serialize)]
pub struct ModeFigures {
    /// What was asked with.
    pub mode: Mode,
    /// Of all questions.
    pub total: Figures,
    /// Of each kind of question.
    pub categories: Vec<CategoryFigures>,
    /// What a floor for the best score would do.
    pub floors: Vec<FloorFigures>,
    /// Half of the questions took less, in microseconds.
    pub p50_micros: u64,
    /// All but five in a hundred took less.
    pub p95_micros: u64,
}

/// What was found of one kind of question.
#[derive(Debug, Serialize)]
pub struct CategoryFigures {
    /// Its number in the data set.
    pub category: u8,
    /// Its name.
    pub name: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Questions whose best row is below a floor, and would have no answer with it.
#[derive(Debug, Serialize)]
pub struct FloorFigures {
    /// The score.
    pub floor: f64,
    /// Those that no turn answers, in percent of all such: what the floor is for.
    pub unanswerable: f64,
    /// Those with an answer among the first ten rows, in percent of all that some turn answers: what it costs.
    pub lost: f64,
}

impl FloorFigures {
    fn of(floor: f64, outcomes: &[Outcome]) -> Self {
        let share = |of: &dyn Fn(&Outcome) -> bool, is_silent: &dyn Fn(&Outcome) -> bool| {
            let all: Vec<&Outcome> = outcomes.iter().filter(|outcome| of(outcome)).collect();
            let silent = all.iter().filter(|outcome| is_silent(outcome)).count();
            let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
            100.0 * count(silent) / count(all.len().max(1))
        };
        let is_unanswerable = |outcome: &Outcome| outcome.category == UNANSWERABLE;
        let is_below = |outcome: &Outcome| outcome.best < floor;
        let was_found = |outcome: &Outcome| outcome.rank.is_some_and(|rank| rank <= 10);
        Self {
            floor,
            unanswerable: share(&is_unanswerable, &is_below),
            lost: share(&|outcome| !is_unanswerable(outcome), &|outcome| {
                is_below(outcome) && was_found(outcome)
            }),
        }
    }
}

impl ModeFigures {
    pub(super) fn of(mode: Mode, outcomes: &[Outcome]) -> Self {
        let ranks = |of: &dyn Fn(&Outcome) -> bool| -> Figures {
            let chosen = outcomes.iter().filter(|outcome| of(outcome));
            Figures::of(&chosen.map(|outcome| outcome.rank).collect::<Vec<_>>())
        };
        let categories = CATEGORIES.map(|(category, name)| {
            let figures = ranks(&|outcome| outcome.category == category);
            CategoryFigures { category, name, figures }
        });
        let mut took: Vec<Duration> = outcomes.iter().map(|outcome| outcome.took).collect();
        took.sort_unstable();
        let quantile = |percent: usize| {
            let at = took.get(took.len() * percent / 100).or(took.last());
            at.map_or(0, |took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
        };
        Self {
            mode,
            total: ranks(&|_| true),
            categories: categories.into(),
            floors: FLOORS.map(|floor| FloorFigures::of(floor, outcomes)).into(),
            p50_micros: quantile(50),
            p95_micros: quantile(95),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "| asked with | hit@1 | hit@5 | hit@10 | hit@20 | MRR@10 | p50 | p95 |")?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for (all, context) in [(&self.as_shipped, ""), (&self.without_context, ", no sessions")] {
            for of in all {
                let name = name(of.mode);
                let (p50, p95) = (of.p50_micros, of.p95_micros);
                writeln!(f, "| {name}{context} | {} | {p50} us | {p95} us |", row(&of.total))?;
            }
        }
        for of in &self.as_shipped {
            writeln!(
                f,
                "\n| {} | questions | hit@1 | hit@5 | hit@10 | hit@20 | MRR@10 |",
                name(of.mode)
            )?;
            writeln!(f, "|---|---|---|---|---|---|---|")?;
            for CategoryFigures { category, name, figures } in &of.categories {
                let Figures { questions, .. } = figures;
                writeln!(f, "| {category} {name} | {questions} | {} |", row(figures))?;
            }
            writeln!(f, "| all | {} | {} |", of.total.questions, row(&of.total))?;
            writeln!(
                f,
                "\n| {}, floor | unanswerable without rows | lost of hit@10 |",
                name(of.mode)
            )?;
            writeln!(f, "|---|---|---|")?;
            for FloorFigures { floor, unanswerable, lost } in &of.floors {
                writeln!(f, "| {floor} | {unanswerable:.2} | {lost:.2} |")?;
            }
        }
        Ok(())
    }
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Text => "text",
        Mode::Vector => "vector",
        Mode::Hybrid => "text and vector",
    }
}

fn row(figures: &Figures) -> String {
    let Figures { hit_at_1, hit_at_5, hit_at_10, hit_at_20, mrr_at_10, .. } = figures;
    format!("{hit_at_1:.2} | {hit_at_5:.2} | {hit_at_10:.2} | {hit_at_20:.2} | {mrr_at_10:.4}")
}
