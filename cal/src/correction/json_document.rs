//! Corrections of queries in JSON: of the document itself, and of its keys and values.

use serde_json::{Map, Value as Json, json};

use super::{Rewrite, apply_hint};
use crate::error::Error;

/// Returns the rewrites to try for an error, most likely first.
pub(super) fn rewrites(text: &str, error: &Error) -> Vec<Rewrite> {
    let mut steps: Vec<Rewrite> = apply_hint(text, error).into_iter().collect();
    let Some(value) = parse_leniently(text) else { return steps };
    let (mended, advice) = match value {
        Json::Array(mut items) if items.len() == 1 => {
            (items.pop().unwrap_or_default(), "send the object alone")
        }
        Json::Object(map) => correct_object(map),
        _ => return steps,
    };
    let (text_now, advice) = (mended.to_string(), advice.to_owned());
    let query =
        mended.get("query").and_then(Json::as_str).filter(|_| mended.get("statement").is_none());
    steps.push(match query {
        Some(query) => Rewrite {
            advice: "send the statement itself, not an object around it".to_owned(),
            text: query.to_owned(),
        },
        None => Rewrite { advice, text: text_now },
    });
    steps
}

/// Parses the document, tolerating wrong quotes and commas.
fn parse_leniently(text: &str) -> Option<Json> {
    let strict = serde_json::from_str(text).ok();
    strict.or_else(|| serde_json::from_str(&to_strict_json(text)).ok())
}

/// Returns the text with double quotes, quoted keys and no comma before a closing bracket.
fn to_strict_json(text: &str) -> String {
    let mut out = String::new();
    let mut within = None;
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if let Some(quote) = within {
            out.push(if c == quote { '"' } else { c });
            within = (c != quote).then_some(quote);
            continue;
        }
        if c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-' {
            word.push(c);
            continue;
        }
        let plain =
            word.parse::<f64>().is_ok() || ["true", "false", "null", ""].contains(&word.as_str());
        out += &if plain { word.clone() } else { format!("\"{word}\"") };
        word.clear();
        if matches!(c, '}' | ']') {
            out.truncate(out.trim_end().trim_end_matches(',').len());
        }
        within = matches!(c, '"' | '\'').then_some(c);
        out.push(if within.is_some() { '"' } else { c });
    }
    out
}

/// Corrects the keys and values of an object; returns it with advice, empty if no key was changed.
fn correct_object(map: Map<String, Json>) -> (Json, &'static str) {
    const STATEMENTS: [&str; 8] =
        ["recall", "assemble", "exists", "history", "describe", "batch", "coalesce", "explain"];
    let mut out = map;
    let mut advice = "";
    if let (1, Some((name, Json::Object(inner)))) = (out.len(), out.iter().next())
        && STATEMENTS.contains(&name.as_str())
    {
        let mut inner = inner.clone();
        inner.insert("statement".to_owned(), json!(name));
        (out, advice) = (inner, "the key \"statement\" says which one it is");
    }
    let named = out.get("statement").and_then(Json::as_str).map(str::to_ascii_lowercase);
    match named.as_deref() {
        None if out.contains_key("grain_type") => {
            out.insert("statement".to_owned(), json!("recall"));
            advice = "add the key \"statement\"";
        }
        Some("find" | "get" | "search" | "select" | "query") => {
            out.insert("statement".to_owned(), json!("recall"));
            advice = "write \"statement\": \"recall\"";
        }
        _ => {}
    }
    for (old, new) in [("type", "grain_type"), ("grain_types", "grain_type"), ("format", "as")] {
        let taken =
            out.contains_key(new) || (old == "format" && named.as_deref() == Some("assemble"));
        if !taken && let Some(value) = out.remove(old) {
            let value = value.get(0).cloned().unwrap_or(value);
            out.insert(new.to_owned(), value);
            advice = "use the keys of the form";
        }
    }
    if let Some(limit) = out.remove("limit") {
        let stages = out.entry("pipeline").or_insert_with(|| json!([]));
        stages.as_array_mut().into_iter().for_each(|stages| stages.push(json!({"limit": limit})));
        advice = "stages stand in \"pipeline\": [{\"limit\": 5}]";
    }
    out.retain(|_, value| !value.is_null() && *value != json!(false));
    let values: Vec<String> = out.keys().cloned().collect();
    for key in values {
        if let Some(value) = out.get_mut(&key)
            && let Some((mended, why)) = correct_value(&key, value)
        {
            (*value, advice) = (mended, why);
        }
    }
    (Json::Object(out), advice)
}

