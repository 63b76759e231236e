//! Critical paths of records whose path is known.

use std::collections::HashMap;

use super::analysis::Analysis;
use super::holds::Knowledge;
use super::numeric_record::NumericRecord;
use super::wait_selection::WaitSelection;
use crate::report::critical_path::CriticalPath;

/// The records of a text: time, LWP, `event1:event2:which` and arguments in each line. The pthread_t of a thread is its LWP. LWPs
/// from 20 on belong to process 20.
fn records(text: &str) -> Vec<NumericRecord> {
    let record = |line: &str| {
        let mut words = line.split_whitespace();
        let mut record = NumericRecord { time: words.next()?.parse().unwrap(), ..NumericRecord::default() };
        record.lwp = words.next().unwrap().parse().unwrap();
        let event: Vec<u8> = words.next().unwrap().split(':').map(|number| number.parse().unwrap()).collect();
        (record.event, record.which) = ((event[0], event[1]), event[2]);
        record.arguments.iter_mut().zip(words).for_each(|(place, word)| *place = word.parse().unwrap());
        (record.pid, record.tid) = (if record.lwp < 20 { 1 } else { 20 }, u64::from(record.lwp));
        Some(record)
    };
    text.lines().filter_map(record).collect()
}

/// The analysis of the records, with the critical paths.
pub fn analysed_with_paths(records: &[NumericRecord], knowledge: Knowledge) -> Analysis {
    let mut analysis = Analysis::new(HashMap::from([(1, knowledge), (20, knowledge)]), WaitSelection::default());
    records.iter().for_each(|record| analysis.add(record));
    analysis.finish(&[]);
    analysis.find_critical_paths().unwrap();
    for path in &analysis.critical_paths {
        assert_adds_up(path);
    }
    analysis
}

/// Each moment of the process belongs to one thread, and to one part.
fn assert_adds_up(path: &CriticalPath) {
    let shares = path.shares;
    assert_eq!(shares.holding + shares.other + shares.unknown, path.length, "{path:?}");
    assert!(shares.latency <= shares.other && shares.timed_out <= shares.unknown, "{path:?}");
    assert_eq!(path.threads.iter().map(|(_, time)| time).sum::<u64>(), path.length, "{path:?}");
    assert_eq!(path.segments().iter().map(|segment| segment.until - segment.from).sum::<u64>(), path.length);
    assert!(path.segments().windows(2).all(|pair| pair[0].until == pair[1].from));
    assert!(path.holds.iter().all(|hold| hold.time <= path.length && hold.holds > 0), "{path:?}");
}

/// Holding, other and unknown; by object: address, time and holds; by thread: LWP and time.
pub type PathFigures = ([u64; 3], Vec<(u64, u64, u64)>, Vec<(u32, u64)>);

pub fn path_figures(analysis: &Analysis, index: usize) -> PathFigures {
    let path = &analysis.critical_paths[index];
    let mut objects: Vec<_> =
        path.holds.iter().map(|hold| (analysis.objects[hold.object as usize].address, hold.time, hold.holds)).collect();
    objects.sort_unstable();
    let mut threads: Vec<_> =
        path.threads.iter().map(|(thread, time)| (analysis.threads[*thread as usize].lwp, *time)).collect();
    threads.sort_unstable();
    ([path.shares.holding, path.shares.other, path.shares.unknown], objects, threads)
}

fn path_of(text: &str) -> PathFigures {
    path_figures(&analysed_with_paths(&records(text), Knowledge::default()), 0)
}

#[test]
fn a_path_goes_to_the_holder_of_a_lock_and_to_the_creator() {
    let text = "0 1 1:1:1 99 0 7 8
                1 1 1:1:2 0 2
                5 2 1:30:0 7 8
                10 2 2:2:1 16
                10 2 2:2:2 0 0
                20 1 2:2:1 16
                60 2 2:4:0 16
                65 1 2:2:2 0 1
                80 1 2:4:0 16
                100 1 11:4:0";
    assert_eq!(path_of(text), ([65, 35, 0], vec![(16, 65, 2)], vec![(1, 40), (2, 60)]));
    let analysis = analysed_with_paths(&records(text), Knowledge::default());
    assert_eq!(analysis.critical_paths[0].shares.latency, 10);
    // The thread begins before the creating call has returned, or after.
    let late = text.replace("1 1 1:1:2 0 2\n", "").replace("20 1 2:2:1", "7 1 1:1:2 0 2\n20 1 2:2:1");
    assert_eq!(path_of(&late), path_of(text));
}

