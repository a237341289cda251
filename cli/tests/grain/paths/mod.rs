//! The table of paths by protections: every path that could take a grain out of use is tried on every kind
//! of protected grain, by everybody who might try. docs/security.md shows it.
//!
//! A path that is not in the table fails `every_path_there_is_is_in_the_table`; a path of the table that
//! changes nothing even on an open grain fails as well, since it would prove nothing.

mod archive;
mod by_command;
mod by_rpc;
mod consent;
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
    /// As justified, by what is written with it, and for the operator alone.
    OfOperator,
    /// As none, but that a lock stands against it whose time is over: what claims nothing is left out where
    /// the other has a policy that binds at any time.
    Beside,
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

/// Protections that protect from nobody: a policy that ends with a consent, and a lock whose time is over.
const OPEN: [&str; 3] = ["open", "consent_cascade", "timed, over"];

/// Whether an asker changes a target by a way, by what is promised.
fn may(power: Power, protection: &Protection, asker: Asker) -> bool {
    let sees = asker != Asker::Other;
    let is_operator = asker == Asker::Operator;
    match power {
        Power::Nothing => sees && OPEN.contains(&protection.name),
        Power::Never => false,
        Power::OfOperator => {
            is_operator && (OPEN.contains(&protection.name) || protection.name == "soft_locked")
        }
        Power::Beside => {
            sees && OPEN.contains(&protection.name) && protection.name != "timed, over"
        }
        Power::Justified => {
            sees && (OPEN.contains(&protection.name) || protection.name == "soft_locked")
        }
        Power::Erase => is_operator && !protection.is_held,
        Power::Lift => is_operator && protection.is_held,
        Power::Vectors => is_operator || (sees && OPEN.contains(&protection.name)),
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

/// A path that is not tried on protected grains, and why it cannot take one out of use.
type Other = (&'static str, &'static str);

/// Methods that change no grain and no state of one.
const OTHER_METHODS: [Other; 71] = [
    ("ages_segments", "reads"),
    ("ages_export", "reads, and writes a file"),
    ("ages_verify", "reads a file that is given"),
    ("alf_export", "reads, and writes a file"),
    ("alf_delta", "reads, and writes a file"),
    ("alf_apply", "as alf_import"),
    ("alf_validate", "reads a file that is given"),
    ("saga_validate", "reads what is given"),
    ("saga_import", "supersedes under the policies (interop/tests/saga, locks)"),
    ("saga_export", "reads, and writes a file"),
    ("saga_sign", "signs what is given"),
    ("saga_redact", "changes what is given, and no grain"),
    ("saga_consent", "signs what is given"),
    ("saga_agree", "signs what is given"),
    ("saga_vault", "supersedes items of a vault under the policies"),
    ("migrate", "puts and supersedes under the policies (interop/tests/migrate)"),
    ("migrate_formats", "tells of the program"),
    ("hello", "tells of the program"),
    ("encode", "makes bytes of what is given, and has no store"),
    ("decode", "reads bytes that are given, and has no store"),
    (
        "open",
        "takes a store that is closed; what it sweeps then ended with its consent (tests of erasure)",
    ),
    ("session", "says who asks, and writes nothing"),
    ("wait_for_vectors", "waits for what the store makes anyway"),
    ("position", "reads"),
    ("wait_for", "waits for what its journal has, and refuses a store without one"),
    ("resolve", "reads"),
    ("get", "reads"),
    ("get_batch", "reads"),
    ("exists", "reads"),
    ("sign", "makes an envelope that it gives back, and stores nothing"),
    ("prove", "makes a signature that it gives back; what takes it is in the table"),
    ("verify_signature", "reads"),
    ("disclose", "makes a view that it gives back, and stores nothing"),
    ("check_view", "reads"),
    ("restore_view", "makes a grain that it gives back, and stores nothing"),
    ("write_frames", "makes bytes of what is given, and has no store"),
    ("read_frames", "reads bytes that are given, and has no store"),
    ("policy_explain", "says what would be, and does nothing"),
    ("policy_show", "reads"),
    (
        "policy_set",
        "changes the rules of the store, which come on top of policies and replace none",
    ),
    ("hold", "protects a grain further"),
    ("sweep", "erases what ended with its consent, and nothing else (tests of erasure)"),
    ("subject_report", "reads"),
    ("history", "reads"),
    ("query", "reads"),
    ("neighbours", "reads"),
    ("paths", "reads"),
    ("ancestry", "reads"),
    ("children", "reads"),
    ("related", "reads"),
    ("versions", "reads"),
    ("latest", "reads"),
    ("thread", "reads"),
    ("owner", "reads"),
    ("capabilities", "reads"),
    ("handoffs", "reads"),
    ("cal_convert", "makes another text of a statement"),
    ("cal_stream", "runs what only reads: statements that write are refused (tests of streams)"),
    ("cal_switch", "lets statements run or not, and runs none"),
    ("audit", "reads"),
    ("checkpoint", "signs the head of the audit log"),
    ("verify", "reads"),
    ("stats", "reads"),
    ("doctor", "reads"),
    ("reindex", "makes the index again from the log"),
    ("compact", "copies every row and compares the copies"),
    ("backup", "copies the store elsewhere"),
    ("rotate_keys", "changes under which keys rows lie, and no row"),
    ("export", "copies grains elsewhere"),
    ("close", "closes the store"),
    ("clock", "sets the time of tests; locks that end with time end by their policy"),
];

/// Commands of the same kind.
const OTHER_COMMANDS: [Other; 39] = [
    ("ages", "reads, and writes a file"),
    ("alf", "runs alf_import, alf_apply and alf_purge, which are in the table of methods"),
    ("migrate", "puts and supersedes under the policies (interop/tests/migrate)"),
    ("saga", "supersedes under the policies (interop/tests/saga)"),
    ("add", "stores a fact or an event that derives from nothing"),
    ("init", "makes a store where none is"),
    ("get", "reads"),
    ("hold", "protects a grain further"),
    ("sweep", "erases what ended with its consent, and nothing else (tests of erasure)"),
    ("subject-report", "reads"),
    ("history", "reads"),
    ("recall", "reads: it builds a RECALL"),
    ("export", "copies grains elsewhere"),
    ("encode", "makes bytes of what is given, and has no store"),
    ("decode", "reads bytes that are given, and has no store"),
    ("sign", "makes an envelope that it gives back, and stores nothing"),
    ("verify-signature", "reads"),
    ("prove", "makes a signature that it gives back; what takes it is in the table"),
    ("disclose", "makes a view that it gives back, and stores nothing"),
    ("check-view", "reads"),
    ("restore-view", "makes a grain that it gives back, and stores nothing"),
    ("frames", "turns bytes that are given into others, and has no store"),
    ("keys", "changes under which keys rows lie, and no row"),
    ("verify", "reads"),
    ("audit", "reads"),
    ("doctor", "reads"),
    ("stats", "reads"),
    ("compact", "copies every row and compares the copies"),
    ("reindex", "makes the index again from the log"),
    ("backup", "copies the store elsewhere"),
    ("demo", "fills a store of its own, where none is"),
    ("bench", "fills stores of its own in a temporary directory"),
    ("mcp", "calls methods, which are in the table"),
    ("serve", "calls methods, which are in the table"),
    ("cluster", "runs nodes, and asks no store itself"),
    ("tokens", "asks no store"),
    ("rpc", "runs methods, which are in the table"),
    ("help", "tells of the program"),
    (
        "policy",
        "shows policies and rules, and changes the rules of the store, which come on top of policies",
    ),
];

/// Statements of CAL that only read.
const OTHER_STATEMENTS: [Other; 10] = [
    ("assemble", "reads"),
    ("batch", "runs statements that read, and refuses others"),
    ("coalesce", "reads"),
    ("define_template", "keeps a template, which is no grain"),
    ("describe", "tells of the store"),
    ("exists", "reads"),
    ("explain", "says what would be, and does nothing"),
    ("history", "reads"),
    ("recall", "reads"),
    ("set_op", "reads"),
];

#[test]
fn every_path_there_is_is_in_the_table() {
    let place = Place::with_store();
    let names = |others: &[Other]| -> BTreeSet<String> {
        others.iter().map(|(name, _)| (*name).to_owned()).collect()
    };

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
    listed.extend(["add", "supersede", "revert"].map(str::to_owned));
    assert_eq!(statements, listed, "add what is new to METHODS, or to OTHER_STATEMENTS");
}

/// A name without a reason says that nobody has asked the question.
#[test]
fn every_path_that_is_not_tried_says_why_it_takes_no_grain_out_of_use() {
    let all = OTHER_METHODS.iter().chain(&OTHER_COMMANDS).chain(&OTHER_STATEMENTS);
    let all: Vec<&Other> = all.collect();
    for (name, why) in &all {
        assert!(why.trim().len() >= "reads".len(), "{name}: say why it takes no grain out of use");
    }
    // What is tried needs no excuse, and an excuse would hide it.
    let tried = METHODS.iter().chain(COMMANDS).map(|way| way.by);
    let both: Vec<_> =
        tried.filter(|by| OTHER_METHODS.iter().any(|(name, _)| name == by)).collect();
    assert_eq!(both, Vec::<&str>::new());
}
