//! The plain `sh` blocks of the pages on neighbouring formats: what they show can be typed.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::kit::Place;

const PAGES: [(&str, &str); 5] = [
    ("ages.md", include_str!("../../../docs/ages.md")),
    ("alf.md", include_str!("../../../docs/alf.md")),
    ("interop.md", include_str!("../../../docs/interop.md")),
    ("migrate.md", include_str!("../../../docs/migrate.md")),
    ("saga.md", include_str!("../../../docs/saga.md")),
];

/// The lines of the `sh` blocks that call the program; a line that goes on with a backslash is one with the next.
fn lines(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let joined: String = blocks.collect::<String>().replace("\\\n", " ");
    joined.lines().filter(|line| line.contains("grain ")).map(str::to_owned).collect()
}

/// Runs a line in an empty directory: it may miss its files, and is a command of the program for all that.
fn run(line: &str, place: &Place) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_grain")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", line]).current_dir(place.path()).env("PATH", path);
    let shell = shell.env_remove("GRAIN_STORE").env_remove("GRAIN_KEY_FILE").stdin(Stdio::null());
    String::from_utf8(shell.output().unwrap().stderr).unwrap()
}

#[test]
fn what_the_pages_show_is_a_command_line_of_the_program() {
    let place = Place::empty();
    let is_wrong = |told: &str| told.contains("\nUsage: grain ");
    assert!(is_wrong(&run("grain alf imprt a.alf", &place)));
    let mut count = 0;
    for (name, page) in PAGES {
        for line in lines(page) {
            let told = run(&line, &place);
            assert!(!is_wrong(&told), "{name}: {line}\n{told}");
            count += 1;
        }
    }
    assert!(count > 25, "{count} lines");
}

#[test]
fn the_help_of_init_names_a_line_that_shows_rules() {
    let place = Place::empty();
    let help = place.grain(&["init", "--help"]).done();
    let told = help.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("`grain policy show NAME`"), "{told}");
    assert!(place.grain(&["policy", "show", "gdpr"]).done().text().contains("gdpr"));
}
