//! All filters together against an oracle that follows the manual, on random traces with random slices.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use spec::{EventSet, Record};

use super::*;
use crate::merge::{BatchTransform, MergeLimits, OrderedSection};
use crate::options::TimePoint;
use crate::record::columns;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{TestTrace, merge_limited};

const START: u64 = 1_795_174_740_000_000_000;
const OBJECTS: [u64; 4] = [0x5594_69ed_90a0, 0x5594_69ed_90c8, 0x7fc5_de3f_86c0, 0x10];

/// Records by event and kind, with their arguments: `O` an object, `T` a thread, `B` 0 or 1, `E` 0 or EAGAIN, `F` FUTEX_REQUEUE
/// or FUTEX_LOCK_PI.
const RECORDS: [(&str, &str); 30] = [
    ("02:02:1", "O:0:0:0:0"),
    ("02:02:2", "0:B:0:0:0"),
    ("06:30:1", "O:0:0:0:0"),
    ("06:30:2", "E:B:1:0:0"),
    ("02:04:0", "O:0:B:0:0"),
    ("02:03:0", "O:16:0:0:0"),
    ("03:04:1", "O:O:0:0:0"),
    ("03:04:2", "0:0:0:0:0"),
    ("04:02:1", "O:B:0:0:0"),
    ("04:02:2", "0:0:0:0:0"),
    ("05:02:1", "O:0:0:0:0"),
    ("05:02:2", "0:B:3:0:0"),
    ("07:02:1", "O:B:0:0:0"),
    ("07:02:2", "0:0:0:0:0"),
    ("09:02:1", "O:0:0:0:0"),
    ("09:02:2", "B:0:0:0:0"),
    ("10:01:1", "O:0x80:5:0:0"),
    ("10:01:2", "0:E:0:0:0"),
    ("10:03:1", "O:F:5:O:0"),
    ("10:03:2", "0:E:0:0:0"),
    ("01:03:1", "T:0:0:0:0"),
    ("01:03:2", "T:0:0:0:0"),
    ("01:38:1", "O:0x5:0:0:0"),
    ("01:38:2", "0:0:0:0:0"),
    ("01:01:1", "0x10:0:0x7:0x8:0"),
    ("01:01:2", "0:T:0:0:0"),
    ("12:05:1", "O:O:O:O:O"),
    ("12:05:2", "O:0:0:0:0"),
    ("11:04:0", "0:0:0:0:0"),
    ("00:01:0", "5:28:0:0:0"),
];

/// Writes files of records: with threads that share a file, missing records of calls, files in no order, lines that are no
/// records.
fn write(random: &mut SeededRandom, trace: &TestTrace) {
    let kinds = 2 + random.below(RECORDS.len() - 1);
    let (threads, step, gaps) = (1 + random.below(7), [2, 30, 3000][random.below(3)], random.below(3));
    let mut files = vec![String::new(); 4];
    let mut written = HashSet::new();
    let mut begun: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut time = START;
    for _ in 0..random.below(500) {
        let thread = random.below(threads);
        let open = begun.entry(thread).or_default();
        let mut kind = random.below(kinds);
        // Most calls have both records.
        if RECORDS[kind].0.ends_with(":2") && random.below(10) >= gaps {
            kind -= 1;
        }
        if random.below(5) < 2 && !open.is_empty() {
            kind = open.pop().unwrap() + 1;
        } else if RECORDS[kind].0.ends_with(":1") && random.below(10) >= gaps {
            open.push(kind);
        }
        if kind == RECORDS.len() - 1 && random.below(4) > 0 {
            continue;
        }
        // The third and the fourth thread are of two namespaces; the second process is a child of the first.
        let (pid, lwp) = (1 + thread / 4, [1, 2, 3, 3, 4097, 4098, 4099][thread]);
        let tid = OBJECTS[2] + thread as u64 % 4 * 64;
        time += random.below(step) as u64;
        let (event, arguments) = RECORDS[kind];
        let mut shown = time - random.below(2) as u64 * random.below(5) as u64;
        // Records that differ only in their arguments have one key.
        while !written.insert((shown, lwp, kind)) {
            shown += 1;
        }
        let mut text = String::new();
        for letter in arguments.chars() {
            text += &match letter {
                'O' => format!("{:#x}", OBJECTS[random.below(OBJECTS.len())]),
                'T' => format!("{:#014x}", OBJECTS[random.below(3)]),
                'B' => random.below(2).to_string(),
                'E' => ["0", "11"][random.below(2)].to_owned(),
                'F' => ["0x3", "0x6"][random.below(2)].to_owned(),
                letter => letter.to_string(),
            };
        }
        let file = &mut files[lwp % 4096];
        let (seconds, nanoseconds) = (shown / 1_000_000_000, shown % 1_000_000_000);
        *file += &format!("{seconds}:{nanoseconds:09}:{lwp:07}:{pid:07}:{tid:#014x}:{event}:{text}\n");
        if random.below(100) < gaps {
            *file += ["rubbish\n", "\n", "1795174740:5447633\n", "\0\0\0"][random.below(4)];
        }
    }
    for (file, text) in files.iter().enumerate() {
        trace.file(&format!("tr.0000001.{file:03x}"), text);
    }
}

