//! kill -9: the trace has a complete record of all that the program had finished, once.

pub mod expected_records;
mod hanging;
mod runs;

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use self::expected_records::Semaphores;
use super::harness::{CommandOutput, Program, RunningCommand, SeededRandom, TestDirectory};

/// How the program runs and when it dies.
pub struct Death {
    /// What `counting` does: `steady` or `churn`.
    pub mode: &'static str,
    /// `THR_TRACE_BUF`: each record is written at once.
    pub unbuffered: bool,
    /// It is killed when its workers have finished that many calls, or fewer: counted, not timed, so that a slow machine
    /// kills no earlier.
    pub within: u64,
}

/// A worker's 144 KiB are full after some thirteen hundred calls: the first deaths fall around the first writes of buffers, the
/// next between and in later ones.
const DEATHS: [Death; 5] = [
    Death { mode: "steady", unbuffered: false, within: 8_000 },
    Death { mode: "steady", unbuffered: false, within: 300_000 },
    Death { mode: "steady", unbuffered: true, within: 20_000 },
    Death { mode: "churn", unbuffered: false, within: 40_000 },
    Death { mode: "churn", unbuffered: true, within: 20_000 },
];

/// The random of each kind: a hundred together.
const EACH: usize = 20;

/// The ways in which `counting` ends by itself, each with its exit status or the signal that ends it.
pub const ENDINGS: [(&str, Result<i32, i32>); 10] = [
    ("return", Ok(44)),
    ("exit", Ok(40)),
    ("_exit", Ok(41)),
    ("_Exit", Ok(42)),
    ("quick_exit", Ok(43)),
    ("exec", Ok(45)),
    ("exec_fails", Ok(46)),
    ("forks", Ok(47)),
    ("abort", Err(libc::SIGABRT)),
    ("segv", Err(libc::SIGSEGV)),
];

/// Fails unless `counting` ended with this exit status or by this signal. How many calls each worker had finished, and its
/// semaphores.
#[track_caller]
pub fn ended(output: &CommandOutput, status: Result<i32, i32>, counts: &Path) -> (Vec<u64>, Semaphores) {
    match status {
        Ok(code) => output.exited(code),
        Err(signal) => output.killed(signal),
    };
    let semaphores = Semaphores::parse(output.stdout_text().trim_end()).expect("the program's first line");
    (finished(counts), semaphores)
}

/// How many calls of each worker have returned.
pub fn finished(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).unwrap_or_default();
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Kills `counting` when its workers have finished `kill_after` calls. How many each had finished then, and its semaphores; `None`
/// if it was killed before it printed them.
pub fn kill(mut running: RunningCommand, counts: &Path, mode: &str, kill_after: u64) -> Option<(Vec<u64>, Semaphores)> {
    while finished(counts).iter().sum::<u64>() < kill_after {
        assert!(!running.has_ended(), "{mode}: ended by itself before {kill_after} calls");
        sleep(Duration::from_micros(20));
    }
    running.signal(libc::SIGKILL);
    let output = running.wait();
    output.killed(libc::SIGKILL);
    let semaphores = Semaphores::parse(output.stdout_text().trim_end());
    assert!(semaphores.is_some() || kill_after == 0, "the program has not printed its first line");
    Some((finished(counts), semaphores?))
}

/// Runs, kills and reads one program. Returns how many records of its workers there were.
pub fn one(death: &Death, random: &mut SeededRandom) -> u64 {
    let test = TestDirectory::new("kill");
    let counts = test.directory().join("counts");
    let mut run = test.traced(Program::c("kill/counting.c")).arg(&counts).arg(death.mode);
    if death.unbuffered {
        run = run.env("THR_TRACE_BUF", "1");
    }
    let kill_after = random.below(death.within);
    let Some((finished, semaphores)) = kill(run.spawn(), &counts, death.mode, kill_after) else {
        return 0;
    };

    let read = || {
        let output = test.trace_cat().run();
        // A program that had no time to record anything leaves a directory without a trace.
        if finished.iter().any(|&calls| calls > 0) {
            output.success();
            assert_eq!(output.stderr_text(), "");
        }
        output.stdout
    };
    let text = read();
    let records = expected_records::check(&text, semaphores, &finished)
        .unwrap_or_else(|why| panic!("{}, killed after {kill_after} calls: {why}", death.mode));
    assert!(records >= kill_after, "{records} records of {kill_after} calls");
    assert!(text == read(), "reading a trace changes it");
    if records > 0 {
        recover(&test, &text);
    }
    records
}

/// For those who go on with grep: `--recover` leaves the same records in the files alone, and no trbuf.
pub fn recover(test: &TestDirectory, text: &[u8]) {
    fn sorted(text: &[u8]) -> Vec<&[u8]> {
        let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        lines.sort_unstable();
        lines
    }
    test.recover();
    let (mut records, mut buffers) = (Vec::new(), 0);
    for entry in fs::read_dir(test.trace_directory()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if name.starts_with("tr.") {
            records.extend(fs::read(&path).unwrap());
        }
        buffers += usize::from(name.starts_with("trbuf."));
    }
    assert_eq!(buffers, 0, "a trbuf is left");
    // Each file ends with a newline, the merged text with one.
    assert!(sorted(&records) == sorted(text), "the files do not hold what trace-cat printed");
}

#[test]
fn a_hundred_kills_lose_nothing() {
    let mut random = SeededRandom::seeded();
    for death in &DEATHS {
        println!("{EACH} kills, {}, unbuffered {}, within {} calls", death.mode, death.unbuffered, death.within);
        for _ in 0..EACH {
            one(death, &mut random);
        }
    }
}

/// Runs a program, kills it at any moment since its start, also while its first record makes the files, and reads it.
/// Returns how many records of its workers there were.
pub fn early(random: &mut SeededRandom) -> u64 {
    let test = TestDirectory::new("kill-early");
    let counts = test.directory().join("counts");
    let running = test.traced(Program::c("kill/counting.c")).arg(&counts).arg("steady").spawn();
    sleep(Duration::from_micros(random.below(4000)));
    running.signal(libc::SIGKILL);
    let output = running.wait();
    output.killed(libc::SIGKILL);
    let text = test.trace_cat().run().stdout;
    match Semaphores::parse(output.stdout_text().trim_end()) {
        Some(semaphores) => {
            expected_records::check(&text, semaphores, &finished(&counts)).unwrap_or_else(|why| panic!("{why}"))
        }
        None => {
            assert!(!text.windows(9).any(|event| event == b":04:04:0:"), "a post before the start");
            0
        }
    }
}

#[test]
fn a_kill_while_the_files_are_made_loses_nothing() {
    let mut random = SeededRandom::seeded();
    for _ in 0..40 {
        early(&mut random);
    }
}
