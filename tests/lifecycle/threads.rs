//! Many short threads.

use std::collections::HashSet;

use super::super::harness::{Program, TestDirectory};
use super::{clean, names};

#[test]
fn a_thousand_short_threads() {
    for unbuffered in [false, true] {
        let test = TestDirectory::new("short");
        let mut run = test.traced(Program::c("lifecycle/short_threads.c"));
        if unbuffered {
            run = run.env("THR_TRACE_BUF", "1");
        }
        run.run().success();
        let trace = clean(&test);
        for event in ["thr_begin", "thr_exit"] {
            let threads: HashSet<u32> = trace.of(event).iter().map(|record| record.fields.lwpid).collect();
            assert_eq!((threads.len(), trace.of(event).len()), (1000, 1000), "{event}");
        }
        for event in ["thr_create", "thr_join"] {
            assert_eq!(trace.of(event).len(), 2000, "{event}");
        }
        assert_eq!(super::pairs(&trace, trace.records[0].fields.pid), 1000);
        // Each thread's first and last records are its begin and exit.
        for lwp in trace.of("thr_begin").iter().map(|record| record.fields.lwpid) {
            let own = trace.of_lwp(lwp);
            assert!(own[0].is("thr_begin") && own[own.len() - 1].is("thr_exit"));
        }
        let files = names(&test.trace_directory());
        let records = files.iter().filter(|name| name.starts_with("tr.")).count();
        // Threads whose numbers end alike share a file.
        assert!((1..=1001).contains(&records), "{records}");
        assert_eq!(files.len(), records + 2, "trinfo and trclock");
    }
}
