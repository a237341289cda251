//! What a holder of a token, or somebody without one, tried in order to go on, to see, or to keep others out.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use grainstore_rpc::Client;
use grainstore_serve::{Grant, NewToken, Tokens};
use serde_json::{Value, json};

use crate::kit::{Served, belief};
use crate::socket::Socket;
use crate::streams::{paused, start, with_beliefs};

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
    let (request, _) = paused(&mut socket);
    revoke(&served, &token);
    socket.say(&json!({ "action": "resume", "request_id": request }));
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
        served.post(&token, "/v1/grains", &json!({ "grain": belief("team", "bob", "tea") })),
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

#[test]
fn bodies_that_do_not_come_take_neither_turns_nor_room() {
    let served = Served::new();
    let token = served.tenant("team");
    let bearer = format!("Bearer {token}");
    let mut held = Vec::new();
    for (path, count, length) in [("/mcp", 16, "1000"), ("/v1/query", 16, "16000000")] {
        for _ in 0..count {
            let mut stream = served.connect();
            let headers = [
                ("Authorization", bearer.as_str()),
                ("Content-Type", "application/json"),
                ("Accept", "application/json, text/event-stream"),
                ("Content-Length", length),
            ];
            let head = served.head(&format!("POST {path}"), &headers);
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(b"{").unwrap();
            held.push(stream);
        }
    }
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(served.get(&token, "/v1/latest?subject=alice&relation=likes").status, 200);
    // One that needs room for its body.
    let mut grain = belief("team", "alice", &"tea ".repeat(40_000));
    grain["relation"] = json!("drinks");
    assert_eq!(served.post(&token, "/v1/grains", &json!({ "grain": grain })).status, 201);
    // That was before any of the others was given up.
    for stream in held {
        stream.set_nonblocking(true).unwrap();
        let waits = stream.peek(&mut [0]).unwrap_err();
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
    }
}

#[test]
fn a_body_that_comes_to_many_times_its_size_is_refused() {
    let served = Served::new();
    let token = served.tenant("team");
    let zeros = vec![0; 2_000_000];
    let many = json!({ "query": "RECALL beliefs ABOUT $a", "params": { "a": zeros } });
    let refused = served.post(&token, "/v1/cal", &many);
    assert_eq!(refused.refusal(), (413, "ERR_TOO_LARGE".into()));
    let objects = format!("[{}{{}}]", "{\"\":0},".repeat(300_000));
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"recall","arguments":{{"x":{objects}}}}}}}"#
    );
    let answer = served.send(&token, "/mcp", "application/json", call.as_bytes());
    assert_eq!(answer.status, 413, "{}", answer.text());
    // Commas of a text are no values.
    let text = belief("team", "alice", &",{[".repeat(100_000));
    assert_eq!(served.post(&token, "/v1/grains", &json!({ "grain": text })).status, 201);
}

#[test]
fn what_one_tenant_writes_by_cal_takes_nothing_of_anothers_quota() {
    let served = Served::new();
    let add = |token: &str, number: usize| {
        let statement = format!(
            r#"ADD belief SET subject = "s{number}" SET relation = "is" SET object = "o" SET confidence = 0.5 REASON "test""#
        );
        let query = json!({ "query": statement, "tier": 1 });
        let prepared = served.post(token, "/v1/cal/prepare", &query);
        assert_eq!(prepared.status, 200, "{}", prepared.text());
        served.post(token, "/v1/cal/execute", &json!({ "token": prepared.json()["token"] }))
    };
    let (one, other) = (served.tenant("one"), served.tenant("other"));
    for number in 0..20 {
        assert_eq!(add(&one, number).status, 200);
    }
    assert_eq!(add(&one, 20).refusal(), (429, "CAL-E052".into()));
    assert_eq!(add(&other, 0).status, 200);
}

#[test]
fn feeds_that_are_opened_and_closed_leave_nothing_running() {
    let served = Served::new();
    let (team, other) = (served.tenant("team"), served.tenant("other"));
    for batch in 0..4 {
        let grains: Vec<_> =
            (0..5_000).map(|number| belief("team", &format!("s{batch} {number}"), "tea")).collect();
        assert_eq!(
            served.post(&team, "/v1/grains/batch", &json!({ "grains": grains })).status,
            200
        );
    }
    let bearer = format!("Bearer {other}");
    for _ in 0..200 {
        let head = served.head("GET /v1/changes?after=0", &[("Authorization", &bearer)]);
        let feed = served.lines(head);
        assert!(feed.status == 200 || feed.status == 429, "{}", feed.status);
    }
    let own = served.put(&other, "other", "open", "tea");
    let head = served.head("GET /v1/changes?after=0", &[("Authorization", &bearer)]);
    let mut feed = (0..100)
        .find_map(|_| {
            std::thread::sleep(Duration::from_millis(20));
            Some(served.lines(&head)).filter(|feed| feed.status == 200)
        })
        .unwrap();
    assert_eq!(
        feed.event().unwrap().2["subjects"],
        json!([own]),
        "what it does not see is passed by"
    );
    let running = served.get(&served.operator(), "/metrics").text();
    let running =
        running.lines().find_map(|line| line.strip_prefix("grainstore_requests_running "));
    assert!(running.unwrap().parse::<u32>().unwrap() <= 2, "{running:?}");
}
