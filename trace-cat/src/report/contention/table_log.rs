//! Logs what a table says of a record, while the analysis takes it.

use super::analysis::Analysis;
use super::timeline_event::TimelineEvent;
use super::wait_shares::WaitShares;

/// What the records since the log was last emptied have shown.
#[derive(Debug, Default)]
pub struct TableLog {
    /// The object and the site of the last record's call.
    subject: Option<CallSubject>,
    /// How each wait that is contention is divided, in the order of the waits in the timeline.
    shares: Vec<WaitShares>,
}

/// What a call is about, as indexes of the analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSubject {
    pub object: Option<u32>,
    /// 0 if it is not known.
    pub site: u32,
}

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
