//! The filters that ask something of a call, for which both of its records are needed: `--object`, `--blocked`, `--longer`.
//!
//! What is asked of the first record may be answered by the second, however much later that is. So the trace is gone
//! through twice. The first time, pairs are found, and the records that are wanted are marked; that time all of the trace
//! is looked at, since a call may begin before `--since` and end after `--until`. Then each record can be judged by
//! itself, in any thread and any part of the trace.
//!
//! Nearly all calls end soon. Those that begin and end within one batch of lines are paired where that is merged, in many
//! threads; what is left of a batch, mostly a half or two for each thread of the program, is put together in order. As
//! pairs do not depend on what other kinds of calls do, it makes no difference where batches end.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;
use memchr::memchr;

use super::selected_records::{Collector, Mark, Marks};
use crate::calls::object_columns::Objects;
use crate::calls::pairing::{Begun, Call};
use crate::calls::wait_rules::Waits;
use crate::merge::{Merge, Turn};
use crate::record::columns;

/// Calls that may have begun and not ended; when there are more, all of them are taken for calls that do not end.
pub const MOST_BEGUN: usize = 1 << 18;
/// Processes of which it is known when they ended.
pub const MOST_ENDS: usize = 1 << 18;
/// A process ends: category, event and which.
pub const PROC_EXIT: (u8, u8, u8) = (11, 4, 0);

/// What is asked of calls.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// They name one of these objects; none: no matter.
    pub objects: Vec<u64>,
    /// They waited.
    pub blocked: bool,
    /// They lasted at least so many nanoseconds.
    pub longer: Option<u64>,
}

impl Question {
    /// Whether anything is asked.
    pub fn is_idle(&self) -> bool {
        self.objects.is_empty() && !self.blocked && self.longer.is_none()
    }
}

/// Tells which records are wanted, once the marks are made.
#[derive(Debug)]
pub struct Calls {
    question: Question,
    objects: Objects,
    waits: Waits,
    marks: Marks,
    /// What went wrong with the marks' file.
    failure: Mutex<Option<io::Error>>,
}

/// A record of a call that has two.
#[derive(Clone, Copy, Debug)]
pub struct Half {
    /// When it was made, nanoseconds since the Epoch.
    pub time: u64,
    /// It names one of the objects.
    pub names: bool,
    /// What the event's rule asks of it is so.
    says: bool,
}

impl Calls {
    /// Nothing is marked yet.
    pub fn new(question: Question) -> Calls {
        let marks = Marks::Memory(Vec::new());
        Calls { question, objects: Objects::new(), waits: Waits::new(), marks, failure: Mutex::new(None) }
    }

    /// Goes through the whole trace and marks what is wanted of those pairs whose records are `possible`.
    ///
    /// # Errors
    /// What a temporary file says.
    pub fn mark(&mut self, merge: &Merge, possible: &(dyn Fn(&[u8]) -> bool + Sync)) -> io::Result<()> {
        let end = merge.span().map_or(0, |(_, end)| end);
        let mut rest =
            Rest { calls: self, begun: Begun::default(), ends: HashMap::default(), end, marks: Collector::default() };
        let shape = |lines: &[u8], _: Turn, out: &mut Vec<u8>| self.pair(lines, possible, out);
        merge.run_for("pairing calls", 0..u64::MAX, Some(&shape), &mut |notes| {
            let (notes, _) = notes.as_chunks();
            notes.iter().try_for_each(|note| rest.take(&Note::from_bytes(note))).map(|()| true)
        })?;
        self.marks = rest.finish()?;
        Ok(())
    }

    /// Pairs what can be paired within some lines, and notes what the whole needs to know of them.
    fn pair(&self, lines: &[u8], possible: &dyn Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
        let mut begun = Begun::default();
        let mut at = 0;
        while let Some(length) = memchr(b'\n', &lines[at..]) {
            let line = &lines[at..=at + length];
            at += line.len();
            let event = columns::event(line);
            if event == PROC_EXIT {
                let half = Half { time: columns::time(line).unwrap_or(0), names: false, says: false };
                Note { what: What::Exit, call: Call::of(line, event), half }.put(out);
            }
            if !matches!(event.2, 1 | 2) || !possible(line) {
                continue;
            }
            let (call, half) = (Call::of(line, event), self.half(line, event));
            if event.2 == 1 {
                begun.begin(call, half);
                continue;
            }
            match begun.end(call) {
                Some(first) => self.judge(call, Some(first), Some(half), 0, |mark| mark.put(out)),
                None => Note { what: What::Second, call, half }.put(out),
            }
        }
        for (call, half) in begun.into_rest() {
            Note { what: What::First, call, half }.put(out);
        }
    }

