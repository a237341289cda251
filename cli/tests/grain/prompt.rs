//! The prompt in a pseudo-terminal, as a person meets it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rexpect::session::{PtySession, spawn_command};

use crate::kit::{Place, belief};

/// Milliseconds a machine under load may take for an answer.
const PATIENCE: u64 = 20_000;

/// A prompt on a terminal of this size; without colours unless they are asked for.
struct Terminal {
    session: PtySession,
}

impl Terminal {
    fn open(place: &Place, arguments: &str, set: &[(&str, &str)]) -> Self {
        let mut command = Command::new("sh");
        let grain = env!("CARGO_BIN_EXE_grain");
        command
            .args(["-c", &format!("stty rows 12 cols 70; exec {grain} {arguments}")])
            .current_dir(place.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", place.path())
            .env("TERM", "xterm")
            .env("NO_COLOR", "1");
        for (name, value) in set {
            command.env(name, value);
        }
        Self { session: spawn_command(command, Some(PATIENCE)).unwrap() }
    }

    /// A prompt that waits for its first line.
    fn ready(place: &Place) -> Self {
        let mut terminal = Self::open(place, "repl", &[]);
        terminal.sees("grain> ");
        terminal
    }

    /// Types a line.
    fn types(&mut self, line: &str) {
        self.session.send(&format!("{line}\r")).unwrap();
        self.session.flush().unwrap();
    }

    /// Presses keys.
    fn presses(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
        self.session.flush().unwrap();
    }

    /// Waits until this is shown; what was shown before it.
    #[track_caller]
    fn sees(&mut self, text: &str) -> String {
        match self.session.exp_string(text) {
            Ok(before) => before,
            Err(error) => panic!("waiting for {text:?}: {error}"),
        }
    }

    /// Drops the line with Ctrl-C, and waits until it is gone.
    #[track_caller]
    fn drops(&mut self) {
        self.presses("\u{3}");
        self.sees("\u{1b}[?2004l");
    }

    /// Leaves with Ctrl-D at the next prompt; the exit code.
    #[track_caller]
    fn leaves(mut self) -> i32 {
        self.sees("grain> ");
        self.presses("\u{4}");
        self.ends()
    }

    fn ends(mut self) -> i32 {
        self.session.exp_eof().unwrap();
        match self.session.process().wait().unwrap() {
            rexpect::process::WaitStatus::Exited(_, code) => code,
            other => panic!("{other:?}"),
        }
    }
}

fn place() -> Place {
    let place = Place::with_store();
    for (subject, object) in [("alice", "tea"), ("alice", "milk"), ("bob", "tea")] {
        place.put(&belief(subject, object));
    }
    place
}

#[test]
fn somebody_types_errs_mends_and_leaves() {
    let place = place();
    let mut terminal = Terminal::ready(&place);
    terminal.types("RECALL beleifs;");
    terminal.sees("CAL-E003");
    terminal.sees("^^^^^^^");
    terminal.sees("Did you mean \"beliefs\"?");
    terminal.sees("grain> ");
    terminal.types("RECALL beliefs ABOUT \"bob\";");
    terminal.sees("bob: prefers tea");
    terminal.sees("1 grain");
    terminal.sees("grain> ");
    terminal.types(".tmier on");
    terminal.sees("did you mean .timer?");
    terminal.sees("grain> ");
    terminal.types(".timer on");
    terminal.sees("timer: on");
    terminal.sees("grain> ");
    terminal.types("ASSEMBLE FROM (RECALL ABOUT \"alice\") BUDGET 200 tokens;");
    terminal.sees("<context");
    terminal.sees("prefers tea");
    terminal.sees(" ms, ");
    assert_eq!(terminal.leaves(), 0);
}

#[test]
fn an_unfinished_statement_goes_on_and_is_drawn_where_it_errs() {
    let place = place();
    let mut terminal = Terminal::ready(&place);
    terminal.types("RECALL beliefs");
    terminal.sees("a statement ends with ;");
    terminal.types("WHERE nonsense = 1;");
    terminal.sees("CAL-E004");
    terminal.sees("  WHERE nonsense = 1");
    terminal.sees("^^^^^^^^");
    assert_eq!(terminal.leaves(), 0);
}

#[test]
fn tab_completes_words_fields_and_subjects() {
    let place = place();
    let mut terminal = Terminal::ready(&place);
    terminal.presses("rec\tbeli\twhere subj\t= \"bo\t");
    terminal.sees("recall beliefs where subject = \"bob\"");
    terminal.types(" | count;");
    terminal.sees("\n1\r\n");
    terminal.sees("grain> ");
    // One Tab is enough for a list.
    terminal.presses("RECALL goals | O\t");
    terminal.sees("OFFSET");
    terminal.drops();
    terminal.sees("grain> ");
    terminal.presses(".exi\t\r");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn a_long_answer_is_paged_and_can_be_left() {
    let place = Place::with_store();
    for n in 0..30 {
        place.put(&belief(&format!("subject-{n:02}"), "tea"));
    }
    let mut terminal = Terminal::open(&place, "repl", &[("PAGER", "")]);
    terminal.sees("grain> ");
    terminal.types("RECALL beliefs | ORDER BY subject ASC | LIMIT 30;");
    terminal.sees("subject-00");
    terminal.sees("-- 11 of 32 lines; Enter: more, q: enough -- ");
    terminal.types("");
    terminal.sees("-- 22 of 32 lines");
    terminal.types("q");
    let rest = terminal.sees("grain> ");
    assert!(!rest.contains("subject-29"), "{rest}");
    terminal.types(".pager off");
    terminal.sees("grain> ");
    terminal.types("RECALL beliefs | ORDER BY subject ASC | LIMIT 30;");
    let all = terminal.sees("30 grains");
    assert!(all.contains("subject-29") && !all.contains("enough"), "{all}");
    assert_eq!(terminal.leaves(), 0);
}

#[test]
fn without_a_pager_in_the_environment_nothing_is_paged_unless_asked_for() {
    let place = Place::with_store();
    for n in 0..30 {
        place.put(&belief(&format!("subject-{n:02}"), "tea"));
    }
    let mut terminal = Terminal::open(&place, "repl", &[]);
    terminal.sees("grain> ");
    terminal.types("RECALL beliefs | ORDER BY subject ASC | LIMIT 30;");
    let all = terminal.sees("30 grains");
    assert!(all.contains("subject-29") && !all.contains("enough"), "{all}");
    terminal.sees("grain> ");
    terminal.types(".pager");
    terminal.sees("pager: off");
    assert_eq!(terminal.leaves(), 0);
}

#[test]
fn a_pager_of_ones_own_is_used() {
    let place = Place::with_store();
    for n in 0..30 {
        place.put(&belief(&format!("subject-{n:02}"), "tea"));
    }
    let mut terminal = Terminal::open(&place, "repl", &[("PAGER", "sed -n '1s/^/paged:/p'")]);
    terminal.sees("grain> ");
    terminal.types("RECALL beliefs | ORDER BY subject ASC | LIMIT 30;");
    terminal.sees("paged:");
    let rest = terminal.sees("grain> ");
    assert!(!rest.contains("subject-"), "{rest}");
    terminal.types(".exit");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn ctrl_c_drops_the_line_and_the_prompt_stays() {
    let place = place();
    let mut terminal = Terminal::ready(&place);
    terminal.presses("RECALL nonsense");
    terminal.drops();
    terminal.sees("grain> ");
    terminal.types("RECALL | COUNT;");
    terminal.sees("\n3\r\n");
    assert_eq!(terminal.leaves(), 0);
}

#[test]
fn ctrl_c_stops_what_runs_and_the_prompt_stays() {
    let place = place();
    let many = "RECALL | COUNT;\n".repeat(100_000);
    fs::write(place.path().join("many.cal"), many).unwrap();
    let mut terminal = Terminal::ready(&place);
    terminal.types(".output many.txt");
    terminal.sees("grain> ");
    terminal.types(".read many.cal");
    let written = place.path().join("many.txt");
    while fs::metadata(&written).is_ok_and(|file| file.len() == 0) {
        std::thread::yield_now();
    }
    terminal.presses("\u{3}");
    terminal.sees("many.cal, line ");
    terminal.sees("grain> ");
    terminal.types(".output");
    terminal.sees("grain> ");
    terminal.types("RECALL ABOUT \"bob\" | COUNT;");
    terminal.sees("\n1\r\n");
    assert_eq!(terminal.leaves(), 0);
}

#[test]
fn what_is_typed_is_kept_for_its_owner_and_comes_back() {
    let place = place();
    let file = place.path().join(".local/state/grain/history");
    let mut terminal = Terminal::ready(&place);
    terminal.types("RECALL\r| COUNT;");
    terminal.sees("\n3\r\n");
    terminal.types(" RECALL ABOUT \"secret\";");
    terminal.sees("nothing found");
    assert_eq!(terminal.leaves(), 0);
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains("COUNT") && !kept.contains("secret"), "{kept}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let mut terminal = Terminal::ready(&place);
    terminal.presses("\u{1b}[A\r");
    terminal.sees("\n3\r\n");
    terminal.sees("grain> ");
    terminal.types(".history clear");
    assert_eq!(terminal.leaves(), 0);
    assert!(!fs::read_to_string(&file).unwrap().contains("COUNT"));
}

#[test]
fn nothing_is_kept_of_an_encrypted_store_or_where_that_is_said() {
    let place = Place::empty();
    place.grain(&["init", "--encrypt", "--key-file", "key"]).done();
    let state = place.path().join(".local");
    let mut terminal = Terminal::open(&place, "repl --key-file key --user al", &[]);
    terminal.sees("grain> ");
    terminal.types("RECALL ABOUT \"secret\";");
    terminal.sees("nothing found");
    terminal.sees("grain> ");
    terminal.types(".history");
    terminal.sees("the store is encrypted");
    assert_eq!(terminal.leaves(), 0);
    assert!(!state.exists());

    let place = self::place();
    for (arguments, set) in [("repl --no-history", &[][..]), ("repl", &[("GRAIN_HISTORY", "")])] {
        let mut terminal = Terminal::open(&place, arguments, set);
        terminal.sees("grain> ");
        terminal.types("RECALL | COUNT;");
        terminal.sees("\n3\r\n");
        assert_eq!(terminal.leaves(), 0);
        assert!(!place.path().join(".local").exists(), "{arguments}");
    }
}

#[test]
fn colours_are_shown_unless_they_are_not_wanted() {
    let place = place();
    let mut terminal = Terminal::open(&place, "", &[("NO_COLOR", "")]);
    terminal.sees("grain> ");
    terminal.presses("RECALL");
    terminal.sees("\u{1b}[34mRECALL\u{1b}[0m");
    terminal.drops();
    assert_eq!(terminal.leaves(), 0);

    let mut terminal = Terminal::ready(&place);
    terminal.presses("RECALL be");
    let shown = terminal.sees("RECALL be");
    assert!(!shown.contains("\u{1b}[3"), "{shown:?}");
    terminal.drops();
    assert_eq!(terminal.leaves(), 0);
}

#[test]
fn stored_text_steers_no_terminal() {
    let place = Place::with_store();
    place.put(&belief("mallory", "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31mred"));
    let mut terminal = Terminal::ready(&place);
    for statement in [
        "RECALL beliefs;",
        "RECALL beliefs AS sml;",
        "RECALL beliefs AS json;",
        "RECALL beliefs SELECT object;",
    ] {
        terminal.types(statement);
        terminal.sees("\n");
        let shown = terminal.sees("red");
        for steering in ["\u{1b}[2J", "\u{1b}]0", "\u{7}", "\u{9b}"] {
            assert!(!shown.contains(steering), "{statement}: {shown:?}");
        }
        terminal.sees("grain> ");
    }
    terminal.types(".exit");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn who_has_no_store_is_asked_and_can_look_around() {
    let place = Place::empty();
    let mut terminal = Terminal::open(&place, "", &[]);
    terminal.sees("There is no store at ./memory.grains");
    terminal.types("d");
    terminal.sees("Try: ASSEMBLE FOR");
    terminal.sees("grain> ");
    terminal.types(
        "ASSEMBLE FOR \"Monday\" FROM (RECALL beliefs ABOUT \"Clementine\") BUDGET 100 tokens;",
    );
    terminal.sees("<context intent=\"Monday\">");
    assert_eq!(terminal.leaves(), 0);
    assert!(!place.path().join("memory.grains").exists());

    let mut terminal = Terminal::open(&place, "", &[]);
    terminal.sees("c, d or q, then Enter: ");
    terminal.types("q");
    terminal.sees("ERR_NOT_FOUND");
    assert_eq!(terminal.ends(), 1);

    let mut terminal = Terminal::open(&place, "repl --evolve", &[]);
    terminal.sees("c, d or q, then Enter: ");
    terminal.types("c");
    terminal.sees("Try: ADD belief");
    assert_eq!(terminal.leaves(), 0);
    assert!(place.path().join("memory.grains").exists());
}
