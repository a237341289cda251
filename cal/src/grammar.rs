//! The grammar DESCRIBE grammar shows: what this version parses, production by production.
//!
//! The parser documents each function with the production it reads; a test holds the names of both
//! against each other.

/// The productions, in the notation of a PEG: `?` optional, `*` repeated, `,+` a comma list.
pub(crate) const GRAMMAR: &str = include_str!("grammar.peg");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::GRAMMAR;

    /// The parser's files, whose comments quote the productions.
    const PARSER: [&str; 13] = [
        include_str!("parse/assemble.rs"),
        include_str!("parse/condition.rs"),
        include_str!("parse/describe.rs"),
        include_str!("parse/evolve.rs"),
        include_str!("parse/history.rs"),
        include_str!("parse/option.rs"),
        include_str!("parse/project.rs"),
        include_str!("parse/recall.rs"),
        include_str!("parse/setop.rs"),
        include_str!("parse/several.rs"),
        include_str!("parse/stage.rs"),
        include_str!("parse/statement.rs"),
        include_str!("parse/value.rs"),
    ];

    /// The word before each `:=`.
    fn productions(text: &str) -> BTreeSet<&str> {
        let heads: Vec<&str> = text.split(":=").map(str::trim_end).collect();
        let heads = heads.iter().take(heads.len() - 1);
        heads.filter_map(|head| head.rsplit([' ', '`', '\n']).next()).collect()
    }

    #[test]
    fn the_grammar_names_the_productions_the_parser_reads() {
        let parsed: BTreeSet<&str> = PARSER.iter().flat_map(|file| productions(file)).collect();
        assert_eq!(productions(GRAMMAR), parsed);
        assert!(parsed.len() > 30, "{parsed:?}");
    }
}
