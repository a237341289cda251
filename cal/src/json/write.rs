//! Writing of a statement as JSON, with the keys of the table, in its order.
//!
//! The compiler checks that every part of the tree is written; round-trip tests check that the reader reads
//! it back.

use std::borrow::Cow;
use std::fmt::{Display, Formatter, Result, Write};

use super::table::section_key;
use crate::ast::{
    Add, Arg, Assemble, AssembleSource, BatchEntry, BetweenClause, BudgetUnit, Condition,
    ConditionTest, ConsistencyLevel, Describe, DiversityOption, Extractor, FormatClause, HashArg,
    History, InSet, LetBinding, Literal, NamespaceClause, NumberLiteral, ParsedQuery,
    PipelineStage, ProjectClause, ProjectField, Recall, Revert, SectionText, SetClause, SetOp,
    SortDirection, SourceOrigin, Statement, StatementBody, StatementWithLets, StreamOption,
    Supersede, TemplateDefinition, ThreadClause, WholeNumber, WithOption,
};
use crate::span::Spanned;

impl Statement<'_> {
    /// Returns the statement in the JSON form, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let version = ("cal_version", JsonOutput::raw(1));
        let keys = match &self.0 {
            ParsedQuery::Statement(request) => query(request, &mut Vec::new()),
            ParsedQuery::Define(definition) => definition_of(&definition.node),
        };
        JsonOutput::Object(std::iter::once(version).chain(keys).collect()).to_string()
    }
}

/// JSON that keeps the order of its keys and the spelling of its numbers.
enum JsonOutput<'a> {
    Raw(String),
    Text(Cow<'a, str>),
    List(Vec<JsonOutput<'a>>),
    Object(JsonKeys<'a>),
    /// `{"name": ...}` with a name chosen by the query.
    Named(&'a str, Box<JsonOutput<'a>>),
}

type JsonKeys<'a> = Vec<(&'static str, JsonOutput<'a>)>;

/// The LETs in scope: the names that `$name` in an IN may refer to.
type LetNames<'a> = Vec<&'a str>;

impl<'a> JsonOutput<'a> {
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

impl Display for JsonOutput<'_> {
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

fn query<'a>(request: &'a StatementWithLets<'_>, scope: &mut LetNames<'a>) -> JsonKeys<'a> {
    let mark = scope.len();
    let mut keys = lets(&request.lets, scope);
    keys.extend(statement(&request.body.node, scope));
    scope.truncate(mark);
    keys
}

/// Writes the LETs of a query and adds them to the scope.
fn lets<'a>(lets: &'a [LetBinding<'_>], scope: &mut LetNames<'a>) -> JsonKeys<'a> {
    scope.extend(lets.iter().map(|binding| binding.name.node));
    if lets.is_empty() {
        return JsonKeys::new();
    }
    let lets: Vec<_> = lets.iter().map(|binding| binding_of(binding, scope)).collect();
    vec![("let", JsonOutput::List(lets))]
}

fn definition_of<'a>(definition: &'a TemplateDefinition<'_>) -> JsonKeys<'a> {
    let mut keys = lets(&definition.lets, &mut Vec::new());
    keys.extend([named("define_template"), ("name", JsonOutput::text(definition.name.node))]);
    keys.extend(
        definition.extends.as_ref().map(|preset| ("extends", JsonOutput::text(preset.node))),
    );
    keys.push(("sections", sections(&definition.sections)));
    keys
}

fn sections<'a>(sections: &'a [SectionText<'_>]) -> JsonOutput<'a> {
    JsonOutput::list(sections.iter().map(|SectionText { section, text }| {
        JsonOutput::one(section_key(section.node), JsonOutput::text(text.node.as_ref()))
    }))
}

fn format<'a>(format: &'a FormatClause<'_>) -> JsonOutput<'a> {
    match format {
        FormatClause::Name(name) => JsonOutput::text(name.name()),
        FormatClause::Template(name) => JsonOutput::one("template", JsonOutput::text(name.node)),
        FormatClause::Inline(parts) => JsonOutput::one("template", sections(parts)),
    }
}

fn binding_of<'a>(binding: &'a LetBinding<'_>, scope: &mut LetNames<'a>) -> JsonOutput<'a> {
    let mut keys = vec![
        ("name", JsonOutput::text(binding.name.node)),
        ("recall", JsonOutput::Object(recall(&binding.recall, scope))),
    ];
    keys.extend(binding.extract.map(|extract| ("extract", JsonOutput::text(extracted(extract)))));
    JsonOutput::Object(keys)
}

