//! What a viewer draws: waits, holds, threads, and who let whom go on, as the analysis accounts them.
//!
//! An interval is logged when the analysis accounts it, which is at its end or, where nobody knew before whether a release is missing,
//! a little later. So intervals are in the order of their ends but for these. The inner of two nested ones comes first.

use std::ops::Range;

use super::analysis::{Analysis, WaitPlace};
use super::holds::Hold;
use super::locks::PROC_FORK;
use super::numeric_record::NumericRecord;
use super::tables::ImageEnd;
use super::wakeups::Waker;

/// Something that a viewer draws. Threads, objects, sites and processes are indexes of the analysis; times are nanoseconds since the
/// Epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineEvent {
    /// The first record of a thread, and of its process if that has no other thread.
    ThreadBegin {
        thread: u32,
    },
    /// Until when a thread lived as far as it is known: if it did not exit, until its process ended or the records do.
    ThreadEnd {
        thread: u32,
        time: u64,
    },
    /// The end of a process's program, after the ends of its threads.
    ProcessEnd {
        process: u32,
        time: u64,
        how: ImageEnd,
    },
    Wait(WaitInterval),
    Hold(HoldInterval),
    /// A hold that ended nobody knows when, because its release is missing. The report counts no time for it.
    LostHold {
        thread: u32,
        object: u32,
        site: u32,
        from: u64,
    },
    /// A thread created another one, by a call that began at `time`.
    Creation {
        creator: u32,
        created: u32,
        time: u64,
    },
    /// A thread's join of an ended one returned at `time`.
    Join {
        joiner: u32,
        joined: u32,
        time: u64,
    },
    /// A thread forked a process, whose first record is by `child` at `time`, by a call that began at `forked_at`, if that is known.
    Fork {
        parent: u32,
        child: u32,
        forked_at: Option<u64>,
        time: u64,
    },
    /// So many records of a thread are lost from `time` on. Its next record shows until when.
    Loss {
        thread: u32,
        time: u64,
        lost: u64,
    },
    /// The records of a thread are complete again.
    LossEnd {
        thread: u32,
        time: u64,
    },
    /// A return record has no entry record.
    MissingEntry {
        thread: u32,
        time: u64,
        event: (u8, u8),
    },
    /// An entry record has no return record although the thread went on: that was lost, or the call was left by a jump.
    MissingReturn {
        thread: u32,
        time: u64,
        event: (u8, u8),
    },
}

/// A wait. `to - from` is what the report adds to the waits for the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitInterval {
    pub thread: u32,
    /// `None` is the end of a thread.
    pub object: Option<u32>,
    /// 0 if it is not known.
    pub site: u32,
    pub from: u64,
    pub to: u64,
    /// The wait began before the selected time, or ended after it; then `from` or `to` is the edge.
    pub is_cut: (bool, bool),
    /// The thread that is to blame for most of it.
    pub holder: Option<u32>,
    pub waker: Option<Waker>,
    /// The call did not return: the wait lasted until its process ended or the records do.
    pub is_open: bool,
    /// The end of a wait for a condition, in which the thread waited for the mutex. The interval of that wait ends where this begins.
    pub is_rest: bool,
    pub has_timed_out: bool,
}

/// A hold. `to - from` is what the report adds to the holds of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldInterval {
    pub thread: u32,
    pub object: u32,
    pub site: u32,
    pub from: u64,
    pub to: u64,
    /// As in [`WaitInterval`].
    pub is_cut: (bool, bool),
    /// When it began and ended, whatever is selected.
    pub complete: (u64, u64),
    /// Others waited for the object when it ended.
    pub has_waiters: bool,
}

impl WaitInterval {
    /// Who ended the wait, if both that and its end are in the selected times.
    pub fn drawn_waker(&self, times: &Range<u64>) -> Option<Waker> {
        self.waker.filter(|waker| !self.is_cut.1 && times.contains(&waker.time))
    }

    /// What is unusual about the interval, for people.
    pub fn note(&self) -> Option<&'static str> {
        Some(match self {
            WaitInterval { is_cut: (true, true), .. } => "began earlier and ended later",
            WaitInterval { is_cut: (true, _), .. } => "began earlier",
            WaitInterval { is_cut: (_, true), .. } => "ended later",
            WaitInterval { is_open: true, .. } => "did not return",
            WaitInterval { has_timed_out: true, .. } => "timed out",
            _ => return None,
        })
    }
}

