//! Files with every kind of damage, merged with every kind of limits, compared with the records that a reader of single lines
//! returns; and files that change while they are merged.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use spec::record::EVENT1_OFFSET_MAX;

use super::tests::{files, oracle, tiny};
use super::*;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{TestTrace, text_of};
use crate::trace::record_reader::{RecordItem, RecordReader};

/// Changes `bytes` in up to `most` places, to bytes that a record may have or to long garbage, or truncates them.
fn damage(random: &mut SeededRandom, bytes: &mut Vec<u8>, most: usize) {
    for _ in 0..random.below(most + 1) {
        random.mutate(bytes, b"\n\n\r\0:0x19");
    }
    for _ in 0..random.below(3) {
        let at = random.below(bytes.len() + 1);
        let byte = b"\0\0x\n"[random.below(4)];
        let count = 1 << random.below(14);
        bytes.splice(at..at, vec![byte; count]);
    }
}

/// The records of `bytes` by the reader of single lines: the time, whether the record is stamped after its call, the line.
fn records(bytes: &[u8]) -> Vec<(u64, bool, String)> {
    let (_trace, text) = text_of(bytes);
    let mut records = RecordReader::new(text, 0..bytes.len() as u64, Vec::new());
    let (mut all, stamps) = (Vec::new(), StampTable::new());
    while let Some(item) = records.next().unwrap() {
        if let RecordItem::Record { time } = item {
            let line = String::from_utf8(records.line().to_vec()).unwrap();
            let mut head = [b'0'; EVENT1_OFFSET_MAX + 8];
            let length = line.len().min(head.len());
            head[..length].copy_from_slice(&line.as_bytes()[..length]);
            all.push((time, stamps.after(&head) == 1, line));
        }
    }
    all
}

#[test]
fn every_undamaged_record_of_a_damaged_trace_is_merged() {
    let mut random = SeededRandom::seeded("damage", 13);
    let until = fuzz_time();
    let (mut round, mut undamaged) = (0, 0);
    while round < 150 || until.is_some_and(|end| Instant::now() < end) {
        round += 1;
        let trace = TestTrace::new();
        let mut expected = Vec::new();
        for (number, file) in files(&mut random).iter().enumerate() {
            let mut bytes = file.iter().map(|(.., line)| &line[..]).collect::<String>().into_bytes();
            damage(&mut random, &mut bytes, 6);
            trace.file(&format!("tr.0000001.{number:03x}"), &bytes);
            expected.push(records(&bytes));
        }
        undamaged += expected.iter().map(Vec::len).sum::<usize>();
        let limits = tiny(&mut random);
        let (out, messages) = trace.cat_with(&[], limits, random.below(5));
        assert!(out == oracle(expected), "round {round}, {limits:?}");
        assert!(messages.lines().all(|line| line.starts_with("trace-cat: tr.0000001.")), "{messages}");
    }
    assert!(undamaged > 50 * round, "{undamaged} records in {round} rounds");
}

#[test]
fn only_changed_bytes_are_missing_if_files_change_meanwhile() {
    let mut random = SeededRandom::seeded("change", 14);
    let until = fuzz_time();
    let mut round = 0;
    while round < 40 || until.is_some_and(|end| Instant::now() < end) {
        round += 1;
        let trace = TestTrace::new();
        let files = files(&mut random);
        for (number, file) in files.iter().enumerate() {
            trace
                .file(&format!("tr.0000001.{number:03x}"), file.iter().map(|(.., line)| &line[..]).collect::<String>());
        }
        let path = trace.path("tr.0000001.000");
        let seed = random.next();
        let is_merged = AtomicBool::new(false);
        let limits = tiny(&mut random);
        let (out, messages) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut random = SeededRandom::seeded_by(seed);
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                while !is_merged.load(Ordering::Relaxed) {
                    let length = file.metadata().unwrap().len();
                    let at = random.next() % (length + 1);
                    match random.below(3) {
                        0 => file.set_len(at).unwrap(),
                        1 => file.write_all_at(b"\n0\0:", at).unwrap(),
                        _ => file.write_all_at(&[b'\n'; 200], at).unwrap(),
                    }
                }
            });
            let merged = trace.cat_with(&[], limits, random.below(5));
            is_merged.store(true, Ordering::Relaxed);
            writer.join().unwrap();
            merged
        });
        assert!(messages.lines().all(|line| line.starts_with("trace-cat: tr.0000001.000")), "{messages}");
        // All records of the other files are output, in order.
        let expected = oracle(files[1..].to_vec());
        let mut lines = out.lines();
        for expected in expected.lines() {
            assert!(lines.any(|line| line == expected), "round {round}: {expected} is missing, {limits:?}");
        }
    }
}
