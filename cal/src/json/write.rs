//! Writing of a statement as JSON, with the keys of the table, in its order.
//!
//! The compiler checks that every part of the tree is written; round-trip tests check that the reader reads
//! it back.

use std::borrow::Cow;
use std::fmt::{Display, Formatter, Result, Write};

use super::table::section_key;
use crate::ast::{
    Add, Arg, Asked, Assemble, Between, Body, Condition, Consistency, Count, Definition, Describe,
    Direction, DiversityOf, Entry, Extractor, FormatClause, HashArg, History, InSet, Let, Literal,
    Number, Project, ProjectField, Recall, Request, Revert, SectionText, SetClause, SetOp, Source,
    SourceBody, Stage, Statement, StreamOption, Supersede, Test, Thread, Unit, WithOption, Within,
};
use crate::span::Spanned;

impl Statement<'_> {
    /// Returns the statement in the JSON form, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let version = ("cal_version", Json::raw(1));
        let keys = match &self.0 {
            Asked::Statement(request) => query(request, &mut Vec::new()),
            Asked::Define(definition) => definition_of(&definition.node),
        };
        Json::Object(std::iter::once(version).chain(keys).collect()).to_string()
    }
}

/// JSON that keeps the order of its keys and the spelling of its numbers.
enum Json<'a> {
    Raw(String),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    Object(Keys<'a>),
    /// `{"name": ...}` with a name chosen by the query.
    Named(&'a str, Box<Json<'a>>),
}

type Keys<'a> = Vec<(&'static str, Json<'a>)>;

/// The LETs in scope: the names that `$name` in an IN may refer to.
type Scope<'a> = Vec<&'a str>;

impl<'a> Json<'a> {
    fn raw(value: impl Display) -> Self {
        Self::Raw(value.to_string())
    }

    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    fn one(key: &'static str, value: Self) -> Self {
        Self::Object(vec![(key, value)])
    }

    fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self::List(items.into_iter().collect())
    }
}

impl Display for Json<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Raw(text) => f.write_str(text),
            Self::Text(text) => quoted(f, text),
            Self::List(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { "," })?;
                    item.fmt(f)?;
                }
                f.write_char(']')
            }
            Self::Object(keys) => {
                for (at, (key, value)) in keys.iter().enumerate() {
                    f.write_str(if at == 0 { "{" } else { "," })?;
                    write!(f, "\"{key}\":{value}")?;
                }
                f.write_char('}')
            }
            Self::Named(name, value) => write!(f, "{{\"{name}\":{value}}}"),
        }
    }
}

fn quoted(f: &mut Formatter<'_>, text: &str) -> Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| std::fmt::Error)?)
}

fn query<'a>(request: &'a Request<'_>, scope: &mut Scope<'a>) -> Keys<'a> {
    let mark = scope.len();
    let mut keys = lets(&request.lets, scope);
    keys.extend(statement(&request.body.node, scope));
    scope.truncate(mark);
    keys
}

/// Writes the LETs of a query and adds them to the scope.
fn lets<'a>(lets: &'a [Let<'_>], scope: &mut Scope<'a>) -> Keys<'a> {
    scope.extend(lets.iter().map(|binding| binding.name.node));
    if lets.is_empty() {
        return Keys::new();
    }
    let lets: Vec<_> = lets.iter().map(|binding| binding_of(binding, scope)).collect();
    vec![("let", Json::List(lets))]
}

fn definition_of<'a>(definition: &'a Definition<'_>) -> Keys<'a> {
    let mut keys = lets(&definition.lets, &mut Vec::new());
    keys.extend([named("define_template"), ("name", Json::text(definition.name.node))]);
    keys.extend(definition.extends.as_ref().map(|preset| ("extends", Json::text(preset.node))));
    keys.push(("sections", sections(&definition.sections)));
    keys
}

