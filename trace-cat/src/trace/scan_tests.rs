//! Scanning in chunks against scanning in one.

use super::*;
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{record, text_of};
use std::time::Instant;

/// The index of a file that holds `bytes`, and the messages.
fn scanned(bytes: &[u8], limits: ScanLimits) -> (TimeIndex, String) {
    let (_trace, text) = text_of(bytes);
    let (diagnostics, messages) = recorded_diagnostics();
    let mut indexes = scan(&[text], limits, &diagnostics);
    assert_eq!(indexes.len(), 1);
    (indexes.pop().unwrap(), messages.text())
}

const ONE_CHUNK: ScanLimits =
    ScanLimits { threads: 1, chunk: 1 << 30, buffer: 1 << 20, block: 1 << 30, collects_names: true };

#[test]
fn blocks_have_the_least_and_the_greatest_time() {
    let times = [5, 7, 7, 9, 3, 4];
    let text: String = times.map(|time| record(time, 1, "02:04:0", 0)).concat();
    let length = text.len() as u64 / 6;
    let (index, messages) = scanned(text.as_bytes(), ScanLimits { block: 2 * length, ..ONE_CHUNK });
    assert_eq!(messages, "");
    let blocks: Vec<_> = index.blocks.iter().map(|block| (block.at / length, block.min, block.max)).collect();
    assert_eq!(blocks, [(0, 5, 7), (2, 7, 9), (4, 3, 4)]);
    assert_eq!((index.ordered, index.clean, index.end), (false, true, 6 * length));
    assert_eq!(index.runs().collect::<Vec<_>>(), [0..2, 2..3]);
}

#[test]
fn records_that_name_threads_are_collected() {
    // The third one is not plain.
    let negative = record(8, 1, "01:39:0", 0).replace(":0:0:0:0:0\n", ":0x1:-2:0:0:0\n");
    let names = [record(5, 1, "01:39:0", 7), record(7, 2, "01:39:0", 39), negative];
    let text = [&*names[0], &record(6, 1, "02:04:0", 39), &record(6, 1, "01:38:0", 39), &names[1], &names[2]].concat();
    assert_eq!(
        scanned(text.as_bytes(), ONE_CHUNK).0.name_lines,
        names.map(|name| name.into_bytes().into_boxed_slice())
    );
    let (index, _) = scanned(text.as_bytes(), ScanLimits { collects_names: false, ..ONE_CHUNK });
    assert!(index.name_lines.is_empty());
}

#[test]
fn chunks_make_no_difference() {
    let mut random = SeededRandom::seeded("scan", 10);
    let until = fuzz_time();
    let mut round = 0;
    while round < 300 || until.is_some_and(|end| Instant::now() < end) {
        round += 1;
        let disorder = [0, 0, 50][random.below(3)];
        let lines = (0..1 + random.below(200)).map(|time| {
            let event = ["02:04:0", "01:39:0"][random.below(8) / 7];
            record((time * 10 + random.below(disorder + 1)) as u64, 1, event, random.next() >> random.below(64))
        });
        let mut bytes = lines.collect::<String>().into_bytes();
        for _ in 0..random.below(5) {
            random.mutate(&mut bytes, b"\n\r\0:0x1");
        }
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len() + 1);
            let byte = b"\0x\n"[random.below(3)];
            bytes.splice(at..at, vec![byte; random.below(2000)]);
        }
        let (expected, expected_messages) = scanned(&bytes, ONE_CHUNK);
        let limits = ScanLimits {
            threads: 1 + random.below(3),
            chunk: 1 + random.below(3000) as u64,
            buffer: random.below(9000),
            block: 1 + random.below(3000) as u64,
            collects_names: true,
        };
        let (index, messages) = scanned(&bytes, limits);
        assert_eq!(messages, expected_messages, "round {round}, {limits:?}");
        assert_eq!((index.records, index.span(), index.end), (expected.records, expected.span(), expected.end));
        assert_eq!((index.ordered, index.clean), (expected.ordered, expected.clean), "round {round}, {limits:?}");
        assert_eq!(index.name_lines, expected.name_lines, "round {round}, {limits:?}");
        assert!(index.blocks.is_sorted_by_key(|block| block.at));
    }
}
