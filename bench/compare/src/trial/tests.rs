use clap::Parser;

use super::*;
use crate::data::fresh;
use crate::options::{Child, Options};
use crate::peer::CONTENDERS;

fn stage(grains: usize, calls: usize) -> Stage {
    let source = Source::open(Path::new("/there is no such directory"), grains).unwrap();
    Stage::of(&source, grains, calls).unwrap()
}

/// Loads a peer as a trial does and reads with every shape it answers.
fn loaded_and_read(contender: Contender, stage: &Stage, directory: &Path) -> Vec<Record> {
    let Options { child, .. } = Options::parse_from(["compare", "shapes", "--calls", "20"]);
    let Some(Child::Shapes(run)) = child else { panic!("no shapes") };
    let mut records = Vec::new();
    let mut trial = Trial::new(stage, &run, contender, 1, &mut records);
    let mut peer = (contender.open)(directory).unwrap();
    trial.load(peer.as_ref(), stage.data.first(stage.grains), true).unwrap();
    peer.settle().unwrap();
    trial.read(peer.as_ref(), &stage.questions).unwrap();
    trial.get(peer.as_ref(), stage.data.first(stage.grains).addresses).unwrap();
    trial.load(peer.as_ref(), stage.data.rest(stage.grains), false).unwrap();
    trial.read(peer.as_ref(), &stage.hub_questions).unwrap();
    peer.compact().unwrap();
    trial.read(peer.as_ref(), &stage.hub_questions).unwrap();
    records
}

#[test]
fn every_peer_answers_every_question_it_has_an_index_for_as_a_scan_does() {
    let stage = stage(1200, 20);
    for contender in CONTENDERS {
        let directory = tempfile::tempdir().unwrap();
        let records = loaded_and_read(contender, &stage, directory.path());
        let all = SHAPES.len() + 2 * HUB_SHAPES.len() + 3;
        let expected = match contender.name {
            "redb-log" => 1 + 2,
            // All, s, sp, a subject of 12, (s, r); two of the hub, twice.
            "redb-hand" => 5 + 2 * 2 + 3,
            _ => all,
        };
        assert_eq!(records.len(), expected, "{}", contender.name);
    }
}

#[test]
fn what_a_peer_stored_is_there_when_it_is_opened_again() {
    for contender in CONTENDERS {
        let directory = tempfile::tempdir().unwrap();
        let items = fresh(0, 3).unwrap();
        let peer = (contender.open)(directory.path()).unwrap();
        peer.put(items.clone()).unwrap();
        drop(peer);
        let peer = (contender.open)(directory.path()).unwrap();
        let latest = peer.lines(&crate::ask::Ask { limit: 9, ..Default::default() }).unwrap();
        let found: Vec<_> = latest.iter().map(|line| line.address).collect();
        let stored: Vec<_> = items.iter().rev().map(|item| item.blob.address()).collect();
        assert_eq!(found, stored, "{}", contender.name);
        if peer.has_addresses() {
            for item in &items {
                let blob = peer.get(&item.blob.address()).unwrap();
                assert_eq!(blob.as_deref(), Some(item.blob.bytes()), "{}", contender.name);
            }
            let unknown = fresh(100, 1).unwrap()[0].blob.address();
            assert_eq!(peer.get(&unknown).unwrap(), None, "{}", contender.name);
        }
    }
}
