//! The table of paths by protections: every path that could take a grain out of use is tried on every kind
//! of protected grain, by everybody who might try. docs/security.md shows it.
//!
//! A path that is not in the table fails `every_path_there_is_is_in_the_table`; a path of the table that
//! changes nothing even on an open grain fails as well, since it would prove nothing.

mod by_command;
mod by_rpc;
mod file;
mod target;
mod world;

use std::collections::BTreeSet;
use std::thread;

use self::by_command::COMMANDS;
use self::by_rpc::METHODS;
use self::target::{PROTECTIONS, Protection};
use self::world::{ASKERS, Asker, World};
use crate::kit::Place;

/// One way to take a grain out of use.
struct Way {
    /// Its name in messages.
    name: &'static str,
    /// The method or the command it goes by.
    by: &'static str,
    how: How,
    power: Power,
}

/// How a way is tried, on the target at a place.
enum How {
    /// By rpc, in the session of who asks.
    Rpc(fn(&mut World, usize)),
    /// By the command.
    Command(fn(&World, Asker, usize)),
}

/// What somebody may do by a way in spite of a protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    /// Nothing: the invalidation policy decides.
    Nothing,
    /// Nothing, and not even what is open: it would replace a grain and does not supersede it, or what is
    /// held stands against all of it.
    Never,
    /// As none, and the reason it takes is the justification that `soft_locked` asks for.
    Justified,
    /// Erasure is the operator's, and asks holds alone (OMS 27.3).
    Erase,
    /// Lifting a hold is the operator's; other policies stay.
    Lift,
    /// Vectors are the operator's, and whose the policy lets replace the grain.
    Vectors,
    /// Keeping the vectors of a model is the operator's.
    Model,
}

/// Whether an asker changes a target by a way, by what is promised.
fn may(power: Power, protection: &Protection, asker: Asker) -> bool {
    let sees = asker != Asker::Other;
    let is_operator = asker == Asker::Operator;
    match power {
        Power::Nothing => sees && protection.name == "open",
        Power::Never => false,
        Power::Justified => sees && matches!(protection.name, "open" | "soft_locked"),
        Power::Erase => is_operator && !protection.is_held,
        Power::Lift => is_operator && protection.is_held,
        Power::Vectors => is_operator || (sees && protection.name == "open"),
        Power::Model => is_operator,
    }
}

/// Tries ways on all targets, by everybody; what came out otherwise than promised.
fn try_all(ways: &[&Way]) -> Vec<String> {
    let mut wrong = Vec::new();
    for way in ways {
        for asker in ASKERS {
            let mut world = World::new();
            let before = world.seen();
            let told = world.refusals();
            match way.how {
                How::Rpc(attempt) => {
                    world.serve(asker);
                    (0..PROTECTIONS.len()).for_each(|place| attempt(&mut world, place));
                }
                How::Command(attempt) => {
                    world.close();
                    (0..PROTECTIONS.len()).for_each(|place| attempt(&world, asker, place));
                }
            }
            let after = world.seen();
            let mut refused = 0;
            for (place, protection) in PROTECTIONS.iter().enumerate() {
                let changed = before[place] != after[place];
                let may = may(way.power, protection, asker);
                refused += usize::from(!may && asker != Asker::Other);
                if changed != may {
                    let what = if changed { "changed" } else { "kept" };
                    let (name, of) = (way.name, protection.name);
                    wrong.push(format!(
                        "{name}, {of}, {asker:?}: {what}\n  {}\n  {}",
                        before[place], after[place]
                    ));
                }
            }
            // Refusals that were equal are one entry, and what is not seen is no refusal.
            if refused > 0 && way.power != Power::Lift && world.refusals() == told {
                wrong.push(format!("{}, {asker:?}: {refused} refusals, none audited", way.name));
            }
        }
    }
    wrong
}

fn assert_table(ways: &'static [Way]) {
    let (even, odd): (Vec<_>, Vec<_>) =
        ways.iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let tries = [even, odd].map(|half| {
        let half: Vec<_> = half.into_iter().map(|(_, way)| way).collect();
        thread::spawn(move || try_all(&half))
    });
    let wrong: Vec<_> = tries.into_iter().flat_map(|half| half.join().unwrap()).collect();
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_method_changes_what_is_protected() {
    assert_table(METHODS);
}

#[test]
fn no_command_changes_what_is_protected() {
    assert_table(COMMANDS);
}

/// Methods that change no grain and no state of one: they read, keep house, or add what stands alone.
const OTHER_METHODS: [&str; 46] = [
    "hello",
    "encode",
    "decode",
    "open",
    "session",
    "wait_for_vectors",
    "get",
    "get_batch",
    "exists",
    "sign",
    "prove",
    "verify_signature",
    "disclose",
    "policy_explain",
    "policy_show",
    "policy_set",
    "hold",
    "sweep",
    "subject_report",
    "history",
    "query",
    "neighbours",
    "paths",
    "ancestry",
    "children",
    "related",
    "versions",
    "latest",
    "thread",
    "owner",
    "capabilities",
    "handoffs",
    "cal_convert",
    "cal_stream",
    "cal_switch",
    "audit",
    "checkpoint",
    "verify",
    "stats",
    "doctor",
    "reindex",
    "compact",
    "backup",
    "export",
    "close",
    "clock",
];

/// Commands of the same kind.
const OTHER_COMMANDS: [&str; 27] = [
    "add",
    "init",
    "get",
    "hold",
    "sweep",
    "subject-report",
    "history",
    "recall",
    "export",
    "encode",
    "decode",
    "sign",
    "verify-signature",
    "prove",
    "disclose",
    "keys",
    "verify",
    "audit",
    "doctor",
    "stats",
    "compact",
    "reindex",
    "backup",
    "demo",
    "rpc",
    "help",
    "policy",
];

/// Statements of CAL that only read.
const OTHER_STATEMENTS: [&str; 10] = [
    "assemble",
    "batch",
    "coalesce",
    "define_template",
    "describe",
    "exists",
    "explain",
    "history",
    "recall",
    "set_op",
];

#[test]
fn every_path_there_is_is_in_the_table() {
    let place = Place::with_store();
    let names = |text: &[&str]| text.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();

    let mut listed = names(&OTHER_METHODS);
    listed.extend(METHODS.iter().map(|way| way.by.to_owned()));
    assert_eq!(place.methods(), listed, "add what is new to METHODS, or to OTHER_METHODS");

    let mut listed = names(&OTHER_COMMANDS);
    listed.extend(COMMANDS.iter().map(|way| way.by.to_owned()));
    assert_eq!(place.commands(), listed, "add what is new to COMMANDS, or to OTHER_COMMANDS");

    let schema = place.grain(&["cal", "--schema"]).done().json();
    let defined = schema["$defs"].as_object().unwrap().iter();
    let statements = defined
        .filter_map(|(_, of)| of["properties"]["statement"]["const"].as_str().map(str::to_owned));
    let statements: BTreeSet<_> = statements.collect();
    let mut listed = names(&OTHER_STATEMENTS);
    listed.extend(names(&["add", "supersede", "revert"]));
    assert_eq!(statements, listed, "add what is new to METHODS, or to OTHER_STATEMENTS");
}
