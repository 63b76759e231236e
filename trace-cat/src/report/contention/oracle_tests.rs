//! The analysis of random programs against a slow one that works from the records alone.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::wait_selection::WaitSelection;
use crate::testing::seeded_random::SeededRandom;

const PID: u32 = 1;
/// Objects by address: a mutex, a recursive mutex and an rwlock, and more of the same kinds.
const OBJECTS: u64 = 5;

fn category(object: u64) -> u8 {
    [2, 6, 5][object as usize % 3]
}

fn record(time: u64, lwp: u32, event: (u8, u8), which: u8, arguments: [u64; 5]) -> NumericRecord {
    NumericRecord { time, tid: u64::from(lwp), arguments, pid: PID, lwp, event, which }
}

/// What a thread of a random program does.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Running,
    /// Waits for an object, to write, and may time out.
    Waiting(u64, bool, bool),
}

/// The records of a random program in the order of time.
fn random_program(random: &mut SeededRandom, threads: u32, steps: usize) -> Vec<NumericRecord> {
    let mut records = Vec::new();
    let mut doing = vec![Doing::Running; threads as usize];
    // By object: threads, whether for writing, and how often.
    let mut holds: BTreeMap<u64, Vec<(u32, bool, u64)>> = BTreeMap::new();
    let mut time = 1000;
    for _ in 0..steps {
        time += 1 + random.below(40) as u64;
        let lwp = random.below(threads as usize) as u32;
        let pending = |object: u64, write: bool, holds: &BTreeMap<u64, Vec<(u32, bool, u64)>>| {
            let held = holds.get(&object).map_or(&[][..], |held| held);
            let may_repeat = category(object) == 6;
            held.iter().all(|(owner, owned, _)| (may_repeat && *owner == lwp) || (!write && !*owned))
        };
        let acquire = |object: u64, write: bool, holds: &mut BTreeMap<u64, Vec<(u32, bool, u64)>>| {
            let held = holds.entry(object).or_default();
            match held.iter_mut().find(|hold| hold.0 == lwp && category(object) == 6) {
                Some(hold) => hold.2 += 1,
                None => held.push((lwp, write, 1)),
            }
            // Of an rwlock all readers are counted.
            held.iter().filter(|hold| hold.0 == lwp || category(object) == 5).map(|hold| hold.2).sum()
        };
        let lock_event = |object: u64, write: bool, timed: bool| {
            let number = match (category(object), write, timed) {
                (5, false, false) => 2,
                (5, true, false) => 3,
                (5, true, true) => 31,
                (_, _, true) => 30,
                _ => 2,
            };
            (category(object), number)
        };
        match doing[lwp as usize] {
            Doing::Waiting(object, write, timed) => {
                let event = lock_event(object, write, timed);
                if pending(object, write, &holds) {
                    let depth = acquire(object, write, &mut holds);
                    records.push(record(time, lwp, event, 2, [0, 1, depth, 0, 0]));
                    doing[lwp as usize] = Doing::Running;
                } else if timed && random.below(4) == 0 {
                    records.push(record(time, lwp, event, 2, [libc::ETIMEDOUT as u64, 1, 0, 0, 0]));
                    doing[lwp as usize] = Doing::Running;
                }
            }
            Doing::Running => {
                let held: Vec<u64> = holds
                    .iter()
                    .filter(|(_, held)| held.iter().any(|hold| hold.0 == lwp))
                    .map(|(object, _)| *object)
                    .collect();
                if !held.is_empty() && random.below(5) < 3 {
                    let object = held[random.below(held.len())];
                    let owners = holds.get_mut(&object).unwrap();
                    let index = owners.iter().position(|hold| hold.0 == lwp).unwrap();
                    owners[index].2 -= 1;
                    if owners[index].2 == 0 {
                        owners.remove(index);
                    }
                    records.push(record(time, lwp, (category(object), 4), 0, [object, 0, 0, 0, 0]));
                    continue;
                }
                // In ascending order, so that the program comes to no deadlock; only the rmutex is taken again.
                let object = 1 + random.below(OBJECTS as usize) as u64;
                let may_take =
                    held.iter().all(|other| *other < object) || (category(object) == 6 && held.contains(&object));
                if !may_take {
                    continue;
                }
                let (write, timed) = (category(object) != 5 || random.below(3) == 0, random.below(4) == 0);
                let event = lock_event(object, write, timed);
                let is_free = pending(object, write, &holds);
                if random.below(6) == 0 {
                    let try_number = if category(object) == 5 && write {
                        6
                    } else if category(object) == 5 {
                        5
                    } else {
                        3
                    };
                    let rval = if is_free { 0 } else { libc::EBUSY as u64 };
                    if is_free {
                        acquire(object, write, &mut holds);
                    }
                    records.push(record(time, lwp, (category(object), try_number), 0, [object, rval, 0, 0, 0]));
                    continue;
                }
                records.push(record(time, lwp, event, 1, [object, 0, 0, 0, 0]));
                if is_free {
                    let depth = acquire(object, write, &mut holds);
                    records.push(record(time, lwp, event, 2, [0, 0, depth, 0, 0]));
                } else {
                    doing[lwp as usize] = Doing::Waiting(object, write, timed);
                }
            }
        }
    }
    records
}

