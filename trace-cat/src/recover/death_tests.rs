//! Recovery that dies after any number of its steps, for tests.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::file_operations::{FileOperations, RealFileOperations};
use super::{recover, recover_trbuf};
use crate::support::diagnostics::tests::recorded_diagnostics;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};
use crate::testing::test_trace::{TRBUF, TestTrace};

/// Makes this many changes and then none, like a process that was killed. Each byte of a record file is one change, and
/// each word of the trbuf.
struct DyingFileOperations {
    steps: usize,
}

impl DyingFileOperations {
    fn step(&mut self) -> io::Result<()> {
        self.steps = self.steps.checked_sub(1).ok_or(io::Error::other("killed"))?;
        Ok(())
    }
}

impl FileOperations for DyingFileOperations {
    fn write(&mut self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        if bytes.len() == 8 {
            self.step()?;
            return RealFileOperations.write(file, bytes, at);
        }
        let length = bytes.len().min(self.steps);
        RealFileOperations.write(file, &bytes[..length], at)?;
        self.steps -= length;
        if length < bytes.len() { Err(io::Error::other("killed")) } else { Ok(()) }
    }

    fn create(&mut self, path: &Path) -> io::Result<File> {
        self.step()?;
        RealFileOperations.create(path)
    }

    fn change_owner(&mut self, file: &File, user: u32, group: u32) -> io::Result<()> {
        self.step()?;
        RealFileOperations.change_owner(file, user, group)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealFileOperations.remove(path)
    }
}

/// A trace to recover, and what its files must hold afterwards.
pub type DeathCase = (TestTrace, Vec<(&'static str, String)>);

/// Recovers, and dies after `steps` steps; returns whether recovery finished before.
fn dies_after(trace: &TestTrace, steps: usize) -> bool {
    let (diagnostics, _) = recorded_diagnostics();
    let result = recover_trbuf(&trace.path(TRBUF), &mut DyingFileOperations { steps }, &diagnostics);
    result.is_ok() && !diagnostics.has_damage()
}

/// Recovers the directory, and returns the output and the messages.
pub fn run(trace: &TestTrace) -> (String, String) {
    let (diagnostics, messages) = recorded_diagnostics();
    let mut out = Vec::new();
    recover(&[trace.path("")], &mut out, &diagnostics).unwrap();
    let directory = format!("{}/", trace.path("").display()).replace("//", "/");
    (String::from_utf8(out).unwrap().replace(&directory, ""), messages.text().replace(&directory, ""))
}

/// The records that trace-cat prints, sorted, so that their order in a file does not matter; without those that count losses, which
/// recovery makes.
pub fn sorted_records(trace: &TestTrace) -> Vec<String> {
    let is_loss = |line: &&str| line.contains(":00:01:0:");
    let mut lines: Vec<String> = trace.cat(&[]).0.lines().filter(|line| !is_loss(line)).map(str::to_owned).collect();
    lines.sort();
    lines
}

pub fn read(trace: &TestTrace, name: &str) -> String {
    fs::read_to_string(trace.path(name)).unwrap()
}

#[track_caller]
pub fn assert_recovered(trace: &TestTrace, expected: &[(&str, String)], when: &str) {
    assert!(!trace.path(TRBUF).exists(), "{when}: the trbuf is still there");
    for (name, text) in expected {
        assert_eq!(&read(trace, name), text, "{when}: {name}");
    }
}

/// Lets recovery die at each of its steps, finishes it and checks the result; returns how many steps there are.
pub fn die_at_every_step(make: impl Fn() -> DeathCase, check: impl Fn(&TestTrace)) -> usize {
    let all = sorted_records(&make().0);
    let mut steps = 0;
    loop {
        let (trace, expected) = make();
        let finished = dies_after(&trace, steps);
        // A reader finds each record once, too.
        assert_eq!(sorted_records(&trace), all, "after {steps} steps");
        let (_, messages) = run(&trace);
        let unexpected = messages.lines().find(|line| !line.contains(" records before it died (EDQUOT)"));
        assert_eq!(unexpected, None, "after {steps} steps");
        assert_recovered(&trace, &expected, &format!("after {steps} steps"));
        check(&trace);
        if finished {
            return steps;
        }
        steps += 1;
    }
}

/// Lets recovery die at random steps until it is finished, and checks the result; many times.
pub fn die_again_and_again(name: &str, seed: u64, make: impl Fn() -> DeathCase, check: impl Fn(&TestTrace)) {
    let mut random = SeededRandom::seeded(name, seed);
    let until = fuzz_time();
    let mut rounds = 0;
    while rounds < 100 || until.is_some_and(|end| std::time::Instant::now() < end) {
        rounds += 1;
        let (trace, expected) = make();
        let mut deaths = Vec::new();
        while trace.path(TRBUF).exists() {
            deaths.push(random.below(400));
            dies_after(&trace, deaths[deaths.len() - 1]);
        }
        assert_recovered(&trace, &expected, &format!("deaths after {deaths:?}"));
        check(&trace);
    }
}
