//! Tests of states: erased terms leave the bytes, damage is detected, folds of another state are refused.

use super::clause::{Occur, TermMatch};
use super::page_tag::{MAX_PAGE_BYTES, TAG_BYTES, checksum};
use super::segment::Segment;
use super::segment_file::{FOOTER_BYTES, FOOTER_PAGE};
use super::test_kit::*;
use super::{InvertedIndex, MAX_TAIL_DOCUMENTS, MAX_TAIL_SIZE, Manifest};
use crate::error::{Error, ErrorKind, Result};
use crate::posting::Sequence;

/// Returns `true` if a term is in any of the files.
fn holds(store: &Store, term: &str) -> bool {
    store.files.values().any(|file| {
        let segment = Segment::open_memory(file.clone(), &checksum).unwrap();
        segment.find_term(term).unwrap().is_some()
    })
}

fn small() -> Store {
    let mut store = Store::new();
    for sequence in 0..40 {
        let own = format!("own{sequence}");
        store.set(sequence, words(&["same", &own, "words"], 2));
    }
    store
}

#[test]
fn what_is_erased_has_left_all_files_after_the_next_fold() {
    let mut store = small();
    store.fold(Vec::new());
    store.remove(7, false);
    store.remove(9, true);
    assert!(store.texts.is_due());
    assert!(holds(&store, "own9"));
    store.fold(Vec::new());
    assert!(!holds(&store, "own9"));
    assert!(holds(&store, "own8"));
    assert!(!store.texts.is_due());
    store.check(&any(&["own9", "same"]));
}

#[test]
fn what_is_erased_while_a_fold_runs_leaves_with_the_next() {
    let mut store = small();
    let gone = Change { sequence: 9, joined: None, erase: true };
    store.fold(vec![gone]);
    assert!(store.texts.is_due());
    store.reopen();
    assert!(store.texts.is_due());
    store.fold(Vec::new());
    assert!(!holds(&store, "own9"));
    store.check(&any(&["own9", "same"]));
}

#[test]
fn words_that_were_replaced_leave_when_their_grain_is_erased() {
    let mut store = small();
    store.fold(Vec::new());
    store.set(9, words(&["new"], 1));
    store.remove(9, true);
    store.fold(Vec::new());
    assert!(!holds(&store, "own9"));
}

#[test]
fn a_snapshot_stays_as_it_is() {
    let mut store = small();
    store.fold(Vec::new());
    store.set(100, words(&["same"], 1));
    let (before, truth) = (store.texts.clone(), store.truth(&any(&["same"])));
    store.remove(3, false);
    store.set(100, words(&["other"], 1));
    store.set(101, words(&["same", "same"], 1));
    store.fold(Vec::new());
    let mut judge = |sequence: Sequence| Ok(Some(address(sequence.get())));
    let hits = before.prepare(&any(&["same"])).unwrap().search(1_000, None, &mut judge).unwrap();
    assert_eq!(bits(&hits), bits(&truth));
}

#[test]
fn equal_documents_make_equal_files_whatever_their_past() {
    let mut one = small();
    one.fold(Vec::new());
    let mut other = Store::new();
    for sequence in (0..40).rev() {
        other.set(sequence, words(&["before"], 1));
        let own = format!("own{sequence}");
        other.set(sequence, words(&["same", &own, "words"], 2));
    }
    other.set(77, words(&["gone"], 3));
    other.remove(77, false);
    other.fold(Vec::new());
    assert_eq!(one.files, other.files);
}

#[test]
fn a_fold_is_adopted_once_and_by_its_own_state() {
    let mut store = small();
    let fold = store.texts.freeze(b"").unwrap();
    let later = store.texts.freeze(b"").unwrap();
    let folded = later.run().unwrap();
    assert!(store.texts.adopt(fold.run().unwrap()).is_err());
    store.texts.adopt(folded).unwrap();
    assert!(store.texts.freeze(&[0; 129]).is_err());
    store.check(&any(&["own3", "same"]));
}