    /// What a record says.
    pub fn half(&self, line: &[u8], event: (u8, u8, u8)) -> Half {
        let names = !self.question.objects.is_empty() && self.names(line, event);
        let says = self.waits.rule(event.0, event.1).says(event.2, line);
        Half { time: columns::time(line).unwrap_or(0), names, says }
    }

    /// Whether a record names one of the objects that are asked for.
    fn names(&self, line: &[u8], event: (u8, u8, u8)) -> bool {
        self.objects.of(event, line).any(|object| self.question.objects.contains(&object))
    }

    /// Whether all is asked for that is wanted of single records too: only objects.
    pub fn takes_single(&self) -> bool {
        !self.question.blocked && self.question.longer.is_none()
    }

    /// Whether a call is wanted. One without a second record lasts until `end`; of one without a first it is not known how
    /// long it lasted.
    pub fn wants(&self, call: Call, first: Option<Half>, second: Option<Half>, end: u64) -> bool {
        let Question { objects, blocked, longer } = &self.question;
        let rule = self.waits.rule(call.category, call.number);
        let until = second.map_or(end, |second| second.time);
        let lasted = first.map(|first| until.saturating_sub(first.time));
        let says = |half: Option<Half>| half.is_some_and(|half| half.says);
        let names = |half: Option<Half>| half.is_some_and(|half| half.names);
        let waited = match second {
            Some(_) => rule.waited(says(first), says(second), lasted.unwrap_or(0)),
            None => rule.can_wait(),
        };
        let long = |least: u64| lasted.is_some_and(|lasted| lasted >= least) && (second.is_some() || rule.can_wait());
        (objects.is_empty() || names(first) || names(second)) && (!blocked || waited) && longer.is_none_or(long)
    }

    /// Gives the marks of a call's records to `mark`, if the call is wanted.
    fn judge(&self, call: Call, first: Option<Half>, second: Option<Half>, end: u64, mut mark: impl FnMut(Note)) {
        if self.wants(call, first, second, end) {
            for (half, what) in [(first, What::MarkFirst), (second, What::MarkSecond)] {
                // What says all by itself needs no mark.
                if let Some(half) = half.filter(|half| !(self.takes_single() && half.names)) {
                    mark(Note { what, call, half });
                }
            }
        }
    }

    /// What is needed to judge some lines in order.
    pub fn cursor<'a>(&'a self, lines: &[u8]) -> Cursor<'a> {
        let last = memchr::memrchr(b'\n', lines.strip_suffix(b"\n").unwrap_or(lines)).map_or(0, |newline| newline + 1);
        let times = columns::time(lines).unwrap_or(0)..=columns::time(&lines[last..]).unwrap_or(u64::MAX);
        let marks = self.marks.around(times).unwrap_or_else(|error| {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            Cow::Borrowed(&[])
        });
        Cursor { calls: self, marks, at: 0 }
    }

    /// What went wrong while records were judged.
    ///
    /// # Errors
    /// That.
    pub fn result(&self) -> io::Result<()> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), Err)
    }
}

/// Judges lines in order.
pub struct Cursor<'a> {
    calls: &'a Calls,
    marks: Cow<'a, [Mark]>,
    /// Marks before this one are of earlier lines.
    at: usize,
}

impl Cursor<'_> {
    /// Whether the record `line`, the next one or one behind it, is wanted.
    pub fn wants(&mut self, line: &[u8]) -> bool {
        let event = columns::event(line);
        if self.calls.takes_single() && self.calls.names(line, event) {
            return true;
        }
        if !matches!(event.2, 1 | 2) {
            return false;
        }
        let time = columns::time(line).unwrap_or(0);
        while self.marks.get(self.at).is_some_and(|mark| mark.time < time) {
            self.at += 1;
        }
        // Lines of one time come in any order.
        self.marks.get(self.at).is_some_and(|mark| mark.time == time)
            && self.marks[self.at..].binary_search(&Mark::of(line, time, event)).is_ok()
    }
}

