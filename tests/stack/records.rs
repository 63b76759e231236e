//! Which records have a stack: those of calls that waited or failed, of thr_create and of every init.

use std::collections::BTreeSet;

use super::with_stacks;
use crate::harness::{Program, Record, TestDirectory, Trace};
use crate::rows::CASES;
use crate::rows::recorded_calls::{assert_as_expected, assert_merged};

/// The trace without its stacks.
fn without_stacks(trace: &Trace) -> Trace {
    Trace { records: trace.records.iter().filter(|record| !record.is("trace_stack")).cloned().collect() }
}

/// The value of a column, if the record has it.
fn column(record: &Record, name: &str) -> Option<i64> {
    let columns = record.fields.kind()?.columns;
    let index = columns.iter().position(|column| column.is_some_and(|column| column.name == name))?;
    Some(record.fields.arguments[index].bits() as i64)
}

/// Whether the record of a call's result shows an error.
fn has_failed(record: &Record) -> bool {
    // Not the concurrency level, the winner at a barrier, or a mutex whose owner has died; and a call that is cancelled has no
    // result.
    let is_result = !["thr_getconcurrency", "thr_once", "thr_sleep"].iter().any(|event| record.is(event));
    let error = column(record, "rval").or(column(record, "errno")).unwrap_or(0);
    let no_errors = [0, -1, libc::EOWNERDEAD.into(), libc::ECANCELED.into()];
    is_result && !no_errors.contains(&error) || c11_error(record)
}

/// `thrd_error` is recorded as -1.
fn c11_error(record: &Record) -> bool {
    column(record, "rval") == Some(-1) && !record.is("barrier_wait")
}

/// Whether a call of futex(2) locks the word, and waits for that.
fn locks_word(entry: &Record) -> bool {
    let operation = entry.get("op") as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    [libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2, libc::FUTEX_WAIT_REQUEUE_PI].contains(&operation)
}

/// Whether a call has to have a stack; `None` if its records do not show it.
fn wants_stack(entry: &Record, returned: Option<&Record>) -> Option<bool> {
    let name = entry.name();
    match name.as_str() {
        "thr_create" => Some(true),
        "thr_sleep" => Some(false),
        "futex_op" if locks_word(entry) => Some(true),
        "cond_wait" | "cond_timedwait" | "cond_clockwait" | "futex_wait" => Some(true),
        "sema_wait" | "sema_timedwait" => Some(column(entry, "s_count") == Some(0) || returned.is_some_and(has_failed)),
        "barrier_wait" => Some(column(entry, "b_count") != Some(1)),
        // Whether the thread had ended is not recorded, nor who ran the routine.
        "thr_join" | "thr_timedjoin" | "thr_once" => None,
        _ if name.ends_with("_init") => Some(true),
        _ if entry.fields.which == 0 => Some(has_failed(entry)),
        _ => {
            let returned = returned?;
            let waited = column(returned, "block?") == Some(1);
            if name == "spin_lock" { Some(waited) } else { Some(waited || has_failed(returned)) }
        }
    }
}

/// The programs of `rows` call every function in every way; their records are otherwise as without stacks.
#[test]
fn calls_that_waited_or_failed_have_stacks_and_no_others() {
    let (mut with, mut without) = (BTreeSet::new(), BTreeSet::new());
    for case in CASES {
        let test = TestDirectory::new("stack-records");
        let printed = case.print(test.traced(case.program()).env("THR_TRACE_STACK", "8"));
        let (trace, merged) = (test.trace(), test.merged());
        assert_as_expected(&printed.expectations, &without_stacks(&trace));
        assert_merged(&trace, &merged);
        let threads: BTreeSet<(u32, u32)> =
            trace.records.iter().map(|record| (record.fields.pid, record.fields.lwpid)).collect();
        for (pid, lwp) in threads {
            let records: Vec<&Record> =
                trace.of_lwp(lwp).into_iter().filter(|record| record.fields.pid == pid).collect();
            let calls = with_stacks(&records);
            for (at, (record, stack)) in calls.iter().enumerate().filter(|(_, (record, _))| record.fields.which < 2) {
                let is_return = |(later, _): &&(Record, _)| later.fields.which == 2 && later.name() == record.name();
                let returned = if record.fields.which == 1 { calls[at + 1..].iter().find(is_return) } else { None };
                let later_stack = returned.and_then(|(_, stack)| stack.as_ref());
                assert!(stack.is_none() || later_stack.is_none(), "two stacks: {}", record.line);
                let stack = stack.as_ref().or(later_stack);
                let wanted = wants_stack(record, returned.map(|(record, _)| record));
                assert!(
                    wanted.is_none_or(|wanted| wanted == stack.is_some()),
                    "{}: {} {:?} {stack:x?}",
                    case.source,
                    record.line,
                    returned.map(|(record, _)| &record.line)
                );
                if let Some(stack) = stack {
                    assert!(!stack.addresses.is_empty(), "{}", record.line);
                }
                if wanted == Some(true) { &mut with } else { &mut without }.insert(record.name());
            }
        }
    }
    println!("with: {with:?}\nwithout: {without:?}");
    for event in ["mutex_lock", "rw_wrlock", "cond_wait", "sema_wait", "mutex_trylock", "barrier_wait", "thr_create"] {
        assert!(with.contains(event), "no {event} has a stack");
    }
    assert!(["mutex_lock", "mutex_unlock", "sema_wait"].iter().all(|event| without.contains(*event)));
}

#[test]
fn an_invalid_number_is_reported_and_ignored() {
    let program = Program::c("recording_modes/level.c");
    for value in ["0", "65", "-1", "x", "", "99999999999"] {
        let test = TestDirectory::new("stack-value");
        let run = test.traced(&program).arg("normal").env("THR_TRACE_STACK", value).noise_expected();
        let output = run.run();
        output.success();
        let noise = output.noise();
        assert!(noise.len() == 1 && noise[0].contains(&format!("THR_TRACE_STACK: '{value}' is not")), "{noise:?}");
        assert!(test.merged().of("trace_stack").is_empty());
    }
}