fn statement<'a>(body: &'a StatementBody<'_>, scope: &mut LetNames<'a>) -> JsonKeys<'a> {
    match body {
        StatementBody::Recall(body) => recall(body, scope),
        StatementBody::Assemble(body) => assemble(body, scope),
        StatementBody::Set(set) => set_operation(set, scope),
        StatementBody::Exists(target) => vec![named("exists"), ("hash", hash(&target.node))],
        StatementBody::History(body) => history(body),
        StatementBody::Explain(body) => {
            vec![named("explain"), ("query", JsonOutput::Object(statement(&body.node, scope)))]
        }
        StatementBody::Describe(target) => describe(target),
        StatementBody::Batch(entries) => {
            let entries = entries.iter().map(|entry| entry_of(entry, scope));
            vec![named("batch"), ("queries", JsonOutput::list(entries))]
        }
        StatementBody::Coalesce(branches) => {
            let branches =
                branches.iter().map(|branch| JsonOutput::Object(recall(&branch.node, scope)));
            vec![named("coalesce"), ("branches", JsonOutput::list(branches))]
        }
        StatementBody::Add(body) => add(body),
        StatementBody::Supersede(body) => supersede(body),
        StatementBody::Revert(body) => revert(body),
    }
}

fn named(statement: &'static str) -> (&'static str, JsonOutput<'static>) {
    ("statement", JsonOutput::text(statement))
}

fn recall<'a>(recall: &'a Recall<'_>, scope: &mut LetNames<'a>) -> JsonKeys<'a> {
    let mut keys = vec![named("recall")];
    let flag = || JsonOutput::raw(true);
    keys.extend(recall.my.as_ref().map(|_| ("my", flag())));
    keys.extend(
        recall.grain_type.as_ref().map(|name| ("grain_type", JsonOutput::text(name.node.plural))),
    );
    keys.extend(recall.within.as_ref().map(|clause| within(&clause.node)));
    keys.extend(recall.about.as_ref().map(|clause| ("about", arg(&clause.node))));
    keys.extend(recall.like.as_ref().map(|clause| ("like", arg(&clause.node))));
    keys.extend(recall.since.as_ref().map(|clause| ("since", arg(&clause.node))));
    keys.extend(recall.between.as_ref().map(|clause| ("between", between(&clause.node))));
    keys.extend(recall.thread.as_ref().map(|clause| match &clause.node {
        ThreadClause::Session(session) => ("thread", arg(session)),
        ThreadClause::From(message) => ("thread_from", hash(message)),
    }));
    keys.extend(recall.conditions.as_ref().map(|clause| {
        let conditions = clause.node.iter().map(|given| condition(given, scope));
        ("where", JsonOutput::list(conditions))
    }));
    keys.extend(recall.options.as_ref().map(|clause| ("with", options(&clause.node))));
    if !recall.stages.is_empty() {
        let stages = recall.stages.iter().map(|given| stage(&given.node));
        keys.push(("pipeline", JsonOutput::list(stages)));
    }
    keys.extend(recall.recent.as_ref().map(|clause| ("recent", arg(&clause.node))));
    keys.extend(recall.contradictions.as_ref().map(|_| ("contradictions", flag())));
    keys.extend(recall.format.as_ref().map(|clause| ("as", JsonOutput::text(clause.node.name()))));
    keys
}

fn within<'a>(within: &'a NamespaceClause<'_>) -> (&'static str, JsonOutput<'a>) {
    (if within.include_descendants { "scope" } else { "in" }, arg(&within.namespace))
}

fn between<'a>(between: &'a BetweenClause<'_>) -> JsonOutput<'a> {
    JsonOutput::List(vec![literal(&between.from.node), literal(&between.to.node)])
}

