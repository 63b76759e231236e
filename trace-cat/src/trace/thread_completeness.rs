//! From what moment on the threads of a trace that was kept in rings (`THR_TRACE_RING`) are complete: what they had
//! recorded before was overwritten.
//!
//! A process that ends tells so in its trinfo, in lines `complete_from LWP SECONDS.NANOSECONDS`; of one that was killed its
//! trbuf tells: the moment is that of the oldest record that a ring still holds. Of threads whose rings others took over
//! nothing is left, and only a note in trinfo tells how many they were.

use std::collections::{BTreeMap, HashSet};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use spec::info::RINGS_REUSED;
use spec::names::{FileName, LWP_MASK};

use super::buffers::complete_from::{CompleteFrom, raw};
use super::file_names::ProcessFiles;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::local_time::DateTime;

/// No such line is longer, bytes.
const LINE_MAX: usize = 128;
/// Threads that are told of one by one; of more, only how many there are.
const REPORTED_MAX: usize = 10;

/// What a trinfo says about this.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrinfoCompleteness {
    /// Threads that have overwritten records.
    pub wholes: Vec<CompleteFrom>,
    /// Threads of which nothing is left.
    pub gone: u64,
}

/// What the trinfo at `path` says, which need not exist.
///
/// # Errors
/// What the system says, but for a missing file.
pub fn of_trinfo(path: &Path) -> io::Result<TrinfoCompleteness> {
    let file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TrinfoCompleteness::default()),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut reader = BufReader::new(file);
    let (mut written, mut line) = (TrinfoCompleteness::default(), Vec::new());
    loop {
        line.clear();
        if reader.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(written);
        }
        match line.strip_suffix(b"\n") {
            Some(line) => {
                written.wholes.extend(CompleteFrom::parse(line));
                // Once for each program that the process was.
                written.gone = written.gone.saturating_add(gone(line).unwrap_or(0));
            }
            None => drop(reader.skip_until(b'\n')?),
        }
    }
}

/// How many threads' records are gone, if that is what a line of a trinfo, without its newline, says.
fn gone(line: &[u8]) -> Option<u64> {
    let note = std::str::from_utf8(line).ok()?.strip_prefix("note ")?;
    note.strip_prefix(RINGS_REUSED[0])?.strip_suffix(RINGS_REUSED[1])?.parse().ok()
}

/// What is known of the threads of all processes.
#[derive(Debug, Default)]
pub struct Completeness {
    threads: BTreeMap<(ProcessFiles, u32), u64>,
    /// How many threads of a process are gone.
    gone: BTreeMap<ProcessFiles, u64>,
    /// Processes and the last three digits of their record files that are read.
    read: HashSet<(ProcessFiles, u16)>,
}

impl Completeness {
    /// Adds what a process's trbuf told, and reads its trinfo.
    pub fn process(&mut self, process: &ProcessFiles, told: &[CompleteFrom], diagnostics: &Diagnostics) {
        let path = process.path(FileName::Info(process.number));
        let written = of_trinfo(&path).unwrap_or_else(|error| {
            diagnostics.report_note(path.display(), reason(&error));
            TrinfoCompleteness::default()
        });
        if written.gone > 0 {
            self.gone.insert(process.clone(), written.gone);
        }
        for CompleteFrom { lwp, from } in written.wholes.iter().chain(told) {
            // A thread whose rings were written out twice (before an exec, say) is complete from the later moment on.
            let known = self.threads.entry((process.clone(), *lwp)).or_default();
            *known = (*known).max(*from);
        }
    }

    /// Notes that a record file is read.
    pub fn file(&mut self, process: &ProcessFiles, number: u16) {
        if !self.threads.is_empty() {
            self.read.insert((process.clone(), number));
        }
    }

