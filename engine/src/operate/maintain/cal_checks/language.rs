//! Self-checks of the language and its gates: each tries what must be refused.

use grainstore_cal::{AdmissionRequest, CalOperation, ExecuteOptions, Tier, parse};
use grainstore_format::GrainType;

use super::{SelfCheckContext, SelfCheckOutcome, params, query_failed};
use crate::handle::capability_token::TokenLimits;
use crate::read::calls::{PrepareOptions, check_covers};
use crate::state::session_options::SessionOptions;
use crate::state::visibility::is_in_namespace;

/// Words that must not exist in CAL (CAL 2.4).
const FORBIDDEN_WORDS: [&str; 29] = [
    "DELETE",
    "DROP",
    "FORGET",
    "ERASE",
    "DESTROY",
    "PURGE",
    "TRUNCATE",
    "INSERT",
    "CREATE",
    "WRITE",
    "STORE",
    "KEY",
    "ENCRYPT",
    "DECRYPT",
    "ROTATE",
    "MASTER",
    "DEK",
    "SECRET",
    "POLICY",
    "SEAL",
    "UNSEAL",
    "GRANT",
    "REVOKE",
    "CONSENT",
    "RESTRICT",
    "SCHEMA",
    "PARTITION",
    "INDEX",
    "MIGRATION",
];
/// A statement that writes, if it may.
const ADD_STATEMENT: &str =
    r#"ADD belief SET subject = "s" SET relation = "r" SET object = "o" REASON "a check""#;
/// A namespace without grains.
const EMPTY_NAMESPACE: &str = "grainstore:cal-check";

/// Checks that no destructive word is accepted anywhere in a statement.
pub(super) fn grammar_safety(_: &SelfCheckContext) -> SelfCheckOutcome {
    for word in FORBIDDEN_WORDS {
        for query in [
            format!("{word} beliefs"),
            format!("RECALL beliefs {word}"),
            format!("RECALL WHERE {word} = \"x\""),
            format!("BATCH {{ {word}: RECALL }}"),
            format!("ASSEMBLE {word} FROM (RECALL)"),
        ] {
            if parse(&query).is_ok() {
                return Ok(Err(format!("{query:?} is a statement")));
            }
        }
    }
    Ok(Ok(format!("{} words of destruction stand in no statement", FORBIDDEN_WORDS.len())))
}

/// Checks that a RECALL without a limit returns at most 20 grains, or fewer if the rules say so.
pub(super) fn default_minimization(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let most = u64::from(subject.session.store().rules().settings.query_limit.value).min(20);
    for query in ["RECALL", "RECALL beliefs WITH superseded"] {
        let weighed =
            subject.session.prepare_only(query, &ExecuteOptions::at(subject.session.now()));
        let asked = match weighed {
            Ok(weighed) => weighed.admission.max_grains,
            Err(error) => return query_failed(&error),
        };
        if asked.is_none_or(|asked| asked > most) {
            return Ok(Err(format!("{query} gives {asked:?} grains, {most} at most are to be")));
        }
    }
    Ok(Ok(format!("a RECALL that names no number gives at most {most} grains")))
}

/// Checks that a token is accepted once, unaltered, and in its own session only.
pub(super) fn authz_enforcement(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let session = &subject.session;
    let short = PrepareOptions {
        terms: TokenLimits { life_ms: 1000, ..TokenLimits::default() },
        ..PrepareOptions::default()
    };
    let good = match session.prepare_unaudited(b"DESCRIBE server", &short) {
        Ok(prepared) => prepared.token,
        Err(error) => return query_failed(&error),
    };
    let mut wider = good.clone();
    wider.tier = 1;
    let mut other = good.clone();
    other.namespace = Some(EMPTY_NAMESPACE.to_owned());
    let mut later = good.clone();
    later.expires_at = i64::MAX;
    let mut forged = good.clone();
    forged.signature = "0".repeat(64);
    let (kept, own, now) = (session.store().inner().kept(), session.options(), session.now());
    for (what, token) in
        [("tier", &wider), ("namespace", &other), ("end", &later), ("signature", &forged)]
    {
        if kept.use_token(token, own, now).is_ok() {
            return Ok(Err(format!("a token with another {what} is taken")));
        }
    }
    let stranger = SessionOptions { namespace: Some(EMPTY_NAMESPACE.to_owned()), ..own.clone() };
    if kept.use_token(&good, &stranger, now).is_ok() {
        return Ok(Err("a token is taken in another namespace".to_owned()));
    }
    if kept.use_token(&good, own, now).is_err() || kept.use_token(&good, own, now).is_ok() {
        return Ok(Err("a token is not taken once".to_owned()));
    }
    Ok(Ok("a token is taken once, unaltered, in its own session".to_owned()))
}

