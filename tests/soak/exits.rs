//! A process that ends itself, with eight threads at full speed.

use crate::harness::{Program, SeededRandom, TestDirectory, Trace};
use crate::kill::expected_records::{self, Semaphores};
use crate::kill::finished;

/// The ways to end and the exit status of each.
const ENDINGS: [(&str, i32); 5] = [("return", 44), ("exit", 40), ("_exit", 41), ("quick_exit", 43), ("exec", 45)];

/// Around the first three writes of a worker's buffer, which has room for a thousand calls.
const CALLS: u64 = 4000;

/// Runs and reads one program: each call that returned before the end is there, once. Returns the number of records.
pub fn one(random: &mut SeededRandom) -> u64 {
    let (ending, status) = ENDINGS[random.below(ENDINGS.len() as u64) as usize];
    let (calls, unbuffered) = (random.below(CALLS), random.below(4) == 0);
    let test = TestDirectory::new("soak-exit");
    let counts = test.directory().join("counts");
    let program = Program::with_flags("kill/counting.c", &["-DAT_ONCE=8"]);
    let mut run = test.traced(program).arg(&counts).args(["steady", ending, &calls.to_string()]);
    if unbuffered {
        run = run.env("THR_TRACE_BUF", "1");
    }
    let output = run.run();
    output.exited(status);
    let semaphores = Semaphores::parse(output.stdout_text().trim_end()).expect("the program's first line");
    let merged = test.trace_cat().run();
    merged.success();
    assert_eq!(merged.stderr_text(), "", "trace-cat complains");
    let records = expected_records::check(&merged.stdout, semaphores, &finished(&counts))
        .unwrap_or_else(|why| panic!("{ending} after {calls} calls, unbuffered {unbuffered}: {why}"));
    assert!(records >= 8 * calls, "{records} records of {calls} calls of each");
    // The end itself, after an exec the other program's; and no losses.
    let others = merged.stdout.split_inclusive(|&byte| byte == b'\n').filter(|line| !is_of_locks(line));
    let others = Trace::parse("trace-cat", &others.collect::<Vec<_>>().concat());
    let ends: Vec<u64> = others.of("proc_exit").iter().map(|record| record.get("status")).collect();
    assert_eq!(ends, [status as u64], "{ending}");
    assert_eq!(others.of("proc_exec").len(), usize::from(ending == "exec"), "{ending}");
    assert!(others.of("trace_lost").is_empty(), "{ending} after {calls} calls lost records");
    records
}

/// True if a line is of category mutex or sema, as nearly all are.
fn is_of_locks(line: &[u8]) -> bool {
    [&b"02:"[..], b"04:"].iter().any(|category| line[52..].starts_with(category))
}
