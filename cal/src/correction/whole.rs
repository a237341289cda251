//! Statements of another shape that have any number of parts, which no row of patterns can say: SQL, sources and
//! entries without labels or parentheses, fields in braces.

use std::fmt::Write;

use super::Rewrite;
use super::either::either;
use super::pattern::QueryPieces;
use crate::scan::SyntaxKind;
use crate::types;

/// Sources, entries and weights that are read.
const MOST: usize = 10;

/// What the query is when it is read as one of these shapes.
pub(super) fn rewritings(query: QueryPieces<'_>) -> Vec<Rewrite> {
    const SHAPES: [(Shape, &str); 7] = [
        (
            either,
            "alternatives stand in an IN, or in a set operation that has all conditions on both sides",
        ),
        (select, "a query is RECALL and a type; what is shown of it stands in a SELECT behind it"),
        (several, "a RECALL is about one type: join two by a set operation"),
        (
            sources,
            "a source is a RECALL in parentheses, with or without a label: facts: (RECALL beliefs)",
        ),
        (entries, "a BATCH is { label: statement, label: statement }"),
        (weights, "PRIORITY sets labels apart by >, the first one first"),
        (sets, "each field has a SET of its own: SET subject = \"...\" SET object = \"...\""),
    ];
    // A comment would take what is put behind it.
    if query.all.iter().any(|piece| piece.kind == SyntaxKind::Comment) {
        return Vec::new();
    }
    let read = |(shape, advice): (Shape, &str)| {
        let text = shape(query).filter(|text| text != query.text)?;
        Some(Rewrite { advice: advice.to_owned(), text })
    };
    SHAPES.into_iter().filter_map(read).collect()
}

type Shape = fn(QueryPieces<'_>) -> Option<String>;

/// A range of pieces.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// Where the words of a pipeline and what follows it begin.
const TAILS: [&str; 16] = [
    "LIMIT", "OFFSET", "ORDER", "SELECT", "COUNT", "FIRST", "SUBJECTS", "OBJECTS", "HASHES",
    "GROUP", "PROJECT", "|", "WITH", "AS", "RECENT", ";",
];

/// Whether a pipeline begins here, or what follows it.
pub(super) fn is_tail(word: &str) -> bool {
    TAILS.iter().any(|tail| tail.eq_ignore_ascii_case(word))
}

/// SELECT columns FROM type, with what follows in SQL.
fn select(q: QueryPieces<'_>) -> Option<String> {
    let distinct = q.is(1, "DISTINCT");
    let columns_from = if distinct { 2 } else { 1 };
    let all = Part { from: columns_from, to: q.end() };
    let from = q.find_at_top(all, |at| q.is(at, "FROM")).filter(|_| q.is(0, "SELECT"))?;
    types::by_plural(q.text_at(from + 1))?;
    let (alias, rest) = alias(q, from + 2);
    let columns = columns(q, Part { from: columns_from, to: from }, alias)?;
    let tail = Tail::of(q, Part { from: rest, to: q.end() }, alias)?;
    let mut out = format!("RECALL {}", q.text_at(from + 1));
    if let Some(conditions) = &tail.conditions {
        let _ = write!(out, " WHERE {conditions}");
    }
    let fields: Vec<&str> = columns.iter().filter_map(|column| column.field).collect();
    let counts = columns.iter().any(|column| column.counts);
    let cut = tail.limit.is_some() || tail.offset.is_some();
    match (tail.group.as_deref(), counts, fields.as_slice()) {
        (Some(group), true, [field]) if *field == group && !cut => {
            let _ = write!(out, " | GROUP BY {group}");
        }
        (None, true, []) => out.push_str(" | COUNT"),
        (None, false, [field]) if distinct && !cut => {
            let end = match field.to_ascii_lowercase().as_str() {
                "subject" => "SUBJECTS".to_owned(),
                "object" => "OBJECTS".to_owned(),
                other => format!("GROUP BY {other}"),
            };
            let order = tail.order.filter(|_| !end.starts_with("GROUP"));
            let order = order.map_or_else(String::new, |order| format!(" | ORDER BY {order}"));
            let _ = write!(out, "{order} | {end}");
        }
        (None, false, fields) if !distinct => {
            out.push_str(&tail.stages());
            if !fields.is_empty() {
                let _ = write!(out, " | SELECT {}", fields.join(", "));
            }
        }
        _ => return None,
    }
    Some(out)
}

/// The other name a table has from here on, and where what follows begins.
fn alias(q: QueryPieces<'_>, at: usize) -> (Option<&str>, usize) {
    if q.is(at, "AS") {
        return (Some(q.text_at(at + 1)), at + 2);
    }
    const JOINS: [&str; 6] = ["JOIN", "INNER", "LEFT", "RIGHT", "CROSS", "HAVING"];
    let named = q.kind(at) == Some(SyntaxKind::Name) && !JOINS.iter().any(|word| q.is(at, word));
    if named { (Some(q.text_at(at)), at + 1) } else { (None, at) }
}

/// What SQL shows: a field, or a number.
struct Column<'a> {
    field: Option<&'a str>,
    counts: bool,
}

