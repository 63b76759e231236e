//! Descriptor 2 that has become something else.

use std::fs;

use super::super::harness::TestDirectory;
use super::{DONE, traced_steps};

/// A daemon closes its standard descriptors, and a database opens a file that gets number 2. No message of the
/// library may be written to it.
#[test]
fn nothing_is_printed_into_a_file_that_took_the_place_of_stderr() {
    let test = TestDirectory::new("stderr");
    let own = test.directory().join("database");
    let run = traced_steps(&test, "pairs 100 stderr").arg(&own).args(["print", "first,"]);
    let output = run.args(["nofile", "0", "thread", "400", "pairs", "100", "print", "second"]).run();
    output.exited(DONE);
    assert_eq!(output.stderr_text(), "");
    assert_eq!(fs::read_to_string(&own).unwrap(), "first,second");
    super::assert_complete(&test, 3 * 600);
}

/// The same with descriptor 2 closed, and with nothing there from the start.
#[test]
fn nothing_is_printed_without_stderr() {
    let test = TestDirectory::new("no-stderr");
    let own = test.directory().join("database");
    let script = "exec 2>&-; exec \"$0\" pairs 100 stderr \"$1\" nofile 0 thread 400 pairs 100 print mine";
    let run = test.traced("sh").args(["-c", script]).arg(super::steps()).arg(&own);
    run.env("THR_TRACE_EVENTS", "mutex").run().exited(DONE);
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
    super::assert_complete(&test, 3 * 600);
}
