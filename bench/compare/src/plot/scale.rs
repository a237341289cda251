//! A logarithmic axis: where a value stands, and which values are written beside it.

/// Fewest decades of an axis whose values between powers of ten are not written.
const MANY_DECADES: f64 = 2.5;

/// An axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The logarithms of both ends.
    from: f64,
    to: f64,
    /// Where the ends stand.
    start: f64,
    end: f64,
}

impl Scale {
    /// An axis from place to place that has room for these values and some more.
    pub(super) fn over(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let logs: Vec<f64> = values.map(|value| value.max(1e-6).log10()).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let margin = ((most - least) * 0.08).max(0.12);
        Self { from: least - margin, to: most + margin, start, end }
    }

    /// Where a value stands.
    pub(super) fn place(self, value: f64) -> f64 {
        let share = (value.max(1e-6).log10() - self.from) / (self.to - self.from);
        self.start + share * (self.end - self.start)
    }

    /// Round values on it.
    pub(super) fn ticks(self) -> Vec<f64> {
        let steps: &[f64] =
            if self.to - self.from > MANY_DECADES { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let ticks = (-6..=12).flat_map(|power| steps.iter().map(move |s| s * 10_f64.powi(power)));
        ticks.filter(|tick| (self.from..=self.to).contains(&tick.log10())).collect()
    }
}

/// A value as it is written: with commas, and decimals where it is small.
pub(super) fn written(value: f64) -> String {
    if value < 1.0 {
        let text = format!("{value:.3}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
