//! The tracks of a thread in Perfetto, and what its engine would leave out.

use super::*;

fn perfetto(lines: &str) -> PerfettoReading {
    let selection = Selection::default();
    PerfettoReading::of(&exported(
        &records(lines),
        WaitSelection::default(),
        &selection,
        Box::<PerfettoTimeline>::default(),
    ))
}

#[test]
fn tracks_have_the_name_that_their_thread_has_in_the_end() {
    // LWP 2 holds two mutexes, which cross, has two spans, which cross, and then gets the name "alpha".
    let reading = perfetto(
        "10:2:02:02:1:0x10:0:0:0:0\n10:2:02:02:2:0:0:0:0:0\n20:2:02:02:1:0x20:0:0:0:0\n20:2:02:02:2:0:0:0:0:0\n\
         30:2:02:04:0:0x10:0:1:0:0\n40:2:02:04:0:0x20:0:0:0:0\n\
         41:2:12:90:1:0x1:0:0:0:0\n42:2:12:90:1:0x2:0:0:0:0\n43:2:12:90:2:0x1:0:0:0:0\n44:2:12:90:2:0x2:0:0:0:0\n\
         50:2:01:39:0:0x2:0x616c706861000000:0:0:0\n60:2:01:18:0:0:0:0:0:0\n",
    );
    let mut names: Vec<&str> = reading.track_names.values().map(|name| &**name).collect();
    names.retain(|name| !name.is_empty() && !name.starts_with("threads "));
    names.sort_unstable();
    // The UI sorts them by names: waits stand above holds.
    assert_eq!(names, ["alpha", "alpha holds", "alpha holds 2", "alpha spans"]);
    assert!(reading.tracks.iter().any(|name| name == "thread holds"), "{:?}", reading.tracks);
    // Perfetto takes a later name only of a track that is not merged with others.
    assert_eq!(reading.merged_lanes, 0);
}

#[test]
fn a_call_that_ends_many_waits_has_one_mark() {
    const THREADS: u64 = 2500;
    let mut lines = String::from("1:1:07:01:0:0x90:0:2500:0:0\n");
    for lwp in 2..=THREADS {
        lines += &format!("{}:{lwp}:07:02:1:0x90:{}:0:0:0\n", 10 + lwp, THREADS + 2 - lwp);
    }
    lines += "5000:1:07:02:1:0x90:1:0:0:0\n5000:1:07:02:2:-1:0:0:0:0\n";
    for lwp in 2..=THREADS {
        lines += &format!("{}:{lwp}:07:02:2:0:0:0:0:0\n", 6000 + lwp);
    }
    let reading = perfetto(&lines);
    assert_eq!(reading.wakes(), THREADS - 1);
    // Perfetto nests the instants of one time in one another, 512 deep at most.
    let marks: Vec<_> = reading.instants.iter().filter(|mark| mark.1.starts_with("ends the wait")).collect();
    let names: Vec<&str> = marks.iter().map(|mark| &*mark.1).collect();
    let expected =
        ["ends the waits of 1024 threads", "ends the waits of 1024 threads", "ends the waits of 451 threads"];
    assert_eq!(names, expected);
    assert!(marks.iter().all(|mark| mark.2 == 4999), "{marks:?}");
}
