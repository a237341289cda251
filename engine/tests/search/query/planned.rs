//! The planned answer is the naive one, whatever is folded.

use std::collections::BTreeMap;
use std::time::Duration;

use grainstore::limits::MAX_PAGE;
use grainstore::{ContentAddress, PageOptions, QueryPage, QueryPlan};

use crate::query::asker::Asker;
use crate::query::naive::{self, Item};
use crate::query::question::Question;
use crate::query::world::World;

/// Questions of a normal run.
const QUESTIONS: usize = 800;
/// Stores they are asked of, each with grains of its own, and those of a full run.
const WORLDS: (usize, usize) = (2, 3);

/// What was asked so far.
#[derive(Default)]
struct Tally {
    asked: usize,
    found: usize,
    rows: usize,
    pages: usize,
    /// How often an index drove, and how often it had results.
    driven: BTreeMap<String, (usize, usize)>,
    intersected: usize,
}

pub(crate) fn from_env(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn a_planned_answer_is_the_naive_answer() {
    let questions = from_env("GRAINSTORE_QUERIES", QUESTIONS);
    let seed = from_env("GRAINSTORE_QUERIES_SEED", 1);
    let worlds = if questions > QUESTIONS { WORLDS.1 } else { WORLDS.0 };
    let mut tally = Tally::default();
    for number in 0..worlds {
        let seed = (seed + number * 1000) as u64;
        let mut asker = Asker::new(seed);
        let mut world = World::new(seed);
        for (name, stage) in STAGES {
            stage(&mut world);
            for _ in 0..questions / worlds / STAGES.len() {
                let (namespace, question) = asker.next(&world.items);
                let checked = tally.check(&world, namespace, &question, &mut asker);
                checked.unwrap_or_else(|why| {
                    panic!("seed {seed}, {name}, as {namespace:?}: {question:#?}\n{why}")
                });
            }
        }
        let (offered, refused) = (world.offered, world.refused);
        assert!(refused * 50 < offered, "{refused} of {offered} writes were refused");
    }
    println!("{}", tally.report());
}

/// Something that happens to a store, by name.
pub(crate) type Stage = (&'static str, fn(&mut World));

/// Ways for a grain to be where the index looks for it.
pub(crate) const STAGES: [Stage; 8] = [
    ("nothing folded", |world| {
        world.put(200);
        world.supersede(60);
        world.mark(40);
    }),
    ("one instant for many", |world| world.put_at(crate::query::grains::CREATED_MS, 400)),
    ("ends of time for many", |world| {
        world.put_at(i64::MAX, 40);
        world.put_at(i64::MIN, 40);
        world.put_at(i64::MAX - 3, 10);
    }),
    ("a tail that grew full", |world| {
        world.put_wide(14);
        world.put(60);
    }),
    ("all folded", |world| {
        world.supersede(60);
        world.mark(40);
        world.flush();
    }),
    ("written on top", |world| {
        world.put(150);
        world.put_at(crate::query::grains::CREATED_MS, 60);
        world.supersede(60);
        world.mark(40);
    }),
    ("opened again", |world| {
        world.reopen(|_| {});
        world.put(40);
    }),
    ("without its index", |world| {
        let index = world.index();
        world.reopen(|_| std::fs::remove_file(index).unwrap());
        world.supersede(30);
    }),
];

impl Tally {
    /// Asks for one page and its total, and at times for all pages.
    fn check(
        &mut self,
        world: &World,
        namespace: Option<&str>,
        question: &Question,
        asker: &mut Asker,
    ) -> Result<(), String> {
        let expected = naive::answer(&world.items, namespace, question);
        let session = world.session(namespace);
        let query = question.query();
        let limit = asker.random.pick(&[0, 1, 3, 50, 50, MAX_PAGE]);
        let page = PageOptions { count_to: u64::MAX, explain: true, ..patient(limit) };
        let answer = session.query(&query, &page).map_err(|error| error.to_string())?;
        same("total", &answer.total, &Some(expected.len() as u64))?;
        rows_are(&answer, &expected[..limit.min(expected.len())])?;
        let plan = answer.plan.ok_or("no plan")?;
        self.note(&plan, &expected);
        if asker.random.percent(15) {
            // A page that counts nothing stops at its last row.
            let bare = session.query(&query, &patient(limit)).map_err(|error| error.to_string())?;
            rows_are(&bare, &expected[..limit.min(expected.len())])?;
        }
        if limit > 0 && expected.len() > 2 && asker.random.percent(10) {
            let mut found = Vec::new();
            let mut cursor = None;
            loop {
                let limit = 1 + asker.random.below(expected.len());
                let answer = session.query(&query, &patient(limit).after(cursor));
                let answer = answer.map_err(|error| error.to_string())?;
                found.extend(answer.results.iter().map(|row| row.content_address));
                self.pages += 1;
                cursor = answer.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            same("rows of all pages", &found, &addresses(&expected))?;
        }
        Ok(())
    }

    fn note(&mut self, plan: &QueryPlan, expected: &[&Item]) {
        let hit = usize::from(!expected.is_empty());
        self.asked += 1;
        self.found += hit;
        self.rows += expected.len();
        self.intersected += usize::from(plan.lists.len() > 1);
        let domain = plan.index.contains(':');
        let name = if domain { "domain fields".to_owned() } else { plan.index.clone() };
        let driven = self.driven.entry(name).or_default();
        *driven = (driven.0 + 1, driven.1 + hit);
    }

    /// What was asked, once enough of it was found.
    fn report(&self) -> String {
        let Self { asked, found, rows, pages, intersected, driven } = self;
        assert!(found * 3 > asked * 2, "{found} of {asked} questions have results");
        let shapes = ["SPO", "POS", "PSO", "OPS", "OSP", "SOP"];
        let asked_by_triple = shapes.iter().filter(|shape| driven.contains_key(**shape)).count();
        assert!(asked_by_triple >= 3, "triples drive some: {driven:?}");
        format!(
            "queries: {asked} asked, {found} with results, {rows} rows, {pages} pages walked, \
             {intersected} over several lists; by index (asked, with results): {driven:?}"
        )
    }
}

/// A page that has time enough on a machine with other work.
pub(crate) fn patient(limit: usize) -> PageOptions {
    PageOptions { timeout: Duration::from_secs(120), ..PageOptions::first(limit) }
}

pub(crate) fn addresses(items: &[&Item]) -> Vec<ContentAddress> {
    items.iter().map(|item| item.address).collect()
}

/// Whether a page shows these grains in their states.
pub(crate) fn rows_are(answer: &QueryPage, expected: &[&Item]) -> Result<(), String> {
    let found: Vec<_> = answer.results.iter().map(|row| row.content_address).collect();
    same("rows", &found, &addresses(expected))?;
    for (row, item) in answer.results.iter().zip(expected) {
        same("a grain", &row.grain.fields(), &item.grain.fields())?;
        same("a state", &row.state, &item.state)?;
    }
    Ok(())
}

/// Says what differs, where lists begin to differ.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: found {found:?}, not {expected:?}")),
    }
}
