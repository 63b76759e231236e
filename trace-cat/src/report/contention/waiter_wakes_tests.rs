//! Which wake-ups of a futex are by threads that wait for it at other times.

use std::collections::HashMap;

use spec::futex_locks::FUTEX_LOCKS;

use super::analysis::Analysis;
use super::analysis_tests::{RecordLine, record};
use super::wait_selection::WaitSelection;

const LOCK_SITE: u64 = 0x1000;
const SITE: u64 = 0x2000;

/// A wait of a thread for a word, and its end.
fn wait<'a>(time: u64, lwp: u32, entry: &'a [u64], result: &'a [u64]) -> [RecordLine<'a>; 2] {
    [(time, lwp, "10:1:1", entry), (time + 1, lwp, "10:1:2", result)]
}

/// Waits, wake-ups, those by waiters, and whether several threads waited, of the futex at an address.
fn counts(lines: &[RecordLine], selection: WaitSelection, address: u64) -> (u32, u32, u32, bool) {
    let mut analysis = Analysis::new(HashMap::new(), selection);
    for line in lines {
        analysis.add(&record(*line));
        if let Some(site) = analysis.unnamed_futex_site() {
            let is_lock = analysis.sites.sites[site as usize].address == LOCK_SITE;
            analysis.name_futex_site(Some(&FUTEX_LOCKS[0]).filter(|_| is_lock));
        }
    }
    analysis.finish(&[]);
    let object = analysis.objects.iter().find(|object| object.address == address).unwrap();
    let wakes = object.wakeups.waiter_wakes;
    (wakes.waits, wakes.wakes, wakes.by_waiters, wakes.has_several_waiters())
}

#[test]
fn who_has_waited_for_a_futex_wakes_others() {
    let of = |lines: &[RecordLine]| counts(lines, WaitSelection::default(), 64);
    let entry = &[64, 0x89, 2, 0, SITE][..];
    let [one, two, three] = [1, 2, 3].map(|lwp| wait(10 * u64::from(lwp), lwp, entry, &[]));
    let wakes = |time: u64, lwp: u32| (time, lwp, "10:2:0", &[64, 0x81, 1, 1][..]);
    // Thread 1 wakes before its first wait, and then twice as one that has waited; thread 9 never waits.
    let lines = [&[wakes(1, 1)][..], &one, &two, &[wakes(40, 1), wakes(41, 9), wakes(42, 2), wakes(43, 1)]].concat();
    assert_eq!(of(&lines), (2, 4, 3, true));
    // Workers of a queue.
    let lines = [&one[..], &two, &three, &[wakes(40, 9), wakes(41, 9)]].concat();
    assert_eq!(of(&lines), (3, 2, 0, true));
    // A thread that parks.
    let again = wait(50, 1, entry, &[]);
    assert_eq!(of(&[&one[..], &[wakes(40, 9)], &again].concat()), (2, 1, 0, false));
    // Neither who found the word changed has waited, nor who woke nobody has woken.
    let changed = [u64::MAX, libc::EAGAIN as u64];
    let no_wait = wait(10, 1, entry, &changed);
    let nobody = [(60, 2, "10:2:0", &[64, 0x81, 1, 0][..]), (61, 2, "10:2:0", &[64, 0x81, 1, u64::MAX, 22])];
    assert_eq!(of(&[&no_wait[..], &two, &nobody, &[wakes(70, 1)]].concat()), (1, 1, 0, false));
}

#[test]
fn a_thread_is_a_waiter_of_the_last_four_futexes() {
    let words: [[u64; 5]; 5] = [64, 72, 80, 88, 96].map(|address| [address, 0x89, 2, 0, SITE]);
    let of = |order: &[usize]| {
        let mut lines: Vec<RecordLine> = Vec::new();
        for (time, word) in (0..).zip(order) {
            lines.extend(wait(10 * time, 1, &words[*word], &[]));
        }
        lines.push((900, 1, "10:2:0", &[64, 0x81, 1, 1]));
        counts(&lines, WaitSelection::default(), 64).2
    };
    assert_eq!([of(&[0, 1, 2, 3]), of(&[0, 1, 2, 3, 4])], [1, 0]);
    // The same futex again is none more.
    assert_eq!([of(&[0, 1, 1, 2, 2, 3, 1]), of(&[0, 1, 2, 3, 0, 4])], [1, 1]);
}

/// Waits in the code of a lock are contention, and what is not selected is not counted.
#[test]
fn only_selected_idleness_counts() {
    let [lock, other] = [LOCK_SITE, SITE].map(|site| [64, 0x89, 2, 0, site]);
    let lines = [
        &wait(10, 1, &lock, &[])[..],
        &wait(20, 2, &other, &[]),
        &wait(30, 3, &other, &[]),
        &[(40, 1, "10:2:0", &[64, 0x81, 1, 1][..]), (50, 2, "10:2:0", &[64, 0x81, 1, 1])],
    ]
    .concat();
    assert_eq!(counts(&lines, WaitSelection::default(), 64), (2, 2, 1, true));
    let times = WaitSelection { times: 25..45, ..WaitSelection::default() };
    assert_eq!(counts(&lines, times, 64), (1, 1, 0, false));
    // Who has waited before is known.
    let times = WaitSelection { times: 25..55, ..WaitSelection::default() };
    assert_eq!(counts(&lines, times, 64), (1, 2, 1, false));
    let lwps = WaitSelection { lwps: vec![2], ..WaitSelection::default() };
    assert_eq!(counts(&lines, lwps, 64), (1, 2, 1, false));
}
