//! Translation of the JSON form to text, with the span in the document of each part.
//!
//! A document means what its text means, so only the parser decides. The checks here prevent injection:
//! every name is one word, every word of a closed list is on that list, every string is quoted.

use std::borrow::Cow;

use super::node::{JsonMember, JsonNode, JsonValue};
use super::table::{
    self, ChoiceForm, ChoiceRow, EXTENSION, EXTRACTORS, KeyForm, ListForm, OPERATORS, ObjectForm,
    QUERY, STATEMENTS, VERSION, ValueForm,
};
use crate::ast::Literal;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields;
use crate::lex::is_word;
use crate::print::hash_of;
use crate::span::Span;
use crate::suggest;
use crate::types;

/// The text of a query in JSON, with the mapping of its parts to the document.
#[derive(Debug, Default)]
pub(crate) struct TranslatedQuery {
    pub(crate) text: String,
    /// Spans of the text with those of the values they stand for; inner parts before the enclosing ones.
    places: Vec<(Span, Span)>,
    /// Spans of the text that stand for BATCH entries that cannot be translated, with their errors.
    refused: Vec<(Span, Error)>,
}

impl TranslatedQuery {
    /// Returns the span in the document of a span in the text: that of the smallest value containing it.
    pub(crate) fn document_span(&self, span: Span) -> Option<Span> {
        let empty = span.start() == span.end();
        let holds = |part: &Span| part.covers(span) && (!empty || span.end() < part.end());
        let parts = self.places.iter().filter(|(part, _)| holds(part));
        let smallest = parts.min_by_key(|(part, _)| part.end() - part.start());
        smallest.or(self.places.last()).map(|(_, value)| *value)
    }

    /// Maps an error of the text to the document; in an entry that cannot be translated, returns that
    /// entry's error.
    pub(super) fn map_error(&self, error: Error) -> Error {
        let entry = error.span().and_then(|span| {
            self.refused.iter().find(|(part, _)| part.covers(span)).map(|(_, own)| own.clone())
        });
        entry.unwrap_or_else(|| error.map_span(|span| self.document_span(span)))
    }
}

/// Translates a document, the `root` of `source`.
///
/// # Errors
/// E002 for unknown or missing keys, statements and words, E003 and E004 for types and fields, E014 for an
/// empty object, E015 for hashes, E020 for values of another kind.
pub(super) fn translate(root: &JsonNode, source: &str) -> Result<TranslatedQuery> {
    let mut speller = Translator { source, spelled: TranslatedQuery::default(), lets: Vec::new() };
    speller.query(root)?;
    Ok(speller.spelled)
}

struct Translator<'n> {
    source: &'n str,
    spelled: TranslatedQuery,
    /// The LETs in scope, which `{"let": ...}` may name.
    lets: Vec<&'n str>,
}

impl<'n> Translator<'n> {
    /// Translates LETs and a statement.
    fn query(&mut self, node: &'n JsonNode) -> Result<()> {
        let mark = self.lets.len();
        if let Some(JsonValue::List(lets)) = node.get("let").map(|node| &node.value) {
            self.lets.extend(lets.iter().filter_map(|binding| binding.get("name")?.text()));
        }
        self.record_part(node, |speller| speller.statement_with(node, &QUERY))?;
        self.lets.truncate(mark);
        Ok(())
    }

    /// Translates a statement, which may start with the keys `before`.
    fn statement_with(&mut self, node: &'n JsonNode, before: &'static [KeyForm]) -> Result<()> {
        let members = members(node, "a query")?;
        if members.is_empty() {
            return Err(Error::new(ErrorKind::EmptyQuery, "the query is empty").at(node.span));
        }
        let form = statement_form(node)?;
        let keys = before.iter().chain(form.keys);
        known_keys(members, std::iter::once("statement").chain(keys.map(|key| key.name)))?;
        self.keys(before, "", node)?;
        self.form(form, node)
    }

