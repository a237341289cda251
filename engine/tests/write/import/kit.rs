//! What the tests of import share: a store, grains, and files put together by hand.

use std::path::PathBuf;

use grainstore::cal::{Query, Visibility};
use grainstore::format::container::{
    Compression, ContainerEntry, ContainerPlan, ContainerWriter, ManifestEntry, PlannedEntry,
    sort_entries,
};
use grainstore::format::{DecodeOptions, Encoding, Error, SigningKey, Value, encode_value, sign};
use grainstore::{
    ContentAddress, EpochMs, ExportOptions, Grain, GrainState, ImportOptions, ImportReport,
    OpenOptions, PageOptions, Result, Session, SessionOptions, Store, StoreStats,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A store with its operator.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
    pub(crate) session: Session,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store =
            Store::open(dir.path().join("store"), &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        Self { dir, store, session }
    }

    pub(crate) fn within(&self, namespace: &str) -> Session {
        let namespace = Some(namespace.to_owned());
        self.store.session(SessionOptions { namespace, ..SessionOptions::default() })
    }

    /// Imports a file of these entries and this manifest.
    pub(crate) fn import(&self, entries: &[Vec<u8>], stated: &[Stated]) -> Result<ImportReport> {
        let file = self.file("in.mg", entries, stated);
        self.session.import([file], &ImportOptions::default())
    }

    pub(crate) fn file(&self, name: &str, entries: &[Vec<u8>], stated: &[Stated]) -> PathBuf {
        let file = self.dir.path().join(name);
        std::fs::write(&file, container(entries, stated)).unwrap();
        file
    }

    pub(crate) fn state(&self, address: &ContentAddress) -> GrainState {
        self.session.get(address).unwrap().state
    }

    /// That nothing is wrong with the store.
    /// The figures of the store once its full text has followed it: nobody waits for the background.
    pub(crate) fn figures(&self) -> StoreStats {
        let question = Query::default().searching("anything");
        self.session.query(&question, &PageOptions::default()).unwrap();
        self.store.stats().unwrap()
    }

    pub(crate) fn verify(&self) {
        let verified = self.store.verify(true).unwrap();
        assert!(verified.ok, "{:#?}", verified.problems);
    }

    /// Operation and decision of the entries of the audit log from this one on.
    pub(crate) fn audit(&self, from: u64) -> Vec<(String, String)> {
        let entries = self.session.audit(Some(from - 1), 100).unwrap();
        entries.into_iter().map(|entry| (entry.operation, entry.decision)).collect()
    }

    /// Every grain there is: address, blob and state, in the order of the addresses.
    pub(crate) fn everything(&self) -> Vec<(ContentAddress, Vec<u8>, GrainState)> {
        let page = PageOptions { limit: 1000, ..PageOptions::default() };
        let all = Visibility { superseded: true, contradicted: true, retracted: true };
        let query = Query::default().seeing(all);
        let answer = self.session.query(&query, &page).unwrap();
        let found = answer.results.iter().map(|found| {
            let stored = self.session.get(&found.content_address).unwrap();
            (stored.address, stored.blob, stored.state)
        });
        let mut found: Vec<_> = found.collect();
        found.sort_unstable_by_key(|(address, ..)| *address);
        found
    }

    pub(crate) fn export(&self, name: &str, compression: Compression) -> (PathBuf, Vec<u8>) {
        let file = self.dir.path().join(name);
        let how = ExportOptions { compression, ..ExportOptions::default() };
        self.session.export(&file, &Query::default(), &how).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        (file, bytes)
    }
}

/// What a manifest says of a grain.
pub(crate) type Stated = (ContentAddress, ManifestEntry);

pub(crate) fn state(address: ContentAddress, state: GrainState) -> Stated {
    (address, ManifestEntry { state, ..ManifestEntry::default() })
}

pub(crate) fn superseded(old: ContentAddress, by: ContentAddress, at: i64) -> Stated {
    let state_of = GrainState {
        superseded_by: Some(by),
        system_valid_to: Some(EpochMs::new(at)),
        ..GrainState::default()
    };
    state(old, state_of)
}

/// A grain of these fields, as JSON.
pub(crate) fn grain(fields: &str) -> Grain {
    Grain::from_json(&format!("{{{fields}}}")).unwrap()
}

