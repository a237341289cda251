//! `recall`: its head, and its clauses in any order, each once (ruling 2).

use grainstore_format::GrainType;

use super::clause::{once, within};
use super::cursor::TokenCursor;
use super::{condition, option, stage, value};
use crate::ast::{
    AsFormat, BetweenClause, CountArg, Extractor, PipelineStage, Recall, TextArg, ThreadClause,
};
use crate::error::Result;
use crate::lex::{Punctuation, TokenKind};
use crate::span::Spanned;
use crate::suggest;
use crate::types::{self, TypeName};
use crate::words::{Keyword, WordClass};

/// Clauses that may follow in a RECALL.
#[rustfmt::skip]
pub(super) const CLAUSES: [&str; 23] = [
    "IN", "ABOUT", "LIKE", "SINCE", "BETWEEN", "THREAD", "WHERE", "WITH", "SELECT", "ORDER BY", "LIMIT", "OFFSET",
    "COUNT", "FIRST", "SUBJECTS", "OBJECTS", "HASHES", "GROUP BY", "PROJECT", "RECENT", "CONTRADICTIONS", "AS", "|",
];

/// `recall := RECALL MY? plural? in? about? like? since? between? thread? where? with? stages
/// recent? CONTRADICTIONS? as?`.
pub(super) fn recall<'a>(c: &mut TokenCursor<'a>) -> Result<Recall<'a>> {
    c.expect(Keyword::Recall)?;
    let mut recall = Recall::default();
    let token = c.peek();
    if c.eat(Keyword::My)? {
        recall.my = Some(Spanned::new((), token.span));
    }
    recall.grain_type = plural(c)?;
    let around = c.set_grain_type(recall.grain_type.as_ref().map(|name| name.node.grain_type));
    while clause(c, &mut recall)? {}
    c.also_expect(&CLAUSES);
    c.set_grain_type(around);
    Ok(recall)
}

/// Removes and returns the extractor at the end of the pipeline, if there is one; a LET or an IN takes its
/// values with it.
pub(super) fn take_extractor(recall: &mut Recall<'_>) -> Option<Extractor> {
    let PipelineStage::Extract(extractor) = recall.stages.last()?.node else { return None };
    recall.stages.pop();
    Some(extractor)
}

/// `plural := beliefs | events | ...`: the type after RECALL, if the next word is not a clause.
fn plural(c: &mut TokenCursor<'_>) -> Result<Option<Spanned<&'static TypeName>>> {
    let token = c.peek();
    let TokenKind::Word(word) = token.kind else { return Ok(None) };
    let text = c.text(token);
    if let Some(found) = types::by_plural(text) {
        c.bump()?;
        return Ok(Some(Spanned::new(found, token.span)));
    }
    let singular = types::by_singular(text);
    if singular.is_none() && word != WordClass::Name {
        return Ok(None);
    }
    // A type is the most common word here, so another word must be close to a clause to be taken for one.
    let close = |(_, far): &(&str, usize)| *far <= text.len().div_euclid(4).max(1);
    let nearest_clause = suggest::closest(text, CLAUSES).filter(close);
    let nearest_type = suggest::closest(text, types::all_plurals());
    let nearer = |(_, far): (&str, usize)| nearest_type.is_none_or(|(_, of_type)| far < of_type);
    if singular.is_none() && nearest_clause.is_some_and(nearer) {
        return Err(c.unexpected(&CLAUSES));
    }
    Err(types::unknown_plural(text).at(token.span))
}

/// Parses the next clause or stage; `false` if there is none.
fn clause<'a>(c: &mut TokenCursor<'a>, recall: &mut Recall<'a>) -> Result<bool> {
    let token = c.peek();
    if token.kind == TokenKind::Punctuation(Punctuation::Pipe) {
        recall.stages.push(stage::piped(c)?);
        return Ok(true);
    }
    let Some(keyword) = c.keyword() else { return Ok(false) };
    match keyword {
        Keyword::In => once(c, keyword, &mut recall.within, within)?,
        Keyword::About => once(c, keyword, &mut recall.about, argument)?,
        Keyword::Like => once(c, keyword, &mut recall.like, argument)?,
        Keyword::Since => once(c, keyword, &mut recall.since, argument)?,
        Keyword::Between => once(c, keyword, &mut recall.between, between)?,
        Keyword::Thread => {
            once(c, keyword, &mut recall.thread, thread)?;
            c.set_grain_type(Some(GrainType::Event));
        }
        Keyword::Where => once(c, keyword, &mut recall.conditions, condition::conditions)?,
        Keyword::With => once(c, keyword, &mut recall.options, option::options)?,
        Keyword::Recent => once(c, keyword, &mut recall.recent, recent)?,
        Keyword::As => once(c, keyword, &mut recall.format, format_as)?,
        Keyword::Contradictions => once(c, keyword, &mut recall.contradictions, |c| {
            c.bump()?;
            Ok(())
        })?,
        _ if stage::starts(keyword) => recall.stages.push(stage::stage(c)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// `about := ABOUT STR`, `like := LIKE STR` and `since := SINCE STR`.
fn argument<'a>(c: &mut TokenCursor<'a>) -> Result<TextArg<'a>> {
    c.bump()?;
    Ok(value::text_arg(c)?.node)
}

/// `between := BETWEEN v AND v`.
fn between<'a>(c: &mut TokenCursor<'a>) -> Result<BetweenClause<'a>> {
    c.bump()?;
    value::bounds(c)
}

/// `recent := RECENT INT`.
fn recent<'a>(c: &mut TokenCursor<'a>) -> Result<CountArg<'a>> {
    c.bump()?;
    Ok(value::count_arg(c)?.node)
}

/// `thread := THREAD_POINTS (STR | FROM HASH)`.
fn thread<'a>(c: &mut TokenCursor<'a>) -> Result<ThreadClause<'a>> {
    c.bump()?;
    if c.eat(Keyword::From)? {
        return Ok(ThreadClause::From(value::hash_arg(c)?.node));
    }
    Ok(ThreadClause::Session(value::text_arg(c)?.node))
}

/// `as := AS format_type` with
/// `format_type := sml | markdown | json | yaml | text | triples | toon`; of rows of values csv and table too.
fn format_as(c: &mut TokenCursor<'_>) -> Result<AsFormat> {
    c.bump()?;
    let Some(format) = AsFormat::named(c.text(c.peek())) else {
        let names: Vec<_> = AsFormat::all().map(AsFormat::name).collect();
        return Err(c.unexpected(&names));
    };
    c.bump()?;
    Ok(format)
}