/// The records of a merged trace that meet `selection`.
fn oracle(merged: &str, selection: &Selection) -> String {
    let lines: Vec<&str> = merged.split_inclusive('\n').collect();
    let records: Vec<Record> = lines.iter().map(|line| Record::parse(line.trim_end().as_bytes()).unwrap()).collect();
    let mut stacks: HashMap<(u32, u32, u64, u8, u8), Vec<usize>> = HashMap::new();
    let mut other = vec![None; records.len()];
    for (at, record) in records.iter().enumerate() {
        let stack = stacks.entry((record.pid, record.lwpid, record.tid, record.event1, record.event2)).or_default();
        match record.which {
            1 => stack.push(at),
            2 => {
                if let Some(first) = stack.pop() {
                    (other[first], other[at]) = (Some(at), Some(first));
                }
            }
            _ => {}
        }
    }
    let first_from = |record: &Record, event: (u8, u8), lwp: Option<u32>| {
        let is_one = |other: &&Record| {
            let is_later = other.pid == record.pid && other.time >= record.time;
            (other.event1, other.event2) == event && is_later && lwp.is_none_or(|lwp| other.lwpid == lwp)
        };
        records.iter().find(is_one).map(|other| other.time)
    };
    // Until when an open call lasted, whether it may have lasted longer, and whether its return record may be lost.
    let end_of = |record: &Record| {
        let (exit, loss) = (first_from(record, (11, 4), None), first_from(record, (0, 1), Some(record.lwpid)));
        let last = records.iter().rfind(|other| other.pid == record.pid).unwrap().time;
        match (exit, loss) {
            (exit, Some(loss)) if exit.is_none_or(|exit| loss <= exit) => (loss, false, true),
            (Some(exit), _) => (exit, false, false),
            (None, _) => (last, true, false),
        }
    };
    let wanted = |at: &usize| {
        let record = &records[*at];
        let of_call = |which: u8| if record.which == which { Some(*at) } else { other[*at] };
        let call = if record.which == 0 { [None, None] } else { [of_call(1), of_call(2)] };
        let is_loss = (record.event1, record.event2) == (0, 1);
        let meets_call_conditions = (selection.objects.is_empty()
            || names(record, &selection.objects)
            || call.iter().flatten().any(|&at| names(&records[at], &selection.objects)))
            && (!selection.blocked
                || record.which > 0 && waited(call.map(|at| at.map(|at| &records[at])), end_of(record).2))
            && selection.longer.is_none_or(|least| match call {
                [Some(first), Some(second)] => records[second].time - records[first].time >= least,
                [Some(first), None] => {
                    let (end, or_more, _) = end_of(&records[first]);
                    can_wait(&records[first]) && (or_more || end - records[first].time >= least)
                }
                _ => false,
            });
        is_possible(selection, record) && (is_loss || meets_call_conditions)
    };
    let selected: Vec<&str> = (0..lines.len()).filter(wanted).map(|at| lines[at]).collect();
    let first = &selected[..selected.len().min(selection.head.unwrap_or(u64::MAX) as usize)];
    first[first.len() - first.len().min(selection.tail.unwrap_or(u64::MAX) as usize)..].concat()
}

fn is_possible(selection: &Selection, record: &Record) -> bool {
    let Selection { events, pids, lwps, tids, since, until, .. } = selection;
    let at = |point: &Option<TimePoint>| point.map(|point| point.resolve(0));
    (pids.is_empty() || pids.contains(&record.pid))
        && (lwps.is_empty() || lwps.contains(&record.lwpid))
        && (tids.is_empty() || tids.contains(&record.tid))
        && events.is_none_or(|events| events.contains_numbers(record.event1, record.event2))
        && at(since).is_none_or(|since| record.time >= since)
        && at(until).is_none_or(|until| record.time < until)
}

fn names(record: &Record, objects: &[u64]) -> bool {
    let columns: &[usize] = match (record.event1, record.event2, record.which) {
        (12, ..) | (11, ..) | (1, 1, 1) => &[],
        (1, 1, 2) => &[1],
        (1, 3, _) => &[0],
        (3, 4, 1) => &[0, 1],
        (10, 3, 1) => &[0, 3],
        (_, _, 0 | 1) => &[0],
        _ => &[],
    };
    columns.iter().any(|&column| objects.contains(&record.arguments[column].bits()))
}

