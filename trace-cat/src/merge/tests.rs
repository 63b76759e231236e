//! Order, memory limits and passes, on small traces with exact bytes, and on random ones against a naive merge.

use std::collections::VecDeque;
use std::time::Instant;

use super::*;
use crate::record::columns;
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{TestTrace, merge_limited, record};

const BEFORE: &str = "02:04:0";
const AFTER: &str = "02:02:2";

#[test]
fn records_are_in_the_order_of_time() {
    let trace = TestTrace::new();
    let lines: Vec<String> = (0..9).map(|time| record(1_999_999_995 + time, 7, BEFORE, time)).collect();
    trace.file("tr.0000001.001", [0, 3, 4, 8].map(|line: usize| &lines[line][..]).concat());
    trace.file("tr.0000001.002", [1, 7].map(|line: usize| &lines[line][..]).concat());
    trace.file("tr.0000001.003", "");
    trace.file("tr.0000002.001", [2, 5, 6].map(|line: usize| &lines[line][..]).concat());
    assert_eq!(trace.cat(&[]), (lines.concat(), String::new()));
}

#[test]
fn at_equal_times_before_comes_before_after_and_then_names_decide() {
    let trace = TestTrace::new();
    let [a1, a2, a3] = [(AFTER, 1), (BEFORE, 2), (AFTER, 3)].map(|(event, a1)| record(5, 1, event, a1));
    let [b1, b2] = [(BEFORE, 4), (AFTER, 5)].map(|(event, a1)| record(5, 2, event, a1));
    let c1 = record(5, 3, "12:07:0", 6);
    trace.file("tr.0000001.001", [&a1[..], &a2, &a3].concat());
    trace.file("tr.0000001.002", [&b1[..], &b2].concat());
    trace.file("tr.0000001.003", &c1);
    // Only b1 is stamped before its call and first in its file; a2 comes after a1.
    assert_eq!(trace.cat(&[]).0, [b1, a1, a2, a3, b2, c1].concat());
}

#[test]
fn the_order_of_arguments_does_not_matter() {
    let trace = TestTrace::new();
    let (a, b) = (record(5, 1, AFTER, 1), record(5, 2, AFTER, 2));
    trace.file("tr.0000001.001", &a).file("tr.0000001.002", &b);
    assert_eq!(trace.cat(&["tr.0000001.002", "tr.0000001.001"]).0, [a, b].concat());
}

#[test]
fn a_file_out_of_order_keeps_its_order_at_equal_times() {
    let trace = TestTrace::new();
    let times = [5, 6, 3, 5, 5, 1, 6];
    let lines: Vec<String> = (0..times.len()).map(|line| record(times[line], 1, BEFORE, line as u64)).collect();
    trace.file("tr.0000001.001", lines.concat());
    let expected: String = [5, 2, 0, 3, 4, 1, 6].map(|line: usize| &lines[line][..]).concat();
    assert_eq!(trace.cat(&[]), (expected, String::new()));
}

#[test]
fn between_files_the_runs_of_one_file_count_as_one() {
    let trace = TestTrace::new();
    // In its own order, a's 5s come as after, before; so b's before precedes both of them.
    let a = [record(4, 1, AFTER, 0), record(5, 1, AFTER, 1), record(3, 1, AFTER, 2), record(5, 1, BEFORE, 3)];
    let b = record(5, 2, BEFORE, 4);
    trace.file("tr.0000001.001", a.concat()).file("tr.0000001.002", &b);
    assert_eq!(trace.cat(&[]).0, [&a[2], &a[0], &b, &a[1], &a[3]].map(|line| &line[..]).concat());
}

/// The rule of the merge: each file in the order of time, then always the least of the first records.
pub fn oracle(mut files: Vec<Vec<(u64, bool, String)>>) -> String {
    let mut queues: Vec<VecDeque<(u64, bool, String)>> = Vec::new();
    for file in &mut files {
        file.sort_by_key(|&(time, ..)| time);
        queues.push(file.drain(..).collect());
    }
    let mut out = String::new();
    let first = |queue: &VecDeque<(u64, bool, String)>| queue.front().map(|&(time, after, _)| (time, after));
    while let Some(next) =
        (0..queues.len()).filter(|&file| !queues[file].is_empty()).min_by_key(|&file| (first(&queues[file]), file))
    {
        out += &queues[next].pop_front().unwrap().2;
    }
    out
}

