//! Exports that leave the organization: consent, redaction, encryption, containers with files and grains.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::support::*;
use grainstore::prelude::*;
use grainstore::{EpochMs, ManualClock};
use grainstore_interop::archive::{Archive, ArchiveWriter, Limits};
use grainstore_interop::json;
use grainstore_interop::saga::{
    Classification, Consent, Container, ContainerFile, ContainerVerdict, Document, ExportOptions,
    ExportType, ImportOptions, ItemType, Layer, Level, Operation, Recipient, RedactOptions, Signer,
    TransferConsents, TransferKind, TransferRequest, WalletKey, consent_message, export_container,
    export_document, import_container, stored_document, transfer_status, write_container,
};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn open(dir: &Path) -> (Session, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::following());
    clock.set(NOW);
    let store =
        Store::open(dir, &OpenOptions::new().create(true).clock(Arc::<ManualClock>::clone(&clock)))
            .unwrap();
    (store.session(SessionOptions::default()), clock)
}

pub(crate) struct Setup {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) session: Session,
    pub(crate) clock: Arc<ManualClock>,
}

impl Setup {
    /// A store with the full document, an artifact, and an opaque long-term memory.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (session, clock) = open(&dir.path().join("store"));
        let mut layers = full_layers();
        let sum = |bytes: &[u8]| format!("sha256:{}", ContentAddress::of(bytes));
        layers["taskHistory"]["artifacts"][0]["storageRef"] =
            json!({"type": "inline", "ref": "artifacts/auth.ts", "checksum": sum(ARTIFACT)});
        layers["memory"]["longTerm"] = json!({
            "type": "vector-store", "format": "saga-memory-v1", "vectorCount": 2,
            "storageRef": {"type": "inline", "ref": "memory/longterm.bin", "checksum": sum(OPAQUE)},
        });
        let document = signed(envelope("full", layers), &evm());
        let path = dir.path().join("in.saga");
        let files = vec![
            ContainerFile::new("artifacts/auth.ts", ARTIFACT),
            ContainerFile::new("memory/longterm.bin", OPAQUE),
            ContainerFile::new("notes/other.txt", &b"a stranger"[..]),
        ];
        write_container(&path, &document, files, NOW, &evm()).unwrap();
        let report = import_container(&session, &path, &ImportOptions::default()).unwrap();
        assert_eq!(report.files, 3);
        Self { dir, session, clock }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn export(
        &self,
        options: &ExportOptions<'_>,
    ) -> grainstore_interop::Result<Container> {
        let path = self.path("out.saga");
        export_container(&self.session, &path, options, &evm())?;
        let container = Container::open(&path, Limits::default()).unwrap();
        assert_eq!(container.verdict(), &ContainerVerdict::Verified);
        let validation = container.document().validate(NOW);
        assert_eq!(validation.of_level(Level::Error).count(), 0, "{:#?}", validation.findings);
        if let Some(schema) = official_schema() {
            assert!(schema.is_valid(&container.document().published_part()));
        }
        Ok(container)
    }
}

const ARTIFACT: &[u8] = b"export const auth = 1;";
const OPAQUE: &[u8] = b"vectors of the ledger";

pub(crate) fn read(container: &Container, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    container.reader(name).unwrap().unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

pub(crate) fn consent(operation: Operation, scope: &[Layer]) -> Value {
    let consent = Consent {
        operation,
        granted_at: NOW,
        expires_at: Some(EpochMs::new(NOW.get() + 86_400_000)),
        scope: scope.to_vec(),
        purpose: "a move to Acme".into(),
    };
    consent.sign(&evm()).unwrap()
}

pub(crate) fn redact() -> RedactOptions {
    RedactOptions {
        organization: "company_flowstate".into(),
        reason: "cross-org-transfer".into(),
        at: NOW,
        classifications: Default::default(),
    }
}

pub(crate) fn recipient() -> Recipient {
    Recipient { address: Some("0xacme".into()), ..Recipient::new(box_key().public_key()) }
}

pub(crate) fn plain(export_type: ExportType) -> ExportOptions<'static> {
    ExportOptions {
        export_type: Some(export_type),
        plain_long_term: true,
        ..ExportOptions::default()
    }
}

