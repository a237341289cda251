use compare_facts::{Figure, Unit};

use super::scale::{Scale, written};
use super::*;

fn record(peer: &str, grains: usize, pass: usize, p50: f64) -> Record {
    let (peer, work) = (peer.to_owned(), works::SUBJECT.to_owned());
    Record { grains, pass, peer, work, unit: Unit::Micros, figure: Figure::once(p50) }
}

/// Whether every element that is opened is closed, in order, and nothing is left unescaped.
fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let Some((tag, text)) = part.split_once('>') else { return false };
        let is_safe = |text: &str| {
            text.split('&').skip(1).all(|rest| {
                ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|name| rest.starts_with(name))
            })
        };
        if text.contains('>') || !is_safe(text) || !is_safe(tag) || tag.matches('"').count() % 2 > 0
        {
            return false;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.extend(tag.split(' ').next());
        }
    }
    open.is_empty() && svg.starts_with("<svg ")
}

#[test]
fn figures_become_pictures_with_everybodys_name_and_escaped_text() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("figures.json");
    let names = ["grainstore", "sqlite", "a<b & \"c\">'d'"];
    let sizes = [10_000, 100_000];
    let records = names.iter().zip([30.0, 20.0, 400.0]);
    let records = records.flat_map(|(name, p50)| sizes.map(|size| record(name, size, 1, p50)));
    let machine = crate::machine::Machine::of(directory.path());
    let figures = Figures { machine, data: String::new(), records: records.collect() };
    figures.write(&json).unwrap();
    draw(&json, &directory.path().join("plots")).unwrap();

    let svg = fs::read_to_string(directory.path().join("plots/latency-reads.svg")).unwrap();
    assert!(is_well_formed(&svg), "{svg}");
    for text in ["grainstore", "sqlite", "a&lt;b &amp; &quot;c&quot;&gt;&#39;d&#39;"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}");
    }
    for text in ["microseconds", "facts in the store", "100,000", "<rect "] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!directory.path().join("plots/throughput.svg").exists());
}

#[test]
fn text_that_is_not_escaped_is_not_well_formed() {
    for broken in
        ["<svg x=\"1\">a & b</svg>", "<svg ><text>a</svg>", "<svg >a > b</svg>", "<g ></g>"]
    {
        assert!(!is_well_formed(broken), "{broken}");
    }
}

#[test]
fn a_line_has_the_median_of_all_passes_at_each_size() {
    let records = [(100, 1, 5.0), (10, 1, 3.0), (10, 2, 4.0), (100, 2, 9.0), (100, 3, 6.0)];
    let records = records.map(|(size, pass, p50)| record("one", size, pass, p50));
    let series = series(&records, works::SUBJECT, &peers(&records)).unwrap();
    assert_eq!(series.lines[0].points, [(10.0, 3.5), (100.0, 6.0)]);
}

#[test]
fn an_axis_is_logarithmic_and_its_numbers_are_round() {
    let scale = Scale::over([10.0, 1_000.0].into_iter(), 0.0, 100.0);
    assert!((scale.place(100.0) - 50.0).abs() < 1e-6);
    assert_eq!(scale.ticks(), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0]);
    let one = Scale::over([7.0].into_iter(), 0.0, 100.0);
    assert!((one.place(7.0) - 50.0).abs() < 1e-6);
    let texts = [0.05, 0.2, 1.0, 20.0, 5_000.0, 1_000_000.0].map(written);
    assert_eq!(texts, ["0.05", "0.2", "1", "20", "5,000", "1,000,000"]);
}