/// Limits that are small enough to reach every boundary.
pub fn tiny(random: &mut SeededRandom) -> MergeLimits {
    MergeLimits {
        threads: 1 + random.below(4),
        slice_max: 1 << random.below(20),
        slice_min: 1 << random.below(14),
        slice_per_input: 1 << random.below(14),
        waiting_max: 1 << random.below(20),
        block: 1 << random.below(13),
        blocks_max: 1 << 20,
        scan_chunk: 1 << random.below(16),
        sorted_run: 200 + random.below(5000),
        visit_cost: 1 << random.below(14),
        reread_max: 1 << random.below(16),
        collects_names: false,
    }
}

/// Files of records: in order, nearly in order, in sorted runs, or in no order; with many equal times, gaps, and records that
/// are written twice.
pub fn files(random: &mut SeededRandom) -> Vec<Vec<(u64, bool, String)>> {
    let count = 1 + random.below(12);
    let mut files: Vec<Vec<(u64, bool, String)>> = vec![Vec::new(); count];
    let disorder = [0, 0, 3, 40, 2000][random.below(5)];
    let step = [1, 3, 3, 1000][random.below(4)];
    let mut time = 1_795_174_740_000_000_000;
    for serial in 0..random.below(600) {
        time += random.below(step) as u64;
        if random.below(200) == 0 {
            time += 1 << random.below(56);
        }
        let after = random.below(2) == 0;
        let file = random.below(count);
        let printed = time - random.below(disorder + 1) as u64;
        let event = if after { AFTER } else { BEFORE };
        let record = (printed, after, record(printed, file as u32, event, random.next() >> random.below(64)));
        for _ in 0..1 + random.below(40) / 39 {
            files[file].push(record.clone());
        }
        if random.below(300) == 0 {
            // Another run begins.
            time -= (serial * step) as u64 / 2;
        }
    }
    files
}

#[test]
fn random_traces_are_merged_by_the_rule_whatever_the_limits() {
    let mut random = SeededRandom::seeded("merge", 4);
    let until = fuzz_time();
    let mut round = 0;
    while round < 250 || until.is_some_and(|end| Instant::now() < end) {
        round += 1;
        let trace = TestTrace::new();
        let files = files(&mut random);
        for (file, records) in files.iter().enumerate() {
            let text: String = records.iter().map(|(.., line)| &line[..]).collect();
            trace.file(&format!("tr.0000001.{file:03x}"), text);
        }
        let limits = tiny(&mut random);
        let (out, messages) = trace.cat_with(&[], limits, random.below(5));
        assert_eq!(messages, "");
        let expected = oracle(files);
        assert!(out == expected, "round {round}, {limits:?}");
        check_ranges(&mut random, &trace, &expected, limits);
    }
}

/// Compares merges of some times, with and without a transform and limits of lines, with `merged`, the output of all times.
fn check_ranges(random: &mut SeededRandom, trace: &TestTrace, merged: &str, limits: MergeLimits) {
    let lines: Vec<(u64, &str)> =
        merged.split_inclusive('\n').map(|line| (columns::time(line.as_bytes()).unwrap(), line)).collect();
    let near = |random: &mut SeededRandom| match lines.get(random.below(lines.len() + 1)) {
        Some((time, _)) => time + random.below(3) as u64 - 1,
        None => random.next() >> random.below(64),
    };
    let times = near(random)..near(random);
    let number = |random: &mut SeededRandom| (random.below(3) > 0).then(|| random.below(lines.len() + 9) as u64);
    let (head, tail) = (number(random), number(random));
    let is_odd = |line: &str| line.len() % 2 == 1;
    let select = |lines: &[u8], _: OrderedSection, out: &mut Vec<u8>| {
        let text = std::str::from_utf8(lines).unwrap();
        text.split_inclusive('\n').filter(|line| is_odd(line)).for_each(|line| out.extend_from_slice(line.as_bytes()));
    };
    let transform: BatchTransform = if random.below(2) == 0 { Some(&select) } else { None };
    let (out, _) = trace.merged(&[], limits, 9, |merge, out| {
        merge_limited(merge, times.clone(), transform, [head, tail], out);
    });
    let wanted = lines.iter().filter(|(time, line)| times.contains(time) && (transform.is_none() || is_odd(line)));
    let first: Vec<&str> = wanted.map(|(_, line)| *line).take(head.unwrap_or(u64::MAX) as usize).collect();
    let expected = &first[first.len() - first.len().min(tail.unwrap_or(u64::MAX) as usize)..];
    assert!(out == expected.concat(), "{times:?} {head:?} {tail:?} {limits:?}");
}

