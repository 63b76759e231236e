//! THR_TRACE_MAX where it does not matter. What happens when it is reached, or the disk is full: `losses`.

use super::super::harness::TestDirectory;
use super::{DONE, assert_complete, complains_once, traced_steps};

/// The limit is the process's own: a child and the next image begin anew, and a trace below it has no limit.
#[test]
fn a_trace_below_its_limit_is_complete() {
    let test = TestDirectory::new("max-below");
    let run = traced_steps(&test, "pairs 100 clone 50 vforkexec 50 threads 2 1000").env("THR_TRACE_MAX", "10M");
    run.run().exited(DONE);
    assert_complete(&test, 3 * (100 + 50 + 2 * 50 + 2000));
}

/// A value that is no size means no limit, and is reported once.
#[test]
fn a_value_that_is_no_size_is_no_limit() {
    for wrong in ["", "-1", "1T", "10 M", "much", "99999999999999999999", "0x100"] {
        let test = TestDirectory::new("max-wrong");
        let run = traced_steps(&test, "pairs 100 thread 3000").env("THR_TRACE_MAX", wrong);
        complains_once(&run.noise_expected().run(), "THR_TRACE_MAX");
        assert_complete(&test, 3 * 3100);
    }
}
