//! The stacks of calls: records trace_stack, and to which record they belong.
//!
//! A stack has the time, the LWP and the process of its record, and stands behind it, though not always directly: other threads may
//! have records of the same time. A stack of more than five frames has several records.

use std::borrow::Cow;

use spec::event_numbers::TRACE_STACK;
use spec::record::{PID_OFFSET, PID_WIDTH, TIME_WIDTH};

use super::columns;

/// The last address of a stack that could not be followed further.
const CUT_OFF: u64 = 1;
/// Stands for the frames behind the last one of a stack that could not be followed further.
pub const CUT_OFF_FRAME: &str = "[could not be followed further]";
/// The most frames of a stack, as the recorder has it.
pub const FRAMES_MAX: usize = 64;
/// Bytes of `time1:time2:lwpid:pid`, which records and their stacks have in common.
const KEY_WIDTH: usize = PID_OFFSET + PID_WIDTH;
/// The most records of one time whose stacks are awaited.
const OWNERS_MAX: usize = 256;

/// Whether the record `line` is a part of a stack.
#[inline]
pub fn is_stack(line: &[u8]) -> bool {
    let (category, number, _) = columns::event(line);
    (category, number) == TRACE_STACK
}

/// How many of some lines are no parts of stacks.
pub fn count_records(lines: &[u8]) -> u64 {
    columns::lines(lines).filter(|line| !is_stack(line)).count() as u64
}

/// What a record and its stack have in common; `None` if the line is too short for a record.
pub fn owner_key(line: &[u8]) -> Option<&[u8; KEY_WIDTH]> {
    line.first_chunk()
}

/// Records of the latest time, with a value for each that their stacks have, too: where a record is selected, its stack is.
#[derive(Clone, Debug)]
pub struct StackOwners<T = ()>(Vec<([u8; KEY_WIDTH], T)>);

impl<T> Default for StackOwners<T> {
    fn default() -> StackOwners<T> {
        StackOwners(Vec::new())
    }
}

impl<T: Copy> StackOwners<T> {
    /// Takes a record. Records are in the order of time.
    pub fn add(&mut self, line: &[u8], value: T) {
        let Some(key) = owner_key(line) else { return };
        if self.0.first().is_some_and(|(first, _)| first[..TIME_WIDTH] != key[..TIME_WIDTH]) {
            self.0.clear();
        }
        if self.0.len() < OWNERS_MAX {
            self.0.push((*key, value));
        }
    }

    /// The value of the record that the stack `line` belongs to.
    pub fn find(&self, line: &[u8]) -> Option<T> {
        let key = owner_key(line)?;
        self.0.iter().rev().find(|(owner, _)| owner == key).map(|(_, value)| *value)
    }

    /// Whether the stack `line` belongs to one of the records.
    pub fn own(&self, line: &[u8]) -> bool {
        self.find(line).is_some()
    }
}

/// Some records in the order of time, which have all records of their times, with each stack directly behind its record.
pub fn with_stacks_in_place(records: &[u8]) -> Cow<'_, [u8]> {
    let mut before: &[u8] = b"";
    let is_in_place = |line: &[u8], before: &[u8]| !is_stack(line) || owner_key(line) == owner_key(before);
    if columns::lines(records).all(|line| is_in_place(line, std::mem::replace(&mut before, line))) {
        return Cow::Borrowed(records);
    }
    let lines: Vec<&[u8]> = columns::lines(records).collect();
    let of_one_time = |a: &&[u8], b: &&[u8]| a.get(..TIME_WIDTH) == b.get(..TIME_WIDTH);
    let mut out = Vec::with_capacity(records.len());
    for lines in lines.chunk_by(of_one_time) {
        // What stands before the stacks of a record, and the stacks themselves, in their order.
        let mut groups: Vec<Vec<&[u8]>> = Vec::new();
        for line in lines {
            let owner = groups.iter_mut().rev().take(OWNERS_MAX).find(|group| owner_key(group[0]) == owner_key(line));
            match owner.filter(|_| is_stack(line)) {
                Some(group) => group.push(line),
                None => groups.push(vec![line]),
            }
        }
        out.extend(groups.into_iter().flatten().flatten());
    }
    Cow::Owned(out)
}

