//! `grain repl` from a pipe: one result a statement, notes and errors apart, exit codes.

use std::fs;
use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::kit::{Place, Run, belief};

/// Two people and three preferences.
fn place() -> Place {
    let place = Place::with_store();
    for (subject, object) in [("alice", "tea"), ("alice", "milk"), ("bob", "tea")] {
        place.put(&belief(subject, object));
    }
    place
}

fn piped(place: &Place, statements: &str) -> Run {
    place.feed(&["repl"], statements)
}

#[test]
fn each_statement_has_its_result_and_nothing_else_is_said() {
    let run = piped(
        &place(),
        "RECALL ABOUT \"bob\" | COUNT;\n-- both\nRECALL ABOUT \"alice\"\n  | SUBJECTS; RECALL | GROUP BY subject",
    );
    assert_eq!((run.code, run.text(), run.err.as_str()), (0, "1\nalice\n2  alice\n1  bob\n", ""));
}

#[test]
fn grains_are_sml_unless_something_else_is_asked_for() {
    let place = place();
    let sml = piped(&place, "RECALL ABOUT \"bob\";").done();
    assert!(
        sml.text().starts_with("<context>") && sml.text().contains("prefers tea"),
        "{}",
        sml.text()
    );
    let own = piped(&place, "RECALL ABOUT \"bob\" AS json;").done();
    assert!(own.json()["grains"].is_array(), "a statement's own format");
    let table = piped(&place, ".mode table\nRECALL beliefs;").done();
    assert!(table.text().contains(" says"), "{}", table.text());
    assert_eq!(table.text().lines().count(), 5, "{}", table.text());
    let envelope = place.feed(&["repl", "--json"], "RECALL;\nRECALL | COUNT;").done();
    let told = envelope.json_lines();
    assert_eq!(
        (told[0]["results"].as_array().map(Vec::len), &told[1]["count"]),
        (Some(3), &Value::from(3))
    );
}

#[test]
fn a_template_is_there_for_the_statements_behind_it_or_with_evolve_for_good() {
    let place = place();
    let define = "DEFINE TEMPLATE line EXTENDS compact ELEMENT {\n* {{grain.subject}}; \"{{grain.object}}\"\n};";
    let assemble = "ASSEMBLE FROM (RECALL ABOUT \"bob\") FORMAT TEMPLATE line;";
    let run = piped(&place, &format!("{define}\n{assemble}")).done();
    assert_eq!(run.text(), "template line is kept for this session\n* bob; \"tea\"\n");
    let gone = piped(&place, assemble);
    assert!(gone.code == 1 && gone.err.contains("CAL-E085"), "{}", gone.err);
    let kept = place.feed(&["repl", "--evolve"], define).done();
    assert_eq!(kept.text(), "template line is kept for its namespace\n");
    assert_eq!(piped(&place, assemble).done().text(), "* bob; \"tea\"\n");
}

#[test]
fn over_rpc_a_template_is_there_for_the_same_namespace_until_the_store_is_closed() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let asked = |query: &str, namespace: &str| json!({ "query": query, "namespace": namespace });
    let defined = rpc.result("cal", &asked("DEFINE TEMPLATE line HEADER {here}", "notes"));
    assert_eq!((&defined["template"], &defined["kept"]), (&"line".into(), &"session".into()));
    let assemble = "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE line";
    let found = rpc.result("cal", &asked(assemble, "notes"));
    assert_eq!(found["formatted_context"]["text"], "here\n");
    assert_eq!(rpc.refusal("cal", &asked(assemble, "other")), "CAL-E085");
}

#[test]
fn no_colour_and_no_escape_reaches_a_pipe() {
    let place = Place::with_store();
    place.put(&belief("al\u{1b}[2Jice", "t\u{9b}ea"));
    let run = piped(&place, ".mode table\nRECALL beliefs;\nRECALL beliefs SELECT subject;").done();
    let bytes = [&run.out, run.err.as_bytes()].concat();
    assert!(!bytes.contains(&0x1b) && !run.text().contains('\u{9b}'), "{}", run.text());
}

