//! Marks at which arrows begin that nothing else that is drawn stands for, such as the last arrival at a barrier.
//!
//! A call that ends the waits of many threads has one mark for all. Perfetto nests the instants of one time in one another, and
//! draws no arrow from what is nested more than 512 deep.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// How many arrows begin at one mark.
const FLOWS_MAX: usize = 1024;

/// The mark of a thread's last such call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeMark {
    pub time: u64,
    /// One of the threads that waited.
    pub waiter: u32,
    pub flows: Vec<u64>,
}

/// The marks that are not written yet, one for each thread.
#[derive(Debug, Default)]
pub struct WakeMarks {
    marks: HashMap<u32, WakeMark, RandomState>,
}

impl WakeMarks {
    /// Adds an arrow that begins where `waker` ended the wait of `waiter`. Returns an earlier mark of the waker, which is complete.
    pub fn add(&mut self, waker: u32, time: u64, waiter: u32, flow: u64) -> Option<WakeMark> {
        let mark = self.marks.entry(waker).or_insert_with(|| WakeMark { time, waiter, flows: Vec::new() });
        let is_complete = mark.time != time || mark.flows.len() >= FLOWS_MAX;
        let complete = is_complete.then(|| std::mem::replace(mark, WakeMark { time, waiter, flows: Vec::new() }));
        mark.flows.push(flow);
        complete
    }

    /// Takes all marks, each with its thread, in the order of time.
    pub fn take(&mut self) -> Vec<(u32, WakeMark)> {
        let mut marks: Vec<_> = self.marks.drain().collect();
        marks.sort_by_key(|(waker, mark)| (mark.time, *waker));
        marks
    }
}
