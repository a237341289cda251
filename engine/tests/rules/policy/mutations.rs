//! Every mutation of `mutate.sh` still names code that is there, once: the script itself runs seldom.

use std::path::Path;

/// The text without differences of white space.
fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_mutation_is_of_code_that_is_there_once() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = std::fs::read_to_string(engine.join("tests/rules/policy/mutate.sh")).unwrap();
    let (_, behind) = script.split_once("<<'TABLE'\n").unwrap();
    let (table, _) = behind.split_once("\nTABLE\n").unwrap();
    let mut count = 0;
    for row in table.lines() {
        // A \| in a row is a | of the source.
        let row = row.replace("\\|", "\u{1}");
        let mut parts = row.split('|').map(|part| part.replace('\u{1}', "|"));
        let [name, file, from] = [(); 3].map(|()| parts.next().unwrap());
        let source = engine.join("src/rules/policy").join(&file);
        let source = std::fs::read_to_string(source).unwrap();
        let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        // A $ stands for the end of a line, which is a blank here.
        let (from, end) = match from.strip_suffix('$') {
            Some(from) => (from, " "),
            None => (from.as_str(), ""),
        };
        let found = folded(code).matches(&format!("{}{end}", folded(from))).count();
        assert_eq!(found, 1, "{name}: {from} in {file}");
        count += 1;
    }
    assert!(count > 60, "{count}");
}