/// The figures of an object.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    waits: u64,
    waited: u64,
    handoff: u64,
    unknown: u64,
    holds: u64,
    held: u64,
    /// By holder.
    blamed: BTreeMap<u32, u64>,
    /// By waiter and holder.
    pairs: BTreeMap<(u32, u32), (u64, u64)>,
}

/// When who held an object: times, and the threads, those first that have held it longest; no thread after a release.
type Occupants = Vec<(u64, Option<Vec<u32>>)>;

/// The occupants of an object, how many holds there were, and how long they lasted together.
type ObjectHistory = (Occupants, u64, u64);

/// A wait: thread, object, from and to.
type Wait = (u32, u64, u64, u64);

/// The waits and occupants of all objects, each found by reading all records.
fn read_naively(records: &[NumericRecord]) -> (Vec<Wait>, HashMap<u64, ObjectHistory>) {
    let end = records.last().unwrap().time;
    let call_of = |index: usize| {
        let returned = &records[index];
        let is_entry =
            |entry: &&NumericRecord| (entry.lwp, entry.event, entry.which) == (returned.lwp, returned.event, 1);
        records[..index].iter().rev().find(is_entry).unwrap()
    };
    let mut waits = Vec::new();
    for (index, returned) in records.iter().enumerate().filter(|(_, record)| record.which == 2) {
        if returned.arguments[1] == 1 {
            let entry = call_of(index);
            waits.push((entry.lwp, entry.arguments[0], entry.time, returned.time));
        }
    }
    for (index, entry) in records.iter().enumerate().filter(|(_, record)| record.which == 1) {
        if !records[index..].iter().any(|other| (other.lwp, other.which) == (entry.lwp, 2)) {
            waits.push((entry.lwp, entry.arguments[0], entry.time, end));
        }
    }
    let mut objects = HashMap::new();
    for object in 1..=OBJECTS {
        let (mut owners, mut history): (Vec<(u32, u64, u64)>, Occupants) = (Vec::new(), vec![(0, None)]);
        let (mut holds, mut held) = (0, 0);
        for (index, record) in records.iter().enumerate() {
            let is_try = record.which == 0 && record.event.1 != 4;
            let (named, is_success) = match record.which {
                2 => (call_of(index).arguments[0], record.arguments[0] == 0),
                _ => (record.arguments[0], is_try && record.arguments[1] == 0),
            };
            if named != object || (record.which != 0 && !is_success) || (is_try && !is_success) {
                continue;
            }
            let own = owners.iter().position(|owner| owner.0 == record.lwp);
            match own {
                None if is_success => owners.push((record.lwp, record.time, 1)),
                Some(own) if is_success => owners[own].2 += 1,
                Some(own) if owners[own].2 > 1 => owners[own].2 -= 1,
                Some(own) => {
                    let (_, from, _) = owners.remove(own);
                    (holds, held) = (holds + 1, held + record.time - from);
                }
                None => panic!("nobody holds what is released"),
            }
            let writes = record.event.0 != 5 || [3, 31, 6].contains(&record.event.1);
            assert!(!is_success || owners.len() == 1 || !writes, "two hold at a time");
            history.push((record.time, Some(owners.iter().map(|owner| owner.0).collect())));
        }
        for (_, from, _) in owners {
            (holds, held) = (holds + 1, held + end - from);
        }
        objects.insert(object, (history, holds, held));
    }
    (waits, objects)
}