fn can_wait(record: &Record) -> bool {
    !matches!((record.event1, record.event2), (1, 1) | (12, _))
}

/// `is_cut_off`: the return record may be lost.
fn waited([first, second]: [Option<&Record>; 2], is_cut_off: bool) -> bool {
    let bits = |record: Option<&Record>, column: usize| record.map(|record| record.arguments[column].bits());
    let Some(record) = first.or(second) else { return false };
    match (record.event1, record.event2) {
        _ if second.is_none() && !is_cut_off => can_wait(record),
        (2 | 5 | 6 | 9, _) | (10, 1) | (1, 3 | 38) if second.is_none() => false,
        (2 | 5 | 6, _) => bits(second, 1) != Some(0),
        (9, _) => bits(second, 0) != Some(0),
        (3, _) => true,
        (4, _) => bits(first, 1) == Some(0),
        (7, _) => first.is_some() && bits(first, 1) != Some(1),
        (10, 1) => bits(second, 1) != Some(11),
        (10, 3) => bits(first, 1) == Some(6),
        (1, 3 | 38) => first.is_some_and(|first| first.time < second.unwrap().time),
        _ => false,
    }
}

fn selection(random: &mut SeededRandom, merged: &str) -> Selection {
    let mut some = |of: &[u64]| -> Vec<u64> {
        let count = [0, 0, 0, 1, 2][random.below(5)];
        (0..count).map(|_| of[random.below(of.len())]).collect()
    };
    let narrow = |numbers: Vec<u64>| numbers.into_iter().map(|number| number as u32).collect();
    let (pids, lwps) = (narrow(some(&[1, 1, 2])), narrow(some(&[1, 2, 3, 4097])));
    let (tids, objects) = (some(&[OBJECTS[2], OBJECTS[2] + 64, 5]), some(&OBJECTS));
    let lists = ["mutex:cond:sema", "-mutex_lock", "thread", "rmutex:barrier:spin:futex:user", "rwlock:-thr_join"];
    let list = lists[random.below(lists.len())].as_bytes();
    let events = (random.below(3) == 0).then(|| EventSet::parse(list, &mut |_| panic!("unknown name")));
    let times: Vec<u64> = merged.lines().filter_map(|line| columns::time(line.as_bytes())).collect();
    let mut time_point = || {
        let time = times.get(random.below(times.len() + 1)).copied().unwrap_or(START);
        (random.below(3) == 0).then(|| TimePoint::At(time + random.below(3) as u64 - 1))
    };
    let (since, until) = (time_point(), time_point());
    let mut number = |limit: usize| (random.below(3) == 0).then(|| random.below(limit) as u64);
    let (head, tail, longer) = (number(90), number(90), number([3, 90, 30_000][times.len() % 3]));
    let (event_lists, blocked) = (Vec::new(), random.below(3) == 0);
    Selection { events, event_lists, pids, lwps, tids, objects, blocked, longer, since, until, head, tail }
}

#[test]
fn random_traces_are_filtered_as_the_manual_describes_whatever_the_slices() {
    let mut random = SeededRandom::seeded("filters", 8);
    let until = fuzz_time();
    let (mut round, mut records) = (0, 0);
    while round < 400 || until.is_some_and(|end| Instant::now() < end) {
        round += 1;
        let trace = TestTrace::new();
        write(&mut random, &trace);
        let merged = trace.cat(&[]).0;
        let limits = MergeLimits {
            threads: 1 + random.below(3),
            slice_max: 1 << random.below(18),
            slice_min: 1 << random.below(12),
            slice_per_input: 1 << random.below(12),
            waiting_max: 1 << random.below(16),
            block: 1 << random.below(12),
            ..MergeLimits::default()
        };
        for _ in 0..4 {
            let selection = selection(&mut random, &merged);
            let (out, _) = trace.merged(&[], limits, 9, |merge, out| {
                let Selection { since, until, head, tail, .. } = selection;
                let mut filter = Filter::new(&selection);
                filter.prepare(merge, &[]).unwrap();
                let select = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| {
                    filter.select(lines, |line| out.extend_from_slice(line))
                };
                let transform: BatchTransform = if filter.accepts_all() { None } else { Some(&select) };
                let since = since.map_or(0, |since| since.resolve(0));
                let times = since..until.map_or(u64::MAX, |until| until.resolve(0));
                merge_limited(merge, times, transform, [head, tail], out);
                filter.result().unwrap();
            });
            let expected = oracle(&merged, &selection);
            records += expected.lines().count();
            assert!(out == expected, "round {round}: {selection:?}\n{merged}\nselected:\n{out}\nexpected:\n{expected}");
        }
    }
    assert!(records > 1000 || round < 400, "nearly nothing was selected");
}
