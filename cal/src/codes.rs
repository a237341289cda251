//! The registry of error and warning codes this version raises (CAL 22, appendix C), one row a code.
//!
//! A row has the variant, the stable code, a title, and general advice for places that have no better one.
//! The codes are raised by the other modules.

macro_rules! registry {
    ($($variant:ident $code:literal $title:literal $advice:literal;)+) => {
        /// The kind of an [`Error`](crate::Error): one variant for each stable code of CAL appendix C.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $(#[doc = concat!("`", $code, "`: ", $title, ".")] $variant,)+
            /// A refusal by the memory behind CAL; its own `ERR_` code is kept.
            Memory,
        }

        impl ErrorKind {
            /// Every kind that has a CAL code, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the stable code, such as `CAL-E003`; empty for [`ErrorKind::Memory`].
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)+
                    Self::Memory => "",
                }
            }

            /// Returns the meaning of the code in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$variant => $title,)+
                    Self::Memory => "refused by the memory",
                }
            }

            /// Returns general advice, used where nothing more specific is known.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self {
                    $(Self::$variant => $advice,)+
                    Self::Memory => "see the message of the memory",
                }
            }
        }
    };
}

registry! {
    QueryTooLong "CAL-E001" "text longer than its limit" "shorten the text or split the request";
    UnexpectedToken "CAL-E002" "unexpected token" "check the grammar at this place";
    UnknownType "CAL-E003" "unknown grain type" "use one of the ten grain types";
    UnknownField "CAL-E004" "unknown field" "use a field of the named grain type";
    BadString "CAL-E005" "malformed string" "close the string with a double quote";
    BadNumber "CAL-E006" "number outside its form or range" "write digits, optionally with one fraction";
    TooDeep "CAL-E007" "nested too deep" "run the inner query first and list its values";
    UnboundParameter "CAL-E008" "unbound parameter" "bind the parameter before executing";
    BoundTwice "CAL-E009" "bound or named twice" "keep one of the two";
    LimitTooLarge "CAL-E010" "LIMIT above the maximum" "ask for at most 1000 grains";
    SetTooLarge "CAL-E011" "too many values in IN" "list at most 100 values";
    TooManyStages "CAL-E012" "too many pipeline stages" "use at most 5 stages";
    TooMany "CAL-E013" "too many parts" "split the request";
    EmptyQuery "CAL-E014" "empty query" "start with a statement such as RECALL beliefs";
    BadHash "CAL-E015" "bad or ambiguous hash" "write sha256: and 8 to 64 lowercase hex digits";
    BadReason "CAL-E016" "REASON blank or too long" "say why in 1 to 500 characters";
    UnknownSetField "CAL-E017" "field that SET cannot write" "set only the listed fields";
    MissingReason "CAL-E018" "missing REASON" "end the statement with REASON \"why\"";
    MissingSet "CAL-E019" "missing SET" "add at least one SET field = value";
    WrongType "CAL-E020" "incompatible operator or value" "use an operator and value the field takes";
    WrongStage "CAL-E021" "clause that does not fit here" "reorder or drop the clause";
    WrongExtractor "CAL-E022" "extractor on a type without that field" "use it on beliefs, or use HASHES";
    BudgetExceeded "CAL-E030" "budget out of range" "choose a budget within the limits";
    Timeout "CAL-E031" "query timeout" "narrow the query";
    NotCurrent "CAL-E040" "target not current" "supersede the current version, see HISTORY";
    NothingBefore "CAL-E041" "no version to go back to" "revert a later version, see HISTORY";
    NotEvolvable "CAL-E042" "only beliefs can be superseded or reverted" "add a new grain instead";
    WriteQuota "CAL-E043" "write quota exceeded" "wait a minute";
    TierDisabled "CAL-E044" "Tier 1 not enabled" "ask the host to allow evolving statements";
    OtherNamespace "CAL-E045" "target in another namespace" "open a session in the namespace of the target";
    TargetNotFound "CAL-E046" "target not found" "check the hash, or RECALL the grain first";
    MissingField "CAL-E050" "ADD without a required field" "set subject, relation and object";
    NotAddable "CAL-E051" "type that ADD cannot create" "add a belief, observation or goal";
    AddQuota "CAL-E052" "ADD quota exceeded" "wait a minute";
    WrongField "CAL-E060" "ambiguous shortcut, or field of another type" "keep one of the two clauses";
    TypeNotNamed "CAL-E061" "type-specific field without its type" "name the grain type after RECALL";
    BadActionPhase "CAL-E062" "unknown action_phase" "use one of the listed values";
    BadGoalState "CAL-E063" "unknown goal_state" "use one of the listed values";
    BadConsentAction "CAL-E064" "unknown consent_action" "use one of the listed values";
    BadRecallPriority "CAL-E065" "unknown recall_priority" "use one of the listed values";
    BadEpistemicStatus "CAL-E066" "unknown epistemic_status" "use one of the listed values";
    InvalidUtf8 "CAL-E070" "invalid UTF-8" "send the query as UTF-8";
    BidiControl "CAL-E071" "bidirectional control in a literal" "remove the invisible control character";
    AssembleTimeout "CAL-E075" "ASSEMBLE timeout" "ask for fewer or narrower sources";
    AllSourcesFailed "CAL-E076" "every source failed" "run the sources one by one to see why";
    UnknownStreamOption "CAL-E077" "unknown option of STREAM" "use progress, budget, chunks, all or chunk_size = n";
    ChunkSize "CAL-E078" "chunk_size out of range" "choose 20 to 1000 tokens";
    NotStreamed "CAL-E079" "not a statement that streams" "ask for the answer as a whole";
    Cancelled "CAL-E082" "cancelled" "run the statement again if it is still wanted";
    TemplateNotFound "CAL-E085" "template not found" "define the template first, or write it behind FORMAT TEMPLATE in braces";
    ExtendsData "CAL-E086" "template of a preset that is data" "extend structured, readable or compact";
    ExtendsTemplate "CAL-E087" "template of another template" "extend structured, readable or compact";
    TemplateTaken "CAL-E088" "template that is there already" "choose another name: templates stay as they are";
    TooManyTemplates "CAL-E089" "too many templates" "use one that is there, or write it behind FORMAT TEMPLATE in braces";
    UnknownVariable "CAL-E090" "unknown variable of a template" "use one of the listed variables";
    UnbalancedSection "CAL-E091" "section of a template that is not closed or not open" "close each section behind what it holds";
    TemplateTooLarge "CAL-E092" "template that is too large" "shorten its texts to 4096 bytes";
    TemplateTooDeep "CAL-E093" "template nested too deep" "take a section out of the others";
    TemplateSyntax "CAL-E094" "malformed template" "check the tags and braces of the template";
    DuplicateSection "CAL-E095" "section of a template that stands twice" "keep one of the two";
    ConflictingSections "CAL-E096" "ELEMENT and ELEMENT_SUMMARY contradict each other" "leave grain.is_summary out of ELEMENT";
    UnsupportedVersion "CAL-E100" "unsupported CAL version" "write CAL/1, or leave the prefix out";
}