fn columns<'a>(q: QueryPieces<'a>, all: Part, alias: Option<&str>) -> Option<Vec<Column<'a>>> {
    let mut columns = Vec::new();
    for part in q.split(all, |at| q.is(at, ",")) {
        let mut at = part.from;
        if q.is(at + 1, ".") && alias.is_none_or(|alias| q.is(at, alias)) {
            at += 2;
        }
        let counts = q.is(at, "COUNT") && q.is(at + 1, "(") && q.is(at + 3, ")");
        let ends = if counts { at + 4 } else { at + 1 };
        let ends = if q.is(ends, "AS") { ends + 2 } else { ends };
        let star = q.is(at, "*");
        if ends != part.to || !(counts || star || q.is_word(at)) {
            return None;
        }
        if !star {
            columns.push(Column { field: (!counts).then(|| q.text_at(at)), counts });
        }
    }
    Some(columns)
}

/// What stands behind the table in SQL.
#[derive(Default)]
struct Tail {
    conditions: Option<String>,
    group: Option<String>,
    order: Option<String>,
    limit: Option<String>,
    offset: Option<String>,
}

impl Tail {
    fn of(q: QueryPieces<'_>, all: Part, alias: Option<&str>) -> Option<Self> {
        const CLAUSES: [&str; 5] = ["WHERE", "GROUP", "ORDER", "LIMIT", "OFFSET"];
        let is_clause = |at: usize| CLAUSES.iter().any(|word| q.is(at, word));
        let mut tail = Self::default();
        let mut at = all.from;
        while at < all.to && !q.is(at, ";") {
            let clause = CLAUSES.iter().find(|word| q.is(at, word))?;
            let by = usize::from(q.is(at + 1, "BY"));
            let body = Part { from: at + 1 + by, to: all.to };
            let next = q.find_at_top(body, |at| is_clause(at) || q.is(at, ";")).unwrap_or(all.to);
            let text = q.spelled(Part { to: next, ..body }, alias);
            match *clause {
                "WHERE" => tail.conditions = Some(text),
                "GROUP" => tail.group = Some(text),
                "ORDER" => tail.order = Some(text),
                "LIMIT" => match text.split_once(',') {
                    Some((skipped, taken)) => {
                        tail.offset = Some(skipped.trim().to_owned());
                        tail.limit = Some(taken.trim().to_owned());
                    }
                    None => tail.limit = Some(text),
                },
                _ => tail.offset = Some(text),
            }
            at = next;
        }
        Some(tail)
    }

    /// The stages in the order in which SQL means them.
    fn stages(&self) -> String {
        let all = [("ORDER BY", &self.order), ("OFFSET", &self.offset), ("LIMIT", &self.limit)];
        let there = all.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        there.map(|(name, text)| format!(" | {name} {text}")).collect()
    }
}

/// RECALL of several types: a UNION, as long as no pipeline would be of the last one alone.
fn several(q: QueryPieces<'_>) -> Option<String> {
    const BETWEEN: [&str; 5] = [",", "AND", "&", "OR", "+"];
    let is_type = |at: usize| types::by_plural(q.text_at(at)).is_some();
    let mut names = vec![Some(1).filter(|at| q.is(0, "RECALL") && is_type(*at))?];
    let mut at = 2;
    while BETWEEN.iter().any(|word| q.is(at, word)) && is_type(at + 1) && names.len() < MOST {
        names.push(at + 1);
        at += 2;
    }
    let rest = Part { from: at, to: q.end() };
    let refused = |at: usize| is_tail(q.text_at(at)) || q.is(at, "OR");
    if names.len() < 2 || q.find_at_top(rest, refused).is_some() {
        return None;
    }
    let rest = q.spelled(rest, None);
    let parts = names.into_iter().map(|name| format!("RECALL {} {rest}", q.text_at(name)));
    Some(union(parts.map(|part| part.trim_end().to_owned())))
}

/// Statements joined by UNION, from the left.
pub(super) fn union(parts: impl Iterator<Item = String>) -> String {
    parts.reduce(|left, right| format!("({left}) UNION ({right})")).unwrap_or_default()
}

