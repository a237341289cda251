//! Classification of words: active keywords, reserved words, and forbidden words (CAL 3.2, 3.6, 2.4).
//!
//! One sorted table decides the class of a word. The parser decides where a word may stand, and its meaning
//! there.

use grainstore_sml::Section;

/// Length of the longest word of the table; longer identifiers are always plain names.
const MAX_WORD_BYTES: usize = 16;

/// The class of an identifier-shaped word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordClass {
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
pub(crate) fn classify(word: &str) -> WordClass {
    let mut upper = [0_u8; MAX_WORD_BYTES];
    let Some(buffer) = upper.get_mut(..word.len()) else { return WordClass::Name };
    buffer.copy_from_slice(word.as_bytes());
    buffer.make_ascii_uppercase();
    let found = WORDS.binary_search_by(|(known, _)| known.as_bytes().cmp(&*buffer));
    found.ok().and_then(|at| WORDS.get(at)).map_or(WordClass::Name, |(_, class)| *class)
}

/// Spellings as in CAL, for messages and printing.
impl Keyword {
    /// Returns the keyword in upper case.
    pub(crate) fn text(self) -> &'static str {
        let named = |(_, class): &&(&str, WordClass)| *class == WordClass::Keyword(self);
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
    WORDS.iter().filter(|(_, class)| matches!(class, WordClass::Keyword(_))).map(|(word, _)| *word)
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
const WORDS: [(&str, WordClass); 146] = [
    ("ABOUT", WordClass::Keyword(Keyword::About)),
    ("ADD", WordClass::Keyword(Keyword::Add)),
    ("AGENCY", WordClass::Keyword(Keyword::Agency)),
    ("AND", WordClass::Keyword(Keyword::And)),
    ("ANNOTATE", WordClass::Reserved),
    ("AS", WordClass::Keyword(Keyword::As)),
    ("ASC", WordClass::Keyword(Keyword::Asc)),
    ("ASSEMBLE", WordClass::Keyword(Keyword::Assemble)),
    ("BATCH", WordClass::Keyword(Keyword::Batch)),
    ("BETWEEN", WordClass::Keyword(Keyword::Between)),
    ("BOUNDED", WordClass::Reserved),
    ("BUDGET", WordClass::Keyword(Keyword::Budget)),
    ("BY", WordClass::Keyword(Keyword::By)),
    ("CACHE", WordClass::Reserved),
    ("CAL", WordClass::Keyword(Keyword::Cal)),
    ("CANCEL", WordClass::Reserved),
    ("CHUNK", WordClass::Reserved),
    ("COALESCE", WordClass::Keyword(Keyword::Coalesce)),
    ("CONSENT", WordClass::Forbidden),
    ("CONSISTENCY", WordClass::Reserved),
    ("CONTRADICTIONS", WordClass::Keyword(Keyword::Contradictions)),
    ("COUNT", WordClass::Keyword(Keyword::Count)),
    ("CREATE", WordClass::Forbidden),
    ("DECRYPT", WordClass::Forbidden),
    ("DEFINE", WordClass::Keyword(Keyword::Define)),
    ("DEK", WordClass::Forbidden),
    ("DELETE", WordClass::Forbidden),
    ("DEPTH", WordClass::Reserved),
    ("DESC", WordClass::Keyword(Keyword::Desc)),
    ("DESCRIBE", WordClass::Keyword(Keyword::Describe)),
    ("DESTROY", WordClass::Forbidden),
    ("DIFF", WordClass::Keyword(Keyword::Diff)),
    ("DIVERSITY", WordClass::Reserved),
    ("DROP", WordClass::Forbidden),
    ("ELEMENT", WordClass::Keyword(Keyword::Element)),
    ("ELEMENT_OMIT", WordClass::Keyword(Keyword::ElementOmit)),
    ("ELEMENT_SUMMARY", WordClass::Keyword(Keyword::ElementSummary)),
    ("ENCRYPT", WordClass::Forbidden),
    ("ERASE", WordClass::Forbidden),
    ("EVENTUAL", WordClass::Reserved),
    ("EXCEPT", WordClass::Keyword(Keyword::Except)),
    ("EXCLUDE", WordClass::Keyword(Keyword::Exclude)),
    ("EXISTS", WordClass::Keyword(Keyword::Exists)),
    ("EXPLAIN", WordClass::Keyword(Keyword::Explain)),
    ("EXPLANATION", WordClass::Reserved),
    ("EXTENDS", WordClass::Keyword(Keyword::Extends)),
    ("FALSE", WordClass::Keyword(Keyword::False)),
    ("FIND", WordClass::Reserved),
    ("FIRST", WordClass::Keyword(Keyword::First)),
    ("FOOTER", WordClass::Keyword(Keyword::Footer)),
    ("FOR", WordClass::Keyword(Keyword::For)),
    ("FORGET", WordClass::Forbidden),
    ("FORMAT", WordClass::Keyword(Keyword::Format)),
    ("FROM", WordClass::Keyword(Keyword::From)),
    ("GRANT", WordClass::Forbidden),
    ("GRAPH", WordClass::Reserved),
    ("GROUP", WordClass::Keyword(Keyword::Group)),
    ("HASHES", WordClass::Keyword(Keyword::Hashes)),
    ("HAVING", WordClass::Reserved),
    ("HEADER", WordClass::Keyword(Keyword::Header)),
    ("HISTORY", WordClass::Keyword(Keyword::History)),
    ("IN", WordClass::Keyword(Keyword::In)),
    ("INCLUDE", WordClass::Keyword(Keyword::Include)),
    ("INDEX", WordClass::Forbidden),
    ("INSERT", WordClass::Forbidden),
    ("INTERACTION", WordClass::Keyword(Keyword::Interaction)),
    ("INTERSECT", WordClass::Keyword(Keyword::Intersect)),
    ("IS", WordClass::Keyword(Keyword::Is)),
    ("KEY", WordClass::Forbidden),
    ("KNOWLEDGE", WordClass::Keyword(Keyword::Knowledge)),
    ("LANG", WordClass::Reserved),
    ("LAST", WordClass::Reserved),
    ("LET", WordClass::Keyword(Keyword::Let)),
    ("LIFECYCLE", WordClass::Keyword(Keyword::Lifecycle)),
    ("LIKE", WordClass::Keyword(Keyword::Like)),
    ("LIMIT", WordClass::Keyword(Keyword::Limit)),
    ("LINEARIZABLE", WordClass::Reserved),
    ("MASTER", WordClass::Forbidden),
    ("MATCHING", WordClass::Reserved),
    ("MERGE", WordClass::Reserved),
    ("MIGRATION", WordClass::Forbidden),
    ("MMR", WordClass::Reserved),
    ("MY", WordClass::Keyword(Keyword::My)),
    ("NEAR", WordClass::Reserved),
    ("NOT", WordClass::Keyword(Keyword::Not)),
    ("NULL", WordClass::Keyword(Keyword::Null)),
    ("OBJECTS", WordClass::Keyword(Keyword::Objects)),
    ("OBSERVATION", WordClass::Keyword(Keyword::Observation)),
    ("OF", WordClass::Keyword(Keyword::Of)),
    ("OFFSET", WordClass::Keyword(Keyword::Offset)),
    ("OR", WordClass::Keyword(Keyword::Or)),
    ("ORDER", WordClass::Keyword(Keyword::Order)),
    ("PARTITION", WordClass::Forbidden),
    ("PAUSE", WordClass::Reserved),
    ("PERMISSION", WordClass::Keyword(Keyword::Permission)),
    ("PIN", WordClass::Reserved),
    ("POLICY", WordClass::Forbidden),
    ("PREFERENCE", WordClass::Keyword(Keyword::Preference)),
    ("PRIORITY", WordClass::Keyword(Keyword::Priority)),
    ("PROJECT", WordClass::Keyword(Keyword::Project)),
    ("PROVENANCE", WordClass::Reserved),
    ("PURGE", WordClass::Forbidden),
    ("REASON", WordClass::Keyword(Keyword::Reason)),
    ("RECALL", WordClass::Keyword(Keyword::Recall)),
    ("RECENT", WordClass::Keyword(Keyword::Recent)),
    ("RELATE", WordClass::Reserved),
    ("RERANK", WordClass::Reserved),
    ("RESTRICT", WordClass::Forbidden),
    ("RESUME", WordClass::Reserved),
    ("REVERT", WordClass::Keyword(Keyword::Revert)),
    ("REVOKE", WordClass::Forbidden),
    ("ROTATE", WordClass::Forbidden),
    ("SCHEMA", WordClass::Forbidden),
    ("SCOPE", WordClass::Keyword(Keyword::Scope)),
    ("SCORE_BREAKDOWN", WordClass::Reserved),
    ("SEAL", WordClass::Forbidden),
    ("SECRET", WordClass::Forbidden),
    ("SELECT", WordClass::Keyword(Keyword::Select)),
    ("SET", WordClass::Keyword(Keyword::Set)),
    ("SIMILAR", WordClass::Reserved),
    ("SINCE", WordClass::Keyword(Keyword::Since)),
    ("SOURCE_BREAK", WordClass::Keyword(Keyword::SourceBreak)),
    ("STORE", WordClass::Forbidden),
    ("STREAM", WordClass::Keyword(Keyword::Stream)),
    ("SUBJECTS", WordClass::Keyword(Keyword::Subjects)),
    ("SUPERSEDE", WordClass::Keyword(Keyword::Supersede)),
    ("SUPERSEDED", WordClass::Reserved),
    ("TAGGED", WordClass::Reserved),
    ("TEMPLATE", WordClass::Keyword(Keyword::Template)),
    ("THREAD", WordClass::Keyword(Keyword::Thread)),
    ("THRESHOLD", WordClass::Reserved),
    ("TIMELINE", WordClass::Reserved),
    ("TOP", WordClass::Reserved),
    ("TRACE", WordClass::Reserved),
    ("TRUE", WordClass::Keyword(Keyword::True)),
    ("TRUNCATE", WordClass::Forbidden),
    ("UNDEFINE", WordClass::Keyword(Keyword::Undefine)),
    ("UNION", WordClass::Keyword(Keyword::Union)),
    ("UNPIN", WordClass::Reserved),
    ("UNSEAL", WordClass::Forbidden),
    ("UNTIL", WordClass::Reserved),
    ("USER", WordClass::Reserved),
    ("VIA", WordClass::Reserved),
    ("WHERE", WordClass::Keyword(Keyword::Where)),
    ("WITH", WordClass::Keyword(Keyword::With)),
    ("WRITE", WordClass::Forbidden),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_fits_the_buffer() {
        assert!(WORDS.iter().zip(WORDS.iter().skip(1)).all(|(a, b)| a.0 < b.0));
        assert!(WORDS.iter().all(|(word, _)| word.len() <= MAX_WORD_BYTES));
    }

    #[test]
    fn words_are_classified_in_any_case() {
        for (word, class) in [
            ("recall", WordClass::Keyword(Keyword::Recall)),
            ("ReCaLL", WordClass::Keyword(Keyword::Recall)),
            ("LAST", WordClass::Reserved),
            ("delete", WordClass::Forbidden),
            ("subject", WordClass::Name),
            ("x", WordClass::Name),
            ("a_name_that_is_longer_than_the_buffer", WordClass::Name),
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
