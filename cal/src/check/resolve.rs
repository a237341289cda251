//! Literals and parameters to plain values, with errors at their span.

use std::borrow::Cow;

use grainstore_format::{ContentAddress, GrainType, SHARED_PARTITION};

use super::CheckContext;
use crate::ast::{Arg, BetweenClause, CountArg, HashArg, Literal, NumberArg, TextArg};
use crate::bounds::{TimeRange, is_within};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::fields::{self, FieldRef};
use crate::limits;
use crate::memory::{HashPrefix, PrefixMatch, SessionScope};
use crate::span::{Span, Spanned};
use crate::time_phrase;
use crate::types::{self, TypeName};

impl<'c> CheckContext<'c> {
    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// E008 if it is unbound, E021 if it names a LET.
    fn parameter(&self, name: &str, span: Span) -> Result<&'c Literal<'static>> {
        if self.bindings.contains(name) {
            let message = format!("${name} is a LET, which stands in FROM or alone in IN ( )");
            return Err(Error::new(ErrorKind::WrongStage, message).at(span));
        }
        self.params.get(name).ok_or_else(|| {
            Error::new(ErrorKind::UnboundParameter, format!("${name} is not bound")).at(span)
        })
    }

    /// Returns the literal, or the value its parameter is bound to.
    pub(super) fn value<'l>(&self, literal: &'l Spanned<Literal<'l>>) -> Result<&'l Literal<'l>>
    where
        'c: 'l,
    {
        match &literal.node {
            Literal::Param(name) => Ok(self.parameter(name, literal.span)?),
            given => Ok(given),
        }
    }

    /// Returns every value of a list; a parameter bound to an array is expanded.
    pub(super) fn spread<'l>(
        &self,
        literals: &'l [Spanned<Literal<'l>>],
    ) -> Result<Vec<Spanned<&'l Literal<'l>>>>
    where
        'c: 'l,
    {
        let mut values = Vec::with_capacity(literals.len());
        for literal in literals {
            match self.value(literal)? {
                Literal::Array(items) => {
                    // Items of a bound array have no span.
                    let bound = matches!(literal.node, Literal::Param(_));
                    let place = |item: &Spanned<_>| if bound { literal.span } else { item.span };
                    values.extend(items.iter().map(|item| Spanned::new(&item.node, place(item))));
                }
                single => values.push(Spanned::new(single, literal.span)),
            }
        }
        Ok(values)
    }

    /// Returns the values of an array.
    ///
    /// # Errors
    /// E020 for a single value.
    pub(super) fn array<'l>(
        &self,
        literal: &'l Spanned<Literal<'l>>,
    ) -> Result<Vec<Spanned<&'l Literal<'l>>>>
    where
        'c: 'l,
    {
        match self.value(literal)? {
            Literal::Array(items) => self.spread(items),
            other => Err(mismatch("an array", other, literal.span).suggest("write [\"a\", \"b\"]")),
        }
    }

    /// Returns the text of a clause.
    pub(super) fn text<'l>(&self, arg: &'l TextArg<'l>, span: Span) -> Result<&'l str>
    where
        'c: 'l,
    {
        match arg {
            Arg::Given(text) => Ok(text),
            Arg::Param(name) => match self.parameter(name, span)? {
                Literal::Text(text) => Ok(text),
                other => Err(mismatch("text", other, span)),
            },
        }
    }

    /// Returns the whole number of a clause.
    pub(super) fn whole(&self, arg: &CountArg<'_>, span: Span) -> Result<u64> {
        match arg {
            Arg::Given(count) => Ok(count.value),
            Arg::Param(name) => match self.parameter(name, span)? {
                Literal::Number(number) => number.text.parse().map_err(|_| {
                    let message = format!("{} is no whole number from 0", number.text);
                    let error = Error::new(ErrorKind::WrongType, message).at(span);
                    error.suggest("bind a whole number, such as 20")
                }),
                other => Err(mismatch("a whole number", other, span)),
            },
        }
    }

    /// Returns the number of a clause.
    pub(super) fn number(&self, arg: &Spanned<NumberArg<'_>>) -> Result<f64> {
        match &arg.node {
            Arg::Given(number) => Ok(number.value),
            Arg::Param(name) => match self.parameter(name, arg.span)? {
                Literal::Number(number) => Ok(number.value),
                other => Err(mismatch("a number", other, arg.span)),
            },
        }
    }

    /// Returns the hash of a clause.
    pub(super) fn hash(&self, arg: &Spanned<HashArg<'_>>) -> Result<Spanned<HashPrefix>> {
        match &arg.node {
            Arg::Given(digits) => prefix(digits, arg.span),
            Arg::Param(name) => hash_of(self.parameter(name, arg.span)?, arg.span),
        }
    }

    /// Returns the address of the visible grain that a prefix matches, if there is one.
    ///
    /// # Errors
    /// E015 if it matches several.
    pub(super) fn address(&self, prefix: &Spanned<HashPrefix>) -> Result<Option<ContentAddress>> {
        match self.memory.locate(&prefix.node)? {
            PrefixMatch::One(address) => Ok(Some(address)),
            PrefixMatch::Nothing | PrefixMatch::Elsewhere => Ok(None),
            PrefixMatch::Several => Err(ambiguous(prefix)),
        }
    }

    /// Returns the time range of a value.
    ///
    /// # Errors
    /// E020 for an unknown phrase, or a value that is no time.
    pub(super) fn time(&self, value: &Literal<'_>, span: Span) -> Result<TimeRange> {
        let found = match value {
            Literal::Text(text) => time_phrase::of_text(text, self.now),
            Literal::Number(number) => time_phrase::of_number(number.value),
            other => return Err(mismatch("a time", other, span)),
        };
        found.ok_or_else(|| {
            let error = Error::new(ErrorKind::WrongType, format!("{value} is no time known here"));
            let advice = "use an ISO date or datetime, epoch seconds or milliseconds, or a phrase";
            error.at(span).suggest(advice).valid(time_phrase::EXAMPLES)
        })
    }

    /// Returns the range from the start of the first time to the end of the second.
    ///
    /// # Errors
    /// E020 if they are swapped.
    pub(super) fn between(&self, between: &BetweenClause<'_>) -> Result<TimeRange> {
        let from = self.time(self.value(&between.from)?, between.from.span)?.from;
        let to = self.time(self.value(&between.to)?, between.to.span)?.to;
        if from > to {
            let error = Error::new(ErrorKind::WrongType, "the bounds are swapped");
            let span = between.from.span.to(between.to.span);
            return Err(error.at(span).suggest("write the earlier time first"));
        }
        Ok(TimeRange { from, to })
    }
}

