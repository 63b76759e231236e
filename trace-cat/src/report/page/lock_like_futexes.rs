//! Futexes that count as idleness, and whose waiters wake each other as those of a lock do: locks of programs without symbols, perhaps.

use std::cmp::Reverse;

use super::view::ReportView;
use crate::report::contention::{ObjectKind, ObjectState, WaiterWakes};
use crate::support::duration::duration_text;

/// The fewest waits that show what threads do.
const WAITS_MIN: u32 = 100;
/// The smallest share of wake-ups by threads that wait there, too, in percent. docs/decisions.md has the shares of programs.
const BY_WAITERS_MIN: u64 = 80;
/// The most waits that a wake-up ends on average: who wakes all that wait is likely to be the last to arrive, as at a barrier.
const WAITS_PER_WAKE: u64 = 4;
/// The most futexes that the page names.
const LINES_MAX: usize = 3;

impl ReportView<'_> {
    /// What is known of the wake-ups of a futex, if waits for it were idleness.
    pub fn waiter_wakes(&self, object: &ObjectState) -> Option<WaiterWakes> {
        let is_futex = object.kind == ObjectKind::Futex && !self.analysis.selection.only_contention;
        Some(object.wakeups.waiter_wakes).filter(|wakes| is_futex && wakes.waits > 0)
    }

    /// Whether those who wait for a futex wake each other as the waiters of a lock do. Other programs' threads may, too.
    pub fn is_like_lock(&self, object: &ObjectState) -> bool {
        self.waiter_wakes(object).is_some_and(|known| {
            let [waits, wakes, by_waiters] = [known.waits, known.wakes, known.by_waiters].map(u64::from);
            let is_often = known.waits >= WAITS_MIN && known.has_several_waiters() && wakes * WAITS_PER_WAKE >= waits;
            is_often && by_waiters * 100 >= wakes * BY_WAITERS_MIN
        })
    }

    /// The selected ones, those with the most idleness first.
    fn lock_like_futexes(&self) -> Vec<u32> {
        let is_like_lock = |index: &u32| self.is_like_lock(self.object(*index));
        let mut futexes: Vec<u32> = self.objects.iter().copied().filter(is_like_lock).collect();
        futexes.sort_by_key(|index| Reverse(self.object(*index).figures.idleness));
        futexes
    }
}

/// Appends the futexes that may be locks, and the command that shows where threads wait for the first one.
pub fn append_lock_like(view: &ReportView, paths: &str, text: &mut String) {
    let futexes = view.lock_like_futexes();
    for (index, futex) in futexes.iter().take(LINES_MAX).map(|index| view.object(*index)).enumerate() {
        let label = view.object_label(futexes[index]) + &view.process_suffix(futexes[index]);
        let (waits, idleness) = (futex.figures.wait.count(), duration_text(futex.figures.idleness));
        *text += if index == 0 { "lock-like   " } else { "            " };
        *text += &format!("{label}: {waits} waits, {idleness}, counted as idleness;\n");
        *text += "            its waiters wake each other as those of a lock do\n";
    }
    let others = futexes.len().saturating_sub(LINES_MAX);
    if others > 0 {
        *text += &format!("            and {others} more such futexes\n");
    }
    if let Some(first) = futexes.first() {
        let object = view.object_option(*first);
        *text += "            where threads wait for the first one:\n";
        *text += &format!("              trace-cat report --by site {object} {paths}\n");
    }
}

#[cfg(test)]
mod tests {
    use spec::futex_locks::FUTEX_LOCKS;

    use super::super::sample_view::{INFO, SampleView};
    use super::*;
    use crate::report::contention::{AnalysisParts, NumericRecord};

    /// Threads 1 and 2 wait in turn for the futex at an address, and of ten wake-ups this many are by who waits there; the others are
    /// by thread 3.
    fn turns(address: u32, waits: u32, by_waiters: u32) -> String {
        let turn = |turn: u32| {
            let (time, waiter) = (address * 10_000 + turn * 10, 1 + turn % 2);
            let waker = if turn % 10 < by_waiters { 3 - waiter } else { 3 };
            format!(
                "{time}:{waiter}:10:01:1:{address:#x}:137:2:0:0x1500\n\
                 {}:{waker}:10:02:0:{address:#x}:129:1:1:0\n{}:{waiter}:10:01:2:0:0:0:0:0\n",
                time + 5,
                time + 6 + address
            )
        };
        (0..waits).map(turn).collect()
    }

    fn page(sample: &SampleView) -> String {
        let mut text = String::new();
        append_lock_like(&sample.view(), "DIR", &mut text);
        text
    }

    fn lines(lines: &str) -> String {
        page(&SampleView::new(lines, INFO))
    }

