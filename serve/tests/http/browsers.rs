//! What a browser may do: the console with its cookie, and no page of another origin.

use serde_json::{Value, json};

use crate::kit::{Answer, Served};

/// Signs in with a body, and returns the answer.
fn sign_in(served: &Served, body: &Value) -> Answer {
    let body = body.to_string();
    let length = body.len().to_string();
    let headers = [("Content-Type", "application/json"), ("Content-Length", &*length)];
    served.raw(served.head("POST /console/session", &headers) + &body)
}

/// The cookie and the CSRF value of who has signed in.
fn signed_in(served: &Served, body: &Value) -> (String, String) {
    let answer = sign_in(served, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    (cookie, answer.json()["csrf"].as_str().unwrap().to_owned())
}

#[test]
fn the_url_signs_in_once() {
    let served = Served::new();
    let answer = sign_in(&served, &json!({ "code": served.code }));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains("Secure"), "there is no TLS here: {cookie}");
    assert_eq!(answer.json()["access"]["operator"], true);
    assert_eq!(sign_in(&served, &json!({ "code": served.code })).refusal().0, 401);
    for wrong in [json!({}), json!({ "code": "a", "token": "b" }), json!({ "code": 1 }), json!([])]
    {
        assert_eq!(sign_in(&served, &wrong).refusal().0, 400, "{wrong}");
    }
    assert_eq!(sign_in(&served, &json!({ "code": "" })).refusal().0, 401);
}

#[test]
fn a_call_with_the_cookie_has_its_header() {
    let served = Served::new();
    let (cookie, csrf) = signed_in(&served, &json!({ "code": served.code }));
    let with = |headers: &[(&str, &str)]| served.raw(served.head("GET /v1/stats", headers)).status;
    assert_eq!(with(&[("Cookie", &cookie), ("X-CSRF-Token", &csrf)]), 200);
    assert_eq!(with(&[("Cookie", &cookie)]), 403);
    assert_eq!(with(&[("Cookie", &cookie), ("X-CSRF-Token", "x")]), 403);
    assert_eq!(with(&[("X-CSRF-Token", &csrf)]), 401);
    let who = served.raw(served.head("GET /console/session", &[("Cookie", &cookie)]));
    assert_eq!(who.json()["csrf"], csrf);
    let out = [("Cookie", &*cookie), ("X-CSRF-Token", &csrf)];
    assert_eq!(served.raw(served.head("DELETE /console/session", &out)).status, 204);
    assert_eq!(with(&[("Cookie", &cookie), ("X-CSRF-Token", &csrf)]), 401);
}

#[test]
fn who_signed_in_with_a_token_is_out_once_it_is_revoked() {
    let served = Served::new();
    let token = served.tenant("team");
    let (cookie, csrf) = signed_in(&served, &json!({ "token": token }));
    let headers = [("Cookie", &*cookie), ("X-CSRF-Token", &csrf)];
    assert_eq!(served.raw(served.head("GET /v1", &headers)).json()["access"]["namespace"], "team");
    let id = token.split('_').nth(1).unwrap();
    grainstore_serve::Tokens::of(served.path()).revoke(id).unwrap();
    assert_eq!(served.raw(served.head("GET /v1", &headers)).status, 401);
}

#[test]
fn pages_of_other_origins_and_names_of_others_get_nothing() {
    let served = Served::new();
    let token = served.operator();
    let bearer = format!("Bearer {token}");
    let own = format!("http://{}", served.address);
    for (origin, status) in
        [(&*own, 200), ("http://evil.example", 403), ("null", 403), ("https://127.0.0.1", 403)]
    {
        let answer =
            served.raw(served.head("GET /v1", &[("Authorization", &bearer), ("Origin", origin)]));
        assert_eq!(answer.status, status, "{origin}");
        assert!(answer.header("access-control-allow-origin").is_none());
    }
    let rebound =
        format!("GET /v1 HTTP/1.1\r\nHost: evil.example\r\nAuthorization: {bearer}\r\n\r\n");
    assert_eq!(served.raw(rebound).refusal().0, 421);
    let preflight = [("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")];
    let answer = served.raw(served.head("OPTIONS /v1/grains", &preflight));
    assert!(
        [403, 405].contains(&answer.status)
            && answer.header("access-control-allow-origin").is_none()
    );
    let cross =
        [("Authorization", &*bearer), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors")];
    assert_eq!(served.raw(served.head("GET /v1", &cross)).status, 403);
}

#[test]
fn the_console_is_served_with_a_policy_that_runs_nothing_else() {
    let served = Served::new();
    for (path, media) in
        [("/", "text/html"), ("/console.js", "text/javascript"), ("/console.css", "text/css")]
    {
        let answer = served.raw(served.head(&format!("GET {path}"), &[]));
        assert_eq!(answer.status, 200);
        assert!(answer.header("content-type").unwrap().starts_with(media), "{answer:?}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("script-src 'self'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let tag = answer.header("etag").unwrap();
        let again = served.raw(served.head(&format!("GET {path}"), &[("If-None-Match", tag)]));
        assert_eq!((again.status, again.body.len()), (304, 0));
    }
}

#[test]
fn script_in_a_grain_is_never_html() {
    let served = Served::new();
    let token = served.operator();
    let script = "<script>alert(1)</script>";
    let address = served.put(&token, "team", script, script);
    for path in [
        format!("/v1/grains/{address}"),
        format!("/v1/latest?subject={}&relation=prefers", "%3Cscript%3E"),
    ] {
        let answer = served.get(&token, &path);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    let refused = served.get(&token, "/v1/audit?%3Cscript%3E=1");
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
}
