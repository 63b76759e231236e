//! A trace, compared with what the programs expect of it.

use std::collections::BTreeMap;

use spec::Base;

use super::expectation::Expectation;
use crate::harness::{Record, Trace};

/// What a thread should have recorded, and what it did record.
type ExpectedAndRecorded<'a> = (Vec<&'a Expectation>, Vec<&'a Record>);

/// Fails unless each thread's records are exactly the expected ones.
pub fn assert_as_expected(expectations: &[Expectation], trace: &Trace) {
    let mut threads: BTreeMap<(u32, u32), ExpectedAndRecorded<'_>> = BTreeMap::new();
    for expectation in expectations {
        threads.entry((expectation.pid, expectation.lwp)).or_default().0.push(expectation);
    }
    for record in &trace.records {
        assert_bases(record);
        threads.entry((record.fields.pid, record.fields.lwpid)).or_default().1.push(record);
    }
    threads.values_mut().for_each(|(_, recorded)| forget_libraries(expectations, recorded));
    let faults: Vec<String> = threads.values().filter_map(|(expected, recorded)| fault(expected, recorded)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Removes the calls that the C libraries make of each other, of objects that no expectation names: `pthread_once` of libgcc's
/// unwinder when a thread is cancelled or exits, whose routine makes no calls, so that its two records stand together; before
/// glibc 2.34 also `__pthread_getspecific` and `__pthread_setspecific` of libdl when it notes an error.
fn forget_libraries(expectations: &[Expectation], recorded: &mut Vec<&Record>) {
    let is_named = |record: &Record, event: Option<&str>| {
        let same = |expectation: &&Expectation| event.is_none_or(|event| expectation.event == event);
        expectations.iter().filter(same).any(|expectation| expectation.columns[0] == record.arguments()[0])
    };
    let is_foreign = |record: &Record| {
        let keys = ["thr_getspecific", "thr_setspecific"].into_iter().find(|event| record.is(event));
        match keys {
            Some(event) => !is_named(record, Some(event)),
            None => record.is("thr_once") && record.fields.which == 1 && !is_named(record, None),
        }
    };
    while let Some(place) = recorded.iter().position(|record| is_foreign(record)) {
        let removed = recorded.remove(place);
        let is_return = |record: &&Record| record.is("thr_once") && record.fields.which == 2;
        if removed.is("thr_once") && recorded.get(place).is_some_and(is_return) {
            recorded.remove(place);
        }
    }
}

/// Those of the expectations that are not optional, or whose record is there.
fn present<'a>(expected: &[&'a Expectation], recorded: &[&Record]) -> Vec<&'a Expectation> {
    let mut at = 0;
    let is_there = |expected: &&Expectation| {
        let is_there = !expected.optional || recorded.get(at).is_some_and(|recorded| matches(expected, recorded));
        at += usize::from(is_there);
        is_there
    };
    expected.iter().copied().filter(is_there).collect()
}

/// The first place where a thread's records are not what they should be.
fn fault(expected: &[&Expectation], recorded: &[&Record]) -> Option<String> {
    let expected = &present(expected, recorded);
    let place =
        (0..expected.len().max(recorded.len())).find(|&place| match (expected.get(place), recorded.get(place)) {
            (Some(expected), Some(recorded)) => !matches(expected, recorded),
            _ => true,
        })?;
    let expected_line = |place| expected.get(place).map_or_else(|| "nothing".to_owned(), ToString::to_string);
    let recorded_line = |place: usize| match recorded.get(place) {
        Some(record) => format!("{}.{} {}", record.name(), record.fields.which, record.arguments().join(" ")),
        None => "nothing".to_owned(),
    };
    let mut message = String::from("a thread's records are not as expected\n");
    for earlier in place.saturating_sub(3)..place {
        message += &format!("  before:   {}\n", expected_line(earlier));
    }
    message += &format!("  expected: {}\n  recorded: {}\n", expected_line(place), recorded_line(place));
    message +=
        &format!("  then expected: {}\n  then recorded: {}\n", expected_line(place + 1), recorded_line(place + 1));
    message += &format!("  the record: {}", recorded.get(place).map_or("none", |record| record.line.as_str()));
    Some(message)
}