/// A belief with more fields, each behind a comma.
pub(crate) fn belief(object: &str, created_at: i64, more: &str) -> Grain {
    grain(&format!(
        r#""type": "belief", "subject": "alice", "relation": "likes", "object": "{object}",
           "confidence": 1, "created_at": {created_at}{more}"#
    ))
}

/// One that names its parents.
pub(crate) fn child(of: &[ContentAddress], object: &str, created_at: i64, more: &str) -> Grain {
    let parents: Vec<_> = of.iter().map(|parent| format!("\"{parent}\"")).collect();
    belief(object, created_at, &format!(r#", "derived_from": [{}]{more}"#, parents.join(",")))
}

/// The same grain about somebody else, so that it is nobody's next version.
pub(crate) fn about(subject: &str, grain: &Grain) -> Grain {
    let mut fields = grain.fields().clone();
    fields.insert("subject".to_owned(), subject.into());
    Grain::from_fields(fields).unwrap()
}

pub(crate) fn policy(fields: &str) -> String {
    format!(r#", "invalidation_policy": {{{fields}}}"#)
}

pub(crate) fn blob(grain: &Grain) -> Vec<u8> {
    grain.encode(Encoding::MessagePack).unwrap().into_bytes()
}

pub(crate) fn address(grain: &Grain) -> ContentAddress {
    grain.encode(Encoding::MessagePack).unwrap().address()
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::ed25519_from_seed(&[seed; 32])
}

/// A grain in an envelope, and its address.
pub(crate) fn signed(grain: &Grain, seed: u8) -> (Vec<u8>, ContentAddress) {
    let envelope = sign(&blob(grain), &key(seed), None).unwrap();
    let address = envelope.address();
    (envelope.into_bytes(), address)
}

/// A container of these entries, each once, in the order of containers.
pub(crate) fn container(entries: &[Vec<u8>], stated: &[Stated]) -> Vec<u8> {
    let options = DecodeOptions::default();
    let planned = |entry: &Vec<u8>| {
        let read = ContainerEntry::read(entry.clone(), &options).unwrap();
        PlannedEntry::of(entry, read.created_at()).unwrap()
    };
    let mut order: Vec<_> = entries.iter().map(planned).collect();
    sort_entries(&mut order).unwrap();
    let mut plan = ContainerPlan::new(Compression::None);
    order.iter().for_each(|entry| assert!(plan.add(entry).unwrap()));
    let mut writer = ContainerWriter::new(Vec::new(), plan).unwrap();
    for wanted in &order {
        writer.push(entries.iter().find(|entry| planned(entry) == *wanted).unwrap()).unwrap();
    }
    let bytes = writer.finish(Vec::<Result<Stated, Error>>::new()).unwrap().0;
    if stated.is_empty() { bytes } else { with_manifest(bytes, stated) }
}

/// The same container with a manifest, which may speak of any grain.
fn with_manifest(mut bytes: Vec<u8>, stated: &[Stated]) -> Vec<u8> {
    let entries = stated.iter().map(|(address, carried)| {
        let ManifestEntry { state, access_count, hold_lifted, .. } = carried.clone();
        let held = state.held.then_some(true).or(hold_lifted.then_some(false));
        let status = state.verification_status;
        let fields: [(&str, Option<Value>); 8] = [
            ("sb", state.superseded_by.map(|by| by.to_string().into())),
            ("svt", state.system_valid_to.map(|at| at.get().into())),
            ("vstatus", (status != Default::default()).then(|| status.name().into())),
            ("ct", state.contradicted.then_some(true.into())),
            ("x_held", held.map(Value::Bool)),
            ("x_review", state.needs_review.then_some(true.into())),
            ("ac", (access_count > 0).then(|| access_count.into())),
            ("x_of_others", Some("passed over".into())),
        ];
        let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        (address.to_string(), Value::Map(fields.collect()))
    });
    let manifest = Value::Map(entries.collect());
    bytes.truncate(bytes.len() - 32);
    bytes[3] |= 1 << 4;
    bytes.extend(encode_value(&manifest, Encoding::MessagePack));
    sealed(bytes)
}

/// With the checksum of all of it.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = Sha256::digest(&bytes);
    bytes.extend(checksum);
    bytes
}

pub(crate) fn counts(imported: &ImportReport) -> (u64, u64, u64, u64) {
    (imported.added, imported.duplicate, imported.refused, imported.conflict_count)
}

/// The code something is refused with.
pub(crate) fn code<T>(outcome: Result<T>) -> &'static str {
    outcome.map_or_else(|error| error.code(), |_| "OK")
}
