//! The quick reference of CAL for language models.

/// CAL on one page, in Markdown, for the prompt of a model (CAL 27): at most 1,200 tokens.
///
/// ```
/// use grainstore_cal::{Estimator, REFERENCE, TokenCounter};
///
/// assert!(REFERENCE.contains("RECALL") && Estimator.count(REFERENCE) <= 1_200);
/// ```
pub const REFERENCE: &str = include_str!("reference.md");

#[cfg(test)]
mod tests {
    use grainstore_format::EpochMs;
    use grainstore_sml::{Estimator, TokenCounter};

    use super::REFERENCE;
    use crate::source::QuerySource;
    use crate::testutil::Fake;
    use crate::{Error, ErrorKind, ExecuteOptions, Tier, WriteQuotas, execute};

    /// The lines of the fenced blocks in this language.
    fn examples(language: &str) -> Vec<&'static str> {
        let blocks = REFERENCE.split("```").filter_map(|block| block.strip_prefix(language));
        blocks.flat_map(str::lines).filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn the_reference_fits_its_budget() {
        let tokens = Estimator.count(REFERENCE);
        assert!((900..=1_200).contains(&tokens), "{tokens} tokens");
    }

    #[test]
    fn every_example_of_the_reference_runs_in_both_forms() {
        let memory = Fake::at_work();
        let options = ExecuteOptions {
            tier: Tier::Evolve,
            ..ExecuteOptions::at(EpochMs::new(1_768_471_200_000))
        };
        let (text, json) = (examples("cal\n"), examples("json\n"));
        assert!(text.len() >= 16 && json.len() == 2, "{} and {}", text.len(), json.len());
        for example in text.iter().chain(&json) {
            let source =
                QuerySource::read(example).unwrap_or_else(|error| panic!("{example}: {error}"));
            let statement = source.statement().unwrap_or_else(|error| panic!("{example}: {error}"));
            let printed = statement.to_json();
            let again = QuerySource::read(&printed).unwrap();
            assert_eq!(again.statement().unwrap(), statement, "{example}");
            for form in [example, &*printed] {
                let refused = execute(&memory, form, &options, &WriteQuotas::default()).err();
                // The addresses in the reference do not exist.
                let nowhere = |error: &Error| error.kind() == ErrorKind::TargetNotFound;
                assert!(refused.as_ref().is_none_or(nowhere), "{form}: {refused:?}");
            }
        }
    }

    #[test]
    fn the_reference_names_every_type_and_common_field() {
        for name in crate::types::plurals().chain(crate::fields::names_for(None)) {
            assert!(REFERENCE.contains(name), "{name}");
        }
    }
}