#[test]
fn a_judge_that_fails_ends_the_search_with_its_error() {
    let mut store = small();
    store.fold(Vec::new());
    store.set(200, words(&["same"], 1));
    for question in [any(&["own3"]), any(&["same", "own3"]), any(&["same"])] {
        let mut judge = |_| Err(Error::full());
        let error =
            store.texts.prepare(&question).unwrap().search(5, None, &mut judge).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Integrity);
    }
}

#[test]
fn words_unknown_to_every_document_answer_nothing() {
    let mut store = small();
    for _ in 0..2 {
        let must = [clause(Occur::Must, word("nowhere")), clause(Occur::Should, word("same"))];
        let not = [clause(Occur::MustNot, word("own1"))];
        assert!(store.ask(&must.into_iter().collect(), 9, None, |_| true).is_empty());
        assert!(store.ask(&not.into_iter().collect(), 9, None, |_| true).is_empty());
        assert!(store.ask(&any(&[]), 9, None, |_| true).is_empty());
        store.fold(Vec::new());
    }
}

/// Opens a manifest and its one file.
fn open(manifest: &[u8], file: &[u8]) -> Result<InvertedIndex> {
    InvertedIndex::open(&Manifest::decode(manifest)?, &mut |_| Ok(file.to_vec()))
}

#[test]
fn every_flipped_byte_and_every_cut_of_the_files_is_found() {
    let mut store = small();
    store.fold(Vec::new());
    store.remove(4, false);
    store.fold(Vec::new());
    let (manifest, file) = (store.texts.manifest(), store.files.values().next().unwrap().clone());
    assert!(open(&manifest, &file).is_ok());
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1 << (at % 8);
        assert_eq!(open(&manifest, &damaged).unwrap_err().kind(), ErrorKind::Integrity);
        assert!(open(&manifest, &file[..at]).is_err());
    }
    for at in 0..manifest.len() {
        let mut damaged = manifest.clone();
        damaged[at] ^= 1 << (at % 8);
        assert_eq!(open(&damaged, &file).unwrap_err().kind(), ErrorKind::Integrity);
        assert!(open(&manifest[..at], &file).is_err());
    }
    assert!(open(&manifest, &[]).is_err());
}

#[test]
fn damage_in_a_file_is_found_by_who_reads_there_and_declares_the_index_failed() {
    let mut store = small();
    store.fold(Vec::new());
    store.reopen();
    assert_eq!(store.ask(&any(&["same"]), 99, None, |_| true).len(), 40);
    let (held, most) = (store.cache.bytes(), store.cache.capacity());
    assert!(held > 0 && held <= most, "{held} {most}");
    store.cache.clear();
    assert_eq!(store.cache.bytes(), 0);
    let name = store.texts.file_names()[0].clone();
    let segment = store.files.values().next().unwrap();
    let segment = Segment::open_memory(segment.clone(), &checksum).unwrap();
    let forward = segment.forward_start() + 100;
    store.disk.files.lock().unwrap().get_mut(&name).unwrap()[forward] ^= 1;
    store.reopen();
    assert!(!store.texts.has_failed());
    let mut judge = |sequence: Sequence| Ok(Some(address(sequence.get())));
    let asked = any(&["same", "own0", "own1", "words"]);
    let found = store.texts.prepare(&asked).and_then(|asked| asked.search(9, None, &mut judge));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Integrity);
    assert!(store.texts.has_failed());
}

