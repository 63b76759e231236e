//! The figures of a name in both traces, and whether it became better or worse.

use super::matching::{NamedWaits, matched};
use super::variation::{RatioEstimate, RatioInterval, TimedWaits, ratios};
use crate::report::contention::{WaitBlock, WaitBlocks};

/// For how many rows there are intervals, which take time: those whose time waited per second differs most.
const ESTIMATED_MAX: usize = 500;

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
    /// NEW divided by OLD: the mean waits.
    pub mean: Option<RatioEstimate>,
    /// The same of the times waited per second of the trace.
    pub rate: Option<RatioEstimate>,
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
}

impl ComparedRow {
    /// How likely it is that chance alone makes either ratio differ from 1 as much; `None` if neither is known.
    pub fn chance(&self) -> Option<f64> {
        let known = self.estimates();
        // Each is another occasion.
        let count = known.clone().count() as f64;
        known.map(|estimate| estimate.chance * count).reduce(f64::min)
    }

    /// Sets the change, which is none if chance alone makes it more often than in `limit` of all cases.
    pub fn decide(&mut self, limit: f64) {
        let count = self.estimates().count() as f64;
        let certain = self.estimates().find(|estimate| estimate.chance * count <= limit);
        if let (WaitChange::None, Some(estimate)) = (self.change, certain) {
            self.change = if estimate.is_increase { WaitChange::Worse } else { WaitChange::Better };
        }
    }

    /// What is known of the time waited per second, and of the mean.
    fn estimates(&self) -> impl Iterator<Item = RatioEstimate> + Clone + use<> {
        [self.rate, self.mean].into_iter().flatten()
    }

    /// The intervals of the means, and of the times waited per second.
    pub fn intervals(&self) -> [Option<RatioInterval>; 2] {
        [self.mean, self.rate].map(|estimate| estimate.map(|estimate| estimate.interval))
    }

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

/// What threads waited for in one of the traces, which last as long as `spans` says: what became worst first. What a change is is
/// not decided yet.
pub fn compare(old: Vec<NamedWaits>, new: Vec<NamedWaits>, spans: [u64; 2]) -> Vec<ComparedRow> {
    let count = |side: &Option<NamedWaits>| side.as_ref().map_or(0, |waits| waits.blocks.total().waits);
    let has_waits = |pair: &[Option<NamedWaits>; 2]| pair.iter().any(|side| count(side) > 0);
    let pairs = matched(old, new).into_iter().filter(has_waits);
    let mut rows: Vec<(ComparedRow, [WaitBlocks; 2])> = pairs.map(|pair| row(pair, spans)).collect();
    rows.sort_by(|(a, _), (b, _)| {
        b.difference().abs().total_cmp(&a.difference().abs()).then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name)))
    });
    for (row, [old, new]) in rows.iter_mut().take(ESTIMATED_MAX) {
        if row.change == WaitChange::None {
            let [old, new] = [(old, spans[0]), (new, spans[1])].map(|(blocks, span)| TimedWaits { blocks, span });
            [row.mean, row.rate] = ratios(old, new);
        }
    }
    let mut rows: Vec<ComparedRow> = rows.into_iter().map(|(row, _)| row).collect();
    rows.sort_by(|a, b| b.difference().total_cmp(&a.difference()));
    rows
}