/// The figures of each object by the slow analysis.
fn expected(records: &[NumericRecord]) -> BTreeMap<u64, Figures> {
    let (waits, objects) = read_naively(records);
    let mut all: BTreeMap<u64, Figures> = BTreeMap::new();
    for (&object, (_, holds, held)) in &objects {
        let figures = all.entry(object).or_default();
        (figures.holds, figures.held) = (*holds, *held);
    }
    for (waiter, object, from, to) in waits {
        let figures = all.entry(object).or_default();
        (figures.waits, figures.waited) = (figures.waits + 1, figures.waited + to - from);
        let mut shares: BTreeMap<u32, u64> = BTreeMap::new();
        let history = &objects[&object].0;
        for (index, (start, occupants)) in history.iter().enumerate() {
            let end = history.get(index + 1).map_or(u64::MAX, |next| next.0);
            let time = end.min(to).saturating_sub((*start).max(from));
            match occupants.as_deref() {
                None => figures.unknown += time,
                Some([]) => figures.handoff += time,
                Some(threads) => {
                    let count = threads.len() as u64;
                    for (position, thread) in (0..).zip(threads) {
                        *shares.entry(*thread).or_default() += time / count + u64::from(position < time % count);
                    }
                }
            }
        }
        for (holder, time) in shares.into_iter().filter(|(_, time)| *time > 0) {
            *figures.blamed.entry(holder).or_default() += time;
            let pair = figures.pairs.entry((waiter, holder)).or_default();
            (pair.0, pair.1) = (pair.0 + 1, pair.1 + time);
        }
    }
    all.retain(|_, figures| *figures != Figures::default());
    all
}

/// The figures of each object by the analysis.
fn analysed(records: &[NumericRecord], knowledge: Knowledge) -> BTreeMap<u64, Figures> {
    analysed_in(0..u64::MAX, records, knowledge)
}

/// The figures of each object in a range of time.
fn analysed_in(times: Range<u64>, records: &[NumericRecord], knowledge: Knowledge) -> BTreeMap<u64, Figures> {
    let selection = WaitSelection { times, ..WaitSelection::default() };
    let mut analysis = Analysis::new(HashMap::from([(PID, knowledge)]), selection);
    records.iter().for_each(|record| analysis.add(record));
    analysis.finish(&[]);
    let mut all: BTreeMap<u64, Figures> = BTreeMap::new();
    let lwp = |thread: u32| analysis.threads[thread as usize].lwp;
    for object in analysis.objects.iter() {
        let figures = all.entry(object.address).or_default();
        figures.waits += object.figures.wait.count();
        figures.waited += object.figures.wait.sum();
        figures.handoff += object.figures.handoff;
        figures.unknown += object.figures.unknown;
        figures.holds += object.figures.hold.count() + object.figures.lost_holds;
        figures.held += object.figures.hold.sum();
        for (holder, time) in object.figures.blamed.in_order() {
            *figures.blamed.entry(lwp(holder.thread)).or_default() += time;
        }
    }
    let address = |object: u32| analysis.objects[object as usize].address;
    for ((waiter, holder, object), (waits, waited)) in &analysis.pairs {
        let pairs = &mut all.get_mut(&address(*object)).unwrap().pairs;
        assert_eq!(pairs.insert((lwp(*waiter), lwp(*holder)), (*waits, *waited)), None);
    }
    for figures in all.values() {
        let blamed: u64 = figures.blamed.values().sum();
        assert_eq!(blamed + figures.handoff + figures.unknown, figures.waited);
    }
    all.retain(|_, figures| *figures != Figures::default());
    all
}

#[test]
fn random_programs_are_analysed_as_by_reading_all_records_for_each_wait() {
    let mut random = SeededRandom::seeded("contention", 3);
    let mut waits = 0;
    for round in 0..60 {
        let threads = 2 + random.below(7) as u32;
        let records = random_program(&mut random, threads, 60 + 8 * round);
        let got = analysed(&records, Knowledge::default());
        assert_eq!(got, expected(&records), "round {round}");
        waits += got.values().map(|figures| figures.waits).sum::<u64>();
    }
    assert!(waits > 500, "{waits}");
}