#[test]
fn a_segment_that_is_read_much_is_kept_whole_where_there_is_room() {
    let mut store = small();
    for sequence in 40..2_000 {
        let own = format!("own{sequence}");
        store.set(sequence, words(&["same", &own, "words"], 2));
    }
    store.fold(Vec::new());
    let size = usize::try_from(store.texts.stats().bytes).unwrap();
    assert!(size > 16 * MAX_PAGE_BYTES, "{size}");
    let read = |store: &Store| {
        for own in (0..2_000).step_by(50) {
            assert_eq!(store.ask(&any(&[&format!("own{own}")]), 9, None, |_| true).len(), 1);
        }
        store.cache.bytes()
    };
    store.reopen();
    assert!(read(&store) <= 4 * MAX_PAGE_BYTES);
    store.cache.set_capacity(2 * size);
    store.reopen();
    let whole = read(&store);
    assert!(whole > size / 5 * 4 && whole <= size, "{whole} of {size}");
    // Three quarters are for what is whole: a second one does not fit beside it, and has the room of pages.
    let first = store.texts.clone();
    store.reopen();
    let both = read(&store);
    assert!(both > whole && both < 2 * whole, "{both} of {whole}");
    assert!(both <= store.cache.capacity());
    // It gives way to a smaller cache, and is whole again once there is room.
    store.cache.set_capacity(whole);
    assert!(store.cache.bytes() <= whole - whole / 4, "{}", store.cache.bytes());
    assert!(read(&store) <= whole);
    drop(first);
    store.cache.set_capacity(2 * size);
    store.cache.clear();
    assert_eq!(store.cache.bytes(), 0);
    assert_eq!(read(&store), whole);
    store.cache.clear();
    assert_eq!(store.cache.bytes(), 0);
    store.texts = Store::new().texts;
    assert_eq!(store.cache.bytes(), 0);
}

#[test]
fn a_merge_keeps_no_segment_whole_that_it_replaces() {
    let mut store = small();
    for sequence in 40..2_000 {
        store.set(sequence, words(&["same", &format!("own{sequence}")], 2));
    }
    store.fold(Vec::new());
    let size = usize::try_from(store.texts.stats().bytes).unwrap();
    store.cache.set_capacity(4 * size);
    store.reopen();
    // Who reads the segment still has it after the merge.
    let before = store.texts.clone();
    store.remove(7, true);
    store.fold(Vec::new());
    let read = store.cache.bytes();
    assert!(read > size / 8, "the merge read {read} bytes of {size}");
    assert_eq!(store.cache.whole_bytes(), 0);
    drop(before);
}

#[test]
fn a_disk_that_cannot_be_read_for_a_while_costs_answers_and_no_index() {
    let mut store = small();
    store.fold(Vec::new());
    store.reopen();
    store.disk.unreadable.store(true, std::sync::atomic::Ordering::Relaxed);
    let asked = any(&["same", "own0"]);
    let mut judge = |sequence: Sequence| Ok(Some(address(sequence.get())));
    let found = store.texts.prepare(&asked).and_then(|asked| asked.search(9, None, &mut judge));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Io);
    assert!(!store.texts.has_failed());
    store.disk.unreadable.store(false, std::sync::atomic::Ordering::Relaxed);
    store.check(&asked);
}

#[test]
fn where_no_file_can_be_written_a_segment_is_made_in_memory() {
    let mut store = small();
    store.disk.full.store(true, std::sync::atomic::Ordering::Relaxed);
    store.fold(Vec::new());
    let name = store.texts.file_names()[0].clone();
    assert!(store.texts.file(&name).is_some() && store.disk.files.lock().unwrap().is_empty());
    store.check(&any(&["own3", "same"]));
    store.disk.full.store(false, std::sync::atomic::Ordering::Relaxed);
    store.set(70, words(&["same", "late"], 1));
    store.fold(Vec::new());
    let resident = store.texts.stats().resident;
    assert!(resident < store.texts.stats().bytes, "{:?}", store.texts.stats());
    store.check(&any(&["own3", "same", "late"]));
}

