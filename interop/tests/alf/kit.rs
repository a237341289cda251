//! Archives as somebody else writes them, and stores to read them into.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use grainstore::prelude::*;
use grainstore::{EpochMs, ManualClock};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions, ExportReport, ImportOptions, ImportReport};
use grainstore_interop::archive::{Archive, ArchiveWriter, Limits};
use grainstore_interop::json::{Value, parse};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::Arc;

pub(crate) const AGENT: &str = "0a1b2c3d-0000-4000-8000-00000000000a";
pub(crate) const PERSON: &str = "0a1b2c3d-0000-4000-8000-00000000000b";

/// 2026-08-15, in the third quarter.
pub(crate) const NOW: i64 = 1_786_788_000_000;

/// Histories that a test tries: all with `GRAINSTORE_ALF=full`, half of them otherwise.
pub(crate) fn cases(all: u32) -> u32 {
    if std::env::var_os("GRAINSTORE_ALF").is_some() { all } else { all / 2 }
}

/// The id of a record.
pub(crate) fn id(number: u32) -> String {
    format!("019470a0-0000-7000-8000-{number:012x}")
}

/// A record that has what every record has.
pub(crate) fn record(number: u32, created_at: &str) -> Value {
    json!({
        "id": id(number),
        "agent_id": AGENT,
        "content": format!("memory {number}"),
        "memory_type": "semantic",
        "source": {"runtime": "openclaw"},
        "temporal": {"created_at": created_at},
        "status": "active",
        "namespace": "default",
    })
}

/// The record with these members in place of its own.
pub(crate) fn with(mut record: Value, members: Value) -> Value {
    let members = members.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(members);
    record
}

/// An archive that is being made.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) manifest: Value,
    pub(crate) partitions: Vec<(String, Vec<Value>)>,
    pub(crate) entries: BTreeMap<String, Vec<u8>>,
}

impl Made {
    /// An archive with these records, by quarters: `("2026-Q1", [...])`.
    pub(crate) fn of(partitions: Vec<(&str, Vec<Value>)>) -> Self {
        let manifest = json!({
            "alf_version": "1.0.0",
            "created_at": "2026-08-01T00:00:00Z",
            "agent": {"id": AGENT, "name": "Ada", "source_runtime": "openclaw"},
            "sync": {"last_sequence": 7},
            "layers": {},
        });
        let partitions = partitions.into_iter().map(|(label, records)| (label.to_owned(), records));
        Self { manifest, partitions: partitions.collect(), entries: BTreeMap::new() }
    }

    pub(crate) fn layer(mut self, name: &str, document: Value) -> Self {
        let file = format!("{name}.json");
        self.manifest["layers"][name] = match document.get(name).and_then(Value::as_array) {
            Some(items) => json!({"count": items.len(), "file": file}),
            None => json!({"version": document["version"], "file": file}),
        };
        self.file(&file, document.to_string().as_bytes())
    }

    pub(crate) fn file(mut self, name: &str, bytes: &[u8]) -> Self {
        self.entries.insert(name.to_owned(), bytes.to_vec());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.entries.remove(name);
        self
    }

    /// Writes the archive.
    pub(crate) fn write(&self, dir: &Path, name: &str) -> PathBuf {
        let mut made = self.clone();
        let mut described = Vec::new();
        let mut count = 0;
        for (label, records) in &self.partitions {
            let file = format!("memory/partitions/{label}.jsonl");
            let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
            count += records.len();
            let (from, to) = days(label);
            described.push(json!({
                "file": file, "from": from, "record_count": records.len(),
                "to": (label != "2026-Q3").then_some(to), "sealed": label != "2026-Q3",
            }));
            made.entries.insert(file, lines.into_bytes());
        }
        if !described.is_empty() {
            made.manifest["layers"]["memory"] = json!({
                "record_count": count, "index_file": "memory/index.json", "partitions": described,
            });
        }
        made.write_raw(dir, name)
    }

    /// Writes the manifest and the entries as they are.
    pub(crate) fn write_raw(&self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        let mut writer = ArchiveWriter::create(&path).unwrap();
        writer.add("manifest.json", self.manifest.to_string().as_bytes()).unwrap();
        for (name, bytes) in &self.entries {
            writer.add(name, &bytes[..]).unwrap();
        }
        writer.finish().unwrap();
        path
    }
}

pub(crate) fn days(label: &str) -> (String, String) {
    let (year, quarter) = label.split_once("-Q").unwrap();
    let [from, to] =
        [["01-01", "03-31"], ["04-01", "06-30"], ["07-01", "09-30"], ["10-01", "12-31"]]
            [quarter.parse::<usize>().unwrap() - 1];
    (format!("{year}-{from}"), format!("{year}-{to}"))
}

/// An archive that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    pub(crate) manifest: Value,
    pub(crate) documents: BTreeMap<String, Value>,
    /// By id, with the partition.
    pub(crate) records: BTreeMap<String, Value>,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) partitions: BTreeMap<String, Vec<u8>>,
}