/// Checks that no statement reads outside the namespace of its session.
pub(super) fn no_policy_override(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let options =
        SessionOptions { namespace: Some(EMPTY_NAMESPACE.to_owned()), ..SessionOptions::default() };
    let session = subject.session.store().session(options);
    for query in [
        "RECALL IN \"shared\" WITH superseded",
        "RECALL IN SCOPE \"\"",
        "RECALL WHERE namespace = \"shared\"",
    ] {
        let answer = match subject.ask_as(&session, query, params(&[]).unwrap_or_default()) {
            Ok(answer) => answer,
            Err(error) => return query_failed(&error),
        };
        let told = answer.meta.warnings.iter().any(|warning| warning.code == "CAL-W101");
        let grains_outside = match &answer.answer {
            grainstore_cal::Answer::Grains(grains) => grains
                .results
                .iter()
                .any(|row| !is_in_namespace(row.grain.partition(), Some(EMPTY_NAMESPACE))),
            _ => true,
        };
        if !told || grains_outside {
            return Ok(Err(format!("{query} leaves the namespace of its session")));
        }
    }
    Ok(Ok("no statement leaves the namespace of its session".to_owned()))
}

/// Checks that a bound parameter stays a value, whatever text it has.
pub(super) fn injection_prevention(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let query = "RECALL WHERE subject = $s | COUNT";
    let mut hashes = Vec::new();
    for value in ["alice", "x\" | SELECT object -- ", "$s", "\\", "</context><belief>"] {
        let asked = params(&[("s", value)]).and_then(|bound| subject.ask(query, bound));
        match asked {
            Ok(answer) if matches!(answer.answer, grainstore_cal::Answer::Count { .. }) => {
                hashes.push(answer.meta.query_hash);
            }
            Ok(_) => return Ok(Err(format!("{value:?} as a parameter changes the statement"))),
            Err(error) => return query_failed(&error),
        }
    }
    hashes.dedup();
    let spoofed = params(&[("s", "a\u{202e}b")]).and_then(|bound| subject.ask(query, bound));
    match spoofed {
        Err(error) if error.code() == "CAL-E071" && hashes.len() == 1 => {
            Ok(Ok("what is bound to a parameter stays a value".to_owned()))
        }
        _ => Ok(Err("a parameter with text that reads backwards is taken".to_owned())),
    }
}

/// Checks that writing needs Tier 1 and a token that covers it.
pub(super) fn tier1_policy_gate(subject: &SelfCheckContext) -> SelfCheckOutcome {
    let session = &subject.session;
    let weigh = |tier| {
        session.prepare_only(
            ADD_STATEMENT,
            &ExecuteOptions { tier, ..ExecuteOptions::at(session.now()) },
        )
    };
    match weigh(Tier::Read) {
        Err(error) if error.code() == "CAL-E044" => {}
        Err(error) => return query_failed(&error),
        Ok(_) => return Ok(Err("a statement that writes runs where only reading may".to_owned())),
    }
    let reading = match session.prepare_unaudited(b"DESCRIBE server", &PrepareOptions::default()) {
        Ok(prepared) => prepared.token,
        Err(error) => return query_failed(&error),
    };
    let _ = session.store().inner().kept().use_token(&reading, session.options(), session.now());
    let admission: AdmissionRequest = match weigh(Tier::Evolve) {
        Ok(weighed) => weighed.admission,
        // Tier 1 is switched off, or the session has used up its writing statements.
        Err(error) if ["CAL-E044", "CAL-E043"].contains(&error.code()) => {
            return Ok(Ok(format!("nothing that writes runs: {}", error.message())));
        }
        Err(error) => return query_failed(&error),
    };
    let mut narrow = reading.clone();
    narrow.tier = 1;
    narrow.allowed_ops = vec![CalOperation::Add];
    narrow.allowed_grain_types = vec![GrainType::Goal.name().to_owned()];
    match check_covers(&reading, &admission).is_err() && check_covers(&narrow, &admission).is_err()
    {
        true => Ok(Ok("what writes needs Tier 1, and a token that covers it".to_owned())),
        false => Ok(Err("a token covers what it does not name".to_owned())),
    }
}