/// Return addresses, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallStack {
    pub addresses: Vec<u64>,
    /// It could not be followed further.
    pub is_cut_off: bool,
}

impl CallStack {
    /// Adds a1 to a5 of a record: of its first one if `which` is 1, which begins the stack anew.
    pub fn add(&mut self, which: u8, arguments: [u64; 5]) {
        if which == 1 {
            self.addresses.clear();
            self.is_cut_off = false;
        }
        for address in arguments.into_iter().take_while(|address| *address != 0) {
            if address == CUT_OFF || self.addresses.len() == FRAMES_MAX {
                self.is_cut_off = true;
                break;
            }
            self.addresses.push(address);
        }
    }

    /// The addresses as they are printed.
    pub fn texts(&self) -> Vec<String> {
        self.addresses.iter().map(|address| format!("{address:#x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    #[test]
    fn stacks_belong_to_records_of_their_thread_and_time() {
        let mut owners = StackOwners::default();
        let stack = |time, lwp| record(time, lwp, "00:03:1", 0x40);
        assert!(is_stack(stack(1, 1).as_bytes()) && !is_stack(record(1, 1, "00:01:0", 0).as_bytes()));
        owners.add(record(5, 1, "02:02:1", 16).as_bytes(), ());
        owners.add(record(5, 2, "02:02:1", 16).as_bytes(), ());
        let own = |owners: &StackOwners, time, lwp| owners.own(stack(time, lwp).as_bytes());
        assert_eq!(
            [(5, 1), (5, 2), (5, 3), (4, 1)].map(|(time, lwp)| own(&owners, time, lwp)),
            [true, true, false, false]
        );
        owners.add(record(6, 2, "02:02:2", 0).as_bytes(), ());
        assert_eq!([(6, 2), (5, 2), (6, 1)].map(|(time, lwp)| own(&owners, time, lwp)), [true, false, false]);
    }

    #[test]
    fn stacks_are_put_behind_their_records() {
        let lines = |records: &[(u64, u32, &str)]| -> String {
            records.iter().map(|(time, lwp, event)| record(*time, *lwp, event, 9)).collect()
        };
        let mixed = [
            (1, 1, "02:04:0"),
            (2, 1, "02:02:1"),
            (2, 2, "02:02:1"),
            (2, 1, "00:03:1"),
            (2, 2, "00:03:1"),
            (2, 1, "00:03:2"),
        ];
        let in_place = lines(&[mixed[0], mixed[1], mixed[3], mixed[5], mixed[2], mixed[4]]);
        assert_eq!(*with_stacks_in_place(lines(&mixed).as_bytes()), *in_place.as_bytes());
        assert!(matches!(with_stacks_in_place(in_place.as_bytes()), Cow::Borrowed(_)));
        let alone = lines(&[(1, 1, "00:03:1"), (2, 1, "02:04:0")]);
        assert_eq!(*with_stacks_in_place(alone.as_bytes()), *alone.as_bytes());
    }

    #[test]
    fn a_stack_ends_with_zero_or_is_cut_off() {
        let mut stack = CallStack::default();
        stack.add(1, [9, 8, 7, 6, 5]);
        stack.add(2, [4, 3, 0, 2, 2]);
        assert_eq!(stack, CallStack { addresses: vec![9, 8, 7, 6, 5, 4, 3], is_cut_off: false });
        stack.add(1, [9, 1, 0, 0, 0]);
        assert_eq!(stack, CallStack { addresses: vec![9], is_cut_off: true });
        (0..20).for_each(|_| stack.add(2, [2; 5]));
        assert_eq!((stack.addresses.len(), stack.is_cut_off), (FRAMES_MAX, true));
    }
}
