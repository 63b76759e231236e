//! What threads show together is what one shows alone, wherever the records are cut.

use super::*;
use crate::merge::BatchTransform;
use crate::merge::tests::tiny;
use crate::testing::seeded_random::SeededRandom;
use crate::testing::test_trace::{TestTrace, record};

const TIMES: [TimeStyle; 3] = [TimeStyle::Rel, TimeStyle::Delta, TimeStyle::Abs];

/// Records of a few threads whose calls interleave, whole, broken and nested, with names that come late.
fn lines(random: &mut SeededRandom) -> Vec<String> {
    let count = random.below(400);
    let mut time = 1_795_174_740_000_000_000;
    let mut line = || {
        // Sometimes past midnight, and past what the column of the time has room for.
        time += [0, 90, 1_500_000, 1_500_000_000_000][random.below(4).min(random.below(60))];
        let lwp = [7, 7, 8, 9, 1_234_567][random.below(5)];
        let event = match random.below(12) {
            0..3 => "02:02:1",
            3..6 => "02:02:2",
            6 => "03:04:1",
            7 => "03:04:2",
            // Does not fit one line with its second half.
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
    (0..count).map(|_| line()).collect()
}

fn alone(time: TimeStyle, coloured: bool, lines: &[String]) -> String {
    let (mut view, mut out) = (TextFormat::new(time, coloured, Vec::new()), Vec::new());
    lines.iter().for_each(|line| view.record(line.as_bytes(), &mut out));
    view.end(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn wherever_records_are_cut_into_pages_the_lines_are_the_same() {
    let mut random = SeededRandom::seeded("pages", 31);
    for round in 0..600 {
        let mut lines = lines(&mut random);
        for _ in 0..random.below(3) {
            lines.insert(random.below(lines.len() + 1), "rub\x1bbish\n".to_owned());
        }
        let (time, coloured) = (TIMES[round % 3], random.below(2) == 0);
        let (mut view, mut out) = (TextFormat::new(time, coloured, Vec::new()), Vec::new());
        let mut rest = &lines[..];
        while !rest.is_empty() {
            let (page, behind) = rest.split_at(random.below([2, 8, 300][round % 7 % 3]).min(rest.len()));
            let mut batch = view.batch();
            page.iter().for_each(|line| batch.push(line.as_bytes()));
            view.show(batch, OrderedSection::UNORDERED, &mut out);
            rest = behind;
        }
        view.end(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), alone(time, coloured, &lines), "{time:?}");
    }
}

#[test]
fn threads_that_merge_show_the_lines_that_one_shows() {
    let mut random = SeededRandom::seeded("shared text", 32);
    for round in 0..60 {
        let lines = lines(&mut random);
        let time = TIMES[round % 3];
        let trace = TestTrace::new();
        let files = 1 + random.below(4);
        let mut texts = vec![String::new(); files];
        lines.iter().for_each(|line| texts[random.below(files)] += line);
        for (file, text) in texts.iter().enumerate() {
            trace.file(&format!("tr.0000001.00{file}"), text);
        }
        let limits = tiny(&mut random);
        let merged = trace.cat_with(&[], limits, 9).0;
        let mut view = TextFormat::new(time, false, Vec::new());
        let (mut out, _) = trace.merged(&[], limits, 9, |merge, out| {
            let shape = |lines: &[u8], turn: OrderedSection, out: &mut Vec<u8>| {
                let mut batch = view.batch();
                lines.split_inclusive(|&byte| byte == b'\n').for_each(|line| batch.push(line));
                view.show(batch, turn, out);
            };
            let shape: BatchTransform = Some(&shape);
            let mut take = |lines: &[u8]| {
                out.extend_from_slice(lines);
                Ok(true)
            };
            merge.run(0..u64::MAX, shape, &mut take).unwrap();
        });
        let mut end = Vec::new();
        view.end(&mut end);
        out += std::str::from_utf8(&end).unwrap();
        let merged: Vec<String> = merged.split_inclusive('\n').map(str::to_owned).collect();
        assert_eq!(merged.len(), lines.len());
        assert_eq!(out, alone(time, false, &merged), "{limits:?}");
    }
}
