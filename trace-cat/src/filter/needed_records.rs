//! Which records the conditions need at all, decided from one line, or from two that are a call. --follow leaves out the others
//! where it reads them, unparsed: a thread that locks and unlocks makes millions a second.

use memchr::memchr;
use spec::record::{EVENT1_OFFSET, LWPID_OFFSET};

use super::call_filter::CallFilter;
use super::record_filter::RecordFilter;
use crate::calls::pairing::CallKey;
use crate::calls::process_ends::EndingRecord;
use crate::options::Selection;
use crate::record::call_stack::is_stack;
use crate::record::columns;

/// How many bytes `event1:event2:` has.
const EVENT_WIDTH: usize = 6;

/// The conditions of a selection on records and on calls.
#[derive(Debug)]
pub struct NeededRecords {
    records: RecordFilter,
    calls: Option<CallFilter>,
}

impl NeededRecords {
    /// The conditions of `selection`; `None` if all records are needed.
    pub fn new(selection: &Selection) -> Option<NeededRecords> {
        let (records, calls) = (RecordFilter::new(selection), CallFilter::new(selection));
        (calls.is_some() || !records.accepts_all()).then_some(NeededRecords { records, calls })
    }

    /// How many bytes at the beginning of `text` are a record that is not needed, or the two records of such a call; 0 if the first
    /// line may be needed, or is no record as far as its time shows.
    pub fn unneeded(&self, text: &[u8]) -> usize {
        let Some((line, after)) = split_line(text) else { return 0 };
        // Names of threads are learned from records that are not printed, too.
        // Whether a stack is needed depends on its record.
        if columns::sets_name(line) || is_stack(line) {
            return 0;
        }
        let is_wanted = self.records.wants(line);
        let Some(calls) = &self.calls else { return if is_wanted { 0 } else { line.len() } };
        let event = columns::event(line);
        if EndingRecord::of(event).is_some() {
            return 0;
        }
        match event.2 {
            _ if !is_wanted => line.len(),
            0 if calls.decides_by_one_record() && calls.call_record(line, event).names_object => 0,
            0 => line.len(),
            1 => match split_line(after).filter(|(second, _)| returns(line, second)) {
                Some((second, _)) => {
                    let [entry, returned] = [line, second].map(|line| calls.call_record(line, columns::event(line)));
                    let is_wanted = calls.wants(CallKey::of(line, event), Some(entry), Some(returned), None);
                    if is_wanted { 0 } else { line.len() + second.len() }
                }
                None => 0,
            },
            _ => 0,
        }
    }
}

/// The first line of `text`, which begins with a time, and the text behind it.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let lines = text.split_at(memchr(b'\n', text)? + 1);
    columns::time(lines.0).map(|_| lines)
}

/// Whether `second` is the return record of the call that begins with `first`.
fn returns(first: &[u8], second: &[u8]) -> bool {
    let call = LWPID_OFFSET..EVENT1_OFFSET + EVENT_WIDTH;
    // Wider thread IDs are left to the pairing of calls.
    first.get(EVENT1_OFFSET - 1) == Some(&b':')
        && first.get(call.clone()) == second.get(call)
        && columns::event(second).2 == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    fn text(records: &[(u64, u32, &str, u64)]) -> String {
        records.iter().map(|&(time, lwp, event, a1)| record(time, lwp, event, a1)).collect()
    }

    /// How many of the records are not needed, from the first on.
    fn unneeded(selection: &Selection, records: &[(u64, u32, &str, u64)]) -> usize {
        let text = text(records);
        let length = NeededRecords::new(selection).unwrap().unneeded(text.as_bytes());
        text[..length].lines().count()
    }

    #[test]
    fn a_call_is_left_out_if_nothing_of_it_is_needed() {
        assert!(NeededRecords::new(&Selection::default()).is_none());
        let longer = Selection { longer: Some(5), ..Selection::default() };
        let object = Selection { objects: vec![16], ..Selection::default() };
        let blocked = Selection { blocked: true, lwps: vec![1], ..Selection::default() };
        let [begin, end, unlock] = [(1, 1, "02:02:1", 7), (2, 1, "02:02:2", 0), (2, 1, "02:04:0", 7)];
        for selection in [&longer, &object, &blocked] {
            assert_eq!(unneeded(selection, &[begin, end]), 2);
            assert_eq!(unneeded(selection, &[unlock, begin, end]), 1);
            // The return record is still to come, or comes after those of a signal handler.
            assert_eq!(unneeded(selection, &[begin]), 0);
            assert_eq!(unneeded(selection, &[begin, unlock, end]), 0);
            assert_eq!(unneeded(selection, &[begin, (2, 1, "02:30:2", 0)]), 0);
            assert_eq!(unneeded(selection, &[begin, (2, 2, "02:02:2", 0)]), 0);
            assert_eq!(unneeded(selection, &[begin, begin, end]), 0);
            assert_eq!(unneeded(selection, &[end]), 0);
            // Ends of processes and losses decide about open calls.
            assert_eq!(unneeded(selection, &[(2, 1, "11:04:0", 0)]), 0);
            assert_eq!(unneeded(selection, &[(2, 1, "00:01:0", 0)]), 0);
            // Another thread's name is learned.
            assert_eq!(unneeded(selection, &[(2, 9, "01:39:0", 0)]), 0);
            // A stack belongs to a record before it.
            assert_eq!(unneeded(selection, &[begin, (1, 1, "00:03:1", 0), end]), 0);
            assert_eq!(unneeded(selection, &[begin, end, (2, 1, "00:03:1", 0), (2, 1, "00:03:2", 0)]), 2);
        }
        assert_eq!(unneeded(&longer, &[begin, (6, 1, "02:02:2", 0)]), 0);
        assert_eq!(unneeded(&blocked, &[(1, 1, "03:04:1", 7), (2, 1, "03:04:2", 0)]), 0);
        assert_eq!(unneeded(&blocked, &[(1, 2, "03:04:1", 7), (2, 2, "03:04:2", 0)]), 1);
    }

    #[test]
    fn what_is_no_record_is_not_left_out() {
        let needed = NeededRecords::new(&Selection { blocked: true, ..Selection::default() }).unwrap();
        for damaged in
            ["rubbish\n", "", "\n", "0000000000:00000000x:0000001:0000001:0x7fc5de3f86c0:02:04:0:0:0:0:0:0\n"]
        {
            assert_eq!(needed.unneeded(damaged.as_bytes()), 0, "{damaged}");
        }
        let call = text(&[(1, 1, "02:02:1", 7), (2, 1, "02:02:2", 0)]);
        (0..call.len()).for_each(|end| assert_eq!(needed.unneeded(&call.as_bytes()[..end]), 0, "{end}"));
    }
}