#[test]
fn a_path_goes_through_all_holders_of_a_convoy() {
    let text = "0 1 2:2:1 16
                0 1 2:2:2 0 0
                1 2 2:2:1 16
                2 3 2:2:1 16
                50 1 2:4:0 16 0 1
                55 2 2:2:2 0 1
                60 1 2:2:1 16
                80 2 2:4:0 16 0 1
                85 3 2:2:2 0 1
                100 3 2:4:0 16 0 1
                110 1 2:2:2 0 1
                115 1 2:4:0 16
                120 1 11:4:0";
    // 1: 110-120 and, woken, from 100 on; 3: 80-100; 2: 50-80; 1: 0-50.
    assert_eq!(path_of(text), ([95, 25, 0], vec![(16, 95, 4)], vec![(1, 70), (2, 30), (3, 20)]));
}

#[test]
fn a_path_goes_to_posts_through_a_pipeline() {
    let text = "0 1 4:2:1 32 0
                1 2 4:2:1 33 0
                2 3 4:4:0 33
                10 3 4:4:0 33
                20 2 4:2:2 0
                30 2 4:4:0 32
                35 1 4:2:2 0
                40 1 11:4:0";
    // The first post ended the wait; nobody created the threads, but the main one has been there from the beginning.
    assert_eq!(path_of(text), ([0, 38, 2], vec![], vec![(1, 10), (2, 28), (3, 2)]));
}

#[test]
fn a_path_goes_to_the_last_that_arrives_at_a_barrier() {
    let text = "0 1 7:2:1 48 3
                0 2 7:2:1 48 2
                70 3 7:2:1 48 1
                70 3 7:2:2 18446744073709551615
                72 2 7:2:2 0
                75 1 7:2:2 0
                90 1 11:4:0";
    assert_eq!(path_of(text), ([0, 20, 70], vec![], vec![(1, 20), (3, 70)]));
}

#[test]
fn two_that_arrive_last_at_a_barrier_may_count_each_other_as_missing() {
    let text = "0 1 7:2:1 48 3
                69 2 7:2:1 48 2
                70 3 7:2:1 48 2
                72 2 7:2:2 0
                73 2 7:2:1 48 3
                75 1 7:2:2 0
                76 3 7:2:2 18446744073709551615
                90 1 11:4:0";
    assert_eq!(path_of(text), ([0, 20, 70], vec![], vec![(1, 20), (3, 70)]));
}

#[test]
fn a_path_goes_to_joined_threads_and_their_last_record() {
    let text = "0 1 1:1:1
                1 1 1:1:2 0 2
                3 1 1:3:1 2
                4 2 1:30:0
                10 2 1:1:1
                12 3 1:30:0
                13 2 1:1:2 0 3
                14 2 1:3:1 3
                50 3 1:2:0
                55 2 1:3:2 3 0 0
                60 2 1:2:0
                61 2 2:2:1 16
                61 2 2:2:2 0 0
                65 2 2:4:0 16
                70 1 1:3:2 2 0 0
                80 1 11:4:0";
    assert_eq!(path_of(text), ([4, 76, 0], vec![(16, 4, 1)], vec![(1, 15), (2, 25), (3, 40)]));
}

#[test]
fn a_wait_for_a_condition_ends_with_the_later_of_signal_and_release() {
    let wait = "0 1 2:2:1 16
                0 1 2:2:2 0 0
                5 1 3:4:1 32 16
                6 2 2:2:1 16
                6 2 2:2:2 0 0
                20 2 3:2:0 32 0 1\n";
    let by_release = format!(
        "{wait} 30 2 2:4:0 16 0 1
                32 1 3:4:2 0
                34 1 2:4:0 16
                40 1 11:4:0"
    );
    // Nobody is known to have created thread 2.
    assert_eq!(path_of(&by_release), ([26, 8, 6], vec![(16, 26, 2)], vec![(1, 10), (2, 30)]));
    let by_another = format!(
        "{wait} 21 2 2:4:0 16 0 1
                22 3 2:2:1 16
                22 3 2:2:2 0 0
                30 3 2:4:0 16 0 1
                32 1 3:4:2 0
                34 1 2:4:0 16
                40 1 11:4:0"
    );
    assert_eq!(path_of(&by_another), ([10, 8, 22], vec![(16, 10, 2)], vec![(1, 10), (3, 30)]));
}

