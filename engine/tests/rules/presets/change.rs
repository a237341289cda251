//! Changing the rules of a store: further rules hold at once, a looser one has to be meant, and the audit
//! log has both.

use grainstore::format::EpochMs;
use grainstore::format::{BeliefBuilder, Grain};
use grainstore::{ErrorKind, OpenOptions, Preset, Session, SessionOptions, Store};
use tempfile::TempDir;

const AUTHORED: &str = r#"
    [[rule]]
    id = "own.author"
    on = ["put"]
    require = { has = ["author_did"] }
    article = "house rule 1"
    because = "somebody made it"
    fix = "set author_did"
"#;

fn new(dir: &TempDir, preset: &str) -> Store {
    let preset = Preset::from_name(preset).unwrap();
    Store::open(dir.path(), &OpenOptions::new().create(true).preset(preset)).unwrap()
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn grain(object: &str) -> Grain {
    BeliefBuilder::new(EpochMs::new(1000), "alice", "likes", object, 1.0).build().unwrap()
}

fn of_user(object: &str) -> Grain {
    let mut fields = grain(object).into_fields();
    fields.insert("user_id".to_owned(), "u1".into());
    Grain::from_fields(fields).unwrap()
}

#[test]
fn a_further_rule_holds_at_once_and_after_opening_again() {
    let dir = TempDir::new().unwrap();
    let store = new(&dir, "open");
    let session = operator(&store);
    session.put(grain("tea")).unwrap();
    let changed = session.change_rules(AUTHORED, false, "who says so?").unwrap();
    assert_eq!((changed.changed, changed.added.as_slice()), (true, &["own.author".to_owned()][..]));
    assert!(changed.loosened.is_empty());
    let check = |store: &Store| {
        let refused = operator(store).put(grain("water")).unwrap_err();
        assert_eq!((refused.code(), refused.hint()), ("ERR_POLICY", "set author_did"));
        assert!(refused.to_string().contains("own.author (house rule 1)"), "{refused}");
        // What is stored already stays, and putting it again is nothing new.
        assert!(operator(store).put(grain("tea")).unwrap().is_duplicate());
    };
    check(&store);
    let again = session.change_rules(AUTHORED, false, "once more").unwrap();
    assert!(!again.changed, "it holds already");
    drop(session);
    store.close().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new()).unwrap();
    check(&store);
    let entries = operator(&store).audit(None, 100).unwrap();
    let changes: Vec<_> = entries.iter().filter(|e| e.operation == "preset_changed").collect();
    assert_eq!(changes.len(), 1, "what changes nothing has no entry");
    assert_eq!(changes[0].reason.as_deref(), Some("who says so?"));
    assert!(store.verify(true).unwrap().ok);
}

#[test]
fn a_rule_is_loosened_only_where_that_is_meant_and_the_audit_log_says_what() {
    let dir = TempDir::new().unwrap();
    let store = new(&dir, "gdpr");
    let session = operator(&store);
    let loosening = r#"
        drop = ["gdpr.basis"]
        settings.erasure_sla_days = { value = 10, article = "house rule 2" }
        settings.query_limit = { value = 500, article = "house rule 2" }
    "#;
    let told =
        ["query_limit from 50 (GDPR Art. 5(1)(c)) to 500", "without gdpr.basis (GDPR Art. 6(1))"];
    let refused = session.change_rules(loosening, false, "in the way").unwrap_err();
    assert_eq!(refused.code(), "ERR_POLICY");
    assert!(told.iter().all(|what| refused.to_string().contains(what)), "{refused}");
    assert_eq!(session.put(of_user("tea")).unwrap_err().code(), "ERR_POLICY");
    assert_eq!(store.rules().settings.erasure_sla_days.value, 28, "nothing of it was taken");
    let changed = session.change_rules(loosening, true, "the DPO agreed").unwrap();
    assert_eq!(changed.loosened, told);
    session.put(of_user("tea")).unwrap();
    let entries = session.audit(None, 100).unwrap();
    let changes: Vec<_> = entries.iter().filter(|e| e.operation == "preset_changed").collect();
    let decisions: Vec<_> = changes.iter().map(|entry| entry.decision.as_str()).collect();
    assert_eq!(decisions, ["refused", "done"]);
    for (entry, reason) in changes.iter().zip(["in the way", "the DPO agreed"]) {
        assert_eq!(
            (entry.rules.as_slice(), entry.reason.as_deref()),
            (&told.map(str::to_owned)[..], Some(reason))
        );
    }
    assert_eq!(store.rules().loosened, told, "and the rules say so for good");
}