fn condition<'a>(condition: &'a Condition<'_>, scope: &mut LetNames<'a>) -> JsonOutput<'a> {
    let (op, value) = match &condition.test.node {
        ConditionTest::Compare(comparator, value) => (comparator.text(), literal(&value.node)),
        ConditionTest::In(set) => ("IN", in_set(set, scope)),
        ConditionTest::Between(bounds) => ("BETWEEN", between(bounds)),
        ConditionTest::Include(value) => ("INCLUDE", literal(&value.node)),
        ConditionTest::Exclude(value) => ("EXCLUDE", literal(&value.node)),
        ConditionTest::Is(category) => ("IS", JsonOutput::text(category.keyword.text())),
    };
    JsonOutput::Object(vec![
        ("field", JsonOutput::text(condition.field.node.to_string())),
        ("op", JsonOutput::text(op)),
        ("value", value),
    ])
}

fn in_set<'a>(set: &'a InSet<'_>, scope: &mut LetNames<'a>) -> JsonOutput<'a> {
    match set {
        InSet::Values(values) => match values.as_slice() {
            [Spanned { node: Literal::Param(name), .. }] if scope.contains(name) => {
                JsonOutput::one("let", JsonOutput::text(*name))
            }
            values => literals(values),
        },
        InSet::Recall(inner, extractor) => JsonOutput::Object(vec![
            ("recall", JsonOutput::Object(recall(inner, scope))),
            ("extract", JsonOutput::text(extracted(*extractor))),
        ]),
    }
}

fn stage<'a>(stage: &'a PipelineStage<'_>) -> JsonOutput<'a> {
    let flag = || JsonOutput::raw(true);
    match stage {
        PipelineStage::Select(fields) => JsonOutput::one(
            "select",
            JsonOutput::list(fields.iter().map(|field| JsonOutput::text(field.node.name))),
        ),
        PipelineStage::OrderBy { field, direction } => {
            let mut keys = vec![("field", JsonOutput::text(field.node.name))];
            keys.extend(direction.map(|direction| match direction {
                SortDirection::Ascending => ("dir", JsonOutput::text("asc")),
                SortDirection::Descending => ("dir", JsonOutput::text("desc")),
            }));
            JsonOutput::one("order_by", JsonOutput::Object(keys))
        }
        PipelineStage::Limit(count) => JsonOutput::one("limit", arg(count)),
        PipelineStage::Offset(count) => JsonOutput::one("offset", arg(count)),
        PipelineStage::Count => JsonOutput::one("count", flag()),
        PipelineStage::First => JsonOutput::one("first", flag()),
        PipelineStage::Extract(extractor) => JsonOutput::one(extracted(*extractor), flag()),
        PipelineStage::GroupBy(field) => {
            JsonOutput::one("group_by", JsonOutput::text(field.node.name))
        }
        PipelineStage::Project(given) => JsonOutput::one("project", project(given)),
    }
}

fn project<'a>(project: &'a ProjectClause<'_>) -> JsonOutput<'a> {
    let fields = |given: &'a [Spanned<ProjectField<'_>>]| {
        JsonOutput::list(given.iter().map(|field| JsonOutput::text(field.node.to_string())))
    };
    let parts = [("content", &project.content), ("attr", &project.attr)];
    let parts = parts
        .into_iter()
        .filter_map(|(name, given)| given.as_deref().map(|given| (name, fields(given))));
    JsonOutput::Object(parts.collect())
}

fn extracted(extractor: Extractor) -> &'static str {
    match extractor {
        Extractor::Subjects => "subjects",
        Extractor::Objects => "objects",
        Extractor::Hashes => "hashes",
    }
}

