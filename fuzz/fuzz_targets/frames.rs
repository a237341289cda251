//! Frames: no stream makes reading panic, and what is read is written as it came.
#![no_main]

use grainstore_format::container::{FrameReader, FrameWriter};
use grainstore_format::{DecodeOptions, DeviceProfile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut reader = FrameReader::new(bytes, DecodeOptions::default());
    let mut writer = FrameWriter::new(Vec::new(), DeviceProfile::EXTENDED);
    for entry in reader.by_ref() {
        let Ok(entry) = entry else { return };
        writer.push(entry.bytes()).expect("what was read fits into a frame");
    }
    let rest = reader.into_inner();
    let again = writer.finish().expect("memory takes it");
    assert_eq!([again.as_slice(), rest].concat(), bytes);
});