    #[test]
    fn futexes_whose_waiters_wake_each_other_are_named() {
        let line = "lock-like   futex first used in a b+0xa00 0x1: 120 waits, 840 ns, counted as idleness;\n            \
                    its waiters wake each other as those of a lock do\n            \
                    where threads wait for the first one:\n              \
                    trace-cat report --by site --object 0x1 DIR\n";
        assert_eq!(lines(&turns(1, 120, 10)), line);
        assert_eq!(lines(&turns(1, 120, 9)), line);
        let open = turns(1, 120, 10) + "99000:1:10:01:1:0x1:137:2:0:0x1500\n";
        assert_eq!(lines(&open), line.replace("120 waits", "121 waits"), "as the tables count them");
        assert_eq!(lines(&turns(1, 120, 7)), "");
        assert_eq!(lines(&turns(1, 120, 0)), "", "a queue, whose workers wake nobody");
        assert_eq!(lines(&turns(1, 90, 10)), "", "too few to know");
        let alone = turns(1, 240, 0).replace(":2:10:", ":1:10:").replace(":3:10:", ":1:10:");
        assert_eq!(lines(&alone), "", "one thread waits, as where each parks at a word of its own");
    }

    /// A forked child has its own at the same address.
    #[test]
    fn processes_have_their_own() {
        let of_process = |pid: u32, lines: String| -> Vec<NumericRecord> {
            let record = |line: &str| {
                let [time, lwp, event] = line.splitn(3, ':').collect::<Vec<&str>>()[..] else { panic!("{line}") };
                let lwp = 10 * pid + lwp.parse::<u32>().unwrap();
                let line = format!("1795174740:{time:0>9}:{lwp:0>7}:{pid:0>7}:0x{lwp:0>12}:{event}\n");
                NumericRecord::parse(line.as_bytes()).unwrap()
            };
            lines.lines().map(record).collect()
        };
        let mut records = [of_process(1, turns(1, 120, 10)), of_process(2, turns(1, 130, 10))].concat();
        records.sort_by_key(|record| record.time);
        let text = page(&SampleView::of_records(&records, INFO, AnalysisParts::ALL));
        for expected in [" 0x1 of 2: 130 waits", " 0x1 of 1: 120 waits", "--by site -p 2 --object 0x1 DIR"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn wake_ups_of_all_who_wait_are_no_releases() {
        let all = |threads: u64| -> String {
            let round = |round: u64| -> String {
                let time = round * 100;
                let last = 1 + round % threads;
                let waiters: Vec<u64> = (1..=threads).filter(|lwp| *lwp != last).collect();
                let entry = |lwp: &u64| format!("{}:{lwp}:10:01:1:0x1:137:2:0:0x1500\n", time + lwp);
                let end = |lwp: &u64| format!("{}:{lwp}:10:01:2:0:0:0:0:0\n", time + 60 + lwp);
                let wake = format!("{}:{last}:10:02:0:0x1:129:9:{}:0\n", time + 50, threads - 1);
                waiters.iter().map(entry).collect::<String>() + &wake + &waiters.iter().map(end).collect::<String>()
            };
            (0..60).map(round).collect()
        };
        assert_eq!(lines(&all(8)), "");
        assert!(
            lines(&all(3)).starts_with("lock-like   futex first used in a b+0xa00 0x1: 120 waits"),
            "{}",
            lines(&all(3))
        );
    }

    #[test]
    fn those_with_the_most_idleness_are_named() {
        let all: String = (1..=5).map(|address| turns(address, 100, 10)).collect();
        let sample = SampleView::new(&all, INFO);
        let text = page(&sample);
        let named: Vec<usize> = (1..=5).filter_map(|address| text.find(&format!(" {address:#x}: 100 waits"))).collect();
        assert!(named.len() == 3 && named.is_sorted_by(|a, b| a > b), "{text}");
        assert!(
            text.contains("            and 2 more such futexes\n") && text.ends_with("--object 0x5 DIR\n"),
            "{text}"
        );
        let document = sample.document();
        let objects = document["objects"].as_array().unwrap();
        let known = |key: &str| objects.iter().map(|object| object[key].clone()).collect::<Vec<_>>();
        // Before the first wait has ended, nothing is counted.
        assert_eq!([known("wakes"), known("wakes_by_waiters")], [[99; 5], [99; 5]]);
        assert_eq!(known("like_lock"), [true; 5]);
    }

    #[test]
    fn nothing_is_known_where_idleness_is_left_out() {
        let mut sample = SampleView::new(&turns(1, 120, 10), INFO);
        // Some waits for the word may be known to be for a lock.
        let word = sample.analysis.objects.numbers().next().unwrap();
        sample.analysis.objects[word as usize].futex_lock = Some(Some(&FUTEX_LOCKS[0]));
        sample.analysis.objects[word as usize].figures.contention = 1;
        assert!(page(&sample).starts_with("lock-like   std Mutex "), "{}", page(&sample));
        sample.analysis.selection.only_contention = true;
        assert_eq!((page(&sample).as_str(), sample.view().objects.len()), ("", 1));
        let mutex = SampleView::new(super::super::sample_view::WAITS, INFO).document();
        for key in ["wakes", "wakes_by_waiters", "like_lock"] {
            assert!(mutex["objects"][0][key].is_null());
        }
    }
}
