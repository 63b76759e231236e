//! Logs what a viewer draws and what a table says, while the analysis accounts it.

use spec::event_numbers::{PROC_FORK, THR_JOIN, THR_TIMEDJOIN};

use super::analysis::{Analysis, WaitPlace};
use super::analysis_parts::AnalysisParts;
use super::holds::Hold;
use super::numeric_record::NumericRecord;
use super::table_log::{CallSubject, TableLog};
use super::tables::OngoingCall;
use super::timeline_event::{HoldInterval, TimelineEvent, WaitInterval};
use super::wait_shares::WaitShares;
use super::waker::Waker;

impl Analysis {
    /// Makes the analysis one for a timeline, before its first record: it logs what a viewer draws, and has no part that a viewer
    /// does not show.
    pub fn begin_timeline(&mut self) {
        self.timeline = Some(Vec::new());
        self.limit_to(AnalysisParts::NONE);
    }

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
        (is_contention, holder): (bool, Option<u32>),
        waker: Option<Waker>,
    ) {
        if self.timeline.is_some() {
            let WaitPlace { thread, site, entry, is_open, is_rest, has_timed_out, .. } = place;
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
                is_contention,
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
                let time = if state.has_ended() { state.last } else { time.max(state.last) };
                self.draw(TimelineEvent::ThreadEnd { thread, time });
            }
            self.draw(TimelineEvent::ProcessEnd { process, time, how });
        }
    }
}

/// Intervals that have not ended.
impl Analysis {
    /// The selected waits and holds of a thread that go on at `now`.
    pub fn open_intervals(&self, thread: u32, now: u64) -> Vec<TimelineEvent> {
        let state = &self.threads[thread as usize];
        let clipped = |from: u64| (from.max(self.selection.times.start), from < self.selection.times.start);
        let mut intervals = Vec::new();
        let is_join = |call: &OngoingCall| matches!(call.event, THR_JOIN | THR_TIMEDJOIN);
        let waits = |call: &&OngoingCall| call.waits && (call.object.is_some() || is_join(call)) && call.entry < now;
        if let Some(call) = state.open.last().filter(waits).filter(|call| !state.has_gone_on(call)) {
            let ((from, began_before), to, is_open) = (clipped(call.entry), now, true);
            let &OngoingCall { object, site, .. } = call;
            let (is_cut, holder, waker) = ((began_before, false), None, None);
            let is_contention = self.is_contention(call);
            let (is_rest, has_timed_out) = (false, false);
            let is_wanted = is_contention || !self.selection.only_contention;
            if from < to && is_wanted && self.is_selected(thread, object) {
                let wait = WaitInterval {
                    thread,
                    object,
                    site,
                    from,
                    to,
                    is_cut,
                    is_contention,
                    holder,
                    waker,
                    is_open,
                    is_rest,
                    has_timed_out,
                };
                intervals.push(TimelineEvent::Wait(wait));
            }
        }
        for &object in &state.holds {
            let occupancy = &self.objects[object as usize].occupancy;
            let hold = occupancy.holds.iter().find(|hold| hold.holder.thread == thread && hold.is_recorded);
            let Some(hold) = hold.filter(|hold| hold.from < now && self.is_selected(thread, Some(object))) else {
                continue;
            };
            let ((from, began_before), to, complete) = (clipped(hold.from), now, (hold.from, now));
            let (is_cut, site) = ((began_before, false), hold.holder.site);
            if from < to {
                let hold = HoldInterval { thread, object, site, from, to, is_cut, complete, has_waiters: false };
                intervals.push(TimelineEvent::Hold(hold));
            }
        }
        intervals
    }
}

/// What a table says of records.
impl Analysis {
    /// Makes the analysis one for a table, before its first record.
    pub fn begin_table(&mut self) {
        self.begin_timeline();
        self.table = Some(TableLog::default());
    }

    /// Logs what the call of the record in progress is about.
    pub fn note_subject(&mut self, object: Option<u32>, site: u32) {
        if let Some(table) = &mut self.table {
            table.subject = Some(CallSubject { object, site });
        }
    }

    /// Logs how a wait is divided that was just drawn.
    pub fn log_shares(&mut self, shares: WaitShares) {
        if let Some(table) = &mut self.table {
            table.shares.push(shares);
        }
    }

    /// What the call of the last record is about.
    pub fn take_subject(&mut self) -> Option<CallSubject> {
        self.table.as_mut()?.subject.take()
    }

    /// What was drawn since the last time, and how the waits of it that are contention are divided; `None` if that is nothing.
    pub fn take_intervals(&mut self) -> Option<(Vec<TimelineEvent>, Vec<WaitShares>)> {
        let events = self.timeline.take_if(|events| !events.is_empty())?;
        Some((events, self.table.as_mut().map(|table| std::mem::take(&mut table.shares)).unwrap_or_default()))
    }

    /// Takes the memory of these back, which is used again.
    pub fn give_back(&mut self, mut events: Vec<TimelineEvent>, mut shares: Vec<WaitShares>) {
        events.clear();
        shares.clear();
        self.timeline = Some(events);
        if let Some(table) = &mut self.table {
            table.shares = shares;
        }
    }
}
