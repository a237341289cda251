//! What arguments of tools share: how they are read, addresses, times.

use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::{Failure, Kind, Result};

/// Hex digits of an address.
const ADDRESS_DIGITS: usize = 64;

/// Reads the arguments of a tool; an error names what is wrong with them.
pub(super) fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        wrong(
            format!("these arguments are not what the tool takes: {error}"),
            "see its inputSchema",
        )
    })
}

/// An argument that cannot be.
pub(super) fn wrong(message: impl Into<String>, hint: &str) -> Failure {
    Failure::new(Kind::Schema, message, hint)
}

/// Returns the digits of an address, given as it is or as a URI.
pub(super) fn address(given: &str) -> Result<String> {
    let digits = given.trim();
    let digits = ["grain://", "sha256:"].iter().find_map(|before| digits.strip_prefix(before));
    let digits = digits.unwrap_or(given.trim()).to_ascii_lowercase();
    if digits.len() == ADDRESS_DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(digits);
    }
    let shown: String = given.chars().take(80).collect();
    let hint = "give the address of one grain, as recall, search or history answer it";
    Err(Failure::new(Kind::Schema, format!("{shown:?} is no address of 64 hex digits"), hint))
}

/// A moment: RFC 3339, a date, or epoch milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Moment {
    Ms(i64),
    Text(String),
}

/// Which end of its day a date stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    First,
    Last,
}

impl Moment {
    /// Returns epoch milliseconds.
    pub(super) fn ms(&self, name: &str, end: End) -> Result<i64> {
        let text = match self {
            Self::Ms(ms) => return Ok(*ms),
            Self::Text(text) => text.trim(),
        };
        let is_date = text.len() == 10 && text.bytes().filter(|byte| *byte == b'-').count() == 2;
        let time = match (is_date, end) {
            (false, _) => "",
            (true, End::First) => "T00:00:00Z",
            (true, End::Last) => "T23:59:59.999Z",
        };
        let parsed = parse_datetime(&format!("{text}{time}"));
        parsed.map(EpochMs::get).map_err(|error| {
            let shown: String = error.to_string().chars().take(200).collect();
            wrong(format!("{name}: {shown}"), "write 2026-01-15, or 2026-01-15T10:00:00Z")
        })
    }
}

/// Checks a number against its bounds.
pub(super) fn within(
    name: &str,
    given: Option<u64>,
    usual: u64,
    bounds: (u64, u64),
) -> Result<u64> {
    let (least, most) = bounds;
    match given.unwrap_or(usual) {
        number if (least..=most).contains(&number) => Ok(number),
        number => {
            let message = format!("{name} is {number}, and may be from {least} to {most}");
            Err(Failure::new(Kind::Schema, message, hint_for(number > most, name)))
        }
    }
}

/// What to do about a number that is too large, or too small.
fn hint_for(is_too_large: bool, name: &str) -> String {
    match is_too_large {
        true => "ask for more with the cursor".to_owned(),
        false => format!("give a larger {name}, or leave it out"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_64_digits_with_or_without_its_scheme() {
        let digits = "ab".repeat(32);
        for given in [digits.clone(), format!("grain://{digits}"), format!(" sha256:{digits}")] {
            assert_eq!(address(&given).unwrap(), digits);
        }
        assert_eq!(address(&digits.to_uppercase()).unwrap(), digits);
        for given in ["*", "all", "", "grain://", &"a".repeat(63), "grain://*"] {
            assert!(address(given).unwrap_err().has_code("ERR_SCHEMA"), "{given}");
        }
    }

    #[test]
    fn a_date_is_an_end_of_its_day_and_a_time_is_itself() {
        let ms = |given: Value, end| {
            serde_json::from_value::<Moment>(given).unwrap().ms("valid_to", end)
        };
        assert_eq!(ms(json!("1970-01-02"), End::First).unwrap(), 86_400_000);
        assert_eq!(ms(json!("1970-01-01"), End::Last).unwrap(), 86_399_999);
        assert_eq!(ms(json!("1970-01-01T00:00:01Z"), End::Last).unwrap(), 1_000);
        assert_eq!(ms(json!(5), End::Last).unwrap(), 5);
        let failure = ms(json!("tomorrow"), End::Last).unwrap_err();
        assert!(failure.message.starts_with("valid_to: "), "{failure:?}");
    }

    #[test]
    fn a_number_outside_its_bounds_is_refused_with_them() {
        assert_eq!(within("limit", None, 10, (1, 50)).unwrap(), 10);
        let error = within("limit", Some(51), 10, (1, 50)).unwrap_err();
        assert!(error.message.contains("from 1 to 50"), "{error:?}");
        assert!(error.hint.contains("cursor"), "{error:?}");
        let error = within("budget_tokens", Some(10), 1_500, (50, 8_000)).unwrap_err();
        assert!(error.hint.contains("larger budget_tokens"), "{error:?}");
    }
}
