//! Critical paths of random programs against a slow analysis that works from the records alone, a nanosecond at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::path_tests::{analysed_with_paths, path_figures};
use super::random_threads::{BARRIER_COUNT, RandomThreads};
use crate::report::critical_path::PathActivity;
use crate::testing::seeded_random::SeededRandom;

/// A wait that the records show: from, to, and who ended it when.
#[derive(Clone, Copy, Debug)]
struct KnownWait {
    lwp: u32,
    from: u64,
    until: u64,
    waker: Option<(u32, u64)>,
}

/// A hold that the records show: thread, object, from and to.
type KnownHold = (u32, u64, u64, u64);

/// The releases of each object: time, thread, and whether it was held exclusively.
type KnownReleases = BTreeMap<u64, Vec<(u64, u32, bool)>>;

/// The index of the entry record of a return record.
fn entry_of(records: &[NumericRecord], index: usize) -> usize {
    let returned = &records[index];
    let is_entry = |entry: &NumericRecord| (entry.lwp, entry.event, entry.which) == (returned.lwp, returned.event, 1);
    records[..index].iter().rposition(is_entry).unwrap()
}

/// All holds and releases.
fn holds_of(records: &[NumericRecord]) -> (Vec<KnownHold>, KnownReleases) {
    let end = records.last().unwrap().time;
    // By thread and object: since when, how often, exclusively.
    let mut open: BTreeMap<(u32, u64), (u64, u64, bool)> = BTreeMap::new();
    let (mut holds, mut releases) = (Vec::new(), KnownReleases::new());
    for (index, record) in records.iter().enumerate() {
        let &NumericRecord { time, lwp, event, which, arguments, .. } = record;
        let is_lock = matches!(event.0, 2 | 5 | 6);
        let exclusive = event.0 != 5 || [3, 6].contains(&event.1);
        let mut release = |object: u64, all: bool| {
            let hold = open.get_mut(&(lwp, object)).expect("only what is held is released");
            hold.1 -= 1;
            if hold.1 == 0 || all {
                let (from, _, exclusive) = open.remove(&(lwp, object)).unwrap();
                holds.push((lwp, object, from, time));
                releases.entry(object).or_default().push((time, lwp, exclusive));
            }
        };
        let acquired = match (event, which) {
            ((2 | 5 | 6, 4), 0) => {
                release(arguments[0], false);
                None
            }
            ((3, _), 1) => {
                release(arguments[1], true);
                None
            }
            ((3, 4 | 5), 2) => Some(records[entry_of(records, index)].arguments[1]),
            (_, 2) if is_lock && arguments[0] == 0 => Some(records[entry_of(records, index)].arguments[0]),
            (_, 0) if is_lock && arguments[1] == 0 => Some(arguments[0]),
            _ => None,
        };
        if let Some(object) = acquired {
            open.entry((lwp, object)).or_insert((time, 0, exclusive)).1 += 1;
        }
    }
    holds.extend(open.into_iter().map(|((lwp, object), (from, ..))| (lwp, object, from, end)));
    (holds, releases)
}

/// Which posts the returns of waits for semaphores take, both by their places: who does not wait the latest, who waits the earliest.
fn posts_of(records: &[NumericRecord]) -> BTreeMap<usize, usize> {
    let mut posts: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for (index, record) in records.iter().enumerate().filter(|(_, record)| record.event.0 == 4) {
        match (record.event.1, record.which) {
            (4, 0) => posts.entry(record.arguments[0]).or_default().push(index),
            (2 | 30, 2) if record.arguments[0] == 0 => {
                let [object, count, ..] = records[entry_of(records, index)].arguments;
                let posts = posts.entry(object).or_default();
                let post = if count == 0 { Some(posts.remove(0)) } else { posts.pop() };
                taken.extend(post.map(|post| (index, post)));
            }
            (3, 0) if record.arguments[1] == 0 => drop(posts.entry(record.arguments[0]).or_default().pop()),
            _ => {}
        }
    }
    taken
}

