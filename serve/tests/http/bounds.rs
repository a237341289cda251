//! Malformed requests, and clients that do not keep up: a clear status, or the end of the connection; never the end of
//! the server.

use std::io::{BufReader, Read as _, Write as _};

use grainstore_rpc::{Client, ClientOptions};
use serde_json::json;

use crate::kit::{Served, read};

#[test]
fn malformed_requests_are_refused_and_the_server_goes_on() {
    let served = Served::new();
    let host = served.address;
    let long = "a".repeat(200 << 10);
    let many: String = (0..120).map(|n| format!("X-{n}: 1\r\n")).collect();
    for (request, statuses) in [
        ("GARBAGE\r\n\r\n".to_owned(), [400, 400]),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), [400, 400]),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: other\r\n\r\n"), [400, 400]),
        (format!("GET http://evil.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n"), [400, 421]),
        (format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n"), [414, 431]),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {long}\r\n\r\n"), [431, 431]),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n"), [431, 431]),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: a\rb\r\n\r\n"), [400, 400]),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nX : a\r\n\r\n"), [400, 400]),
        (format!("GET / HTTP/9.9\r\nHost: {host}\r\n\r\n"), [400, 505]),
        (
            format!("POST /v1/cal HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n"),
            [400, 400],
        ),
        (
            format!(
                "POST /v1/cal HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"
            ),
            [400, 400],
        ),
    ] {
        let shown: String = request.chars().take(60).collect();
        let status = served.try_raw(&request).map(|answer| answer.status);
        // What is no request at all may be answered by the end of the connection.
        assert!(status.is_none_or(|status| statuses.contains(&status)), "{shown:?}: {status:?}");
    }
    assert_eq!(served.raw(served.head("GET /ready", &[])).status, 200);
}

#[test]
fn two_lengths_of_a_body_smuggle_no_second_request() {
    let served = Served::new();
    let mut stream = served.connect();
    let hidden = format!("GET /v1/openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
    let request = format!(
        "POST /v1/cal HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
        served.address,
        hidden.len() + 5
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
    let _ = stream.read_to_end(&mut all);
    let text = String::from_utf8_lossy(&all);
    assert!(!text.contains("\"openapi\""), "{text}");
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_read_whole() {
    let served = Served::with(|options| options.max_body_bytes = 4_096);
    let token = served.operator();
    let large = "x".repeat(5_000);
    let refused = served.post(&token, "/v1/cal", &json!({ "query": large }));
    assert_eq!(refused.refusal(), (413, "ERR_TOO_LARGE".into()));
    let bearer = format!("Bearer {token}");
    let claimed = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
        ("Content-Length", "99999999999"),
    ];
    let refused = served.raw(served.head("POST /v1/cal", &claimed));
    assert_eq!(refused.refusal(), (413, "ERR_TOO_LARGE".into()));
    let chunked = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
        ("Transfer-Encoding", "chunked"),
    ];
    let request = format!("{}1388\r\n{large}\r\n0\r\n\r\n", served.head("POST /v1/cal", &chunked));
    assert_eq!(served.raw(request).refusal(), (413, "ERR_TOO_LARGE".into()));
}

#[test]
fn json_of_any_kind_is_an_answer_with_a_code() {
    let served = Served::new();
    let token = served.operator();
    let deep = "[".repeat(100_000);
    let nested =
        format!("{{\"where\":{}{}}}", "{\"a\":".repeat(500), "1".to_owned() + &"}".repeat(500));
    for body in [
        "",
        "{",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{}{}",
        "{\"where\":1e400}",
        "{\"text\":\"\\ud800\"}",
        "\u{feff}{}",
        &deep,
        &nested,
        "{\"text\":\"\\u0000\"}",
        "{\"limit\":-1}",
        "{\"limit\":1e9}",
        "{\"limit\":18446744073709551616}",
    ] {
        let answer = served.send(&token, "/v1/query", "application/json", body.as_bytes());
        assert!(answer.status < 500, "{body:.40}: {answer:?}");
    }
    let bytes = served.send(&token, "/v1/query", "application/json", b"{\"text\":\"\xff\"}");
    assert_eq!(bytes.status, 400);
}

#[test]
fn headers_of_a_request_are_never_those_of_its_answer() {
    let served = Served::new();
    let token = served.operator();
    for path in [
        "/v1/grains/x%0d%0aSet-Cookie:%20a=b",
        "/v1/history?subject=a%0d%0aX-Evil:%201&relation=r",
        "/v1/nothing%0d%0aX-Evil:%201",
    ] {
        let answer = served.get(&token, path);
        assert!(
            answer.header("x-evil").is_none() && answer.header("set-cookie").is_none(),
            "{answer:?}"
        );
    }
}

#[test]
fn half_open_connections_keep_nobody_out() {
    let served = Served::new();
    let idle: Vec<_> = (0..200).map(|_| served.connect()).collect();
    let halves: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = served.connect();
            stream
                .write_all(
                    b"POST /v1/cal HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc",
                )
                .unwrap();
            stream
        })
        .collect();
    assert_eq!(served.raw(served.head("GET /ready", &[])).status, 200);
    drop((idle, halves));
}

