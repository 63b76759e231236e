//! The life cycle of processes and threads: what is recorded at its turns, and that nothing is lost there.

mod cancel;
mod children;
mod endings;
mod files;
mod forked_maps;
mod indirect_functions;
mod known_to_parent;
mod many_children;
pub mod namespaces;
mod preloads;
mod shared_clock;
mod threads;
mod unnoticed_forks;
mod versions;
mod weak_references;

use std::fs;
use std::path::Path;

use super::harness::{TestDirectory, Trace};
use super::order::checker;

/// The merged trace of a test whose processes have all ended in an orderly way: no buffers are left, and it could
/// have happened.
#[track_caller]
fn clean(test: &TestDirectory) -> Trace {
    let left: Vec<String> =
        names(&test.trace_directory()).into_iter().filter(|name| name.starts_with("trbuf.")).collect();
    assert!(left.is_empty(), "{left:?}");
    let merged = test.merged();
    assert_eq!(merged.records.len(), test.trace().records.len(), "each record once");
    possible(&merged);
    merged
}

#[track_caller]
fn possible(trace: &Trace) {
    if let Err(impossible) = checker::check(trace.records.iter().map(|record| &record.fields)) {
        panic!("{impossible}: {}", trace.records[impossible.at].line);
    }
}

/// The names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// How many pairs of lock and unlock the process made.
#[track_caller]
fn pairs(trace: &Trace, pid: u32) -> usize {
    let of = |name: &str, which: u8| {
        trace.of(name).iter().filter(|record| record.fields.pid == pid && record.fields.which == which).count()
    };
    let counts = [of("mutex_lock", 1), of("mutex_lock", 2), of("mutex_unlock", 0)];
    assert_eq!(counts, [counts[0]; 3], "lock 1, lock 2, unlock of {pid}");
    counts[0]
}
