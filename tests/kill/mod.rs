//! kill -9: what the program had finished is in the trace, once, whole.

pub mod account;
mod moments;

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use self::account::Semaphores;
use self::moments::Moments;
use super::harness::{Program, Trial};

/// How the program runs and when it dies.
struct Death {
    mode: &'static str,
    /// `THR_TRACE_BUF`: each record is written at once.
    unbuffered: bool,
    /// The latest moment, in microseconds after the workers may start.
    within: u64,
}

/// A steady worker fills its 112 KiB in a fraction of a millisecond, so that most of the later deaths fall on or
/// between writes of whole buffers; the earliest fall before the first.
const DEATHS: [Death; 5] = [
    Death { mode: "steady", unbuffered: false, within: 400 },
    Death { mode: "steady", unbuffered: false, within: 20_000 },
    Death { mode: "steady", unbuffered: true, within: 20_000 },
    Death { mode: "churn", unbuffered: false, within: 40_000 },
    Death { mode: "churn", unbuffered: true, within: 40_000 },
];

/// The moments of each kind: a hundred together.
const EACH: usize = 20;

fn finished(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Runs, kills and reads one program; returns how many records of its workers there were.
fn one(death: &Death, moments: &mut Moments) -> u64 {
    let trial = Trial::new("kill");
    let counts = trial.directory().join("counts");
    let mut run = trial.traced(Program::c("kill/counting.c")).arg(&counts).arg(death.mode);
    if death.unbuffered {
        run = run.env("THR_TRACE_BUF", "1");
    }
    let moment = moments.within(Duration::from_micros(death.within));
    let mut running = run.spawn();
    running.wait_for("\n");
    sleep(moment);
    running.signal(libc::SIGKILL);
    let output = running.wait();
    output.killed(libc::SIGKILL);
    let semaphores = Semaphores::parse(output.stdout_text().trim_end()).expect("the program's first line");
    let finished = finished(&counts);

    let read = || {
        let output = trial.trace_cat().run();
        // A program that had no time to record anything leaves a directory without a trace.
        if finished.iter().any(|&calls| calls > 0) {
            output.success();
            assert_eq!(output.stderr_text(), "");
        }
        output.stdout
    };
    let text = read();
    let records = account::check(&text, semaphores, &finished)
        .unwrap_or_else(|why| panic!("{}, killed after {moment:?}: {why}", death.mode));
    assert!(text == read(), "reading a trace changes it");
    records
}

#[test]
fn a_hundred_kills_lose_nothing() {
    let mut moments = Moments::seeded();
    let mut records = 0;
    for death in &DEATHS {
        let mut found = 0;
        for _ in 0..EACH {
            found += one(death, &mut moments);
        }
        println!("{} kills, {}, unbuffered {}: {found} records", EACH, death.mode, death.unbuffered);
        records += found;
    }
    assert!(records > 100_000, "the programs died too early to show anything: {records} records");
}

/// Killed at any moment since its start, also while its first record makes the files.
#[test]
fn a_kill_while_the_files_are_made_loses_nothing() {
    let mut moments = Moments::seeded();
    for _ in 0..40 {
        let trial = Trial::new("kill-early");
        let counts = trial.directory().join("counts");
        let running = trial.traced(Program::c("kill/counting.c")).arg(&counts).arg("steady").spawn();
        sleep(moments.within(Duration::from_millis(4)));
        running.signal(libc::SIGKILL);
        let output = running.wait();
        output.killed(libc::SIGKILL);
        let text = trial.trace_cat().run().stdout;
        match Semaphores::parse(output.stdout_text().trim_end()) {
            Some(semaphores) => {
                account::check(&text, semaphores, &finished(&counts)).unwrap_or_else(|why| panic!("{why}"));
            }
            None => assert!(!text.windows(9).any(|event| event == b":04:04:0:"), "a post before the start"),
        }
    }
}