fn sections<'a>(sections: &'a [SectionText<'_>]) -> Json<'a> {
    Json::list(sections.iter().map(|SectionText { section, text }| {
        Json::one(section_key(section.node), Json::text(text.node.as_ref()))
    }))
}

fn format<'a>(format: &'a FormatClause<'_>) -> Json<'a> {
    match format {
        FormatClause::Name(name) => Json::text(name.name()),
        FormatClause::Template(name) => Json::one("template", Json::text(name.node)),
        FormatClause::Inline(parts) => Json::one("template", sections(parts)),
    }
}

fn binding_of<'a>(binding: &'a Let<'_>, scope: &mut Scope<'a>) -> Json<'a> {
    let mut keys = vec![
        ("name", Json::text(binding.name.node)),
        ("recall", Json::Object(recall(&binding.recall, scope))),
    ];
    keys.extend(binding.extract.map(|extract| ("extract", Json::text(extracted(extract)))));
    Json::Object(keys)
}

fn statement<'a>(body: &'a Body<'_>, scope: &mut Scope<'a>) -> Keys<'a> {
    match body {
        Body::Recall(body) => recall(body, scope),
        Body::Assemble(body) => assemble(body, scope),
        Body::Set(set) => set_operation(set, scope),
        Body::Exists(target) => vec![named("exists"), ("hash", hash(&target.node))],
        Body::History(body) => history(body),
        Body::Explain(body) => {
            vec![named("explain"), ("query", Json::Object(statement(&body.node, scope)))]
        }
        Body::Describe(target) => describe(target),
        Body::Batch(entries) => {
            let entries = entries.iter().map(|entry| entry_of(entry, scope));
            vec![named("batch"), ("queries", Json::list(entries))]
        }
        Body::Coalesce(branches) => {
            let branches = branches.iter().map(|branch| Json::Object(recall(&branch.node, scope)));
            vec![named("coalesce"), ("branches", Json::list(branches))]
        }
        Body::Add(body) => add(body),
        Body::Supersede(body) => supersede(body),
        Body::Revert(body) => revert(body),
    }
}

fn named(statement: &'static str) -> (&'static str, Json<'static>) {
    ("statement", Json::text(statement))
}

fn recall<'a>(recall: &'a Recall<'_>, scope: &mut Scope<'a>) -> Keys<'a> {
    let mut keys = vec![named("recall")];
    let flag = || Json::raw(true);
    keys.extend(recall.my.as_ref().map(|_| ("my", flag())));
    keys.extend(
        recall.grain_type.as_ref().map(|name| ("grain_type", Json::text(name.node.plural))),
    );
    keys.extend(recall.within.as_ref().map(|clause| within(&clause.node)));
    keys.extend(recall.about.as_ref().map(|clause| ("about", arg(&clause.node))));
    keys.extend(recall.like.as_ref().map(|clause| ("like", arg(&clause.node))));
    keys.extend(recall.since.as_ref().map(|clause| ("since", arg(&clause.node))));
    keys.extend(recall.between.as_ref().map(|clause| ("between", between(&clause.node))));
    keys.extend(recall.thread.as_ref().map(|clause| match &clause.node {
        Thread::Session(session) => ("thread", arg(session)),
        Thread::From(message) => ("thread_from", hash(message)),
    }));
    keys.extend(recall.conditions.as_ref().map(|clause| {
        let conditions = clause.node.iter().map(|given| condition(given, scope));
        ("where", Json::list(conditions))
    }));
    keys.extend(recall.options.as_ref().map(|clause| ("with", options(&clause.node))));
    if !recall.stages.is_empty() {
        let stages = recall.stages.iter().map(|given| stage(&given.node));
        keys.push(("pipeline", Json::list(stages)));
    }
    keys.extend(recall.recent.as_ref().map(|clause| ("recent", arg(&clause.node))));
    keys.extend(recall.contradictions.as_ref().map(|_| ("contradictions", flag())));
    keys.extend(recall.format.as_ref().map(|clause| ("as", Json::text(clause.node.name()))));
    keys
}

fn within<'a>(within: &'a Within<'_>) -> (&'static str, Json<'a>) {
    (if within.scope { "scope" } else { "in" }, arg(&within.namespace))
}

fn between<'a>(between: &'a Between<'_>) -> Json<'a> {
    Json::List(vec![literal(&between.from.node), literal(&between.to.node)])
}

