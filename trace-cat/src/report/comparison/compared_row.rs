//! The figures of a name in both traces, and whether it became better or worse.

use super::bootstrap::{RatioInterval, TimedWaits, ratio_intervals};
use super::matching::{NamedWaits, matched};
use crate::report::contention::DurationHistogram;

/// For how many rows there are intervals, which take time: those whose time waited per second differs most.
const RESAMPLED_MAX: usize = 500;

/// What became of the waits for an object, or of those at a site.
#[derive(Clone, Debug)]
pub struct ComparedRow {
    pub kind: &'static str,
    /// Its name in NEW, or else in OLD.
    pub name: String,
    /// The name in OLD, if it was another one.
    pub old_name: Option<String>,
    pub old: Option<WaitFigures>,
    pub new: Option<WaitFigures>,
    /// NEW divided by OLD: mean waits, as 95 of 100 resamples have it.
    pub mean_interval: Option<RatioInterval>,
    /// The same of the times waited per second of the trace.
    pub rate_interval: Option<RatioInterval>,
    pub change: WaitChange,
    is_idle: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitFigures {
    pub waits: u64,
    pub waited: u64,
    /// Nanoseconds waited per second.
    pub rate: f64,
}

impl WaitFigures {
    pub fn mean(self) -> u64 {
        self.waited.checked_div(self.waits).unwrap_or(0)
    }
}

/// The time waited per second decides, and where that is not certain, the mean wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitChange {
    Worse,
    Better,
    /// None that is certain.
    None,
    /// Only NEW has the name.
    New,
    Gone,
}

impl WaitChange {
    pub fn name(self) -> &'static str {
        match self {
            WaitChange::Worse => "worse",
            WaitChange::Better => "better",
            WaitChange::None => "none",
            WaitChange::New => "new",
            WaitChange::Gone => "gone",
        }
    }

    /// What an interval shows.
    fn certain(interval: Option<RatioInterval>) -> Option<WaitChange> {
        match interval? {
            [low, _] if low > 1.0 => Some(WaitChange::Worse),
            [_, high] if high < 1.0 => Some(WaitChange::Better),
            _ => None,
        }
    }
}

impl ComparedRow {
    /// How many more nanoseconds were waited per second.
    pub fn difference(&self) -> f64 {
        let rate = |figures: Option<WaitFigures>| figures.map_or(0.0, |figures| figures.rate);
        rate(self.new) - rate(self.old)
    }

    /// NEW divided by OLD: the means, and the times waited per second.
    pub fn ratios(&self) -> [Option<f64>; 2] {
        let [old, new] = [self.old, self.new].map(Option::unwrap_or_default);
        let ratio = |new: f64, old: f64| Some(new / old).filter(|ratio| ratio.is_finite());
        [ratio(new.waited as f64 / new.waits as f64, old.waited as f64 / old.waits as f64), ratio(new.rate, old.rate)]
    }
}

/// What threads waited for in one of the traces, which last as long as `spans` says: what became worst first.
pub fn compare(old: Vec<NamedWaits>, new: Vec<NamedWaits>, spans: [u64; 2]) -> Vec<ComparedRow> {
    let count = |side: &Option<NamedWaits>| side.as_ref().map_or(0, |waits| waits.wait.count());
    let has_waits = |pair: &[Option<NamedWaits>; 2]| pair.iter().any(|side| count(side) > 0);
    let pairs = matched(old, new).into_iter().filter(has_waits);
    let mut rows: Vec<(ComparedRow, [DurationHistogram; 2])> = pairs.map(|pair| row(pair, spans)).collect();
    rows.sort_by(|(a, _), (b, _)| {
        b.difference().abs().total_cmp(&a.difference().abs()).then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name)))
    });
    for (row, [old, new]) in rows.iter_mut().take(RESAMPLED_MAX) {
        if row.change == WaitChange::None {
            let [old, new] = [(old, spans[0]), (new, spans[1])].map(|(wait, span)| TimedWaits { wait, span });
            [row.mean_interval, row.rate_interval] = ratio_intervals(old, new);
            let change = WaitChange::certain(row.rate_interval).or(WaitChange::certain(row.mean_interval));
            row.change = change.unwrap_or(WaitChange::None);
        }
    }
    let mut rows: Vec<ComparedRow> = rows.into_iter().map(|(row, _)| row).collect();
    rows.sort_by(|a, b| b.difference().total_cmp(&a.difference()));
    rows
}