#[test]
fn what_is_refused_is_told_with_its_line_and_the_rest_is_run() {
    let run = piped(&place(), "RECALL\n beleifs;\nRECALL | COUNT;\nDESCRIBE nonsense;\n");
    assert_eq!((run.code, run.text()), (1, "3\n"));
    for told in
        ["line 1: ", "CAL-E003", "  beleifs\n   ^^^^^^^\n", "Did you mean \"beliefs\"?", "line 4: "]
    {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
    let json = place().feed(&["repl", "--json"], "RECALL beleifs;");
    assert_eq!((json.code, json.error_code().as_str()), (1, "CAL-E003"));
}

#[test]
fn a_dot_command_that_is_refused_says_its_line() {
    let run = piped(&place(), "RECALL | COUNT;\n\n.nonsense\n  .mode fancy\nRECALL | COUNT;");
    assert_eq!((run.code, run.text()), (2, "3\n3\n"));
    for told in ["line 3: .nonsense is no command", "line 4: fancy is no mode"] {
        assert!(run.err.contains(told), "{told}: {}", run.err);
    }
}

#[test]
fn the_exit_code_is_that_of_the_first_that_was_refused() {
    for (statements, code) in [
        ("", 0),
        ("-- nothing\n", 0),
        (".exit\nRECALL beleifs;", 0),
        (".nonsense\nRECALL beleifs;", 2),
        ("RECALL beleifs;\n.nonsense", 1),
        ("RECALL beleifs;\n.exit", 1),
    ] {
        assert_eq!(piped(&place(), statements).code, code, "{statements:?}");
    }
    assert_eq!(Place::empty().feed(&["repl"], "RECALL;").code, 1, "no store");
    assert_eq!(Place::empty().feed(&["repl", "--nonsense"], "").code, 2);
    let place = place();
    let busy = place.start(&["rpc"]);
    drop(busy);
}

#[test]
fn a_store_that_is_open_elsewhere_is_shared_or_busy() {
    let place = place();
    let mut other = place.start(&["repl"]);
    other.stdin.as_mut().unwrap().write_all(b"RECALL | COUNT;\n").unwrap();
    let mut one = [0; 1];
    other.stdout.as_mut().unwrap().read_exact(&mut one).unwrap();
    assert_eq!(one, *b"3", "an answer comes before the end of the input");
    assert_eq!(place.feed(&["repl"], "RECALL | COUNT;").done().line(), "3");
    let run = place.feed(&["repl", "--exclusive", "--wait-ms", "50"], "RECALL;");
    assert_eq!((run.code, run.error_code().as_str()), (3, "ERR_BUSY"));
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
}

#[test]
fn statements_write_only_where_that_was_said() {
    let place = place();
    let add = r#"ADD belief SET subject = "carol" SET relation = "prefers" SET object = "tea" REASON "said so";"#;
    let run = piped(&place, add);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("CAL-E044") && run.err.contains("--evolve"), "{}", run.err);
    let run = place.feed(&["repl", "--evolve"], format!("{add}\nRECALL ABOUT \"carol\" | COUNT;"));
    assert_eq!(run.done().text().lines().last(), Some("1"));
}

#[test]
fn dot_commands_do_what_they_say() {
    let place = place();
    let run = piped(
        &place,
        ".param who=bob\n.param\nRECALL ABOUT $who | COUNT;\n.param clear\nRECALL ABOUT $who | COUNT;",
    );
    assert_eq!((run.code, run.text()), (1, "$who = \"bob\"\n1\n"));
    assert!(run.err.contains("CAL-E008"), "{}", run.err);

    assert_eq!(piped(&place, ".tables").done().text(), "3  belief\n");
    assert!(piped(&place, ".schema goal").done().text().contains("goal_state"));
    assert!(piped(&place, ".schema").done().text().contains("beliefs"));
    assert!(piped(&place, ".stats").done().text().contains("grains"));
    assert_eq!(piped(&place, ".audit 2").done().text().lines().count(), 2);
    assert!(piped(&place, ".help").done().text().contains(".explain"));

    let timed = piped(&place, ".timer on\nRECALL | COUNT;").done();
    assert!(timed.text() == "3\n" && timed.err.contains(" ms, "), "{}", timed.err);
    let plan = piped(&place, ".explain RECALL ABOUT \"bob\"").done();
    assert!(plan.text().contains("lookups    subject = \"bob\""), "{}", plan.text());
    let each = piped(
        &place,
        ".explain on\nLET $a = RECALL beliefs | SUBJECTS; RECALL WHERE subject IN ($a) | COUNT;",
    );
    assert!(each.done().text().ends_with("\n3\n"));
}

