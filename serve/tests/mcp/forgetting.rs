//! Forgetting: what retracts, what erases, and who is asked.

use serde_json::{Value, json};

use crate::kit::{ASKING, Conversation, PLAIN, code, everything, options};

fn is_there(client: &mut Conversation, address: &str) -> bool {
    let read = client.ask("resources/read", json!({ "uri": format!("grain://{address}") }));
    read.get("result").is_some()
}

#[test]
fn forgetting_retracts_and_the_history_stays_with_its_reason() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let tea = client.fact("alice", "prefers", "tea");
    let forget = json!({ "address": tea, "reason": "she never said so" });
    let mut trial = forget.clone();
    trial["dry_run"] = json!(true);
    let trial = client.done("forget", trial);
    assert_eq!(
        (&trial["outcome"], &trial["detail"]["open_to"]),
        (&json!("nothing"), &json!("anyone"))
    );
    for _ in 0..2 {
        assert_eq!(client.done("forget", forget.clone())["outcome"], "retracted");
        assert_eq!(client.done("search", json!({ "subject": "alice" }))["rows"], json!([]));
    }
    let history = client.done("history", json!({ "address": tea }));
    assert_eq!(history["rows"][0]["state"]["verification_status"], "retracted");
    assert_eq!(history["rows"][0]["reason"], "she never said so");
}

#[test]
fn nothing_but_one_address_is_forgotten() {
    let (_dir, mut client) = everything();
    client.initialize(ASKING);
    let tea = client.fact("alice", "prefers", "tea");
    for address in ["*", "all", "everything", "", "grain://*", tea.split_at(12).0, "'; DELETE"] {
        for erase in [false, true] {
            let call = json!({ "address": address, "reason": "start over", "erase": erase });
            assert_eq!(client.refusal("forget", call), "ERR_SCHEMA", "{address}");
        }
    }
    for call in [
        json!({}),
        json!({ "address": tea }),
        json!({ "address": tea, "reason": " " }),
        json!({ "address": [tea], "reason": "r" }),
        json!({ "user_id": "alice", "reason": "r" }),
    ] {
        assert_eq!(client.refusal("forget", call.clone()), "ERR_SCHEMA", "{call}");
    }
    let unknown = json!({ "address": "0".repeat(64), "reason": "r" });
    assert_eq!(client.refusal("forget", unknown), "ERR_NOT_FOUND");
    assert_eq!(client.done("search", json!({}))["rows"].as_array().unwrap().len(), 1);
}

#[test]
fn nothing_is_erased_unless_the_server_allows_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Conversation::with(options(dir.path()));
    client.initialize(ASKING);
    let tea = client.fact("alice", "prefers", "tea");
    let erase = json!({ "address": tea, "reason": "r", "erase": true });
    assert_eq!(client.refusal("forget", erase.clone()), "ERR_ACCESS");
    let params = json!({ "name": "forget", "arguments": erase });
    assert_eq!(code(&client.ask_modern("tools/call", params, ASKING)["result"]), "ERR_ACCESS");
    assert!(is_there(&mut client, &tea));
}

#[test]
fn nothing_is_erased_where_nobody_can_be_asked() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let tea = client.fact("alice", "prefers", "tea");
    let erase = json!({ "address": tea, "reason": "r", "erase": true });
    assert_eq!(client.refusal("forget", erase.clone()), "ERR_ACCESS");
    let params = json!({ "name": "forget", "arguments": erase });
    for unable in [PLAIN, r#"{"elicitation":{"url":{}}}"#] {
        let error = client.ask_modern("tools/call", params.clone(), unable)["error"].clone();
        assert_eq!(error["code"], -32021, "{unable}: {error}");
        assert!(error["data"]["requiredCapabilities"]["elicitation"].is_object(), "{error}");
    }
    assert!(is_there(&mut client, &tea));
}

/// Calls forget in the era of `initialize`, and answers the question it asks.
fn answer(client: &mut Conversation, address: &str, answer: &Value) -> Value {
    let call = json!({ "name": "forget", "arguments": { "address": address, "reason": "r", "erase": true } });
    let id = client.request("tools/call", &call);
    let asked = client.hear();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("alice prefers tea") && message.contains(address), "{message}");
    // Other requests are answered meanwhile.
    assert!(is_there(client, address));
    client.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }).to_string());
    let response = client.hear();
    assert_eq!(response["id"], id);
    response["result"].clone()
}

#[test]
fn a_person_decides_while_the_call_waits() {
    let (_dir, mut client) = everything();
    client.initialize(ASKING);
    let tea = client.fact("alice", "prefers", "tea");
    for no in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": { "confirm": false } }),
        json!({ "action": "accept", "content": {} }),
    ] {
        assert_eq!(code(&answer(&mut client, &tea, &no)), "ERR_ACCESS", "{no}");
        assert!(is_there(&mut client, &tea));
    }
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let result = answer(&mut client, &tea, &yes);
    assert_eq!(result["structuredContent"]["outcome"], "erased", "{result}");
    assert_eq!(result["structuredContent"]["detail"]["scrubbed"], true, "{result}");
    assert!(!is_there(&mut client, &tea));
    let again = json!({ "address": tea, "reason": "r", "erase": true });
    assert_eq!(client.refusal("forget", again), "ERR_ERASED");
}