impl HoldInterval {
    /// What is unusual about the interval, for people.
    pub fn note(&self) -> Option<&'static str> {
        Some(match self.is_cut {
            (true, true) => "began earlier and ended later",
            (true, _) => "began earlier",
            (_, true) => "ended later",
            _ => return None,
        })
    }
}

impl Analysis {
    /// Logs what a viewer draws, if that is asked for.
    pub fn draw(&mut self, event: TimelineEvent) {
        if let Some(timeline) = &mut self.timeline {
            timeline.push(event);
        }
    }

    /// The parts of an interval that are selected, and whether its beginning and its end are not.
    fn cut(&self, from: u64, to: u64) -> ((u64, u64), (bool, bool)) {
        let times = &self.selection.times;
        ((from.max(times.start), to.min(times.end)), (from < times.start, to > times.end))
    }

    /// Logs the last `waited` nanoseconds of the selected part of a wait until `end`, but for those after it, which are contention.
    pub fn draw_wait(
        &mut self,
        object: Option<u32>,
        (waited, contended, end): (u64, u64, u64),
        place: WaitPlace,
        holder: Option<u32>,
        waker: Option<Waker>,
    ) {
        if self.timeline.is_some() {
            let WaitPlace { thread, site, entry, is_open, is_rest, has_timed_out } = place;
            let ((_, to), is_cut) = self.cut(entry, end);
            let to = to.saturating_sub(contended);
            let from = to.saturating_sub(waited);
            let (is_cut, has_timed_out) = ((is_cut.0 && !is_rest, is_cut.1), has_timed_out && !is_cut.1);
            self.draw(TimelineEvent::Wait(WaitInterval {
                thread,
                object,
                site,
                from,
                to,
                is_cut,
                holder,
                waker,
                is_open,
                is_rest,
                has_timed_out,
            }));
        }
    }

    /// Logs a hold, as far as it is selected.
    pub fn draw_hold(&mut self, object: u32, hold: Hold, end: u64) {
        let (thread, site) = (hold.holder.thread, hold.holder.site);
        if self.timeline.is_some() && self.is_selected(thread, Some(object)) {
            let ((from, to), is_cut) = self.cut(hold.from, end);
            let has_waiters = self.objects[object as usize].occupancy.has_waiters();
            let complete = (hold.from, end);
            self.draw(TimelineEvent::Hold(HoldInterval {
                thread,
                object,
                site,
                from,
                to,
                is_cut,
                complete,
                has_waiters,
            }));
        }
    }

    /// Logs a hold whose release is missing.
    pub fn draw_lost_hold(&mut self, object: u32, hold: Hold) {
        let (thread, site) = (hold.holder.thread, hold.holder.site);
        if self.timeline.is_some() && self.is_selected(thread, Some(object)) {
            self.draw(TimelineEvent::LostHold { thread, object, site, from: hold.from });
        }
    }

    /// Logs a fork: the thread of the parent with the child's pthread_t made it.
    pub fn draw_fork(&mut self, parent: u32, child: u32, record: &NumericRecord) {
        let Some(&parent) = self.thread_of_tid.get(&(parent, record.tid)) else { return };
        let open = &self.threads[parent as usize].open;
        let forked_at = open.iter().rfind(|call| call.event == PROC_FORK).map(|call| call.entry);
        self.draw(TimelineEvent::Fork { parent, child, forked_at, time: record.time });
    }

    /// Logs the ends of a process's threads, and its own.
    pub fn draw_process_end(&mut self, process: u32) {
        if self.timeline.is_some() {
            let state = &self.processes[process as usize];
            let (time, how) = (state.last, state.end);
            for thread in state.threads.clone() {
                let state = &self.threads[thread as usize];
                let time = if state.has_exited { state.last } else { time.max(state.last) };
                self.draw(TimelineEvent::ThreadEnd { thread, time });
            }
            self.draw(TimelineEvent::ProcessEnd { process, time, how });
        }
    }
}
