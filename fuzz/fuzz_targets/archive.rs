//! ZIP archives: no bytes make reading panic, or give more than the archive announced.
#![no_main]

use std::io::{Read, Seek, Write};

use grainstore_interop::archive::{Archive, Limits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).and_then(|()| file.rewind()).expect("it is written");
    let limits = Limits { inflated_bytes: 1 << 20, ..Limits::default() };
    let Ok(archive) = Archive::of(file, limits) else { return };
    let mut names = std::collections::HashSet::new();
    let mut all = 0;
    for entry in archive.entries() {
        assert!(names.insert(entry.name()), "two entries have one name");
        assert!(entry.name().split('/').all(|part| !matches!(part, "" | "." | "..")));
        all += entry.size_bytes();
        let Ok(reader) = archive.reader(entry) else { continue };
        let mut read = Vec::new();
        if reader.take(2 << 20).read_to_end(&mut read).is_ok() {
            assert_eq!(read.len() as u64, entry.size_bytes());
        }
    }
    assert!(all <= limits.inflated_bytes);
});