/// Returns the corrected value of a key, and advice; `None` if the value needs no correction or has none.
fn correct_value(key: &str, value: &Json) -> Option<(Json, &'static str)> {
    match (key, value) {
        ("where", Json::Object(one)) if one.contains_key("field") => {
            Some((json!([correct_condition(value)]), "\"where\" is an array of conditions"))
        }
        ("where", Json::Object(pairs)) => {
            let of = |(field, value): (&String, &Json)| json!({"field": field, "op": "=", "value": value});
            let all: Vec<Json> = pairs.iter().map(of).collect();
            Some((Json::Array(all), "\"where\" is an array of {\"field\", \"op\", \"value\"}"))
        }
        ("where", Json::Array(all)) => {
            let all = all.iter().map(correct_condition).collect();
            Some((
                Json::Array(all),
                "a condition is {\"field\": ..., \"op\": \"=\", \"value\": ...}",
            ))
        }
        ("pipeline", Json::Object(_)) => Some((
            json!([value]),
            "\"pipeline\" is an array of stages, each an object with one key",
        )),
        ("pipeline", Json::Array(stages)) => {
            let stages = stages.iter().map(correct_stage).collect();
            Some((
                Json::Array(stages),
                "a stage is an object with one key: {\"count\": true}, {\"limit\": 5}",
            ))
        }
        ("stream", Json::Array(options)) if options.is_empty() => {
            Some((json!(true), "\"stream\": true streams everything"))
        }
        ("budget", Json::Number(amount)) => Some((
            json!({"amount": amount, "unit": "tokens"}),
            "\"budget\" is {\"amount\": 2000, \"unit\": \"tokens\"}",
        )),
        ("recent" | "offset", Json::String(digits)) => {
            Some((json!(digits.parse::<u64>().ok()?), "a number stands without quotes"))
        }
        ("hash", Json::String(digits)) if crate::lex::is_hash_digits(digits) => {
            Some((json!(format!("sha256:{digits}")), "an address is sha256: and its digits"))
        }
        _ => None,
    }
}

/// Corrects the keys and the operator of a condition.
fn correct_condition(given: &Json) -> Json {
    let Json::Object(map) = given else { return given.clone() };
    let mut out = map.clone();
    for (old, new) in [("operator", "op"), ("name", "field"), ("val", "value")] {
        if !out.contains_key(new)
            && let Some(value) = out.remove(old)
        {
            out.insert(new.to_owned(), value);
        }
    }
    let op = out.get("op").and_then(Json::as_str).unwrap_or("=");
    let op = match op.to_ascii_lowercase().as_str() {
        "eq" | "==" | "equals" | "is" => "=".to_owned(),
        "ne" | "<>" | "neq" => "!=".to_owned(),
        "gt" => ">".to_owned(),
        "gte" | "ge" => ">=".to_owned(),
        "lt" => "<".to_owned(),
        "lte" | "le" => "<=".to_owned(),
        _ => op.to_owned(),
    };
    out.insert("op".to_owned(), json!(op));
    Json::Object(out)
}

/// Corrects a stage: a name becomes an object, digits in quotes a number.
fn correct_stage(given: &Json) -> Json {
    match given {
        Json::String(name) => Json::Object(Map::from_iter([(name.clone(), json!(true))])),
        Json::Object(one) => one
            .iter()
            .map(|(name, value)| {
                let number = value.as_str().and_then(|digits| digits.parse::<u64>().ok());
                (name.clone(), number.map_or_else(|| value.clone(), |number| json!(number)))
            })
            .collect(),
        other => other.clone(),
    }
}
