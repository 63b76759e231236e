//! One clock for all processes of a directory, whatever happens to the wall clock, to the file that has its offset, and to
//! the processes' own clocks.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::harness::{CommandOutput, Program, TestDirectory, Trace, library, realtime_offset};

const DAY: i64 = 86_400 * 1_000_000_000;
/// What `time_namespace` exits with: after all its steps, and where there are no time namespaces.
const DONE: i32 = 7;

/// Nanoseconds since the Epoch.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim_end().to_owned()
}

/// An entry of `trclock`.
fn entry(boot_id: &str, offset: i64) -> String {
    format!("boot_id {boot_id}\noffset {offset}\n")
}

fn trclock(test: &TestDirectory) -> String {
    fs::read_to_string(test.trace_directory().join("trclock")).unwrap()
}

/// The offsets that the processes used, by their own account.
fn used_offsets(test: &TestDirectory) -> Vec<i64> {
    let names = super::names(&test.trace_directory()).into_iter().filter(|name| name.starts_with("trinfo."));
    let offsets = names.map(|name| {
        let text = fs::read(test.trace_directory().join(name)).unwrap();
        spec::info::number(&text, "offset").expect("an offset")
    });
    offsets.collect()
}

fn times(trace: &Trace) -> Vec<i64> {
    trace.records.iter().map(|record| record.line[..20].replace(':', "").parse().unwrap()).collect()
}

fn record_modestly(test: &TestDirectory) {
    test.traced(Program::c("environment/modest.c")).run().exited(9);
}

/// The wall clock has been stepped since another process began: this one is still in order with it.
#[test]
fn an_offset_of_this_boot_is_kept_for_ever() {
    for step in [-3600, -2, 2, 3600] {
        let test = TestDirectory::new("stepped");
        let offset = realtime_offset() + step * 1_000_000_000;
        let text = entry("00000000-1111-2222-3333-444444444444", 5) + &entry(&boot_id(), offset);
        fs::write(test.trace_directory().join("trclock"), &text).unwrap();
        let began = now();
        record_modestly(&test);
        assert_eq!((trclock(&test), used_offsets(&test)), (text, vec![offset]));
        let half = step.abs() * 500_000_000;
        let (first, last) = (began + step * 1_000_000_000 - half, now() + step * 1_000_000_000 + half);
        assert!(times(&super::clean(&test)).iter().all(|time| (first..=last).contains(time)));
    }
}

/// What hosts' clocks are compared by: by how much the wall clock is ahead of the records, at the start and at the end.
#[test]
fn trinfo_shows_how_far_the_wall_clock_is_from_the_records() {
    for step in [-3600, 0, 3600] {
        let test = TestDirectory::new("lead");
        let offset = realtime_offset() + step * 1_000_000_000;
        fs::write(test.trace_directory().join("trclock"), entry(&boot_id(), offset)).unwrap();
        record_modestly(&test);
        let name = super::names(&test.trace_directory()).into_iter().find(|name| name.starts_with("trinfo."));
        let text = fs::read_to_string(test.trace_directory().join(name.unwrap())).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("clock_error "));
        let leads: Vec<i64> = lines.map(|line| line.split(' ').nth(3).unwrap().parse().unwrap()).collect();
        let wrong = |lead: &&i64| (**lead + step * 1_000_000_000).abs() > 1_000_000_000;
        assert_eq!((leads.len(), leads.iter().find(wrong)), (2, None), "{leads:?}");
    }
}

/// Entries of other boots stay, and so does what a process left that died while it wrote.
#[test]
fn a_new_boot_appends_its_offset() {
    let other = entry("00000000-1111-2222-3333-444444444444", 5);
    let many: String =
        (0..200).map(|number| entry(&format!("{number:08}-1111-2222-3333-444444444444"), number)).collect();
    for before in ["", "boot_id 0000", "\n", &other, &format!("{other}boot_id {}\noff", boot_id()), &many] {
        let test = TestDirectory::new("boots");
        fs::write(test.trace_directory().join("trclock"), before).unwrap();
        record_modestly(&test);
        let (text, offsets) = (trclock(&test), used_offsets(&test));
        let separator = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        assert_eq!(text, format!("{before}{separator}{}", entry(&boot_id(), offsets[0])));
        // The next process finds it.
        record_modestly(&test);
        assert_eq!((trclock(&test), used_offsets(&test)), (text, vec![offsets[0]; 2]));
    }
}

