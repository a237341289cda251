//! What the tests of containers share: grains, whole containers, and ones put together by hand.

use grainstore_format::container::{
    Compression, Container, ContainerPlan, ContainerWriter, ManifestEntry, PlannedEntry,
    sort_entries,
};
use grainstore_format::{ContentAddress, DecodeOptions, Encoding, Error, Grain};
use sha2::{Digest, Sha256};

/// The blob of a belief that was created in this millisecond.
pub(crate) fn blob(created_at: i64, encoding: Encoding) -> Vec<u8> {
    grain(created_at).encode(encoding).unwrap().into_bytes()
}

pub(crate) fn grain(created_at: i64) -> Grain {
    let json = format!(
        r#"{{"type": "belief", "subject": "s{created_at}", "relation": "r", "object": "o",
            "confidence": 1, "created_at": {created_at}}}"#
    );
    Grain::from_json(&json).unwrap()
}

/// So many blobs, a second apart.
pub(crate) fn blobs(count: i64) -> Vec<Vec<u8>> {
    (1..=count).map(|n| blob(n * 1000, Encoding::MessagePack)).collect()
}

/// A container of these entries, put in order, with this manifest.
pub(crate) fn container(
    entries: &[Vec<u8>],
    manifest: &[(ContentAddress, ManifestEntry)],
    compression: Compression,
) -> Vec<u8> {
    let options = DecodeOptions::default();
    let mut planned: Vec<_> = entries
        .iter()
        .map(|entry| {
            let read = grainstore_format::container::ContainerEntry::read(entry.clone(), &options)
                .unwrap();
            PlannedEntry::of(entry, read.created_at()).unwrap()
        })
        .collect();
    sort_entries(&mut planned).unwrap();
    let mut plan =
        ContainerPlan::new(compression).with_manifest(u32::try_from(manifest.len()).unwrap());
    for entry in &planned {
        assert!(plan.add(entry).unwrap());
    }
    let mut writer = ContainerWriter::new(Vec::new(), plan).unwrap();
    for planned in &planned {
        let same = |entry: &&Vec<u8>| PlannedEntry::of(entry, planned.created_at) == Ok(*planned);
        writer.push(entries.iter().find(same).unwrap()).unwrap();
    }
    let mut manifest = manifest.to_vec();
    manifest.sort_by_key(|(address, _)| *address);
    let manifest = manifest.into_iter().map(Ok::<_, Error>);
    writer.finish(manifest).unwrap().0
}

/// A container put together by hand, its checksum right whatever else is.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) flags: u8,
    pub(crate) count: u32,
    pub(crate) compression: u8,
    pub(crate) offsets: Vec<u32>,
    pub(crate) region: Vec<u8>,
    pub(crate) manifest: Vec<u8>,
}

impl Raw {
    /// A valid one of these entries, uncompressed.
    pub(crate) fn of(entries: &[Vec<u8>]) -> Self {
        let count = u32::try_from(entries.len()).unwrap();
        let mut offsets = Vec::new();
        let mut region: Vec<u8> = Vec::new();
        for entry in entries {
            offsets.push(16 + 4 * count + u32::try_from(region.len()).unwrap());
            region.extend(entry);
        }
        Self { flags: 0b11, count, compression: 0, offsets, region, manifest: Vec::new() }
    }

    /// The same with a region that is packed like this already.
    pub(crate) fn packed(mut self, compression: u8, region: Vec<u8>) -> Self {
        let front = 16 + 4 * self.count;
        self.offsets.iter_mut().for_each(|offset| *offset -= front);
        Self { flags: self.flags | 0b100, compression, region, ..self }
    }

    pub(crate) fn with_manifest(self, manifest: &[u8]) -> Self {
        Self { flags: self.flags | 0b1_0000, manifest: manifest.to_vec(), ..self }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0x4d, 0x47, 1, self.flags];
        bytes.extend(self.count.to_be_bytes());
        bytes.extend([1, self.compression, 0, 0, 0, 0, 0, 0]);
        self.offsets.iter().for_each(|offset| bytes.extend(offset.to_be_bytes()));
        bytes.extend(&self.region);
        bytes.extend(&self.manifest);
        seal(bytes)
    }
}

/// The checksum behind what it covers.
pub(crate) fn seal(mut covered: Vec<u8>) -> Vec<u8> {
    let checksum = Sha256::digest(&covered);
    covered.extend(checksum);
    covered
}

/// Everything a container holds.
pub(crate) type Held = (Vec<Vec<u8>>, Vec<(ContentAddress, ManifestEntry)>);

/// Reads everything there is, and checks that all ways to it agree.
pub(crate) fn read(bytes: &[u8]) -> Result<Held, Error> {
    let container = Container::open(bytes, &DecodeOptions::default())?;
    let entries = container.entries()?.collect::<Result<Vec<_>, _>>()?;
    assert_eq!(entries.len(), container.len() as usize);
    let manifest = container.manifest().into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
    container.verify()?;
    for (number, entry) in entries.iter().enumerate() {
        let alone = container.entry(u32::try_from(number).unwrap())?;
        assert_eq!(&alone, entry, "grain {number}");
        assert_eq!(entry.address(), ContentAddress::of(entry.blob()));
    }
    Ok((entries.iter().map(|entry| entry.bytes().to_vec()).collect(), manifest))
}

/// The code a container is refused with, and where.
pub(crate) fn refusal(bytes: &[u8]) -> (&'static str, String) {
    match read(bytes) {
        Ok((entries, _)) => panic!("{} grains were read", entries.len()),
        Err(error) => (error.code(), error.place().to_owned()),
    }
}
