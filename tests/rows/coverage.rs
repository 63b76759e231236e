//! Whether the programs call every function and make every record that the tables have.

use std::collections::BTreeSet;
use std::ffi::CString;

use spec::{EVENTS, FUNCTIONS};

use super::CASES;
use crate::artefact::Library;
use crate::harness::{TestDirectory, glibc};

/// Categories whose records programs of other tests make: spinning barriers are made by `threadt.h`, and a compiler calls the
/// functions of category func.
const WITHOUT_FUNCTION: [u8; 2] = [8, 13];

/// Records that no function of their own makes: the beginnings of threads and of processes, and calls of futex(2).
const WITHOUT_ROW: [&str; 5] = ["thr_begin", "proc_begin", "futex_wait", "futex_wake", "futex_op"];

/// Records that the library makes of itself and not of a call: a loss, and a change of the mask.
const OF_THE_TRACE: u8 = 0;

/// Whether the C library has the function: this machine's, or the other one under which the programs run.
pub fn in_c_library(function: &str) -> bool {
    if let Some(glibc) = glibc::chosen() {
        let libraries = ["libc.so.6", "libpthread.so.0"].map(|name| glibc.libraries().join(name));
        return libraries.iter().any(|path| {
            Library::symbol_addresses(path)
                .keys()
                .any(|symbol| symbol.split_once("@@").map(|(name, _)| name) == Some(function))
        });
    }
    let name = CString::new(function).expect("a function's name has no NUL");
    // SAFETY: dlsym reads the name, which lives until it returns; this process is not under the library.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
}

#[test]
fn every_row_of_the_tables_is_exercised() {
    let test = TestDirectory::new("coverage");
    let mut functions = BTreeSet::new();
    let mut forms = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for case in CASES {
        let printed = case.print(test.native(case.program()));
        missing.extend(printed.missing);
        for expectation in printed.expectations {
            functions.insert(expectation.symbol);
            forms.insert((expectation.event, expectation.which));
        }
    }
    for without_row in ["-", "syscall"] {
        functions.remove(without_row);
    }

    let mut uncovered = Vec::new();
    for function in FUNCTIONS.iter().filter(|function| !WITHOUT_FUNCTION.contains(&function.event.event().category)) {
        if missing.contains(function.symbol) {
            println!("not on this glibc: {}", function.symbol);
        } else if !functions.remove(function.symbol) {
            uncovered.push(format!("functions.tsv: {}", function.symbol));
        }
    }
    let available = |event: &str| {
        FUNCTIONS.iter().any(|function| function.event.event().name == event && !missing.contains(function.symbol))
    };
    for event in &EVENTS {
        if event.category == OF_THE_TRACE || WITHOUT_FUNCTION.contains(&event.category) {
            continue;
        }
        for form in event.kinds {
            let done = forms.contains(&(event.name.to_owned(), form.which));
            if !done && (available(event.name) || WITHOUT_ROW.contains(&event.name)) {
                uncovered.push(format!("events.tsv: {} {}", event.name, form.which));
            }
        }
    }
    assert!(uncovered.is_empty(), "rows that no program exercises: {uncovered:#?}");
    assert!(functions.is_empty(), "functions that programs call and the table does not have: {functions:?}");
}
