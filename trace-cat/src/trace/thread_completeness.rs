//! From when on each thread of a trace in rings (`THR_TRACE_RING`) is complete: a ring overwrites its older records.
//!
//! A process that ends notes the times in its trinfo, in lines `complete_from LWP SECONDS.NANOSECONDS`. For a process that
//! was killed, the time is that of the oldest record that the thread's rings in the trbuf still hold. Nothing is left of
//! threads that ended and whose rings other threads reused; the trbuf counts them, and at the end a note in the trinfo.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use log::info;
use spec::info::{self, RINGS_REUSED, UNCOUNTED_KEY};
use spec::names::{FileName, LWP_MASK};

use super::buffers::complete_from::{CompleteFrom, raw};
use super::counted_losses::{CountedLosses, number};
use super::file_handle::open_if_present;
use super::file_names::ProcessFiles;
use crate::support::diagnostics::{Diagnostics, reason};
use crate::support::local_time::DateTime;

/// The most bytes that a line about completeness has.
const LINE_MAX: usize = 128;

/// What a trinfo holds about completeness.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrinfoCompleteness {
    /// The threads that overwrote records.
    pub threads: Vec<CompleteFrom>,
    /// How many threads' rings were reused.
    pub reused: u64,
    /// How many records were lost.
    pub losses: CountedLosses,
    /// How many of these no loss record counts: nobody knows of which threads.
    pub uncounted: u64,
}

/// Reads the trinfo at `path`. A trinfo that does not exist holds nothing.
pub fn read_trinfo(path: &Path) -> io::Result<TrinfoCompleteness> {
    let Some(file) = open_if_present(path)? else { return Ok(TrinfoCompleteness::default()) };
    let mut reader = BufReader::new(file);
    let (mut completeness, mut line) = (TrinfoCompleteness::default(), Vec::new());
    loop {
        line.clear();
        if reader.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(completeness);
        }
        match line.strip_suffix(b"\n") {
            Some(line) => {
                completeness.threads.extend(CompleteFrom::parse(line));
                // A process writes the note once for each program that it executes, with what the earlier ones have counted.
                completeness.reused = completeness.reused.max(reused(line).unwrap_or(0));
                for (key, value) in info::lines(line) {
                    completeness.losses.add_line(key, value);
                    if key == UNCOUNTED_KEY.as_bytes() {
                        completeness.uncounted = completeness.uncounted.max(number(value));
                    }
                }
            }
            None => drop(reader.skip_until(b'\n')?),
        }
    }
}

/// The number in a trinfo's note of reused rings, without its newline; `None` if the line is something else.
fn reused(line: &[u8]) -> Option<u64> {
    let note = std::str::from_utf8(line).ok()?.strip_prefix("note ")?;
    note.strip_prefix(RINGS_REUSED[0])?.strip_suffix(RINGS_REUSED[1])?.parse().ok()
}

/// From when on the threads of all processes are complete.
#[derive(Debug, Default)]
pub struct ThreadCompleteness {
    threads: BTreeMap<(ProcessFiles, u32), u64>,
    /// How many threads' rings were reused.
    reused: BTreeMap<ProcessFiles, u64>,
    /// The record files that are read, by process and number.
    read: HashSet<(ProcessFiles, u16)>,
}

impl ThreadCompleteness {
    /// Adds the threads of a process: those that its trinfo holds, and those of `in_trbuf`, which counts `reused` threads whose rings
    /// were reused.
    pub fn add_process(
        &mut self,
        process: &ProcessFiles,
        in_trbuf: &[CompleteFrom],
        reused: u64,
        diagnostics: &Diagnostics,
    ) {
        let path = process.path(FileName::Info(process.number));
        let in_trinfo = read_trinfo(&path).unwrap_or_else(|error| {
            diagnostics.report_note(path.display(), reason(&error));
            TrinfoCompleteness::default()
        });
        let reused = in_trinfo.reused.max(reused);
        if reused > 0 {
            self.reused.insert(process.clone(), reused);
        }
        for CompleteFrom { lwp, from } in in_trinfo.threads.iter().chain(in_trbuf) {
            // A thread whose rings were written out twice, as before an exec, is complete from the later time on.
            let known = self.threads.entry((process.clone(), *lwp)).or_default();
            *known = (*known).max(*from);
        }
    }

    /// Notes that a record file is read.
    pub fn add_file(&mut self, process: &ProcessFiles, number: u16) {
        if !self.threads.is_empty() {
            self.read.insert((process.clone(), number));
        }
    }

    /// The threads whose files are read, each with its time, its process and its LWP: that with the latest time first.
    fn threads_read(&self) -> Vec<(u64, &ProcessFiles, u32)> {
        let is_read =
            |process: &ProcessFiles, lwp: u32| self.read.contains(&(process.clone(), (lwp & LWP_MASK) as u16));
        let threads = self.threads.iter().filter(|((process, lwp), _)| is_read(process, *lwp));
        let mut threads: Vec<_> = threads.map(|((process, lwp), &from)| (from, process, *lwp)).collect();
        threads.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
        threads
    }

