//! Expansion against looking at every grain: who is reached, and what is it worth.
//!
//! A failure names its seed; `GRAINSTORE_EXPAND_SEED` runs it again, `GRAINSTORE_EXPANSIONS` runs more.

use std::collections::BTreeMap;

use grainstore::cal::{Direction, Expansion, Link, Links, Near, Query};
use grainstore::{ContentAddress, PageOptions, Session, SessionOptions};
use serde_json::Value;

use crate::expand::kit::store;
use crate::expand::random::Random;
use crate::expand::world::{Bounds, World, fill, world};

/// Answers with their scores.
type Scores = BTreeMap<ContentAddress, f64>;

/// What a query answers: addresses and scores in its order.
fn answer(session: &Session, query: &Query) -> Vec<(ContentAddress, f64)> {
    let answer = session.query(query, &PageOptions::first(10_000)).unwrap();
    assert!(answer.next_cursor.is_none());
    answer.results.iter().map(|row| (row.content_address, row.score)).collect()
}

/// Whether one kind of link leads from a grain to another.
fn leads(
    link: Link,
    (from, json): (&ContentAddress, &Value),
    to: (&ContentAddress, &Value),
) -> bool {
    let named = |list: &Value, name: &dyn Fn(&Value) -> Option<String>| {
        let items = list.as_array().into_iter().flatten();
        items.filter_map(name).any(|digits| digits == to.0.to_string())
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let same = |a: &Value, b: &Value| a.is_string() && a == b;
    from != to.0
        && match link {
            Link::Triple => same(&json["object"], &to.1["subject"]),
            Link::Subject => same(&json["subject"], &to.1["subject"]),
            Link::DerivedFrom => named(&json["derived_from"], &text),
            Link::RelatedTo => named(&json["related_to"], &|link| text(&link["hash"])),
            Link::Reply => json["parent_message_id"] == to.0.to_string(),
        }
}

/// The best score of a seed for each number of links, by looking at every pair of grains.
fn offers(all: &World, bounds: &Bounds, seeds: &Scores, how: &Expansion) -> Vec<Scores> {
    let passing: Vec<_> = all.iter().filter(|(_, known)| bounds.pass(known)).collect();
    let linked = |a: (&ContentAddress, &Value), b: (&ContentAddress, &Value)| {
        how.links.iter().any(|link| {
            (how.direction != Direction::In && leads(link, a, b))
                || (how.direction != Direction::Out && leads(link, b, a))
                || (link == Link::Subject && leads(link, a, b))
        })
    };
    let mut levels = vec![seeds.clone()];
    for _ in 0..how.hops {
        let mut next = Scores::new();
        for (from, score) in levels.last().unwrap() {
            for (to, known) in &passing {
                if linked((from, &all[from].json), (to, &known.json)) {
                    let best = next.entry(**to).or_insert(0.0);
                    *best = best.max(*score);
                }
            }
        }
        levels.push(next);
    }
    levels
}

/// What a query that expands should answer.
fn expected(
    all: &World,
    bounds: &Bounds,
    how: &Expansion,
    plain: &[(ContentAddress, f64)],
    meets: &[ContentAddress],
) -> Scores {
    let seeds: Scores = plain.iter().take(how.seeds).copied().collect();
    let levels = offers(all, bounds, &seeds, how);
    let mut scores: Scores = plain.iter().copied().collect();
    for (address, own) in plain {
        let raised = levels.iter().enumerate().skip(1).filter_map(|(hops, level)| {
            let seed = level.get(address)?;
            Some(own + how.decay.powi(i32::try_from(hops).unwrap()) * (seed - own))
        });
        scores.insert(*address, raised.fold(*own, f64::max));
    }
    for (hops, level) in levels.iter().enumerate().skip(1) {
        for (address, seed) in level {
            let shown = how.freely || meets.contains(address);
            if shown && !plain.iter().any(|(other, _)| other == address) {
                let best = scores.entry(*address).or_insert(0.0);
                *best = best.max(how.decay.powi(i32::try_from(hops).unwrap()) * seed);
            }
        }
    }
    scores
}

fn random_expansion(random: &mut Random) -> Expansion {
    let links: Links = match random.percent(50) {
        true => Links::default(),
        false => Links::from_iter([random.pick(&Link::ALL), random.pick(&Link::ALL)]),
    };
    Expansion {
        hops: 1 + random.below(3),
        seeds: 1 + random.below(5),
        links,
        direction: random.pick(&[Direction::Out, Direction::In, Direction::Both, Direction::Both]),
        fan_out: Expansion::MAX_FAN_OUT,
        reached: Expansion::MAX_REACHED,
        decay: random.pick(&[0.5, 0.5, 0.8, 0.1]),
        freely: random.percent(40),
    }
}

/// A query by words, by a vector, by both, or by conditions alone.
fn ask(random: &mut Random, query: Query) -> Query {
    let kind = random.below(4);
    let query = match kind {
        0 | 2 => query.searching(random.pick(&["tea", "green kettle", "cup", "milk alice"])),
        _ => query,
    };
    let values = (0..3).map(|_| random.below(100) as f32 + 1.0).collect();
    if kind == 0 || kind == 3 { query } else { query.nearing(Near { model: None, values }) }
}

/// Compares what expansions answer with what looking at every grain gives. Gives how many answers links
/// brought, and how many they raised.
fn compare(everyone: &Session, random: &mut Random, seed: u64) -> (usize, usize) {
    let all = world(everyone);
    let (mut brought, mut raised) = (0, 0);
    for _ in 0..12 {
        let bounds = Bounds::random(random);
        let namespace = bounds.namespace.map(str::to_owned);
        let options = SessionOptions { namespace, ..SessionOptions::default() };
        let session = everyone.store().session(options);
        let query = ask(random, bounds.query());
        let mut how = random_expansion(random);
        how.freely |= query.search().is_none() && query.near().is_none();
        let plain = answer(&session, &query);
        let meets: Vec<_> =
            answer(&session, &bounds.query()).into_iter().map(|row| row.0).collect();
        let wanted = expected(&all, &bounds, &how, &plain, &meets);
        let expanded = query.clone().expanding(how);
        let found = answer(&session, &expanded);
        let context = format!("seed {seed}: {expanded:?} in {:?}", bounds.namespace);
        let scores: Scores = found.iter().copied().collect();
        assert_eq!(scores.len(), found.len(), "{context} finds one twice");
        assert!(scores.keys().eq(wanted.keys()), "{context}\n{scores:?}\n{wanted:?}");
        for (address, score) in &scores {
            let wanted = wanted[address];
            assert!((score - wanted).abs() < 1e-9, "{context}: {address} {score} {wanted}");
            assert!((0.0..=1.0).contains(score), "{context}: {score}");
        }
        let in_order = found.windows(2).all(|pair| (pair[1].1, pair[0].0) < (pair[0].1, pair[1].0));
        let by_time = query.search().is_none() && query.near().is_none();
        assert!(in_order || by_time, "{context}: {found:?}");
        if by_time {
            assert_eq!(found[..plain.len()], plain, "{context}");
        }
        if let Some(best) = plain.first() {
            assert_eq!(scores[&best.0], best.1, "{context}: the best is raised by nothing");
        }
        brought += found.len() - plain.len();
        raised += plain.iter().filter(|(address, own)| scores[address] > *own).count();
    }
    (brought, raised)
}

#[test]
fn an_expansion_answers_exactly_what_looking_at_every_pair_of_grains_gives() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("GRAINSTORE_EXPAND_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("GRAINSTORE_EXPANSIONS").unwrap_or(240) / 24,
    };
    let (mut brought, mut raised) = (0, 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        let (_dir, session) = store();
        for _ in 0..2 {
            fill(&session, &mut random, 25);
            let (new, better) = compare(&session, &mut random, seed);
            brought += new;
            raised += better;
        }
    }
    println!("{brought} answers brought, {raised} raised");
    assert!(brought > 100 && raised > 100, "hardly anything was linked");
}