    /// Translates a statement whose errors stay in its slot. Its place in the text is taken by a fragment
    /// that the parser refuses too, and that contains a hash of the document's part, so that different
    /// entries give different query hashes.
    fn slot(&mut self, forms: &[&'static ObjectForm], node: &'n JsonNode) -> Result<()> {
        let TranslatedQuery { text, places, .. } = &self.spelled;
        let (length, known) = (text.len(), places.len());
        let spelled = self.record_part(node, |speller| speller.statement_with(node, &[]));
        let Err(error) = spelled else { return Ok(()) };
        let is_listed = |form: &&ObjectForm| forms.iter().any(|listed| listed.name == form.name);
        let Some(form) = statement_form(node).ok().filter(is_listed) else { return Err(error) };
        self.spelled.text.truncate(length);
        self.spelled.places.truncate(known);
        let written = self.source.get(node.span.start()..node.span.end()).unwrap_or("");
        self.push_words(form.head)?;
        let start = self.spelled.text.len();
        self.push_words(&format!("\"{}\"", hash_of(written)))?;
        self.spelled.refused.push((Span::new(start, self.spelled.text.len()), error));
        Ok(())
    }

    /// Translates the words and keys of an object whose keys have been checked.
    fn form(&mut self, form: &'static ObjectForm, node: &'n JsonNode) -> Result<()> {
        let lacks = |needs: &&[&str]| needs.iter().any(|name| node.get(name).is_none());
        if !form.needs.is_empty() && form.needs.iter().all(lacks) {
            return Err(missing_keys(form, node));
        }
        match node.get("statement") {
            Some(statement) if form.statement.is_some() => {
                self.record_part(statement, |speller| speller.push_words(form.head))?;
            }
            _ => self.push_words(form.head)?,
        }
        self.keys(form.keys, form.between, node)?;
        self.push_words(form.tail)
    }

    /// Translates an object that is no statement.
    fn object(&mut self, form: &'static ObjectForm, node: &'n JsonNode) -> Result<()> {
        let members = members(node, form.name)?;
        known_keys(members, form.keys.iter().map(|key| key.name))?;
        self.form(form, node)
    }

    /// Translates the keys that are present, in the order of the table.
    fn keys(
        &mut self,
        keys: &'static [KeyForm],
        between: &'static str,
        node: &'n JsonNode,
    ) -> Result<()> {
        let mut first = true;
        for key in keys {
            let Some(value) = node.get(key.name) else { continue };
            // The only version is left out.
            if key.name == VERSION && matches!(&value.value, JsonValue::Number(text) if text == "1")
            {
                continue;
            }
            if !std::mem::take(&mut first) {
                self.push_words(between)?;
            }
            self.record_part(value, |speller| {
                speller.push_words(key.lead)?;
                speller.shape(&key.shape, value, key.name)?;
                speller.push_words(key.tail)
            })?;
        }
        Ok(())
    }

    /// Translates the value of the key or option `name`.
    fn shape(&mut self, shape: &'static ValueForm, node: &'n JsonNode, name: &str) -> Result<()> {
        match shape {
            ValueForm::Flag => flag(node, name),
            ValueForm::FlagOr(_) if matches!(node.value, JsonValue::Flag(true)) => Ok(()),
            ValueForm::FlagOr(shape) => self.shape(shape, node, name),
            ValueForm::WordOr(words, shape) => match &node.value {
                JsonValue::Object(_) => self.shape(shape, node, name),
                _ => self.push_words(word(name, node, words.iter().copied())?),
            },
            ValueForm::NameOr(shape) => match &node.value {
                JsonValue::List(_) => self.shape(shape, node, name),
                _ => self.push_words(&leaf_text(&ValueForm::Name, node, name)?),
            },
            ValueForm::Raw => self.raw(node, name),
            ValueForm::Object(form) | ValueForm::Budget(form) => self.object(form, node),
            ValueForm::List(list) => self.list(list, node, name),
            ValueForm::Choice(choice) => self.choice(choice, node),
            ValueForm::Condition => self.condition(node),
            ValueForm::Statement(_) => {
                self.record_part(node, |speller| speller.statement_with(node, &[]))
            }
            ValueForm::Slot(forms) => self.slot(forms, node),
            ValueForm::Query(_) => self.query(node),
            ValueForm::Value => self.value(node),
            ValueForm::Pair => {
                let [from, to] = pair(node, name)?;
                self.value(from)?;
                self.push_words("AND")?;
                self.value(to)
            }
            leaf => {
                let text = leaf_text(leaf, node, name)?;
                self.push_words(&text)
            }
        }
    }

    fn list(&mut self, list: &'static ListForm, node: &'n JsonNode, name: &str) -> Result<()> {
        self.push_words(list.open)?;
        for (at, item) in items(node, name)?.iter().enumerate() {
            if at > 0 {
                self.push_words(list.between)?;
            }
            self.record_part(item, |speller| speller.shape(&list.of, item, name))?;
        }
        self.push_words(list.close)
    }

    /// Translates a name alone, or an object with the name as its only key.
    fn choice(&mut self, choice: &'static ChoiceForm, node: &'n JsonNode) -> Result<()> {
        let (name, place, held) = match &node.value {
            JsonValue::Text(name) => (name, node.span, None),
            JsonValue::Object(members) => match members.as_slice() {
                [member] => (&member.key, member.place, Some(&member.node)),
                _ => return Err(wrong_kind(node, choice.what, "takes one key in each object")),
            },
            _ => return Err(wrong_kind(node, choice.what, "is a name, or an object of one key")),
        };
        if choice.extensions && is_extension(name) {
            self.push_words(name)?;
            return held.map_or(Ok(()), |held| self.shape(&EXTENSION, held, name));
        }
        let names = choice.rows.iter().map(|row| row.name);
        let Some(row) = choice.rows.iter().find(|row| row.name == name) else {
            let error = Error::new(choice.unknown, format!("unknown {} {name:?}", choice.what));
            return Err(with_closest(error, name, names).at(place));
        };
        self.push_words(row.text)?;
        self.row(row, node, held)
    }

    /// Translates the value of a row, between the words around it.
    fn row(
        &mut self,
        row: &'static ChoiceRow,
        node: &JsonNode,
        held: Option<&'n JsonNode>,
    ) -> Result<()> {
        match (&row.holds, held) {
            (Some((lead, shape, tail)), Some(held)) => {
                self.push_words(lead)?;
                self.record_part(held, |speller| speller.shape(shape, held, row.name))?;
                self.push_words(tail)
            }
            (None, Some(_)) => {
                Err(wrong_kind(node, row.name, "holds nothing")
                    .suggest("write the name as a string"))
            }
            (_, None) if row.bare => Ok(()),
            (_, None) => {
                let advice = format!("write {{\"{}\": ...}}", row.name);
                Err(wrong_kind(node, row.name, "does not stand alone").suggest(advice))
            }
        }
    }

    /// Translates `{field, op, value}`.
    fn condition(&mut self, node: &'n JsonNode) -> Result<()> {
        const KEYS: [&str; 3] = ["field", "op", "value"];
        known_keys(members(node, "a condition")?, KEYS)?;
        let [Some(field), Some(op), Some(value)] = KEYS.map(|key| node.get(key)) else {
            return Err(missing(node, "a condition", &KEYS));
        };
        let name = leaf_text(&ValueForm::Field, field, "field")?;
        self.record_part(field, |speller| speller.push_words(&name))?;
        let written = word("operator", op, OPERATORS.iter().copied())?;
        self.record_part(op, |speller| speller.push_words(written))?;
        self.record_part(value, |speller| match written {
            "IN" => speller.values_of_in(value),
            "BETWEEN" => speller.shape(&ValueForm::Pair, value, "BETWEEN"),
            "IS" => speller.push_words(word("category", value, table::categories())?),
            _ => speller.value(value),
        })
    }

    /// Translates the value of IN: an array, a parameter that holds one, `{recall, extract}` or `{let}`.
    fn values_of_in(&mut self, node: &'n JsonNode) -> Result<()> {
        let JsonValue::Object(members) = &node.value else {
            let listed = items(node, "IN")?;
            self.push_words("(")?;
            for (at, item) in listed.iter().enumerate() {
                self.push_words(if at == 0 { "" } else { "," })?;
                self.value(item)?;
            }
            return self.push_words(")");
        };
        known_keys(members, ["recall", "extract", "let", "param"])?;
        self.push_words("(")?;
        match (node.get("recall"), node.get("let")) {
            (Some(recall), None) => {
                self.record_part(recall, |speller| speller.statement_with(recall, &[]))?;
                if let Some(extract) = node.get("extract") {
                    self.push_words("|")?;
                    let extract = word("extractor", extract, EXTRACTORS.iter().copied())?;
                    self.push_words(extract)?;
                }
            }
            (None, Some(name)) => {
                let variable = leaf_text(&ValueForm::Variable, name, "let")?;
                if !name.text().is_some_and(|name| self.lets.contains(&name)) {
                    let message = format!("{variable} is not bound by a LET");
                    let error = Error::new(ErrorKind::UnboundParameter, message).at(name.span);
                    return Err(error.suggest("bind it under \"let\", or write {\"param\": ...}"));
                }
                self.push_words(&variable)?;
            }
            _ => self.value(node)?,
        }
        self.push_words(")")
    }

    /// Translates a literal.
    fn value(&mut self, node: &'n JsonNode) -> Result<()> {
        let JsonValue::List(items) = &node.value else {
            let text = scalar(node)?;
            return self.record_part(node, |speller| speller.push_words(&text));
        };
        self.record_part(node, |speller| {
            speller.push_words("[")?;
            for (at, item) in items.iter().enumerate() {
                speller.push_words(if at == 0 { "" } else { "," })?;
                speller.value(item)?;
            }
            speller.push_words("]")
        })
    }

    /// Translates the text of a template, on lines of its own between braces. Its braces must balance, so
    /// that it cannot leave them.
    fn raw(&mut self, node: &JsonNode, name: &str) -> Result<()> {
        let Some(text) = node.text() else { return Err(wrong_kind(node, name, "takes a string")) };
        if grainstore_sml::body_end(format!("{text}}}").as_bytes()) != Some(text.len()) {
            let message = "the braces of the text do not balance";
            let error = Error::new(ErrorKind::TemplateSyntax, message).at(node.span);
            return Err(error.suggest("close each { and each {{tag}} in it"));
        }
        self.push_words(&format!("\n{text}"))
    }

    /// Appends words with a space only where they would run together with the text before them: the length
    /// limit applies to this text, so that a query that fits in text fits in JSON.
    #[expect(clippy::unnecessary_wraps, reason = "every step of the spelling reads the same")]
    fn push_words(&mut self, words: &str) -> Result<()> {
        let text = &mut self.spelled.text;
        let runs_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
        // After a label of this name the next word would read as the start of a hash.
        let labels = text.ends_with("sha256:");
        if labels || (text.ends_with(runs_on) && words.starts_with(runs_on)) {
            text.push(' ');
        }
        text.push_str(words);
        Ok(())
    }

    /// Records that the text written by `write` stands for `node`.
    fn record_part(
        &mut self,
        node: &JsonNode,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let start = self.spelled.text.len();
        write(self)?;
        let part = Span::new(start, self.spelled.text.len());
        self.spelled.places.push((part, node.span));
        Ok(())
    }
}

/// Returns the form of a statement.
fn statement_form(node: &JsonNode) -> Result<&'static ObjectForm> {
    let names = STATEMENTS.iter().filter_map(|form| form.statement);
    let Some(statement) = node.get("statement") else {
        return Err(missing(node, "a query", &["statement"]).valid(names));
    };
    let Some(name) = statement.text() else {
        return Err(wrong_kind(statement, "statement", "is a name").valid(names));
    };
    let found = STATEMENTS.iter().copied().find(|form| form.statement == Some(name));
    found.ok_or_else(|| unknown("statement", name, names).at(statement.span))
}