#[test]
fn more_records_of_one_time_than_there_is_memory_are_streamed() {
    let mut random = SeededRandom::seeded("instant", 11);
    for _ in 0..20 {
        let trace = TestTrace::new();
        let mut files: Vec<Vec<(u64, bool, String)>> = vec![Vec::new(); 3];
        for serial in 0..900 {
            let (file, after) = (random.below(3), random.below(3) == 0);
            let time = 1000 + (serial / 800) * random.below(2) as u64;
            files[file].push((time, after, record(time, file as u32, if after { AFTER } else { BEFORE }, serial)));
        }
        for (file, records) in files.iter().enumerate() {
            trace.file(
                &format!("tr.0000001.{file:03x}"),
                records.iter().map(|(.., line)| &line[..]).collect::<String>(),
            );
        }
        let limits = MergeLimits { slice_max: 2000, block: 500, ..tiny(&mut random) };
        assert!(trace.cat_with(&[], limits, 5) == (oracle(files), String::new()), "{limits:?}");
    }
}

#[test]
fn a_file_in_no_order_is_sorted() {
    let trace = TestTrace::new();
    let count = 5000;
    let lines: Vec<String> = (0..count).map(|line| record(1_000_000 - line / 2, 1, BEFORE, line)).collect();
    trace.file("tr.0000001.001", lines.concat());
    let expected: String = (0..count).rev().map(|line| &lines[(line ^ 1) as usize][..]).collect();
    for sorted_run in [1000, 1 << 20] {
        let limits = MergeLimits { sorted_run, slice_max: 1000, reread_max: 0, ..MergeLimits::default() };
        let (out, messages) = trace.cat_with(&[], limits, 10);
        assert!(out == expected && messages.is_empty());
    }
}

#[test]
fn damage_is_reported_once_and_undamaged_records_are_merged_from_every_kind_of_run() {
    let trace = TestTrace::new();
    let good: Vec<String> = (0..60).map(|line| record(1000 - line, 1, BEFORE, line)).collect();
    for descents in [2, 59] {
        let mut lines = good.clone();
        lines[..60 - descents].reverse();
        let mut expected: Vec<&String> = lines.iter().collect();
        expected.sort();
        let damaged = lines.iter().map(|line| format!("what?\n{line}")).collect::<String>();
        trace.file("tr.0000001.001", damaged);
        let (out, messages) = trace.cat(&[]);
        assert!(out.lines().eq(expected.iter().map(|line| line.trim_end())));
        let messages: Vec<&str> = messages.lines().collect();
        assert_eq!(messages.len(), 11);
        assert_eq!(messages[1], "trace-cat: tr.0000001.001:3: not a record: the line ends in time1");
        assert_eq!(messages[10], "trace-cat: tr.0000001.001: 50 more places like these");
    }
}

#[test]
fn lines_of_any_length_take_no_memory() {
    let trace = TestTrace::new();
    let line = record(5, 1, BEFORE, 1);
    trace.file("tr.0000001.001", format!("{line}{}{line}", "x".repeat(10_000_000)));
    let (out, messages) = trace.cat(&[]);
    assert_eq!(out, line);
    assert_eq!(messages, "trace-cat: tr.0000001.001:2: not a record: 10000070 bytes long, 169 are the most\n");
}

#[test]
fn a_file_that_becomes_shorter_is_reported_and_merged_up_to_its_end() {
    for step in [1, -1] {
        let trace = TestTrace::new();
        let mut lines: Vec<String> = (0..100).map(|line| record((1000 + step * line) as u64, 1, BEFORE, 7)).collect();
        trace.file("tr.0000001.001", lines.concat());
        let handle = trace.handle("tr.0000001.001", 0);
        let text = RecordText::new("tr".into(), Some(handle), lines.concat().len() as u64 + 83, false);
        let (diagnostics, messages) = recorded_diagnostics();
        let merge = Merge::prepare(&[Arc::new(text)], MergeLimits::default(), &diagnostics).unwrap();
        lines.sort();
        let mut out = Vec::new();
        let mut take = |lines: &[u8]| {
            out.extend_from_slice(lines);
            Ok(true)
        };
        merge.run(0..u64::MAX, None, &mut take).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), lines.concat());
        assert_eq!(messages.text(), "trace-cat: tr: became shorter while being read\n");
    }
}
