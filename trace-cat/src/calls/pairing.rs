//! Finds the second half of each call's first half.
//!
//! A call's halves have the same thread and event. Calls of a thread's signal handlers begin later than the one that they
//! interrupt and end earlier; so a second half belongs to the first half that came last and has none yet.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::record::columns;

/// What the two halves of a call have in common. The thread's ID counts, because two processes of different PID namespaces
/// can have the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    /// The process.
    pub pid: u32,
    /// The LWP.
    pub lwp: u32,
    /// The thread.
    pub tid: u64,
    /// The category.
    pub category: u8,
    /// The event.
    pub number: u8,
}

impl CallKey {
    /// That of the record `line`, whose event is `event`.
    pub fn of(line: &[u8], (category, number, _): (u8, u8, u8)) -> CallKey {
        let (pid, lwp, tid) = (columns::pid(line), columns::lwpid(line), columns::tid(line));
        CallKey { pid, lwp, tid, category, number }
    }
}

/// Calls that have begun and not ended, with what is to be remembered of each.
#[derive(Debug)]
pub struct OpenCalls<T> {
    /// The place of each kind of call's last one.
    last: HashMap<CallKey, u32, RandomState>,
    calls: Vec<OpenCallEntry<T>>,
    /// Places that are not used.
    free: Vec<u32>,
}

#[derive(Debug)]
struct OpenCallEntry<T> {
    call: CallKey,
    /// `None`: the place is not used.
    what: Option<T>,
    /// The place of the call that this one interrupted.
    below: u32,
}

const NONE: u32 = u32::MAX;

impl<T> Default for OpenCalls<T> {
    fn default() -> OpenCalls<T> {
        OpenCalls { last: HashMap::default(), calls: Vec::new(), free: Vec::new() }
    }
}

impl<T> OpenCalls<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.calls.len() - self.free.len()
    }

    /// A first half.
    pub fn begin(&mut self, call: CallKey, what: T) {
        let below = self.last.get(&call).copied().unwrap_or(NONE);
        let entry = OpenCallEntry { call, what: Some(what), below };
        let place = match self.free.pop() {
            Some(place) => {
                self.calls[place as usize] = entry;
                place
            }
            None => {
                self.calls.push(entry);
                self.calls.len() as u32 - 1
            }
        };
        self.last.insert(call, place);
    }

    /// A second half; what was remembered of its first half, if there was one.
    pub fn end(&mut self, call: CallKey) -> Option<T> {
        let last = self.last.get_mut(&call)?;
        let entry = &mut self.calls[*last as usize];
        let what = entry.what.take();
        self.free.push(*last);
        *last = entry.below;
        if *last == NONE {
            self.last.remove(&call);
        }
        what
    }

    /// Those that have not ended; of one kind, the ones that began earlier come first.
    pub fn into_open_calls(self) -> Vec<(CallKey, T)> {
        let OpenCalls { last, mut calls, .. } = self;
        let mut rest = Vec::new();
        for mut place in last.into_values() {
            let from = rest.len();
            while let Some(entry) = calls.get_mut(place as usize) {
                rest.extend(entry.what.take().map(|what| (entry.call, what)));
                place = entry.below;
            }
            rest[from..].reverse();
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::seeded_random::SeededRandom;

    fn call(lwp: u32, number: u8) -> CallKey {
        CallKey { pid: 1, lwp, tid: 5, category: 2, number }
    }

    #[test]
    fn handlers_nest_and_what_has_no_half_is_left() {
        let mut open_calls = OpenCalls::default();
        assert_eq!(open_calls.end(call(1, 2)), None);
        open_calls.begin(call(1, 2), 'a');
        open_calls.begin(call(1, 2), 'b');
        open_calls.begin(call(2, 2), 'c');
        open_calls.begin(call(1, 4), 'd');
        assert_eq!(open_calls.end(call(1, 2)), Some('b'));
        open_calls.begin(call(1, 2), 'e');
        assert_eq!((open_calls.end(call(2, 2)), open_calls.end(call(2, 2)), open_calls.len()), (Some('c'), None, 3));
        let mut rest = open_calls.into_open_calls();
        rest.sort_by_key(|(call, _)| call.number);
        assert_eq!(rest, [(call(1, 2), 'a'), (call(1, 2), 'e'), (call(1, 4), 'd')]);
    }

    #[test]
    fn random_calls_are_paired_as_a_stack_for_each_kind_says() {
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