/// Returns a value of one token, in text.
fn leaf_text<'n>(shape: &ValueForm, node: &'n JsonNode, name: &str) -> Result<Cow<'n, str>> {
    use ValueForm::{BoundedText, Count, Fraction, Number, Text, Whole, Within};
    if let (
        Text | BoundedText(_) | Count | Within(..) | Number | Fraction | ValueForm::Hash,
        JsonValue::Object(_),
    ) = (shape, &node.value)
    {
        return scalar(node);
    }
    match (shape, &node.value) {
        (Text | BoundedText(_), JsonValue::Text(_))
        | (Count | Within(..) | Whole | Number | Fraction, JsonValue::Number(_)) => scalar(node),
        (Text | BoundedText(_), _) => {
            Err(wrong_kind(node, name, "takes a string or {\"param\": ...}"))
        }
        (Count | Within(..), _) => {
            Err(wrong_kind(node, name, "takes a whole number or {\"param\": ...}"))
        }
        (Whole, _) => Err(wrong_kind(node, name, "takes a whole number")),
        (Number | Fraction, _) => Err(wrong_kind(node, name, "takes a number")),
        (ValueForm::Hash, JsonValue::Text(hash)) => hash_text(hash, node),
        (ValueForm::Hash, _) => {
            Err(wrong_kind(node, name, "takes \"sha256:...\" or {\"param\": ...}"))
        }
        (ValueForm::Word(words), _) => word(name, node, words.iter().copied()).map(Cow::Borrowed),
        (_, JsonValue::Text(text)) => named(shape, text, node, name),
        _ => Err(wrong_kind(node, name, "takes a string")),
    }
}

