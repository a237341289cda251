//! What a session with a namespace learns of grains it does not see: nothing but what
//! docs/security.md says.

use grainstore::cal::Query;
use grainstore::{QueryPlan, Session, SessionOptions};
use tempfile::TempDir;

use crate::kit::{grain, open};

/// Grains of the own namespace: more than are scored one by one.
const OWN: usize = 2_100;

/// A store with enough grains in a namespace to be searched by words, and these texts in another: a
/// session of the first.
fn beside(others: &[&str]) -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let all = open(&dir).session(SessionOptions::default());
    let event = |namespace: &str, at: usize, content: &str| {
        grain(&format!(
            r#"{{"type": "event", "content": "{content}", "namespace": "{namespace}",
                "created_at": {at}}}"#
        ))
    };
    let own = (0..OWN).map(|at| event("own", at, &format!("filler {at}")));
    all.put_batch(own).unwrap();
    all.put_batch(others.iter().enumerate().map(|(at, text)| event("other", at, text))).unwrap();
    let session = of(&all, Some("own"), None);
    (dir, session)
}

/// Another session of the same store.
fn of(session: &Session, namespace: Option<&str>, user: Option<&str>) -> Session {
    session.store().session(SessionOptions {
        namespace: namespace.map(str::to_owned),
        user_id: user.map(str::to_owned),
        ..SessionOptions::default()
    })
}

fn plan(session: &Session, text: &str) -> QueryPlan {
    session.explain(&Query::default().searching(text)).unwrap()
}

#[test]
fn a_plan_names_what_was_asked_and_no_word_or_number_of_others() {
    let (_dir, session) = beside(&["codename zetaaurora", "codename zetabismarck"]);
    for text in ["zeta*", "zetaauror~", "zetaaurxxa~2", "+zeta*", "\"codename zetaaurora\""] {
        let plan = plan(&session, text);
        assert_eq!(
            (plan.index.as_str(), plan.lists[0].lookups.as_slice()),
            ("text", &[text.to_owned()][..])
        );
        assert!(plan.estimated >= OWN as u64 / 2, "grains of its own: {plan:?}");
        assert_eq!(plan.lists[0].rows, plan.estimated);
    }
    assert_eq!(plan(&session, "filler codename -zeta*").lists[0].lookups, ["filler", "codenam"]);
    // The same without the others is the same plan.
    let (_dir, alone) = beside(&[]);
    let told = |session| serde_json::to_string(&plan(session, "zeta* codename")).unwrap();
    assert_eq!(told(&session), told(&alone));
    let user = of(&session, None, Some("alice"));
    assert_eq!(plan(&user, "zeta*").lists[0].lookups, ["zeta*"]);
    let all = of(&session, None, None);
    assert_eq!(
        plan(&all, "zeta*").lists[0].lookups,
        ["\"zetaaurora\" in 1 grains", "\"zetabismarck\" in 1 grains"]
    );
}
