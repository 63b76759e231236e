//! Signals that are sent to trace-cat, to its group, or by a terminal.

use std::path::Path;
use std::time::Duration;

use super::super::harness::{Program, TestDirectory};
use super::{script, started};

/// Prints each signal that it gets; ends at SIGUSR2.
fn counts() -> Program {
    Program::c("run_command/counts.c")
}

#[test]
fn what_a_process_sends_is_forwarded() {
    let test = TestDirectory::new("run-signals");
    let mut running = started(&test).arg(counts()).spawn();
    running.wait_for("ready");
    for (signal, name) in [
        (libc::SIGTERM, "TERM"),
        (libc::SIGINT, "INT"),
        (libc::SIGHUP, "HUP"),
        (libc::SIGQUIT, "QUIT"),
        (libc::SIGUSR1, "signal 1"),
    ] {
        running.signal(signal);
        running.wait_for(name);
    }
    running.signal(libc::SIGUSR2);
    let output = running.wait();
    output.exited(9);
    assert_eq!(output.stdout_text(), "ready\nTERM\nINT\nHUP\nQUIT\nsignal 1\nend\n");
}

#[test]
fn what_the_program_sends_to_its_group_reaches_it_once() {
    let test = TestDirectory::new("run-group");
    // setsid, so that the group is trace-cat's and the program's alone.
    let counts = "n=0; trap 'n=$((n + 1))' INT; kill -INT 0; sleep 0.2; echo $n";
    let output = script(&test, "setsid -w $run sh -c \"$counts\"").env("counts", counts).run();
    output.success();
    assert_eq!(output.stdout_text(), "1\n");
}

/// A shell's `kill %1`, and `kill 0` of a process that is not the program.
#[test]
fn what_a_process_sends_to_the_group_reaches_the_program_once() {
    let test = TestDirectory::new("run-other-group");
    let mut running = started(&test).arg(counts()).spawn();
    running.wait_for("ready");
    for number in 1..=20 {
        running.signal_group(libc::SIGUSR1);
        running.wait_for(&format!("signal {number}\n"));
    }
    running.signal(libc::SIGUSR2);
    let output = running.wait();
    output.exited(9);
    assert!(output.stdout_text().ends_with("signal 20\nend\n"), "{}", output.stdout_text());
}

/// The process that shows trace-cat which signals were for the group is slow: of two it has one pending.
#[test]
fn two_signals_to_the_group_that_are_pending_as_one_are_not_forwarded() {
    let test = TestDirectory::new("run-slow-witness");
    let mut running = started(&test).arg(counts()).spawn();
    running.wait_for("ready");
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let children = std::fs::read_to_string(children).unwrap();
    let is_witness = |pid: &libc::pid_t| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "trace-cat")
    };
    let witness = children.split_whitespace().map(|pid| pid.parse().unwrap()).find(is_witness).unwrap();
    // SAFETY: kill takes no pointers, and the process is a child of the running trace-cat's.
    let send = |signal: libc::c_int| assert_eq!(unsafe { libc::kill(witness, signal) }, 0);
    send(libc::SIGSTOP);
    for number in 1..=2 {
        running.signal_group(libc::SIGUSR1);
        running.wait_for(&format!("signal {number}\n"));
        // By then trace-cat has asked.
        std::thread::sleep(Duration::from_millis(200));
    }
    send(libc::SIGCONT);
    std::thread::sleep(Duration::from_millis(200));
    running.signal(libc::SIGUSR2);
    let output = running.wait();
    output.exited(9);
    assert_eq!(output.stdout_text(), "ready\nsignal 1\nsignal 2\nend\n");
}

/// `timeout` sends the signal to trace-cat, and then to the group.
#[test]
fn the_signal_of_timeout_reaches_the_program_once() {
    let test = TestDirectory::new("run-timeout");
    let counts = counts();
    let signals = |delay: f64| {
        let line = format!("timeout -s USR1 {delay} $run $counts once");
        let output = script(&test, &line).env("counts", &counts).run();
        output.exited(124);
        let text = output.stdout_text();
        // On a busy machine the program may not have begun by then.
        text.contains("ready").then(|| text.matches("signal").count())
    };
    let (mut delay, mut once, mut twice) = (0.1, 0, 0);
    while once < 7 {
        match signals(delay) {
            None => delay *= 2.0,
            Some(1) => once += 1,
            // The two are one only if they are sent without a pause, which a busy machine may make.
            Some(2) => twice += 1,
            Some(other) => panic!("{other} signals"),
        }
        assert!(twice < 100, "two signals in {twice} runs, one in {once}");
    }
}

/// Ctrl-C and Ctrl-\ on a terminal, whose foreground group is trace-cat and the program.
#[test]
fn the_terminals_keys_reach_the_program_once() {
    let test = TestDirectory::new("run-terminal");
    let terminal = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/run_command/terminal.py");
    let output =
        script(&test, "python3 \"$terminal\" $run \"$counts\"").env("terminal", terminal).env("counts", counts()).run();
    output.success();
    assert_eq!(output.stdout_text(), "ready\nINT\nQUIT\nend\nstatus 9\n");
}

/// `nohup`, and a shell's `trap ''`.
#[test]
fn ignored_signals_stay_ignored() {
    let test = TestDirectory::new("run-ignored");
    let look = "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status; kill -HUP $$ $PPID; kill -PIPE $$; exit 4";
    let under = |prefix: &str, ignored: &str| {
        let text = format!("trap '' {ignored}; {prefix} sh -c \"$look\"");
        let output = script(&test, &text).env("look", look).run();
        output.exited(4);
        output.stdout_text().to_owned()
    };
    assert_eq!(under("$run", "HUP PIPE INT"), under("", "HUP PIPE INT"));
    // Nothing is ignored that was not before: Rust's programs ignore SIGPIPE.
    let look = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let native = test.native("sh").args(["-c", look]).run();
    assert_eq!(started(&test).args(["sh", "-c", look]).run().stdout_text(), native.stdout_text());
}
