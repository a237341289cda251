//! One value as shown to a reader: a text, a number or a flag, which data formats distinguish.

use std::borrow::Cow;

use grainstore_format::Value;

use crate::words;

/// The value of an attribute.
///
/// ```
/// use grainstore_format::Value;
/// use grainstore_sml::DisplayValue;
///
/// assert_eq!(DisplayValue::of(&Value::from(1.0)), DisplayValue::Number("1".to_owned()));
/// assert_eq!(DisplayValue::of(&Value::from(vec!["tea", "jazz"])).as_str(), r#"["tea","jazz"]"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisplayValue<'a> {
    /// A text, as stored.
    Text(Cow<'a, str>),
    /// A finite number, as its shortest decimal without an exponent.
    Number(String),
    /// A boolean.
    Flag(bool),
}

impl<'a> DisplayValue<'a> {
    /// Converts a payload value. Lists and maps become compact JSON.
    #[must_use]
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Float(x) if !x.is_finite() => Self::Text(words::value(value)),
            Value::Float(_) | Value::Int(_) => Self::Number(words::value(value).into_owned()),
            Value::Bool(flag) => Self::Flag(*flag),
            _ => Self::Text(words::value(value)),
        }
    }

    /// Returns a borrowed copy.
    #[must_use]
    pub fn as_borrowed(&self) -> DisplayValue<'_> {
        match self {
            Self::Text(text) => DisplayValue::Text(Cow::Borrowed(text)),
            Self::Number(digits) => DisplayValue::Number(digits.clone()),
            Self::Flag(flag) => DisplayValue::Flag(*flag),
        }
    }

    /// Returns an owned copy.
    #[must_use]
    pub fn into_owned(self) -> DisplayValue<'static> {
        match self {
            Self::Text(text) => DisplayValue::Text(Cow::Owned(text.into_owned())),
            Self::Number(digits) => DisplayValue::Number(digits),
            Self::Flag(flag) => DisplayValue::Flag(flag),
        }
    }

    /// Returns the value as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Number(digits) => digits,
            Self::Flag(true) => "true",
            Self::Flag(false) => "false",
        }
    }
}

impl<'a> From<&'a str> for DisplayValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_flags_are_told_from_texts() {
        for (value, cell) in [
            (Value::from(0.90), DisplayValue::Number("0.9".to_owned())),
            (Value::from(1.0), DisplayValue::Number("1".to_owned())),
            (Value::from(u64::MAX), DisplayValue::Number("18446744073709551615".to_owned())),
            (Value::from(false), DisplayValue::Flag(false)),
            (Value::from("0.9"), DisplayValue::from("0.9")),
            (Value::from(vec!["a"]), DisplayValue::from("[\"a\"]")),
            (Value::Null, DisplayValue::from("null")),
        ] {
            assert_eq!(DisplayValue::of(&value), cell);
        }
        assert_eq!(DisplayValue::Flag(true).as_str(), "true");
    }
}