fn waits_of(records: &[NumericRecord]) -> Vec<KnownWait> {
    let (_, releases) = holds_of(records);
    let posts = posts_of(records);
    // What was signalled, and has been taken by a wait that returned.
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut waits = Vec::new();
    let mut wakeup = |from: u64, index: usize, object: u64, one: (u8, u8), all: (u8, u8)| {
        let is_usable = |place: &usize| {
            let record = &records[*place];
            let is_all = record.event == all;
            record.time >= from
                && record.arguments[0] == object
                && (is_all || record.event == one && !taken.contains(place))
        };
        let place = (0..index).find(is_usable)?;
        if records[place].event == one {
            taken.insert(place);
        }
        Some((records[place].lwp, records[place].time))
    };
    for (index, returned) in records.iter().enumerate().filter(|(_, record)| record.which == 2) {
        let entry = &records[entry_of(records, index)];
        let (from, until, lwp) = (entry.time, returned.time, entry.lwp);
        let [object, mutex, ..] = entry.arguments;
        let last_release = |object: u64, exclusive: bool| {
            let all = releases.get(&object).map_or(&[][..], |releases| releases);
            let before = |release: &&(u64, u32, bool)| release.0 < until && (release.2 || !exclusive);
            all.iter().rfind(before).map(|release| (release.1, release.0))
        };
        let rval = returned.arguments[0];
        let waker = match returned.event {
            (2 | 6, _) | (5, 3) if returned.arguments[1] == 1 => last_release(object, false).filter(|_| rval == 0),
            (5, 2) if returned.arguments[1] == 1 => last_release(object, true),
            (4, _) if entry.arguments[1] == 0 => {
                posts.get(&index).map(|post| (records[*post].lwp, records[*post].time))
            }
            (3, _) if rval == 0 => wakeup(from, index, object, (3, 2), (3, 3))
                .zip(last_release(mutex, false))
                .map(|(signal, release)| if release.1 > signal.1 { release } else { signal }),
            (3, _) => None,
            (7, _) => records
                .iter()
                .filter(|arrival| arrival.event == (7, 2) && arrival.which == 1)
                .skip(BARRIER_COUNT as usize - 1)
                .step_by(BARRIER_COUNT as usize)
                .find(|last| last.time >= from)
                .map(|last| (last.lwp, last.time)),
            (1, 3) => {
                records[..index].iter().rfind(|last| u64::from(last.lwp) == object).map(|last| (last.lwp, last.time))
            }
            _ => continue,
        };
        waits.push(KnownWait { lwp, from, until, waker });
    }
    waits
}

/// The path by going back from the end a nanosecond at a time: figures as those of the tests with known answers.
fn naive_path(records: &[NumericRecord]) -> (super::path_tests::PathFigures, Vec<u32>) {
    let mut lwps = Vec::new();
    let (holds, _) = holds_of(records);
    let mut waits = waits_of(records);
    let end = records.last().unwrap();
    let (begin, has_exited) = (records[0].time, end.event == (11, 4));
    // The last thread waits until the end if nothing ended its wait.
    let open = records.iter().rfind(|record| record.lwp == end.lwp && record.time <= end.time);
    let waits_open = |record: &&NumericRecord| record.which == 1 && record.event != (1, 1) && !has_exited;
    if let Some(open) = open.filter(waits_open) {
        waits.push(KnownWait { lwp: open.lwp, from: open.time, until: end.time, waker: None });
    }
    let (mut lwp, mut latency_until) = (end.lwp, None);
    let ([mut holding, mut other, mut unknown], mut by_object, mut by_thread) =
        ([0; 3], BTreeMap::<u64, (u64, BTreeSet<KnownHold>)>::new(), BTreeMap::<u32, u64>::new());
    // The moment between `time - 1` and `time`.
    let mut time = end.time;
    while time > begin {
        if let Some((waker, at)) = latency_until
            && at == time
        {
            (lwp, latency_until) = (waker, None);
        }
        let first = records.iter().find(|record| record.lwp == lwp).unwrap().time;
        if time == first && latency_until.is_none() {
            let created =
                |index: &usize| records[*index].event == (1, 1) && records[*index].arguments[1] == u64::from(lwp);
            let created = (0..records.len()).filter(|index| records[*index].which == 2).find(created);
            let entry = created.map(|index| &records[entry_of(records, index)]);
            latency_until = Some(entry.map_or((lwp, 0), |entry| (entry.lwp, entry.time)));
        }
        let wait = waits.iter().find(|wait| wait.lwp == lwp && wait.from < time && time <= wait.until);
        let mut is_unknown = false;
        if let Some(wait) = wait.filter(|_| latency_until.is_none()) {
            match wait.waker {
                Some((waker, at)) if at > wait.from => latency_until = Some((waker, at)),
                Some(_) => {}
                None => is_unknown = true,
            }
            if latency_until.is_some_and(|(_, at)| at == time) {
                continue;
            }
        }
        let is_unborn = time <= first && latency_until.is_some_and(|(_, at)| at == 0) && lwp != 1;
        let held = holds.iter().filter(|hold| hold.0 == lwp && hold.2 < time && time <= hold.3);
        let mut holds_any = false;
        for hold in held {
            let object = by_object.entry(hold.1).or_default();
            object.0 += 1;
            object.1.insert(*hold);
            holds_any = true;
        }
        match (holds_any, is_unknown || is_unborn) {
            (true, _) => holding += 1,
            (_, true) => unknown += 1,
            _ => other += 1,
        }
        *by_thread.entry(lwp).or_default() += 1;
        lwps.push(lwp);
        time -= 1;
    }
    let by_object = by_object.into_iter().map(|(object, (time, holds))| (object, time, holds.len() as u64));
    (([holding, other, unknown], by_object.collect(), by_thread.into_iter().collect()), lwps)
}