#[test]
fn what_is_under_way_is_answered_when_the_server_stops_and_nothing_acknowledged_is_lost() {
    let served = Served::new();
    let token = served.operator();
    let address = served.address;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let token = token.clone();
            std::thread::spawn(move || {
                let mut acknowledged = Vec::new();
                for number in 0.. {
                    let grain = crate::kit::belief("team", &format!("s{writer}"), &number.to_string());
                    let body = json!({ "grain": grain }).to_string();
                    let Ok(mut stream) = std::net::TcpStream::connect(address) else { break };
                    let head = format!(
                        "POST /v1/grains HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
                         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    if stream.write_all(head.as_bytes()).is_err() {
                        break;
                    }
                    let mut answer = String::new();
                    if stream.read_to_string(&mut answer).is_err() || !answer.starts_with("HTTP/1.1 201") {
                        break;
                    }
                    let json = answer.split("\r\n\r\n").nth(1).unwrap();
                    let json: serde_json::Value = serde_json::from_str(json).unwrap();
                    acknowledged.push(json["address"].as_str().unwrap().to_owned());
                }
                acknowledged
            })
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let (dir, ended) = served.stop();
    ended.unwrap();
    let acknowledged: Vec<String> =
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
    assert!(!acknowledged.is_empty());
    let client = Client::open(dir.path(), ClientOptions::default()).unwrap();
    for address in acknowledged {
        let got: serde_json::Value = client.call("exists", &json!({ "address": address })).unwrap();
        assert_eq!(got["exists"], true, "{address}");
    }
    client.close().unwrap();
}

#[test]
fn a_connection_serves_many_requests_one_after_the_other() {
    let served = Served::new();
    let mut stream = served.connect();
    let request = format!("GET /ready HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
    stream.write_all(request.repeat(20).as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    for _ in 0..20 {
        assert_eq!(read(&mut reader).text(), "ready\n");
    }
}

#[test]
fn a_store_that_another_process_has_open_is_served_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let create = grainstore::OpenOptions::new().create(true);
    let owner = Client::open(dir.path(), ClientOptions::new(create, Default::default())).unwrap();
    let path = dir.path().to_owned();
    let served = Served::on(dir, grainstore::OpenOptions::new(), |_| {});
    let (team, other) = (served.tenant("team"), served.tenant("other"));
    let address = served.put(&team, "team", "alice", "tea");
    assert_eq!(served.get(&other, &format!("/v1/grains/{address}")).status, 404);
    // Whoever has the store open, a token has no rights beyond its own.
    let bare = served.token(grainstore_serve::Grant { writes: true, ..Default::default() });
    assert_eq!(served.post(&bare, "/v1/sweep", &json!({})).refusal(), (403, "ERR_ACCESS".into()));
    owner.close().unwrap();
    assert_eq!(
        served.get(&team, &format!("/v1/grains/{address}")).status,
        200,
        "it has the store open now"
    );
    assert_eq!(served.post(&bare, "/v1/sweep", &json!({})).refusal(), (403, "ERR_ACCESS".into()));
    drop(served);
    assert!(!path.exists());
}

#[test]
fn answers_that_nobody_takes_hold_no_more_than_their_room() {
    let served = Served::new();
    let (greedy, other) = (served.operator(), served.tenant("team"));
    let text = "x".repeat(500_000);
    let mut addresses = Vec::new();
    for number in 0..14 {
        let mut grain = crate::kit::belief("team", &format!("s{number}"), "o");
        grain["object"] = json!(text);
        let put = served.post(&greedy, "/v1/grains", &json!({ "grain": grain }));
        addresses.push(put.json()["address"].clone());
    }
    let body = json!({ "addresses": addresses }).to_string();
    let (bearer, length) = (format!("Bearer {greedy}"), body.len().to_string());
    let headers = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
        ("Content-Length", &length),
    ];
    let request = served.head("POST /v1/grains/get", &headers) + &body;
    // Each asks for seven megabytes and reads nothing.
    let idle: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = served.connect();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(served.raw(&request).refusal(), (503, "ERR_BUSY".into()));
    let body = json!({ "addresses": addresses.iter().take(2).collect::<Vec<_>>() });
    assert_eq!(
        served.post(&other, "/v1/grains/get", &body).status,
        200,
        "others have room of their own"
    );
    drop(idle);
}
