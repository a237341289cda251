//! Classification of words: active keywords, reserved words, and forbidden words (CAL 3.2, 3.6, 2.4).
//!
//! One sorted table decides the class of a word. The parser decides where a word may stand, and its meaning
//! there.

use grainstore_sml::Section;

/// Length of the longest word of the table; longer identifiers are always plain names.
const LONGEST: usize = 16;

/// The class of an identifier-shaped word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// An identifier: a field, label, type or name, depending on its position.
    Name,
    /// A keyword of the grammar.
    Keyword(Keyword),
    /// Reserved for later versions: a name only where the position allows it.
    Reserved,
    /// Excluded from CAL: an error as keyword, label, name or field.
    Forbidden,
}

/// Returns the class of `word`, in any case.
pub(crate) fn classify(word: &str) -> Word {
    let mut upper = [0_u8; LONGEST];
    let Some(buffer) = upper.get_mut(..word.len()) else { return Word::Name };
    buffer.copy_from_slice(word.as_bytes());
    buffer.make_ascii_uppercase();
    let found = WORDS.binary_search_by(|(known, _)| known.as_bytes().cmp(&*buffer));
    found.ok().and_then(|at| WORDS.get(at)).map_or(Word::Name, |(_, class)| *class)
}

/// Spellings as in CAL, for messages and printing.
impl Keyword {
    /// Returns the keyword in upper case.
    pub(crate) fn text(self) -> &'static str {
        let named = |(_, class): &&(&str, Word)| *class == Word::Keyword(self);
        WORDS.iter().find(named).map_or("", |(text, _)| text)
    }
}

impl Keyword {
    /// Returns the template section that it starts.
    pub(crate) fn section(self) -> Option<Section> {
        Some(match self {
            Self::Header => Section::Header,
            Self::Element => Section::Element,
            Self::ElementSummary => Section::ElementSummary,
            Self::ElementOmit => Section::ElementOmit,
            Self::SourceBreak => Section::SourceBreak,
            Self::Footer => Section::Footer,
            _ => return None,
        })
    }
}

/// Returns the active keywords in upper case.
pub(crate) fn keywords() -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(|(_, class)| matches!(class, Word::Keyword(_))).map(|(word, _)| *word)
}

/// The active keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    About,
    Add,
    Agency,
    And,
    As,
    Asc,
    Assemble,
    Batch,
    Between,
    Budget,
    By,
    Cal,
    Coalesce,
    Contradictions,
    Count,
    Define,
    Desc,
    Describe,
    Diff,
    Element,
    ElementOmit,
    ElementSummary,
    Except,
    Exclude,
    Exists,
    Explain,
    Extends,
    False,
    First,
    Footer,
    For,
    Format,
    From,
    Group,
    Hashes,
    Header,
    History,
    In,
    Include,
    Interaction,
    Intersect,
    Is,
    Knowledge,
    Let,
    Lifecycle,
    Like,
    Limit,
    My,
    Not,
    Null,
    Objects,
    Observation,
    Of,
    Offset,
    Or,
    Order,
    Permission,
    Preference,
    Priority,
    Project,
    Reason,
    Recall,
    Recent,
    Revert,
    Scope,
    Select,
    Set,
    Since,
    SourceBreak,
    Stream,
    Subjects,
    Supersede,
    Template,
    Thread,
    True,
    Undefine,
    Union,
    Where,
    With,
}

