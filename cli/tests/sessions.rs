//! The sessions in README.md, docs/privacy.md, docs/interop.md and docs/http.md, run line by line: what is printed there is what is
//! printed here.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of tests, which the allowance for tests does not reach"
)]

use std::env;
use std::path::Path;
use std::process::Command;

/// A command of the session and what it prints.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    printed: String,
}

/// The steps between the markers: `$ ` begins a command, `> ` continues it on another line, and what
/// follows is printed by it.
fn steps(readme: &str) -> Vec<Step> {
    let session = readme.split("<!-- session -->").nth(1).unwrap_or_default();
    let session = session.split("<!-- /session -->").next().unwrap_or_default();
    let mut steps: Vec<Step> = Vec::new();
    for line in session.lines().filter(|line| !line.starts_with("```")) {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), printed: String::new() });
            continue;
        }
        let Some(step) = steps.last_mut() else {
            continue;
        };
        let (text, line) = match line.strip_prefix("> ") {
            Some(more) if step.printed.is_empty() => (&mut step.command, format!("\n{more}")),
            _ => (&mut step.printed, format!("{line}\n")),
        };
        text.push_str(&line);
    }
    steps
}

#[test]
fn the_session_of_the_readme_prints_what_it_says() {
    run(include_str!("../../README.md"));
}

#[test]
fn the_session_of_the_page_on_privacy_prints_what_it_says() {
    run(include_str!("../../docs/privacy.md"));
}

#[test]
fn the_session_of_the_page_on_neighbouring_formats_prints_what_it_says() {
    run(include_str!("../../docs/interop.md"));
}

#[cfg(feature = "serve")]
#[test]
fn the_session_of_the_page_on_http_prints_what_it_says() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("skipped: there is no curl");
        return;
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let page = include_str!("../../docs/http.md")
        .replace("serve --demo >", "serve --demo --listen 127.0.0.1:7117 >");
    run(&page.replace(":7117", &format!(":{free}")));
}

/// Ends what a session has started and noted in the file `pid`, also where the session fails.
struct Ends<'p>(&'p Path);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if let Ok(pid) = std::fs::read_to_string(self.0.join("pid")) {
            let _ =
                Command::new("kill").arg(pid.trim()).stderr(std::process::Stdio::null()).status();
        }
    }
}

/// Runs the session of a page in a directory of its own.
fn run(page: &str) {
    let steps = steps(page);
    assert!(steps.len() >= 5, "there is a session between the markers");
    let grain = Path::new(env!("CARGO_BIN_EXE_grain")).parent().unwrap();
    let mut path = grain.as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_default());
    let place = tempfile::tempdir().unwrap();
    let _ends = Ends(place.path());
    for Step { command, printed } in steps {
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .env("PATH", &path)
            .env_remove("GRAIN_STORE")
            .env_remove("GRAIN_KEY_FILE")
            .current_dir(place.path())
            .output()
            .unwrap();
        let actual = String::from_utf8(output.stdout).unwrap();
        assert_eq!(actual.trim_end(), printed.trim_end(), "$ {command}");
    }
}

#[test]
fn commands_and_what_they_print_are_told_apart() {
    let readme = "before\n<!-- session -->\n```console\n$ one\n>  more\nout\n\nout\n$ two\n```\n\
                  <!-- /session -->\n$ after\n";
    let expected = [("one\n more", "out\n\nout\n"), ("two", "")];
    let expected = expected.map(|(command, printed)| Step {
        command: command.to_owned(),
        printed: printed.to_owned(),
    });
    assert_eq!(steps(readme), expected);
}