    /// Reports in a line from when on the threads are complete whose files are read, and in another how many threads'
    /// rings were reused. The time of each of several threads is logged.
    pub fn report(&self, diagnostics: &Diagnostics) {
        let threads = self.threads_read();
        let place = |process: &ProcessFiles, lwp: u32| {
            process.path(FileName::Records { process: process.number, lwp: (lwp & LWP_MASK) as u16 })
        };
        let what = |from, lwp| format!("LWP {lwp} is complete from {} ({}) on", DateTime(from), raw(from));
        const OVERWRITTEN: &str = "earlier records were overwritten";
        match threads[..] {
            [] => {}
            [(from, process, lwp)] => {
                let what = format_args!("{}; {OVERWRITTEN}", what(from, lwp));
                diagnostics.report_note(place(process, lwp).display(), what);
            }
            [(from, _, lwp), ..] => {
                for &(from, process, lwp) in &threads {
                    info!("{}: {}", place(process, lwp).display(), what(from, lwp));
                }
                let others = threads.len() - 1;
                let others = if others == 1 { "1 other".to_owned() } else { format!("{others} others") };
                diagnostics.report_note("rings", format_args!("{}, {others} before; {OVERWRITTEN}", what(from, lwp)));
            }
        }
        let reused: u64 = self.reused.values().sum();
        if let Some(process) = self.reused.keys().next() {
            let path = process.path(FileName::Info(process.number));
            let place = if self.reused.len() == 1 { path.display().to_string() } else { "rings".to_owned() };
            let [before, after] = RINGS_REUSED;
            diagnostics.report_note(place, format_args!("{before}{reused}{after}"));
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
    fn lines_are_parsed_as_they_are_written() {
        for thread in
            [CompleteFrom { lwp: 1, from: 0 }, CompleteFrom { lwp: u32::MAX, from: 9_999_999_999_999_999_999 }]
        {
            assert_eq!(CompleteFrom::parse(thread.line().trim_end().as_bytes()), Some(thread));
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
        assert_eq!(read_trinfo(&path).unwrap(), TrinfoCompleteness::default());
        let thread = |lwp| CompleteFrom { lwp, from: 7 };
        let long = "x".repeat(3 * LINE_MAX);
        let note = |count: &str| format!("note {}\n", RINGS_REUSED.join(count));
        let lines = [
            &thread(1).line(),
            &format!("map {long}\n"),
            "\n\0\n",
            &note("14"),
            &note("4294967295"),
            &note("x"),
            "uncounted 3\nuncounted 2\nlost 9\nformat 1\nlost 4\n",
            &thread(2).line(),
            &thread(3).line()[..36],
        ];
        fs::write(&path, lines.concat()).unwrap();
        assert_eq!(
            read_trinfo(&path).unwrap(),
            TrinfoCompleteness {
                threads: vec![thread(1), thread(2)],
                reused: 4_294_967_295,
                losses: read_trinfo(&path).unwrap().losses,
                uncounted: 3
            }
        );
        assert_eq!(read_trinfo(&path).unwrap().losses.in_all(), 13);
        fs::write(&path, long).unwrap();
        assert_eq!(read_trinfo(&path).unwrap(), TrinfoCompleteness::default());
        assert!(read_trinfo(directory.path()).is_err());
    }

    #[test]
    fn the_latest_thread_is_reported_and_the_others_counted() {
        let report = |count: u32| {
            let process = ProcessFiles { directory: "d".into(), prefix: Vec::new(), number: 1 };
            let mut completeness = ThreadCompleteness::default();
            let (diagnostics, messages) = recorded_diagnostics();
            let threads: Vec<CompleteFrom> =
                (1..=count).map(|lwp| CompleteFrom { lwp, from: u64::from(lwp) * NANOS_PER_SECOND }).collect();
            completeness.add_process(&process, &threads, 0, &diagnostics);
            // An earlier time of the same thread does not count.
            let earlier: Vec<CompleteFrom> =
                threads.first().map(|first| CompleteFrom { from: 9, ..*first }).into_iter().collect();
            completeness.add_process(&process, &earlier, 0, &diagnostics);
            (0..200).filter(|number| *number != 5).for_each(|number| completeness.add_file(&process, number));
            completeness.report(&diagnostics);
            assert!(!diagnostics.has_damage());
            let threads = completeness.threads_read().into_iter().map(|(from, _, lwp)| (from / NANOS_PER_SECOND, lwp));
            (threads.collect::<Vec<_>>(), messages.text())
        };
        assert_eq!(report(0), (vec![], String::new()));
        let (threads, text) = report(1);
        assert_eq!(threads, [(1, 1)]);
        assert!(text.starts_with("trace-cat: d/tr.0000001.001: LWP 1 is complete from "), "{text}");
        assert!(text.ends_with(" (0000000001.000000000) on; earlier records were overwritten\n"), "{text}");
        let (threads, text) = report(11);
        let expected: Vec<(u64, u32)> =
            (1..=11).rev().filter(|lwp| *lwp != 5).map(|lwp| (u64::from(lwp), lwp)).collect();
        assert_eq!(threads, expected, "the fifth one's file is not read");
        assert!(text.starts_with("trace-cat: rings: LWP 11 is complete from "), "{text}");
        let end = " (0000000011.000000000) on, 9 others before; earlier records were overwritten\n";
        assert!(text.ends_with(end) && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn threads_whose_rings_were_reused_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let (diagnostics, messages) = recorded_diagnostics();
        let mut completeness = ThreadCompleteness::default();
        for number in 1..=12 {
            let process = ProcessFiles { directory: directory.path().into(), prefix: Vec::new(), number };
            let note = format!("note {}\n", RINGS_REUSED.join(&(100 * number).to_string()));
            fs::write(process.path(FileName::Info(number)), note).unwrap();
            // A killed process has no note, and one that has executed another program a note of what there was until then.
            let in_trbuf = if number == 5 { 700 } else { 3 };
            completeness.add_process(&process, &[], in_trbuf, &diagnostics);
        }
        completeness.report(&diagnostics);
        let expected =
            "trace-cat: rings: the rings of 8000 threads that had ended were reused, and their records are gone\n";
        assert_eq!(messages.text(), expected);
        assert!(!diagnostics.has_damage());
    }
}
