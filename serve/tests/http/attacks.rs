//! What a holder of a token, or somebody without one, tried in order to go on, to see, or to keep others out.

use std::fs;
use std::time::Duration;

use grainstore_rpc::Client;
use grainstore_serve::{Grant, NewToken, Tokens};
use serde_json::{Value, json};

use crate::kit::Served;
use crate::socket::Socket;
use crate::streams::{STATEMENT, start, with_beliefs};

fn revoke(served: &Served, token: &str) {
    let id = token.split('_').nth(1).unwrap();
    Tokens::of(served.path()).revoke(id).unwrap().unwrap();
}

fn sign_in(served: &Served, body: &Value) -> (u16, String) {
    let body = body.to_string();
    let length = body.len().to_string();
    let answer =
        served.raw(served.head("POST /console/session", &[("Content-Length", &length)]) + &body);
    let cookie =
        answer.header("set-cookie").unwrap_or_default().split(';').next().unwrap_or_default();
    (answer.status, cookie.to_owned())
}

#[test]
fn a_revoked_token_starts_and_resumes_nothing_over_an_open_socket() {
    let (served, _) = with_beliefs(30);
    let token = served.tenant("team");
    let bearer = format!("Bearer {token}");
    let mut socket = Socket::open(&served, &[("Authorization", &bearer)])
        .unwrap_or_else(|status| panic!("{status}"));
    socket.wait_at_most(Duration::from_millis(500));
    // A pause may come when all was sent already.
    let paused = (0..100).map(|attempt| attempt.to_string()).find(|id| {
        let query = json!({ "query": STATEMENT });
        socket.say(&json!({ "action": "assemble", "request_id": id, "payload": query }));
        socket.say(&json!({ "action": "pause", "request_id": id }));
        let before = std::iter::from_fn(|| socket.hear()).map(|message| message["type"].clone());
        before.last().is_some_and(|kind| kind != "assembly_completed")
    });
    socket.wait_at_most(Duration::from_secs(60));
    revoke(&served, &token);
    socket.say(&json!({ "action": "resume", "request_id": paused.unwrap() }));
    let mut after = Vec::new();
    while let Some(message) = socket.hear() {
        after.push(message["type"].as_str().unwrap().to_owned());
    }
    assert!(!after.iter().any(|kind| kind == "chunk"), "{after:?}");
}

#[test]
fn a_token_has_so_many_sockets_and_each_keeps_the_place_of_its_connection() {
    let served = Served::new();
    let (token, operator) = (served.tenant("team"), served.operator());
    let bearer = format!("Bearer {token}");
    let open = || Socket::open(&served, &[("Authorization", &bearer)]);
    let sockets: Vec<_> =
        (0..8).map(|_| open().unwrap_or_else(|status| panic!("{status}"))).collect();
    assert_eq!(open().err(), Some(429));
    let figures = served.get(&operator, "/metrics").text();
    let count = figures.lines().find_map(|line| line.strip_prefix("grainstore_http_connections "));
    assert!(count.unwrap().parse::<u32>().unwrap() >= 8, "{figures}");
    drop(sockets);
    // They end by themselves; then there is room again.
    let again = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        open().ok()
    });
    assert!(again.is_some());
}

#[test]
fn many_sign_ins_of_a_token_sign_nobody_else_out() {
    let served = Served::new();
    let (_, operator) = sign_in(&served, &json!({ "code": served.code }));
    let token = served.tenant("team");
    let cookies: Vec<_> = (0..20).map(|_| sign_in(&served, &json!({ "token": token })).1).collect();
    let who = |cookie: &str| {
        served.raw(served.head("GET /console/session", &[("Cookie", cookie)])).status
    };
    assert_eq!(who(&operator), 200);
    assert_eq!(
        (who(&cookies[0]), who(&cookies[19])),
        (401, 200),
        "the oldest of its own gives way"
    );
}

#[test]
fn many_short_streams_of_a_token_leave_room_for_those_of_others() {
    let (served, token) = with_beliefs(1);
    for _ in 0..270 {
        let mut stream = start(&served, &token, "text/event-stream");
        assert_eq!(stream.status, 200);
        while stream.event().is_some() {}
    }
    let other = served.tenant("team");
    assert_eq!(start(&served, &other, "text/event-stream").status, 200);
}

#[test]
fn tokens_of_a_directory_that_took_the_place_of_the_stores_open_nothing() {
    let served = Served::new();
    let token = served.operator();
    assert_eq!(served.get(&token, "/v1").status, 200);
    let (here, there) = (served.path().to_owned(), served.path().with_extension("moved"));
    fs::rename(&here, &there).unwrap();
    fs::create_dir(&here).unwrap();
    fs::write(here.join("grains.redb"), b"").unwrap();
    let grant = Grant { writes: true, operator: true, ..Grant::default() };
    let forged = Tokens::of(&here).create(NewToken { grant, ..NewToken::default() }).unwrap();
    for token in [forged.text.as_str(), &token] {
        let refused = served.get(token, "/v1");
        assert_eq!(refused.refusal().0, 500);
        assert!(!refused.text().contains(here.to_str().unwrap()), "{}", refused.text());
    }
    fs::remove_dir_all(&here).unwrap();
    fs::rename(&there, &here).unwrap();
    assert_eq!(served.get(&token, "/v1").status, 200);
}

#[cfg(unix)]
#[test]
fn a_file_of_tokens_that_is_a_link_is_not_followed() {
    let served = Served::new();
    let token = served.operator();
    let (file, elsewhere) =
        (served.path().join("tokens.json"), served.path().join("elsewhere.json"));
    fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert_eq!(served.get(&token, "/v1").refusal().0, 500);
}

#[test]
fn what_reaching_the_store_comes_to_names_no_place_and_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let create = grainstore::OpenOptions::new().create(true);
    let options = grainstore_rpc::ClientOptions::new(create, grainstore::SessionOptions::default());
    let owner = Client::open(dir.path(), options).unwrap();
    let served = Served::on(dir, grainstore::OpenOptions::new(), |_| {});
    let token = served.tenant("team");
    let address = served.put(&token, "team", "alice", "tea");
    // The files of the store go, and its owner ends: it can be opened nowhere.
    fs::rename(served.path().join("grains.redb"), served.path().join("gone.redb")).unwrap();
    owner.close().unwrap();
    let place = served.path().to_str().unwrap().to_owned();
    let refused = [
        served.get(&token, &format!("/v1/grains/{address}")),
        served.post(
            &token,
            "/v1/grains",
            &json!({ "grain": crate::kit::belief("team", "bob", "tea") }),
        ),
        served.post(&token, "/v1/cal", &json!({ "query": "RECALL beliefs" })),
    ];
    for answer in refused {
        assert_eq!(answer.status / 100, 5, "{answer:?}");
        assert!(
            !answer.text().contains(&place) && !answer.text().contains("process "),
            "{}",
            answer.text()
        );
    }
    fs::rename(served.path().join("gone.redb"), served.path().join("grains.redb")).unwrap();
    assert_eq!(served.get(&token, &format!("/v1/grains/{address}")).status, 200);
}

#[test]
fn a_stream_is_not_taken_from_its_reader_by_head() {
    let (served, token) = with_beliefs(5);
    let mut stream = start(&served, &token, "text/event-stream");
    let place = stream.header("content-location").unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let head = served.lines(served.head(&format!("HEAD {place}"), &[("Authorization", &bearer)]));
    assert_eq!(head.status, 405);
    let mut last = String::new();
    while let Some((_, kind, _)) = stream.event() {
        last = kind;
    }
    assert_eq!(last, "assembly_completed");
}