#[test]
fn headers_that_lie_under_a_true_checksum_are_found_without_large_allocations() {
    let mut store = small();
    store.fold(Vec::new());
    let file = store.files.values().next().unwrap().clone();
    let segment = Segment::open_memory(file.clone(), &checksum).unwrap();
    let body = usize::try_from(segment.size()).unwrap() - FOOTER_BYTES;
    let body = body / (MAX_PAGE_BYTES + TAG_BYTES) * MAX_PAGE_BYTES
        + (body % (MAX_PAGE_BYTES + TAG_BYTES)).saturating_sub(TAG_BYTES);
    for at in 0..FOOTER_BYTES - TAG_BYTES {
        let mut lying = file[..file.len() - TAG_BYTES].to_vec();
        let footer = file.len() - FOOTER_BYTES;
        lying[footer + at] ^= 0xff;
        lying.extend(checksum(FOOTER_PAGE, &lying[body..]));
        // The sum of the lengths is the only value that no other byte of the file confirms.
        let opened = Segment::open_memory(lying, &checksum);
        assert_eq!(opened.is_err(), !(16..24).contains(&at), "{at}");
    }
}

#[test]
fn a_tail_is_full_of_many_documents_or_of_many_words() {
    let mut texts = InvertedIndex::new(1).unwrap();
    let all: Vec<String> = (0..50_000).map(|at| format!("w{at}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let large = words(&all, 1);
    assert_eq!(large.size(), 100_000);
    let mut count = 0;
    while !texts.is_due() {
        texts.set(Sequence::new(count), Some(large.clone())).unwrap();
        count += 1;
        assert_eq!(texts.stats().tail_size, 100_000 * count);
    }
    assert_eq!(count, MAX_TAIL_SIZE.div_ceil(100_000));
    texts.set(Sequence::new(0), Some(words(&["a", "b"], 1))).unwrap();
    assert!(!texts.is_due(), "one has become small");
    texts.set(Sequence::new(1), None).unwrap();
    assert_eq!(texts.stats().tail_size, 100_000 * (count - 2) + 4);
    let mut texts = InvertedIndex::new(1).unwrap();
    for at in 0..MAX_TAIL_DOCUMENTS {
        assert!(!texts.is_due());
        texts.set(Sequence::new(at), Some(words(&["a"], 1))).unwrap();
    }
    assert!(texts.is_due());
}

/// Documents of which the odd ones are hidden, one hidden word among them: in segments, deleted, and in the tail.
fn with_hidden(word: &str) -> Store {
    let mut store = Store::new();
    for sequence in 0..24 {
        let hidden = [7, 9, 21].contains(&sequence);
        let own = ["own1", "own2", "none", "none"][usize::try_from(sequence % 4).unwrap()];
        store.set(sequence, words(&["same", if hidden { word } else { "plain" }, own], 2));
        if sequence % 10 == 8 {
            store.fold(Vec::new());
        }
    }
    store.remove(7, false);
    store
}

#[test]
fn a_rare_hidden_word_changes_no_hit_that_is_seen_and_no_ceiling() {
    let [one, other] = ["ownx", "elsewhere"].map(with_hidden);
    let even = |sequence: Sequence| sequence.get().is_multiple_of(2);
    let asks = [
        any(&["same", "ownx"]),
        [clause(Occur::Should, TermMatch::Prefix("own".into()))].into_iter().collect(),
        [clause(Occur::Must, TermMatch::Fuzzy("own1".into(), 1))].into_iter().collect(),
        [
            clause(Occur::Should, word("same")),
            clause(Occur::MustNot, TermMatch::Prefix("ownx".into())),
        ]
        .into_iter()
        .collect(),
    ];
    let told = |store: &Store, asked, seen| {
        let asked = std::slice::from_ref(asked);
        let search = store.texts.prepare_cancellable(asked, None, seen, || false).unwrap();
        let mut judge = |at: Sequence| Ok(even(at).then(|| address(at.get())));
        let hits = search.search(usize::MAX, None, &mut judge).unwrap();
        assert!(!hits.is_empty());
        (bits(&hits), search.max_score().to_bits())
    };
    for asked in &asks {
        assert_eq!(told(&one, asked, Some(&even)), told(&other, asked, Some(&even)), "{asked:?}");
    }
    for asked in &asks[..3] {
        assert_ne!(told(&one, asked, None), told(&other, asked, None), "{asked:?}");
    }
}