#[test]
fn ranges_of_time_share_the_figures_of_all() {
    let mut random = SeededRandom::seeded("ranges", 6);
    let sums = |figures: &Figures| {
        let blamed: u64 = figures.blamed.values().sum();
        [figures.waited, figures.handoff, figures.unknown, figures.held, blamed]
    };
    for _ in 0..40 {
        let records = random_program(&mut random, 5, 300);
        let end = records.last().unwrap().time as usize;
        let mut cuts = [random.below(end) as u64, random.below(end) as u64];
        cuts.sort_unstable();
        let ranges = [0..cuts[0], cuts[0]..cuts[1], cuts[1]..u64::MAX];
        let parts = ranges.map(|range| analysed_in(range, &records, Knowledge::default()));
        for (object, figures) in analysed(&records, Knowledge::default()) {
            let parts = parts.iter().filter_map(|part| part.get(&object)).map(sums);
            let sum = parts.fold([0; 5], |sum, part| std::array::from_fn(|index| sum[index] + part[index]));
            assert_eq!(sum, sums(&figures), "{object}");
        }
    }
}

/// Nothing is stated of records that lack some that the complete ones do not bear out.
fn assert_no_false_statement(cut: &[NumericRecord], complete: &BTreeMap<u64, Figures>, knowledge: Knowledge) -> u64 {
    let figures = analysed(cut, knowledge);
    for (object, figures) in &figures {
        let truth = &complete[object];
        assert!(figures.waits <= truth.waits && figures.waited <= truth.waited, "{object}: {figures:?} {truth:?}");
        assert!(figures.held <= truth.held && figures.holds <= truth.holds, "{object}: {figures:?} {truth:?}");
        assert!(figures.handoff <= truth.handoff, "{object}: {figures:?} {truth:?}");
        for (holder, time) in &figures.blamed {
            assert!(truth.blamed.get(holder) >= Some(time), "{object}: {figures:?} {truth:?}");
        }
    }
    figures.values().flat_map(|figures| figures.blamed.values()).sum()
}

/// Analyses random programs of which `cut` leaves some records out; it gets the complete ones, and how many threads they are of.
fn assert_nothing_is_guessed(
    mut random: SeededRandom,
    cut: impl Fn(&mut SeededRandom, &[NumericRecord], u32) -> (Vec<NumericRecord>, Knowledge),
) {
    let (mut blamed, mut whole) = (0, 0);
    for _ in 0..60 {
        let threads = 2 + random.below(6) as u32;
        let records = random_program(&mut random, threads, 400);
        let complete = expected(&records);
        let (cut, knowledge) = cut(&mut random, &records, threads);
        blamed += assert_no_false_statement(&cut, &complete, knowledge);
        whole += complete.values().flat_map(|figures| figures.blamed.values()).sum::<u64>();
    }
    assert!(blamed > whole / 10, "{blamed} of {whole}");
}

#[test]
fn what_rings_have_overwritten_is_not_guessed() {
    assert_nothing_is_guessed(SeededRandom::seeded("rings", 4), |random, records, threads| {
        let end = records.last().unwrap().time;
        let cuts: Vec<u64> = (0..threads).map(|_| random.below(end as usize) as u64 * 2 / 3).collect();
        let cut = records.iter().copied().filter(|record| record.time >= cuts[record.lwp as usize]).collect();
        (cut, Knowledge { complete_from: *cuts.iter().max().unwrap(), ..Knowledge::default() })
    });
}

#[test]
fn what_was_lost_is_not_guessed() {
    assert_nothing_is_guessed(SeededRandom::seeded("losses", 5), |random, records, threads| {
        let end = records.last().unwrap().time;
        let mut cut = records.to_vec();
        for _ in 0..1 + random.below(3) {
            let lwp = random.below(threads as usize) as u32;
            let from = random.below(end as usize) as u64;
            let until = from + random.below(end as usize / 6) as u64;
            let is_lost = |record: &NumericRecord| record.lwp == lwp && (from..until).contains(&record.time);
            let Some(first) = cut.iter().position(is_lost) else { continue };
            let lost = cut.iter().filter(|record| is_lost(record)).count() as u64;
            let loss = record(cut[first].time, lwp, (0, 1), 0, [lost, 0, 0, 0, 0]);
            cut[first] = loss;
            let mut index = 0;
            cut.retain(|record| {
                index += 1;
                index <= first + 1 || !is_lost(record)
            });
        }
        (cut, Knowledge::default())
    });
}
