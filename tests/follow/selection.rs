//! Which records of a running trace are followed, and where they go: named files, the last run, filters, the journal.

use std::fs;
use std::time::Duration;

use super::{
    WIDE, assert_contiguous, assert_same, assert_same_lines_in_any_order, end, files, follow, go, numbers, posts,
};
use crate::harness::{Program, TestDirectory, trace_cat};

#[test]
fn a_journal_keeps_everything_and_is_a_trace() {
    let test = TestDirectory::new("follow-journal");
    let follower = follow(
        &test,
        &["--window", "30s", "--until-exit", "-o", "journal", "-F", "text", "-e", "sema", "--head", "1000000"],
    );
    let follower = follower.spawn();
    let counts = test.directory().join("counts");
    test.traced(Program::c("kill/counting.c")).arg(counts).args(["steady", "return", "9000"]).run().exited(44);
    let output = follower.wait();
    output.success();
    let journal = test.directory().join("journal");
    let merged = test.trace_cat().run();
    assert_same(&fs::read(&journal).unwrap(), &merged.stdout);
    let read = test.native(trace_cat()).arg(&journal).run();
    read.success();
    assert_same(&read.stdout, &merged.stdout);
    let text = output.stdout_text();
    assert!(text.contains("sema_post(") && !text.contains("mutex_lock("));
    let [lines, records] = [text, merged.stdout_text()]
        .map(|text| text.lines().filter(|line| line.contains("sema_post(") || line.contains(":04:04:0:")).count());
    // On a fast machine the program posts more often than are printed.
    assert_eq!(lines, records.min(1_000_000));
}

/// The journal may lie beside what is followed, under whatever name.
#[test]
fn the_output_is_never_followed() {
    for name in ["journal", "tr.0000001.001"] {
        for onto_stdout in [false, true] {
            println!("{name} {onto_stdout}");
            let test = TestDirectory::new("follow-output");
            let line = match onto_stdout {
                true => "exec \"$0\" --follow --until-exit --window 1s trace >trace/$1",
                false => "exec \"$0\" --follow --until-exit --window 1s trace -o trace/$1",
            };
            let follower = test.native("/bin/sh").args(["-c", line]).arg(trace_cat()).arg(name).spawn();
            if onto_stdout && name.starts_with("tr.") {
                // It was there before.
                follower.wait().exited(2);
                continue;
            }
            posts(&test, "posts 100 thread 20").run().exited(7);
            follower.wait().success();
            let text = fs::read(test.trace_directory().join(name)).unwrap();
            assert_eq!(assert_contiguous(&text).iter().sum::<u64>(), 120);
        }
    }
}

#[test]
fn one_process_or_one_thread_is_followed_alone() {
    let test = TestDirectory::new("follow-named");
    let mut other = posts(&test, "posts 3000 go").env("THR_TRACE_BUF", "1").spawn();
    other.wait_for("ready\n");
    let others = files(&test, "tr").len();
    let mut program = posts(&test, "posts 4000 stay 2500 go posts 70 fork 9 thread 8").spawn();
    program.wait_for("ready\n");
    let pid = program.pid();
    let named = |prefix: &str| {
        let name = format!("{prefix}.{pid:07x}");
        files(&test, &name).into_iter().next().unwrap_or_else(|| panic!("no {name}"))
    };
    assert!(others >= 2);
    let start = |path| test.native(trace_cat()).args(["--follow", "--until-exit", "--window", "30s"]).arg(path).spawn();
    let mut process = start(named("trbuf"));
    let mut thread = start(test.trace_directory().join(format!("tr.{pid:07x}.{:03x}", pid & 0xfff)));
    for follower in [&mut process, &mut thread] {
        follower.wait_for("\n");
    }
    go(&test);
    program.wait().exited(7);
    other.wait().exited(7);
    let [process, thread] = [process, thread].map(|follower| {
        let output = follower.wait();
        output.success();
        assert!(numbers(&output.stdout).keys().all(|&(found, _)| found == pid));
        let mut counts = assert_contiguous(&output.stdout);
        counts.sort_unstable();
        counts
    });
    assert_eq!(process, [8, 70, 2500, 4000]);
    assert_eq!(thread, [70, 4000]);
}