/// However many processes begin at once, with and without a file of an earlier boot.
#[test]
fn processes_that_begin_at_once_agree() {
    for before in [None, Some(entry("00000000-1111-2222-3333-444444444444", 5))] {
        for _ in 0..10 {
            let test = TestDirectory::new("at-once");
            if let Some(text) = &before {
                fs::write(test.trace_directory().join("trclock"), text).unwrap();
            }
            let run = test.traced(Program::c("lifecycle/at_once.c")).arg("16").env("THR_TRACE_EVENTS", "mutex");
            run.run().success();
            let offsets = used_offsets(&test);
            assert_eq!((offsets.len(), offsets.iter().filter(|offset| **offset != offsets[0]).count()), (16, 0));
        }
    }
}

/// Earlier versions left such files when they were killed.
#[test]
fn leftover_files_change_nothing() {
    let test = TestDirectory::new("leftover");
    let script = ": > \"$THR_TRACE_DIR/trclock.$$\"; LD_PRELOAD=$library exec \"$0\"";
    let program = Program::c("environment/modest.c");
    let run = || test.native("sh").args(["-c", script]).arg(&program).env("library", library());
    for _ in 0..2 {
        run().env("THR_TRACE_DIR", test.trace_directory()).run().exited(9);
    }
    let offsets = used_offsets(&test);
    assert_eq!(trclock(&test), entry(&boot_id(), offsets[0]));
    assert_eq!(offsets, [offsets[0]; 2]);
}

/// A whole program in a time namespace, between two that are not.
#[test]
fn a_program_in_a_time_namespace_is_in_order() {
    for shift in ["86400", "-100"] {
        let test = TestDirectory::new("time-namespace");
        let probe = test.native("unshare").args(["--time", "--monotonic", shift, "--fork", "true"]).run();
        if !probe.status.success() {
            println!("skipped: no time namespaces here: {}", probe.stderr_text().trim_end());
            return;
        }
        let script = format!(
            "traced='env LD_PRELOAD={} THR_TRACE_DIR={}'
             $traced \"$0\"; unshare --time --monotonic {shift} --fork $traced \"$0\"; $traced \"$0\"",
            library().display(),
            test.trace_directory().display()
        );
        let began = now();
        test.native("sh").args(["-c", &script]).arg(Program::c("environment/modest.c")).run().exited(9);
        let trace = super::clean(&test);
        assert!(times(&trace).iter().all(|time| (began..=now()).contains(time)));
        let mut processes: Vec<u32> = trace.records.iter().map(|record| record.fields.pid).collect();
        processes.dedup();
        assert_eq!(processes.len(), 3, "one after the other");
        // Process IDs begin again from below.
        let rotations = (0..3).map(|by| [0, 1, 2].map(|index| processes[(index + by) % 3]));
        assert!(rotations.into_iter().any(|rotated| rotated.is_sorted()), "{processes:?}");
        let mut offsets = used_offsets(&test);
        offsets.sort_unstable();
        offsets.dedup();
        let seconds: i64 = shift.parse().unwrap();
        assert_eq!(offsets[1] - offsets[0], (seconds * 1_000_000_000).abs(), "{offsets:?}");
    }
}

/// Runs `time_namespace`, within a namespace of its own if `outer` is given, the options that say how far its clocks are ahead; `None`,
/// after saying so, where there are none.
fn run_moving(
    test: &TestDirectory,
    how: &str,
    pairs: &str,
    outer: Option<&[&str]>,
    ring: bool,
) -> Option<CommandOutput> {
    let program = Program::c("lifecycle/time_namespace.c");
    let preload = format!("LD_PRELOAD={}", library().display());
    let run = match outer {
        // In such a namespace the kernel's words for the clock are in another page.
        Some(shifts) => {
            test.native("unshare").arg("--time").args(shifts).args(["--fork", "env", &preload]).arg(&program)
        }
        None => test.native("env").arg(&preload).arg(&program),
    };
    let run = run
        .args([how, pairs])
        .env("THR_TRACE_DIR", test.trace_directory())
        .env("THR_TRACE_EVENTS", "mutex:sema:process");
    let output = if ring { run.env("THR_TRACE_RING", "64K") } else { run }.run();
    if !output.is_permitted("to make a time namespace") {
        return None;
    }
    if outer.is_some() && output.stderr_text().contains("unshare failed") {
        println!("skipped: no time namespace can be made here");
        return None;
    }
    output.exited(DONE);
    Some(output)
}

