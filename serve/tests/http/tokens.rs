//! Tokens: what is let in, and until when.

use std::time::{SystemTime, UNIX_EPOCH};

use grainstore_serve::{Grant, NewToken, Tokens};
use serde_json::json;

use crate::kit::Served;

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[test]
fn who_sends_no_token_or_a_wrong_one_is_told_so() {
    let served = Served::new();
    let token = served.operator();
    for (headers, said) in [
        (vec![], "no bearer"),
        (vec![("Authorization", "Basic YTpi".to_owned())], "no bearer token"),
        (vec![("Authorization", "Bearer".to_owned())], "no bearer token"),
        (vec![("Authorization", "Bearer gst_00000000_AAAA".to_owned())], "no token of this store"),
        (vec![("Authorization", format!("Bearer {token}x"))], "no token of this store"),
        (
            vec![("Authorization", format!("Bearer {}", token.to_uppercase()))],
            "no token of this store",
        ),
        (
            vec![
                ("Authorization", format!("Bearer {token}")),
                ("Authorization", format!("Bearer {token}")),
            ],
            "no bearer",
        ),
        (vec![("Cookie", "grainstore_console_1=guess".to_owned())], "no bearer"),
    ] {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = served.raw(served.head("GET /v1", &headers));
        assert_eq!(answer.refusal(), (401, "ERR_ACCESS".into()), "{headers:?}");
        assert!(answer.text().contains(said), "{headers:?}: {}", answer.text());
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"), "{answer:?}");
    }
    assert_eq!(served.get(&token, "/v1").status, 200);
    // The scheme is a word in any case.
    let lower =
        served.raw(served.head("GET /v1", &[("Authorization", &format!("bearer {token}"))]));
    assert_eq!(lower.status, 200);
}

#[test]
fn a_token_ends_when_it_is_revoked_and_when_its_time_is_over() {
    let served = Served::new();
    let tokens = Tokens::of(served.path());
    let grant = Grant { namespace: Some("team".into()), ..Grant::default() };
    let made = tokens.create(NewToken { grant: grant.clone(), ..NewToken::default() }).unwrap();
    assert_eq!(served.get(&made.text, "/v1").status, 200);
    tokens.revoke(&made.token.id).unwrap().unwrap();
    let revoked = served.get(&made.text, "/v1");
    assert_eq!(revoked.refusal().0, 401);
    assert!(revoked.text().contains("revoked"));

    let expires_at = Some(now_ms() + 1_500);
    let short = tokens.create(NewToken { grant, expires_at, ..NewToken::default() }).unwrap();
    assert_eq!(served.get(&short.text, "/v1").status, 200);
    std::thread::sleep(std::time::Duration::from_millis(1_600));
    let expired = served.get(&short.text, "/v1");
    assert_eq!(expired.refusal().0, 401);
    assert!(expired.text().contains("expired"));
}

#[test]
fn a_file_of_tokens_that_is_damaged_lets_nobody_in() {
    let served = Served::new();
    let token = served.operator();
    assert_eq!(served.get(&token, "/v1").status, 200);
    std::fs::write(served.path().join("tokens.json"), "{").unwrap();
    let refused = served.get(&token, "/v1");
    assert!((400..600).contains(&refused.status) && refused.status != 200, "{refused:?}");
    assert!(!refused.text().contains(served.path().to_str().unwrap()), "{}", refused.text());
    assert_eq!(served.raw(served.head("GET /health", &[])).status, 200);
}

#[test]
fn too_many_failed_tries_are_refused_and_a_token_that_holds_is_not() {
    let served = Served::new();
    let token = served.operator();
    let mut statuses = Vec::new();
    for _ in 0..70 {
        statuses.push(served.get("gst_00000000_x", "/v1").status);
    }
    assert_eq!(statuses.first(), Some(&401));
    assert_eq!(statuses.last(), Some(&429));
    assert_eq!(served.get(&token, "/v1").status, 200);
}

#[test]
fn a_token_that_asks_too_often_is_told_when_to_come_back() {
    let served = Served::with(|options| options.rate = 5);
    let (busy, other) = (served.operator(), served.tenant("team"));
    let answers: Vec<_> = (0..30).map(|_| served.get(&busy, "/v1")).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(served.get(&other, "/v1").status, 200, "each has a rate of its own");
}

#[test]
fn what_a_token_wrote_is_recorded_under_its_own_name() {
    let served = Served::new();
    let (team, operator) = (served.tenant("team"), served.operator());
    let id = team.split('_').nth(1).unwrap();
    served.put(&team, "team", "alice", "tea");
    let actor = format!("urn:grainstore:token:{id}");
    let own = served.get(&operator, &format!("/v1/audit?by={actor}")).json();
    assert_eq!(own["entries"].as_array().unwrap().len(), 1, "{own}");
    let told = served.get(&team, "/v1").json()["access"].clone();
    assert_eq!(
        (&told["actor"], &told["tier"], &told["operator"]),
        (&json!(actor), &json!(1), &json!(false))
    );
}
