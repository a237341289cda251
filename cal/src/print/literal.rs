//! Printing of literals, arguments and lists.

use std::fmt::{Display, Formatter, Result, Write};

use crate::ast::{Arg, CountArg, Literal, NumberArg, SetClause, WithOption};
use crate::span::Spanned;

impl Display for Literal<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Text(text) => quoted(f, text),
            Self::Number(number) => f.write_str(&number.text),
            Self::Flag(flag) => flag.fmt(f),
            Self::Hash(digits) => write!(f, "sha256:{digits}"),
            Self::Param(name) => write!(f, "${name}"),
            Self::Array(items) => {
                f.write_char('[')?;
                list(f, items)?;
                f.write_char(']')
            }
        }
    }
}

/// Prints a text argument.
pub(super) struct TextDisplay<'p, 'a, T>(pub(super) &'p Arg<'a, T>);

impl<T: AsRef<str>> Display for TextDisplay<'_, '_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Arg::Given(text) => quoted(f, text.as_ref()),
            Arg::Param(name) => write!(f, "${name}"),
        }
    }
}

/// Prints a hash argument.
pub(super) struct HashDisplay<'p, 'a>(pub(super) &'p Arg<'a, &'a str>);

impl Display for HashDisplay<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Arg::Given(digits) => write!(f, "sha256:{digits}"),
            Arg::Param(name) => write!(f, "${name}"),
        }
    }
}

/// Prints a number argument.
pub(super) struct NumberDisplay<'p, 'a>(pub(super) &'p NumberArg<'a>);

impl Display for NumberDisplay<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Arg::Given(number) => f.write_str(&number.text),
            Arg::Param(name) => write!(f, "${name}"),
        }
    }
}

/// Prints a whole-number argument.
pub(super) struct CountDisplay<'p, 'a>(pub(super) &'p CountArg<'a>);

impl Display for CountDisplay<'_, '_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Arg::Given(count) => count.fmt(f),
            Arg::Param(name) => write!(f, "${name}"),
        }
    }
}

pub(super) fn clause(f: &mut Formatter<'_>, head: &str, body: Option<impl Display>) -> Result {
    match body {
        Some(body) => write!(f, "{head}{body}"),
        None => Ok(()),
    }
}

pub(super) fn options(
    f: &mut Formatter<'_>,
    options: Option<&Spanned<Vec<Spanned<WithOption<'_>>>>>,
) -> Result {
    for (at, option) in options.iter().flat_map(|list| &list.node).enumerate() {
        f.write_str(if at == 0 { " WITH " } else { ", " })?;
        option.node.fmt(f)?;
    }
    Ok(())
}

pub(super) fn sets(f: &mut Formatter<'_>, sets: &[SetClause<'_>]) -> Result {
    for set in sets {
        write!(f, " SET {} = {}", set.name.node, set.value.node)?;
    }
    Ok(())
}

pub(super) fn list<T: Display>(f: &mut Formatter<'_>, items: &[Spanned<T>]) -> Result {
    for (at, item) in items.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { ", " })?;
        item.node.fmt(f)?;
    }
    Ok(())
}

/// Prints a string literal, with every character escaped that the lexer would read differently.
fn quoted(f: &mut Formatter<'_>, text: &str) -> Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}
