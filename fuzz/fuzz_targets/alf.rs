//! ALF archives: no manifest, document and lines make the checks panic, and what is valid is imported into a store and
//! exported again.
//!
//! The parts are put into an archive first, so that a mutation reaches what lies behind it.
#![no_main]

use grainstore::prelude::*;
use grainstore_interop::alf::{ExportOptions, ImportOptions, export, import, validate};
use grainstore_interop::archive::{ArchiveWriter, Limits};
use grainstore_interop::Monitor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("a.alf");
    let mut writer = ArchiveWriter::create(&path).expect("it begins");
    for name in ["manifest.json", "identity.json", "memory/partitions/2026-Q1.jsonl"] {
        if let Some(part) = parts.next().filter(|part| !part.is_empty()) {
            writer.add(name, part).expect("it is added");
        }
    }
    writer.finish().expect("it is written");
    let monitor = Monitor::default();
    let found = validate(&path, Limits::default(), &monitor).expect("it is readable");
    if !found.valid {
        return;
    }
    let store = Store::open(dir.path().join("store"), &OpenOptions::new().create(true)).expect("a store");
    let session = store.session(SessionOptions::default());
    import(&session, &path, &ImportOptions::default(), &monitor).expect("what is valid is imported");
    export(&session, &path, &ExportOptions::default(), &monitor).expect("and exported");
    let again = validate(&path, Limits::default(), &monitor).expect("it is readable");
    assert!(again.valid, "{:?}", again.errors);
});
