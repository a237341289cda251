//! Portable files put together by hand, which say what no store would write.

use grainstore::format::container::{
    Compression, ContainerEntry, ContainerPlan, ContainerWriter, ManifestEntry, PlannedEntry,
};
use grainstore::format::{ContentAddress, DecodeOptions, Encoding, Error, Value, encode_value};

/// A file of one grain; where `claims` is given, its manifest says that the grain superseded that one.
pub(super) fn of(blob: &[u8], claims: Option<&str>) -> Vec<u8> {
    let entry = ContainerEntry::read(blob.to_vec(), &DecodeOptions::default()).unwrap();
    let planned = PlannedEntry::of(blob, entry.created_at()).unwrap();
    let mut plan = ContainerPlan::new(Compression::None);
    assert!(plan.add(&planned).unwrap());
    let mut writer = ContainerWriter::new(Vec::new(), plan).unwrap();
    writer.push(blob).unwrap();
    let none = Vec::<Result<(ContentAddress, ManifestEntry), Error>>::new();
    let mut bytes = writer.finish(none).unwrap().0;
    if let Some(old) = claims {
        let by: Value = ContentAddress::of(blob).to_string().into();
        let state = [("sb".to_owned(), by), ("svt".to_owned(), 1_768_471_400_000_i64.into())];
        let manifest = [(old.to_owned(), Value::Map(state.into()))];
        bytes.truncate(bytes.len() - 32);
        bytes[3] |= 1 << 4;
        bytes.extend(encode_value(&Value::Map(manifest.into()), Encoding::MessagePack));
        // The checksum at its end is of the same kind as an address.
        let checksum = ContentAddress::of(&bytes);
        bytes.extend(checksum.as_bytes());
    }
    bytes
}
