//! The sensitivity that a writer gives a grain goes on with what takes its place (OMS 13.1).
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use grainstore::cal::{ExecuteOptions, Tier};
use grainstore::format::{
    BeliefBuilder, Blob, ContentAddress, EncodeOptions, EpochMs, Grain, Header, Sensitivity, Value,
};
use grainstore::{Offer, OpenOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

fn open(dir: &TempDir) -> Session {
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    store.session(SessionOptions::default())
}

fn belief(object: &str) -> BeliefBuilder {
    BeliefBuilder::new(EpochMs::new(2000), "alice", "takes", object, 0.9)
}

fn of_level(grain: &Grain, level: Sensitivity) -> Blob {
    let options = EncodeOptions { sensitivity: Some(level), ..EncodeOptions::default() };
    grain.encode_with(&options).unwrap()
}

/// A grain of health that no tag tells of.
fn phi(session: &Session) -> ContentAddress {
    let blob = of_level(&belief("aspirin").build().unwrap(), Sensitivity::Phi);
    session.put(blob).unwrap().address()
}

fn level(session: &Session, address: &ContentAddress) -> Sensitivity {
    Header::read(&session.get(address).unwrap().blob).unwrap().0.flags.sensitivity()
}

#[test]
fn a_successor_is_as_sensitive_as_what_it_replaces_was_made() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let old = phi(&session);
    let new = session.supersede(&old, belief("ibuprofen").build().unwrap(), Some("why")).unwrap();
    assert_eq!(level(&session, &new), Sensitivity::Phi);
    let third = session.supersede(&new, belief("nothing").build().unwrap(), None).unwrap();
    assert_eq!(level(&session, &third), Sensitivity::Phi, "and so on");
}

#[test]
fn cal_keeps_the_sensitivity_too() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let old = phi(&session);
    let statement = format!("SUPERSEDE sha256:{old} SET object = \"ibuprofen\" REASON \"why\"");
    let options = ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(session.now()) };
    session.ask_with(statement.as_bytes(), &options).unwrap();
    let new = session.get(&old).unwrap().state.superseded_by.unwrap();
    assert_eq!(level(&session, &new), Sensitivity::Phi);
}

#[test]
fn its_own_sensitivity_counts_where_that_is_higher() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let old = session.put(of_level(&belief("aspirin").build().unwrap(), Sensitivity::Internal));
    let old = old.unwrap().address();
    let tagged = belief("ibuprofen").structural_tags(vec!["pii:name".to_owned()]).build().unwrap();
    let new = session.supersede(&old, tagged, None).unwrap();
    assert_eq!(level(&session, &new), Sensitivity::Pii);
    let given = of_level(&belief("nothing").build().unwrap(), Sensitivity::Phi);
    let third = session.supersede(&new, Grain::decode(given.bytes()).unwrap(), None).unwrap();
    assert_eq!(level(&session, &third), Sensitivity::Phi, "though it got its derived_from");
}

#[test]
fn what_tags_asked_for_goes_with_the_tags() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let tagged = belief("aspirin").structural_tags(vec!["phi:drug".to_owned()]).build().unwrap();
    let old = session.put(tagged).unwrap().address();
    let new = session.supersede(&old, belief("water").build().unwrap(), None).unwrap();
    assert_eq!(level(&session, &new), Sensitivity::Public);
}

#[test]
fn bytes_stay_as_they_are_and_are_warned_of() {
    let dir = TempDir::new().unwrap();
    let session = open(&dir);
    let old = phi(&session);
    let from = |object: &str| {
        let parents = vec![Value::from(old.to_string())];
        belief(object).derived_from(parents).build().unwrap()
    };
    let warned = |offer: &Offer| session.warnings_of_successor(&old, offer).join(" ");
    let less = Offer::from(of_level(&from("ibuprofen"), Sensitivity::Pii));
    assert!(warned(&less).contains("sensitivity"), "{}", warned(&less));
    let same = Offer::from(of_level(&from("ibuprofen"), Sensitivity::Phi));
    assert_eq!(warned(&same), "");
    assert_eq!(warned(&from("ibuprofen").into()), "");
    let new = session.supersede(&old, less, None).unwrap();
    assert_eq!(level(&session, &new), Sensitivity::Pii);
}
