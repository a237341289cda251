//! Five conversations of the LoCoMo data set as an agent would keep them: 2,760 turns as events.
//!
//! The data lies beside the project (`GRAINSTORE_SHARED`, else `../shared` of the workspace) and is
//! not part of it: without it there is nothing to test, and the test says so.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

use crate::conversations;

use std::collections::{BTreeMap, BTreeSet};

use conversations::{Conversation, NAMES, SAID, folder};
use grainstore::cal::{self, Answer};
use grainstore::format::ContentAddress;
use grainstore::{OpenOptions, PutOutcome, Session, SessionOptions, Store};
use tempfile::TempDir;

/// Turns of all conversations.
const TURNS: usize = 2760;

/// Every conversation in one store; nothing where the data is not there.
fn ingested() -> Option<(TempDir, Store, Vec<Conversation>)> {
    let Some(folder) = folder() else {
        println!(
            "skipped: no LoCoMo data; set GRAINSTORE_SHARED to the folder that has data/locomo"
        );
        return None;
    };
    let conversations = NAMES.map(|name| Conversation::read(&folder, name));
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    for conversation in &conversations {
        let puts = conversation.ingest(&within(&store, "locomo")).unwrap();
        let added = conversation.turns.iter().map(|turn| PutOutcome::Added(turn.address));
        assert_eq!(puts, added.collect::<Vec<_>>());
    }
    Some((dir, store, conversations.into()))
}

fn within(store: &Store, namespace: &str) -> Session {
    let namespace = Some(namespace.to_owned());
    store.session(SessionOptions { namespace, ..SessionOptions::default() })
}

/// Each turn comes back as it was, and by its speaker in the order it was said.
fn holds(store: &Store, conversations: &[Conversation]) {
    for Conversation { namespace, turns } in conversations {
        let session = within(store, namespace);
        let mut by_speaker: BTreeMap<&str, Vec<ContentAddress>> = BTreeMap::new();
        for turn in turns {
            let blob = turn.grain.encode(Default::default()).unwrap();
            let stored = session.get(&turn.address).unwrap();
            assert_eq!(stored.blob, blob.bytes(), "{namespace} {}", turn.dia_id);
            assert!(stored.state.is_current());
            assert_eq!(session.history(&turn.address).unwrap().len(), 1);
            by_speaker.entry(&turn.speaker).or_default().insert(0, turn.address);
        }
        assert_eq!(by_speaker.len(), 2, "{namespace} is a conversation of two");
        for (speaker, said) in by_speaker {
            let found = session.history_of(speaker, SAID, None, None).unwrap();
            let found: Vec<_> = found.iter().map(|stored| stored.address).collect();
            assert_eq!(found, said, "{speaker} in {namespace}");
        }
    }
}

#[test]
fn conversations_come_back_turn_by_turn_after_reopening() {
    let Some((dir, store, conversations)) = ingested() else { return };
    let turns: usize = conversations.iter().map(|conversation| conversation.turns.len()).sum();
    assert_eq!(turns, TURNS);
    assert_eq!(store.stats().unwrap().grains, TURNS as u64);
    holds(&store, &conversations);
    store.close().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    holds(&store, &conversations);
    let puts = conversations[0].ingest(&within(&store, "locomo")).unwrap();
    assert!(puts.iter().all(PutOutcome::is_duplicate));
    assert_eq!(store.stats().unwrap().grains, TURNS as u64);
}

#[test]
fn a_session_of_one_conversation_sees_no_other() {
    let Some((_dir, store, conversations)) = ingested() else { return };
    for own in &conversations {
        let session = within(&store, &own.namespace);
        for other in &conversations {
            let addresses: Vec<_> = other.turns.iter().map(|turn| turn.address).collect();
            let seen = session.get_batch(&addresses).unwrap().into_iter().flatten().count();
            let expected = if other.namespace == own.namespace { other.turns.len() } else { 0 };
            assert_eq!(seen, expected, "{} from {}", other.namespace, own.namespace);
        }
    }
    let prefix = within(&store, "locomo:conv-2");
    assert!(!prefix.exists(&conversations[0].turns[0].address).unwrap());
}

#[test]
fn every_turn_leads_back_to_the_start_of_its_session() {
    let Some((_dir, store, conversations)) = ingested() else { return };
    let session = within(&store, "locomo");
    for Conversation { namespace, turns } in &conversations {
        let sessions: BTreeSet<_> = turns.iter().map(|turn| &turn.session).collect();
        let mut starts = 0;
        for turn in turns {
            let grain = session.get(&turn.address).unwrap().grain().unwrap();
            match grain.text("parent_message_id") {
                None => starts += 1,
                Some(parent) => {
                    let parent = session.get(&parent.parse().unwrap()).unwrap().grain().unwrap();
                    assert_eq!(parent.text("session_id"), Some(turn.session.as_str()));
                    assert!(parent.time() <= grain.time());
                }
            }
        }
        assert_eq!(starts, sessions.len(), "{namespace}");
    }
}

#[test]
fn threads_are_recalled_whole_and_in_order() {
    let Some((_dir, store, conversations)) = ingested() else { return };
    for Conversation { namespace, turns } in &conversations {
        let session = within(&store, namespace);
        let threads: BTreeSet<_> = turns.iter().map(|turn| &turn.session).collect();
        let mut recalled = 0;
        for thread in threads {
            let answer = session.ask(&format!("RECALL events THREAD \"{thread}\"")).unwrap();
            let Answer::Grains(found) = answer.answer else { panic!("{thread}") };
            let said: BTreeSet<_> = turns
                .iter()
                .filter(|turn| turn.session == *thread)
                .map(|turn| turn.address)
                .collect();
            let found_addresses = found.results.iter().map(|row| row.content_address);
            assert_eq!(found_addresses.collect::<BTreeSet<_>>(), said, "{thread}");
            assert!(found.results.is_sorted_by_key(|row| row.grain.time()), "{thread}");
            recalled += found.results.len();
        }
        assert_eq!(recalled, turns.len(), "{namespace}");
    }
}

#[test]
fn context_of_real_talk_keeps_its_budget_and_says_it_again() {
    let Some((_dir, store, conversations)) = ingested() else { return };
    for Conversation { namespace, turns } in &conversations {
        let session = within(&store, namespace);
        for budget in [60, 500, 4000] {
            let query = format!(
                "ASSEMBLE FOR \"a reply\" FROM said: (RECALL events WHERE subject = \"{}\" \
                 RECENT 200), all: (RECALL events RECENT 50) BUDGET {budget} tokens",
                turns[0].speaker
            );
            let options = cal::ExecuteOptions::at(session.now());
            let text = || session.ask_with(query.as_bytes(), &options).unwrap();
            let answer = text();
            let Answer::Assembly { formatted_context: context, .. } = &answer.answer else {
                panic!("{query}")
            };
            assert!(context.tokens <= budget, "{} of {budget}", context.tokens);
            assert!(context.tokens * 2 > budget, "{} of {budget}", context.tokens);
            assert_eq!(answer.text(), text().text());
        }
    }
}