#[test]
fn a_backup_has_all_files_and_comes_back_whole() {
    let setup = Setup::new();
    let container = setup.export(&plain(ExportType::Backup)).unwrap();
    assert_eq!(read(&container, "artifacts/auth.ts"), ARTIFACT);
    assert_eq!(read(&container, "memory/longterm.bin"), OPAQUE);
    assert_eq!(read(&container, "notes/other.txt"), b"a stranger");
    let lines = String::from_utf8(read(&container, "memory/episodic.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2);
    let (other, _) = open(&setup.path("other"));
    let report =
        import_container(&other, setup.path("out.saga"), &ImportOptions::default()).unwrap();
    assert_eq!(report.files, 3);
    let stored = stored_document(&other, evm().wallet()).unwrap().unwrap();
    assert_eq!(&stored, container.document());
    assert_eq!(other.store().verify(true).unwrap().problems, []);
}

#[test]
fn an_export_across_organizations_needs_consent_redaction_a_signed_manifest_and_recipients() {
    let setup = Setup::new();
    let all = consent(Operation::Transfer, Layer::ALL);
    let org = other_evm();
    let mut options = ExportOptions {
        export_type: Some(ExportType::Transfer),
        crosses_organizations: true,
        ..ExportOptions::default()
    };
    let refused = |options: &ExportOptions<'_>, code: &str, what: &str| {
        let error = setup.export(options).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(what), "{error}");
        assert!(!setup.path("out.saga").exists());
        assert_eq!(transfer_status(&setup.session, evm().wallet()).unwrap(), None);
    };
    refused(&options, "ERR_POLICY", "consent");
    options.consent = Some(consent(Operation::Clone, Layer::ALL));
    refused(&options, "ERR_POLICY", "clone");
    options.consent = Some(all.clone());
    refused(&options, "ERR_POLICY", "who consents");
    options.document_id = Some("saga_move1".into());
    let message = consent_message(Operation::Transfer, "saga_move1", "https://acme.example", NOW);
    let by = |key: &WalletKey, message: &str| {
        Some((key.wallet().clone(), key.sign(message.as_bytes()).unwrap()))
    };
    let acme = WalletKey::secp256k1("eip155:1", &[0x13; 32]).unwrap();
    let request = TransferRequest {
        kind: TransferKind::Voluntary,
        destination: "https://acme.example".into(),
        at: NOW,
        consents: TransferConsents {
            agent: by(&evm(), &message),
            source: None,
            destination: by(&acme, &message),
        },
    };
    let mut of_another = request.clone();
    of_another.consents.agent = by(&evm(), &message.replace("move1", "move2"));
    options.transfer = Some(of_another);
    refused(&options, "ERR_SIGNATURE", "another wallet");
    options.transfer =
        Some(TransferRequest { kind: TransferKind::Administrative, ..request.clone() });
    refused(&options, "ERR_POLICY", "source organization");
    options.transfer = Some(request);
    refused(&options, "ERR_POLICY", "redacted");
    options.redact = Some(redact());
    refused(&options, "ERR_POLICY", "signs the manifest");
    options.organization = Some(&org);
    // The memory stays after the redaction, and is encrypted.
    refused(&options, "ERR_KEY", "nobody");
    options.recipients = vec![recipient()];
    let container = setup.export(&options).unwrap();
    let document = container.document();
    assert!(document.get("consent").is_some());
    assert_eq!(
        document.verify_manifest().unwrap().as_deref(),
        Some(other_evm().wallet().address())
    );
    let text = document.canonical().unwrap();
    for gone in ["Refactor", "merger", "Prompt of the house", "just said", "auth.ts"] {
        assert!(!text.contains(gone), "{gone}");
    }
    // Neither artifacts that were redacted, nor a memory without its reference, nor files that nobody knows.
    let files: Vec<_> = container.files().collect();
    assert_eq!(files, ["memory/episodic.jsonl"]);
    let lines = String::from_utf8(read(&container, "memory/episodic.jsonl")).unwrap();
    assert!(!lines.contains("small steps") && lines.contains("Redacted"));
}