fn options<'a>(options: &'a [Spanned<WithOption<'_>>]) -> JsonOutput<'a> {
    JsonOutput::list(options.iter().map(|given| option(&given.node)))
}

fn option<'a>(option: &'a WithOption<'_>) -> JsonOutput<'a> {
    match option {
        WithOption::Superseded => JsonOutput::text("superseded"),
        WithOption::ScoreBreakdown => JsonOutput::text("score_breakdown"),
        WithOption::Explanation => JsonOutput::text("explanation"),
        WithOption::Total => JsonOutput::text("total"),
        WithOption::Provenance => JsonOutput::text("provenance"),
        WithOption::ContradictionDetection => JsonOutput::text("contradiction_detection"),
        WithOption::Summarize => JsonOutput::text("summarize"),
        WithOption::IsoTimestamps => JsonOutput::text("iso_timestamps"),
        WithOption::ProgressiveDisclosure(None) => JsonOutput::text("progressive_disclosure"),
        WithOption::ProgressiveDisclosure(Some(level)) => {
            JsonOutput::one("progressive_disclosure", JsonOutput::text(level.name()))
        }
        WithOption::Dedup(field) => JsonOutput::one("dedup", JsonOutput::text(field.node.name)),
        WithOption::Diversity(kind) => JsonOutput::one("diversity", diversity(kind)),
        WithOption::Consistency(demand) => JsonOutput::one("consistency", consistency(demand)),
        WithOption::Cache(seconds) => {
            JsonOutput::one("cache", JsonOutput::Object(vec![("ttl", arg(seconds))]))
        }
        WithOption::Locale(locale) => JsonOutput::one("locale", arg(locale)),
        WithOption::Extension(name, values) if values.is_empty() => JsonOutput::text(*name),
        WithOption::Extension(name, values) => JsonOutput::Named(name, Box::new(literals(values))),
    }
}

fn diversity<'a>(kind: &'a DiversityOption<'_>) -> JsonOutput<'a> {
    match kind {
        DiversityOption::Mmr(None) => JsonOutput::text("mmr"),
        DiversityOption::Mmr(Some(lambda)) => JsonOutput::one("mmr", arg(&lambda.node)),
        DiversityOption::Threshold(most) => JsonOutput::one("threshold", arg(&most.node)),
    }
}

fn consistency<'a>(demand: &'a ConsistencyLevel<'_>) -> JsonOutput<'a> {
    match demand {
        ConsistencyLevel::Eventual => JsonOutput::text("eventual"),
        ConsistencyLevel::Linearizable => JsonOutput::text("linearizable"),
        ConsistencyLevel::Bounded(seconds) => JsonOutput::one("bounded", arg(&seconds.node)),
    }
}

fn assemble<'a>(assemble: &'a Assemble<'_>, scope: &mut LetNames<'a>) -> JsonKeys<'a> {
    let mut keys = vec![named("assemble")];
    keys.extend(assemble.name.as_ref().map(|name| ("name", JsonOutput::text(name.node))));
    keys.extend(assemble.intent.as_ref().map(|intent| ("for", arg(&intent.node))));
    let sources = assemble.sources.iter().map(|given| source(&given.node, scope));
    keys.push(("from", JsonOutput::list(sources)));
    keys.extend(assemble.budget.as_ref().map(|budget| {
        let unit = match budget.node.unit {
            BudgetUnit::Tokens => "tokens",
            BudgetUnit::Grains => "grains",
        };
        let amount = ("amount", arg(&budget.node.amount.node));
        ("budget", JsonOutput::Object(vec![amount, ("unit", JsonOutput::text(unit))]))
    }));
    keys.extend(assemble.priority.as_ref().map(|clause| {
        ("priority", JsonOutput::list(clause.node.iter().map(|label| JsonOutput::text(label.node))))
    }));
    keys.extend(assemble.format.as_ref().map(|clause| ("format", format(&clause.node))));
    keys.extend(assemble.stream.as_ref().map(|clause| ("stream", streamed(&clause.node))));
    keys.extend(assemble.options.as_ref().map(|clause| ("with", options(&clause.node))));
    keys
}

fn streamed<'a>(options: &'a [Spanned<StreamOption<'_>>]) -> JsonOutput<'a> {
    if options.is_empty() {
        return JsonOutput::raw(true);
    }
    JsonOutput::list(options.iter().map(|option| match &option.node {
        StreamOption::ChunkSize(size) => JsonOutput::one("chunk_size", arg(size)),
        named => JsonOutput::text(named.name()),
    }))
}

fn source<'a>(source: &'a AssembleSource<'_>, scope: &mut LetNames<'a>) -> JsonOutput<'a> {
    let mut keys = JsonKeys::new();
    keys.extend(source.label.as_ref().map(|label| ("label", JsonOutput::text(label.node))));
    keys.push(match &source.body {
        SourceOrigin::Recall(inner) => ("recall", JsonOutput::Object(recall(inner, scope))),
        SourceOrigin::Let(name) => ("let", JsonOutput::text(name.node)),
    });
    JsonOutput::Object(keys)
}

fn set_operation<'a>(set: &'a SetOp<'_>, scope: &mut LetNames<'a>) -> JsonKeys<'a> {
    vec![
        named("set_op"),
        ("left", JsonOutput::Object(query(&set.left, scope))),
        ("op", JsonOutput::text(set.operator.text())),
        ("right", JsonOutput::Object(query(&set.right, scope))),
    ]
}