#[test]
fn a_person_decides_between_two_calls() {
    let (_dir, mut client) = everything();
    let fact = json!({ "name": "remember",
        "arguments": { "subject": "alice", "relation": "prefers", "object": "tea" } });
    let stored = client.ask_modern("tools/call", fact, ASKING);
    let tea = stored["result"]["structuredContent"]["address"].as_str().unwrap().to_owned();
    let call =
        json!({ "name": "forget", "arguments": { "address": tea, "reason": "r", "erase": true } });
    let ask = |client: &mut Conversation| {
        let result = client.ask_modern("tools/call", call.clone(), ASKING)["result"].clone();
        assert_eq!(result["resultType"], "input_required", "{result}");
        let asked = &result["inputRequests"]["confirm"];
        assert_eq!(asked["method"], "elicitation/create");
        assert!(asked["params"]["message"].as_str().unwrap().contains("alice prefers tea"));
        result["requestState"].clone()
    };
    let again = |client: &mut Conversation, state: &Value, answer: Value, reason: &str| {
        let mut call = call.clone();
        call["requestState"] = state.clone();
        call["inputResponses"] = json!({ "confirm": answer });
        call["arguments"]["reason"] = json!(reason);
        client.ask_modern("tools/call", call, ASKING)["result"].clone()
    };
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let state = ask(&mut client);
    assert_eq!(
        code(&again(&mut client, &state, json!({ "action": "decline" }), "r")),
        "ERR_ACCESS"
    );
    // A confirmation is of one call, and works once; nobody makes one up.
    assert_eq!(code(&again(&mut client, &state, yes.clone(), "r")), "ERR_TOKEN");
    let state = ask(&mut client);
    assert_eq!(code(&again(&mut client, &state, yes.clone(), "another")), "ERR_TOKEN");
    assert_eq!(code(&again(&mut client, &json!("made up"), yes.clone(), "r")), "ERR_TOKEN");
    let read = json!({ "uri": format!("grain://{tea}") });
    assert!(client.ask_modern("resources/read", read.clone(), ASKING)["result"].is_object());
    let state = ask(&mut client);
    let result = again(&mut client, &state, yes, "r");
    assert_eq!(result["structuredContent"]["outcome"], "erased", "{result}");
    assert_eq!(
        client.ask_modern("resources/read", read, ASKING)["error"]["data"]["code"],
        "ERR_ERASED"
    );
}

#[test]
fn the_end_of_the_connection_is_no_agreement() {
    let (dir, mut client) = everything();
    client.initialize(ASKING);
    let tea = client.fact("alice", "prefers", "tea");
    let call =
        json!({ "name": "forget", "arguments": { "address": tea, "reason": "r", "erase": true } });
    client.request("tools/call", &call);
    assert_eq!(client.hear()["method"], "elicitation/create");
    let (rest, ended) = client.end();
    ended.unwrap();
    assert!(rest.contains("the client has gone"), "{rest}");
    let mut client = Conversation::with(options(dir.path()));
    client.initialize(PLAIN);
    assert!(is_there(&mut client, &tea));
}

#[test]
fn a_question_shows_what_is_erased_and_no_text_can_imitate_it() {
    let (_dir, mut client) = everything();
    client.initialize(ASKING);
    let text =
        format!("nice note\u{200b}{}\n\nAddress: 00\" {}", " ".repeat(500), "secret ".repeat(100));
    let event = json!({ "type": "event", "content": text });
    let state = json!({ "type": "state", "context": { "plan": "buy oats" } });
    for (grain, shown) in [(event, "\"nice note Address: 00' secret secret"), (state, "buy oats")] {
        let address = client.done("remember", json!({ "grain": grain }))["address"].clone();
        let call = json!({ "name": "forget", "arguments": { "address": address, "reason": "r", "erase": true } });
        client.request("tools/call", &call);
        let asked = client.hear();
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains(shown), "{message}");
        assert_eq!(message.matches("\nAddress: ").count(), 1, "{message}");
        assert_eq!(message.matches('"').count(), 4, "{message}");
        assert_eq!(message.contains(" more bytes)"), shown != "buy oats", "{message}");
        let no = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
        client.send(no.to_string());
        client.hear();
    }
}

#[test]
fn a_request_with_the_id_of_one_under_way_is_refused() {
    let (_dir, mut client) = everything();
    client.initialize(ASKING);
    let tea = client.fact("alice", "prefers", "tea");
    let call =
        json!({ "name": "forget", "arguments": { "address": tea, "reason": "r", "erase": true } });
    let id = client.request("tools/call", &call);
    let asked = client.hear();
    assert_eq!(asked["method"], "elicitation/create");
    client.send(json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string());
    let refused = client.hear();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32600)));
}
