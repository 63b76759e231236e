//! Records that are missing at the end.

use super::analysis_tests::{RecordLine, figures, lock, record, wrong};
use super::losses::MissingNewest;
use super::{Analysis, ImageEnd};

/// Threads 1 and 2 wait for each other, as their last records have it.
const WAITS: [RecordLine; 2] = [(20, 1, "2:2:1", &[32]), (21, 2, "2:2:1", &[16])];

fn circle() -> Vec<RecordLine<'static>> {
    [&lock(10, 1, &[16])[..], &lock(11, 2, &[32]), &WAITS].concat()
}

/// The deadlocks, where this is missing.
fn deadlocks(lines: &[RecordLine<'static>], lose: impl Fn(&mut Analysis)) -> (Vec<Vec<u32>>, Analysis) {
    let mut analysis = Analysis::new(Default::default(), Default::default());
    lines.iter().for_each(|line| analysis.add(&record(*line)));
    lose(&mut analysis);
    let graph = analysis.finish(&[]);
    (wrong(&analysis, &graph).0, analysis)
}

fn missing(threads: Option<Vec<u32>>) -> impl Fn(&mut Analysis) {
    move |analysis: &mut Analysis| analysis.lose_newest(&[MissingNewest { pid: 1, threads: threads.clone() }])
}

#[test]
fn a_thread_that_has_lost_its_newest_records_is_in_no_deadlock() {
    assert_eq!(deadlocks(&circle(), |_| {}).0, [[1, 2]]);
    for lwp in [1, 2] {
        assert_eq!(deadlocks(&circle(), missing(Some(vec![lwp]))).0, [[0; 0]; 0], "{lwp}");
    }
    assert_eq!(deadlocks(&circle(), missing(Some(vec![3]))).0, [[1, 2]], "another one has");
    let (found, analysis) = deadlocks(&circle(), missing(None));
    assert_eq!(found, [[0; 0]; 0]);
    assert!(analysis.processes[0].lacks_newest);
}

/// A process that ends by itself writes all that it has recorded.
#[test]
fn nothing_is_missing_of_a_process_that_has_ended() {
    let ended = [&circle()[..], &[(30, 3, "11:4:0", &[0][..])]].concat();
    let (found, analysis) = deadlocks(&ended, missing(None));
    assert_eq!((found, analysis.processes[0].end), (vec![vec![1, 2]], ImageEnd::Exit));
    assert!(!analysis.processes[0].lacks_newest);
    // On a full disk it may have had no room for what counts them.
    assert_eq!(deadlocks(&ended, |analysis| analysis.raise_losses(1, 5)).0, [[0; 0]; 0]);
    assert_eq!(deadlocks(&circle(), |analysis| analysis.raise_losses(1, 5)).0, [[1, 2]], "its buffers show whose");
}

/// Thread 1 may have released the lock since its last record.
#[test]
fn nobody_is_blamed_from_the_last_record_on_where_newer_ones_are_missing() {
    let lines =
        [&lock(10, 1, &[16])[..], &[(20, 2, "2:2:1", &[16]), (30, 1, "2:3:0", &[48, 0]), (70, 3, "1:16:0", &[])]];
    let unknown = |lose: &dyn Fn(&mut Analysis)| figures(&deadlocks(&lines.concat(), lose).1, 16).4;
    assert_eq!((unknown(&|_| {}), unknown(&missing(Some(vec![1])))), (0, 40));
}
