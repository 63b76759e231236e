//! `THR_TRACE_DETAIL`: where each call was made, and who held what it waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use spec::{Record as Fields, RecordKind};

use crate::harness::{Program, Record, TestDirectory, Trace};
use crate::rows::CASES;
use crate::rows::expectation::{Expectation, Printed};
use crate::rows::recorded_calls::assert_as_expected;

/// Optimised as programs are, without frame pointers.
const OPTIMISED: [&str; 2] = ["-O2", "-fomit-frame-pointer"];

/// Events of which `a4` of the record that begins a call, or is its only one, is filled as well.
const WITH_OWNER: [&str; 8] = [
    "mutex_lock",
    "mutex_timedlock",
    "rmutex_lock",
    "rmutex_timedlock",
    "rw_rdlock",
    "rw_wrlock",
    "rw_timedrdlock",
    "rw_timedwrlock",
];

/// Runs a case of `recording_modes/detail.c` with the variable.
fn detailed(case: &str, flags: &[&str]) -> (Vec<Expectation>, Trace) {
    let test = TestDirectory::new("detail");
    let run = test.traced(Program::with_flags("recording_modes/detail.c", flags)).arg(case).env("THR_TRACE_DETAIL", "");
    let output = run.run();
    output.success();
    (Printed::parse(output.stdout_text()).expectations, test.merged())
}

/// Lets `a5` be anything where the program does not know it.
fn open_callers(mut expectations: Vec<Expectation>) -> Vec<Expectation> {
    for expectation in &mut expectations {
        // The result of sem_init has the last column.
        let column = if expectation.event == "sema_init" { 3 } else { 4 };
        if expectation.which != 2 && expectation.symbol != "-" && expectation.columns[column] == "0" {
            expectation.columns[column] = "*".to_owned();
        }
    }
    expectations
}

#[test]
fn the_caller_is_the_return_address() {
    for flags in [&OPTIMISED[..], &["-O2", "-fomit-frame-pointer", "-fno-plt"], &["-O0", "-fno-omit-frame-pointer"]] {
        let (expectations, trace) = detailed("callers", flags);
        let count = expectations.iter().filter(|it| it.columns[4].starts_with("0x")).count();
        assert_as_expected(&open_callers(expectations), &trace);
        assert_eq!(count, 13);
    }
}

#[test]
fn the_caller_of_a_tail_call_is_where_it_returns_to() {
    for flags in [&OPTIMISED[..], &["-O2", "-fomit-frame-pointer", "-fno-plt"]] {
        let (expectations, trace) = detailed("tail", flags);
        assert_as_expected(&open_callers(expectations), &trace);
    }
}

#[test]
fn owners_readers_and_keys_are_recorded() {
    let (expectations, trace) = detailed("owners", &OPTIMISED);
    assert_as_expected(&open_callers(expectations), &trace);
}

#[test]
fn without_the_variable_the_additional_columns_are_0() {
    for case in ["callers", "tail", "owners"] {
        let test = TestDirectory::new("undetailed");
        let output = test.traced(Program::with_flags("recording_modes/detail.c", &OPTIMISED)).arg(case).run();
        output.success();
        for record in test.merged().records {
            let form = record.fields.kind().expect("a record of the table");
            let arguments = record.arguments();
            let empty = (0..5).filter(|&at| form.columns[at].is_none());
            empty.for_each(|at| assert_eq!(arguments[at], "0", "{}", record.line));
        }
    }
}

/// Where calls of a program return to, as offsets in its file, and what each calls: `None` for a call through a register or
/// of the program's own functions.
fn returns(program: &Path) -> BTreeMap<u64, Option<String>> {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut returns = BTreeMap::new();
    let mut called: Option<Option<String>> = None;
    for line in text.lines() {
        let Some((address, instruction)) = line.split_once(":\t") else { continue };
        let Ok(address) = u64::from_str_radix(address.trim(), 16) else { continue };
        if let Some(target) = called.take() {
            returns.insert(address, target);
        }
        if instruction.starts_with("call") {
            // `call 1050 <sem_post@plt>`, `call *0x2f8a(%rip) # 3fe0 <sem_post@GLIBC_2.34>`
            let name = instruction.split(['<', '>']).nth(1).and_then(|name| name.split_once('@')).map(|(name, _)| name);
            called = Some(name.map(str::to_owned));
        }
    }
    returns
}

/// The column of a record that has the caller: a5, or a4 if that has the result. `None` if both have something else.
fn caller_column(form: &RecordKind) -> Option<usize> {
    [4, 3].into_iter().find(|column| form.columns[*column].is_none())
}

