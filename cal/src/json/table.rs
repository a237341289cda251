//! The JSON form of CAL as data: each object, its keys in the order of the grammar, and the words of the
//! text form they stand for (CAL 15.2).
//!
//! The reader translates documents by this table, and the schema is built from it. It has no logic.

use grainstore_sml::Section;

use crate::codes::ErrorKind;
use crate::limits;
use crate::relations::CATEGORIES;

/// A kind of object.
pub(super) struct Form {
    /// Its name in messages and in the schema.
    pub(super) name: &'static str,
    /// The value of `statement`, if it is a statement.
    pub(super) statement: Option<&'static str>,
    /// The words before its keys in text.
    pub(super) head: &'static str,
    pub(super) keys: &'static [Key],
    /// The words between two of its keys.
    pub(super) between: &'static str,
    pub(super) tail: &'static str,
    /// Alternative sets of required keys.
    pub(super) needs: &'static [&'static [&'static str]],
    pub(super) about: &'static str,
}

/// A key of an object: the words around its value, and the kind of the value.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) lead: &'static str,
    pub(super) shape: Shape,
    pub(super) tail: &'static str,
    pub(super) about: &'static str,
}

/// The kind of a value.
pub(super) enum Shape {
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
    Brief(usize),
    /// Any number, or a parameter.
    Number,
    /// A number from 0 to 1, or a parameter.
    Share,
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
    FlagOr(&'static Shape),
    /// A word of a closed list, or another kind as an object.
    WordOr(&'static [&'static str], &'static Shape),
    /// A name chosen by the query, or another kind as a list.
    NameOr(&'static Shape),
    Object(&'static Form),
    /// The object of BUDGET, whose bounds depend on its unit.
    Budget(&'static Form),
    List(&'static List),
    /// A name alone, or an object of one key.
    Choice(&'static Choice),
    /// A condition of WHERE; its operator decides the kind of its value.
    Condition,
    /// One of these statements.
    Statement(&'static [&'static Form]),
    /// One of these statements; an error in it stays in its slot.
    Slot(&'static [&'static Form]),
    /// One of these statements, with its own LETs.
    Query(&'static [&'static Form]),
}

/// A non-empty list.
pub(super) struct List {
    /// The maximum length, if the schema states one.
    pub(super) most: Option<usize>,
    pub(super) open: &'static str,
    pub(super) of: Shape,
    pub(super) between: &'static str,
    pub(super) close: &'static str,
}

/// A closed list of names, some with a value.
pub(super) struct Choice {
    /// The noun for one of them in messages.
    pub(super) what: &'static str,
    /// The error kind for an unknown name.
    pub(super) unknown: ErrorKind,
    pub(super) rows: &'static [Row],
    /// True if `x_` names are accepted.
    pub(super) extensions: bool,
}

/// One name of a choice.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    /// True if it may be written alone, as a string.
    pub(super) bare: bool,
    /// The value it takes as the key of an object, with the words around it.
    pub(super) holds: Option<(&'static str, Shape, &'static str)>,
}

const fn key(name: &'static str, lead: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, lead, shape, tail: "", about }
}

const fn part(
    name: &'static str,
    head: &'static str,
    keys: &'static [Key],
    needs: &'static [&'static [&'static str]],
    about: &'static str,
) -> Form {
    Form { name, statement: None, head, keys, between: "", tail: "", needs, about }
}

const fn stated(
    name: &'static str,
    head: &'static str,
    keys: &'static [Key],
    needs: &'static [&'static [&'static str]],
    about: &'static str,
) -> Form {
    Form { name, statement: Some(name), head, keys, between: "", tail: "", needs, about }
}

const fn list(of: Shape, between: &'static str) -> List {
    List { most: None, open: "", of, between, close: "" }
}

const fn bare(name: &'static str) -> Row {
    Row { name, text: name, bare: true, holds: None }
}

const fn stage(name: &'static str, text: &'static str, shape: Shape) -> Row {
    Row { name, text, bare: false, holds: Some(("", shape, "")) }
}

const fn option(name: &'static str, bare: bool, lead: &'static str, shape: Shape) -> Row {
    Row { name, text: name, bare, holds: Some((lead, shape, ")")) }
}

/// The key of the language version.
pub(super) const VERSION: &str = "cal_version";

/// Keys that every query may have.
pub(super) static QUERY: [Key; 2] = [
    key(VERSION, "CAL /", Shape::Whole, "the version of the language: 1"),
    key("let", "", Shape::List(&LETS), "recalls with names, for IN and for sources"),
];

static LETS: List = list(Shape::Object(&LET), "");

/// A LET.
pub(super) static LET: Form = Form {
    tail: ";",
    ..part(
        "let",
        "LET",
        &[
            key("name", "", Shape::Variable, "its name, without a dollar"),
            key("recall", "=", Shape::Statement(&[&RECALL]), "what it stands for"),
            key("extract", "|", Shape::Word(&EXTRACTORS), "the values it takes out, for IN"),
        ],
        &[&["name", "recall"]],
        "a recall with a name",
    )
};

pub(super) static EXTRACTORS: [&str; 3] = ["subjects", "objects", "hashes"];

/// Every statement, and DEFINE TEMPLATE.
pub(super) static STATEMENTS: [&Form; 13] = [
    &RECALL, &ASSEMBLE, &SET_OP, &EXISTS, &HISTORY, &EXPLAIN, &DESCRIBE, &BATCH, &COALESCE, &ADD,
    &SUPERSEDE, &REVERT, &DEFINE,
];

static EXPLAINED: [&Form; 11] = [
    &RECALL, &ASSEMBLE, &SET_OP, &EXISTS, &HISTORY, &DESCRIBE, &BATCH, &COALESCE, &ADD, &SUPERSEDE,
    &REVERT,
];

const IN: Key = key("in", "IN", Shape::Text, "a namespace, exactly");
const SCOPE: Key =
    key("scope", "IN SCOPE", Shape::Text, "a namespace and those below it; not beside \"in\"");

pub(super) static RECALL: Form = stated(
    "recall",
    "RECALL",
    &[
        key("my", "MY", Shape::Flag, "only what belongs to the session's user"),
        key("grain_type", "", Shape::Plural, "the type of grain; all types without it"),
        IN,
        SCOPE,
        key("about", "ABOUT", Shape::Text, "a subject, or what to search for where there is none"),
        key("like", "LIKE", Shape::Text, "full text or meaning to search for"),
        key("since", "SINCE", Shape::Text, "a time phrase: from then until now"),
        key("between", "BETWEEN", Shape::Pair, "two times: from and to"),
        key("thread", "THREAD", Shape::Text, "the events of a session, by its id"),
        key("thread_from", "THREAD FROM", Shape::Hash, "the whole thread of a message"),
        key("where", "WHERE", Shape::List(&CONDITIONS), "conditions; all must hold"),
        key("with", "WITH", Shape::List(&RECALL_OPTIONS), "options"),
        key("pipeline", "|", Shape::List(&STAGES), "stages, in order"),
        key("recent", "RECENT", ROWS, "this many of the newest"),
        key("contradictions", "CONTRADICTIONS", Shape::Flag, "only what is contradicted"),
        key("as", "AS", Shape::Word(&FORMATS), "the format of `formatted`"),
    ],
    &[],
    "find grains",
);

static FORMATS: [&str; 9] =
    ["markdown", "json", "yaml", "text", "sml", "triples", "toon", "csv", "table"];
static CONDITIONS: List = list(Shape::Condition, "AND");
static RECALL_OPTIONS: List = list(Shape::Choice(&OPTIONS), ",");
static STAGES: List = list(Shape::Choice(&STAGE), "|");
static FIELDS: List = list(Shape::Field, ",");
static SHOWN: List = List { most: None, open: "(", of: Shape::Shown, between: ",", close: ")" };
static VALUES_INSIDE: List =
    List { most: None, open: "(", of: Shape::Value, between: ",", close: ")" };

/// LIMIT and RECENT.
const ROWS: Shape = Shape::Within(1, limits::MAX_LIMIT);

static STAGE: Choice = Choice {
    what: "stage",
    unknown: ErrorKind::UnexpectedToken,
    extensions: false,
    rows: &[
        stage("select", "SELECT", Shape::List(&FIELDS)),
        stage("order_by", "ORDER BY", Shape::Object(&ORDER)),
        stage("limit", "LIMIT", ROWS),
        stage("offset", "OFFSET", Shape::Count),
        stage("count", "COUNT", Shape::Flag),
        stage("first", "FIRST", Shape::Flag),
        stage("subjects", "SUBJECTS", Shape::Flag),
        stage("objects", "OBJECTS", Shape::Flag),
        stage("hashes", "HASHES", Shape::Flag),
        stage("group_by", "GROUP BY", Shape::Field),
        stage("project", "PROJECT", Shape::Object(&PROJECT)),
    ],
};

static ORDER: Form = part(
    "order_by",
    "",
    &[
        key("field", "", Shape::Field, "what to sort by"),
        key("dir", "", Shape::Word(&["asc", "desc"]), "asc where it is left out"),
    ],
    &[&["field"]],
    "the field that sorts",
);

static PROJECT: Form = Form {
    between: ",",
    ..part(
        "project",
        "",
        &[
            key("content", "content", Shape::List(&SHOWN), "the fields of the text"),
            key("attr", "attr", Shape::List(&SHOWN), "the attributes"),
        ],
        &[&["content"], &["attr"]],
        "what formatted grains show",
    )
};

/// The options of WITH.
static OPTIONS: Choice = Choice {
    what: "option",
    unknown: ErrorKind::UnexpectedToken,
    extensions: true,
    rows: &[
        bare("superseded"),
        bare("score_breakdown"),
        bare("explanation"),
        bare("provenance"),
        bare("contradiction_detection"),
        bare("summarize"),
        option(
            "progressive_disclosure",
            true,
            "(",
            Shape::Word(&["summary", "headlines", "standard", "full"]),
        ),
        option("dedup", false, "(", Shape::Field),
        option("diversity", false, "(", Shape::Choice(&DIVERSITY)),
        option("cache", false, "(", Shape::Object(&CACHE)),
        option("consistency", false, "(", Shape::Choice(&CONSISTENCY)),
        option("locale", false, "(", Shape::Text),
        bare("iso_timestamps"),
    ],
};

/// All choices.
pub(super) static CHOICES: [&Choice; 6] =
    [&STAGE, &OPTIONS, &DIVERSITY, &CONSISTENCY, &EVENT, &SECTION];

/// The arguments of an `x_` option.
pub(super) static EXTENSION: Shape = Shape::List(&VALUES_INSIDE);

static DIVERSITY: Choice = Choice {
    what: "diversity",
    unknown: ErrorKind::UnexpectedToken,
    extensions: false,
    rows: &[
        Row { name: "mmr", text: "mmr", bare: true, holds: Some((", lambda =", Shape::Share, "")) },
        Row {
            name: "threshold",
            text: "threshold",
            bare: false,
            holds: Some((",", Shape::Share, "")),
        },
    ],
};

static CONSISTENCY: Choice = Choice {
    what: "consistency",
    unknown: ErrorKind::UnexpectedToken,
    extensions: false,
    rows: &[bare("eventual"), option("bounded", false, "(", Shape::Number), bare("linearizable")],
};

static CACHE: Form = part(
    "cache",
    "",
    &[key("ttl", "ttl =", Shape::Count, "seconds")],
    &[&["ttl"]],
    "how long an answer may be kept",
);

static ASSEMBLE: Form = stated(
    "assemble",
    "ASSEMBLE",
    &[
        key("name", "", Shape::Name, "a name for the context"),
        key("for", "FOR", Shape::Text, "what the context is for"),
        key("from", "FROM", Shape::List(&SOURCES), "where the grains come from; at most 8"),
        key("budget", "BUDGET", Shape::Budget(&BUDGET), "how much the context may take"),
        key(
            "priority",
            "PRIORITY",
            Shape::List(&LABELS),
            "labels of sources, most important first",
        ),
        key(
            "format",
            "FORMAT",
            Shape::WordOr(&ASSEMBLY_FORMATS, &TEMPLATE),
            "the format, or a template; sml without it",
        ),
        key("stream", "STREAM", Shape::FlagOr(&STREAM), "which events to send"),
        key("with", "WITH", Shape::List(&RECALL_OPTIONS), "options"),
    ],
    &[&["from"]],
    "put a context together within a budget",
);

#[rustfmt::skip]
static ASSEMBLY_FORMATS: [&str; 11] = [
    "markdown", "json", "yaml", "text", "sml", "triples", "toon", "structured", "readable", "compact", "data",
];
static TEMPLATE: Shape = Shape::Object(&TEMPLATE_KEY);
static TEMPLATE_KEY: Form = part(
    "template",
    "",
    &[key("template", "TEMPLATE", Shape::NameOr(&INLINE), "its name, or its sections")],
    &[&["template"]],
    "a template",
);
static INLINE: Shape = Shape::List(&List {
    most: None,
    open: "{",
    of: Shape::Choice(&SECTION),
    between: "",
    close: "}",
});

/// The sections of a template, in the order of the grammar.
static SECTION: Choice = Choice {
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

const fn section(name: &'static str, text: &'static str) -> Row {
    Row { name, text, bare: false, holds: Some(("{", Shape::Raw, "}")) }
}

/// Returns the key of a section.
pub(super) fn section_key(section: Section) -> &'static str {
    let row = SECTION.rows.iter().find(|row| row.text == section.keyword());
    row.map_or("", |row| row.name)
}

static DEFINE: Form = stated(
    "define_template",
    "DEFINE TEMPLATE",
    &[
        key("name", "", Shape::Name, "its name"),
        key("extends", "EXTENDS", Shape::Name, "a preset but data; readable without it"),
        key("sections", "", Shape::List(&SECTIONS), "what it says in place of the preset"),
    ],
    &[&["name", "sections"]],
    "keep a template for this session, or with Tier 1 for its namespace",
);
static SECTIONS: List = list(Shape::Choice(&SECTION), "");

static SOURCES: List = List {
    most: Some(limits::SOURCES),
    open: "",
    of: Shape::Object(&SOURCE),
    between: ",",
    close: "",
};
static LABELS: List = list(Shape::Name, ">");
static STREAM: Shape = Shape::List(&STREAMED);
static STREAMED: List =
    List { most: None, open: "{", of: Shape::Choice(&EVENT), between: ",", close: "}" };

static EVENT: Choice = Choice {
    what: "stream_option",
    unknown: ErrorKind::UnknownStreamOption,
    extensions: false,
    rows: &[
        bare("progress"),
        bare("budget"),
        bare("chunks"),
        bare("all"),
        Row {
            name: "chunk_size",
            text: "chunk_size",
            bare: false,
            holds: Some((
                "=",
                Shape::Within(*limits::CHUNK_TOKENS.start(), *limits::CHUNK_TOKENS.end()),
                "",
            )),
        },
    ],
};

static SOURCE: Form = part(
    "source",
    "",
    &[
        Key {
            tail: ":",
            ..key("label", "", Shape::Name, "its name in PRIORITY and in the answer")
        },
        Key { tail: ")", ..key("recall", "(", Shape::Statement(&[&RECALL]), "what it finds") },
        key("let", "", Shape::Variable, "the LET it takes its grains from"),
    ],
    &[&["recall"], &["let"]],
    "one source",
);

static BUDGET: Form = part(
    "budget",
    "",
    &[
        key("amount", "", Shape::Within(1, limits::TOKENS.1), "how many"),
        key("unit", "", Shape::Word(&["tokens", "grains"]), "of what"),
    ],
    &[&["amount", "unit"]],
    "how much",
);

pub(super) static OPERANDS: [&Form; 3] = [&RECALL, &COALESCE, &SET_OP];

static SET_OP: Form = stated(
    "set_op",
    "",
    &[
        Key { tail: ")", ..key("left", "(", Shape::Query(&OPERANDS), "one query") },
        key("op", "", Shape::Word(&["UNION", "INTERSECT", "EXCEPT"]), "how they are joined"),
        Key { tail: ")", ..key("right", "(", Shape::Query(&OPERANDS), "the other query") },
    ],
    &[&["left", "op", "right"]],
    "join what two queries find",
);

static EXISTS: Form = stated(
    "exists",
    "EXISTS",
    &[key("hash", "", Shape::Hash, "the grain")],
    &[&["hash"]],
    "whether a grain is there",
);

static HISTORY: Form = stated(
    "history",
    "HISTORY",
    &[
        key("hash", "", Shape::Hash, "one version of the grain"),
        key("diff", "DIFF", Shape::Hash, "the version to compare it with"),
        IN,
        SCOPE,
        key("subject", "WHERE subject =", Shape::Value, "the subject"),
        key("relation", "AND relation =", Shape::Value, "the relation"),
        key("as_of", "AS OF", Shape::Text, "what was known then"),
    ],
    &[&["hash"], &["subject", "relation"]],
    "the versions of a grain",
);

static EXPLAIN: Form = stated(
    "explain",
    "EXPLAIN",
    &[key("query", "", Shape::Statement(&EXPLAINED), "the statement")],
    &[&["query"]],
    "how a statement would run",
);

#[rustfmt::skip]
static DESCRIBE: Form = stated(
    "describe",
    "DESCRIBE",
    &[
        key("target", "", Shape::Word(&["grain_types", "fields", "capabilities", "server", "templates", "grammar"]), "of what"),
        key("grain_type", "", Shape::Singular, "the type whose fields are wanted"),
    ],
    &[&["target"]],
    "what the language and this host have",
);

static READS: [&Form; 5] = [&RECALL, &EXISTS, &HISTORY, &DESCRIBE, &COALESCE];
static ENTRIES: List = List {
    most: Some(limits::ENTRIES),
    open: "{",
    of: Shape::Object(&ENTRY),
    between: ",",
    close: "}",
};

static BATCH: Form = stated(
    "batch",
    "BATCH",
    &[key("queries", "", Shape::List(&ENTRIES), "at most 10")],
    &[&["queries"]],
    "several statements at once",
);

static ENTRY: Form = part(
    "entry",
    "",
    &[
        Key { tail: ":", ..key("label", "", Shape::Name, "the name of its answer") },
        key("query", "", Shape::Slot(&READS), "a statement that reads"),
    ],
    &[&["label", "query"]],
    "one statement of a batch",
);

static BRANCHES: List = List {
    most: Some(limits::BRANCHES),
    open: "(",
    of: Shape::Statement(&[&RECALL]),
    between: ",",
    close: ")",
};

static COALESCE: Form = stated(
    "coalesce",
    "COALESCE",
    &[key("branches", "", Shape::List(&BRANCHES), "2 to 5 recalls")],
    &[&["branches"]],
    "the first recall that finds something",
);

static SETS: List = list(Shape::Object(&SET), "");
const SET_KEY: Key = key("set", "", Shape::List(&SETS), "the fields to write");
const REASON: Key =
    key("reason", "REASON", Shape::Brief(limits::REASON_CHARS), "why; kept in the audit log");

static SET: Form = part(
    "set",
    "SET",
    &[key("field", "", Shape::Name, "the field"), key("value", "=", Shape::Value, "its value")],
    &[&["field", "value"]],
    "one field to write",
);

static ADD: Form = stated(
    "add",
    "ADD",
    &[key("grain_type", "", Shape::Addable, "belief, observation or goal"), SET_KEY, REASON],
    &[&["grain_type"]],
    "write a new grain",
);

static SUPERSEDE: Form = stated(
    "supersede",
    "SUPERSEDE",
    &[key("target", "", Shape::Hash, "the current belief"), SET_KEY, REASON],
    &[&["target"]],
    "write a new version of a belief",
);

static REVERT: Form = stated(
    "revert",
    "REVERT",
    &[key("target", "", Shape::Hash, "the version to go back behind"), REASON],
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
