//! Tab completion at the prompt: dot commands, and statements of CAL.

use grainstore::cal::vocabulary;
use grainstore_serve::{StoredValues, complete_statement};

use super::dot;

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its text in the list.
    pub(crate) display: String,
    /// The text it inserts.
    pub(crate) replacement: String,
}

/// Returns the completions at the end of `before`, and the offset of the word they replace. `bound` has the
/// names of the bound parameters.
pub(crate) fn complete(
    before: &str,
    bound: &[&str],
    held: &dyn StoredValues,
) -> (usize, Vec<Candidate>) {
    if let Some(command) = dot_line(before) {
        return complete_dot(command, before.len());
    }
    let (start, found) = complete_statement(before, bound, held);
    (start, found.into_iter().map(Candidate::from).collect())
}

impl From<grainstore_serve::Candidate> for Candidate {
    fn from(found: grainstore_serve::Candidate) -> Self {
        Self { display: found.display, replacement: found.replacement }
    }
}

/// Returns the dot command under the cursor, if the input is a single line and begins with a dot.
pub(crate) fn dot_line(before: &str) -> Option<&str> {
    let line = before.trim_start();
    (line.starts_with('.') && !line.contains('\n')).then_some(line)
}

fn complete_dot(line: &str, end: usize) -> (usize, Vec<Candidate>) {
    let Some((name, rest)) = line.split_once(char::is_whitespace) else {
        let names = dot::DOT_COMMANDS.iter().map(|dot| dot.name);
        return (end.saturating_sub(line.len()), with_prefix(names, line, " "));
    };
    let typed = rest.trim_start();
    let start = end.saturating_sub(typed.len());
    let found = match name {
        ".mode" => {
            let names: Vec<String> = dot::mode_names().collect();
            with_prefix(names.iter().map(String::as_str), typed, "")
        }
        ".timer" | ".pager" | ".explain" => with_prefix(["on", "off"], typed, ""),
        ".history" | ".param" => with_prefix(["clear"], typed, ""),
        ".schema" => with_prefix(vocabulary::singulars(), typed, ""),
        _ => Vec::new(),
    };
    (start, found)
}

/// Returns the words with the typed prefix, each followed by `then`.
fn with_prefix<'w>(
    words: impl IntoIterator<Item = &'w str>,
    typed: &str,
    then: &str,
) -> Vec<Candidate> {
    let fitting = grainstore_serve::Candidate::fitting(words, typed, then);
    fitting.into_iter().map(Candidate::from).collect()
}

#[cfg(test)]
mod tests {
    use grainstore_serve::ValuesOfGrains;

    use super::*;

    fn shown(before: &str) -> Vec<String> {
        complete(before, &[], &ValuesOfGrains::default())
            .1
            .into_iter()
            .map(|one| one.display)
            .collect()
    }

    fn written(before: &str) -> Vec<String> {
        let (start, found) = complete(before, &[], &ValuesOfGrains::default());
        let head = before.get(..start).unwrap();
        found.into_iter().map(|one| format!("{head}{}", one.replacement)).collect()
    }

    #[test]
    fn dot_commands_and_their_values_are_offered() {
        assert_eq!(written(".ti"), [".timer "]);
        assert_eq!(shown(".timer o"), ["on", "off"]);
        assert_eq!(shown(".mode ta"), ["table"]);
        assert_eq!(written(".schema go"), [".schema goal"]);
        assert!(shown("RECALL\n.ti").is_empty());
    }
}
