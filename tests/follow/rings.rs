//! Rings are followed, which reach their files only when the process ends.

use super::{assert_same, end, files, follow, follow_all, go, numbers, posts, sorted};
use crate::harness::{Program, TestDirectory};

#[test]
fn what_stays_in_a_ring_is_printed() {
    let test = TestDirectory::new("follow-ring");
    let mut follower = follow(&test, &[]).spawn();
    let mut program = posts(&test, "posts 3 stay 5 go thread 2").env("THR_TRACE_RING", "64K").spawn();
    program.wait_for("ready\n");
    follower.wait_for(":4:0:0\n");
    assert_eq!(files(&test, "tr.").len(), 0);
    go(&test);
    program.wait().exited(7);
    follower.wait_for(":1:0:0\n");
    let output = end(follower);
    output.success();
    assert_eq!(numbers(&output.stdout).values().map(Vec::len).sum::<usize>(), 10);
}

/// As long as nothing is overwritten, what is printed is what the files have at the end; also with what the image before an exec
/// had, and what a killed process leaves.
#[test]
fn large_rings_are_followed_completely() {
    for (size, steps) in [
        ("8M", "posts 20000 thread 3000 stay 10 posts 2000 fork 700"),
        ("8M", "thread 100 posts 5000 exec 8M posts 6000 thread 20"),
        ("8M", "posts 5000 exec 1M thread 6000 posts 8"),
        ("8M", "posts 5000 exec - posts 6000 thread 20"),
        ("1M", "stay 3000 posts 9000 kill"),
    ] {
        for late in [false, true] {
            println!("{size} {steps}, followed late: {late}");
            let test = TestDirectory::new("follow-rings");
            let early = (!late).then(|| follow_all(&test));
            let mut program = posts(&test, &format!("posts 7 go {steps}")).env("THR_TRACE_RING", size).spawn();
            program.wait_for("ready\n");
            let follower = early.unwrap_or_else(|| follow_all(&test));
            go(&test);
            program.wait();
            let followed = follower.wait();
            let running_note = ": process ";
            let messages: Vec<&str> =
                followed.stderr_text().lines().filter(|line| !line.contains(running_note)).collect();
            assert_eq!(messages, [""; 0]);
            let merged = test.trace_cat().run();
            merged.success();
            assert_same(&followed.stdout, &merged.stdout);
        }
    }
}

/// A ring that overwrites records before they are read: nothing is printed twice or out of order, the loss is reported once for a
/// thread, and the newest
/// are there.
#[test]
fn rings_that_are_overtaken_are_reported_once() {
    for size in ["64K", "1M"] {
        println!("{size}");
        let test = TestDirectory::new("follow-overtaken");
        let follower = follow_all(&test);
        let run = posts(&test, "posts 400000 stay 300000 thread 200000").env("THR_TRACE_RING", size);
        run.run().exited(7);
        let followed = follower.wait();
        followed.success();
        let merged = test.trace_cat().run();
        let (printed, kept) = (numbers(&followed.stdout), numbers(&merged.stdout));
        assert_eq!(printed.len(), 3);
        for (which, numbers) in &printed {
            assert!(numbers.is_sorted_by(|a, b| a < b), "{which:?}: double or out of order");
            let kept = &kept[which];
            assert!(numbers.ends_with(kept), "{which:?}: the newest {} are not the last printed", kept.len());
        }
        let gaps = printed.values().filter(|numbers| numbers.len() as u64 != numbers[numbers.len() - 1] + 1).count();
        // On a busy machine the process may have begun first; then its rings are copied, if that can be done, and may have
        // overwritten records already.
        let is_of_the_start = |line: &&str| {
            ["its rings are read as they stand", "cannot be copied", "earlier records were overwritten"]
                .iter()
                .any(|message| line.contains(message))
        };
        let lines: Vec<&str> = followed.stderr_text().lines().filter(|line| !is_of_the_start(line)).collect();
        assert!(lines.iter().all(|line| line.contains("overwrites records before they are read")), "{lines:?}");
        println!("{gaps} of 3 had gaps, {} were reported", lines.len());
        assert!(lines.len() <= 3);
    }
}

/// Rings of handlers are small and overwrite records that were printed; of what is left all were printed, and nothing twice.
#[test]
fn storms_in_rings_are_followed() {
    for mode in ["posts", "jumps"] {
        println!("{mode}");
        let test = TestDirectory::new("follow-ring-storm");
        let follower = follow_all(&test);
        let storm = test.traced(Program::c("hostile/storm.c")).args([mode, "300"]);
        storm.env("THR_TRACE_RING", "32M").run().success();
        let followed = follower.wait();
        followed.success();
        let merged = test.trace_cat().run();
        let [printed, kept] = [&followed, &merged].map(|output| sorted(&output.stdout));
        assert!(printed.is_sorted_by(|a, b| a < b), "something was printed twice");
        let missing: Vec<_> = kept.iter().filter(|line| printed.binary_search(line).is_err()).collect();
        assert!(missing.is_empty(), "{} of {} are missing, {:?}", missing.len(), kept.len(), missing[0]);
        assert!(kept.len() > 2000);
    }
}
