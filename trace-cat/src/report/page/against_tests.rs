//! Comparisons of random programs: what differs by chance alone, and what does not.

use super::sample_view::SampleView;
use crate::report::comparison::WaitChange;
use crate::report::contention::{AnalysisParts, NumericRecord};
use crate::testing::seeded_random::SeededRandom;

/// Eight threads take one mutex in turn, as often as `sections` says, and each holds it for a random time, a hundred times `scale` in
/// the middle. While one holds it long, all others wait: their waits are not independent.
fn queue(random: &mut SeededRandom, sections: usize, scale: f64) -> Vec<NumericRecord> {
    const SITE: u64 = 0x1500;
    let mut uniform = move || 1.0 - (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let mut records = Vec::new();
    let mut arrivals: Vec<u64> = (0..8).map(|thread| 1000 + 10 * thread).collect();
    let mut free = 0;
    for _ in 0..sections {
        let thread = (0..8).min_by_key(|thread| arrivals[*thread]).unwrap();
        let (arrival, is_late) = (arrivals[thread], arrivals[thread] < free);
        let begin = arrival.max(free) + 1;
        free = begin + 1 + (100.0 * scale * (1.2 * normal()).exp()) as u64;
        arrivals[thread] = free + 1 + (700.0 * (0.8 * normal()).exp()) as u64;
        let lwp = 1 + thread as u32;
        let mut add = |time, event, which, arguments| {
            records.push(NumericRecord { time, tid: lwp.into(), pid: 1, lwp, event, which, arguments });
        };
        add(arrival, (2, 2), 1, [0x10, 0, 0, 0, SITE]);
        add(begin, (2, 2), 2, [0, u64::from(is_late), 0, 0, 0]);
        add(free, (2, 4), 0, [0x10, 0, 0, 0, SITE]);
    }
    records.sort_by_key(|record| record.time);
    records
}

/// In how many of `pairs` comparisons something changed for worse, or for better.
fn changes(name: &str, pairs: usize, sections: usize, scale: f64) -> usize {
    let mut random = SeededRandom::seeded(name, 9);
    let has_changed = |_: &usize| {
        let records = [1.0, scale].map(|scale| queue(&mut random, sections, scale));
        let info = "format 1\npid 1\nexe /bin/a\nmap 0x1000 0x2000 0x500 0a0b0c /bin/a\n";
        let [old, new] = records.map(|records| SampleView::of_records(&records, info, AnalysisParts::COMPARED));
        let mut view = new.view();
        view.compare_with(&old.view());
        let comparison = view.comparison.as_ref().unwrap();
        assert_eq!(comparison.sites.len(), 1);
        matches!(comparison.sites[0].change, WaitChange::Worse | WaitChange::Better)
    };
    (0..pairs).filter(has_changed).count()
}

#[test]
fn chance_is_no_change_where_waits_come_together() {
    let found = changes("comparison of alike", 200, 400, 1.0);
    // Ten are expected.
    assert!(found <= 18, "{found} of 200");
}

#[test]
fn what_is_held_longer_is_a_change() {
    let found = [(1.3, 4000), (2.0, 1000)].map(|(scale, sections)| changes("held longer", 20, sections, scale));
    assert!(found.iter().all(|found| *found >= 18), "{found:?} of 20");
}