#[test]
fn a_reader_waited_for_the_writer_and_not_for_other_readers() {
    let text = "0 1 5:3:1 64
                0 1 5:3:2 0 0
                1 2 5:2:1 64
                2 3 5:2:1 64
                50 1 5:4:0 64 0 1
                52 2 5:2:2 0 1 1
                55 2 5:4:0 64
                60 3 5:2:2 0 1 1
                65 3 5:4:0 64
                80 3 0:9:0";
    assert_eq!(path_of(text), ([55, 25, 0], vec![(64, 55, 2)], vec![(1, 50), (3, 30)]));
}

#[test]
fn a_wait_that_nobody_ended_is_unknown_and_holds_go_on() {
    let text = "0 1 2:2:1 16
                0 1 2:2:2 0 0
                5 1 4:30:1 32 0 0 99
                25 1 4:30:2 110
                30 1 2:4:0 16
                40 1 4:30:1 32 0 0 99
                60 1 4:30:2 110
                70 1 4:2:1 32 0
                75 1 0:9:0";
    assert_eq!(path_of(text), ([30, 20, 25], vec![(16, 30, 1)], vec![(1, 75)]));
    let analysis = analysed_with_paths(&records(text), Knowledge::default());
    assert_eq!(analysis.critical_paths[0].shares.timed_out, 20);
}

#[test]
fn a_forked_child_and_another_program_have_paths_of_their_own() {
    let text = "0 1 2:2:1 16
                0 1 2:2:2 0 0
                10 1 11:1:1 0
                15 20 11:2:0 1
                20 1 11:1:2 20 0
                25 20 2:4:0 16
                30 1 2:4:0 16
                40 20 11:4:0
                50 1 11:3:1
                60 1 0:9:0";
    let mut made = records(text);
    made[3].tid = 1;
    made[9].tid = 77;
    let analysis = analysed_with_paths(&made, Knowledge::default());
    let lengths: Vec<_> = analysis.critical_paths.iter().map(|path| path.length).collect();
    assert_eq!(lengths, [50, 25, 0]);
    assert_eq!(path_figures(&analysis, 0), ([30, 20, 0], vec![(16, 30, 1)], vec![(1, 50)]));
    assert_eq!(path_figures(&analysis, 1), ([10, 15, 0], vec![(16, 10, 1)], vec![(20, 25)]));
}

#[test]
fn a_wait_that_another_process_ended_is_told_apart() {
    let text = "0 1 4:1:0 32 1 0 0 0
                1 1 11:1:1 0
                2 20 11:2:0 1
                3 1 11:1:2 20 0
                4 1 4:2:1 32 0
                50 20 4:4:0 32
                55 1 4:2:2 0
                60 1 11:4:0
                65 1 0:9:0";
    let mut made = records(text);
    made[2].tid = 1;
    made[5].tid = 1;
    let analysis = analysed_with_paths(&made[..8], Knowledge::default());
    let shares = analysis.critical_paths[0].shares;
    assert_eq!((shares.other, shares.unknown, shares.timed_out, shares.by_others), (9, 51, 0, 51));
    let alone: Vec<NumericRecord> = made.iter().filter(|record| record.lwp == 1).copied().collect();
    let analysis = analysed_with_paths(&alone, Knowledge::default());
    assert_eq!((analysis.critical_paths[0].shares.unknown, analysis.critical_paths[0].shares.by_others), (51, 0));
}

#[test]
fn a_routine_that_had_been_done_is_not_held() {
    let text = "0 1 1:38:1 80 7
                30 1 1:38:2 0 1
                40 1 1:38:1 80 7
                40 1 1:38:2 0 0
                90 1 11:4:0";
    assert_eq!(path_of(text), ([30, 60, 0], vec![(80, 30, 1)], vec![(1, 90)]));
}