#[test]
fn a_consent_narrows_an_export_and_ends() {
    let setup = Setup::new();
    let scope = [Layer::Identity, Layer::Persona, Layer::Skills];
    let options = ExportOptions {
        consent: Some(consent(Operation::Export, &scope)),
        crosses_organizations: true,
        ..plain(ExportType::Full)
    };
    let path = setup.path("out.saga");
    let report = export_container(&setup.session, &path, &options, &evm()).unwrap();
    assert_eq!(report.layers, scope);
    let narrowed = [
        Layer::Cognitive,
        Layer::Memory,
        Layer::TaskHistory,
        Layer::Relationships,
        Layer::Environment,
    ];
    assert_eq!(report.narrowed, narrowed);
    let container = Container::open(&path, Limits::default()).unwrap();
    assert_eq!(container.files().count(), 0);
    let without_identity = ExportOptions {
        consent: Some(consent(Operation::Export, &[Layer::Skills])),
        ..plain(ExportType::Full)
    };
    assert_eq!(setup.export(&without_identity).unwrap_err().code(), "ERR_POLICY");
    // By another wallet, changed, or over.
    let mut of_another = consent(Operation::Export, &scope);
    of_another["grantedBy"] = json!(other_evm().wallet().address());
    let mut changed = consent(Operation::Export, &scope);
    changed["scope"] = json!(["identity", "memory"]);
    for record in [of_another, changed] {
        let options = ExportOptions { consent: Some(record), ..plain(ExportType::Full) };
        assert_eq!(setup.export(&options).unwrap_err().code(), "ERR_SIGNATURE");
    }
    setup.clock.set(EpochMs::new(NOW.get() + 86_400_001));
    assert_eq!(setup.export(&options).unwrap_err().code(), "ERR_WITHDRAWN");
}

#[test]
fn a_memory_is_encrypted_with_its_file_unless_the_owner_says_otherwise() {
    let setup = Setup::new();
    let options = ExportOptions { export_type: Some(ExportType::Full), ..ExportOptions::default() };
    assert_eq!(setup.export(&options).unwrap_err().code(), "ERR_KEY");
    let options = ExportOptions { recipients: vec![recipient()], ..options };
    let container = setup.export(&options).unwrap();
    let file = read(&container, "memory/longterm.bin");
    assert!(!file.windows(OPAQUE.len()).any(|window| window == OPAQUE));
    let boxes: Value = serde_json::from_slice(&file).unwrap();
    assert_eq!(boxes["scheme"], "x25519-xsalsa20-poly1305");
    let mut opened = container.document().clone();
    assert_eq!(opened.decrypt(&box_key()).unwrap(), ["memory.longTerm"]);
    let stored = stored_document(&setup.session, evm().wallet()).unwrap().unwrap();
    assert_eq!(opened.layer(Layer::Memory), stored.layer(Layer::Memory));
    // Encrypted as it is, it comes back and goes out again.
    let (other, _) = open(&setup.path("other"));
    import_container(&other, setup.path("out.saga"), &ImportOptions::default()).unwrap();
    let path = setup.path("again.saga");
    export_container(&other, &path, &options, &evm()).unwrap();
    let again = Container::open(&path, Limits::default()).unwrap();
    assert_eq!(read(&again, "memory/longterm.bin"), file);
    assert_eq!(again.document().layer(Layer::Memory), container.document().layer(Layer::Memory));
}