/// Returns a name of the language or of the query, in text.
fn named<'n>(
    shape: &ValueForm,
    text: &'n str,
    node: &JsonNode,
    name: &str,
) -> Result<Cow<'n, str>> {
    match shape {
        ValueForm::Plural if types::by_plural(text).is_none() => {
            Err(types::unknown_plural(text).at(node.span))
        }
        ValueForm::Singular | ValueForm::Addable if types::by_singular(text).is_none() => {
            Err(types::unknown_singular(text).at(node.span))
        }
        ValueForm::Field | ValueForm::Shown => match text.split_once(':') {
            Some((prefix, name)) if is_word(prefix) && is_word(name) => Ok(Cow::Borrowed(text)),
            None if is_word(text) => Ok(Cow::Borrowed(text)),
            _ => Err(fields::unknown(text, None).at(node.span)),
        },
        ValueForm::Name | ValueForm::Variable if !is_word(text) => {
            let error = wrong_kind(node, name, "is no name");
            Err(error.suggest("a name is a letter, then letters, digits and _"))
        }
        ValueForm::Variable => Ok(Cow::Owned(format!("${text}"))),
        _ => Ok(Cow::Borrowed(text)),
    }
}

/// Returns a literal that is no array, in text.
fn scalar(node: &JsonNode) -> Result<Cow<'_, str>> {
    Ok(match &node.value {
        JsonValue::Text(text) => Cow::Owned(Literal::Text(Cow::Borrowed(text)).to_string()),
        JsonValue::Number(digits) => Cow::Borrowed(digits),
        JsonValue::Flag(flag) => Cow::Borrowed(if *flag { "true" } else { "false" }),
        JsonValue::Null => {
            let error = Error::new(ErrorKind::WrongType, "null is no value of CAL").at(node.span);
            return Err(error.suggest("a grain without a field never matches a condition on it"));
        }
        JsonValue::List(_) => {
            return Err(wrong_kind(node, "the value", "is an array").suggest("write one flat list"));
        }
        JsonValue::Object(members) => {
            known_keys(members, ["param", "hash"])?;
            return match (members.as_slice(), node.get("param"), node.get("hash")) {
                ([_], Some(name), _) => leaf_text(&ValueForm::Variable, name, "param"),
                ([_], _, Some(hash)) => leaf_text(&ValueForm::Hash, hash, "hash"),
                _ => Err(wrong_kind(
                    node,
                    "the value",
                    "is one of {\"param\": ...} and {\"hash\": ...}",
                )),
            };
        }
    })
}