/// Whether the record is the expected one, its thread ID included.
fn matches(expected: &Expectation, record: &Record) -> bool {
    record.is(&expected.event)
        && record.fields.which == expected.which
        && record.line.split(':').nth(4) == Some(&expected.tid)
        && record.arguments().iter().enumerate().all(|(column, text)| expected.accepts(column, text))
}

/// Fails unless every column is printed in its table's base. The expectation decides about an empty column.
fn assert_bases(record: &Record) {
    let form = record.fields.kind().unwrap_or_else(|| panic!("not in the table: {}", record.line));
    for (text, column) in record.arguments().iter().zip(form.columns) {
        let hex = text.strip_prefix("0x");
        let fits = match column.map(|column| column.base) {
            _ if *text == "0" => true,
            None => true,
            Some(Base::Signed) => hex.is_none(),
            Some(Base::Unsigned) => hex.is_none() && !text.starts_with('-'),
            Some(Base::Hex) => hex.is_some_and(|digits| !digits.starts_with('0')),
            Some(Base::Thread) => hex.is_some_and(|digits| digits.len() == 12 || !digits.starts_with('0')),
        };
        assert!(
            fits && (hex.is_some() || !text.trim_start_matches('-').starts_with('0') || *text == "0"),
            "{}",
            record.line
        );
    }
}

/// Fails unless trace-cat prints the same records, in order of time.
pub fn assert_merged(trace: &Trace, merged: &Trace) {
    let sorted = |trace: &Trace| {
        let mut lines: Vec<String> = trace.records.iter().map(|record| record.line.clone()).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(trace), sorted(merged), "trace-cat prints other records than the files have");
    for pair in merged.records.windows(2) {
        assert!(pair[0].fields.time <= pair[1].fields.time, "out of order\n{}\n{}", pair[0].line, pair[1].line);
    }
}

/// Tests of the comparison itself.
mod tests {
    use std::panic::catch_unwind;

    use super::super::expectation::Printed;
    use super::*;

    const PRINTED: &str = "expect 7 8 0x7f0000000001 pthread_mutex_lock mutex_lock 1 7777 0x55 0 0 0 0\n\
                           expect 7 8 0x7f0000000001 pthread_mutex_lock mutex_lock 2 7777 0 ? 0 0 0\n\
                           expect 7 9 0x7f0000000002 pthread_join thr_join 2 0 0x7f0000000001 * 0 0 0\n";
    const TRACE: &str = "1795174740:000000001:0000009:0000007:0x7f0000000002:01:03:2:0x7f0000000001:0x5eed:0:0:0\n\
                         1795174740:000000002:0000008:0000007:0x7f0000000001:02:02:1:0x55:0:0:0:0\n\
                         1795174740:000000002:0000008:0000007:0x7f0000000001:02:02:2:0:1:0:0:0\n";

    fn accepts(trace: &str) -> bool {
        let expectations = Printed::parse(PRINTED).expectations;
        let trace = Trace::parse("a test", trace.as_bytes());
        catch_unwind(|| assert_as_expected(&expectations, &trace)).is_ok()
    }

    #[test]
    fn what_is_expected_is_accepted() {
        assert!(accepts(TRACE));
    }

    #[test]
    fn each_change_is_found() {
        for (from, to) in [
            ("0x55", "0x56"),
            ("0x55", "85"),
            ("02:02:2:0:1", "02:02:2:16:1"),
            ("02:02:2:0:1", "02:02:2:0:2"),
            ("02:02:1:0x55:0", "02:02:1:0x55:1"),
            ("02:02:1", "06:02:1"),
            ("0000008", "0000009"),
            ("0x5eed", "24301"),
            ("0x5eed", "0x05eed"),
            ("0x7f0000000001:02", "0x7f0000000003:02"),
            ("1795174740:000000002:0000008:0000007:0x7f0000000001:02:02:2:0:1:0:0:0\n", ""),
        ] {
            assert!(TRACE.contains(from), "{from}");
            assert!(!accepts(&TRACE.replace(from, to)), "{from} changed into {to:?} goes unnoticed");
        }
        assert!(!accepts(&format!("{TRACE}1795174740:000000003:0000008:0000007:0x7f0000000001:01:04:0:0:0:0:0:0\n")));
        assert!(!accepts(""));
    }

    #[test]
    fn another_order_is_found() {
        let first = "1795174740:000000002:0000008:0000007:0x7f0000000001:01:04:0:0:0:0:0:0\n";
        assert!(!accepts(&format!("{first}{TRACE}")));
    }
}