/// A code that is read by looking it up, and not borrowed from what is read.
type Word = &'static str;

/// The code of a warning.
fn warning_code<'de, D: serde::Deserializer<'de>>(source: D) -> Result<&'static str, D::Error> {
    let told = <String as serde::Deserialize>::deserialize(source)?;
    let known = [
        UNKNOWN_RELATION,
        MISSING_PROFILE_TAG,
        UNKNOWN_DOMAIN,
        IGNORED_OPTION,
        FORMAT_CHOSEN,
        UNREVIEWED_VALUES,
        NAMESPACE_REPLACED,
        OLD_TYPE_NAME,
    ];
    let found = known.into_iter().find(|code| *code == told);
    found.ok_or_else(|| serde::de::Error::custom(format_args!("{told:?} is no code of a warning")))
}

/// A warning beside the answer of [`execute`](crate::execute) (CAL 22).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// The stable code, such as `CAL-W001`.
    #[serde(deserialize_with = "warning_code")]
    pub code: Word,
    /// A description for people.
    pub message: String,
}

/// `CAL-W001`: a relation in the reserved `mg:` space that OMS does not define.
pub(crate) const UNKNOWN_RELATION: &str = "CAL-W001";
/// `CAL-W002`: a domain field without the tag of its profile (CAL 12.2).
pub(crate) const MISSING_PROFILE_TAG: &str = "CAL-W002";
/// `CAL-W003`: a domain prefix that no profile registers.
pub(crate) const UNKNOWN_DOMAIN: &str = "CAL-W003";
/// `CAL-W004`: an option that is unknown, not supported or without effect where it stands, ignored.
pub(crate) const IGNORED_OPTION: &str = "CAL-W004";
/// `CAL-W005`: TOON chosen automatically because the budget is tight (CAL 10.9.5).
pub(crate) const FORMAT_CHOSEN: &str = "CAL-W005";
/// `CAL-W006`: values left out because they come from reasonings that require human review.
pub(crate) const UNREVIEWED_VALUES: &str = "CAL-W006";
/// `CAL-W101`: a namespace outside the session's, replaced by the session's.
pub(crate) const NAMESPACE_REPLACED: &str = "CAL-W101";
/// `CAL-W102`: an old name of a grain type.
pub(crate) const OLD_TYPE_NAME: &str = "CAL-W102";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_in_registry_order() {
        let codes: Vec<&str> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert!(codes.iter().zip(codes.iter().skip(1)).all(|(a, b)| a < b));
    }

    #[test]
    fn every_code_says_what_it_is_and_what_to_do() {
        for kind in ErrorKind::ALL {
            assert!(!kind.title().is_empty() && !kind.advice().is_empty(), "{}", kind.code());
        }
    }
}
