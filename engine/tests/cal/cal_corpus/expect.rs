//! What was expected held to what came: every difference in words.

use grainstore::cal::{Error, ErrorEnvelope, Response};
use serde_json::Value as Json;

use crate::cal_corpus::case::{Refusal, Step};
use crate::cal_corpus::labels::Labels;

/// An answer in JSON, without what differs from run to run.
pub(crate) fn shown(response: &Response) -> Json {
    let mut json = serde_json::to_value(response).unwrap();
    json["_cal"]["duration_ms"] = Json::from(0);
    json
}

/// Differences between an answer and what a step expects of it.
pub(crate) fn differences(step: &Step, response: &Response, labels: &Labels) -> Vec<String> {
    let json = shown(response);
    let mut found = Vec::new();
    if let Some(expected) = &step.grains {
        let mut expected: Vec<_> = expected.iter().map(|label| labels.address(label)).collect();
        if step.by_address {
            expected.sort();
        }
        let expected: Vec<_> =
            expected.iter().map(|address| labels.of(&address.to_string())).collect();
        let rows = json["results"].as_array().cloned().unwrap_or_default();
        let rows: Vec<_> =
            rows.iter().map(|row| labels.of(row["content_address"].as_str().unwrap())).collect();
        if json.get("results").is_none() || rows != expected {
            found.push(format!("grains {rows:?}, expected {expected:?}"));
        }
    }
    if let Some(expected) = &step.text {
        let expected = expected.text();
        let text = response.text().map(str::to_owned);
        if text.as_deref() != Some(expected.as_str()) {
            found.push(format!("text\n{}\nexpected\n{expected}", text.unwrap_or_default()));
        }
    }
    if let Some(expected) = &step.answer {
        compare("", &labels.spell_all(expected), &json, &mut found);
    }
    for pointer in &step.without {
        if let Some(there) = json.pointer(pointer) {
            found.push(format!("{pointer} is there: {there}"));
        }
    }
    let warnings: Vec<_> =
        response.meta.warnings.iter().map(|warning| warning.code.to_owned()).collect();
    if warnings != step.warnings {
        found.push(format!("warnings {:?}, expected {:?}", response.meta.warnings, step.warnings));
    }
    found
}

/// Differences between an error and the one a step expects; `query` is the text it was found in.
pub(crate) fn of_error(
    expected: &Refusal,
    error: &Error,
    query: Option<&str>,
    labels: &Labels,
) -> Vec<String> {
    let json = serde_json::to_value(ErrorEnvelope { error }).unwrap();
    let json = &json["error"];
    let mut found = Vec::new();
    let mut same = |what: &str, expected: Option<Json>| {
        if let Some(expected) = expected
            && json.get(what) != Some(&expected)
        {
            let there = json.get(what).cloned().unwrap_or_default();
            found.push(format!("{what} {there}, expected {expected}"));
        }
    };
    same("code", Some(Json::from(expected.code.as_str())));
    let of_json = expected.json_suggestion.as_ref().filter(|_| query.is_none());
    let suggestion = of_json.or(expected.suggestion.as_ref());
    same("suggestion", suggestion.map(|text| labels.spell(text).into()));
    same("example", expected.example.as_deref().map(Json::from));
    same("valid_values", expected.valid_values.clone().map(Json::from));
    if let Some(query) = query {
        let piece = expected.at.as_ref().map(|piece| labels.spell(piece));
        same("position", piece.map(|piece| position(query, &piece, expected.nth.unwrap_or(1))));
        same("position", expected.position.clone());
        if expected.nowhere && json.get("position").is_some() {
            found.push(format!("position {}, expected none", json["position"]));
        }
    } else {
        same("pointer", expected.pointer.as_deref().map(Json::from));
    }
    if json["message"].as_str().is_none_or(str::is_empty) {
        found.push("no message".to_owned());
    }
    if json["suggestion"].as_str().is_none_or(str::is_empty) {
        found.push("no suggestion".to_owned());
    }
    if !found.is_empty() {
        found.push(json.to_string());
    }
    found
}

/// The position of the `nth` such piece of a query: bytes from 0, lines and columns from 1.
fn position(query: &str, piece: &str, nth: usize) -> Json {
    let found = query.match_indices(piece).nth(nth - 1);
    let start = found.unwrap_or_else(|| panic!("no {piece:?} in {query}")).0;
    let before = &query[..start];
    let line = before.matches('\n').count() + 1;
    let col = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    serde_json::json!({"start": start, "end": start + piece.len(), "line": line, "col": col})
}

/// Objects may hold more than is expected of them; `{"exactly": {..}}` may not.
fn compare(at: &str, expected: &Json, found: &Json, differences: &mut Vec<String>) {
    match (expected, found) {
        (Json::Object(wanted), Json::Object(there)) => {
            if let (Some(exactly), 1) = (wanted.get("exactly"), wanted.len()) {
                let names = exactly.as_object().unwrap();
                for name in there.keys().filter(|name| !names.contains_key(*name)) {
                    differences.push(format!("{at}/{name} is there: {}", there[name]));
                }
                return compare(at, exactly, found, differences);
            }
            for (name, wanted) in wanted {
                match there.get(name) {
                    Some(there) => compare(&format!("{at}/{name}"), wanted, there, differences),
                    None => differences.push(format!("{at}/{name} is missing: {found}")),
                }
            }
        }
        (Json::Array(wanted), Json::Array(there)) if wanted.len() == there.len() => {
            for (place, (wanted, there)) in wanted.iter().zip(there).enumerate() {
                compare(&format!("{at}/{place}"), wanted, there, differences);
            }
        }
        (Json::Number(wanted), Json::Number(there)) if wanted.as_f64() == there.as_f64() => {}
        (wanted, there) if wanted == there => {}
        _ => differences.push(format!("{at} is {found}, expected {expected}")),
    }
}
