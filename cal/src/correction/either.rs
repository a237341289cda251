//! Alternatives within WHERE: an IN where they are values of one field, else a UNION whose operands have all that the
//! conditions beside them say.

use super::pattern::QueryPieces;
use super::whole::{Part, is_tail, union};

/// Operands of a UNION that is suggested.
const MOST: usize = 5;
/// Parentheses within each other that are read.
const DEEP: usize = 8;

/// A condition as it stands, with its field and value where it is an equality.
#[derive(Clone, PartialEq)]
struct Condition<'a> {
    text: String,
    equal: Option<(&'a str, &'a str)>,
}

/// Conditions that hold together.
type Product<'a> = Vec<Condition<'a>>;

/// `RECALL type WHERE a AND (b OR c)`. What follows the conditions would be of one operand alone: with it there is no
/// UNION that asks the same.
pub(super) fn either(q: QueryPieces<'_>) -> Option<String> {
    let whole = Part { from: 0, to: q.end() };
    let start = q.find_at_top(whole, |at| q.is(at, "WHERE")).filter(|_| q.is(0, "RECALL"))? + 1;
    let rest = Part { from: start, to: q.end() };
    let end = q.find_at_top(rest, |at| is_tail(q.text_at(at))).unwrap_or(q.end());
    let mut reader = Reader { q, at: start, end, deep: 0 };
    let products = reader.sum()?;
    let alternatives = products.len() > 1 && reader.at == end;
    let (first, others) = products.split_first().filter(|_| alternatives)?;
    let shared = |one: &&Condition<'_>| others.iter().all(|other| other.contains(one));
    let common: Vec<Condition<'_>> = first.iter().filter(shared).cloned().collect();
    let head = q.between(0, start);
    let tail = q.spelled(Part { from: end, to: q.end() }, None);
    if let Some(values) = values(&products, &common) {
        let mut all: Vec<String> = common.into_iter().map(|one| one.text).collect();
        all.push(values);
        return Some(format!("{head} {} {tail}", all.join(" AND ")).trim_end().to_owned());
    }
    if !tail.trim_end_matches(';').is_empty() || products.len() > MOST {
        return None;
    }
    let texts = |product: &Product<'_>| {
        let all: Vec<&str> = product.iter().map(|one| one.text.as_str()).collect();
        format!("{head} {}", all.join(" AND "))
    };
    Some(union(products.iter().map(texts)))
}

/// The alternatives as values of one field, where nothing else tells them apart.
fn values(products: &[Product<'_>], common: &[Condition<'_>]) -> Option<String> {
    let mut field = None;
    let mut values = Vec::new();
    for product in products {
        let mut own = product.iter().filter(|one| !common.contains(one));
        let (name, value) = own.next()?.equal.filter(|_| own.next().is_none())?;
        if !field.get_or_insert(name).eq_ignore_ascii_case(name) {
            return None;
        }
        values.push(value);
    }
    Some(format!("{} IN ({})", field?, values.join(", ")))
}

/// Reads conditions with AND, OR and parentheses into alternatives.
struct Reader<'a> {
    q: QueryPieces<'a>,
    at: usize,
    end: usize,
    deep: usize,
}

impl<'a> Reader<'a> {
    fn sum(&mut self) -> Option<Vec<Product<'a>>> {
        self.deep += 1;
        if self.deep > DEEP {
            return None;
        }
        let mut all = self.product(None)?;
        while self.at < self.end && self.q.is(self.at, "OR") {
            self.at += 1;
            let before = all.last().and_then(|product| product.last()).and_then(|one| one.equal);
            all.extend(self.product(before.map(|(field, _)| field))?);
        }
        self.deep -= 1;
        (all.len() <= 2 * MOST).then_some(all)
    }

    fn product(&mut self, field: Option<&'a str>) -> Option<Vec<Product<'a>>> {
        let mut all = self.part(field)?;
        while self.at < self.end && self.q.is(self.at, "AND") {
            self.at += 1;
            let more = self.part(None)?;
            let joined = |one: &Product<'a>| {
                more.iter().map(|other| [one.clone(), other.clone()].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(joined).collect();
            if all.len() > 2 * MOST {
                return None;
            }
        }
        Some(all)
    }

    /// One condition, or several in parentheses; a value alone is another of the field before it.
    fn part(&mut self, field: Option<&'a str>) -> Option<Vec<Product<'a>>> {
        let q = self.q;
        if q.is(self.at, "(") {
            self.at += 1;
            let inner = self.sum()?;
            let closes = q.is(self.at, ")") && self.at < self.end;
            self.at += 1;
            return closes.then_some(inner);
        }
        let from = self.at;
        let (mut open, mut between) = (0_usize, false);
        while self.at < self.end {
            match q.text_at(self.at) {
                "(" | "[" => open += 1,
                ")" | "]" if open == 0 => break,
                ")" | "]" => open -= 1,
                "OR" | "or" | "Or" if open == 0 => break,
                word if open == 0 && word.eq_ignore_ascii_case("AND") => {
                    if !between {
                        break;
                    }
                    between = false;
                }
                word => between |= word.eq_ignore_ascii_case("BETWEEN"),
            }
            self.at += 1;
        }
        let text = q.spelled(Part { from, to: self.at }, None);
        let condition = match (self.at - from, field) {
            (0, _) => return None,
            (1, Some(field)) if q.is_value(from) => {
                let value = q.text_at(from);
                Condition { text: format!("{field} = {value}"), equal: Some((field, value)) }
            }
            (3, _) if q.is(from + 1, "=") && q.is_value(from + 2) => {
                Condition { text, equal: Some((q.text_at(from), q.text_at(from + 2))) }
            }
            _ => Condition { text, equal: None },
        };
        Some(vec![vec![condition]])
    }
}