/// A record's caller as an offset in the program's file, by the test's trinfo; `None` if it is elsewhere.
fn caller_in(program: &Path, maps: &[(u64, u64, u64, String)], record: &Record, column: usize) -> Option<u64> {
    let address = record.fields.arguments[column].bits();
    let (start, _, offset, _) =
        maps.iter().find(|(start, end, _, path)| (*start..*end).contains(&address) && Path::new(path) == program)?;
    Some(address - start + offset)
}

/// The `map START END OFFSET BUILD-ID PATH` lines of all trinfos of a test.
fn maps(test: &TestDirectory) -> Vec<(u64, u64, u64, String)> {
    let mut maps = Vec::new();
    for entry in fs::read_dir(test.trace_directory()).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().contains("/trinfo.") {
            continue;
        }
        for line in fs::read_to_string(path).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let ["map", start, end, offset, _, path] = words[..] else { continue };
            let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            maps.push((number(start), number(end), number(offset), path.to_owned()));
        }
    }
    maps
}

/// The function's name in C, which a call of any of its versions shows.
fn c_name(function: &spec::Function) -> &'static str {
    function.symbol.split('@').next().unwrap_or_default()
}

/// The record's columns that only this mode fills, as 0.
fn plain(record: &Record) -> Record {
    let form = record.fields.kind().expect("a record of the table");
    let mut words: Vec<&str> = record.line.split(':').collect();
    (0..5).filter(|&at| form.columns[at].is_none()).for_each(|at| words[8 + at] = "0");
    let line = words.join(":");
    Record { fields: Fields::parse(line.as_bytes()).unwrap(), line }
}

/// Every traced function, as the programs of `rows` call it: the caller is behind a call of just that function, and the
/// other columns are as ever.
#[test]
fn of_every_function_the_caller_is_behind_its_call() {
    let (mut checked, mut missing) = (BTreeSet::new(), BTreeSet::new());
    // The calls stay calls; what becomes of tail calls is another test's.
    for plt in ["-fplt", "-fno-plt"] {
        let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-Wno-error", plt];
        for case in CASES {
            let test = TestDirectory::new("detail-rows");
            let program = case.program_with(&flags);
            let printed = case.print(test.traced(&program).env("THR_TRACE_DETAIL", "1"));
            missing.extend(printed.missing);
            let trace = test.trace();
            let plain = Trace { records: trace.records.iter().map(plain).collect() };
            assert_as_expected(&printed.expectations, &plain);
            let (returns, maps) = (returns(program.path()), maps(&test));
            for record in &trace.records {
                let form = record.fields.kind().unwrap();
                let name = record.name();
                if caller_column(form) != Some(3) && form.columns[3].is_none() && record.arguments()[3] != "0" {
                    let owner = record.fields.which == 1 && WITH_OWNER.contains(&name.as_str());
                    assert!(owner || name == "rw_unlock" || name == "thr_keycreate", "{}", record.line);
                }
                let Some(column) = caller_column(form) else { continue };
                let Some(at) = caller_in(program.path(), &maps, record, column) else {
                    // A second record; a thread's or process's beginning or end that nobody called; libgcc's calls.
                    let silent = record.arguments()[column] == "0"
                        && (record.fields.which == 2
                            || ["thr_begin", "thr_exit", "proc_begin", "proc_exit"].contains(&name.as_str()));
                    assert!(silent || name == "thr_once", "{}: {}", case.source, record.line);
                    continue;
                };
                assert_ne!(record.fields.which, 2, "{}", record.line);
                let target = returns
                    .get(&at)
                    .unwrap_or_else(|| panic!("{}: no call before {at:#x}: {}", case.source, record.line));
                let event = record.fields.event().unwrap();
                let symbols = spec::FUNCTIONS.iter().filter(|function| function.event.event().number == event.number);
                if let Some(target) = target {
                    let calls = |function: &spec::Function| c_name(function) == target;
                    let is_known = symbols.into_iter().any(calls) || target == "syscall" && name.starts_with("futex_");
                    assert!(is_known, "{}: a call of {target}: {}", case.source, record.line);
                    checked.insert(target.clone());
                }
            }
        }
    }
    // `process.c` calls these through a pointer: they were checked to be behind a call of no name.
    checked.extend(["fork", "_Fork"].map(str::to_owned));
    let unchecked = spec::FUNCTIONS.iter().filter(|function| {
        let event = function.event.event();
        // The second column of functions is their caller.
        let is_free = event.category != spec::tables::FUNC && caller_column(&event.kinds[0]).is_some();
        is_free && !checked.contains(c_name(function)) && !missing.contains(function.symbol)
    });
    let unchecked: Vec<&str> = unchecked.map(|function| function.symbol).collect();
    assert!(unchecked.is_empty(), "no caller was checked of {unchecked:?}");
}
