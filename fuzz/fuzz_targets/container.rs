//! Containers: no bytes make reading panic, and what is read is written and read again the same.
//!
//! The checksum is put right first, so that a mutation reaches what lies behind it.
#![no_main]

use grainstore_format::container::{Container, ContainerPlan, ContainerWriter, PlannedEntry};
use grainstore_format::{DecodeOptions, Error};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

fuzz_target!(|bytes: &[u8]| {
    let sealed = [bytes, Sha256::digest(bytes).as_slice()].concat();
    let Ok(container) = Container::open(sealed.as_slice(), &DecodeOptions::default()) else {
        return;
    };
    let Ok(entries) =
        container.entries().and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
    else {
        return;
    };
    for (number, entry) in (0..).zip(&entries) {
        assert_eq!(container.entry(number).as_ref(), Ok(entry));
    }
    let manifest = container.manifest().into_iter().flatten();
    let Ok(manifest) = manifest.collect::<Result<Vec<_>, _>>() else { return };
    if manifest.len() > entries.len() {
        return;
    }
    let mut plan = ContainerPlan::new(container.compression());
    if container.is_deduplicated() {
        plan = plan.assume_distinct();
    }
    for entry in &entries {
        let planned = PlannedEntry::of(entry.bytes(), entry.created_at());
        assert_eq!(plan.add(&planned.expect("what was read can be planned")), Ok(true));
    }
    let plan =
        plan.with_manifest(u32::try_from(manifest.len()).expect("as many as grains at most"));
    let mut writer = ContainerWriter::new(Vec::new(), plan).expect("what was read can be written");
    for entry in &entries {
        writer.push(entry.bytes()).expect("as it was planned");
    }
    let (again, _) = writer.finish(manifest.iter().cloned().map(Ok::<_, Error>)).expect("whole");
    let again = Container::open(again, &DecodeOptions::default()).expect("what was written opens");
    let same = again.entries().expect("it has grains").map(|entry| entry.expect("each is there"));
    assert!(same.eq(entries));
    let same = again.manifest().into_iter().flatten().map(|entry| entry.expect("each is there"));
    assert!(same.eq(manifest));
});
