//! `THR_TRACE_RING`: the newest records of each thread, complete and without a gap; no file before the end.

use std::collections::BTreeMap;
use std::fs;

use spec::encode::{ENCODE_ROOM, encode_room};

use crate::harness::{CommandOutput, Program, TestCommand, TestDirectory, Trace, assert_same_lines, trace_cat};

/// What the program exits with.
const DONE: i32 = 7;
/// Room that a ring keeps free behind the newest record.
const NEEDED: usize = encode_room(2) + ENCODE_ROOM;
/// Bytes of a ring that may hold no record: the step by which it gives up its oldest, what is kept free behind the newest
/// and was at its end, and a record that the step has truncated.
pub const UNUSED: usize = 4096 + 2 * NEEDED + 100;

/// A thread that posted.
#[derive(Clone, Copy, Debug)]
struct Poster {
    lwp: u32,
    semaphore: u64,
    count: u64,
}

/// The threads that posted, in the order in which they began.
fn posters(output: &CommandOutput) -> Vec<Poster> {
    let parse = |line: &str| {
        let words: Vec<&str> = line.strip_prefix("posts ")?.split(' ').collect();
        Some(Poster {
            lwp: words[0].parse().unwrap(),
            semaphore: u64::from_str_radix(words[1].strip_prefix("0x")?, 16).unwrap(),
            count: words[2].parse().unwrap(),
        })
    };
    output.stdout_text().lines().filter_map(parse).collect()
}

/// `ring` with these steps and rings of this size; only posts are recorded.
fn with_ring<'a>(test: &'a TestDirectory, size: &str, steps: &str) -> TestCommand<'a> {
    let run = test.traced(Program::c("recording_modes/ring.c")).args(steps.split_whitespace());
    run.env("THR_TRACE_RING", size).env("THR_TRACE_EVENTS", "sema")
}

/// Which posts of this thread are there: the first one's number and how many. Fails unless they are one behind the other.
#[track_caller]
fn kept(trace: &Trace, poster: Poster) -> Option<(u64, u64)> {
    let posts = trace.of("sema_post");
    let of_poster = posts.iter().filter(|post| post.fields.lwpid == poster.lwp && post.get("sem") == poster.semaphore);
    let numbers: Vec<u64> = of_poster.map(|post| post.get("s_count")).collect();
    let first = *numbers.first()?;
    let contiguous: Vec<u64> = (first..first + numbers.len() as u64).collect();
    assert!(numbers == contiguous, "{poster:?}: {first} to {:?} with gaps", numbers.last());
    Some((first, numbers.len() as u64))
}

/// Fails unless a thread's newest posts are there, as many as its ring has room for. Whether it had overwritten some.
#[track_caller]
fn assert_newest(trace: &Trace, poster: Poster, size: usize) -> bool {
    let (first, count) = kept(trace, poster).unwrap_or((poster.count, 0));
    assert_eq!(first + count, poster.count, "{poster:?}: the newest are missing");
    let bytes: usize = trace.of_lwp(poster.lwp).iter().map(|record| record.line.len() + 1).sum();
    assert!(bytes <= size, "{poster:?}: {bytes} bytes in a ring of {size}");
    assert!(first == 0 || bytes >= size - UNUSED, "{poster:?}: only {bytes} bytes of {size} kept");
    first > 0
}

/// The time of a thread's first record, as trinfo writes it.
fn oldest(trace: &Trace, lwp: u32) -> String {
    let first = trace.of_lwp(lwp)[0];
    format!("{}.{}", &first.line[..10], &first.line[11..20])
}

