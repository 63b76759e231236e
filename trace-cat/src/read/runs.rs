//! Cuts a text into runs, stretches whose times never descend, and tells what in it is damaged.

use std::ops::Range;
use std::sync::Arc;

use log::{debug, info};

use super::records::{Item, Records, Trust, What};
use super::text::Text;
use crate::say::{Say, reason};

/// Damages of one file that are told; more are only counted.
const TOLD: u64 = 10;
/// Up to this many runs a file is merged from its runs, whatever their length.
const FEW_RUNS: usize = 16;
/// With more, runs of fewer bytes than this on average are not worth a buffer each: the file is sorted instead.
const SHORT_RUN: u64 = 32 * 1024;

/// What reading a text once from end to end told.
#[derive(Debug)]
pub struct Scan {
    /// Its runs in order. Empty if there are no records, or if `shuffled`.
    pub runs: Vec<Range<u64>>,
    /// The times go up and down so often that the runs were not kept.
    pub shuffled: bool,
    /// Every line is a record, and nobody is writing.
    pub clean: bool,
    /// How many records there are.
    pub records: u64,
    /// How far the text could be read.
    pub end: u64,
}

/// Reads `text` through a buffer of `size` bytes.
pub fn scan(text: &Arc<Text>, size: usize, say: &Say) -> Scan {
    let mut records = Records::new(text.clone(), 0..text.end(), Trust::None, size);
    let mut scan = Scan { runs: Vec::new(), shuffled: false, clean: !text.growing(), records: 0, end: 0 };
    let (mut began, mut runs, mut last) = (0, 0, u64::MAX);
    let mut damages = 0;
    loop {
        match records.next() {
            Ok(Some(Item::Record { time })) => {
                // No printed time is as large as what `last` begins with, so the first record begins a run.
                if time < last {
                    if scan.records > 0 {
                        scan.end_run(began..records.began(), runs);
                    }
                    began = records.began();
                    runs += 1;
                }
                last = time;
                scan.records += 1;
            }
            Ok(Some(Item::Damage(what))) => {
                scan.clean = false;
                let place = || text.place(records.began(), records.line_number());
                if explained(text, what) {
                    debug!("{}: {what}: a write that was not done", place());
                    continue;
                }
                damages += 1;
                if damages <= TOLD {
                    say.damage(place(), what);
                }
            }
            Ok(None) => break,
            Err(error) => {
                scan.clean = false;
                say.damage(text.path().display(), reason(&error));
                break;
            }
        }
    }
    scan.end = records.position();
    if scan.records > 0 {
        scan.end_run(began..scan.end, runs);
    }
    if damages > TOLD {
        say.damage(text.path().display(), format_args!("{} more places like these", damages - TOLD));
    }
    info!("{}: {} records in {runs} runs, {damages} damages", text.path().display(), scan.records);
    scan
}

impl Scan {
    /// Notes the `count`th run.
    fn end_run(&mut self, run: Range<u64>, count: usize) {
        if self.shuffled {
            return;
        }
        if count > FEW_RUNS && run.end / (count as u64) < SHORT_RUN {
            (self.runs, self.shuffled) = (Vec::new(), true);
            return;
        }
        self.runs.push(run);
    }
}

/// Whether it is no loss that these bytes are no record: their writer is still at it, or died between taking the
/// place and writing, in which case the records are in its trbuf.
fn explained(text: &Text, what: What) -> bool {
    match what {
        What::Torn => text.growing(),
        What::Nuls(_) => text.growing() || text.appended(),
        _ => false,
    }
}
