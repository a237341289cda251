//! Documents whose newest version an agent wrote past ALF, and that are gone since: what was before them counts, and what
//! comes goes on from that.

use grainstore::cal::Query;
use grainstore::format::Value as Field;
use grainstore::prelude::*;
use grainstore::{EraseOptions, PageOptions, StoredGrain};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportMode, ImportOptions, PurgeScope};
use serde_json::json;

use crate::cut_off::{Watched, export, import, reopened};
use crate::kit::*;
use crate::purge::{options, purge};

fn archive(version: u64) -> Made {
    let records = vec![record(1, "2026-07-02T00:00:00Z"), record(2, "2026-07-02T00:00:00Z")];
    let soul = identity(version).to_string().replace("be kind", &format!("be kind {version}"));
    let mut made = crate::vouched::running(records)
        .layer("identity", serde_json::from_str(&soul).unwrap())
        .layer("credentials", json!({"credentials": [credential(30)]}))
        .file("raw/openclaw/SOUL.md", format!("kind {version}").as_bytes());
    made.manifest["created_at"] = json!(format!("2026-08-0{version}T00:00:00Z"));
    made
}

/// The documents of a store, in their newest versions.
fn documents(session: &Session) -> Vec<StoredGrain> {
    let found = session.query(&Query::default(), &PageOptions::first(100)).unwrap().results;
    let is_document = |grain: &Grain| {
        grain.map("context").is_some_and(|context| context.contains_key("alf:layer"))
    };
    let found = found.iter().filter(|row| is_document(&row.grain));
    found.map(|row| session.inspect(&row.content_address).unwrap()).collect()
}

/// An agent supersedes every document in its namespace, in the name of somebody.
fn replace_all(session: &Session, basis: Option<&ContentAddress>) -> usize {
    let found = documents(session);
    for old in &found {
        let mut fields = old.grain().unwrap().into_fields();
        let namespace = fields["namespace"].as_str().unwrap().to_owned();
        fields.insert("user_id".to_owned(), Field::from("bob"));
        fields.insert("created_at".to_owned(), Field::from(NOW - 1000));
        fields.insert("derived_from".to_owned(), Field::from(vec![old.address.to_string()]));
        if let Some(basis) = basis {
            fields.insert("processing_basis".to_owned(), Field::from(basis.to_string()));
        }
        let agent = session.part(SessionOptions {
            actor: Some("did:key:agent".to_owned()),
            namespace: Some(namespace),
            ..SessionOptions::default()
        });
        agent.supersede(&old.address, Grain::from_fields(fields).unwrap(), None).unwrap();
    }
    found.len()
}

/// The number of versions of the identity that are current.
fn identities(session: &Session) -> usize {
    let identities = documents(session).into_iter().filter(|stored| {
        let grain = stored.grain().unwrap();
        grain.map("context").unwrap()["alf:layer"].as_str() == Some("identity")
    });
    identities.count()
}

/// Everything of ALF goes on, in both ways.
fn assert_goes_on(world: &World) {
    let (out, _) = world.export();
    assert!(out.documents["identity.json"].to_string().contains("be kind 3"));
    assert_eq!(out.files["raw/openclaw/SOUL.md"], b"kind 3");
    for (version, mode) in [(3, ImportMode::Merge), (4, ImportMode::Merge), (5, ImportMode::Mirror)]
    {
        let path = archive(version).write(world.dir.path(), "in.alf");
        for again in [false, true] {
            let report = world.import_with(&path, &ImportOptions { mode, ..Default::default() });
            assert_eq!(report.errors, []);
            let replaced = u64::from(version > 3 && !again);
            assert_eq!(report.layers["identity"].replaced, replaced, "{version} {again}");
        }
        let (out, _) = world.export();
        let said = out.documents["identity.json"].to_string();
        assert!(said.contains(&format!("be kind {version}")), "{said}");
        assert_eq!(out.files["raw/openclaw/SOUL.md"], format!("kind {version}").as_bytes());
        assert_eq!(out.documents["credentials.json"]["credentials"][0], credential(30));
    }
    assert_eq!(identities(&world.session), 1);
    assert_eq!(purge(world, &[1], &options()).unwrap().records_removed, 1);
    let all = PurgeScope::Agent;
    alf::purge(&world.session, &all, &options(), &Monitor::default()).unwrap();
    assert_eq!(documents(&world.session).len(), 0);
    world.verify();
}

#[test]
fn an_erased_version_of_an_agent_stops_nothing() {
    let world = World::new();
    world.import_made(&archive(3));
    assert!(replace_all(&world.session, None) >= 5);
    world.session.erase_user("bob", "asked", &EraseOptions::new()).unwrap();
    assert_goes_on(&world);
}

#[test]
fn a_version_of_an_agent_that_a_consent_hides_stops_nothing() {
    let world = World::new();
    world.import_made(&archive(3));
    let consent = |members: &str| {
        Grain::from_json(&format!(
            r#"{{"type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b", "scope": ["store"],
            {members}}}"#
        ))
        .unwrap()
    };
    let basis = consent(r#""is_withdrawal": false, "created_at": "2026-07-01T00:00:00Z""#);
    let basis = world.session.put(basis).unwrap().address();
    replace_all(&world.session, Some(&basis));
    let ended = format!(
        r#""is_withdrawal": true, "prior_consent": "{basis}", "created_at": "2026-07-02T00:00:00Z""#
    );
    world.session.put(consent(&ended)).unwrap();
    let (out, _) = world.export();
    assert!(out.documents["identity.json"].to_string().contains("be kind 3"));
    world.import_made(&archive(4));
    assert!(world.export().0.documents["identity.json"].to_string().contains("be kind 4"));
}

#[test]
fn an_import_beside_an_erased_version_that_is_cut_off_leaves_no_other_version() {
    let watched = Watched::new();
    import(&watched.session, &archive(3).write(watched.dir.path(), "a.alf"));
    replace_all(&watched.session, None);
    watched.session.erase_user("bob", "asked", &EraseOptions::new()).unwrap();
    let newest = archive(5).write(watched.dir.path(), "c.alf");
    for copy in watched.cut_off(&archive(4).write(watched.dir.path(), "b.alf")) {
        let session = reopened(&copy);
        import(&session, &newest);
        let out = export(&session, &watched.dir.path().join("out.alf"));
        assert!(out.documents["identity.json"].to_string().contains("be kind 5"));
        assert_eq!(identities(&session), 1, "{copy:?}");
    }
}