fn condition<'a>(condition: &'a Condition<'_>, scope: &mut Scope<'a>) -> Json<'a> {
    let (op, value) = match &condition.test.node {
        Test::Compare(comparator, value) => (comparator.text(), literal(&value.node)),
        Test::In(set) => ("IN", in_set(set, scope)),
        Test::Between(bounds) => ("BETWEEN", between(bounds)),
        Test::Include(value) => ("INCLUDE", literal(&value.node)),
        Test::Exclude(value) => ("EXCLUDE", literal(&value.node)),
        Test::Is(category) => ("IS", Json::text(category.keyword.text())),
    };
    Json::Object(vec![
        ("field", Json::text(condition.field.node.to_string())),
        ("op", Json::text(op)),
        ("value", value),
    ])
}

fn in_set<'a>(set: &'a InSet<'_>, scope: &mut Scope<'a>) -> Json<'a> {
    match set {
        InSet::Values(values) => match values.as_slice() {
            [Spanned { node: Literal::Param(name), .. }] if scope.contains(name) => {
                Json::one("let", Json::text(*name))
            }
            values => literals(values),
        },
        InSet::Recall(inner, extractor) => Json::Object(vec![
            ("recall", Json::Object(recall(inner, scope))),
            ("extract", Json::text(extracted(*extractor))),
        ]),
    }
}

fn stage<'a>(stage: &'a Stage<'_>) -> Json<'a> {
    let flag = || Json::raw(true);
    match stage {
        Stage::Select(fields) => {
            Json::one("select", Json::list(fields.iter().map(|field| Json::text(field.node.name))))
        }
        Stage::OrderBy { field, direction } => {
            let mut keys = vec![("field", Json::text(field.node.name))];
            keys.extend(direction.map(|direction| match direction {
                Direction::Ascending => ("dir", Json::text("asc")),
                Direction::Descending => ("dir", Json::text("desc")),
            }));
            Json::one("order_by", Json::Object(keys))
        }
        Stage::Limit(count) => Json::one("limit", arg(count)),
        Stage::Offset(count) => Json::one("offset", arg(count)),
        Stage::Count => Json::one("count", flag()),
        Stage::First => Json::one("first", flag()),
        Stage::Extract(extractor) => Json::one(extracted(*extractor), flag()),
        Stage::GroupBy(field) => Json::one("group_by", Json::text(field.node.name)),
        Stage::Project(given) => Json::one("project", project(given)),
    }
}

fn project<'a>(project: &'a Project<'_>) -> Json<'a> {
    let fields = |given: &'a [Spanned<ProjectField<'_>>]| {
        Json::list(given.iter().map(|field| Json::text(field.node.to_string())))
    };
    let parts = [("content", &project.content), ("attr", &project.attr)];
    let parts = parts
        .into_iter()
        .filter_map(|(name, given)| given.as_deref().map(|given| (name, fields(given))));
    Json::Object(parts.collect())
}

fn extracted(extractor: Extractor) -> &'static str {
    match extractor {
        Extractor::Subjects => "subjects",
        Extractor::Objects => "objects",
        Extractor::Hashes => "hashes",
    }
}