pub(crate) fn read(path: &Path) -> Read {
    let archive = Archive::open(path, Limits::default()).unwrap();
    let mut found = Read {
        manifest: Value::Null,
        documents: BTreeMap::new(),
        records: BTreeMap::new(),
        files: BTreeMap::new(),
        partitions: BTreeMap::new(),
    };
    for entry in archive.entries() {
        let name = entry.name().to_owned();
        let bytes = archive.read(&name, 1 << 30).unwrap().unwrap();
        match name.as_str() {
            "manifest.json" => found.manifest = parse(&bytes).unwrap(),
            "memory/index.json" => {}
            "identity.json" | "principals.json" | "credentials.json" | "attachments.json" => {
                found.documents.insert(name, parse(&bytes).unwrap());
            }
            name if name.starts_with("memory/partitions/") => {
                for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let record = parse(line).unwrap();
                    let id = record["id"].as_str().unwrap().to_owned();
                    assert!(found.records.insert(id, record).is_none());
                }
                found.partitions.insert(name.to_owned(), bytes);
            }
            _ => drop(found.files.insert(name, bytes)),
        }
    }
    found
}

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) session: Session,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(OpenOptions::new())
    }

    pub(crate) fn with(options: OpenOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::following());
        clock.set(EpochMs::new(NOW));
        let options = options.create(true).clock(Arc::clone(&clock) as _);
        let store = Store::open(dir.path().join("store"), &options).unwrap();
        let session = store.session(SessionOptions::default());
        Self { dir, store, session, clock }
    }

    pub(crate) fn import(&self, path: &Path) -> ImportReport {
        let report = self.import_with(path, &ImportOptions::default());
        assert_eq!(report.errors, []);
        report
    }

    pub(crate) fn import_with(&self, path: &Path, options: &ImportOptions) -> ImportReport {
        alf::import(&self.session, path, options, &Monitor::default()).unwrap()
    }

    pub(crate) fn import_made(&self, made: &Made) -> ImportReport {
        let path = made.write(self.dir.path(), "in.alf");
        self.import(&path)
    }

    pub(crate) fn export(&self) -> (Read, ExportReport) {
        let path = self.dir.path().join("out.alf");
        let report =
            alf::export(&self.session, &path, &ExportOptions::default(), &Monitor::default());
        let report = report.unwrap();
        let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
        assert!(found.valid, "{found:?}");
        (read(&path), report)
    }

    /// What a model is told of these grains.
    pub(crate) fn assembled(&self, grains: &str) -> String {
        let question = format!("ASSEMBLE FROM (RECALL {grains}) BUDGET 4000 tokens");
        self.session.ask(&question).unwrap().text().unwrap_or_default().to_owned()
    }

    pub(crate) fn verify(&self) {
        assert_eq!(self.store.verify(true).unwrap().problems, []);
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Everything ALF has, with members and words that are not known, at every level.
pub(crate) fn rich() -> Made {
    let artifact = b"a,b\n1,2\n";
    let embedding = json!({
        "model": "m", "dimensions": 2, "vector": [0.6, 0.8], "computed_at": "2026-01-15T10:00:00Z",
        "source": "moon", "x": [null],
    });
    let first = with(
        record(1, "2026-01-15T10:00:00.123456Z"),
        json!({
            "memory_type": "episodic", "category": "daily", "confidence": 0.75,
            "source": {
                "runtime": "openclaw", "runtime_version": "1", "origin": "daily_log", "origin_file": "memory/a.md",
                "extraction_method": "agent_written", "session_id": "s", "interaction_id": "i",
                "identity_version": 3, "x": {"y": 1},
            },
            "temporal": {
                "created_at": "2026-01-15T10:00:00.123456Z", "updated_at": null, "observed_at": "2026-01-15T09:00:00+02:00",
                "valid_from": "2026-01-01T00:00:00Z", "valid_until": null, "last_accessed_at": "2026-02-01T00:00:00Z",
                "access_count": 7, "x": "y",
            },
            "entities": [{"name": "Ada", "type": "muse", "role": "author", "x": 1}], "tags": ["a", "pii:b"],
            "embeddings": [embedding], "related_records": [{"id": id(2), "relation": "contradicts", "x": 1}],
            "raw_source_format": {"deep": [{"e\u{301}": 1e300}]}, "x_unknown": {"a": [1, null]},
        }),
    );
    let second = with(
        record(2, "2026-05-01T00:00:00Z"),
        json!({
            "memory_type": "preference", "supersedes": id(3), "namespace": format!("principal_context:{PERSON}"),
            "related_records": [{"id": id(1), "relation": "contradicts"}, {"id": id(99), "relation": "own"}],
        }),
    );
    let third = with(
        record(3, "2026-04-01T00:00:00Z"),
        json!({"memory_type": "preference",
        "namespace": format!("principal_context:{PERSON}"), "status": "superseded"}),
    );
    let kinds = ["summary", "procedural", "dream"].into_iter().zip([4, 5, 6]);
    let running = kinds.map(|(kind, number)| {
        with(record(number, "2026-07-02T00:00:00Z"), json!({"memory_type": kind}))
    });
    let deleted = with(record(7, "2026-07-03T00:00:00Z"), json!({"status": "deleted", "tags": []}));
    let archived =
        with(record(8, "2026-07-04T00:00:00Z"), json!({"status": "archived", "confidence": 1}));
    let frozen = with(
        record(9, "2026-07-05T00:00:00Z"),
        json!({"status": "frozen", "content": "e\u{301}\u{feff}"}),
    );
    let running = running.chain([deleted, archived, frozen]).collect();
    let quarters =
        vec![("2026-Q1", vec![first]), ("2026-Q2", vec![second, third]), ("2026-Q3", running)];
    let mut made = Made::of(quarters);
    made.manifest["runtime_hints"] =
        json!({"primary_model": "m", "last_model": "m", "notes": null, "x": 1});
    made.manifest["x_adapter_hints"] = json!({"search": [0.3, 0.7]});
    made.manifest["raw_sources"] = json!(["openclaw"]);
    made.layer("identity", identity(3))
        .layer("principals", json!({"x": 1, "principals": [
            {"id": PERSON, "principal_type": "human", "agent_id": null, "x": 1, "profile": {
                "id": id(20), "agent_id": AGENT, "principal_id": PERSON, "version": 2,
                "updated_at": "2026-01-01T00:00:00Z", "structured": {"name": "Ann", "x": 1,
                "relationships": [{"a": 1}], "custom_fields": {"b": [2]}}, "prose": {"user_profile": "é"}}},
            {"id": id(21), "principal_type": "robot", "profile": {
                "id": id(22), "agent_id": AGENT, "principal_id": id(21), "version": 1,
                "updated_at": "2026-01-02T00:00:00.5Z"}}]}))
        .layer("credentials", json!({"credentials": [credential(30), credential(31)]}))
        .layer("attachments", json!({"artifact_size_threshold": 10, "x": null, "attachments": [
            {"id": id(40), "filename": "a.csv", "media_type": "text/csv", "size_bytes": artifact.len(),
             "hash": {"algorithm": "sha256", "value": sha256(artifact)}, "source_path": "w/a.csv",
             "archive_path": "artifacts/a.csv", "remote_ref": null, "referenced_by": [id(1)], "x": 1},
            {"id": id(41), "filename": "b.png", "media_type": "image/png", "size_bytes": 284_190,
             "hash": {"algorithm": "sha256", "value": sha256(b"b")}, "source_path": "w/b.png",
             "archive_path": null, "remote_ref": null}]}))
        .file("artifacts/a.csv", artifact)
        .file("raw/openclaw/SOUL.md", b"\xff\xfe not even text")
        .file("memory/embeddings/vectors.bin", b"\x00\x01")
        .file("x-unknown/thing", b"?")
}

pub(crate) fn identity(version: u64) -> Value {
    json!({
        "id": id(10), "agent_id": AGENT, "version": version, "updated_at": "2026-01-01T00:00:00Z", "x": 1,
        "structured": {
            "names": {"primary": "Ada", "x": 1}, "goals": ["g"], "psychology": {"neural_matrix": {"a": 0.5},
            "personality_traits": {"framework": "f", "scores": {"o": 7.5}}, "mbti": "INTJ"},
            "linguistics": {"formality_level": 0.2, "idiolect": {"catchphrases": ["oh"]}},
            "capabilities": [
                {"name": "docker", "portability": "host_dependent", "credential_ids": [id(30)], "x": 1},
                {"name": "web"}, {"name": "moon", "portability": "lunar"}],
            "sub_agents": [{"agent_id": null, "name": "s", "capabilities": [], "status": "asleep"}],
            "aieos_extensions": {"z": [1]}, "x": 2,
        },
        "prose": {"soul": "be kind", "custom_blocks": {"boot_checklist": "1."}, "x": 3},
        "source_format": "openclaw", "raw_source": {"SOUL.md": "be kind"},
    })
}

pub(crate) fn credential(number: u32) -> Value {
    json!({
        "id": id(number), "agent_id": AGENT, "service": "openai", "credential_type": "api_key",
        "encrypted_payload": data_encoding::BASE64.encode(&Sha256::digest(number.to_be_bytes())),
        "encryption": {"algorithm": "xchacha20-poly1305", "kdf": "argon2id",
            "kdf_params": {"memory_cost": 65536, "time_cost": 3, "parallelism": 4},
            "nonce": data_encoding::BASE64.encode(&[7; 24])},
        "created_at": "2026-01-15T00:00:00Z", "expires_at": null, "tags": ["production"], "x": 1,
    })
}

/// A folder of the data that tests share, if it is there.
pub(crate) fn shared(folder: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("GRAINSTORE_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = shared.unwrap_or(beside).join(folder);
    folder.is_dir().then_some(folder)
}
