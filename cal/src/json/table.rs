//! The JSON form of CAL as data: each object, its keys in the order of the grammar, and the words of the
//! text form they stand for (CAL 15.2).
//!
//! The reader translates documents by this table, and the schema is built from it. It has no logic.

use grainstore_sml::Section;

use crate::codes::ErrorKind;
use crate::limits;
use crate::relations::CATEGORIES;

/// A kind of object.
pub(super) struct ObjectForm {
    /// Its name in messages and in the schema.
    pub(super) name: &'static str,
    /// The value of `statement`, if it is a statement.
    pub(super) statement: Option<&'static str>,
    /// The words before its keys in text.
    pub(super) head: &'static str,
    pub(super) keys: &'static [KeyForm],
    /// The words between two of its keys.
    pub(super) between: &'static str,
    pub(super) tail: &'static str,
    /// Alternative sets of required keys.
    pub(super) needs: &'static [&'static [&'static str]],
    pub(super) about: &'static str,
}

/// A key of an object: the words around its value, and the kind of the value.
pub(super) struct KeyForm {
    pub(super) name: &'static str,
    pub(super) lead: &'static str,
    pub(super) shape: ValueForm,
    pub(super) tail: &'static str,
    pub(super) about: &'static str,
}

/// The kind of a value.
pub(super) enum ValueForm {
    /// `true`: the words of the key appear.
    Flag,
    /// A string, or a parameter.
    Text,
    /// The text of a template, put between braces unchanged.
    Raw,
    /// A whole number, or a parameter.
    Count,
    /// A whole number in this range, or a parameter. The schema states the range; the checker enforces it.
    Within(u64, u64),
    /// A whole number.
    Whole,
    /// A string of at most this many characters, or a parameter.
    BoundedText(usize),
    /// Any number, or a parameter.
    Number,
    /// A number from 0 to 1, or a parameter.
    Fraction,
    /// `sha256:...`, or a parameter.
    Hash,
    /// Any literal.
    Value,
    /// Two literals: from and to.
    Pair,
    Plural,
    Singular,
    /// The singular of a type that ADD can create.
    Addable,
    /// A name chosen by the query: letters, digits and `_`.
    Name,
    /// The name of a LET.
    Variable,
    /// A field, or `prefix:name`.
    Field,
    /// A field that PROJECT takes: a field, an SML attribute, or `x_name`.
    Shown,
    /// A word of a closed list.
    Word(&'static [&'static str]),
    /// `true`, or another kind.
    FlagOr(&'static ValueForm),
    /// A word of a closed list, or another kind as an object.
    WordOr(&'static [&'static str], &'static ValueForm),
    /// A name chosen by the query, or another kind as a list.
    NameOr(&'static ValueForm),
    Object(&'static ObjectForm),
    /// The object of BUDGET, whose bounds depend on its unit.
    Budget(&'static ObjectForm),
    List(&'static ListForm),
    /// A name alone, or an object of one key.
    Choice(&'static ChoiceForm),
    /// A condition of WHERE; its operator decides the kind of its value.
    Condition,
    /// One of these statements.
    Statement(&'static [&'static ObjectForm]),
    /// One of these statements; an error in it stays in its slot.
    Slot(&'static [&'static ObjectForm]),
    /// One of these statements, with its own LETs.
    Query(&'static [&'static ObjectForm]),
}

/// A non-empty list.
pub(super) struct ListForm {
    /// The maximum length, if the schema states one.
    pub(super) most: Option<usize>,
    pub(super) open: &'static str,
    pub(super) of: ValueForm,
    pub(super) between: &'static str,
    pub(super) close: &'static str,
}

/// A closed list of names, some with a value.
pub(super) struct ChoiceForm {
    /// The noun for one of them in messages.
    pub(super) what: &'static str,
    /// The error kind for an unknown name.
    pub(super) unknown: ErrorKind,
    pub(super) rows: &'static [ChoiceRow],
    /// True if `x_` names are accepted.
    pub(super) extensions: bool,
}

/// One name of a choice.
pub(super) struct ChoiceRow {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    /// True if it may be written alone, as a string.
    pub(super) bare: bool,
    /// The value it takes as the key of an object, with the words around it.
    pub(super) holds: Option<(&'static str, ValueForm, &'static str)>,
}

const fn key(
    name: &'static str,
    lead: &'static str,
    shape: ValueForm,
    about: &'static str,
) -> KeyForm {
    KeyForm { name, lead, shape, tail: "", about }
}

const fn part(
    name: &'static str,
    head: &'static str,
    keys: &'static [KeyForm],
    needs: &'static [&'static [&'static str]],
    about: &'static str,
) -> ObjectForm {
    ObjectForm { name, statement: None, head, keys, between: "", tail: "", needs, about }
}

const fn stated(
    name: &'static str,
    head: &'static str,
    keys: &'static [KeyForm],
    needs: &'static [&'static [&'static str]],
    about: &'static str,
) -> ObjectForm {
    ObjectForm { name, statement: Some(name), head, keys, between: "", tail: "", needs, about }
}

const fn list(of: ValueForm, between: &'static str) -> ListForm {
    ListForm { most: None, open: "", of, between, close: "" }
}

const fn bare(name: &'static str) -> ChoiceRow {
    ChoiceRow { name, text: name, bare: true, holds: None }
}

const fn stage(name: &'static str, text: &'static str, shape: ValueForm) -> ChoiceRow {
    ChoiceRow { name, text, bare: false, holds: Some(("", shape, "")) }
}

const fn option(name: &'static str, bare: bool, lead: &'static str, shape: ValueForm) -> ChoiceRow {
    ChoiceRow { name, text: name, bare, holds: Some((lead, shape, ")")) }
}

/// The key of the language version.
pub(super) const VERSION: &str = "cal_version";

/// Keys that every query may have.
pub(super) static QUERY: [KeyForm; 2] = [
    key(VERSION, "CAL /", ValueForm::Whole, "the version of the language: 1"),
    key("let", "", ValueForm::List(&LETS), "recalls with names, for IN and for sources"),
];

static LETS: ListForm = list(ValueForm::Object(&LET), "");

/// A LET.
pub(super) static LET: ObjectForm = ObjectForm {
    tail: ";",
    ..part(
        "let",
        "LET",
        &[
            key("name", "", ValueForm::Variable, "its name, without a dollar"),
            key("recall", "=", ValueForm::Statement(&[&RECALL]), "what it stands for"),
            key("extract", "|", ValueForm::Word(&EXTRACTORS), "the values it takes out, for IN"),
        ],
        &[&["name", "recall"]],
        "a recall with a name",
    )
};

pub(super) static EXTRACTORS: [&str; 3] = ["subjects", "objects", "hashes"];

/// Every statement, and DEFINE TEMPLATE.
pub(super) static STATEMENTS: [&ObjectForm; 13] = [
    &RECALL, &ASSEMBLE, &SET_OP, &EXISTS, &HISTORY, &EXPLAIN, &DESCRIBE, &BATCH, &COALESCE, &ADD,
    &SUPERSEDE, &REVERT, &DEFINE,
];

static EXPLAINED: [&ObjectForm; 11] = [
    &RECALL, &ASSEMBLE, &SET_OP, &EXISTS, &HISTORY, &DESCRIBE, &BATCH, &COALESCE, &ADD, &SUPERSEDE,
    &REVERT,
];

const IN: KeyForm = key("in", "IN", ValueForm::Text, "a namespace, exactly");
const SCOPE: KeyForm =
    key("scope", "IN SCOPE", ValueForm::Text, "a namespace and those below it; not beside \"in\"");

pub(super) static RECALL: ObjectForm = stated(
    "recall",
    "RECALL",
    &[
        key("my", "MY", ValueForm::Flag, "only what belongs to the session's user"),
        key("grain_type", "", ValueForm::Plural, "the type of grain; all types without it"),
        IN,
        SCOPE,
        key(
            "about",
            "ABOUT",
            ValueForm::Text,
            "a subject, or what to search for where there is none",
        ),
        key("like", "LIKE", ValueForm::Text, "full text or meaning to search for"),
        key("since", "SINCE", ValueForm::Text, "a time phrase: from then until now"),
        key("between", "BETWEEN", ValueForm::Pair, "two times: from and to"),
        key("thread", "THREAD", ValueForm::Text, "the events of a session, by its id"),
        key("thread_from", "THREAD FROM", ValueForm::Hash, "the whole thread of a message"),
        key("where", "WHERE", ValueForm::List(&CONDITIONS), "conditions; all must hold"),
        key("with", "WITH", ValueForm::List(&RECALL_OPTIONS), "options"),
        key("pipeline", "|", ValueForm::List(&STAGES), "stages, in order"),
        key("recent", "RECENT", ROWS, "this many of the newest"),
        key("contradictions", "CONTRADICTIONS", ValueForm::Flag, "only what is contradicted"),
        key("as", "AS", ValueForm::Word(&FORMATS), "the format of `formatted`"),
    ],
    &[],
    "find grains",
);

static FORMATS: [&str; 9] =
    ["markdown", "json", "yaml", "text", "sml", "triples", "toon", "csv", "table"];
static CONDITIONS: ListForm = list(ValueForm::Condition, "AND");
static RECALL_OPTIONS: ListForm = list(ValueForm::Choice(&OPTIONS), ",");
static STAGES: ListForm = list(ValueForm::Choice(&STAGE), "|");
static FIELDS: ListForm = list(ValueForm::Field, ",");
static SHOWN: ListForm =
    ListForm { most: None, open: "(", of: ValueForm::Shown, between: ",", close: ")" };
static VALUES_INSIDE: ListForm =
    ListForm { most: None, open: "(", of: ValueForm::Value, between: ",", close: ")" };

/// LIMIT and RECENT.
const ROWS: ValueForm = ValueForm::Within(1, limits::MAX_LIMIT);

static STAGE: ChoiceForm = ChoiceForm {
    what: "stage",
    unknown: ErrorKind::UnexpectedToken,
    extensions: false,
    rows: &[
        stage("select", "SELECT", ValueForm::List(&FIELDS)),
        stage("order_by", "ORDER BY", ValueForm::Object(&ORDER)),
        stage("limit", "LIMIT", ROWS),
        stage("offset", "OFFSET", ValueForm::Count),
        stage("count", "COUNT", ValueForm::Flag),
        stage("first", "FIRST", ValueForm::Flag),
        stage("subjects", "SUBJECTS", ValueForm::Flag),
        stage("objects", "OBJECTS", ValueForm::Flag),
        stage("hashes", "HASHES", ValueForm::Flag),
        stage("group_by", "GROUP BY", ValueForm::Field),
        stage("project", "PROJECT", ValueForm::Object(&PROJECT)),
    ],
};

static ORDER: ObjectForm = part(
    "order_by",
    "",
    &[
        key("field", "", ValueForm::Field, "what to sort by"),
        key("dir", "", ValueForm::Word(&["asc", "desc"]), "asc where it is left out"),
    ],
    &[&["field"]],
    "the field that sorts",
);

static PROJECT: ObjectForm = ObjectForm {
    between: ",",
    ..part(
        "project",
        "",
        &[
            key("content", "content", ValueForm::List(&SHOWN), "the fields of the text"),
            key("attr", "attr", ValueForm::List(&SHOWN), "the attributes"),
        ],
        &[&["content"], &["attr"]],
        "what formatted grains show",
    )
};

/// The options of WITH.
static OPTIONS: ChoiceForm = ChoiceForm {
    what: "option",
    unknown: ErrorKind::UnexpectedToken,
    extensions: true,
    rows: &[
        bare("superseded"),
        bare("score_breakdown"),
        bare("explanation"),
        bare("total"),
        bare("provenance"),
        bare("contradiction_detection"),
        bare("summarize"),
        option(
            "progressive_disclosure",
            true,
            "(",
            ValueForm::Word(&["summary", "headlines", "standard", "full"]),
        ),
        option("dedup", false, "(", ValueForm::Field),
        option("diversity", false, "(", ValueForm::Choice(&DIVERSITY)),
        option("cache", false, "(", ValueForm::Object(&CACHE)),
        option("consistency", false, "(", ValueForm::Choice(&CONSISTENCY)),
        option("locale", false, "(", ValueForm::Text),
        bare("iso_timestamps"),
    ],
};

/// All choices.
pub(super) static CHOICES: [&ChoiceForm; 6] =
    [&STAGE, &OPTIONS, &DIVERSITY, &CONSISTENCY, &EVENT, &SECTION];

/// The arguments of an `x_` option.
pub(super) static EXTENSION: ValueForm = ValueForm::List(&VALUES_INSIDE);

static DIVERSITY: ChoiceForm = ChoiceForm {
    what: "diversity",
    unknown: ErrorKind::UnexpectedToken,
    extensions: false,
    rows: &[
        ChoiceRow {
            name: "mmr",
            text: "mmr",
            bare: true,
            holds: Some((", lambda =", ValueForm::Fraction, "")),
        },
        ChoiceRow {
            name: "threshold",
            text: "threshold",
            bare: false,
            holds: Some((",", ValueForm::Fraction, "")),
        },
    ],
};

static CONSISTENCY: ChoiceForm = ChoiceForm {
    what: "consistency",
    unknown: ErrorKind::UnexpectedToken,
    extensions: false,
    rows: &[
        bare("eventual"),
        option("bounded", false, "(", ValueForm::Number),
        bare("linearizable"),
    ],
};

static CACHE: ObjectForm = part(
    "cache",
    "",
    &[key("ttl", "ttl =", ValueForm::Count, "seconds")],
    &[&["ttl"]],
    "how long an answer may be kept",
);

static ASSEMBLE: ObjectForm = stated(
    "assemble",
    "ASSEMBLE",
    &[
        key("name", "", ValueForm::Name, "a name for the context"),
        key("for", "FOR", ValueForm::Text, "what the context is for"),
        key("from", "FROM", ValueForm::List(&SOURCES), "where the grains come from; at most 8"),
        key("budget", "BUDGET", ValueForm::Budget(&BUDGET), "how much the context may take"),
        key(
            "priority",
            "PRIORITY",
            ValueForm::List(&LABELS),
            "labels of sources, most important first",
        ),
        key(
            "format",
            "FORMAT",
            ValueForm::WordOr(&ASSEMBLY_FORMATS, &TEMPLATE),
            "the format, or a template; sml without it",
        ),
        key("stream", "STREAM", ValueForm::FlagOr(&STREAM), "which events to send"),
        key("with", "WITH", ValueForm::List(&RECALL_OPTIONS), "options"),
    ],
    &[&["from"]],
    "put a context together within a budget",
);

#[rustfmt::skip]
static ASSEMBLY_FORMATS: [&str; 11] = [
    "markdown", "json", "yaml", "text", "sml", "triples", "toon", "structured", "readable", "compact", "data",
];
static TEMPLATE: ValueForm = ValueForm::Object(&TEMPLATE_KEY);
static TEMPLATE_KEY: ObjectForm = part(
    "template",
    "",
    &[key("template", "TEMPLATE", ValueForm::NameOr(&INLINE), "its name, or its sections")],
    &[&["template"]],
    "a template",
);
static INLINE: ValueForm = ValueForm::List(&ListForm {
    most: None,
    open: "{",
    of: ValueForm::Choice(&SECTION),
    between: "",
    close: "}",
});

/// The sections of a template, in the order of the grammar.
static SECTION: ChoiceForm = ChoiceForm {
    what: "section",
    unknown: ErrorKind::UnexpectedToken,
    extensions: false,
    rows: &[
        section("header", "HEADER"),
        section("element", "ELEMENT"),
        section("element_summary", "ELEMENT_SUMMARY"),
        section("element_omit", "ELEMENT_OMIT"),
        section("source_break", "SOURCE_BREAK"),
        section("footer", "FOOTER"),
    ],
};

const fn section(name: &'static str, text: &'static str) -> ChoiceRow {
    ChoiceRow { name, text, bare: false, holds: Some(("{", ValueForm::Raw, "}")) }
}

/// Returns the key of a section.
pub(super) fn section_key(section: Section) -> &'static str {
    let row = SECTION.rows.iter().find(|row| row.text == section.keyword());
    row.map_or("", |row| row.name)
}

static DEFINE: ObjectForm = stated(
    "define_template",
    "DEFINE TEMPLATE",
    &[
        key("name", "", ValueForm::Name, "its name"),
        key("extends", "EXTENDS", ValueForm::Name, "a preset but data; readable without it"),
        key("sections", "", ValueForm::List(&SECTIONS), "what it says in place of the preset"),
    ],
    &[&["name", "sections"]],
    "keep a template for this session, or with Tier 1 for its namespace",
);
static SECTIONS: ListForm = list(ValueForm::Choice(&SECTION), "");

static SOURCES: ListForm = ListForm {
    most: Some(limits::MAX_SOURCES),
    open: "",
    of: ValueForm::Object(&SOURCE),
    between: ",",
    close: "",
};
static LABELS: ListForm = list(ValueForm::Name, ">");
static STREAM: ValueForm = ValueForm::List(&STREAMED);
static STREAMED: ListForm =
    ListForm { most: None, open: "{", of: ValueForm::Choice(&EVENT), between: ",", close: "}" };

static EVENT: ChoiceForm = ChoiceForm {
    what: "stream_option",
    unknown: ErrorKind::UnknownStreamOption,
    extensions: false,
    rows: &[
        bare("progress"),
        bare("budget"),
        bare("chunks"),
        bare("all"),
        ChoiceRow {
            name: "chunk_size",
            text: "chunk_size",
            bare: false,
            holds: Some((
                "=",
                ValueForm::Within(
                    *limits::CHUNK_TOKEN_RANGE.start(),
                    *limits::CHUNK_TOKEN_RANGE.end(),
                ),
                "",
            )),
        },
    ],
};

static SOURCE: ObjectForm = part(
    "source",
    "",
    &[
        KeyForm {
            tail: ":",
            ..key("label", "", ValueForm::Name, "its name in PRIORITY and in the answer")
        },
        KeyForm {
            tail: ")",
            ..key("recall", "(", ValueForm::Statement(&[&RECALL]), "what it finds")
        },
        key("let", "", ValueForm::Variable, "the LET it takes its grains from"),
    ],
    &[&["recall"], &["let"]],
    "one source",
);

static BUDGET: ObjectForm = part(
    "budget",
    "",
    &[
        key("amount", "", ValueForm::Within(1, limits::TOKEN_BUDGET.1), "how many"),
        key("unit", "", ValueForm::Word(&["tokens", "grains"]), "of what"),
    ],
    &[&["amount", "unit"]],
    "how much",
);

pub(super) static OPERANDS: [&ObjectForm; 3] = [&RECALL, &COALESCE, &SET_OP];

static SET_OP: ObjectForm = stated(
    "set_op",
    "",
    &[
        KeyForm { tail: ")", ..key("left", "(", ValueForm::Query(&OPERANDS), "one query") },
        key("op", "", ValueForm::Word(&["UNION", "INTERSECT", "EXCEPT"]), "how they are joined"),
        KeyForm { tail: ")", ..key("right", "(", ValueForm::Query(&OPERANDS), "the other query") },
    ],
    &[&["left", "op", "right"]],
    "join what two queries find",
);

static EXISTS: ObjectForm = stated(
    "exists",
    "EXISTS",
    &[key("hash", "", ValueForm::Hash, "the grain")],
    &[&["hash"]],
    "whether a grain is there",
);

static HISTORY: ObjectForm = stated(
    "history",
    "HISTORY",
    &[
        key("hash", "", ValueForm::Hash, "one version of the grain"),
        key("diff", "DIFF", ValueForm::Hash, "the version to compare it with"),
        IN,
        SCOPE,
        key("subject", "WHERE subject =", ValueForm::Value, "the subject"),
        key("relation", "AND relation =", ValueForm::Value, "the relation"),
        key("as_of", "AS OF", ValueForm::Text, "what was known then"),
    ],
    &[&["hash"], &["subject", "relation"]],
    "the versions of a grain",
);

static EXPLAIN: ObjectForm = stated(
    "explain",
    "EXPLAIN",
    &[key("query", "", ValueForm::Statement(&EXPLAINED), "the statement")],
    &[&["query"]],
    "how a statement would run",
);

#[rustfmt::skip]
static DESCRIBE: ObjectForm = stated(
    "describe",
    "DESCRIBE",
    &[
        key("target", "", ValueForm::Word(&["grain_types", "fields", "capabilities", "server", "templates", "grammar"]), "of what"),
        key("grain_type", "", ValueForm::Singular, "the type whose fields are wanted"),
    ],
    &[&["target"]],
    "what the language and this host have",
);

static READS: [&ObjectForm; 5] = [&RECALL, &EXISTS, &HISTORY, &DESCRIBE, &COALESCE];
static ENTRIES: ListForm = ListForm {
    most: Some(limits::MAX_BATCH_ENTRIES),
    open: "{",
    of: ValueForm::Object(&ENTRY),
    between: ",",
    close: "}",
};

static BATCH: ObjectForm = stated(
    "batch",
    "BATCH",
    &[key("queries", "", ValueForm::List(&ENTRIES), "at most 10")],
    &[&["queries"]],
    "several statements at once",
);

static ENTRY: ObjectForm = part(
    "entry",
    "",
    &[
        KeyForm { tail: ":", ..key("label", "", ValueForm::Name, "the name of its answer") },
        key("query", "", ValueForm::Slot(&READS), "a statement that reads"),
    ],
    &[&["label", "query"]],
    "one statement of a batch",
);

static BRANCHES: ListForm = ListForm {
    most: Some(limits::MAX_COALESCE_BRANCHES),
    open: "(",
    of: ValueForm::Statement(&[&RECALL]),
    between: ",",
    close: ")",
};

static COALESCE: ObjectForm = stated(
    "coalesce",
    "COALESCE",
    &[key("branches", "", ValueForm::List(&BRANCHES), "2 to 5 recalls")],
    &[&["branches"]],
    "the first recall that finds something",
);

static SETS: ListForm = list(ValueForm::Object(&SET), "");
const SET_KEY: KeyForm = key("set", "", ValueForm::List(&SETS), "the fields to write");
const REASON: KeyForm = key(
    "reason",
    "REASON",
    ValueForm::BoundedText(limits::MAX_REASON_CHARS),
    "why; kept in the audit log",
);

static SET: ObjectForm = part(
    "set",
    "SET",
    &[
        key("field", "", ValueForm::Name, "the field"),
        key("value", "=", ValueForm::Value, "its value"),
    ],
    &[&["field", "value"]],
    "one field to write",
);

static ADD: ObjectForm = stated(
    "add",
    "ADD",
    &[key("grain_type", "", ValueForm::Addable, "belief, observation or goal"), SET_KEY, REASON],
    &[&["grain_type"]],
    "write a new grain",
);

static SUPERSEDE: ObjectForm = stated(
    "supersede",
    "SUPERSEDE",
    &[key("target", "", ValueForm::Hash, "the current belief"), SET_KEY, REASON],
    &[&["target"]],
    "write a new version of a belief",
);

static REVERT: ObjectForm = stated(
    "revert",
    "REVERT",
    &[key("target", "", ValueForm::Hash, "the version to go back behind"), REASON],
    &[&["target"]],
    "write the version before as the current one",
);

/// The operators of a condition.
#[rustfmt::skip]
pub(super) static OPERATORS: [&str; 11] =
    ["=", "!=", ">=", "<=", ">", "<", "IN", "BETWEEN", "INCLUDE", "EXCLUDE", "IS"];

/// Returns the categories that IS takes.
pub(super) fn categories() -> impl Iterator<Item = &'static str> + Clone {
    CATEGORIES.iter().map(|category| category.keyword.text())
}
