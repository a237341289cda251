//! The whole language against a naive reading of it, in both of its forms.

use std::collections::BTreeMap;

use grainstore::cal::{self, BatchSlot};

use crate::query::asker::Asker;
use crate::query::meaning::{Asked, Outcome, json};
use crate::query::planned::{STAGES, from_env};
use crate::query::statements::Statement;
use crate::query::world::World;

/// Statements of a normal run.
const STATEMENTS: usize = 480;
/// Bytes of a query.
const MAX_BYTES: usize = 8192;

#[test]
fn a_statement_comes_to_what_the_naive_reading_of_it_comes_to() {
    let statements = from_env("GRAINSTORE_QUERIES", STATEMENTS);
    let seed = from_env("GRAINSTORE_QUERIES_SEED", 1) as u64;
    let mut asker = Asker::new(seed);
    let mut world = World::new(seed);
    let (mut kinds, mut open) = (BTreeMap::new(), 0);
    for (name, stage) in STAGES {
        stage(&mut world);
        for _ in 0..statements / STAGES.len() {
            let (namespace, statement) = asker.statement(&world.items);
            let asked = Asked { items: &world.items, namespace };
            let text = statement.text();
            let expected = asked.outcome(&statement).filter(|_| text.len() <= MAX_BYTES);
            let Some(expected) = expected else {
                open += 1;
                continue;
            };
            let in_json = asker.random.percent(50);
            let query = if in_json { cal::parse(&text).unwrap().to_json() } else { text };
            let found = world.session(namespace).ask(&query).map(|response| of(response.answer));
            let found = found.unwrap_or_else(|error| {
                panic!("seed {seed}, {name}, as {namespace:?}, {query}: {error}")
            });
            assert!(
                agree(&found, &expected),
                "seed {seed}, {name}, as {namespace:?}, {query}\nfound    {:.2000}\nexpected {:.2000}",
                format!("{found:?}"),
                format!("{expected:?}")
            );
            let (asked, answered) = kinds.entry(kind(&statement)).or_insert((0, 0));
            *asked += 1;
            *answered += usize::from(is_something(&expected));
        }
    }
    println!("language: {kinds:?} (asked, with results), {open} left open");
    assert_eq!(kinds.len(), 7, "every kind of statement");
    assert!(open * 10 < statements, "{open} of {statements} left open");
    let answered: usize = kinds.values().map(|(_, answered)| answered).sum();
    assert!(answered * 2 > statements, "{answered} of {statements} with results");
}

fn kind(statement: &Statement) -> &'static str {
    match statement {
        Statement::Recall(_) => "recall",
        Statement::Let(..) => "let",
        Statement::Set(..) => "set",
        Statement::Coalesce(_) => "coalesce",
        Statement::Exists(_) => "exists",
        Statement::Batch(_) => "batch",
        Statement::Assemble(_) => "assemble",
    }
}

fn is_something(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Grains(grains, _) => !grains.is_empty(),
        Outcome::Count(count) => *count > 0,
        Outcome::Values(values) => !values.is_empty(),
        Outcome::Groups(groups) => !groups.is_empty(),
        Outcome::Exists(there) => *there,
        Outcome::Batch(entries) => entries.iter().any(is_something),
        Outcome::Sources(counts) => counts.iter().any(|count| *count > 0),
    }
}

/// What an answer says, as far as it is compared.
fn of(answer: cal::Answer) -> Outcome {
    match answer {
        cal::Answer::Grains(grains) => {
            let rows = grains.results.iter().map(|row| row.content_address);
            Outcome::Grains(rows.collect(), grains.total)
        }
        cal::Answer::Coalesced { answer, .. } => of(*answer),
        cal::Answer::Count { count, .. } => Outcome::Count(count),
        cal::Answer::Values { values, .. } => Outcome::Values(values.iter().map(json).collect()),
        cal::Answer::Groups { groups, .. } => {
            Outcome::Groups(groups.iter().map(|group| (json(&group.key), group.count)).collect())
        }
        cal::Answer::Exists { exists } => Outcome::Exists(exists),
        cal::Answer::Batch { batch } => {
            let slots = batch.0.into_iter().map(|(label, slot)| match slot {
                BatchSlot::Answer(answer) => of(*answer),
                BatchSlot::Failed { error } => panic!("{label}: {error}"),
            });
            Outcome::Batch(slots.collect())
        }
        cal::Answer::Assembly { sources, .. } => {
            let all = |of: &cal::SourceAnswer| of.full + of.standard + of.summary + of.omitted;
            Outcome::Sources(sources.0.iter().map(|(_, of)| all(of)).collect())
        }
        other => panic!("{other:?}"),
    }
}

/// Whether they are the same; a total that is not told is none that is wrong.
fn agree(found: &Outcome, expected: &Outcome) -> bool {
    match (found, expected) {
        (Outcome::Grains(found, told), Outcome::Grains(expected, total)) => {
            let wrong = told.zip(*total).is_some_and(|(told, total)| told != total);
            found == expected && !wrong
        }
        (Outcome::Batch(found), Outcome::Batch(expected)) => {
            let pairs = found.iter().zip(expected);
            found.len() == expected.len() && pairs.into_iter().all(|(a, b)| agree(a, b))
        }
        (found, expected) => found == expected,
    }
}
