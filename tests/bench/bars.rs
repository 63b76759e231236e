//! The bars: what recording may cost, compared with the medians of one run.

use crate::figures::Cell;
use crate::programs::Program;
use crate::results::Results;
use crate::ways::Way;
use crate::workloads::{Kind, Workload};

/// A goal, and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What is compared.
    pub what: String,
    /// The measured value, or why there is none.
    pub value: Result<f64, String>,
    /// What it may be at most.
    pub most: f64,
    /// Of both; a ratio has none.
    pub unit: &'static str,
}

impl Bar {
    /// Whether it was met; None if it could not be measured.
    pub fn met(&self) -> Option<bool> {
        self.value.as_ref().ok().map(|&value| value <= self.most)
    }
}

/// One way in one workload.
type Place<'a> = (&'a str, Way);

struct Bars<'a> {
    results: &'a Results,
    bars: Vec<Bar>,
}

impl Bars<'_> {
    fn median(&self, (workload, way): Place, column: fn(&Cell) -> Option<f64>) -> Result<f64, String> {
        match self.results.cell(workload, way) {
            None => Err(format!("{} of {workload} was not asked for", way.name())),
            Some(Cell::Not(reason)) => Err(format!("{} of {workload}: {reason}", way.name())),
            Some(cell) => column(cell).ok_or_else(|| format!("{} of {workload} was not run", way.name())),
        }
    }

    /// Ours as a part of the other's.
    fn ratio(&mut self, what: String, ours: Place, theirs: Place, column: fn(&Cell) -> Option<f64>, most: f64) {
        let value = self.median(ours, column).and_then(|ours| Ok(ours / self.median(theirs, column)?));
        self.bars.push(Bar { what, value, most, unit: "" });
    }

    /// How much more the stacks are than the same without them.
    fn more_by_stacks(&mut self, what: &str, workload: &str, most: f64) {
        let value = self.median((workload, Way::Stack), Cell::figure).and_then(|stack| {
            let detail = self.median((workload, Way::Detail), Cell::figure)?;
            Ok(stack - detail)
        });
        self.bars.push(Bar { what: format!("{workload}: stack - detail, {what}"), value, most, unit: "ns" });
    }

    /// How much more ours is than native, divided by `share`.
    fn more(&mut self, what: String, ours: Place, share: f64, most: f64, unit: &'static str) {
        let native = (ours.0, Way::Native);
        let value = self.median(ours, Cell::figure).and_then(|ours| {
            let native = self.median(native, Cell::figure)?;
            Ok((ours - native) / share)
        });
        self.bars.push(Bar { what, value, most, unit });
    }
}

