//! Runs one workload in one way, and returns what it cost.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::figures::Sample;
use crate::launch::Launch;
use crate::lttng::{Lttng, Mode};
use crate::options::Options;
use crate::process::{self, Stop, Usage};
use crate::trace;
use crate::uftrace::{Calls, Uftrace};
use crate::ways::Way;
use crate::workloads::{Kind, Workload};

/// Where the sources of the programs are.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs");
/// The C programs, and what they are compiled with beside what all of them are.
const PROGRAMS: [(&str, &[&str]); 5] =
    [("calls", &[]), ("functions", &["-finstrument-functions"]), ("threads", &[]), ("forks", &[]), ("floor", &[])];
/// Bytes of a pair's three records: 83, 70 and 83.
const PAIR: u64 = 236;
/// Writes of a pair with THR_TRACE_BUF: those of a free lock's two records are one.
const BUF_WRITES: u64 = 2;

/// What the runs need, and what has to go when they are over.
#[derive(Debug)]
pub struct Runner {
    library: PathBuf,
    against: Option<PathBuf>,
    /// Before the directory, which has to go last.
    pub lttng: Result<Lttng, String>,
    /// Or why it is not there.
    pub uftrace: Result<Uftrace, String>,
    scratch: TempDir,
    /// How many traces there were, by which their directories have different names.
    traces: u64,
}

impl Runner {
    /// Compiles the programs, and starts the daemon of a peer that is wanted.
    ///
    /// # Errors
    /// If the programs do not compile.
    pub fn new(options: &Options) -> Result<Runner, Stop> {
        let scratch = tempfile::Builder::new().prefix("threadt-bench.").tempdir();
        let scratch = scratch.map_err(|error| Stop::Cannot(format!("temporary directory: {error}")))?;
        spread_directories(scratch.path());
        for (program, flags) in PROGRAMS {
            let source = Path::new(SOURCES).join(program).with_extension("c");
            let compiler = Launch::new("cc").args(["-std=gnu11", "-O2", "-pthread"]).args(flags).arg("-o");
            process::run(&mut compiler.args([scratch.path().join(program), source]).command(), scratch.path())?;
        }
        let wanted = |ways: &[Way]| ways.iter().any(|way| options.ways.contains(way));
        let unwanted = "not asked for".to_owned();
        let mut runner = Runner {
            library: options.build.join("libthreadt.so"),
            against: options.against.as_ref().map(|path| path.join("libthreadt.so")),
            lttng: if wanted(&[Way::Lttng, Way::LttngOverwrite]) {
                Lttng::start(scratch.path())
            } else {
                Err(unwanted.clone())
            },
            uftrace: if wanted(&[Way::Uftrace]) { Uftrace::find() } else { Err(unwanted) },
            scratch,
            traces: 0,
        };
        runner.try_lttng()?;
        Ok(runner)
    }