#[test]
fn rules_of_a_further_preset_are_added_without_loosening_any() {
    let dir = TempDir::new().unwrap();
    let store = new(&dir, "open");
    let session = operator(&store);
    session.put(of_user("tea")).unwrap();
    let changed = session.change_rules(r#"extends = "gdpr""#, false, "we serve Europe").unwrap();
    assert!(changed.loosened.is_empty() && changed.added.contains(&"gdpr.basis".to_owned()));
    assert_eq!(session.put(of_user("water")).unwrap_err().code(), "ERR_POLICY");
    let rules = store.rules();
    assert_eq!((rules.preset, rules.also.as_slice()), ("open", &["gdpr"][..]));
    assert!(rules.settings.user_may_erase.value);
}

#[test]
fn a_store_keeps_the_preset_it_was_created_with() {
    let dir = TempDir::new().unwrap();
    new(&dir, "sox").close().unwrap();
    let open = |preset: Option<&str>| {
        let options = OpenOptions::new().create(true);
        let options = match preset {
            Some(name) => options.preset(Preset::from_name(name).unwrap()),
            None => options,
        };
        Store::open(dir.path(), &options)
    };
    assert_eq!(open(None).unwrap().rules().preset, "sox");
    assert_eq!(open(Some("sox")).unwrap().rules().preset, "sox");
    for other in ["open", "gdpr"] {
        let refused = open(Some(other)).unwrap_err();
        assert_eq!(refused.code(), "ERR_POLICY", "{other}");
        assert!(refused.to_string().contains("holds to sox"), "{refused}");
        assert!(refused.hint().contains("policy set"), "{}", refused.hint());
    }
    assert_eq!(open(None).unwrap().rules().preset, "sox", "and it still opens");
}

#[test]
fn only_the_operator_changes_rules_and_says_why() {
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).operator("did:web:boss");
    let store = Store::open(dir.path(), &options).unwrap();
    let as_who = |actor: Option<&str>, namespace: Option<&str>, user: Option<&str>| {
        store.session(SessionOptions {
            actor: actor.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            user_id: user.map(str::to_owned),
            ..SessionOptions::default()
        })
    };
    for session in [
        as_who(Some("did:web:agent"), None, None),
        as_who(Some("did:web:boss"), Some("work"), None),
        as_who(None, None, Some("u1")),
    ] {
        let refused = session.change_rules(AUTHORED, true, "I want to").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Access, "{:?}", session.options());
    }
    let boss = as_who(Some("did:web:boss"), None, None);
    assert_eq!(boss.change_rules(AUTHORED, false, " ").unwrap_err().code(), "ERR_EMPTY");
    let long = "x".repeat(grainstore::limits::MAX_REASON_BYTES + 1);
    assert_eq!(boss.change_rules(AUTHORED, false, &long).unwrap_err().code(), "ERR_TOO_LARGE");
    assert!(boss.change_rules(AUTHORED, false, "I may").unwrap().changed);
}

/// A batch with one grain that is refused stores none of them, and says which.
#[test]
fn a_batch_is_refused_as_a_whole_and_names_the_grain() {
    let dir = TempDir::new().unwrap();
    let store = new(&dir, "gdpr");
    let session = operator(&store);
    let refused = session.put_batch([grain("tea"), of_user("water"), grain("wine")]).unwrap_err();
    assert_eq!((refused.code(), refused.batch_index()), ("ERR_POLICY", Some(1)));
    assert_eq!(store.stats().unwrap().grains, 0);
    let last = session.audit(None, 100).unwrap().pop().unwrap();
    assert_eq!(
        (last.decision.as_str(), last.rules.as_slice()),
        ("refused", &["gdpr.basis".to_owned()][..])
    );
}

/// A trial says what a supersession would come to, by the rules of the store as well.
#[test]
fn a_trial_of_a_supersession_knows_the_rules() {
    let dir = TempDir::new().unwrap();
    let store = new(&dir, "gdpr");
    let session = operator(&store);
    let old = session.put(grain("tea")).unwrap().address();
    let trial = session.try_supersede(&old, of_user("water"), None).unwrap();
    assert_eq!(trial.refusal.map(|error| error.code()), Some("ERR_POLICY"));
    let entries = session.audit(None, 100).unwrap();
    assert!(entries.iter().all(|entry| entry.decision == "done"), "a trial leaves no entry");
}

/// A session that was there before is held to new rules on reading as well.
#[test]
fn a_session_that_is_there_reads_by_the_rules_as_they_are_now() {
    let dir = TempDir::new().unwrap();
    let store = new(&dir, "open");
    let session = operator(&store);
    let json = r#"{"type": "consent", "subject_did": "did:web:alice", "grantee_did": "did:web:agent",
        "scope": ["store"], "is_withdrawal": false, "created_at": 1000}"#;
    let consent = session.put(Grain::from_json(json).unwrap()).unwrap().address().to_string();
    let mut fields = of_user("tea").into_fields();
    fields.insert("processing_basis".to_owned(), consent.as_str().into());
    let tea = session.put(Grain::from_fields(fields).unwrap()).unwrap().address();
    session.get(&tea).unwrap();
    session.change_rules(r#"extends = "gdpr""#, false, "we serve Europe").unwrap();
    assert_eq!(session.get(&tea).map(drop).unwrap_err().code(), "ERR_POLICY");
    assert!(!session.exists(&tea).unwrap());
    session.change_rules(r#"drop = ["gdpr.consent-retrieve"]"#, true, "they agreed").unwrap();
    session.get(&tea).unwrap();
}