#[test]
fn grains_go_along_as_the_long_term_memory_and_come_back_byte_by_byte() {
    let setup = Setup::new();
    let grain =
        BeliefBuilder::new(setup.session.now(), "alice", "prefers", "tea", 0.9).build().unwrap();
    let tea = setup.session.put(grain).unwrap().address();
    let grains = Query::default().when(Predicate::text_is("subject", "alice").unwrap());
    let options = ExportOptions { grains: Some(grains), ..plain(ExportType::Backup) };
    let container = setup.export(&options).unwrap();
    let long_term = &container.document().layer(Layer::Memory).unwrap()["longTerm"];
    assert_eq!(long_term["format"], "oms-mg-1.3");
    let (other, _) = open(&setup.path("other"));
    let report =
        import_container(&other, setup.path("out.saga"), &ImportOptions::default()).unwrap();
    assert_eq!(report.grains.unwrap().added, 1);
    assert_eq!(other.get(&tea).unwrap().blob, setup.session.get(&tea).unwrap().blob);
    // With an organization's redaction they stay, unless it says otherwise.
    let org = other_evm();
    let mut options = ExportOptions {
        redact: Some(redact()),
        organization: Some(&org),
        ..ExportOptions { export_type: Some(ExportType::Full), ..options }
    };
    let redacted = setup.export(&options).unwrap();
    assert!(!redacted.files().any(|name| name == "memory/longterm.bin"));
    let mut decided = redact();
    decided.classifications.set(
        ItemType::MemoryLayer,
        "memory.longTerm",
        Classification::AgentPortable,
    );
    options.redact = Some(decided);
    options.plain_long_term = false;
    options.recipients = vec![recipient()];
    let encrypted = setup.export(&options).unwrap();
    let file = read(&encrypted, "memory/longterm.bin");
    assert!(!file.windows(5).any(|window| window == b"alice"));
    let boxes: Value = serde_json::from_slice(&file).unwrap();
    assert!(boxes["recipients"].is_array());
}