/// Returns a hash, which must be one token.
fn hash_text<'n>(hash: &'n str, node: &JsonNode) -> Result<Cow<'n, str>> {
    let digits = hash.strip_prefix("sha256:").filter(|digits| crate::lex::is_hash_digits(digits));
    if digits.is_none() {
        let message = "a hash is sha256: and 8 to 64 lowercase hex digits";
        return Err(Error::new(ErrorKind::BadHash, message).at(node.span));
    }
    Ok(Cow::Borrowed(hash))
}

/// Returns one word of a closed list, matched in any case, in the spelling of the list.
fn word(
    what: &str,
    node: &JsonNode,
    words: impl Iterator<Item = &'static str> + Clone,
) -> Result<&'static str> {
    let Some(text) = node.text() else {
        return Err(wrong_kind(node, what, "is one of the listed words").valid(words));
    };
    let found = words.clone().find(|word| word.eq_ignore_ascii_case(text));
    found.ok_or_else(|| unknown(what, text, words).at(node.span))
}

fn flag(node: &JsonNode, name: &str) -> Result<()> {
    match node.value {
        JsonValue::Flag(true) => Ok(()),
        _ => Err(wrong_kind(node, name, "takes only true")
            .suggest("leave the key out where it does not stand")),
    }
}

fn pair<'n>(node: &'n JsonNode, name: &str) -> Result<[&'n JsonNode; 2]> {
    match &node.value {
        JsonValue::List(items) => match items.as_slice() {
            [from, to] => Ok([from, to]),
            _ => Err(wrong_kind(node, name, "takes two values, [from, to]")),
        },
        _ => Err(wrong_kind(node, name, "takes two values, [from, to]")),
    }
}

