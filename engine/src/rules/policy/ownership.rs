//! Declarations of an agent's owner: an agent cannot make one about itself (OMS 12.5.3, 23.8).

use grainstore_format::{Grain, GrainType};

use super::same_did;
use crate::base::error::{Error, ErrorKind, Result};

/// Namespace of ownership declarations.
const IDENTITY_NAMESPACE: &str = "agent:identity";
const OWNERSHIP_RELATIONS: [&str; 2] = ["mg:owned_by", "owned_by"];

/// Refuses a declaration of ownership by the agent that it is about: as its author, as its signer, or as the
/// actor of the session that writes it, unless its author signed it.
///
/// # Errors
/// `ERR_POLICY`.
pub(crate) fn check_ownership(
    grain: &Grain,
    signer: Option<&str>,
    actor: Option<&str>,
) -> Result<()> {
    let declares = grain.grain_type() == GrainType::Belief
        && grain.partition() == IDENTITY_NAMESPACE
        && grain.text("relation").is_some_and(|relation| OWNERSHIP_RELATIONS.contains(&relation));
    let Some(agent) = grain.text("subject").filter(|_| declares) else { return Ok(()) };
    let author = grain.text("author_did");
    // The `author_did` can name any DID: it only counts if that DID signed the grain.
    let is_vouched =
        matches!((author, signer), (Some(author), Some(signer)) if same_did(author, signer));
    let writer = actor.filter(|_| !is_vouched);
    if !author.into_iter().chain(signer).chain(writer).any(|who| same_did(who, agent)) {
        return Ok(());
    }
    let message =
        format!("{agent} cannot declare whom it belongs to: that is its operator's to say");
    Err(Error::new(ErrorKind::Policy, message)
        .with_hint("have the owner write it, under a DID of its own (author_did)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &str, signer: Option<&str>, actor: Option<&str>) -> &'static str {
        let grain = Grain::from_json(&format!(
            r#"{{"type": "belief", "subject": "did:web:bot", "object": "Example", "confidence": 1,
                "created_at": 0, {fields}}}"#
        ));
        check_ownership(&grain.unwrap(), signer, actor).map_or_else(|error| error.code(), |()| "OK")
    }

    #[test]
    fn an_agent_cannot_declare_its_owner() {
        let by = |author: &str| {
            format!(
                r#""relation": "mg:owned_by", "namespace": "agent:identity", "author_did": "{author}""#
            )
        };
        let anonymous = r#""relation": "owned_by", "namespace": "agent:identity""#;
        for (fields, signer, actor, expected) in [
            (by("did:web:bot"), None, None, "ERR_POLICY"),
            (by("did:web:bot#key-1"), None, None, "ERR_POLICY"),
            (by("did:web:owner"), None, None, "OK"),
            (by("did:web:owner"), None, Some("did:web:bot"), "ERR_POLICY"),
            (by("did:web:owner"), Some("did:web:owner"), Some("did:web:bot"), "OK"),
            (by("did:web:owner"), Some("did:web:other"), Some("did:web:bot"), "ERR_POLICY"),
            (by("did:web:owner"), None, Some("did:web:host"), "OK"),
            (by("did:web:owner"), Some("did:web:bot"), None, "ERR_POLICY"),
            (anonymous.to_owned(), None, None, "OK"),
            (anonymous.to_owned(), None, Some("did:web:bot"), "ERR_POLICY"),
            (by("did:web:bot").replace("identity", "other"), None, None, "OK"),
            (by("did:web:bot").replace("mg:owned_by", "mg:likes"), None, None, "OK"),
        ] {
            assert_eq!(check(&fields, signer, actor), expected, "{fields} {signer:?} {actor:?}");
        }
    }
}