    /// Tells of the threads whose files are read, the latest first.
    pub fn tell(&self, diagnostics: &Diagnostics) {
        let mut told: Vec<(u64, &ProcessFiles, u32)> = self
            .threads
            .iter()
            .filter(|((process, lwp), _)| self.read.contains(&(process.clone(), (lwp & LWP_MASK) as u16)))
            .map(|((process, lwp), &from)| (from, process, *lwp))
            .collect();
        told.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
        let moment = |from| format!("{} ({})", DateTime(from), raw(from));
        for &(from, process, lwp) in told.iter().take(REPORTED_MAX) {
            let file = process.path(FileName::Records { process: process.number, lwp: (lwp & LWP_MASK) as u16 });
            let what = format_args!("LWP {lwp} is complete from {} on; what came before was overwritten", moment(from));
            diagnostics.report_note(file.display(), what);
        }
        if let Some(&(from, ..)) = told.get(REPORTED_MAX) {
            let count = told.len() - REPORTED_MAX;
            diagnostics
                .report_note("rings", format_args!("and {count} more threads, the latest from {} on", moment(from)));
        }
        for (process, count) in self.gone.iter().take(REPORTED_MAX) {
            let [before, behind] = RINGS_REUSED;
            diagnostics.report_note(
                process.path(FileName::Info(process.number)).display(),
                format_args!("{before}{count}{behind}"),
            );
        }
        if self.gone.len() > REPORTED_MAX {
            let (processes, threads) =
                (self.gone.len() - REPORTED_MAX, self.gone.values().skip(REPORTED_MAX).sum::<u64>());
            diagnostics
                .report_note("rings", format_args!("and those of {threads} more threads of {processes} processes"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::diagnostics::tests::recorded_diagnostics;
    use spec::record::NANOS_PER_SECOND;
    use std::fs;

    #[test]
    fn lines_and_moments_are_twins() {
        for whole in [CompleteFrom { lwp: 1, from: 0 }, CompleteFrom { lwp: u32::MAX, from: 9_999_999_999_999_999_999 }]
        {
            assert_eq!(CompleteFrom::parse(whole.line().trim_end().as_bytes()), Some(whole));
        }
        assert_eq!(
            CompleteFrom { lwp: 71, from: 5 * NANOS_PER_SECOND + 9 }.line(),
            "complete_from 71 0000000005.000000009\n"
        );
        for wrong in [
            "",
            "complete_from",
            "complete_from 71",
            "complete_from 71 0000000005.00000000",
            "complete_from 71 000000005.000000009",
            "complete_from 71 0000000005.000000009 ",
            "complete_from +1 0000000005.000000009",
            "complete_from  0000000005.000000009",
            "complete_from 4294967296 0000000005.000000009",
            "note complete_from 71 0000000005.000000009",
        ] {
            assert_eq!(CompleteFrom::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_trinfo_may_hold_anything() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trinfo.0000001");
        assert_eq!(of_trinfo(&path).unwrap(), TrinfoCompleteness::default());
        let whole = |lwp| CompleteFrom { lwp, from: 7 };
        let long = "x".repeat(3 * LINE_MAX);
        let note = |count: &str| format!("note {}\n", RINGS_REUSED.join(count));
        let lines = [
            &whole(1).line(),
            &format!("map {long}\n"),
            "\n\0\n",
            &note("14"),
            &note("4294967295"),
            &note("x"),
            &whole(2).line(),
            &whole(3).line()[..36],
        ];
        fs::write(&path, lines.concat()).unwrap();
        assert_eq!(
            of_trinfo(&path).unwrap(),
            TrinfoCompleteness { wholes: vec![whole(1), whole(2)], gone: 4_294_967_309 }
        );
        fs::write(&path, long).unwrap();
        assert_eq!(of_trinfo(&path).unwrap(), TrinfoCompleteness::default());
        assert!(of_trinfo(directory.path()).is_err());
    }

    #[test]
    fn the_latest_ten_are_told_and_the_others_counted() {
        let tell = |count: u32| {
            let process = ProcessFiles { directory: "d".into(), prefix: Vec::new(), number: 1 };
            let mut wholes = Completeness::default();
            let (diagnostics, messages) = recorded_diagnostics();
            let told: Vec<CompleteFrom> =
                (1..=count).map(|lwp| CompleteFrom { lwp, from: u64::from(lwp) * NANOS_PER_SECOND }).collect();
            wholes.process(&process, &told, &diagnostics);
            // An earlier moment does not count.
            wholes.process(
                &process,
                &told.first().map(|first| CompleteFrom { from: 9, ..*first }).into_iter().collect::<Vec<_>>(),
                &diagnostics,
            );
            (0..200).filter(|number| *number != 5).for_each(|number| wholes.file(&process, number));
            wholes.tell(&diagnostics);
            assert!(!diagnostics.has_damage());
            messages.text()
        };
        assert_eq!(tell(0), "");
        let few = tell(11);
        assert_eq!(few.lines().count(), 10, "the fifth one's file is not read: {few}");
        assert!(few.starts_with("trace-cat: d/tr.0000001.00b: LWP 11 is complete from "), "{few}");
        let last = few.lines().last().unwrap();
        assert!(
            last.contains("LWP 1 ") && last.ends_with(" (0000000001.000000000) on; what came before was overwritten")
        );
        let many = tell(100);
        assert_eq!(many.lines().count(), 11);
        let last = many.lines().last().unwrap();
        assert!(last.starts_with("trace-cat: rings: and 89 more threads, the latest from 19"), "{last}");
        assert!(last.ends_with(" (0000000090.000000000) on"), "{last}");
    }

    #[test]
    fn threads_of_which_nothing_is_left_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let (diagnostics, messages) = recorded_diagnostics();
        let mut wholes = Completeness::default();
        for number in 1..=12 {
            let process = ProcessFiles { directory: directory.path().into(), prefix: Vec::new(), number };
            let note = format!("note {}\n", RINGS_REUSED.join(&(100 * number).to_string()));
            fs::write(process.path(FileName::Info(number)), note).unwrap();
            wholes.process(&process, &[], &diagnostics);
        }
        wholes.tell(&diagnostics);
        let text = messages.text();
        let lines: Vec<&str> = text.lines().collect();
        let path = directory.path().display();
        assert_eq!(
            lines[0],
            format!(
                "trace-cat: {path}/trinfo.0000001: \
                 the rings of 100 threads that had ended were reused, and their records are gone"
            )
        );
        assert_eq!(lines[10], "trace-cat: rings: and those of 2300 more threads of 2 processes");
        assert_eq!(lines.len(), 11);
        assert!(!diagnostics.has_damage());
    }
}