/// Sources of an ASSEMBLE in parentheses, each with the label it has.
fn sources(q: QueryPieces<'_>) -> Option<String> {
    const BEHIND: [&str; 5] = ["BUDGET", "PRIORITY", "FORMAT", "STREAM", ";"];
    let whole = Part { from: 0, to: q.end() };
    let from = q.find_at_top(whole, |at| q.is(at, "FROM")).filter(|_| q.is(0, "ASSEMBLE"))? + 1;
    let rest = Part { from, to: q.end() };
    let ends = q.find_at_top(rest, |at| BEHIND.iter().any(|word| q.is(at, word)));
    let to = ends.unwrap_or(q.end());
    let begins = |at: usize| {
        let labelled = q.is_word(at) && (q.is(at + 1, ":") || q.is(at + 1, "="));
        let bare = q.is(at, "RECALL") || types::by_plural(q.text_at(at)).is_some();
        labelled || bare || q.is(at, "(") || q.kind(at) == Some(SyntaxKind::Parameter)
    };
    let parts = q.split(Part { from, to }, |at| q.is(at, ",") && begins(at + 1));
    if parts.len() > MOST {
        return None;
    }
    let mut written = Vec::new();
    for Part { mut from, to } in parts {
        let mut one = String::new();
        if q.is_word(from) && (q.is(from + 1, ":") || q.is(from + 1, "=")) {
            let _ = write!(one, "{}: ", q.text_at(from));
            from += 2;
        }
        let body = q.spelled(Part { from, to }, None);
        match q.text_at(from) {
            "(" => one += &body,
            _ if q.is(from, "RECALL") => one += &format!("({body})"),
            _ if q.kind(from) == Some(SyntaxKind::Parameter) => one += &body,
            word if types::by_plural(word).is_some() => one += &format!("(RECALL {body})"),
            _ => return None,
        }
        written.push(one);
    }
    let head = q.between(0, from);
    let tail = q.spelled(Part { from: to, to: q.end() }, None);
    Some(format!("{head} {} {tail}", written.join(", ")).trim_end().to_owned())
}

/// Entries of a BATCH with labels, apart by commas.
fn entries(q: QueryPieces<'_>) -> Option<String> {
    let opens = ["{", "(", "["].iter().any(|mark| q.is(1, mark)) && q.is(0, "BATCH");
    let close =
        q.closing(1).filter(|close| opens && (close + 1 == q.end() || q.is(close + 1, ";")))?;
    let labelled = |at: usize| q.is_word(at) && (q.is(at + 1, ":") || q.is(at + 1, "="));
    let begins = |at: usize| at == close || q.begins_statement(at) || labelled(at);
    let apart = |at: usize| q.is(at, ";") || (q.is(at, ",") && begins(at + 1));
    let mut written = Vec::new();
    for Part { from, to } in q.split(Part { from: 2, to: close }, apart) {
        let (label, from) = match labelled(from) && !q.begins_statement(from) {
            true => (q.text_at(from).to_owned(), from + 2),
            false => (format!("q{}", written.len() + 1), from),
        };
        if from == to {
            continue;
        }
        if !(q.begins_statement(from) || q.is(from, "(")) || written.len() == MOST {
            return None;
        }
        written.push(format!("{label}: {}", q.spelled(Part { from, to }, None)));
    }
    Some(format!("BATCH {{ {} }}", written.join(", ")))
}

/// PRIORITY with weights: the heaviest first.
fn weights(q: QueryPieces<'_>) -> Option<String> {
    let whole = Part { from: 0, to: q.end() };
    let start = q.find_at_top(whole, |at| q.is(at, "PRIORITY"))? + 1;
    let mut at = start;
    let mut labels: Vec<(&str, f64)> = Vec::new();
    while q.is_word(at) && labels.len() < MOST {
        let marked = usize::from(q.is(at + 1, ":") || q.is(at + 1, "="));
        let Some(weight) = q.text_at(at + 1 + marked).parse::<f64>().ok() else { break };
        labels.push((q.text_at(at), weight));
        at += 2 + marked;
        at += usize::from(q.is(at, ",") || q.is(at, ">"));
    }
    if labels.is_empty() {
        return None;
    }
    labels.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let names: Vec<&str> = labels.into_iter().map(|(label, _)| label).collect();
    let rest = q.spelled(Part { from: at, to: q.end() }, None);
    let text = format!("{} {} {rest}", q.between(0, start), names.join(" > "));
    Some(text.trim_end().to_owned())
}

