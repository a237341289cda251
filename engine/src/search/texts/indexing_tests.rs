//! Tests of how much is held at once while the truth is followed.

use grainstore_index::text::DocumentTerm;
use tempfile::TempDir;

use super::*;
use crate::{Grain, OpenOptions, SessionOptions, Store};

#[test]
fn few_documents_of_many_words_are_remembered_as_little_as_many_of_few() {
    let document = |words: usize| {
        let word = |at: usize| DocumentTerm {
            term: format!("word{at}").into(),
            weight: 1,
            lent: 0,
            places: [u32::try_from(at).unwrap()].into(),
        };
        Arc::new((0..words).map(word).collect::<Document>())
    };
    let (large, small) = (document(50_000), document(1));
    assert_eq!((large.size(), small.size()), (100_000, 2));
    let (by_size, by_count) = (MAX_CACHED_SIZE + large.size(), MAX_CACHED_DOCUMENTS * small.size());
    for (document, rounds, most) in [(&large, 40, by_size), (&small, 20_000, by_count)] {
        let mut cache = DocumentCache::default();
        for at in 0..rounds {
            cache.cache_document(Sequence::new(at), document);
            assert!(cache.size <= most, "{at}: {}", cache.size);
        }
        let held: usize = cache.documents.values().map(|document| document.size()).sum();
        assert_eq!(cache.size, held);
    }
}

#[test]
fn a_step_ends_where_its_grains_have_too_many_bytes() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let grain = |at: usize| {
        let json = format!(
            r#"{{"type": "belief", "subject": "s{at}", "relation": "r", "object": "{}",
                "confidence": 0.5, "created_at": 1000}}"#,
            "tea ".repeat(250)
        );
        Grain::from_json(&json).unwrap()
    };
    session.put_batch((0..20).map(grain)).unwrap();
    let view = session.view().unwrap();
    let wording = store.inner().library().settings();
    let steps = |grains: u64, bytes: usize| {
        let (mut at, mut reached) = (TextIndexPosition::default(), Vec::new());
        while !at.is_up_to_date(&view).unwrap() {
            let step = StepLimits { grains, bytes };
            let (next, changes) = at
                .follow(&view, (step, BTreeSet::new()), wording, &mut DocumentCache::default())
                .unwrap();
            assert_eq!(changes.len() as u64, next.sequence - at.sequence);
            at = next;
            reached.push(at.sequence);
        }
        reached
    };
    assert_eq!(steps(512, 1 << 20), [20]);
    assert_eq!(steps(8, 1 << 20), [8, 16, 20]);
    // Each has a little over a thousand.
    assert_eq!(steps(512, 5_500), [5, 10, 15, 20]);
    assert_eq!(steps(512, 0), (1..=20).collect::<Vec<_>>(), "a grain at a time at the least");
}
