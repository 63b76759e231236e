//! Waits for locks of which only releases are recorded, by who held them.

use std::collections::{BTreeMap, HashMap};

use spec::futex_locks::{FUTEX_LOCKS, FutexLock};

use super::analysis::Analysis;
use super::analysis_tests::{RecordLine, blamed, figures, record};
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::path_tests::{PathFigures, path_figures};
use super::wait_selection::WaitSelection;
use crate::testing::seeded_random::SeededRandom;

const WAIT: &str = "10:1:1";
const RETURN: &str = "10:1:2";
const WAKE: &str = "10:2:0";
const WAIT_OP: u64 = 0x89;
const WAKE_OP: u64 = 0x81;
/// Sites of waits, by the functions that these are in.
const SITES: [(u64, &str); 4] = [
    (0x1000, "std::sys::sync::mutex::futex::Mutex::lock_contended"),
    (0x2000, "std::sys::sync::rwlock::futex::RwLock::read_contended"),
    (0x3000, "std::sys::sync::rwlock::futex::RwLock::write_contended"),
    (0x4000, "parking_lot::raw_mutex::RawMutex::lock_slow"),
];
const MUTEX_SITE: u64 = SITES[0].0;

fn lock_at(site: u64) -> Option<&'static FutexLock> {
    let (_, function) = SITES.iter().find(|(address, _)| *address == site)?;
    FUTEX_LOCKS.iter().find(|lock| lock.function == *function)
}

fn analysed(records: impl IntoIterator<Item = NumericRecord>, knowledge: Knowledge) -> Analysis {
    let mut analysis = Analysis::new(HashMap::from([(1, knowledge)]), WaitSelection::default());
    for record in records {
        analysis.add(&record);
        if let Some(site) = analysis.unnamed_futex_site() {
            analysis.name_futex_site(lock_at(analysis.sites.sites[site as usize].address));
        }
    }
    analysis.finish(&[]);
    analysis
}

fn analysed_lines(lines: &[RecordLine]) -> Analysis {
    analysed(lines.iter().map(|line| record(*line)), Knowledge::default())
}

/// Who is blamed for waits for words, each with the nanoseconds.
fn blame(analysis: &Analysis, words: &[u64]) -> Vec<Vec<(u32, u64)>> {
    let of = |word: &u64| blamed(analysis, *word).into_iter().map(|(lwp, _, time)| (lwp, time)).collect();
    words.iter().map(of).collect()
}

