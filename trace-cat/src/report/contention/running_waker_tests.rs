//! Who waits behind one that a running thread may wake is not stuck for certain.

use super::analysis_tests::{RecordLine, analysed, wrong};
use super::chain_ends::ChainEnd;

const POSTS: [RecordLine; 1] = [(10, 3, "4:4:0", &[64, 0])];
const WAITS: [RecordLine; 2] = [(20, 2, "4:2:1", &[64, 0]), (21, 1, "1:3:1", &[2])];

/// The threads that are stuck, each with whom it waits for, and the threads that may wake what others are perhaps stuck behind.
fn found(records: &[&[RecordLine<'static>]]) -> (Vec<(u32, u32)>, Vec<u32>) {
    let (analysis, graph) = analysed(&records.concat());
    let wakers = graph.perhaps_stuck.iter().map(|stuck| match stuck.end {
        ChainEnd::MayBeWoken(_, _, waker) => analysis.threads[waker as usize].lwp,
        end => panic!("{end:?}"),
    });
    let wakers = wakers.collect();
    (wrong(&analysis, &graph).1, wakers)
}

#[test]
fn who_posts_may_do_so_again() {
    let stuck = (vec![(1, 2)], vec![]);
    let perhaps = |waker: u32| (vec![], vec![waker]);
    assert_eq!(found(&[&POSTS, &WAITS]), perhaps(3));
    let other: &[RecordLine] = &[(10, 3, "4:4:0", &[80, 0])];
    assert_eq!(found(&[other, &WAITS]), stuck, "it never posts what the thread waits for");
    assert_eq!(found(&[&POSTS, &WAITS, &[(30, 3, "1:2:0", &[0])]]), stuck, "it has ended");
    assert_eq!(found(&[&[(20, 2, "3:4:1", &[64, 48]), (21, 1, "1:3:1", &[2])]]), stuck);
    let signals: &[RecordLine] = &[(10, 3, "3:2:0", &[64, 0, 0])];
    assert_eq!(found(&[signals, &[(20, 2, "3:4:1", &[64, 48]), (21, 1, "1:3:1", &[2])]]), perhaps(3));
}

#[test]
fn who_was_killed_in_a_post_had_begun_it() {
    let in_flight: &[RecordLine] = &[(30, 3, "0:4:0", &[404, 64])];
    assert_eq!(found(&[&WAITS, in_flight]), (vec![], vec![3]));
}

#[test]
fn who_posts_and_waits_itself_has_to_be_able_to_go_on() {
    let waits: &[RecordLine] = &[(30, 3, "4:2:1", &[80, 0])];
    assert_eq!(found(&[&POSTS, &WAITS, waits]), (vec![(1, 2)], vec![]));
    let other: &[RecordLine] = &[(10, 4, "4:4:0", &[80, 0])];
    assert_eq!(found(&[&POSTS, other, &WAITS, waits]), (vec![], vec![3]));
    // In a circle of turns that is broken, all wait for each other.
    let turns: &[RecordLine] = &[(11, 2, "4:4:0", &[80, 0])];
    assert_eq!(found(&[&POSTS, turns, &WAITS, waits]), (vec![(1, 2)], vec![]));
    let joins: &[RecordLine] = &[(30, 3, "1:3:1", &[1])];
    assert_eq!(found(&[&POSTS, &WAITS, joins]), (vec![(1, 2), (3, 1)], vec![]));
}

/// Not more than a few threads that post are known by name.
#[test]
fn if_many_threads_post_any_may_do_so() {
    let posts: Vec<RecordLine> = (3..9).map(|thread| (10, thread, "4:4:0", &[64, 0][..])).collect();
    let ends = |last: u32| -> Vec<RecordLine> { (3..last).map(|thread| (30, thread, "1:2:0", &[0][..])).collect() };
    assert_eq!(found(&[&posts, &WAITS, &ends(8)]), (vec![], vec![8]));
    assert_eq!(found(&[&posts, &WAITS, &ends(9)]), (vec![(1, 2)], vec![]));
}
