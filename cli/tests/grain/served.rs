//! `grain serve` and `grain tokens` as commands: what they print, what they refuse, and TLS by files.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::kit::Place;

/// A server that is ended with this.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts one, and waits for its URL.
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let all = [&["serve", "--listen", "127.0.0.1:0", "--log", "off"], arguments].concat();
        let mut child = place.start(&all);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url =
            line.trim().strip_prefix("console: ").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Self { child, url }
    }

    /// The URL without the code.
    fn base(&self) -> &str {
        self.url.split("/#code=").next().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let place = Place::with_store();
    let made = place
        .grain(&[
            "--namespace",
            "team",
            "tokens",
            "create",
            "--tier",
            "1",
            "--label",
            "bot",
            "--json",
        ])
        .done();
    let made = made.json();
    let text = made["token"].as_str().unwrap();
    let id = made["id"].as_str().unwrap();
    assert!(text.starts_with(&format!("gst_{id}_")), "{text}");
    let listed = place.grain(&["tokens", "list"]).done();
    assert!(
        listed.line().contains("writes") && listed.line().ends_with("bot"),
        "{}",
        listed.line()
    );
    assert!(!listed.text().contains(text) && !listed.text().contains("team"), "{}", listed.text());
    let revoked = place.grain(&["tokens", "revoke", text]).done();
    assert!(revoked.line().contains("revoked"), "by its text as well: {}", revoked.line());
    let listed: Value = place.grain(&["tokens", "list", "--json"]).done().json();
    assert!(listed["revoked_at"].is_i64() && listed["token"].is_null(), "{listed}");
}

#[test]
fn tokens_that_make_no_sense_are_refused() {
    let place = Place::with_store();
    for (arguments, code, exit) in [
        (&["--user", "ann", "tokens", "create", "--as-operator"][..], "ERR_SCHEMA", 2),
        (&["tokens", "create", "--expires", "2020-01-01T00:00:00Z"], "ERR_SCHEMA", 2),
        (&["tokens", "revoke", "00000000"], "ERR_NOT_FOUND", 1),
        (&["--store", "none.grains", "tokens", "create"], "ERR_NOT_FOUND", 1),
    ] {
        let refused = place.grain(arguments);
        assert_eq!(
            (refused.error_code().as_str(), refused.code),
            (code, exit),
            "{arguments:?}: {}",
            refused.err
        );
    }
    for arguments in [
        &["tokens", "create", "--tier", "2"][..],
        &["serve", "--listen", "x"],
        &["serve", "--tls-cert", "x"],
    ] {
        assert_eq!(place.grain(arguments).code, 2, "{arguments:?}");
    }
    let refused =
        place.grain(&["serve", "--demo", "--listen", "127.0.0.1:0", "--public-url", "memory"]);
    assert!(refused.err.contains("ERR_SCHEMA") && refused.code == 2, "{}", refused.err);
}

#[cfg(unix)]
#[test]
fn a_signal_stops_a_server_and_a_store_that_cannot_be_opened_ends_it() {
    let place = Place::empty();
    let mut server = Server::start(&place, &[]);
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert!(server.child.wait().unwrap().success());
    place.grain(&["verify"]).done();
    std::fs::write(place.path().join("memory.grains/tokens.json"), "{").unwrap();
    let refused = place.grain(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(
        (refused.error_code().as_str(), refused.code),
        ("ERR_CORRUPT", 1),
        "{}",
        refused.err
    );
}

/// Runs a program, if there is one.
fn run(place: &Place, program: &str, arguments: &[&str]) -> Option<String> {
    let run = Command::new(program)
        .args(arguments)
        .current_dir(place.path())
        .stderr(Stdio::null())
        .output();
    run.ok().map(|done| String::from_utf8(done.stdout).unwrap())
}

#[test]
fn connections_are_encrypted_by_files() {
    let place = Place::with_store();
    let make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 \
                -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
    let make: Vec<_> = make.split_whitespace().collect();
    let has_tools = run(&place, "openssl", &make).and_then(|_| run(&place, "curl", &["--version"]));
    if has_tools.is_none() || !place.path().join("cert.pem").exists() {
        println!("skipped: openssl and curl are needed");
        return;
    }
    let server = Server::start(&place, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let ready = format!("{}/ready", server.base());
    assert!(ready.starts_with("https://"), "{ready}");
    assert_eq!(
        run(&place, "curl", &["-s", "--cacert", "cert.pem", &ready]).as_deref(),
        Some("ready\n")
    );
    assert_eq!(run(&place, "curl", &["-s", &ready]).as_deref(), Some(""), "nobody vouches for it");
    let plain = ready.replace("https", "http");
    assert_eq!(run(&place, "curl", &["-s", &plain]).as_deref(), Some(""));
    let code = server.url.split("code=").nth(1).unwrap();
    let (session, body) =
        (format!("{}/console/session", server.base()), json!({ "code": code }).to_string());
    let cookie =
        run(&place, "curl", &["-si", "--cacert", "cert.pem", &session, "-d", &body]).unwrap();
    assert!(cookie.contains("; Secure"), "{cookie}");
    for files in [["key.pem", "key.pem"], ["cert.pem", "cert.pem"], ["none.pem", "key.pem"]] {
        let refused = place.grain(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            files[0],
            "--tls-key",
            files[1],
        ]);
        assert!(
            ["ERR_KEY", "ERR_NOT_FOUND"].contains(&refused.error_code().as_str()),
            "{}",
            refused.err
        );
    }
}