#[test]
fn a_damaged_memory_is_refused_before_anything_is_written() {
    let setup = Setup::new();
    let grain =
        BeliefBuilder::new(setup.session.now(), "alice", "prefers", "tea", 0.9).build().unwrap();
    setup.session.put(grain).unwrap();
    let options = ExportOptions { grains: Some(Query::default()), ..plain(ExportType::Backup) };
    let container = setup.export(&options).unwrap();
    let mut file = read(&container, "memory/longterm.bin");
    let place = file.len() / 2;
    file[place] ^= 1;
    // Everything else is as it should be: checksums and signatures are made anew.
    let mut document = container.document().to_value();
    document["layers"]["memory"]["longTerm"]["storageRef"]["checksum"] =
        json!(format!("sha256:{}", ContentAddress::of(&file)));
    let document = signed(document, &evm());
    let path = setup.path("damaged.saga");
    let files = vec![ContainerFile::new("memory/longterm.bin", &file[..])];
    write_container(&path, &document, files, NOW, &evm()).unwrap();
    let (other, _) = open(&setup.path("other"));
    let refused = import_container(&other, &path, &ImportOptions::default()).unwrap_err();
    assert!(refused.entry().unwrap().ends_with("memory/longterm.bin"), "{refused}");
    assert_eq!(other.store().stats().unwrap().grains, 0);
    // And one that is not what the document says.
    let document = signed(container.document().to_value(), &evm());
    let files = vec![ContainerFile::new("memory/longterm.bin", &b"other"[..])];
    write_container(&path, &document, files, NOW, &evm()).unwrap();
    let refused = import_container(&other, &path, &ImportOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_INTEGRITY");
    assert_eq!(other.store().stats().unwrap().grains, 0);
}

#[test]
fn a_container_that_is_not_signed_over_its_content_is_refused_unless_allowed() {
    let setup = Setup::new();
    setup.export(&plain(ExportType::Backup)).unwrap();
    let archive = Archive::open(setup.path("out.saga"), Limits::default()).unwrap();
    let mut entries: Vec<(String, Vec<u8>)> = Vec::new();
    for entry in archive.entries() {
        let bytes = archive.read(entry.name(), 1 << 20).unwrap().unwrap();
        entries.push((entry.name().to_owned(), bytes));
    }
    let content: Vec<u8> = entries
        .iter()
        .filter(|(name, _)| name != "SIGNATURE")
        .flat_map(|(_, b)| b.clone())
        .collect();
    let signature = json!({
        "contentHash": format!("sha256:{}", ContentAddress::of(&content)),
        "sig": evm().sign(b"something").unwrap(), "walletAddress": EVM_ADDRESS, "chain": "eip155:8453",
    });
    let path = setup.path("other.saga");
    let mut writer = ArchiveWriter::create(&path).unwrap();
    for (name, bytes) in &entries {
        match name.as_str() {
            "SIGNATURE" => writer.add(name, signature.to_string().as_bytes()).unwrap(),
            _ => writer.add(name, &bytes[..]).unwrap(),
        };
    }
    writer.finish().unwrap();
    let (other, _) = open(&setup.path("other"));
    let refused = import_container(&other, &path, &ImportOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_SIGNATURE");
    assert!(refused.entry().unwrap().ends_with("SIGNATURE"));
    assert_eq!(other.store().stats().unwrap().grains, 0);
    let allowed = ImportOptions { allow_integrity_only: true, ..ImportOptions::default() };
    import_container(&other, &path, &allowed).unwrap();
}

#[test]
fn a_redaction_takes_out_nothing_that_is_held() {
    let setup = Setup::new();
    let goals = setup.session.query(
        &Query::default()
            .of_types(grainstore::cal::TypeSet::of(grainstore::format::GrainType::Goal)),
        &PageOptions::first(10),
    );
    let secret = goals
        .unwrap()
        .results
        .into_iter()
        .find(|row| row.grain.text("description") == Some("Secret merger"));
    let secret = secret.unwrap().content_address;
    setup.session.hold(&secret, "case 12").unwrap();
    let org = other_evm();
    let options = ExportOptions {
        redact: Some(redact()),
        organization: Some(&org),
        ..plain(ExportType::Full)
    };
    let refused = setup.export(&options).unwrap_err();
    assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
    assert_eq!(refused.entry(), Some("task task_2"));
    setup.session.lift_hold(&secret, "closed", None).unwrap();
    setup.export(&options).unwrap();
    let backup = ExportOptions {
        redact: Some(redact()),
        organization: Some(&org),
        ..plain(ExportType::Backup)
    };
    assert_eq!(setup.export(&backup).unwrap_err().code(), "ERR_POLICY");
}

#[test]
fn an_agent_that_is_not_known_and_a_strict_schema_that_cannot_be_held_are_told() {
    let setup = Setup::new();
    let unknown =
        export_document(&setup.session, &plain(ExportType::Full), &other_evm()).unwrap_err();
    assert_eq!(unknown.code(), "ERR_NOT_FOUND");
    let strict = ExportOptions { strict_schema: true, ..plain(ExportType::Full) };
    setup.export(&strict).unwrap();
    let with_consent = ExportOptions {
        consent: Some(consent(Operation::Export, Layer::ALL)),
        strict_schema: true,
        ..plain(ExportType::Full)
    };
    assert_eq!(setup.export(&with_consent).unwrap_err().code(), "ERR_SCHEMA");
    let (exported, _) = export_document(&setup.session, &plain(ExportType::Full), &evm()).unwrap();
    assert!(json::equal(&exported.to_value()["sagaVersion"], &json!("1.0")));
    let with_grains = ExportOptions { grains: Some(Query::default()), ..plain(ExportType::Full) };
    assert_eq!(
        export_document(&setup.session, &with_grains, &evm()).unwrap_err().code(),
        "ERR_SCHEMA"
    );
    let document: Document = exported;
    assert!(document.id().starts_with("saga_") && document.id().len() == 25);
}

#[test]
fn a_memory_that_a_redaction_took_is_not_in_a_box_either() {
    let setup = Setup::new();
    let grain =
        BeliefBuilder::new(setup.session.now(), "alice", "prefers", "tea", 0.9).build().unwrap();
    setup.session.put(grain).unwrap();
    let org = other_evm();
    for grains in [None, Some(Query::default())] {
        let options = ExportOptions {
            grains,
            redact: Some(redact()),
            organization: Some(&org),
            recipients: vec![recipient()],
            encrypt: vec!["memory".to_owned()],
            ..ExportOptions::default()
        };
        let container = setup.export(&options).unwrap();
        assert!(!container.files().any(|name| name == "memory/longterm.bin"));
        assert!(!container.files().any(|name| name == "memory/episodic.jsonl"));
    }
}