#[test]
fn answers_go_into_a_file_and_statements_come_from_one() {
    let place = place();
    fs::write(place.path().join("ask.cal"), "RECALL | COUNT;\nRECALL ABOUT \"bob\" | COUNT")
        .unwrap();
    let run = piped(&place, ".output out.txt\n.read ask.cal\n.output\nRECALL | COUNT;").done();
    assert_eq!(run.text(), "3\n");
    let written = place.path().join("out.txt");
    assert_eq!(fs::read_to_string(&written).unwrap(), "3\n1\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(written).unwrap().permissions().mode() & 0o777, 0o600);
    }
    fs::write(place.path().join("bad.cal"), "RECALL | COUNT;\n\nRECALL beleifs;\nRECALL | COUNT;")
        .unwrap();
    let run = piped(&place, ".read bad.cal\n");
    assert_eq!((run.code, run.text()), (1, "3\n"), "a file is run up to what is refused");
    assert!(run.err.contains("bad.cal, line 3: "), "{}", run.err);
    fs::write(place.path().join("self.cal"), ".read self.cal\n").unwrap();
    let run = piped(&place, ".read self.cal\n");
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_LIMIT"));
    assert_eq!(piped(&place, ".read nowhere.cal\n").error_code(), "ERR_IO");
}

#[test]
fn no_command_writes_a_file_into_the_directory_of_a_store() {
    let place = place();
    for name in ["grains.redb", "index.redb", "LOCK", "keyring", "keyring.new", "reads/x", "new"] {
        let file = format!("memory.grains/{name}");
        let script = format!(".output {file}\nRECALL;");
        fs::write(place.path().join("script.cal"), &script).unwrap();
        let limited = ["--namespace", "team", "repl"];
        for (arguments, stdin) in [
            (&["repl"][..], script.as_str()),
            (&limited, ".read script.cal"),
            (&["export", &file], ""),
            (&["--user", "ann", "subject-report", "--out", &file], ""),
            (&["keys", "new", &file], ""),
            (&["--store", "other", "--key-file", &file, "init", "--encrypt"], ""),
            (&["backup", &file], ""),
        ] {
            let there = place.path().join(&file).exists();
            let run = place.feed(arguments, stdin);
            // What is there is read as a key, and never written.
            let is_read = there && arguments.contains(&"init");
            let code = if is_read { "ERR_KEY" } else { "ERR_CONFLICT" };
            assert_eq!(run.error_code(), code, "{arguments:?} {file}: {}", run.err);
            assert_eq!(place.path().join(&file).exists(), there, "{arguments:?} {file}");
        }
    }
    assert!(!place.path().join("other").exists());
    assert!(place.grain(&["recall", "alice"]).done().text().contains("milk"));
    place.grain(&["verify"]).done();
}

#[test]
fn garbage_is_refused_and_ends() {
    let place = place();
    let mut noise: Vec<u8> = (0..=255).cycle().take(20_000).collect();
    noise.extend(b"\";\nRECALL | COUNT;\n");
    assert!([0, 1, 2].contains(&place.feed(&["repl"], &noise).code));
    let not_utf8 = place.feed(&["repl"], b"RECALL \xff;\nRECALL | COUNT;");
    assert_eq!(
        (not_utf8.code, not_utf8.text(), not_utf8.error_code().as_str()),
        (1, "3\n", "CAL-E070")
    );
    let endless = place
        .feed(&["repl"], "RECALL beliefs WHERE subject = \"".to_owned() + &"x".repeat(200_000));
    assert_eq!((endless.code, endless.error_code().as_str()), (1, "ERR_TOO_LARGE"));
    let long = place.feed(&["repl"], format!("RECALL -- {}\n;RECALL | COUNT;", "x".repeat(9_000)));
    assert_eq!((long.code, long.text(), long.error_code().as_str()), (1, "3\n", "CAL-E001"));
    let many = piped(&place, &"RECALL | COUNT;\n".repeat(500)).done();
    assert_eq!(many.text().lines().count(), 500);
}

#[test]
fn a_prompt_that_is_killed_leaves_a_whole_store() {
    let place = place();
    let mut child = place.start(&["repl", "--evolve"]);
    let stdin = child.stdin.as_mut().unwrap();
    for n in 0..20 {
        writeln!(
            stdin,
            r#"ADD belief SET subject = "n{n}" SET relation = "is" SET object = "here" REASON "count";"#
        )
        .unwrap();
    }
    let mut address = [0; 65];
    child.stdout.as_mut().unwrap().read_exact(&mut address).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let first = String::from_utf8(address.to_vec()).unwrap();
    place.grain(&["get", first.trim()]).done();
    place.grain(&["verify", "--full"]).done();
}

#[test]
fn the_demo_is_asked_without_a_store() {
    let place = Place::empty();
    let run = place.feed(&["repl", "--demo"], "RECALL ABOUT \"Clementine\" | COUNT;").done();
    assert!(run.text().trim().parse::<u32>().unwrap() > 0, "{}", run.text());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn without_a_command_and_a_terminal_there_is_help() {
    let run = Place::empty().grain(&[]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("Usage: grain"), "{}", run.err);
    assert_eq!(Place::empty().grain(&["--json"]).code, 2);
}