fn history<'a>(history: &'a History<'_>) -> JsonKeys<'a> {
    let mut keys = vec![named("history")];
    match history {
        History::ByHash { target, diff } => {
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

fn describe(target: &Describe) -> JsonKeys<'static> {
    let (name, grain_type) = match target {
        Describe::GrainTypes => ("grain_types", None),
        Describe::Fields(grain_type) => ("fields", grain_type.as_ref()),
        Describe::Capabilities => ("capabilities", None),
        Describe::Server => ("server", None),
        Describe::Templates => ("templates", None),
        Describe::Grammar => ("grammar", None),
    };
    let mut keys = vec![named("describe"), ("target", JsonOutput::text(name))];
    keys.extend(grain_type.map(|name| ("grain_type", JsonOutput::text(name.node.singular))));
    keys
}

fn entry_of<'a>(entry: &'a BatchEntry<'_>, scope: &mut LetNames<'a>) -> JsonOutput<'a> {
    let body = JsonOutput::Object(statement(&entry.body.node, scope));
    JsonOutput::Object(vec![("label", JsonOutput::text(entry.label.node)), ("query", body)])
}

fn add<'a>(add: &'a Add<'_>) -> JsonKeys<'a> {
    vec![
        named("add"),
        ("grain_type", JsonOutput::text(add.grain_type.node.singular)),
        ("set", sets(&add.sets)),
        ("reason", arg(&add.reason.node)),
    ]
}

fn supersede<'a>(supersede: &'a Supersede<'_>) -> JsonKeys<'a> {
    vec![
        named("supersede"),
        ("target", hash(&supersede.target.node)),
        ("set", sets(&supersede.sets)),
        ("reason", arg(&supersede.reason.node)),
    ]
}

fn revert<'a>(revert: &'a Revert<'_>) -> JsonKeys<'a> {
    vec![
        named("revert"),
        ("target", hash(&revert.target.node)),
        ("reason", arg(&revert.reason.node)),
    ]
}

fn sets<'a>(sets: &'a [SetClause<'_>]) -> JsonOutput<'a> {
    JsonOutput::list(sets.iter().map(|set| {
        let field = ("field", JsonOutput::text(set.name.node));
        JsonOutput::Object(vec![field, ("value", literal(&set.value.node))])
    }))
}

fn literals<'a>(items: &'a [Spanned<Literal<'_>>]) -> JsonOutput<'a> {
    JsonOutput::list(items.iter().map(|item| literal(&item.node)))
}

fn literal<'a>(value: &'a Literal<'_>) -> JsonOutput<'a> {
    match value {
        Literal::Text(text) => JsonOutput::text(&**text),
        Literal::Number(given) => number(given),
        Literal::Flag(flag) => JsonOutput::raw(flag),
        Literal::Hash(digits) => {
            JsonOutput::one("hash", JsonOutput::text(format!("sha256:{digits}")))
        }
        Literal::Param(name) => param(name),
        Literal::Array(items) => literals(items),
    }
}

fn number<'a>(number: &'a NumberLiteral<'_>) -> JsonOutput<'a> {
    JsonOutput::raw(&number.text)
}

fn param(name: &str) -> JsonOutput<'_> {
    JsonOutput::one("param", JsonOutput::text(name))
}

fn hash<'a>(target: &'a HashArg<'_>) -> JsonOutput<'a> {
    match target {
        Arg::Given(digits) => JsonOutput::text(format!("sha256:{digits}")),
        Arg::Param(name) => param(name),
    }
}

/// Writes a text, count or number argument.
fn arg<'a, T: ToJson>(value: &'a Arg<'_, T>) -> JsonOutput<'a> {
    match value {
        Arg::Given(given) => given.json(),
        Arg::Param(name) => param(name),
    }
}

/// A value that an argument may hold.
trait ToJson {
    fn json(&self) -> JsonOutput<'_>;
}

impl ToJson for Cow<'_, str> {
    fn json(&self) -> JsonOutput<'_> {
        JsonOutput::text(&**self)
    }
}

impl ToJson for WholeNumber<'_> {
    fn json(&self) -> JsonOutput<'_> {
        JsonOutput::raw(self)
    }
}

impl ToJson for NumberLiteral<'_> {
    fn json(&self) -> JsonOutput<'_> {
        number(self)
    }
}