/// Every keyword, reserved and forbidden word, sorted by bytes.
#[rustfmt::skip]
const WORDS: [(&str, Word); 146] = [
    ("ABOUT", Word::Keyword(Keyword::About)),
    ("ADD", Word::Keyword(Keyword::Add)),
    ("AGENCY", Word::Keyword(Keyword::Agency)),
    ("AND", Word::Keyword(Keyword::And)),
    ("ANNOTATE", Word::Reserved),
    ("AS", Word::Keyword(Keyword::As)),
    ("ASC", Word::Keyword(Keyword::Asc)),
    ("ASSEMBLE", Word::Keyword(Keyword::Assemble)),
    ("BATCH", Word::Keyword(Keyword::Batch)),
    ("BETWEEN", Word::Keyword(Keyword::Between)),
    ("BOUNDED", Word::Reserved),
    ("BUDGET", Word::Keyword(Keyword::Budget)),
    ("BY", Word::Keyword(Keyword::By)),
    ("CACHE", Word::Reserved),
    ("CAL", Word::Keyword(Keyword::Cal)),
    ("CANCEL", Word::Reserved),
    ("CHUNK", Word::Reserved),
    ("COALESCE", Word::Keyword(Keyword::Coalesce)),
    ("CONSENT", Word::Forbidden),
    ("CONSISTENCY", Word::Reserved),
    ("CONTRADICTIONS", Word::Keyword(Keyword::Contradictions)),
    ("COUNT", Word::Keyword(Keyword::Count)),
    ("CREATE", Word::Forbidden),
    ("DECRYPT", Word::Forbidden),
    ("DEFINE", Word::Keyword(Keyword::Define)),
    ("DEK", Word::Forbidden),
    ("DELETE", Word::Forbidden),
    ("DEPTH", Word::Reserved),
    ("DESC", Word::Keyword(Keyword::Desc)),
    ("DESCRIBE", Word::Keyword(Keyword::Describe)),
    ("DESTROY", Word::Forbidden),
    ("DIFF", Word::Keyword(Keyword::Diff)),
    ("DIVERSITY", Word::Reserved),
    ("DROP", Word::Forbidden),
    ("ELEMENT", Word::Keyword(Keyword::Element)),
    ("ELEMENT_OMIT", Word::Keyword(Keyword::ElementOmit)),
    ("ELEMENT_SUMMARY", Word::Keyword(Keyword::ElementSummary)),
    ("ENCRYPT", Word::Forbidden),
    ("ERASE", Word::Forbidden),
    ("EVENTUAL", Word::Reserved),
    ("EXCEPT", Word::Keyword(Keyword::Except)),
    ("EXCLUDE", Word::Keyword(Keyword::Exclude)),
    ("EXISTS", Word::Keyword(Keyword::Exists)),
    ("EXPLAIN", Word::Keyword(Keyword::Explain)),
    ("EXPLANATION", Word::Reserved),
    ("EXTENDS", Word::Keyword(Keyword::Extends)),
    ("FALSE", Word::Keyword(Keyword::False)),
    ("FIND", Word::Reserved),
    ("FIRST", Word::Keyword(Keyword::First)),
    ("FOOTER", Word::Keyword(Keyword::Footer)),
    ("FOR", Word::Keyword(Keyword::For)),
    ("FORGET", Word::Forbidden),
    ("FORMAT", Word::Keyword(Keyword::Format)),
    ("FROM", Word::Keyword(Keyword::From)),
    ("GRANT", Word::Forbidden),
    ("GRAPH", Word::Reserved),
    ("GROUP", Word::Keyword(Keyword::Group)),
    ("HASHES", Word::Keyword(Keyword::Hashes)),
    ("HAVING", Word::Reserved),
    ("HEADER", Word::Keyword(Keyword::Header)),
    ("HISTORY", Word::Keyword(Keyword::History)),
    ("IN", Word::Keyword(Keyword::In)),
    ("INCLUDE", Word::Keyword(Keyword::Include)),
    ("INDEX", Word::Forbidden),
    ("INSERT", Word::Forbidden),
    ("INTERACTION", Word::Keyword(Keyword::Interaction)),
    ("INTERSECT", Word::Keyword(Keyword::Intersect)),
    ("IS", Word::Keyword(Keyword::Is)),
    ("KEY", Word::Forbidden),
    ("KNOWLEDGE", Word::Keyword(Keyword::Knowledge)),
    ("LANG", Word::Reserved),
    ("LAST", Word::Reserved),
    ("LET", Word::Keyword(Keyword::Let)),
    ("LIFECYCLE", Word::Keyword(Keyword::Lifecycle)),
    ("LIKE", Word::Keyword(Keyword::Like)),
    ("LIMIT", Word::Keyword(Keyword::Limit)),
    ("LINEARIZABLE", Word::Reserved),
    ("MASTER", Word::Forbidden),
    ("MATCHING", Word::Reserved),
    ("MERGE", Word::Reserved),
    ("MIGRATION", Word::Forbidden),
    ("MMR", Word::Reserved),
    ("MY", Word::Keyword(Keyword::My)),
    ("NEAR", Word::Reserved),
    ("NOT", Word::Keyword(Keyword::Not)),
    ("NULL", Word::Keyword(Keyword::Null)),
    ("OBJECTS", Word::Keyword(Keyword::Objects)),
    ("OBSERVATION", Word::Keyword(Keyword::Observation)),
    ("OF", Word::Keyword(Keyword::Of)),
    ("OFFSET", Word::Keyword(Keyword::Offset)),
    ("OR", Word::Keyword(Keyword::Or)),
    ("ORDER", Word::Keyword(Keyword::Order)),
    ("PARTITION", Word::Forbidden),
    ("PAUSE", Word::Reserved),
    ("PERMISSION", Word::Keyword(Keyword::Permission)),
    ("PIN", Word::Reserved),
    ("POLICY", Word::Forbidden),
    ("PREFERENCE", Word::Keyword(Keyword::Preference)),
    ("PRIORITY", Word::Keyword(Keyword::Priority)),
    ("PROJECT", Word::Keyword(Keyword::Project)),
    ("PROVENANCE", Word::Reserved),
    ("PURGE", Word::Forbidden),
    ("REASON", Word::Keyword(Keyword::Reason)),
    ("RECALL", Word::Keyword(Keyword::Recall)),
    ("RECENT", Word::Keyword(Keyword::Recent)),
    ("RELATE", Word::Reserved),
    ("RERANK", Word::Reserved),
    ("RESTRICT", Word::Forbidden),
    ("RESUME", Word::Reserved),
    ("REVERT", Word::Keyword(Keyword::Revert)),
    ("REVOKE", Word::Forbidden),
    ("ROTATE", Word::Forbidden),
    ("SCHEMA", Word::Forbidden),
    ("SCOPE", Word::Keyword(Keyword::Scope)),
    ("SCORE_BREAKDOWN", Word::Reserved),
    ("SEAL", Word::Forbidden),
    ("SECRET", Word::Forbidden),
    ("SELECT", Word::Keyword(Keyword::Select)),
    ("SET", Word::Keyword(Keyword::Set)),
    ("SIMILAR", Word::Reserved),
    ("SINCE", Word::Keyword(Keyword::Since)),
    ("SOURCE_BREAK", Word::Keyword(Keyword::SourceBreak)),
    ("STORE", Word::Forbidden),
    ("STREAM", Word::Keyword(Keyword::Stream)),
    ("SUBJECTS", Word::Keyword(Keyword::Subjects)),
    ("SUPERSEDE", Word::Keyword(Keyword::Supersede)),
    ("SUPERSEDED", Word::Reserved),
    ("TAGGED", Word::Reserved),
    ("TEMPLATE", Word::Keyword(Keyword::Template)),
    ("THREAD", Word::Keyword(Keyword::Thread)),
    ("THRESHOLD", Word::Reserved),
    ("TIMELINE", Word::Reserved),
    ("TOP", Word::Reserved),
    ("TRACE", Word::Reserved),
    ("TRUE", Word::Keyword(Keyword::True)),
    ("TRUNCATE", Word::Forbidden),
    ("UNDEFINE", Word::Keyword(Keyword::Undefine)),
    ("UNION", Word::Keyword(Keyword::Union)),
    ("UNPIN", Word::Reserved),
    ("UNSEAL", Word::Forbidden),
    ("UNTIL", Word::Reserved),
    ("USER", Word::Reserved),
    ("VIA", Word::Reserved),
    ("WHERE", Word::Keyword(Keyword::Where)),
    ("WITH", Word::Keyword(Keyword::With)),
    ("WRITE", Word::Forbidden),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_fits_the_buffer() {
        assert!(WORDS.iter().zip(WORDS.iter().skip(1)).all(|(a, b)| a.0 < b.0));
        assert!(WORDS.iter().all(|(word, _)| word.len() <= LONGEST));
    }

    #[test]
    fn words_are_classified_in_any_case() {
        for (word, class) in [
            ("recall", Word::Keyword(Keyword::Recall)),
            ("ReCaLL", Word::Keyword(Keyword::Recall)),
            ("LAST", Word::Reserved),
            ("delete", Word::Forbidden),
            ("subject", Word::Name),
            ("x", Word::Name),
            ("a_name_that_is_longer_than_the_buffer", Word::Name),
        ] {
            assert_eq!(classify(word), class, "{word}");
        }
    }

    #[test]
    fn every_keyword_knows_its_spelling() {
        assert_eq!(Keyword::ElementSummary.text(), "ELEMENT_SUMMARY");
        assert_eq!(Keyword::Of.text(), "OF");
    }
}