/// Fails unless each post comes before the wait that it ends.
#[track_caller]
fn assert_turns(trace: &Trace, partner: u32) {
    let (mut tokens, mut turns) = ([0, 0], 0);
    for record in trace.records.iter().filter(|record| record.is("sema_post") || record.is("sema_wait")) {
        let is_partners = record.fields.pid == partner;
        if record.is("sema_post") {
            tokens[usize::from(is_partners)] += 1;
        } else if record.fields.which == 2 {
            let token = &mut tokens[usize::from(!is_partners)];
            *token -= 1;
            turns += 1;
            assert_eq!(*token, 0, "a wait that ends before its post: {}", record.line);
        }
    }
    assert_eq!(turns, 2 * 9);
}

#[test]
fn processes_of_different_time_namespaces_are_in_order() {
    for how in ["fork", "clone", "exec", "setns", "syscall"] {
        let shifted: &[&str] = &["--monotonic", "500", "--boottime", "5000"];
        for outer in [None, Some(&[][..]), Some(shifted)] {
            println!("{how} from {outer:?}");
            let test = TestDirectory::new("moves");
            let began = now();
            let Some(output) = run_moving(&test, how, "3000", outer, false) else { return };
            let trace = test.merged();
            assert!(times(&trace).iter().all(|time| (began..=now()).contains(time)));
            assert_turns(&trace, output.stdout_text().trim_end().parse().unwrap());
        }
    }
}

/// Once a process has made a namespace for its children, the kernel shows only how far the clocks of that are ahead.
#[test]
fn a_first_record_after_a_namespace_was_made_has_the_right_time() {
    let test = TestDirectory::new("made-before");
    let began = now();
    let preload = format!("LD_PRELOAD={}", library().display());
    let run = test.native("unshare").args(["--time", "--monotonic", "500", "--fork", "env", &preload]);
    let run = run.arg(Program::c("lifecycle/namespace_and_back.c")).args(["10", "first"]);
    let output = run.env("THR_TRACE_DIR", test.trace_directory()).env("THR_TRACE_EVENTS", "mutex").run();
    if output.stderr_text().contains("unshare failed") || !output.is_permitted("to make a time namespace") {
        println!("skipped: no time namespace can be made here");
        return;
    }
    output.exited(DONE);
    let times = times(&test.merged());
    assert_eq!(times.len(), (1 + 10 + 10) * 3);
    assert!(times.iter().all(|time| (began..=now()).contains(time)), "{times:?}");
}

/// Recording has stopped in a namespace whose clock is ahead: the time when it did has not come in the other one, which must neither
/// record again nor wait for it.
#[test]
fn recording_stays_stopped_in_another_time_namespace() {
    let test = TestDirectory::new("stopped-ahead");
    let run = test.traced(Program::c("lifecycle/namespace_and_back.c")).arg("20000");
    let output = run.env("THR_TRACE_EVENTS", "mutex").env("THR_TRACE_MAX", "300K").noise_expected().run();
    if !output.is_permitted("to make a time namespace") {
        return;
    }
    output.exited(DONE);
    let trace = test.merged();
    let (last, kept) = trace.records.split_last().unwrap();
    assert!(last.is("trace_lost"), "{}", last.line);
    let lost = last.fields.arguments[0].bits() as usize;
    // A pair has three records.
    assert!(kept.iter().all(|record| !record.is("trace_lost")));
    assert_eq!(kept.len() + lost, 2 * 20_000 * 3, "{lost} lost");
}

/// No hook notices an inlined system call, but the next regular check of the clock does. The records that were made before
/// that check have times that are a day off.
#[test]
fn an_unnoticed_move_is_found_by_the_next_check() {
    for (ring, nested) in [(false, false), (false, true), (true, false), (true, true)] {
        println!("ring: {ring}, nested: {nested}");
        let test = TestDirectory::new("unnoticed");
        let began = now();
        let outer = nested.then_some(&[][..]);
        let Some(output) = run_moving(&test, "inline", "6000", outer, ring) else { return };
        let partner: u32 = output.stdout_text().trim_end().parse().unwrap();
        let merged = test.trace_cat().run();
        merged.success();
        let trace = Trace::parse("trace-cat", &merged.stdout);
        let moved = trace.records.iter().filter(|record| record.fields.pid != partner);
        let times = times(&Trace { records: moved.cloned().collect() });
        let is_of_today = |time: &i64| (began..=now()).contains(time);
        if ring {
            assert!(
                times.iter().all(is_of_today),
                "{} of {}",
                times.iter().filter(|time| is_of_today(time)).count(),
                times.len()
            );
        } else {
            let others: Vec<i64> = times.iter().copied().filter(|time| !is_of_today(time)).collect();
            assert!(others.len() < 2500, "{} of {}", others.len(), times.len());
            assert!(others.iter().all(|time| (began + DAY..=now() + DAY).contains(time)));
        }
    }
}
