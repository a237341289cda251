//! The promises of chunks, in every format: joined they are the text, and none ends within a grain.

use grainstore_sml::{Budget, Estimator, Format, TokenCounter};
use proptest::prelude::*;

use crate::formats::run;
use crate::given::{given_sources, hostile};
use crate::{Counter, bytes};

/// The grains that are written in this piece of a text. Every format marks where one begins, and no
/// stored text can look like it.
fn grains(format: Format, piece: &str) -> usize {
    let lines = |start: &str| piece.lines().filter(|line| line.starts_with(start)).count();
    match format {
        Format::Sml => piece.matches("</").count() - piece.matches("</context>").count(),
        Format::Markdown => lines("- "),
        Format::Json => lines("{\"type\":"),
        Format::Yaml => lines("  - type: "),
        Format::Toon => lines("  "),
        Format::Text | Format::Triples => piece.lines().count(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chunks_hold_whole_grains_and_join_to_the_text(
        given in given_sources(),
        name in prop::option::of(hostile()),
        budget in prop_oneof![
            (40_usize..2_000).prop_map(Budget::Tokens),
            (0_usize..20).prop_map(Budget::Grains),
        ],
        most in 0_usize..400,
    ) {
        for format in Format::ALL {
            for counter in [&Estimator as &dyn TokenCounter, &Counter(bytes)] {
                let own = (format, name.as_deref());
                let Some(assembly) = run(&given, own, budget, counter) else { continue };
                let chunks: Vec<_> = assembly.chunks(most, counter).collect();
                let joined: String = chunks.iter().map(|chunk| chunk.text).collect();
                prop_assert_eq!(&joined, &assembly.text);
                for chunk in &chunks {
                    prop_assert_eq!(chunk.grains, grains(format, chunk.text), "{:?}", chunk);
                    prop_assert_eq!(chunk.tokens, counter.count(chunk.text));
                    prop_assert!(!chunk.text.is_empty());
                    prop_assert!(chunk.grains <= 1 || chunk.tokens <= most, "{:?}", chunk);
                }
                let shown: usize =
                    assembly.sources.iter().map(|of| of.full + of.standard + of.summary).sum();
                prop_assert_eq!(chunks.iter().map(|chunk| chunk.grains).sum::<usize>(), shown);
            }
        }
    }
}