/// What a batch of lines tells the whole.
struct Note {
    what: What,
    call: Call,
    half: Half,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A first record without a second one in the batch.
    First,
    /// A second record without a first one in the batch.
    Second,
    /// The process ends.
    Exit,
    /// This record is wanted.
    MarkFirst,
    MarkSecond,
}

const WHATS: [What; 5] = [What::First, What::Second, What::Exit, What::MarkFirst, What::MarkSecond];

impl Note {
    const BYTES: usize = 28;

    fn put(&self, out: &mut Vec<u8>) {
        let Note { what, call, half } = self;
        let flags = *what as u8 | u8::from(half.names) << 4 | u8::from(half.says) << 5;
        out.extend_from_slice(&[flags, call.category, call.number, 0]);
        out.extend_from_slice(&call.pid.to_le_bytes());
        out.extend_from_slice(&call.lwp.to_le_bytes());
        out.extend_from_slice(&call.tid.to_le_bytes());
        out.extend_from_slice(&half.time.to_le_bytes());
    }

    fn from_bytes(bytes: &[u8; Note::BYTES]) -> Note {
        let [flags, category, number, _, p0, p1, p2, p3, l0, l1, l2, l3, rest @ ..] = *bytes;
        let [t0, t1, t2, t3, t4, t5, t6, t7, n0, n1, n2, n3, n4, n5, n6, n7] = rest;
        let (pid, lwp) = (u32::from_le_bytes([p0, p1, p2, p3]), u32::from_le_bytes([l0, l1, l2, l3]));
        let tid = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let time = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        Note {
            what: WHATS[usize::from(flags & 15) % WHATS.len()],
            call: Call { pid, lwp, tid, category, number },
            half: Half { time, names: flags >> 4 & 1 == 1, says: flags >> 5 & 1 == 1 },
        }
    }
}

/// Puts the notes of all batches together.
struct Rest<'a> {
    calls: &'a Calls,
    begun: Begun<Half>,
    /// When processes ended.
    ends: HashMap<u32, u64, RandomState>,
    /// The time of the last record.
    end: u64,
    marks: Collector,
}

impl Rest<'_> {
    fn take(&mut self, note: &Note) -> io::Result<()> {
        let &Note { what, call, half } = note;
        match what {
            What::First => {
                self.begun.begin(call, half);
                if self.begun.len() > MOST_BEGUN { self.leave() } else { Ok(()) }
            }
            What::Second => {
                let first = self.begun.end(call);
                self.judge(call, first, Some(half), 0)
            }
            What::Exit => {
                if self.ends.len() < MOST_ENDS {
                    self.ends.insert(call.pid, half.time);
                }
                Ok(())
            }
            What::MarkFirst => self.marks.push(mark(call, half, 1)),
            What::MarkSecond => self.marks.push(mark(call, half, 2)),
        }
    }

    fn judge(&mut self, call: Call, first: Option<Half>, second: Option<Half>, end: u64) -> io::Result<()> {
        let (calls, marks, mut result) = (self.calls, &mut self.marks, Ok(()));
        calls.judge(call, first, second, end, |note| {
            let which = if note.what == What::MarkFirst { 1 } else { 2 };
            if result.is_ok() {
                result = marks.push(mark(note.call, note.half, which));
            }
        });
        result
    }

    /// Calls that have not ended by now never do: they last until their process ends, or as long as the trace.
    fn leave(&mut self) -> io::Result<()> {
        for (call, first) in std::mem::take(&mut self.begun).into_rest() {
            let end = self.ends.get(&call.pid).copied().filter(|&end| end >= first.time).unwrap_or(self.end);
            self.judge(call, Some(first), None, end)?;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Marks> {
        self.leave()?;
        self.marks.finish()
    }
}

fn mark(call: Call, half: Half, which: u8) -> Mark {
    Mark::new(half.time, call.pid, call.lwp, (call.category, call.number, which))
}
