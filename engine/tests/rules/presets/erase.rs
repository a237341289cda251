//! What a preset says of erasure: how long everything is kept, whose say it is, and that what may not be
//! read may be erased and reported all the same.

use std::sync::Arc;

use grainstore::cal::Query;
use grainstore::format::Grain;
use grainstore::{
    EpochMs, EraseOptions, ManualClock, OpenOptions, PageOptions, Preset, Session, SessionOptions,
    Store,
};
use serde_json::json;
use tempfile::TempDir;

/// 2026-01-15T10:00:00Z.
const CREATED: i64 = 1_768_471_200_000;
const DAY: i64 = 86_400_000;

fn open(dir: &TempDir, preset: &str) -> (Store, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::following());
    clock.set(EpochMs::new(CREATED));
    let options = OpenOptions::new().create(true).preset(Preset::from_name(preset).unwrap());
    let options = options.clock(Arc::<ManualClock>::clone(&clock)).operator("did:web:boss");
    (Store::open(dir.path(), &options).unwrap(), clock)
}

fn session(store: &Store, user: Option<&str>) -> Session {
    let user_id = user.map(str::to_owned);
    let actor = user.map(|_| "did:web:them".to_owned());
    store.session(SessionOptions { user_id, actor, ..SessionOptions::default() })
}

fn of_user(basis: &str) -> Grain {
    let grain = json!({
        "type": "belief", "subject": "alice", "relation": "likes", "object": "tea", "user_id": "u1",
        "confidence": 1.0, "created_at": CREATED, "processing_basis": basis,
    });
    Grain::from_json(&grain.to_string()).unwrap()
}

#[test]
fn nothing_is_erased_before_its_years_are_over_and_the_article_is_named() {
    for (preset, years, article) in
        [("hipaa", 6, "45 CFR 164.316(b)(2)(i)"), ("sox", 7, "17 CFR 210.2-06(a)")]
    {
        let dir = TempDir::new().unwrap();
        let (store, clock) = open(&dir, preset);
        let operator = session(&store, None);
        let address = operator.put(of_user("contract")).unwrap().address();
        // The years have one leap day, or two.
        let end = CREATED + (years * 365 + 1 + i64::from(years == 7)) * DAY;
        let late = CREATED + (years * 365 + 3) * DAY;
        clock.set(EpochMs::new(end - 3 * DAY));
        for refused in [
            operator.erase(&address, "asked for", &EraseOptions::default()).map(drop),
            operator.erase_user("u1", "asked for", &EraseOptions::default()).map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), "ERR_POLICY", "{preset}: {refused}");
            assert!(refused.to_string().contains(article), "{preset}: {refused}");
            let last = operator.audit(None, 100).unwrap().pop().unwrap();
            assert_eq!((last.decision.as_str(), last.refused_by), ("refused", Some(address)));
        }
        clock.set(EpochMs::new(late));
        operator.erase_user("u1", "asked for", &EraseOptions::default()).unwrap();
        assert_eq!(operator.get(&address).map(drop).unwrap_err().code(), "ERR_ERASED");
    }
}

#[test]
fn a_user_erases_themselves_where_the_preset_gives_them_that() {
    for preset in Preset::all() {
        let gives = preset.rules().unwrap().settings.user_may_erase.value;
        let dir = TempDir::new().unwrap();
        let (store, clock) = open(&dir, preset.name());
        let address = session(&store, None).put(of_user("contract")).unwrap().address();
        clock.set(EpochMs::new(CREATED + 10 * 365 * DAY));
        let own = session(&store, Some("u1"));
        let erased = own.erase_user("u1", "I want to go", &EraseOptions::default());
        let code = erased.map(|_| ()).map_err(|error| error.code());
        let expected = if gives { Ok(()) } else { Err("ERR_ACCESS") };
        assert_eq!(code, expected, "{}", preset.name());
        assert_eq!(session(&store, None).exists(&address).unwrap(), !gives);
        let other = session(&store, Some("u2"));
        let refused = other.erase_user("u1", "them too", &EraseOptions::default());
        assert_eq!(refused.map(|_| ()).unwrap_err().code(), "ERR_ACCESS", "{}", preset.name());
    }
}

#[test]
fn what_may_not_be_read_is_hidden_everywhere_and_erased_all_the_same() {
    let dir = TempDir::new().unwrap();
    let (store, _) = open(&dir, "gdpr");
    let operator = session(&store, None);
    let consent = json!({
        "type": "consent", "subject_did": "did:web:alice", "grantee_did": "did:web:agent",
        "scope": ["store"], "is_withdrawal": false, "created_at": CREATED,
    });
    let consent = Grain::from_json(&consent.to_string()).unwrap();
    let consent = operator.put(consent).unwrap().address();
    let address = operator.put(of_user(&consent.to_string())).unwrap().address();
    let refused = operator.get(&address).map(drop).unwrap_err();
    assert_eq!(refused.code(), "ERR_POLICY");
    assert!(refused.to_string().contains("gdpr.consent-retrieve"), "{refused}");
    let last = operator.audit(None, 100).unwrap().pop().unwrap();
    assert_eq!((last.operation.as_str(), last.decision.as_str()), ("read", "refused"));
    assert_eq!(last.rules, ["gdpr.consent-retrieve"]);
    assert!(!operator.exists(&address).unwrap());
    assert!(operator.get_batch(&[address]).unwrap()[0].is_none());
    assert_eq!(operator.history(&address).map(drop).unwrap_err().code(), "ERR_POLICY");
    assert!(operator.latest("alice", "likes").unwrap().is_none());
    let found = operator.query(&Query::default(), &PageOptions::default()).unwrap();
    assert!(found.results.iter().all(|row| row.content_address == consent));
    let told = operator.ask("RECALL beliefs").unwrap();
    assert!(!serde_json::to_string(&told).unwrap().contains("tea"), "{told:?}");
    let report = operator.subject_report("u1").unwrap();
    assert_eq!(report.addresses, [address], "whoever it is about is told of it");
    operator.erase(&address, "asked for", &EraseOptions::default()).unwrap();
    assert_eq!(operator.get(&address).map(drop).unwrap_err().code(), "ERR_ERASED");
}
