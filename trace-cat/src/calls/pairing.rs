//! Finds the entry record that a return record belongs to.
//!
//! The two records of a call have the same thread and event, and those of a span of the program's own also the same name. A call
//! in a signal handler begins later than the call that it interrupts and ends earlier, so a return record belongs to the latest
//! entry record that has no return record yet.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use spec::event_numbers::USER_SPAN;

use crate::record::columns;

/// Calls that may be open at a time; if there are more, all of them are taken for calls that do not end.
pub const OPEN_CALLS_MAX: usize = 1 << 18;

/// What the two records of a call have in common. The thread's ID is part of it because two processes of different PID
/// namespaces can have the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    pub pid: u32,
    pub lwp: u32,
    pub tid: u64,
    pub category: u8,
    pub number: u8,
    /// The ID of the name of a span; of other calls 0.
    pub name: u64,
}

impl CallKey {
    /// The key of the record `line`, whose event is `event`.
    pub fn of(line: &[u8], (category, number, _): (u8, u8, u8)) -> CallKey {
        let (pid, lwp, tid) = (columns::pid(line), columns::lwpid(line), columns::tid(line));
        let name = CallKey::name_of((category, number), || columns::hex(columns::argument(line, 0)));
        CallKey { pid, lwp, tid, category, number, name }
    }

    /// The name in the key of a call with this event, whose first argument is `a1`.
    pub fn name_of(event: (u8, u8), a1: impl FnOnce() -> u64) -> u64 {
        if event == USER_SPAN { a1() } else { 0 }
    }
}

/// Calls without a return record so far, with a value for each.
#[derive(Debug)]
pub struct OpenCalls<T> {
    /// The index of the latest call with each key.
    last: HashMap<CallKey, u32, RandomState>,
    calls: Vec<OpenCallEntry<T>>,
    /// Indexes that are not used.
    free: Vec<u32>,
}

#[derive(Debug)]
struct OpenCallEntry<T> {
    call: CallKey,
    /// `None` if the index is not used.
    value: Option<T>,
    /// The index of the call that this one interrupted.
    outer: u32,
}

const NONE: u32 = u32::MAX;

impl<T> Default for OpenCalls<T> {
    fn default() -> OpenCalls<T> {
        OpenCalls { last: HashMap::default(), calls: Vec::new(), free: Vec::new() }
    }
}

impl<T> OpenCalls<T> {
    pub fn len(&self) -> usize {
        self.calls.len() - self.free.len()
    }

    /// Takes an entry record, with the value to return when the call ends.
    pub fn begin(&mut self, call: CallKey, value: T) {
        let outer = self.last.get(&call).copied().unwrap_or(NONE);
        let entry = OpenCallEntry { call, value: Some(value), outer };
        let index = match self.free.pop() {
            Some(index) => {
                self.calls[index as usize] = entry;
                index
            }
            None => {
                self.calls.push(entry);
                self.calls.len() as u32 - 1
            }
        };
        self.last.insert(call, index);
    }

    /// Takes a return record; returns the value of the entry record that it belongs to, if there is one.
    pub fn end(&mut self, call: CallKey) -> Option<T> {
        let last = self.last.get_mut(&call)?;
        let entry = &mut self.calls[*last as usize];
        let value = entry.value.take();
        self.free.push(*last);
        *last = entry.outer;
        if *last == NONE {
            self.last.remove(&call);
        }
        value
    }

    /// The value of the latest entry record of a call, if that has no return record.
    pub fn last_mut(&mut self, call: CallKey) -> Option<&mut T> {
        self.calls[*self.last.get(&call)? as usize].value.as_mut()
    }

    /// The calls without a return record so far, in any order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (CallKey, &mut T)> {
        self.calls.iter_mut().filter_map(|entry| Some((entry.call, entry.value.as_mut()?)))
    }

    /// All calls without a return record; among those with the same key, earlier calls come first.
    pub fn into_open_calls(self) -> Vec<(CallKey, T)> {
        let OpenCalls { last, mut calls, .. } = self;
        let mut open = Vec::new();
        for mut index in last.into_values() {
            let start = open.len();
            while let Some(entry) = calls.get_mut(index as usize) {
                open.extend(entry.value.take().map(|value| (entry.call, value)));
                index = entry.outer;
            }
            open[start..].reverse();
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    fn call(lwp: u32, number: u8) -> CallKey {
        CallKey { pid: 1, lwp, tid: 5, category: 2, number, name: 0 }
    }

    #[test]
    fn calls_of_handlers_nest_and_calls_that_do_not_end_stay_open() {
        let mut open_calls = OpenCalls::default();
        assert_eq!(open_calls.end(call(1, 2)), None);
        open_calls.begin(call(1, 2), 'a');
        open_calls.begin(call(1, 2), 'b');
        open_calls.begin(call(2, 2), 'c');
        open_calls.begin(call(1, 4), 'd');
        assert_eq!(open_calls.end(call(1, 2)), Some('b'));
        open_calls.begin(call(1, 2), 'e');
        assert_eq!((open_calls.end(call(2, 2)), open_calls.end(call(2, 2)), open_calls.len()), (Some('c'), None, 3));
        let mut open = open_calls.into_open_calls();
        open.sort_by_key(|(call, _)| call.number);
        assert_eq!(open, [(call(1, 2), 'a'), (call(1, 2), 'e'), (call(1, 4), 'd')]);
    }

    #[test]
    fn random_calls_are_paired_like_a_stack_for_each_key() {
        let mut random = SeededRandom::seeded("pairs", 6);
        let mut open_calls = OpenCalls::default();
        let mut stacks: Vec<Vec<usize>> = vec![Vec::new(); 6];
        for serial in 0..20_000 {
            let kind = random.below(6);
            let call = call(kind as u32 / 2, kind as u8 % 2);
            if random.below(9) < 4 + (serial / 500) % 2 {
                open_calls.begin(call, serial);
                stacks[kind].push(serial);
            } else {
                assert_eq!(open_calls.end(call), stacks[kind].pop());
            }
            assert_eq!(open_calls.len(), stacks.iter().map(Vec::len).sum::<usize>());
        }
    }
}