/// One holds the lock for long, and three wait, who have it in turn for a moment.
#[test]
fn a_chain_of_waiters_blames_who_held_the_lock_for_long() {
    let analysis = analysed_lines(&[
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (12, 3, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (14, 4, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (210, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (213, 2, RETURN, &[]),
        (214, 2, WAKE, &[64, WAKE_OP, 1, 1]),
        (216, 3, RETURN, &[]),
        (219, 3, WAKE, &[64, WAKE_OP, 1, 1]),
        (220, 4, RETURN, &[]),
    ]);
    assert_eq!(blame(&analysis, &[64]), [[(1, 200 + 198 + 196), (2, 1 + 1), (3, 3)]]);
    assert_eq!(figures(&analysis, 64), (3, 203 + 204 + 206, 0, 3 + (3 + 2) + (3 + 2 + 1), 0));
}

/// The thread that was woken finds the lock taken again by one that made no call.
#[test]
fn who_takes_the_lock_before_the_thread_that_was_woken_has_it() {
    let analysis = analysed_lines(&[
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (20, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (25, 2, RETURN, &[]),
        (26, 2, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (90, 3, WAKE, &[64, WAKE_OP, 1, 1]),
        (95, 2, RETURN, &[]),
    ]);
    assert_eq!(blame(&analysis, &[64]), [[(1, 10), (3, 64)]]);
    assert_eq!(figures(&analysis, 64), (2, 84, 0, 10, 0));
}

/// A release that found nobody asleep was one all the same.
#[test]
fn a_release_that_woke_nobody_ends_a_hold() {
    let analysis = analysed_lines(&[
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (20, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (21, 4, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (25, 2, RETURN, &[]),
        (30, 2, WAKE, &[64, WAKE_OP, 1, 0]),
        (70, 3, WAKE, &[64, WAKE_OP, 1, 1]),
        (71, 4, RETURN, &[]),
    ]);
    assert_eq!(blame(&analysis, &[64]), [[(1, 10), (2, 5), (3, 40)]]);
}

/// The figures of the critical path of the process that the lines are of.
fn path(lines: &[RecordLine]) -> PathFigures {
    let mut analysis = analysed_lines(lines);
    analysis.find_critical_paths().unwrap();
    path_figures(&analysis, 0)
}

/// From when on somebody waits, who releases the lock has held it.
#[test]
fn holds_that_releases_show_are_on_the_critical_path() {
    let lines: [RecordLine; 8] = [
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (60, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (62, 2, RETURN, &[]),
        (70, 1, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (100, 2, WAKE, &[64, WAKE_OP, 1, 1]),
        (103, 1, RETURN, &[]),
        (130, 1, "11:4:0", &[0]),
    ];
    assert_eq!(path(&lines), ([80, 50, 0], vec![(64, 80, 2)], vec![(1, 90), (2, 40)]));
    // One lock inside the other: what the thread releases first is not all that it holds.
    let mut nested: Vec<RecordLine> = vec![
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (20, 3, WAIT, &[128, WAIT_OP, 2, 0, MUTEX_SITE]),
        (40, 1, WAKE, &[128, WAKE_OP, 1, 1]),
        (60, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (80, 1, "11:4:0", &[0]),
    ];
    assert_eq!(path(&nested), ([50, 30, 0], vec![(64, 50, 1), (128, 20, 1)], vec![(1, 80)]));
    // Nobody knows whether it held the mutex meanwhile or at another time.
    nested.insert(3, (22, 1, "2:2:1", &[16]));
    nested.insert(4, (22, 1, "2:2:2", &[0, 0]));
    nested.insert(5, (28, 1, "2:4:0", &[16, 0, 0]));
    assert_eq!(path(&nested), ([50, 24, 6], vec![(16, 6, 1), (64, 50, 1), (128, 20, 1)], vec![(1, 80)]));
    // A wake-up without a waiter shows no hold.
    let alone: Vec<RecordLine> =
        vec![(0, 1, "1:4:0", &[]), (60, 1, WAKE, &[64, WAKE_OP, 1, 0]), (80, 1, "11:4:0", &[0])];
    assert_eq!(path(&alone), ([0, 80, 0], vec![], vec![(1, 80)]));
}

/// Those who wait to read and those who wait to write wait for different words of one lock.
#[test]
fn readers_blame_the_writers_that_were_before_them() {
    let analysis = analysed_lines(&[
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[68, WAIT_OP, 0, 0, 0x3000]),
        (10, 3, WAIT, &[64, WAIT_OP, 0, 0, 0x2000]),
        (50, 1, WAKE, &[68, WAKE_OP, 1, 1]),
        (50, 2, RETURN, &[]),
        (80, 2, WAKE, &[64, WAKE_OP, 1, 1]),
        (80, 3, RETURN, &[]),
    ]);
    assert_eq!(blame(&analysis, &[64, 68]), [vec![(1, 40), (2, 30)], vec![(1, 40)]]);
}

/// Each thread waits for a word of its own: who had the lock before the waker is not known.
#[test]
fn words_of_threads_show_only_the_last_holder() {
    let analysis = analysed_lines(&[
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 0, 0, 0x4000]),
        (15, 3, WAIT, &[72, WAIT_OP, 0, 0, 0x4000]),
        (50, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (52, 2, RETURN, &[]),
        (60, 2, WAKE, &[72, WAKE_OP, 1, 1]),
        (61, 3, RETURN, &[]),
    ]);
    assert_eq!(blame(&analysis, &[64, 72]), [[(1, 40)], [(2, 8)]]);
    assert_eq!(figures(&analysis, 72), (1, 46, 0, 1, 37));
}

/// Each thread waits for a word of its own: what was between its own wake-ups is no handoff, since a release that wakes another
/// thread shows nothing of the lock.
#[test]
fn between_two_wake_ups_by_words_of_threads_nothing_is_known() {
    let analysis = analysed_lines(&[
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 0, 0, 0x4000]),
        (11, 3, WAIT, &[72, WAIT_OP, 0, 0, 0x4000]),
        (20, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (22, 2, RETURN, &[]),
        (25, 2, WAIT, &[64, WAIT_OP, 0, 0, 0x4000]),
        (90, 4, WAKE, &[72, WAKE_OP, 1, 1]),
        (91, 3, RETURN, &[]),
        (99, 3, WAKE, &[64, WAKE_OP, 1, 1]),
        (101, 2, RETURN, &[]),
    ]);
    assert_eq!(blame(&analysis, &[64]), [[(1, 10), (3, 8)]]);
    assert_eq!(figures(&analysis, 64), (2, 12 + 76, 0, 2 + 2, 66));
}

/// Nothing is said of the time in which records are missing, nor after the last release before a time limit.
#[test]
fn what_no_release_shows_is_unknown() {
    let lines: [RecordLine; 6] = [
        (0, 1, "1:4:0", &[]),
        (10, 2, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]),
        (12, 3, WAIT, &[64, WAIT_OP, 2, 9, MUTEX_SITE]),
        (40, 1, WAKE, &[64, WAKE_OP, 1, 1]),
        (41, 2, RETURN, &[]),
        (60, 3, RETURN, &[u64::MAX, libc::ETIMEDOUT as u64]),
    ];
    let of = |complete_from: u64| {
        let knowledge = Knowledge { complete_from, ..Knowledge::default() };
        let analysis = analysed(lines.iter().map(|line| record(*line)), knowledge);
        (blame(&analysis, &[64]).remove(0), figures(&analysis, 64))
    };
    assert_eq!(of(0), (vec![(1, 30 + 28)], (2, 79, 0, 1, 20)));
    assert_eq!(of(30), (vec![(1, 10 + 10)], (2, 79, 0, 0, 20 + 1 + 18 + 20)));
}

/// A lock as Rust's `Mutex`, that threads take in random order while others wait.
struct RandomLock {
    time: u64,
    records: Vec<NumericRecord>,
    /// Who has it, since when.
    holder: Option<(u32, u64)>,
    /// Others wait, so that the next release is a call.
    is_contended: bool,
    /// Who waits, since when.
    asleep: Vec<(u32, u64)>,
    /// Who was woken and has not gone on.
    woken: Option<(u32, u64)>,
    /// Holds that have ended.
    holds: Vec<(u32, u64, u64)>,
    /// Waits that have ended.
    waits: Vec<(u32, u64, u64)>,
}

impl RandomLock {
    /// A lock that nobody takes between a release that wakes a thread and the moment in which that goes on.
    fn run(random: &mut SeededRandom, steps: usize) -> RandomLock {
        let mut lock = RandomLock {
            time: 1,
            records: vec![record((0, 1, "1:4:0", &[]))],
            holder: None,
            is_contended: false,
            asleep: Vec::new(),
            woken: None,
            holds: Vec::new(),
            waits: Vec::new(),
        };
        for _ in 0..steps {
            lock.time += 1 + random.below(9) as u64;
            let lwp = 1 + random.below(6) as u32;
            lock.step(lwp);
        }
        while !lock.asleep.is_empty() || lock.woken.is_some() {
            lock.time += 1;
            let lwp = lock.woken.map_or_else(|| lock.holder.unwrap().0, |woken| woken.0);
            lock.step(lwp);
        }
        lock
    }

    fn add(&mut self, lwp: u32, event: &str, arguments: &[u64]) {
        self.records.push(record((self.time, lwp, event, arguments)));
    }

    /// A thread takes the lock, waits for it, or releases it.
    fn step(&mut self, lwp: u32) {
        if self.asleep.iter().any(|(thread, _)| *thread == lwp) {
            return;
        }
        match (self.holder, self.woken) {
            (Some((holder, from)), _) if holder == lwp => {
                self.holds.push((lwp, from, self.time));
                self.holder = None;
                if std::mem::take(&mut self.is_contended) {
                    let woken = (!self.asleep.is_empty()).then(|| self.asleep.remove(0));
                    self.add(lwp, WAKE, &[64, WAKE_OP, 1, woken.iter().count() as u64, 0]);
                    self.woken = woken;
                }
            }
            (Some(_), _) => {
                self.add(lwp, WAIT, &[64, WAIT_OP, 2, 0, MUTEX_SITE]);
                self.asleep.push((lwp, self.time));
                self.is_contended = true;
            }
            (None, Some((woken, entry))) if woken == lwp => {
                self.add(lwp, RETURN, &[]);
                self.waits.push((lwp, entry, self.time));
                (self.holder, self.woken, self.is_contended) = (Some((lwp, self.time)), None, true);
            }
            (None, Some(_)) => {}
            (None, None) => self.holder = Some((lwp, self.time)),
        }
    }
}

/// Each moment of a wait is given to who had the lock then, although no acquisition is recorded.
#[test]
fn random_holders_are_found_by_their_releases() {
    for seed in 0..40 {
        let mut random = SeededRandom::seeded_by(seed);
        let lock = RandomLock::run(&mut random, 400);
        let mut expected: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (waiter, entry, end) in &lock.waits {
            for (holder, from, to) in &lock.holds {
                let shared = to.min(end).saturating_sub(*from.max(entry));
                *expected.entry((*waiter, *holder)).or_default() += shared;
            }
        }
        expected.retain(|_, time| *time > 0);
        let waited: u64 = lock.waits.iter().map(|(_, entry, end)| end - entry).sum();
        let analysis = analysed(lock.records, Knowledge::default());
        let lwp = |thread: u32| analysis.threads[thread as usize].lwp;
        let pairs = analysis.pairs.iter().map(|(&(waiter, holder, _), &(_, time))| ((lwp(waiter), lwp(holder)), time));
        assert_eq!(pairs.collect::<BTreeMap<_, _>>(), expected, "seed {seed}");
        let (count, contention, _, _, unknown) = figures(&analysis, 64);
        assert_eq!((count, contention, unknown), (lock.waits.len() as u64, waited, 0), "seed {seed}");
    }
}