/// Fields of an ADD or a SUPERSEDE in braces, as columns and values, or without their SET.
fn sets(q: QueryPieces<'_>) -> Option<String> {
    let writes = q.is(0, "ADD") || q.is(0, "SUPERSEDE");
    let open = |at: usize| q.is(at, "{") || q.is(at, "(");
    let mut start = Some(2).filter(|_| writes && q.end() > 2)?;
    start += usize::from(q.is(start, "SET") || q.is(start, "WITH"));
    let mut at = start;
    let mut pairs = Vec::new();
    if open(start) && q.is(q.closing(start)? + 1, "VALUES") {
        let (names, values) = (start, q.closing(start)? + 2);
        at = q.closing(values)?;
        let names = q.split(Part { from: names + 1, to: q.closing(names)? }, |at| q.is(at, ","));
        let values = q.split(Part { from: values + 1, to: at }, |at| q.is(at, ","));
        if names.len() != values.len() {
            return None;
        }
        let texts = |part: Part| q.between(part.from, part.to);
        pairs.extend(names.into_iter().map(texts).zip(values.into_iter().map(texts)));
        at += 1;
    } else if q.is(0, "ADD") && (0..3).all(|of| q.kind(start + of) == Some(SyntaxKind::Text)) {
        let names = ["subject", "relation", "object"];
        pairs.extend(names.into_iter().zip((start..).map(|at| q.text_at(at))));
        at += 3;
    } else {
        at += usize::from(open(start));
        while let Some((name, value, next)) = pair(q, at) {
            pairs.push((name, value));
            at = next;
        }
        at += usize::from(open(start) && (q.is(at, "}") || q.is(at, ")")));
    }
    if pairs.is_empty() || !(at == q.end() || q.is(at, "REASON")) {
        return None;
    }
    let mut out = q.between(0, 2).to_owned();
    let (reasons, fields): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|(name, _)| name.eq_ignore_ascii_case("reason"));
    for (name, value) in fields {
        let _ = write!(out, " SET {name} = {value}");
    }
    if let Some((_, reason)) = reasons.first() {
        let _ = write!(out, " REASON {reason}");
    }
    let rest = q.spelled(Part { from: at, to: q.end() }, None);
    Some(format!("{out} {rest}").trim_end().to_owned())
}

/// A field, its value, and where the next may begin.
fn pair<'a>(q: QueryPieces<'a>, at: usize) -> Option<(&'a str, &'a str, usize)> {
    let at = at + usize::from(q.is(at, "SET") || q.is(at, "AND"));
    let name = q.text_at(at).trim_matches('"');
    let named = q.is_word(at) || q.kind(at) == Some(SyntaxKind::Text);
    let from = at + 2;
    let to = match q.text_at(from) {
        "[" => q.closing(from)? + 1,
        _ => Some(from + 1).filter(|_| q.is_value(from))?,
    };
    let marked = q.is(at + 1, ":") || q.is(at + 1, "=");
    let next = to + usize::from(q.is(to, ","));
    (named && marked && crate::lex::is_word(name)).then(|| (name, q.between(from, to), next))
}

impl<'a> QueryPieces<'a> {
    pub(super) fn end(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is(&self, at: usize, text: &str) -> bool {
        self.text_at(at).eq_ignore_ascii_case(text)
    }

    /// The first of these pieces outside of brackets that begin among them.
    pub(super) fn find_at_top(&self, part: Part, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let mut open = 0_usize;
        for at in part.from..part.to {
            if open == 0 && wanted(at) {
                return Some(at);
            }
            match self.text_at(at) {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.checked_sub(1)?,
                _ => {}
            }
        }
        None
    }

    /// The parts between pieces outside of brackets; an empty last one is none.
    fn split(&self, part: Part, apart: impl Fn(usize) -> bool) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut from = part.from;
        while let Some(at) = self.find_at_top(Part { from, ..part }, &apart) {
            parts.push(Part { from, to: at });
            from = at + 1;
        }
        if from < part.to {
            parts.push(Part { from, to: part.to });
        }
        parts
    }

    /// The bracket that closes the one here.
    pub(super) fn closing(&self, at: usize) -> Option<usize> {
        let close = |at: usize| matches!(self.text_at(at), ")" | "]" | "}");
        matches!(self.text_at(at), "(" | "[" | "{").then_some(())?;
        self.find_at_top(Part { from: at + 1, to: self.end() }, close)
    }

    /// These pieces as they stand, but for the alias before a dot.
    pub(super) fn spelled(&self, part: Part, alias: Option<&str>) -> String {
        let mut out = String::new();
        let mut at = part.from;
        let mut last = None;
        while at < part.to {
            if alias.is_some_and(|alias| self.is(at, alias)) && self.is(at + 1, ".") {
                at += 2;
                continue;
            }
            let Some(piece) = self.all.get(at) else { break };
            if last.is_some_and(|last| last < piece.range.start) {
                out.push(' ');
            }
            out.push_str(self.text_at(at));
            last = Some(piece.range.end);
            at += 1;
        }
        out
    }
}
