//! `make bench`: what recording costs, natively, in every mode of libthreadt, and beside LTTng-UST and uftrace.
//!
//! Round after round each workload is run in every way, the order of the ways rotated, so that a slow phase of the machine
//! affects all of them. A loop times itself: neither its start nor what is written after its end is in its figure; both are
//! in the CPU seconds, which count every process, daemons included. Figures are medians with least and most; the bars are
//! ratios and differences of these medians.

mod bars;
mod daemons;
mod figures;
mod launch;
mod lttng;
mod machine;
mod options;
mod process;
mod programs;
mod results;
mod runner;
mod table;
mod trace;
mod uftrace;
mod ways;
mod workloads;

use std::fs;
use std::process::ExitCode;

use machine::Watch;
use options::Options;
use process::Stop;
use results::Results;
use runner::Runner;
use ways::Way;

/// What the columns mean.
const LEGEND: &str = "\
Medians of all rounds. CPU s: of every process, LTTng's daemons too (but not the lttng commands that make and end a
session), from the start of the program until its trace is complete. MB: the length of the files. lost: events that were discarded or overwritten. peak MB: of the largest process,
and what LTTng's daemons have of their own.";

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("bench: {message}");
            return ExitCode::from(2);
        }
    };
    process::watch_for_signals();
    match bench(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Interrupted(signal)) => {
            eprintln!("bench: ended by signal {signal}; what was started has ended, what was made is gone");
            ExitCode::from(128 + signal.unsigned_abs() as u8)
        }
        Err(Stop::Cannot(reason)) => {
            eprintln!("bench: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and prints.
fn bench(options: &Options) -> Result<(), Stop> {
    let mut runner = Runner::new(options)?;
    print!("{}", machine::describe(&runner));
    let watch = Watch::start();
    let results = measure(options, &mut runner);
    drop(runner);
    let results = results?;
    println!("{}", watch.summary());
    for way in &results.ways {
        println!("{:15} {}", way.name(), way.what());
    }
    println!("\n{LEGEND}");
    print!("\n{}", table::table(&results));
    print!("\nBars, from the medians above\n{}", table::bars(&bars::bars(&results)));
    let path = options.build.join("bench.tsv");
    fs::write(&path, table::tsv(&results)).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("\nThe same is in {}", path.display());
    Ok(())
}

/// All rounds.
fn measure(options: &Options, runner: &mut Runner) -> Result<Results, Stop> {
    let mut results = Results::new(options.workloads.clone(), options.ways.clone());
    for workload in &options.workloads {
        let Err(stop) = runner.prepare(workload) else { continue };
        let Stop::Cannot(reason) = stop else { return Err(stop) };
        for &way in &options.ways {
            add(&mut results, workload.name, way, Err(reason.clone()));
        }
    }
    for round in 0..options.rounds {
        for workload in options.workloads.iter().filter(|workload| round < workload.rounds(options.rounds)) {
            eprintln!("bench: round {} of {}, {}", round + 1, options.rounds, workload.name);
            for way in ways::rotated(&options.ways, round) {
                if !matches!(results.cell(workload.name, way), Some(figures::Cell::Measured(_))) {
                    continue;
                }
                match runner.measure(workload, way) {
                    Ok(sample) => add(&mut results, workload.name, way, Ok(sample)),
                    Err(Stop::Cannot(reason)) => add(&mut results, workload.name, way, Err(reason)),
                    Err(interrupted) => return Err(interrupted),
                }
            }
        }
    }
    Ok(results)
}

fn add(results: &mut Results, workload: &str, way: Way, run: Result<figures::Sample, String>) {
    if let Some(cell) = results.cell_mut(workload, way) {
        cell.add(run);
    }
}