/// The names in the trace directory that begin with `prefix`.
fn files(test: &TestDirectory, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(test.trace_directory()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// The lines of the process's trinfo whose key is `key`, without it.
fn trinfo_values(test: &TestDirectory, key: &str) -> Vec<String> {
    let names = files(test, "trinfo.");
    assert_eq!(names.len(), 1, "{names:?}");
    let text = fs::read_to_string(test.trace_directory().join(&names[0])).unwrap();
    let key = format!("{key} ");
    text.lines().filter_map(|line| line.strip_prefix(&key)).map(str::to_owned).collect()
}

/// The records that trace-cat prints, and the threads that it reports as incomplete: LWP and time.
fn read(test: &TestDirectory, further: &[&str]) -> (Trace, BTreeMap<u32, String>) {
    let output = test.trace_cat_by_thread().args(further).run();
    output.success();
    let mut complete_from = BTreeMap::new();
    for line in output.stderr_text().lines() {
        let Some((_, note)) = line.split_once(": LWP ") else { panic!("trace-cat prints {line}") };
        let (lwp, note) = note.split_once(" is complete from ").expect("the time");
        let time = note.split(['(', ')']).nth(1).expect("the time as in the records");
        assert!(note.ends_with(" on") || note.ends_with("; earlier records were overwritten"), "{line}");
        complete_from.insert(lwp.parse().unwrap(), time.to_owned());
    }
    (Trace::parse("trace-cat", &output.stdout), complete_from)
}

/// Fails unless trace-cat names exactly the threads that have overwritten records, each with its oldest record's time.
#[track_caller]
fn assert_complete_from(trace: &Trace, wrapped: &[Poster], complete_from: &BTreeMap<u32, String>) {
    let expected: BTreeMap<u32, String> =
        wrapped.iter().map(|poster| (poster.lwp, oldest(trace, poster.lwp))).collect();
    assert_eq!(*complete_from, expected);
}

const STEPS: &str = "thread 10 thread 700 thread 5000 stay 3 stay 20000 posts 30000";

#[test]
fn the_newest_of_each_thread_reach_the_files_at_the_end() {
    for ending in ["", "_exit", "quick_exit"] {
        let test = TestDirectory::new("ring");
        let mut running = with_ring(&test, "64K", &format!("{STEPS} go {ending}")).spawn();
        running.wait_for("ready\n");
        assert_eq!(files(&test, "tr."), [""; 0], "a ring was written before the end");
        assert_eq!(files(&test, "trbuf.").len(), 1);
        fs::write(test.directory().join("go"), "").unwrap();
        let output = running.wait();
        output.exited(DONE);
        assert_eq!(files(&test, "trbuf."), [""; 0]);
        let posters = posters(&output);
        assert_eq!(posters.len(), 6);
        let trace = test.trace();
        let wrapped: Vec<Poster> =
            posters.into_iter().filter(|&poster| assert_newest(&trace, poster, 64 << 10)).collect();
        assert_eq!(wrapped.iter().map(|poster| poster.count).collect::<Vec<_>>(), [5000, 20000, 30000]);
        assert_eq!(
            (trinfo_values(&test, "buffer"), trinfo_values(&test, "ring")),
            (vec!["ring".to_owned()], vec!["65536".to_owned()])
        );
        let mut lines: Vec<String> =
            wrapped.iter().map(|poster| format!("{} {}", poster.lwp, oldest(&trace, poster.lwp))).collect();
        lines.sort();
        let mut written = trinfo_values(&test, "complete_from");
        written.sort();
        assert_eq!(written, lines);
        let (merged, complete_from) = read(&test, &[]);
        assert_eq!(merged.records.len(), trace.records.len());
        assert_complete_from(&merged, &wrapped, &complete_from);
    }
}

#[test]
fn after_a_death_trace_cat_takes_the_newest_from_the_buffers() {
    for (ending, signal) in [("kill", libc::SIGKILL), ("abort", libc::SIGABRT), ("filter kill", libc::SIGKILL)] {
        println!("{ending}");
        let test = TestDirectory::new("ring-killed");
        let output = with_ring(&test, "64K", &format!("{STEPS} {ending}")).run();
        output.killed(signal);
        assert_eq!(files(&test, "tr."), [""; 0]);
        let posters = posters(&output);
        let (trace, complete_from) = read(&test, &[]);
        let wrapped: Vec<Poster> =
            posters.iter().copied().filter(|&poster| assert_newest(&trace, poster, 64 << 10)).collect();
        assert_eq!(wrapped.len(), 3);
        assert_complete_from(&trace, &wrapped, &complete_from);
        test.recover();
        assert_eq!(files(&test, "trbuf."), [""; 0]);
        let (recovered, complete_from) = read(&test, &[]);
        assert_same_lines(&recovered.text(), &trace.text(), "after --recover and before");
        assert_complete_from(&trace, &wrapped, &complete_from);
    }
}

/// The program forbids itself, on pain of death, whatever writes files. It records on, and the library leaves the rings to
/// trace-cat instead of ending a program that would have ended by itself.
#[test]
fn under_a_filter_that_kills_rings_stay_for_trace_cat() {
    for ending in ["", "quick_exit", "_exit"] {
        let test = TestDirectory::new("ring-filter");
        let steps = format!("thread 5000 posts 10 filter posts 20000 {ending}");
        with_ring(&test, "64K", &steps).run().exited(DONE);
        assert_eq!((files(&test, "tr."), files(&test, "trbuf.").len()), (Vec::new(), 1));
        let (trace, complete_from) = read(&test, &[]);
        let posts: Vec<u64> = trace.of("sema_post").iter().map(|post| post.get("s_count")).collect();
        assert_eq!(posts.iter().max(), Some(&19_999), "the newest post made under the filter");
        assert_eq!(complete_from.len(), 2);
    }
}

#[test]
fn of_dead_threads_the_sixteen_newest_are_kept() {
    let test = TestDirectory::new("ring-dead");
    let threads = (1..=30).map(|number| format!("thread {number} ")).collect::<String>();
    let output = with_ring(&test, "64K", &format!("posts 50 stay 40 {threads}")).run();
    output.exited(DONE);
    let merged = test.trace_cat().run();
    merged.success();
    let trace = Trace::parse("trace-cat", &merged.stdout);
    let posters = posters(&output);
    let there = |poster: &&Poster| kept(&trace, **poster).is_some();
    let counts: Vec<u64> = posters.iter().filter(there).map(|poster| poster.count).collect();
    assert_eq!(counts, [vec![50, 40], (15..=30).collect()].concat(), "main, the one that lives, and the newest 16");
    posters.iter().filter(there).for_each(|&poster| assert!(!assert_newest(&trace, poster, 64 << 10)));
    let notes = trinfo_values(&test, "note");
    assert_eq!(notes, ["the rings of 14 threads that had ended were reused, and their records are gone"]);
    let counts = test.trace_cat().arg("--stat").run();
    for text in [merged.stderr_text(), counts.stdout_text()] {
        assert_eq!(text.lines().filter(|line| line.ends_with(&format!(": {}", notes[0]))).count(), 1, "{text}");
    }
    assert!(trinfo_values(&test, "complete_from").is_empty());
}

/// A process that runs, that executes another program, and that is killed has its count in its buffers, and after `--recover` in its trinfo.
#[test]
fn reused_rings_are_counted_before_the_end() {
    let test = TestDirectory::new("ring-reused");
    let threads = |count: u32| "thread 2 ".repeat(count as usize);
    let steps = format!("{}go exec 64K {}kill", threads(20), threads(30));
    let mut running = with_ring(&test, "64K", &steps).spawn();
    running.wait_for("ready\n");
    let assert_counted = |reused: u32| {
        let note = format!("the rings of {reused} threads that had ended were reused, and their records are gone");
        let merged = test.trace_cat().run();
        merged.success();
        let report = test.native(trace_cat()).arg("report").arg(test.trace_directory()).run();
        for text in [merged.stderr_text(), report.stdout_text()] {
            assert_eq!(text.lines().filter(|line| line.ends_with(&note)).count(), 1, "{note}: {text}");
            assert_eq!(text.matches("the rings of").count(), 1, "{text}");
        }
        note
    };
    assert_counted(4);
    fs::write(test.directory().join("go"), "").unwrap();
    running.wait().killed(libc::SIGKILL);
    let note = assert_counted(4 + 14);
    test.recover();
    assert_eq!(assert_counted(4 + 14), note);
    assert_eq!(trinfo_values(&test, "note").last(), Some(&note));
}

#[test]
fn sizes_are_rounded_bounded_and_reported() {
    // The value of the variable, the size that results, and the message.
    for (asked, ring, message) in [
        ("64K", Some(64 << 10), ""),
        ("1M", Some(1 << 20), ""),
        ("100000", Some(102_400), ""),
        ("64k", Some(64 << 10), ""),
        ("10K", Some(64 << 10), "THR_TRACE_RING: taken as 64K, the least"),
        ("0", Some(64 << 10), "THR_TRACE_RING: taken as 64K, the least"),
        ("2G", Some(1 << 30), "THR_TRACE_RING: taken as 1G, the most"),
        ("much", None, "THR_TRACE_RING: 'much' is not a size"),
        ("", None, "THR_TRACE_RING: '' is not a size"),
        ("-64K", None, "THR_TRACE_RING: '-64K' is not a size"),
    ] {
        println!("{asked:?}");
        let test = TestDirectory::new("ring-size");
        let run = with_ring(&test, asked, "posts 20000").env("THR_TRACE_BUF", "1");
        // A mode that writes each record at once makes so few here that most sizes keep all of them.
        let output = run.noise_expected().run();
        output.exited(DONE);
        let noise = output.noise();
        assert_eq!(noise.len(), usize::from(!message.is_empty()), "{noise:?}");
        assert!(noise.iter().all(|line| line.contains(message)), "{noise:?}");
        let poster = posters(&output)[0];
        match ring {
            Some(size) => {
                assert_eq!(trinfo_values(&test, "ring"), [size.to_string()]);
                assert_eq!(assert_newest(&test.trace(), poster, size), size < 20_000 * 80);
            }
            None => {
                assert_eq!(
                    (trinfo_values(&test, "buffer"), trinfo_values(&test, "ring").len()),
                    (vec!["shared".to_owned()], 0)
                );
                assert_eq!(kept(&test.merged(), poster), Some((0, 20_000)));
            }
        }
    }
}

#[test]
fn a_forked_child_has_rings_of_its_own() {
    let test = TestDirectory::new("ring-fork");
    let output = with_ring(&test, "64K", "posts 20000 fork 3000 fork 10 posts 5000 thread 7").run();
    output.exited(DONE);
    let trace = test.trace();
    let posters = posters(&output);
    assert_eq!(posters.len(), 5);
    // Of the parent's two runs of posts only the second is left, and of that the newest.
    let (first, others) = posters.split_first().unwrap();
    assert_eq!(kept(&trace, *first), None);
    let wrapped: Vec<bool> = others.iter().map(|&poster| assert_newest(&trace, poster, 64 << 10)).collect();
    assert_eq!(wrapped, [true, false, true, false]);
    for poster in others {
        let pids: Vec<u32> = trace.of_lwp(poster.lwp).iter().map(|record| record.fields.pid).collect();
        assert!(pids.iter().all(|pid| *pid == pids[0]), "{poster:?} has records of two processes");
    }
    assert_eq!((files(&test, "trbuf.").len(), files(&test, "trinfo.").len()), (0, 3));
}

/// What the image before an exec had kept is written before it becomes another, which may want rings of another size or
/// none.
#[test]
fn an_exec_keeps_the_rings_of_both_images() {
    for next in ["64K", "1M", "-"] {
        for ending in ["", "kill"] {
            println!("{next} {ending}");
            let test = TestDirectory::new("ring-exec");
            let steps = format!("thread 700 posts 20000 exec {next} thread 300 posts 30000 {ending}");
            let output = with_ring(&test, "64K", &steps).run();
            if ending.is_empty() {
                output.exited(DONE)
            } else {
                output.killed(libc::SIGKILL)
            };
            let (trace, complete_from) = read(&test, &[]);
            let posters = posters(&output);
            let counts: Vec<u64> = posters.iter().map(|&poster| kept(&trace, poster).unwrap_or((0, 0)).1).collect();
            for (poster, count) in posters.iter().zip(&counts) {
                let (first, count) = (kept(&trace, *poster).unwrap().0, *count);
                assert_eq!(first + count, poster.count, "{poster:?}: the newest are missing");
            }
            let ring = |size: usize| (size - UNUSED) as u64 / 90..size as u64 / 80;
            assert!(counts[0] == 700 && ring(64 << 10).contains(&counts[1]) && counts[2] == 300, "{counts:?}");
            match next {
                "64K" => assert!(ring(64 << 10).contains(&counts[3]), "{counts:?}"),
                "1M" => assert!(ring(1 << 20).contains(&counts[3]), "{counts:?}"),
                _ => assert_eq!(counts[3], 30000),
            }
            // The loss of the first image is reported even if the second lost nothing.
            assert_eq!(complete_from.keys().collect::<Vec<_>>(), [&posters[1].lwp]);
        }
    }
}
