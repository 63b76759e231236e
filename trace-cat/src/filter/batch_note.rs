//! What a batch of lines has for the pairing of calls in order.

use crate::calls::pairing::CallKey;
use crate::calls::process_ends::EndingRecord;

/// What the conditions need of an entry record or a return record.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    /// Nanoseconds since the Epoch.
    pub time: u64,
    /// It names one of the objects.
    pub names_object: bool,
    /// It shows that the call waited (see [`WaitRule`](crate::calls::wait_rules::WaitRule)).
    pub shows_wait: bool,
}

/// What the pairing gets from a batch of lines.
#[derive(Debug)]
pub struct BatchNote {
    pub kind: BatchNoteKind,
    pub call: CallKey,
    pub record: CallRecord,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchNoteKind {
    /// An entry record without a return record in the batch.
    Entry,
    /// A return record without an entry record in the batch.
    Return,
    /// This entry record is selected.
    SelectedEntry,
    /// This return record is selected.
    SelectedReturn,
    /// The last record of its process in the batch.
    LastRecord,
    /// See [`EndingRecord`], as for the kinds below.
    End,
    ExecFailed,
    Loss,
}

impl BatchNoteKind {
    /// In the order of their numbers.
    const ALL: [BatchNoteKind; 8] = {
        use BatchNoteKind::*;
        [Entry, Return, SelectedEntry, SelectedReturn, LastRecord, End, ExecFailed, Loss]
    };

    pub fn of_ending(ending: EndingRecord) -> BatchNoteKind {
        match ending {
            EndingRecord::End => BatchNoteKind::End,
            EndingRecord::ExecFailed => BatchNoteKind::ExecFailed,
            EndingRecord::Loss => BatchNoteKind::Loss,
        }
    }
}

impl BatchNote {
    pub const LEN: usize = 36;

    pub fn put(&self, out: &mut Vec<u8>) {
        let BatchNote { kind, call, record } = self;
        let flags = *kind as u8 | u8::from(record.names_object) << 4 | u8::from(record.shows_wait) << 5;
        out.extend_from_slice(&[flags, call.category, call.number, 0]);
        out.extend_from_slice(&call.pid.to_le_bytes());
        out.extend_from_slice(&call.lwp.to_le_bytes());
        out.extend_from_slice(&call.tid.to_le_bytes());
        out.extend_from_slice(&call.name.to_le_bytes());
        out.extend_from_slice(&record.time.to_le_bytes());
    }

    pub fn from_bytes(bytes: &[u8; BatchNote::LEN]) -> BatchNote {
        let [flags, category, number, _, numbers @ ..] = *bytes;
        let (words, _) = numbers.as_chunks();
        let [pid, lwp, tid, tid_high, name, name_high, time, time_high] =
            std::array::from_fn(|word| u32::from_le_bytes(words[word]));
        let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (tid, name, time) = (wide(tid, tid_high), wide(name, name_high), wide(time, time_high));
        BatchNote {
            kind: BatchNoteKind::ALL[usize::from(flags & 7) % BatchNoteKind::ALL.len()],
            call: CallKey { pid, lwp, tid, category, number, name },
            record: CallRecord { time, names_object: flags >> 4 & 1 == 1, shows_wait: flags >> 5 & 1 == 1 },
        }
    }
}
