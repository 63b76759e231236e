//! Threads whose LWP numbers end in the same digits, which share a record file.

use std::fs;

use super::super::harness::{Program, TestDirectory};
use super::traced_mutexes;

/// Two live threads whose LWP IDs end alike write to one file at the same time: no range of it is taken twice.
#[test]
fn two_live_threads_share_a_file() {
    for (unbuffered, pairs) in [(false, 20_000), (true, 2000)] {
        let test = TestDirectory::new("shared");
        let run = traced_mutexes(&test, &Program::c("hostile/shared_number.c")).arg(pairs.to_string());
        let output = run.unbuffered_if(unbuffered).run();
        output.success();
        let threads: Vec<u32> = output.stdout_text().split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!(threads[0] & 0xfff, threads[1] & 0xfff);
        let trace = super::assert_complete(&test, 2 * 3 * pairs);
        for thread in threads {
            let own = trace.of_lwp(thread);
            assert_eq!(own.len(), 3 * pairs);
            assert!(own.is_sorted_by_key(|record| record.fields.time), "out of order");
        }
        let files = fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(files.filter(|name| name.to_string_lossy().starts_with("tr.")).count(), 1);
    }
}
