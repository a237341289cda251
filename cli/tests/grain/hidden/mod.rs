//! What a session must not see, asked by every method and every command that reads: the grains of other
//! namespaces and users, what rests on a consent that was withdrawn, and what was erased.
//!
//! A method or a command that is in neither list fails `every_reader_is_asked`; one that shows nothing of
//! what it may show fails as well, since it would prove nothing.

mod table;
mod world;

use std::collections::BTreeSet;

use data_encoding::BASE64;
use serde_json::{Value, json};

use self::table::{COMMANDS, OTHER_COMMANDS, OTHER_METHODS, READS, Read};
use self::world::{ASKERS, Asker, Hiding, OPERATOR, Target, World};
use crate::kit::Place;

/// All words of an answer, those of what is in base64 too.
fn unpacked(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                *text += name;
                unpacked(value, text);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| unpacked(value, text)),
        other => {
            let shown = other.to_string();
            *text += &shown;
            if let Ok(bytes) = BASE64.decode(shown.trim_matches('"').as_bytes()) {
                *text += &String::from_utf8_lossy(&bytes);
            }
        }
    }
    text.push('\n');
}

fn contents(told: &[Value]) -> String {
    let mut text = String::new();
    told.iter().for_each(|one| unpacked(one, &mut text));
    text
}

/// What answers tell of targets: of the one that was asked about what was not in the question.
fn told_of<'w>(
    told: &[Value],
    asked: &Target,
    all: &'w [(Hiding, Target)],
) -> Vec<&'w (Hiding, Target)> {
    let text = contents(told);
    let is_told = |word: &str, own: &str| word != own && text.contains(word);
    all.iter()
        .filter(|(_, target)| {
            is_told(&target.secret, &asked.secret) || is_told(&target.address, &asked.address)
        })
        .collect()
}

/// Names of what differs from one call to the next, whatever is asked.
const PASSING: [&str; 10] = [
    "duration_ms",
    "query_hash",
    "token",
    "issued_at",
    "expires_at",
    "sequence",
    "hash",
    "head",
    "assembly_id",
    "score",
];

/// Answers without what passes, and without what was in the question.
fn plain(told: &[Value], on: &Target) -> String {
    fn still(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| !PASSING.contains(&name.as_str()));
                kept.map(|(name, value)| (name.clone(), still(value))).collect()
            }
            Value::Array(values) => values.iter().map(still).collect(),
            other => other.clone(),
        }
    }
    let told: String = told.iter().map(|one| still(one).to_string()).collect();
    let head = on.address.get(..9).unwrap();
    told.replace(&on.address, "ADDRESS").replace(head, "ADDRESS").replace(&on.secret, "SECRET")
}

/// Where two answers part.
fn apart(told: &str, nothing: &str) -> String {
    let same = told.chars().zip(nothing.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(80);
    let part = |text: &str| text.chars().skip(from).take(240).collect::<String>();
    format!("{}\n  {}", part(told), part(nothing))
}

/// Somebody asks about every target, and about one that is not there; what is told that must not be.
fn ask_all(
    asker: Asker,
    reads: &[Read],
    all: &[(Hiding, Target)],
    mut tell: impl FnMut(&Read, &Target) -> Vec<Value>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let absent = Target { address: "5a".repeat(32), secret: "zqzzz".to_owned() };
    for read in reads {
        let nothing = plain(&tell(read, &absent), &absent);
        let mut asked = vec![(read.params)(&absent)];
        let mut shows = false;
        // The operator's log and report name grains by their addresses, and tell nothing of what is in them.
        let names = asker == Asker::Operator && ["audit", "subject_report"].contains(&read.name);
        for (hiding, target) in all {
            let params = (read.params)(target);
            if asked.contains(&params) && asked.len() > 1 {
                continue;
            }
            asked.push(params);
            let told = tell(read, target);
            if *hiding != Hiding::Erased
                && told.iter().any(|one| one.to_string().contains("ERR_ERASED"))
            {
                wrong.push(format!("{}, {asker:?}: an erased grain stands in the way", read.name));
            }
            for (other, leaked) in told_of(&told, target, all) {
                if asker.must_not_see(*other)
                    && (!names || contents(&told).contains(&leaked.secret))
                {
                    let (name, secret) = (read.name, &leaked.secret);
                    wrong.push(format!(
                        "{name}, {asker:?}, asked of {hiding:?}: {other:?} {secret}"
                    ));
                }
                shows |= *other == Hiding::Open;
            }
            let told = plain(&told, target);
            if *hiding == Hiding::Open {
                shows |= told != nothing;
            } else if asker.must_not_know(*hiding) && told != nothing {
                let name = read.name;
                let apart = apart(&told, &nothing);
                wrong.push(format!("{name}, {asker:?}: {hiding:?} {}\n  {apart}", target.secret));
            }
        }
        if read.shows && !shows {
            wrong.push(format!("{}, {asker:?}: shows nothing", read.name));
        }
    }
    wrong
}

#[test]
fn no_method_shows_what_is_hidden() {
    let mut world = World::new();
    let all = world.targets.clone();
    let mut wrong = Vec::new();
    for asker in ASKERS {
        world.serve(asker);
        wrong.extend(ask_all(asker, READS, &all, |read, target| world.told(read, target)));
    }
    assert!(wrong.is_empty(), "{} answers:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_reader_is_asked() {
    let listed = READS.iter().map(|read| read.name).chain(OTHER_METHODS.iter().copied());
    let listed: BTreeSet<_> = listed.map(str::to_owned).collect();
    let place = Place::empty();
    assert_eq!(place.methods(), listed, "add what is new to READS, or to OTHER_METHODS");

    let listed = COMMANDS.iter().map(|read| read.name).chain(OTHER_COMMANDS.iter().copied());
    let listed: BTreeSet<_> = listed.map(str::to_owned).collect();
    assert_eq!(place.commands(), listed, "add what is new to COMMANDS, or to OTHER_COMMANDS");
}

/// What a command tells somebody.
fn said(place: &Place, asker: Asker, read: &Read, target: &Target) -> Vec<Value> {
    let mut told = Vec::new();
    for arguments in (read.params)(target) {
        let mut all = vec![read.name];
        all.extend(arguments.as_array().unwrap().iter().map(|one| one.as_str().unwrap()));
        all.extend(["--operator", OPERATOR]);
        all.extend(asker.arguments());
        let run = place.grain(&all);
        let text = || json!(String::from_utf8_lossy(&run.out));
        told.push(serde_json::from_slice(&run.out).unwrap_or_else(|_| text()));
        told.push(json!(run.err));
    }
    told
}

#[test]
fn no_command_shows_what_is_hidden() {
    let mut world = World::new();
    let all: Vec<_> = world.targets.iter().step_by(5).cloned().collect();
    world.rpc.take().unwrap().end();
    let mut wrong = Vec::new();
    for asker in ASKERS {
        let tell = |read: &Read, target: &Target| said(&world.place, asker, read, target);
        wrong.extend(ask_all(asker, COMMANDS, &all, tell));
    }
    assert!(wrong.is_empty(), "{} answers:\n{}", wrong.len(), wrong.join("\n"));
}