/// A row without intervals, and the waits.
fn row(pair: [Option<NamedWaits>; 2], spans: [u64; 2]) -> (ComparedRow, [DurationHistogram; 2]) {
    let figures = |side: &Option<NamedWaits>, span: u64| {
        let wait = &side.as_ref()?.wait;
        let rate = if span > 0 { wait.sum() as f64 * 1e9 / span as f64 } else { 0.0 };
        Some(WaitFigures { waits: wait.count(), waited: wait.sum(), rate })
    };
    let [old, new] = [figures(&pair[0], spans[0]), figures(&pair[1], spans[1])];
    let change = match (old, new) {
        (None, _) => WaitChange::New,
        (_, None) => WaitChange::Gone,
        _ => WaitChange::None,
    };
    let is_idle = pair.iter().flatten().any(|side| side.is_idle);
    let kind = pair.iter().flatten().map(|side| side.kind).next().unwrap_or_default();
    let [old_side, new_side] = pair.map(Option::unwrap_or_default);
    let (name, old_name) = match change {
        WaitChange::Gone => (old_side.name, None),
        WaitChange::New => (new_side.name, None),
        _ => (new_side.name.clone(), Some(old_side.name).filter(|name| *name != new_side.name)),
    };
    let row = ComparedRow { kind, name, old_name, old, new, mean_interval: None, rate_interval: None, change, is_idle };
    (row, [old_side.wait, new_side.wait])
}

/// By how many percent the mean wait, or the time waited per second, certainly increased where it increased most; 0 if nowhere.
/// Idleness does not count.
pub fn regression<'a>(rows: impl Iterator<Item = &'a ComparedRow>) -> f64 {
    let worse = rows.filter(|row| row.change == WaitChange::Worse && !row.is_idle);
    let lows = worse.flat_map(|row| [row.mean_interval, row.rate_interval]).flatten().map(|[low, _]| low);
    (lows.fold(1.0, f64::max) - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, waits: u64, duration: u64) -> NamedWaits {
        let mut wait = DurationHistogram::default();
        (0..waits).for_each(|index| wait.add(duration + duration * (index % 7) / 7));
        NamedWaits { kind: "mutex", name: name.to_owned(), wait, is_idle: false }
    }

    fn changes(rows: &[ComparedRow]) -> Vec<(&str, &str)> {
        rows.iter().map(|row| (row.name.as_str(), row.change.name())).collect()
    }

    #[test]
    fn what_is_certain_is_a_change() {
        let old = ["doubled", "halved", "same", "few", "gone", "rare"].map(|name| match name {
            "few" => named(name, 3, 1000),
            "rare" => named(name, 2, 10),
            "halved" => named(name, 500, 2000),
            _ => named(name, 500, 1000),
        });
        let new = ["new", "rare", "few", "same", "halved", "doubled"].map(|name| match name {
            "doubled" => named(name, 500, 2000),
            "few" => named(name, 3, 9000),
            "rare" => named(name, 500, 10),
            _ => named(name, 500, 1000),
        });
        let spans = [1_000_000_000; 2];
        let rows = compare(old.to_vec(), new.to_vec(), spans);
        let expected = [
            ("doubled", "worse"),
            ("new", "new"),
            ("few", "none"),
            ("rare", "worse"),
            ("same", "none"),
            ("gone", "gone"),
            ("halved", "better"),
        ];
        assert_eq!(changes(&rows), expected);
        let [low, high] = rows[0].mean_interval.unwrap();
        assert!(low > 1.9 && low < 2.0 && high > 2.0 && high < 2.1, "{low} {high}");
        // Of 2 waits, 20 are made, of which 500 are certainly the twentyfold.
        let regressed = regression(rows.iter());
        assert!((1900.0..2500.0).contains(&regressed), "{regressed}");
        // Twice the run has twice the waits.
        let longer = compare(vec![named("a", 500, 1000)], vec![named("a", 1000, 1000)], [1_000_000_000, 2_000_000_000]);
        assert_eq!((changes(&longer), regression(longer.iter())), (vec![("a", "none")], 0.0));
        let mut idle = [named("a", 500, 1000), named("a", 500, 5000)];
        idle.iter_mut().for_each(|waits| waits.is_idle = true);
        let [old, new] = idle.map(|waits| vec![waits]);
        let idle = compare(old, new, spans);
        assert_eq!((changes(&idle), regression(idle.iter())), (vec![("a", "worse")], 0.0));
    }
}