#[test]
fn who_waited_for_a_routine_may_return_before_who_ran_it() {
    let text = "0 2 1:38:1 80 7
                500000 1 1:38:1 80 7
                600000 3 1:38:1 80 7
                6000000 3 1:38:2 0
                6200000 1 1:38:2 0
                6400000 2 1:38:2 0
                9000000 1 11:4:0";
    let (path, known) = (path_of(text), [6_000_000, 3_000_000, 0]);
    assert_eq!(path, (known, vec![(80, 6_000_000, 1)], vec![(1, 3_000_000), (2, 6_000_000)]));
    let analysis = analysed_with_paths(&records(text), Knowledge::default());
    let figures = &analysis.objects[0].figures;
    let wakers = figures.wakers.in_order().iter().map(|(waker, count)| (waker.0, *count));
    assert_eq!(wakers.collect::<Vec<_>>(), [(0, 2)]);
    let sums = (figures.contention, figures.handoff, figures.unknown, figures.hold.sum());
    assert_eq!(sums, (5_400_000 + 5_700_000, 200_000, 0, 6_000_000));
    // All calls of a routine are recorded at each level.
    let only_blocked = Knowledge { only_blocked: true, ..Knowledge::default() };
    let blocked = analysed_with_paths(&records(text), only_blocked);
    let figures = &blocked.objects[0].figures;
    assert_eq!((figures.contention, figures.handoff, figures.unknown), (5_400_000 + 5_700_000, 200_000, 0));
    // A wait that was cancelled does not show that the routine has ended.
    let cancelled = path_of(&text.replace("6000000 3 1:38:2 0", "6000000 3 1:38:2 125"));
    let threads = vec![(1, 2_800_000), (2, 6_200_000)];
    assert_eq!(cancelled, ([6_200_000, 2_800_000, 0], vec![(80, 6_200_000, 1)], threads));
}

/// Two threads enter at nearly the same time, so that either may run the routine; the third one waits.
#[test]
fn who_runs_a_routine_is_known_if_nobody_else_may_or_by_its_calls() {
    let found_of = |stack: &str, calls: &str| {
        let text = format!(
            "0 2 1:38:1 80 7 0 0 256
             {stack}
             4000 1 1:38:1 80 7 0 0 256
             600000 3 1:38:1 80 7
             {calls}
             6000000 3 1:38:2 0
             6200000 2 1:38:2 0
             6400000 1 1:38:2 0
             9000000 1 11:4:0"
        );
        let analysis = analysed_with_paths(&records(&text), Knowledge::default());
        let figures = &analysis.objects[0].figures;
        let blamed: Vec<_> = figures.blamed.in_order().iter().map(|(holder, time)| (holder.thread, *time)).collect();
        let wakers: Vec<_> = figures.wakers.in_order().iter().map(|(waker, count)| (waker.0, *count)).collect();
        (figures.wait.count(), figures.contention, figures.unknown, blamed, wakers, figures.lost_holds)
    };
    let found = |calls: &str| found_of("", calls);
    let waited = 5_996_000 + 400_000 + 5_400_000;
    assert_eq!(found(""), (2, waited, waited, vec![], vec![], 0));
    // When the second one entered, the routine was being run, so that its call has a stack.
    let stack = "4000 1 0:3:1 256 512 0 0 0";
    assert_eq!(found_of(stack, ""), (2, waited, 0, vec![(0, 5_996_000 + 5_400_000)], vec![(0, 2)], 0));
    // The first to enter makes a call in the routine.
    let first = found("900000 2 1:4:0\n900000 2 2:3:0 16 0\n950000 2 2:4:0 16 0");
    assert_eq!(first, (2, waited, 0, vec![(0, 5_996_000 + 5_400_000)], vec![(0, 2)], 0));
    // The second one does: it has not waited, the first one has, nobody knows how long, and what the third one waited is unknown.
    let second = found("900000 1 2:3:0 16 0\n950000 1 2:4:0 16 0");
    assert_eq!(second, (1, 5_400_000, 5_400_000, vec![], vec![], 0));
}

#[test]
fn what_is_not_recorded_is_unknown() {
    // The main thread is killed while it waits.
    let killed = "0 2 2:2:1 16
                  0 2 2:2:2 0 0
                  10 2 0:9:0
                  20 1 2:2:1 16";
    assert_eq!(path_of(killed), ([0, 20, 0], vec![], vec![(1, 20)]));
    // Records of thread 1 were lost from 20 to 70, also the release.
    let lost = "0 1 2:2:1 16
                0 1 2:2:2 0 0
                5 2 2:2:1 16
                20 1 0:1:0 7
                60 2 2:2:2 0 1
                70 1 2:2:1 17
                70 1 2:2:2 0 0
                80 1 2:4:0 17
                90 1 11:4:0";
    assert_eq!(path_of(lost).0, [10, 10, 70]);
    // Rings have lost what was before 30.
    let ring = Knowledge { complete_from: 30, ..Knowledge::default() };
    let text = "20 1 2:2:1 16
                25 2 2:2:1 16
                25 2 2:2:2 0 0
                35 2 2:4:0 16
                40 1 2:2:2 0 1
                50 1 2:4:0 16
                60 1 11:4:0";
    let analysis = analysed_with_paths(&records(text), ring);
    assert_eq!(path_figures(&analysis, 0), ([15, 15, 10], vec![(16, 15, 2)], vec![(1, 25), (2, 15)]));
}
