//! Bits of the index that flip: a damaged index may hide a row, and never shows a wrong one; without
//! it everything is there again.

use std::fs;

use grainstore::limits::MAX_PAGE;

use crate::query::asker::Asker;
use crate::query::naive;
use crate::query::planned::{addresses, patient, rows_are};
use crate::query::question::Question;
use crate::query::random::Random;
use crate::query::world::World;

/// Times the index is damaged, and questions after each.
const ROUNDS: usize = 20;
/// Bytes of a page of redb, and the first one of a page with rows.
const PAGE: usize = 4_096;
const LEAF: u8 = 1;
const QUESTIONS: usize = 20;

#[test]
fn a_flipped_bit_of_the_index_shows_no_wrong_row_and_goes_with_the_index() {
    let mut world = World::new(41);
    world.put(200);
    world.supersede(40);
    world.mark(40);
    world.reopen(|_| {});
    world.store.close().unwrap();
    let sound = fs::read(world.index()).unwrap();
    let said: Vec<_> = (0..sound.len()).filter(|at| sound[*at] != 0).collect();
    // Where blocks lie: redb keeps rows in pages that begin so, and their lengths in the first bytes.
    let is_in_leaf = |at: &usize| sound[at - at % PAGE] == LEAF && at % PAGE >= 64;
    let in_leaves: Vec<_> = said.iter().copied().filter(is_in_leaf).collect();
    let (mut random, mut asker) = (Random::new(41), Asker::new(41));
    let (mut hidden, mut refused) = (0, 0);
    let mut rounds = 0;
    // Where the damage falls differs from run to run: an index has random bytes.
    while rounds < ROUNDS || (hidden + refused == 0 && rounds < 20 * ROUNDS) {
        let round = rounds;
        rounds += 1;
        let flips = match round % 2 {
            0 => random.pick(&[1, 1, 30, 300]),
            _ => random.pick(&[1, 30, 300]),
        };
        let mut damaged = sound.clone();
        let places = if round % 2 == 0 { &said } else { &in_leaves };
        for _ in 0..flips {
            damaged[places[random.below(places.len())]] ^= 1 << random.below(8);
        }
        let index = world.index();
        world.reopen(|_| fs::write(index, damaged).unwrap());
        for _ in 0..QUESTIONS {
            let (namespace, question) = asker.next(&world.items);
            match missing(&world, namespace, &question) {
                Ok(rows) => hidden += usize::from(rows > 0),
                Err("ERR_INTEGRITY" | "ERR_IO") => refused += 1,
                Err(why) => panic!("round {round}, {flips} bits, {question:?}: {why}"),
            }
        }
        let index = world.index();
        world.reopen(|_| fs::remove_file(index).unwrap());
        let all = Question::default();
        let answer = world.session(None).query(&all.query(), &patient(MAX_PAGE)).unwrap();
        rows_are(&answer, &naive::answer(&world.items, None, &all)).unwrap();
    }
    let asked = rounds * QUESTIONS;
    println!("flipped bits: {asked} answers, {hidden} with a row hidden, {refused} refused");
    assert!(hidden + refused > 0, "some damage is where it matters");
}

/// How many rows of the whole answer are missing; an error where one is there that should not be.
fn missing(
    world: &World,
    namespace: Option<&str>,
    question: &Question,
) -> Result<usize, &'static str> {
    let expected = addresses(&naive::answer(&world.items, namespace, question));
    let answer = world.session(namespace).query(&question.query(), &patient(MAX_PAGE));
    let answer = answer.map_err(|error| error.code())?;
    let known = |address| expected.contains(address);
    match answer.results.iter().all(|row| known(&row.content_address)) {
        true => Ok(expected.len().saturating_sub(answer.results.len())),
        false => Err("a row that is no answer"),
    }
}