/// A row without intervals, and the waits.
fn row(pair: [Option<NamedWaits>; 2], spans: [u64; 2]) -> (ComparedRow, [WaitBlocks; 2]) {
    let figures = |side: &Option<NamedWaits>, span: u64| {
        let WaitBlock { waits, waited } = side.as_ref()?.blocks.total();
        let rate = if span > 0 { waited as f64 * 1e9 / span as f64 } else { 0.0 };
        Some(WaitFigures { waits, waited, rate })
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
    let row = ComparedRow { kind, name, old_name, old, new, mean: None, rate: None, change, is_idle };
    (row, [old_side.blocks, new_side.blocks])
}

/// By how many percent the mean wait, or the time waited per second, certainly increased where it increased most; 0 if nowhere.
/// Idleness does not count.
pub fn regression<'a>(rows: impl Iterator<Item = &'a ComparedRow>) -> f64 {
    let worse = rows.filter(|row| row.change == WaitChange::Worse && !row.is_idle);
    let lows = worse.flat_map(ComparedRow::intervals).flatten().map(|[low, _]| low);
    (lows.fold(1.0, f64::max) - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::super::trace_comparison::TraceComparison;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Waits at equal distances in a time.
    fn named(name: &str, waits: u64, duration: u64, time: u64) -> NamedWaits {
        let mut blocks = WaitBlocks::default();
        (0..waits).for_each(|index| blocks.add(time / waits * index, duration + duration * (index % 7) / 7));
        NamedWaits { kind: "mutex", name: name.to_owned(), blocks, is_idle: false }
    }

    fn compared(old: Vec<NamedWaits>, new: Vec<NamedWaits>, spans: [u64; 2]) -> Vec<ComparedRow> {
        TraceComparison::new([compare(old, new, spans), Vec::new()], spans.map(Some), 0).objects
    }

    fn changes(rows: &[ComparedRow]) -> Vec<(&str, &str)> {
        rows.iter().map(|row| (row.name.as_str(), row.change.name())).collect()
    }

    #[test]
    fn what_is_certain_is_a_change() {
        let old = ["doubled", "halved", "same", "few", "gone", "rare"].map(|name| match name {
            "few" => named(name, 3, 1000, SECOND),
            "rare" => named(name, 2, 10, SECOND),
            "halved" => named(name, 500, 2000, SECOND),
            _ => named(name, 500, 1000, SECOND),
        });
        let new = ["new", "rare", "few", "same", "halved", "doubled"].map(|name| match name {
            "doubled" => named(name, 500, 2000, SECOND),
            "few" => named(name, 3, 9000, SECOND),
            "rare" => named(name, 500, 10, SECOND),
            _ => named(name, 500, 1000, SECOND),
        });
        let spans = [SECOND; 2];
        let rows = compared(old.to_vec(), new.to_vec(), spans);
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
        let [low, high] = rows[0].mean.unwrap().interval;
        assert!(low > 1.9 && low < 2.0 && high > 2.0 && high < 2.1, "{low} {high}");
        // Of 2 waits, 20 are made, of which 500 are the twentyfold.
        let regressed = regression(rows.iter());
        assert!((700.0..2500.0).contains(&regressed), "{regressed}");
        // Twice the run has twice the waits.
        let longer = [named("a", 500, 1000, SECOND), named("a", 1000, 1000, 2 * SECOND)].map(|waits| vec![waits]);
        let [old, new] = longer;
        let longer = compared(old, new, [SECOND, 2 * SECOND]);
        assert_eq!((changes(&longer), regression(longer.iter())), (vec![("a", "none")], 0.0));
        let mut idle = [named("a", 500, 1000, SECOND), named("a", 500, 5000, SECOND)];
        idle.iter_mut().for_each(|waits| waits.is_idle = true);
        let [old, new] = idle.map(|waits| vec![waits]);
        let idle = compared(old, new, spans);
        assert_eq!((changes(&idle), regression(idle.iter())), (vec![("a", "worse")], 0.0));
    }

    #[test]
    fn of_many_that_did_not_change_none_is_called_a_change() {
        // One of a thousand differs as far by chance in one of twenty cases.
        let estimate = |chance| RatioEstimate { interval: [1.01, 1.5], chance, is_increase: true };
        let rows = |count: usize, chance: f64| -> Vec<ComparedRow> {
            let rows = |index: usize| {
                let mut row = row([named("a", 5, 5, 99), named("a", 5, 5, 99)].map(Some), [99; 2]).0;
                row.rate = Some(estimate(if index == 0 { chance } else { 0.5 }));
                row
            };
            (0..count).map(rows).collect()
        };
        for (count, chance, expected) in
            [(1, 0.04, "worse"), (2, 0.04, "none"), (1000, 1e-4, "none"), (1000, 4e-5, "worse")]
        {
            let comparison =
                TraceComparison::new([rows(count / 2, 0.5), rows(count.div_ceil(2), chance)], [Some(99); 2], 0);
            assert_eq!(comparison.sites[0].change.name(), expected, "{count} {chance}");
            assert!(comparison.objects.iter().all(|row| row.change == WaitChange::None));
        }
        // Where half has changed, the other half is asked less.
        let mut all = rows(10, 0.02);
        all[..5].iter_mut().for_each(|row| row.rate = Some(estimate(0.02)));
        let comparison = TraceComparison::new([all, Vec::new()], [Some(99); 2], 0);
        let worse = comparison.objects.iter().filter(|row| row.change == WaitChange::Worse).count();
        assert_eq!(worse, 5);
    }

    #[test]
    fn a_single_burst_shows_no_variation() {
        let burst = |duration: u64| {
            let mut waits = named("a", 0, 0, 1);
            (0..500).for_each(|_| waits.blocks.add(SECOND / 2, duration));
            vec![waits]
        };
        let rows = compared(burst(1000), burst(3000), [SECOND; 2]);
        assert_eq!((changes(&rows), rows[0].intervals()), (vec![("a", "none")], [None, None]));
    }
}
