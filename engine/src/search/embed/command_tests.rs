//! Tests of the command embedder with programs that break the protocol.
#![cfg(unix)]

use super::*;

fn embedder(script: &str, dimension: usize) -> CommandEmbedder {
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    let options = CommandOptions::new(command, "test", dimension);
    CommandEmbedder::new(CommandOptions { batch: 2, ..options }).unwrap()
}

/// Answers every line with one vector a text, counting texts by their quotes.
const COUNTING: &str = r#"
    while read -r line; do
        case "$line" in
            *'","'*) echo '{"vectors":[[1,2],[3,4e0]]}' ;;
            *) echo '{"vectors":[[5.5,-6]]}' ;;
        esac
    done"#;

#[test]
fn texts_become_vectors_in_their_order_line_by_line() {
    let embedder = embedder(COUNTING, 2);
    for _ in 0..2 {
        let vectors = embedder.embed(&["a", "b\nc", "d"]).unwrap();
        let values: Vec<&[f32]> = vectors.iter().map(Vector::values).collect();
        assert_eq!(values, [&[1.0, 2.0], &[3.0, 4.0], &[5.5, -6.0]]);
    }
    assert!(embedder.embed(&[]).unwrap().is_empty());
    assert_eq!((embedder.model(), embedder.dimension()), ("test", 2));
}

#[test]
fn a_program_that_answers_what_nobody_can_use_is_an_error_with_a_code() {
    let cases = [
        ("read l; echo junk", "ERR_EMBEDDER"),
        ("read l; echo", "ERR_EMBEDDER"),
        ("read l; printf '\\377\\376\\n'", "ERR_EMBEDDER"),
        ("read l; echo '[]'", "ERR_EMBEDDER"),
        ("read l; echo '{\"vectors\":[]}'", "ERR_EMBEDDER"),
        ("read l; echo '{\"vectors\":[[1,2],[3,4]]}'", "ERR_EMBEDDER"),
        ("read l; echo '{\"vectors\":[[1]]}'", "ERR_DIMENSION"),
        ("read l; echo '{\"vectors\":[[1,2,3]]}'", "ERR_DIMENSION"),
        ("read l; echo '{\"vectors\":[[0,0]]}'", "ERR_EMBEDDER"),
        ("read l; echo '{\"vectors\":[[1,NaN]]}'", "ERR_EMBEDDER"),
        ("read l; echo '{\"vectors\":[[1,1e39]]}'", "ERR_SCHEMA"),
        ("read l; echo '{\"vectors\":[[1,null]]}'", "ERR_EMBEDDER"),
        ("read l; echo '{\"error\":\"no such model\"}'", "ERR_EMBEDDER"),
        ("read l; printf '{\"vectors\":[[1,2'", "ERR_EMBEDDER"),
        ("read l; printf '{\"vectors\":[[1,2]]}\\n{\"vectors\":[[3,4]]}\\n'", "ERR_EMBEDDER"),
        ("exit 3", "ERR_EMBEDDER"),
        ("read l; kill -9 $$", "ERR_EMBEDDER"),
        ("exec cat /dev/zero", "ERR_EMBEDDER"),
    ];
    for (script, code) in cases {
        let error = embedder(script, 2).embed(&["a"]).unwrap_err();
        assert_eq!(error.code(), code, "{script}: {error}");
    }
    let refused = embedder("read l; echo '{\"error\":\"no such model\"}'", 2);
    assert!(refused.embed(&["a"]).unwrap_err().to_string().ends_with("it says: no such model"));
}

#[test]
fn a_program_that_hangs_is_given_up_and_started_anew() {
    let folder = tempfile::TempDir::new().unwrap();
    let mark = folder.path().join("started");
    // The first run reads and never answers; the second answers.
    let script = format!(
        "if [ -e '{0}' ]; then read l; echo '{{\"vectors\":[[1,2]]}}'; \
         else : > '{0}'; exec tail -f /dev/null; fi",
        mark.display()
    );
    let embedder = embedder(&script, 2);
    let hasty = CommandOptions { deadline: Duration::from_millis(300), ..embedder.options };
    let hasty = CommandEmbedder::new(hasty).unwrap();
    assert_eq!(hasty.embed(&["a"]).unwrap_err().code(), "ERR_TIMEOUT");
    let patient = CommandOptions { deadline: DEFAULT_DEADLINE, ..hasty.options };
    let patient = CommandEmbedder { options: patient, process: hasty.process };
    assert_eq!(patient.embed(&["a"]).unwrap()[0].values(), [1.0, 2.0]);
    // That process ended after its answer; another one is started and asked.
    assert_eq!(patient.embed(&["a"]).unwrap()[0].values(), [1.0, 2.0]);
}

#[test]
fn a_text_that_is_longer_than_any_pipe_gets_through_or_is_given_up() {
    let long = "x".repeat(1 << 20);
    assert_eq!(embedder(COUNTING, 2).embed(&[&long]).unwrap().len(), 1);
    let deaf = embedder("exec tail -f /dev/null", 2);
    let deaf = CommandOptions { deadline: Duration::from_millis(300), ..deaf.options };
    let error = CommandEmbedder::new(deaf).unwrap().embed(&[&long]).unwrap_err();
    assert_eq!(error.code(), "ERR_TIMEOUT");
}

#[test]
fn what_cannot_be_embedded_or_run_is_refused() {
    let error = embedder("exit 1", 2).embed(&["a", " \n"]).unwrap_err();
    assert_eq!(error.code(), "ERR_EMPTY");
    let missing = vec![OsString::from("/nonexistent/embedder")];
    let missing = CommandEmbedder::new(CommandOptions::new(missing, "m", 2)).unwrap();
    assert_eq!(missing.embed(&["a"]).unwrap_err().code(), "ERR_EMBEDDER");
    for (command, model, dimension, code) in [
        (vec![], "m", 2, "ERR_EMBEDDER"),
        (vec![OsString::from("cat")], "", 2, "ERR_SCHEMA"),
        (vec![OsString::from("cat")], "m", 0, "ERR_DIMENSION"),
    ] {
        let refused = CommandEmbedder::new(CommandOptions::new(command, model, dimension));
        assert_eq!(refused.unwrap_err().code(), code);
    }
}