fn items<'n>(node: &'n JsonNode, name: &str) -> Result<&'n [JsonNode]> {
    match &node.value {
        JsonValue::List(items) if items.is_empty() => {
            let error = Error::new(ErrorKind::UnexpectedToken, format!("{name} lists nothing"));
            Err(error.at(node.span).suggest("list at least one, or leave the key out"))
        }
        JsonValue::List(items) => Ok(items),
        _ => Err(wrong_kind(node, name, "takes an array")),
    }
}

fn members<'n>(node: &'n JsonNode, what: &str) -> Result<&'n [JsonMember]> {
    match &node.value {
        JsonValue::Object(members) => Ok(members),
        _ => Err(wrong_kind(node, what, "is an object")),
    }
}

/// Checks that all keys are in `known`: E002 for the first that is not.
fn known_keys(members: &[JsonMember], known: impl IntoIterator<Item = &'static str>) -> Result<()> {
    let known: Vec<&'static str> = known.into_iter().collect();
    match members.iter().find(|member| !known.contains(&member.key.as_str())) {
        Some(member) => Err(unknown("key", &member.key, known.into_iter()).at(member.place)),
        None => Ok(()),
    }
}

fn unknown(what: &str, name: &str, known: impl Iterator<Item = &'static str> + Clone) -> Error {
    let error = Error::new(ErrorKind::UnexpectedToken, format!("unknown {what} {name:?}"));
    with_closest(error, name, known)
}

/// Adds the known names, and the one closest to `name`, to an error.
fn with_closest(
    error: Error,
    name: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> Error {
    let advice = suggest::did_you_mean(name, known.clone(), "use one of the listed");
    error.suggest(advice).valid(known)
}

fn missing_keys(form: &ObjectForm, node: &JsonNode) -> Error {
    let names = form.needs.iter().map(|needs| needs.iter().map(|name| format!("\"{name}\"")));
    let ways: Vec<_> = names.map(|names| names.collect::<Vec<_>>().join(" and ")).collect();
    let message = format!("{} needs {}", form.name, ways.join(", or "));
    let known = form.keys.iter().map(|key| key.name);
    let error = Error::new(ErrorKind::UnexpectedToken, message).at(node.span);
    error.suggest("add what is missing").valid(known)
}

fn missing(node: &JsonNode, what: &str, keys: &[&str]) -> Error {
    let lacks = keys.iter().find(|key| node.get(key).is_none()).copied().unwrap_or("");
    let message = format!("{what} needs \"{lacks}\"");
    Error::new(ErrorKind::UnexpectedToken, message).at(node.span).suggest("add the key")
}

/// Returns the error for a value of another kind than `name` takes.
fn wrong_kind(node: &JsonNode, name: &str, takes: &str) -> Error {
    let message = format!("{name} {takes}");
    let error = Error::new(ErrorKind::WrongType, message).at(node.span);
    error.suggest("give it a value of that kind")
}

fn is_extension(name: &str) -> bool {
    is_word(name)
        && name.len() > 2
        && name.get(..2).is_some_and(|head| head.eq_ignore_ascii_case("x_"))
}
