//! Threads that share the work write the same lines as one thread, however the records are split into batches.

use super::*;
use crate::merge::BatchTransform;
use crate::merge::tests::tiny;
use crate::record::call_stack::with_stacks_in_place;
use crate::record::columns;
use crate::testing::seeded_random::SeededRandom;
use crate::testing::test_trace::{TestTrace, record};

const TIMES: [TimeStyle; 3] = [TimeStyle::Rel, TimeStyle::Delta, TimeStyle::Abs];

/// Records of a few threads whose calls interleave: complete, incomplete and nested, with names that come late.
fn lines(random: &mut SeededRandom) -> Vec<String> {
    let count = random.below(400);
    let mut time = 1_795_174_740_000_000_000;
    let mut line = || {
        // Sometimes beyond midnight, and beyond the width of the time column.
        time += [0, 90, 1_500_000, 1_500_000_000_000][random.below(4).min(random.below(60))];
        let lwp = [7, 7, 8, 9, 1_234_567][random.below(5)];
        let event = match random.below(12) {
            0..3 => "02:02:1",
            3..6 => "02:02:2",
            6 => "03:04:1",
            7 => "03:04:2",
            // Does not fit into one line with its return record.
            8 => "01:01:1",
            9 => "01:01:2",
            10 => "12:05:0",
            _ => "01:39:0",
        };
        let line = record(time, lwp, event, 0);
        let (head, _) = line.split_at(line.len() - "0:0:0:0:0\n".len());
        match event {
            "01:01:1" => format!("{head}0x7ffe1888f998:0:0x5608f78406c0:0x7ffe1888f9a0:0x401136\n"),
            "01:01:2" => format!("{head}0:0x7f671ba016c0:0:0:0\n"),
            "01:39:0" => format!("{head}0x7fc5de3f86c0:{:#x}00000000000000:0:0:0\n", b'a' + random.below(26) as u8),
            _ => format!("{head}{:#x}:{}:0:0:0\n", 16 * random.below(3), random.below(2)),
        }
    };
    let mut lines: Vec<String> = (0..count).map(|_| line()).collect();
    // Some have stacks, of one record or of two.
    let start = |line: &str| line[.."1795174740:000000000:0000007:0000001:0x7fc5de3f86c0".len()].to_owned();
    let starts: Vec<String> = lines.iter().map(|line| start(line)).collect();
    for index in (0..count).rev().filter(|index| index % 3 == 0) {
        let start = &starts[index];
        if starts.iter().filter(|other| *other == start).count() > 1 {
            continue;
        }
        let parts = [("00:03:1", "0x1000:0x2000:0x3000:0x4000:0x5000"), ("00:03:2", "0x6000:0x1:0:0:0")];
        let stack: Vec<String> =
            parts[..1 + index % 2].iter().map(|(event, addresses)| format!("{start}:{event}:{addresses}\n")).collect();
        lines.splice(index + 1..index + 1, stack);
    }
    lines
}

fn text_format(time: TimeStyle, coloured: bool) -> TextFormat {
    let format = TextFormat::new(time, coloured, Vec::new(), OpenCallTable::default());
    format.with_stacks(FrameNames::new(Vec::new()))
}

fn in_one_thread(time: TimeStyle, coloured: bool, lines: &[String]) -> String {
    let (mut format, mut out) = (text_format(time, coloured), Vec::new());
    columns::lines(&with_stacks_in_place(lines.concat().as_bytes())).for_each(|line| format.record(line, &mut out));
    format.end(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn however_records_are_split_into_batches_the_lines_are_the_same() {
    let mut random = SeededRandom::seeded("pages", 31);
    for round in 0..600 {
        let mut lines = lines(&mut random);
        for _ in 0..random.below(3) {
            lines.insert(random.below(lines.len() + 1), "rub\x1bbish\n".to_owned());
        }
        let (time, coloured) = (TIMES[round % 3], random.below(2) == 0);
        let (mut format, mut out) = (text_format(time, coloured), Vec::new());
        let mut pending = &lines[..];
        while !pending.is_empty() {
            let least = random.below([2, 8, 300][round % 7 % 3]).min(pending.len());
            // A merge does not part records of one time.
            let is_stack = |line: &&String| line.contains(":00:03:");
            let stacks = pending[least..].iter().take_while(is_stack).count();
            let (next, after) = pending.split_at(least + stacks);
            let mut batch = format.batch();
            next.iter().for_each(|line| batch.push(line.as_bytes()));
            format.show(batch, OrderedSection::UNORDERED, &mut out);
            pending = after;
        }
        format.end(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), in_one_thread(time, coloured, &lines), "{time:?}");
    }
}

#[test]
fn merging_threads_write_the_lines_that_one_thread_writes() {
    let mut random = SeededRandom::seeded("shared text", 32);
    for round in 0..60 {
        let lines = lines(&mut random);
        let time = TIMES[round % 3];
        let trace = TestTrace::new();
        let files = 1 + random.below(4);
        let mut texts = vec![String::new(); files];
        let mut file = 0;
        for line in &lines {
            file = if line.contains(":00:03:") { file } else { random.below(files) };
            texts[file] += line;
        }
        for (file, text) in texts.iter().enumerate() {
            trace.file(&format!("tr.0000001.00{file}"), text);
        }
        let limits = tiny(&mut random);
        let merged = trace.cat_with(&[], limits, 9).0;
        let mut format = text_format(time, false);
        let (mut out, _) = trace.merged(&[], limits, 9, |merge, out| {
            let transform = |lines: &[u8], section: OrderedSection, out: &mut Vec<u8>| {
                let mut batch = format.batch();
                lines.split_inclusive(|&byte| byte == b'\n').for_each(|line| batch.push(line));
                format.show(batch, section, out);
            };
            let transform: BatchTransform = Some(&transform);
            let mut take = |lines: &[u8]| {
                out.extend_from_slice(lines);
                Ok(true)
            };
            merge.run(0..u64::MAX, transform, &mut take).unwrap();
        });
        let mut end = Vec::new();
        format.end(&mut end);
        out += std::str::from_utf8(&end).unwrap();
        let merged: Vec<String> = merged.split_inclusive('\n').map(str::to_owned).collect();
        assert_eq!(merged.len(), lines.len());
        assert_eq!(out, in_one_thread(time, false, &merged), "{limits:?}");
    }
}