fn options<'a>(options: &'a [Spanned<WithOption<'_>>]) -> Json<'a> {
    Json::list(options.iter().map(|given| option(&given.node)))
}

fn option<'a>(option: &'a WithOption<'_>) -> Json<'a> {
    match option {
        WithOption::Superseded => Json::text("superseded"),
        WithOption::ScoreBreakdown => Json::text("score_breakdown"),
        WithOption::Explanation => Json::text("explanation"),
        WithOption::Provenance => Json::text("provenance"),
        WithOption::ContradictionDetection => Json::text("contradiction_detection"),
        WithOption::Summarize => Json::text("summarize"),
        WithOption::IsoTimestamps => Json::text("iso_timestamps"),
        WithOption::ProgressiveDisclosure(None) => Json::text("progressive_disclosure"),
        WithOption::ProgressiveDisclosure(Some(level)) => {
            Json::one("progressive_disclosure", Json::text(level.name()))
        }
        WithOption::Dedup(field) => Json::one("dedup", Json::text(field.node.name)),
        WithOption::Diversity(kind) => Json::one("diversity", diversity(kind)),
        WithOption::Consistency(demand) => Json::one("consistency", consistency(demand)),
        WithOption::Cache(seconds) => Json::one("cache", Json::Object(vec![("ttl", arg(seconds))])),
        WithOption::Locale(locale) => Json::one("locale", arg(locale)),
        WithOption::Extension(name, values) if values.is_empty() => Json::text(*name),
        WithOption::Extension(name, values) => Json::Named(name, Box::new(literals(values))),
    }
}

fn diversity<'a>(kind: &'a DiversityOf<'_>) -> Json<'a> {
    match kind {
        DiversityOf::Mmr(None) => Json::text("mmr"),
        DiversityOf::Mmr(Some(lambda)) => Json::one("mmr", arg(&lambda.node)),
        DiversityOf::Threshold(most) => Json::one("threshold", arg(&most.node)),
    }
}

fn consistency<'a>(demand: &'a Consistency<'_>) -> Json<'a> {
    match demand {
        Consistency::Eventual => Json::text("eventual"),
        Consistency::Linearizable => Json::text("linearizable"),
        Consistency::Bounded(seconds) => Json::one("bounded", arg(&seconds.node)),
    }
}

fn assemble<'a>(assemble: &'a Assemble<'_>, scope: &mut Scope<'a>) -> Keys<'a> {
    let mut keys = vec![named("assemble")];
    keys.extend(assemble.name.as_ref().map(|name| ("name", Json::text(name.node))));
    keys.extend(assemble.intent.as_ref().map(|intent| ("for", arg(&intent.node))));
    let sources = assemble.sources.iter().map(|given| source(&given.node, scope));
    keys.push(("from", Json::list(sources)));
    keys.extend(assemble.budget.as_ref().map(|budget| {
        let unit = match budget.node.unit {
            Unit::Tokens => "tokens",
            Unit::Grains => "grains",
        };
        let amount = ("amount", arg(&budget.node.amount.node));
        ("budget", Json::Object(vec![amount, ("unit", Json::text(unit))]))
    }));
    keys.extend(assemble.priority.as_ref().map(|clause| {
        ("priority", Json::list(clause.node.iter().map(|label| Json::text(label.node))))
    }));
    keys.extend(assemble.format.as_ref().map(|clause| ("format", format(&clause.node))));
    keys.extend(assemble.stream.as_ref().map(|clause| ("stream", streamed(&clause.node))));
    keys.extend(assemble.options.as_ref().map(|clause| ("with", options(&clause.node))));
    keys
}

fn streamed<'a>(options: &'a [Spanned<StreamOption<'_>>]) -> Json<'a> {
    if options.is_empty() {
        return Json::raw(true);
    }
    Json::list(options.iter().map(|option| match &option.node {
        StreamOption::ChunkSize(size) => Json::one("chunk_size", arg(size)),
        named => Json::text(named.name()),
    }))
}

fn source<'a>(source: &'a Source<'_>, scope: &mut Scope<'a>) -> Json<'a> {
    let mut keys = Keys::new();
    keys.extend(source.label.as_ref().map(|label| ("label", Json::text(label.node))));
    keys.push(match &source.body {
        SourceBody::Recall(inner) => ("recall", Json::Object(recall(inner, scope))),
        SourceBody::Let(name) => ("let", Json::text(name.node)),
    });
    Json::Object(keys)
}

fn set_operation<'a>(set: &'a SetOp<'_>, scope: &mut Scope<'a>) -> Keys<'a> {
    vec![
        named("set_op"),
        ("left", Json::Object(query(&set.left, scope))),
        ("op", Json::text(set.operator.text())),
        ("right", Json::Object(query(&set.right, scope))),
    ]
}

