use grainstore_sml::{Cl100k, TokenCounter};
use serde_json::json;

use super::*;

#[test]
fn all_six_tools_are_listed_in_under_two_thousand_tokens() {
    let tools: Vec<_> = all(Profile::Full).map(Entry::tool).collect();
    assert_eq!(tools.len(), 6);
    let listed = json!({ "tools": tools }).to_string();
    let tokens = Cl100k.count(&listed);
    assert!(tokens < 2_000, "{tokens} tokens, {} bytes", listed.len());
}