#[test]
fn the_last_run_is_followed_alone_and_what_comes() {
    let test = TestDirectory::new("follow-last");
    posts(&test, "posts 11").run().exited(7);
    let early: Vec<_> = files(&test, "").into_iter().collect();
    // An earlier run for certain.
    for path in early.iter().filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("tr.")) {
        let text = fs::read_to_string(path).unwrap();
        let earlier: String = text.lines().map(|line| format!("1000000000{}\n", &line[10..])).collect();
        fs::write(path, earlier).unwrap();
    }
    let mut program = posts(&test, "posts 12 go posts 13").spawn();
    program.wait_for("ready\n");
    let mut follower = follow(&test, &["--last"]).spawn();
    follower.wait_for(":11:0:0\n");
    go(&test);
    program.wait().exited(7);
    posts(&test, "posts 14").run().exited(7);
    follower.wait_for(":13:0:0\n");
    let output = end(follower);
    output.success();
    let mut counts = assert_contiguous(&output.stdout);
    counts.sort_unstable();
    assert_eq!(counts, [12, 13, 14]);
}

/// A filter of calls decides when the return record arrives, and selects the calls that trace-cat selects afterwards.
#[test]
fn calls_are_chosen_as_they_end() {
    let test = TestDirectory::new("follow-calls");
    let choices: [&[&str]; 5] =
        [&["--blocked"], &["--longer", "50us"], &["-e", "cond:sema"], &["--blocked", "-e", "mutex"], &["--pid", "1"]];
    let followers: Vec<_> =
        choices.iter().map(|choice| follow(&test, &WIDE).arg("--until-exit").args(*choice).spawn()).collect();
    test.traced(Program::c("order/handing.c")).args(["1", "6", "300"]).run().success();
    let all = test.merged();
    let address = all.of("sema_post").first().map(|post| post.arguments()[0].to_owned()).expect("a post");
    for (choice, follower) in choices.iter().zip(followers) {
        let output = follower.wait();
        output.success();
        println!("{choice:?}");
        assert_same_lines_in_any_order(&output.stdout, &test.trace_cat().args(*choice).run().stdout);
    }
    let object = ["--object", &address];
    let output = follow(&test, &WIDE).arg("--until-exit").args(object).run();
    let expected = test.trace_cat().args(object).run().stdout;
    assert!(!expected.is_empty());
    assert_same_lines_in_any_order(&output.stdout, &expected);
}

/// It began after the follower, and never returns.
#[test]
fn a_call_that_hangs_is_printed_while_it_hangs() {
    for filter in [&["--blocked"][..], &["--longer", "300ms"]] {
        let test = TestDirectory::new("follow-hanging");
        let mut follower = follow(&test, filter).args(["-F", "text"]).spawn();
        let mut program = test.traced(Program::c("kill/hanging.c")).spawn();
        program.wait_for("ready\n");
        follower.wait_for("> mutex_lock(");
        program.signal(libc::SIGKILL);
        program.wait().killed(libc::SIGKILL);
        let output = end(follower);
        output.success();
        assert_eq!(output.stdout_text().matches("> mutex_lock(").count(), 1, "{}", output.stdout_text());
    }
}

/// It began before the follower, which prints nothing from then, and returns while it is followed; its thread had its name before.
#[test]
fn a_call_that_goes_on_is_known_from_now_on() {
    for (format, meanwhile, expected) in [
        (&["-F", "text"][..], "sema_post(", " < sema_wait(0x"),
        (&["-F", "json", "--calls"], "\"sema_post\"", "\"event\":\"sema_wait\",\"object\":\"0x"),
        (&["--longer", "1us"], ":04:30:2:", ":04:02:1:0x"),
    ] {
        let test = TestDirectory::new("follow-from-now");
        let program = test.traced(Program::c("follow/waiting.c")).spawn();
        while !test.trace_cat().args(["-e", "sema_wait"]).run().stdout_text().contains(":04:02:1:") {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut follower = follow(&test, &["--since", "now", "--until-exit"]).args(format).spawn();
        follower.wait_for(meanwhile);
        go(&test);
        program.wait().success();
        let output = follower.wait();
        output.success();
        let line = output.stdout_text().lines().find(|line| line.contains(expected));
        let is_named = line.is_some_and(|line| format[1] != "text" || line.contains("gatekeeper"));
        assert!(is_named, "{format:?}\n{}", output.stdout_text());
    }
}

/// A call of which both records are in one line counts once.
#[test]
fn head_counts_lines() {
    let test = TestDirectory::new("follow-head");
    let follower = follow(&test, &WIDE).args(["--until-exit", "-F", "text", "--head", "7"]).spawn();
    test.traced(Program::c("order/handing.c")).args(["1", "2", "20"]).run().success();
    let output = follower.wait();
    output.success();
    let lines = output.stdout_text().lines().filter(|line| !line.starts_with("times")).count();
    assert_eq!(lines, 7, "{}", output.stdout_text());
}