/// Returns the error for a prefix that matches several grains.
pub(crate) fn ambiguous(prefix: &Spanned<HashPrefix>) -> Error {
    let message = format!("{} is the start of more than one address", prefix.node);
    Error::new(ErrorKind::BadHash, message).at(prefix.span).suggest("write more of its digits")
}

/// Returns a value as text; a hash in its spelling.
pub(super) fn text_of<'l>(value: &'l Literal<'_>, span: Span) -> Result<Cow<'l, str>> {
    match value {
        Literal::Text(text) => Ok(Cow::Borrowed(text)),
        Literal::Hash(digits) => Ok(Cow::Owned(format!("sha256:{digits}"))),
        other => Err(mismatch("text", other, span).suggest("put text in double quotes")),
    }
}

/// Returns a value as a hash; text is accepted if spelled like one.
pub(super) fn hash_of(value: &Literal<'_>, span: Span) -> Result<Spanned<HashPrefix>> {
    match value {
        Literal::Hash(digits) => prefix(digits, span),
        Literal::Text(text) => match text.strip_prefix("sha256:") {
            Some(digits) => prefix(digits, span),
            None => Err(mismatch("a hash", value, span).suggest("write sha256: before the digits")),
        },
        other => Err(mismatch("a hash", other, span)),
    }
}

fn prefix(digits: &str, span: Span) -> Result<Spanned<HashPrefix>> {
    let prefix = HashPrefix::new(digits).ok_or_else(|| {
        let message = "a hash is sha256: and 8 to 64 lowercase hex digits";
        Error::new(ErrorKind::BadHash, message).at(span)
    })?;
    Ok(Spanned::new(prefix, span))
}

/// Returns E020: a value of another kind is needed.
pub(super) fn mismatch(wanted: &str, found: &Literal<'_>, span: Span) -> Error {
    let found = match found {
        Literal::Text(_) => "text",
        Literal::Number(_) => "a number",
        Literal::Flag(_) => "a boolean",
        Literal::Hash(_) => "a hash",
        Literal::Param(_) => "a parameter",
        Literal::Array(_) => "an array",
    };
    Error::new(ErrorKind::WrongType, format!("{wanted} is needed here, not {found}")).at(span)
}

/// Checks that the field is common or of the named type: E060 or E061.
pub(super) fn belongs(field: &Spanned<FieldRef>, grain_type: Option<GrainType>) -> Result<()> {
    let Some(owner) = field.node.owner.filter(|owner| Some(*owner) != grain_type) else {
        return Ok(());
    };
    let (name, plural) = (field.node.name, types::plural_of(owner));
    let error = match grain_type {
        Some(other) => {
            let message =
                format!("{name} is a field of {plural}, not of {}", types::plural_of(other));
            Error::new(ErrorKind::WrongField, message)
                .suggest("use one of the listed fields")
                .valid(fields::names_for(Some(other)))
        }
        None => {
            let message = format!("{name} is a field of {plural} only");
            let error = Error::new(ErrorKind::TypeNotNamed, message);
            error.suggest(format!("name the type: RECALL {plural} WHERE {name} ..."))
        }
    };
    Err(error.at(field.span))
}

/// Returns E011: the set of an IN is too large.
pub(crate) fn too_many_values(place: Span) -> Error {
    let message = format!("IN has more than {} values", limits::MAX_IN_VALUES);
    let error = Error::new(ErrorKind::SetTooLarge, message).at(place);
    error.suggest(format!("narrow it, or LIMIT a subquery to {}", limits::MAX_IN_VALUES))
}

/// Returns the namespace; the session's own, with W101, for one outside it.
pub(super) fn own_or(namespace: String, context: &mut CheckContext<'_>) -> String {
    let own = own(context.memory.scope()).filter(|own| !is_within(&namespace, own));
    let Some(own) = own.map(str::to_owned) else { return namespace };
    let message = format!("namespace \"{namespace}\" is outside the session, whose own was used");
    context.warn(codes::NAMESPACE_REPLACED, message);
    own
}

/// Warns with W102 of an old name of a type.
pub(super) fn hint_at_old_name(name: &TypeName, context: &mut CheckContext<'_>) {
    if name.old {
        let plural = types::plural_of(name.grain_type);
        let message = format!("{} are called {plural} since OMS 1.2", name.plural);
        context.warn(codes::OLD_TYPE_NAME, message);
    }
}

/// Returns the namespace of the session, if it has one. Grains without a namespace are in the shared
/// partition, and so is a session with an empty namespace.
pub(super) fn own(scope: &SessionScope) -> Option<&str> {
    scope.namespace.as_deref().map(|own| if own.is_empty() { SHARED_PARTITION } else { own })
}