fn history<'a>(history: &'a History<'_>) -> Keys<'a> {
    let mut keys = vec![named("history")];
    match history {
        History::Of { target, diff } => {
            keys.push(("hash", hash(&target.node)));
            keys.extend(diff.as_ref().map(|diff| ("diff", hash(&diff.node))));
        }
        History::Triple { within: space, subject, relation, as_of } => {
            keys.extend(space.as_ref().map(|clause| within(&clause.node)));
            keys.push(("subject", literal(&subject.node)));
            keys.push(("relation", literal(&relation.node)));
            keys.extend(as_of.as_ref().map(|as_of| ("as_of", arg(&as_of.node))));
        }
    }
    keys
}

fn describe(target: &Describe) -> Keys<'static> {
    let (name, grain_type) = match target {
        Describe::GrainTypes => ("grain_types", None),
        Describe::Fields(grain_type) => ("fields", grain_type.as_ref()),
        Describe::Capabilities => ("capabilities", None),
        Describe::Server => ("server", None),
        Describe::Templates => ("templates", None),
        Describe::Grammar => ("grammar", None),
    };
    let mut keys = vec![named("describe"), ("target", Json::text(name))];
    keys.extend(grain_type.map(|name| ("grain_type", Json::text(name.node.singular))));
    keys
}

fn entry_of<'a>(entry: &'a Entry<'_>, scope: &mut Scope<'a>) -> Json<'a> {
    let body = Json::Object(statement(&entry.body.node, scope));
    Json::Object(vec![("label", Json::text(entry.label.node)), ("query", body)])
}

fn add<'a>(add: &'a Add<'_>) -> Keys<'a> {
    vec![
        named("add"),
        ("grain_type", Json::text(add.grain_type.node.singular)),
        ("set", sets(&add.sets)),
        ("reason", arg(&add.reason.node)),
    ]
}

fn supersede<'a>(supersede: &'a Supersede<'_>) -> Keys<'a> {
    vec![
        named("supersede"),
        ("target", hash(&supersede.target.node)),
        ("set", sets(&supersede.sets)),
        ("reason", arg(&supersede.reason.node)),
    ]
}

fn revert<'a>(revert: &'a Revert<'_>) -> Keys<'a> {
    vec![
        named("revert"),
        ("target", hash(&revert.target.node)),
        ("reason", arg(&revert.reason.node)),
    ]
}

fn sets<'a>(sets: &'a [SetClause<'_>]) -> Json<'a> {
    Json::list(sets.iter().map(|set| {
        let field = ("field", Json::text(set.name.node));
        Json::Object(vec![field, ("value", literal(&set.value.node))])
    }))
}

fn literals<'a>(items: &'a [Spanned<Literal<'_>>]) -> Json<'a> {
    Json::list(items.iter().map(|item| literal(&item.node)))
}

fn literal<'a>(value: &'a Literal<'_>) -> Json<'a> {
    match value {
        Literal::Text(text) => Json::text(&**text),
        Literal::Number(given) => number(given),
        Literal::Flag(flag) => Json::raw(flag),
        Literal::Hash(digits) => Json::one("hash", Json::text(format!("sha256:{digits}"))),
        Literal::Param(name) => param(name),
        Literal::Array(items) => literals(items),
    }
}

fn number<'a>(number: &'a Number<'_>) -> Json<'a> {
    Json::raw(&number.text)
}

fn param(name: &str) -> Json<'_> {
    Json::one("param", Json::text(name))
}

fn hash<'a>(target: &'a HashArg<'_>) -> Json<'a> {
    match target {
        Arg::Given(digits) => Json::text(format!("sha256:{digits}")),
        Arg::Param(name) => param(name),
    }
}

/// Writes a text, count or number argument.
fn arg<'a, T: Plain>(value: &'a Arg<'_, T>) -> Json<'a> {
    match value {
        Arg::Given(given) => given.json(),
        Arg::Param(name) => param(name),
    }
}

/// A value that an argument may hold.
trait Plain {
    fn json(&self) -> Json<'_>;
}

impl Plain for Cow<'_, str> {
    fn json(&self) -> Json<'_> {
        Json::text(&**self)
    }
}

impl Plain for Count<'_> {
    fn json(&self) -> Json<'_> {
        Json::raw(self)
    }
}

impl Plain for Number<'_> {
    fn json(&self) -> Json<'_> {
        number(self)
    }
}