#[test]
fn paths_of_random_programs_are_those_found_a_nanosecond_at_a_time() {
    let mut random = SeededRandom::seeded("critical paths", 6);
    let (mut switches, mut unknown, mut length) = (0, 0, 0);
    for round in 0..120 {
        let records = RandomThreads::records(&mut random, 50 + 10 * round);
        let analysis = analysed_with_paths(&records, Knowledge::default());
        let found = path_figures(&analysis, 0);
        let (figures, lwps) = naive_path(&records);
        let end = records.last().unwrap().time;
        for (time, lwp) in (0..end).rev().zip(lwps) {
            let segments = analysis.critical_paths[0].segments();
            let segment = segments.iter().find(|segment| (segment.from..segment.until).contains(&time)).unwrap();
            let found = analysis.threads[segment.thread as usize].lwp;
            assert_eq!(found, lwp, "round {round}, {time}");
        }
        assert_eq!(found, figures, "round {round}");
        let path = &analysis.critical_paths[0];
        switches += path.segments().windows(2).filter(|pair| pair[0].thread != pair[1].thread).count();
        (unknown, length) = (unknown + path.shares.unknown, length + path.length);
    }
    assert!(switches > 500 && unknown < length / 2, "{switches} {unknown} {length}");
}

#[test]
fn paths_of_cut_records_add_up_and_are_not_guessed() {
    let mut random = SeededRandom::seeded("cut paths", 7);
    let (mut known, mut all) = (0, 0);
    for round in 0..60 {
        let records = RandomThreads::records(&mut random, 600);
        let complete = analysed_with_paths(&records, Knowledge::default());
        let (begin, end) = (records[0].time, records.last().unwrap().time);
        // Rings have dropped the oldest records of each thread.
        let cuts: Vec<u64> = (0..40).map(|_| begin + random.below((end - begin) as usize * 2 / 3) as u64).collect();
        let is_kept = |record: &&NumericRecord| record.time >= cuts[record.lwp as usize];
        let ring: Vec<NumericRecord> = records.iter().filter(is_kept).copied().collect();
        let threads = ring.iter().map(|record| record.lwp as usize);
        let complete_from = threads.map(|lwp| cuts[lwp]).max().unwrap_or(0);
        let cut = analysed_with_paths(&ring, Knowledge { complete_from, ..Knowledge::default() });
        // The path is the true one as far back as it is known.
        let lwp_at = |analysis: &Analysis, time: u64| {
            let segments = analysis.critical_paths[0].segments();
            let segment = segments.iter().find(|segment| segment.from < time && time <= segment.until).unwrap();
            (analysis.threads[segment.thread as usize].lwp, segment.what)
        };
        assert_eq!(cut.critical_paths[0].length, end - ring[0].time);
        all += end - ring[0].time;
        for time in (ring[0].time + 1..=end).rev() {
            let (lwp, what) = lwp_at(&cut, time);
            if what == PathActivity::Unknown {
                break;
            }
            assert_eq!(lwp, lwp_at(&complete, time).0, "round {round}, {time}");
            known += 1;
        }
        // Records of a thread are lost, and a loss record shows it; or some are missing without a trace, or the process is killed.
        let lwp = 1 + random.below(4) as u32;
        let from = begin + random.below((end - begin) as usize) as u64;
        let until = from + random.below((end - begin) as usize / 4 + 1) as u64;
        let mut lossy = records.clone();
        let is_lost = |record: &NumericRecord| record.lwp == lwp && (from..until).contains(&record.time);
        if let Some(first) = lossy.iter().position(is_lost) {
            let count = lossy.iter().filter(|record| is_lost(record)).count() as u64;
            let loss = NumericRecord { event: (0, 1), which: 0, arguments: [count, 0, 0, 0, 0], ..lossy[first] };
            lossy.retain(|record| !is_lost(record));
            lossy.insert(first, loss);
            lossy.sort_by_key(|record| record.time);
            analysed_with_paths(&lossy, Knowledge::default());
        }
        let mut thin = records.clone();
        thin.retain(|_| random.below(10) > 0);
        thin.truncate(1 + random.below(300));
        if !thin.is_empty() {
            analysed_with_paths(&thin, Knowledge { only_blocked: round % 2 == 0, ..Knowledge::default() });
        }
    }
    assert!(known > all / 10, "{known} of {all}");
}
