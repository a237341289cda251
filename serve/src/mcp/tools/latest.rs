//! `replaces: "latest"`: a fact that takes the place of the current one of its subject and relation, or is the first one.
//!
//! The store decides whether it is: it refuses a first fact where one is current, and a successor of what was replaced
//! already. What other sessions stored meanwhile is current then, and is replaced in its turn.

use grainstore::format::SHARED_PARTITION;
use serde_json::{Value, json};

use crate::mcp::failure::Result;
use crate::memory::Calls;

/// Most tries. Whenever one is in vain another session's fact was stored.
const MAX_TRIES: u32 = 32;

/// The fact that is to be replaced.
#[derive(Clone, Copy)]
pub(super) struct Fact<'f> {
    pub(super) subject: &'f str,
    pub(super) relation: &'f str,
    /// Where it is looked for; none for all that the session sees.
    pub(super) namespace: Option<&'f str>,
    /// Where the new one is stored; none for the shared one.
    pub(super) stored_in: Option<&'f str>,
}

impl Fact<'_> {
    /// The address of the current one.
    fn current(&self, store: &Calls<'_>) -> Result<Option<String>> {
        let mut call = json!({ "subject": self.subject, "relation": self.relation });
        if let (Some(namespace), Value::Object(call)) = (self.namespace, &mut call) {
            call.insert("namespace".to_owned(), Value::from(namespace));
        }
        let latest = store.call("latest", &call)?;
        Ok(latest.pointer("/version/address").and_then(Value::as_str).map(str::to_owned))
    }

    /// Has `write` store a fact in place of the current one, or as the only one where it is given none. Returns what was
    /// replaced, and what `write` answered.
    ///
    /// # Errors
    /// Those of `write`: `ERR_CONFLICT` if other sessions came first time and again.
    pub(super) fn replace(
        mut self,
        store: &Calls<'_>,
        write: impl Fn(Option<&str>) -> Result<Value>,
    ) -> Result<(Option<String>, Value)> {
        let mut tries = 1;
        loop {
            let old = self.current(store)?;
            match write(old.as_deref()) {
                Err(refused) if refused.has_code("ERR_CONFLICT") && tries < MAX_TRIES => {}
                written => return Ok((old, written?)),
            }
            if old.is_none() {
                // What is in the way is where the new one was to be stored.
                self.namespace = Some(self.stored_in.unwrap_or(SHARED_PARTITION));
            }
            tries += 1;
        }
    }
}
