//! What a format for a viewer does.

use std::io;

use super::program_event::ProgramEvent;
use super::scene::TimelineScene;
use super::waiting_counts::CounterSample;
use crate::report::contention::{HoldInterval, TimelineEvent};

/// A format for a viewer: see the module's documentation for the order of the calls.
pub trait TimelineSink {
    /// Takes the time of the trace's first record, selected or not, before all else.
    fn begin(&mut self, _start: u64, _out: &mut Vec<u8>) {}

    /// Takes what the last record is of the program's own events and of its functions. Spans are given at their ends.
    fn program_event(&mut self, event: &ProgramEvent, scene: &TimelineScene, out: &mut Vec<u8>);

    /// Takes what the last record has led to, or the end.
    fn event(&mut self, event: &TimelineEvent, scene: &TimelineScene, out: &mut Vec<u8>);

    /// Takes that a hold, which a wait may have led to, is not selected.
    fn left_out_hold(&mut self, _hold: &HoldInterval, _scene: &TimelineScene, _out: &mut Vec<u8>) {}

    /// Takes a wait or a hold that has not ended, of a trace that grows, perhaps not for the first time.
    fn open_interval(&mut self, _interval: &TimelineEvent, _scene: &TimelineScene, _out: &mut Vec<u8>) {}

    /// Takes that all open intervals were given which there are at this moment.
    fn moment(&mut self, _scene: &TimelineScene, _out: &mut Vec<u8>) {}

    /// Takes how many threads wait from a time on.
    fn count(&mut self, _sample: &CounterSample, _scene: &TimelineScene, _out: &mut Vec<u8>) {}

    /// Appends what is behind all events.
    ///
    /// # Errors
    /// The failure of a temporary file.
    fn end(&mut self, _scene: &TimelineScene, _out: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        Ok(())
    }
}