/// All bars of the selected workloads and ways.
pub fn bars(results: &Results) -> Vec<Bar> {
    let mut bars = Bars { results, bars: Vec::new() };
    let asked = |name: &str| results.workloads.iter().any(|workload| workload.name == name);
    let figure = Cell::figure;

    for (workload, peer, most) in [
        ("mutex-1", Way::Lttng, 0.60),
        ("mutex-1", Way::Uftrace, 0.60),
        ("mutex-2", Way::Lttng, 0.60),
        ("shared-2", Way::Lttng, 1.00),
    ] {
        if asked(workload) {
            let what = format!("{workload}: default / {}", peer.name());
            bars.ratio(what, (workload, Way::Default), (workload, peer), figure, most);
        }
    }
    for workload in ["mutex-1", "mutex-2"].into_iter().filter(|name| asked(name)) {
        let what = format!("{workload}: CPU seconds of all processes, default / lttng");
        bars.ratio(what, (workload, Way::Default), (workload, Way::Lttng), Cell::cpu, 0.40);
    }
    if asked("mutex-1") {
        let (ours, theirs) = (("mutex-1", Way::Ring), ("mutex-1", Way::LttngOverwrite));
        bars.ratio("mutex-1: ring / lttng-overwrite".to_owned(), ours, theirs, figure, 0.35);
        // Nothing of ours but the encoding, the clock and one more system call.
        bars.ratio(
            "mutex-1: buf / buf-floor".to_owned(),
            ("mutex-1", Way::Buf),
            ("mutex-1", Way::BufFloor),
            figure,
            1.2,
        );
        bars.more("mutex-1: blocked - native, a pair".to_owned(), ("mutex-1", Way::Blocked), 1.0, 8.0, "ns");
        bars.more_by_stacks("a pair", "mutex-1", 1.0);
    }
    for (workload, most) in [("stack-16", 1500.0), ("stack-16-fp", 300.0)].into_iter().filter(|(name, _)| asked(name)) {
        bars.more_by_stacks("16 frames", workload, most);
    }
    let pairs = ["mutex-1", "recursive-1", "rwlock-1", "semaphore-1", "function-1"];
    for workload in pairs.into_iter().filter(|name| asked(name)) {
        // Two calls a turn; of a function, those that the compiler inserts at its beginning and its end.
        bars.more(format!("{workload}: nothing enabled - native, a call"), (workload, Way::Off), 2.0, 3.0, "ns");
    }
    if asked("system-call-1") {
        for (way, what) in [(Way::Off, "nothing enabled"), (Way::Default, "default")] {
            bars.more(format!("system-call-1: {what} - native, a call"), ("system-call-1", way), 1.0, 2.0, "ns");
        }
    }
    for (workload, most) in [("create-old", 20.0), ("create-new", 60.0)].into_iter().filter(|(name, _)| asked(name)) {
        let what = format!("{workload}: default - native, a thread");
        bars.more(what, (workload, Way::Default), 1000.0, most, "us");
    }
    for Workload { name, kind, .. } in &results.workloads {
        match kind {
            Kind::Memory { threads, .. } => {
                let most = (160 * threads + 2048) as f64;
                bars.more(format!("{name}: default - native"), (name, Way::Default), 1.0, most, "KiB");
            }
            Kind::Forks { most, .. } => {
                let what = format!("{name}: default - native, a child's processor time");
                bars.more(what, (name, Way::Default), 1000.0, *most, "us");
                // Children that record nothing fault in a few pages of the library.
                let what = format!("{name}: nothing enabled - native, a child's processor time");
                bars.more(what, (name, Way::Off), 1000.0, most / 6.0, "us");
            }
            // It hardly does anything but take free locks: there is no goal.
            Kind::Program(Program::NodeTls) => {}
            Kind::Program(_) => {
                let what = format!("{name}: wall time, default / native");
                bars.ratio(what, (name, Way::Default), (name, Way::Native), figure, 1.05);
            }
            _ => {}
        }
    }
    bars.bars
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Sample;
    use crate::workloads::WORKLOADS;

    fn results(figures: &[(&str, Way, f64)]) -> Results {
        let mut results = Results::new(WORKLOADS.to_vec(), Way::ALL.to_vec());
        for &(workload, way, figure) in figures {
            let sample = Sample { figure, cpu: figure / 100.0, ..Sample::default() };
            results.cell_mut(workload, way).unwrap().add(Ok(sample));
        }
        results
    }

    #[track_caller]
    fn bar(bars: &[Bar], what: &str) -> Bar {
        bars.iter().find(|bar| bar.what == what).unwrap_or_else(|| panic!("no '{what}' in {bars:#?}")).clone()
    }

    #[test]
    fn ratios_and_differences() {
        let mut results = results(&[
            ("mutex-1", Way::Native, 20.0),
            ("mutex-1", Way::Off, 27.0),
            ("mutex-1", Way::Blocked, 28.0),
            ("mutex-1", Way::Default, 120.0),
            ("mutex-1", Way::Lttng, 200.0),
            ("function-1", Way::Native, 5.0),
            ("function-1", Way::Off, 10.0),
            ("system-call-1", Way::Native, 60.0),
            ("system-call-1", Way::Off, 61.5),
            ("system-call-1", Way::Default, 62.5),
            ("create-old", Way::Native, 10_000.0),
            ("create-old", Way::Default, 25_000.0),
            ("sort", Way::Native, 1.0),
            ("sort", Way::Default, 1.06),
        ]);
        let bars = bars(&results);
        let lttng = bar(&bars, "mutex-1: default / lttng");
        assert_eq!((lttng.value.clone(), lttng.met()), (Ok(0.6), Some(true)));
        let cpu = bar(&bars, "mutex-1: CPU seconds of all processes, default / lttng");
        assert_eq!((cpu.most, cpu.met()), (0.4, Some(false)));
        let off = bar(&bars, "mutex-1: nothing enabled - native, a call");
        assert_eq!((off.value.clone(), off.met()), (Ok(3.5), Some(false)));
        assert_eq!(bar(&bars, "function-1: nothing enabled - native, a call").value, Ok(2.5));
        assert_eq!(bar(&bars, "mutex-1: blocked - native, a pair").met(), Some(true));
        let system_call = |way| bar(&bars, &format!("system-call-1: {way} - native, a call")).met();
        assert_eq!([system_call("nothing enabled"), system_call("default")], [Some(true), Some(false)]);
        assert_eq!(bar(&bars, "create-old: default - native, a thread").value, Ok(15.0));
        assert_eq!(bar(&bars, "sort: wall time, default / native").met(), Some(false));

        results.cell_mut("mutex-1", Way::Lttng).unwrap().add(Err("no daemon".to_owned()));
        let lttng = bar(&super::bars(&results), "mutex-1: default / lttng");
        assert_eq!((lttng.value.clone(), lttng.met()), (Err("lttng of mutex-1: no daemon".to_owned()), None));
        assert_eq!(bar(&super::bars(&results), "mutex-1: ring / lttng-overwrite").met(), None);
    }

    #[test]
    fn only_of_what_was_asked_for() {
        let some = Results::new(WORKLOADS[..1].to_vec(), vec![Way::Native, Way::Default]);
        let bars = bars(&some);
        assert!(bars.iter().all(|bar| bar.what.starts_with("mutex-1:") && bar.met().is_none()), "{bars:#?}");
        assert!(!bars.is_empty());
    }
}
