//! The power is cut while a store is moved to another model: one of the two serves, and has a vector of
//! every grain.

use std::sync::Arc;
use std::time::Duration;

use grainstore_format::{BeliefBuilder, EpochMs};
use grainstore_index::Sequence;

use super::disk::{Cut, Disk, Event, Image};
use super::power_cut::replay;
use super::{START_MS, assert_no_writer_panicked, clock_at, open};
use crate::search::embed::{Embedder, Metric, Vector};
use crate::{OpenOptions, Result, SessionOptions, Store};

/// Grains: more than an embedder is given at once.
const GRAINS: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes every text for the same.
struct Flat(&'static str);

impl Embedder for Flat {
    fn model(&self) -> &str {
        self.0
    }

    fn dimension(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>> {
        let one = || Ok(Vector::new(vec![1.0, 0.5])?);
        texts.iter().map(|_| one()).collect()
    }
}

fn embedding(disk: &Disk, model: &'static str) -> Store {
    let options = OpenOptions::new().clock(clock_at(START_MS));
    let options = options.embedder(Arc::new(Flat(model)), Metric::Cosine);
    Store::on_backends(|| disk.truth(), || disk.index(), &options).unwrap()
}

/// The model that serves on a disk. It has a vector of every grain.
fn serving_on(image: Image) -> String {
    let store = open(&Disk::new(image), &clock_at(2 * START_MS)).unwrap();
    let verified = store.verify(false).unwrap();
    assert!(verified.ok, "{:?}", verified.problems);
    let view = store.inner().view().unwrap();
    let model = view.serving_space().unwrap().unwrap().model().to_owned();
    for at in 1..=GRAINS {
        assert!(view.has_vector(Sequence::new(at), &model).unwrap(), "{model}: place {at}");
    }
    model
}

#[test]
fn whenever_the_power_goes_a_model_serves_that_has_every_grain() {
    let disk = Disk::default();
    let store = embedding(&disk, "former");
    let session = store.session(SessionOptions::default());
    for number in 0..GRAINS {
        let name = format!("subject {number}");
        let belief = BeliefBuilder::new(EpochMs::new(START_MS), name, "likes", "tea", 1.0).build();
        session.put(belief.unwrap()).unwrap();
    }
    assert!(store.wait_for_vectors(PATIENCE).unwrap());
    drop(session);
    store.close().unwrap();
    let image = disk.live();
    let disk = Disk::recording(image.clone());
    let store = embedding(&disk, "new");
    assert!(store.wait_for_vectors(PATIENCE).unwrap());
    store.close().unwrap();
    let (mut points, mut served) = (0_u64, Vec::new());
    replay(&image, &disk.story(), |event, moment| {
        if matches!(event, Some(Event::Synced(_)) | None) {
            points += 1;
            for cut in [Cut::Dropped, Cut::Torn(points), Cut::Applied] {
                served.push(serving_on(cut.image(moment.synced, moment.unsynced)));
            }
        }
    });
    assert_eq!(served.first().map(String::as_str), Some("former"));
    assert_eq!(served.last().map(String::as_str), Some("new"));
    assert_no_writer_panicked();
}
