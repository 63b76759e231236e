//! `THR_TRACE_LEVEL=blocked`: exactly the calls that waited, failed or found a waiter, and those that are always recorded.

use std::collections::HashMap;

use spec::{EVENTS, Event, Level};

use crate::harness::{CommandOutput, Program, TestDirectory};
use crate::rows::CASES;
use crate::rows::expectation::{Expectation, Printed};
use crate::rows::recorded_calls::{assert_as_expected, assert_merged};

/// Whether a record is kept.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Yes,
    No,
    /// The program does not know what it depends on.
    Perhaps,
}

fn event(expectation: &Expectation) -> &'static Event {
    EVENTS.iter().find(|event| event.name == expectation.event).expect("an event of the table")
}

/// The text of a column by its name, if the record has it.
fn column<'a>(expectation: &'a Expectation, name: &str) -> Option<&'a str> {
    let form = event(expectation).kinds.iter().find(|form| form.which == expectation.which)?;
    let at = form.columns.iter().position(|column| column.is_some_and(|column| column.name == name))?;
    Some(&expectation.columns[at])
}

/// What an answer in a column means for the record.
fn answer(text: Option<&str>) -> Kept {
    match text {
        Some("1") => Kept::Yes,
        Some("0") => Kept::No,
        _ => Kept::Perhaps,
    }
}

/// Whether a call's records are kept, by its first (or only) one and its second.
fn kept(first: &Expectation, second: Option<&Expectation>) -> Kept {
    match event(first).kinds[0].level {
        Level::Always => Kept::Yes,
        Level::Never => Kept::No,
        Level::Failed => match column(first, "rval") {
            Some("0") => Kept::No,
            Some("*") | None => Kept::Perhaps,
            Some(_) => Kept::Yes,
        },
        // Condition variables of the first version do not tell of waiters.
        Level::Waiters if first.symbol.contains('@') => Kept::Yes,
        // How many a futex has woken.
        Level::Waiters if first.event == "futex_wake" => {
            let woken: i32 = column(first, "result").and_then(|woken| woken.parse().ok()).expect("a number");
            if woken > 0 { Kept::Yes } else { Kept::No }
        }
        Level::Waiters => answer(column(first, "waiters?")),
        Level::Blocked => match (column(first, "s_count"), second) {
            (Some("0"), _) => Kept::Yes,
            (Some(_), _) => Kept::No,
            (None, Some(second)) => match answer(column(second, "block?")) {
                // A lock that failed for another reason may have looked held.
                Kept::No if column(second, "rval").is_some_and(|rval| rval != "0") => Kept::Perhaps,
                kept => kept,
            },
            (None, None) => Kept::Perhaps,
        },
    }
}

/// The expectations that the level keeps.
fn selected(all: &[Expectation]) -> Vec<Expectation> {
    let mut verdicts = vec![Kept::Perhaps; all.len()];
    let mut open: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for (at, expectation) in all.iter().enumerate() {
        let calls = open.entry((expectation.pid, expectation.lwp)).or_default();
        match expectation.which {
            1 => {
                verdicts[at] = kept(expectation, None);
                calls.push(at);
            }
            2 => {
                let first = calls.iter().rposition(|&first| all[first].event == expectation.event);
                let first = calls.remove(first.expect("the second record of a call comes after its first"));
                verdicts[first] = kept(&all[first], Some(expectation));
                verdicts[at] = verdicts[first];
            }
            _ => verdicts[at] = kept(expectation, None),
        }
    }
    let verdict_of = |(expectation, &verdict): (&Expectation, &Kept)| {
        (verdict != Kept::No).then(|| Expectation { optional: verdict == Kept::Perhaps, ..expectation.clone() })
    };
    all.iter().zip(&verdicts).filter_map(verdict_of).collect()
}

/// Every traced function, in every way in which the programs of `rows` call it.
#[test]
fn of_every_function_what_blocked_failed_or_woke() {
    let (mut left, mut all, mut unknown) = (0, 0, 0);
    for case in CASES {
        let test = TestDirectory::new("level");
        let printed = case.print(test.traced(case.program()).env("THR_TRACE_LEVEL", "blocked"));
        let selected = selected(&printed.expectations);
        assert_as_expected(&selected, &test.trace());
        assert_merged(&test.trace(), &test.merged());
        (left, all) = (left + selected.len(), all + printed.expectations.len());
        unknown += selected.iter().filter(|expectation| expectation.optional).count();
    }
    println!("{left} of {all} expected, {unknown} of them perhaps");
    assert!(left * 3 < all * 2 && unknown * 5 < left, "{left} of {all} expected, {unknown} of them perhaps");
}

/// Cases that the programs of `rows` do not have: a thread holds and another waits, which the test observes in /proc.
#[test]
fn locks_and_semaphores_exactly() {
    for kind in ["normal", "recursive", "errorcheck", "adaptive", "inherit", "robust", "rwlock", "sema", "spin", "once"]
    {
        println!("{kind}");
        let test = TestDirectory::new("level-exactly");
        let run = test.traced(Program::c("recording_modes/level.c")).arg(kind).env("THR_TRACE_LEVEL", "blocked");
        let output = run.run();
        output.success();
        let mut expectations = Printed::parse(output.stdout_text()).expectations;
        // Of an unlock that may have found a waiter.
        expectations.iter_mut().for_each(|it| it.optional = it.columns.iter().any(|column| column == "?"));
        assert_as_expected(&expectations, &test.trace());
        assert!(info(&test).contains("\nlevel blocked\n"));
        // Without it everything is there, so that it was the level that left something out.
        let all = TestDirectory::new("level-all");
        all.traced(Program::c("recording_modes/level.c")).arg(kind).run().success();
        assert!(all.trace().records.len() > test.trace().records.len() + 10);
        assert!(info(&all).contains("\nlevel all\n"));
    }
}

/// The text of the only trinfo of a test.
fn info(test: &TestDirectory) -> String {
    let names = std::fs::read_dir(test.trace_directory()).unwrap().map(|entry| entry.unwrap().path());
    let infos: Vec<_> = names.filter(|path| path.to_string_lossy().contains("/trinfo.")).collect();
    assert_eq!(infos.len(), 1);
    std::fs::read_to_string(&infos[0]).unwrap()
}

/// How many records a run of a program makes at this level, and the messages of the library.
fn with_level(level: &str) -> (usize, CommandOutput) {
    let test = TestDirectory::new("level-value");
    let run = test.traced(Program::c("recording_modes/level.c")).arg("normal").env("THR_TRACE_LEVEL", level);
    let output = run.noise_expected().run();
    output.success();
    (test.merged().records.len(), output)
}

#[test]
fn an_unknown_level_is_reported_and_means_all() {
    let (all, output) = with_level("all");
    assert!(output.noise().is_empty());
    let (none, output) = with_level("");
    assert!(output.noise().is_empty());
    for unknown in ["Blocked", "blocked ", "block", "1"] {
        let (records, output) = with_level(unknown);
        let noise = output.noise();
        assert!(noise.len() == 1 && noise[0].contains(&format!("THR_TRACE_LEVEL: '{unknown}'")), "{noise:?}");
        assert_eq!(records, all);
    }
    assert_eq!(none, all);
    assert!(with_level("blocked").0 < all);
}