    /// Whether LTTng records: a trace as long as those that are measured takes too long to count.
    fn try_lttng(&mut self) -> Result<(), Stop> {
        let mutex = Kind::Calls { calls: "private", threads: 1, turns: 1000 };
        let small = Workload { name: "trial", what: "a thousand turns", kind: mutex };
        if self.lttng.is_ok() {
            match self.measure(&small, Way::Lttng) {
                Err(Stop::Cannot(reason)) => self.lttng = Err(reason),
                Err(interrupted) => return Err(interrupted),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Makes the input of a workload.
    ///
    /// # Errors
    /// If it cannot be made: then none of the ways can be measured.
    pub fn prepare(&self, workload: &Workload) -> Result<(), Stop> {
        match &workload.kind {
            Kind::Program(program) => program.prepare(Path::new(SOURCES), self.scratch.path()),
            _ => Ok(()),
        }
    }

    /// One run. Its trace is gone afterwards, or stays until the end.
    ///
    /// # Errors
    /// If it cannot be measured, or a signal arrived.
    pub fn measure(&mut self, workload: &Workload, way: Way) -> Result<Sample, Stop> {
        if let Some(reason) = workload.excludes(way) {
            return Err(Stop::Cannot(reason.to_owned()));
        }
        self.traces += 1;
        let scratch = self.scratch.path();
        // By the name ext4 chooses where on the disk the directory is.
        let name = scratch.file_name().unwrap_or_default().to_string_lossy();
        let trace = scratch.join(format!("{name}.{}", self.traces));
        fs::create_dir(&trace).map_err(|error| format!("{}: {error}", trace.display()))?;
        let result = self.run(workload, way, &trace);
        if !workload.keeps_trace() {
            let _ = fs::remove_dir_all(&trace);
        }
        result
    }

    fn run(&self, workload: &Workload, way: Way, trace: &Path) -> Result<Sample, Stop> {
        let scratch = self.scratch.path();
        let launch = workload.launch(way, Path::new(SOURCES), scratch);
        let mut reported = 0;
        let (mut sample, counted) = match way {
            Way::Native => return sample(workload, &process::run(&mut launch.command(), scratch)?),
            Way::Floor => {
                let turns = workload.turns(way).unwrap_or(1).to_string();
                let floor = Launch::new(scratch.join("floor")).args([turns, PAIR.to_string()]);
                let floor = floor.args([trace.join("text")]);
                (sample(workload, &process::run(&mut floor.command(), scratch)?)?, None)
            }
            Way::BufFloor => {
                let turns = workload.turns(way).unwrap_or(1).to_string();
                let floor = Launch::new(scratch.join("floor")).args([turns, PAIR.to_string()]);
                let floor = floor.args([trace.join("text")]).args([BUF_WRITES.to_string()]);
                (sample(workload, &process::run(&mut floor.command(), scratch)?)?, None)
            }
            Way::Lttng | Way::LttngOverwrite => {
                let lttng = self.lttng.as_ref().map_err(Clone::clone)?;
                let mode = if way == Way::Lttng { Mode::Discard } else { Mode::Overwrite };
                let recorded = lttng.record(mode, launch, trace, scratch)?;
                reported = recorded.lost;
                let mut sample = sample(workload, &recorded.usage)?;
                sample.cpu += recorded.daemons_cpu;
                sample.peak += recorded.daemons_peak;
                (sample, trace::ctf_events(trace))
            }
            Way::Uftrace => {
                let uftrace = self.uftrace.as_ref().map_err(Clone::clone)?;
                let calls = if matches!(workload.kind, Kind::Program(_)) { Calls::Threads } else { Calls::All };
                // It makes its directory itself.
                let usage = uftrace.record(calls, launch, &trace.join("uftrace"), scratch)?;
                (sample(workload, &usage)?, Some(trace::uftrace_calls(trace)))
            }
            Way::Off | Way::Before | Way::Default | Way::Buf | Way::Blocked | Way::Ring | Way::Detail | Way::Stack => {
                let library = self.against.as_ref().filter(|_| way == Way::Before).unwrap_or(&self.library);
                let launch = launch.env("LD_PRELOAD", library).env("THR_TRACE_DIR", trace);
                let variables = way.variables().iter();
                let launch = variables.fold(launch, |launch, (name, value)| launch.env(name, value));
                let sample = sample(workload, &process::run(&mut launch.command(), scratch)?)?;
                reported = trace::lost(trace);
                (sample, Some(trace::lines(trace).map_err(|error| format!("{}: {error}", trace.display()))?))
            }
        };
        sample.written = trace::length(trace);
        (sample.records, sample.lost) = account(workload.events(way), counted, reported, way.reports_losses())?;
        Ok(sample)
    }
}

/// Lets ext4 put the subdirectories far from each other, and from those of earlier benchmarks: without a journal it looks for minutes at
/// each inode that was freed nearby before it makes a file, hundreds of microseconds where a benchmark has removed its traces. Other file
/// systems refuse that.
fn spread_directories(directory: &Path) {
    let _ = process::run(&mut Launch::new("chattr").arg("+T").args([directory]).command(), directory);
}

/// Records and losses, from the events that there were, the records that were counted, and the losses that the way
/// reported, each where it is known.
///
/// # Errors
/// If events are missing and not reported: then the figure is that of something else.
fn account(
    made: Option<u64>,
    counted: Option<u64>,
    reported: u64,
    reports_losses: bool,
) -> Result<(Option<u64>, u64), String> {
    let (Some(made), Some(counted)) = (made, counted) else {
        return Ok((counted.or(made.map(|made| made.saturating_sub(reported))), reported));
    };
    let missing = made.saturating_sub(counted);
    if counted == 0 || (reports_losses && missing > reported) {
        return Err(format!("it recorded {counted} of {made} events, and reported {reported} lost ones"));
    }
    Ok((Some(counted), missing.max(reported)))
}

/// The figure of a run. C programs print their own, and their memory; other programs are measured from outside.
fn sample(workload: &Workload, usage: &Usage) -> Result<Sample, Stop> {
    let (figure, peak) = match workload.kind {
        Kind::Program(_) => (usage.wall.as_secs_f64(), usage.peak),
        _ => printed(&usage.output)
            .ok_or_else(|| format!("the program printed '{}', not a figure and its memory", usage.output.trim()))?,
    };
    Ok(Sample { figure, cpu: usage.cpu, written: 0, records: None, lost: 0, peak })
}

fn printed(output: &str) -> Option<(f64, u64)> {
    let (figure, peak) = output.trim().split_once('\t')?;
    Some((figure.parse().ok()?, peak.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_recorded_or_lost() {
        assert_eq!(account(None, Some(7), 2, true), Ok((Some(7), 2)));
        assert_eq!(account(None, None, 2, true), Ok((None, 2)));
        assert_eq!(account(Some(10), None, 2, true), Ok((Some(8), 2)), "too long to count");
        assert_eq!(account(Some(10), Some(11), 0, true), Ok((Some(11), 0)));
        assert_eq!(account(Some(10), Some(8), 2, true), Ok((Some(8), 2)));
        assert_eq!(account(Some(10), Some(4), 0, false), Ok((Some(4), 6)), "overwritten");
        assert!(account(Some(10), Some(8), 1, true).unwrap_err().contains("8 of 10"));
        assert!(account(Some(10), Some(0), 0, false).is_err());
    }

    #[test]
    fn what_the_c_programs_print() {
        assert_eq!(printed("18.25\t1660\n"), Some((18.25, 1660)));
        assert_eq!(printed("18.25\n"), None);
        assert_eq!(printed("a\tb\n"), None);
    }
}
