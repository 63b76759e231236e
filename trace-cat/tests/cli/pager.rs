//! Output on a terminal, and its pager.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use super::progress::{Screen, terminal};
use super::{FIRST, SECOND, command, run, trace};

/// A command whose standard input, output and error are a terminal, which controls it.
struct Session {
    child: Child,
    screen: Screen,
    keyboard: File,
}

impl Session {
    /// Starts trace-cat; PAGER is unset if it is `None`.
    fn start(directory: &Path, arguments: &[&str], pager: Option<&str>) -> Session {
        let (slave, master) = terminal(100);
        let mut command = command(directory);
        command.args(arguments).env("TERM", "xterm").env("NO_COLOR", "1").env_remove("LESS").env_remove("LV");
        match pager {
            Some(pager) => command.env("PAGER", pager),
            None => command.env_remove("PAGER"),
        };
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        let as_on_a_terminal = || {
            // SAFETY: these may be called in a forked child; the terminal is its descriptor 0.
            unsafe {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
            }
            Ok(())
        };
        // SAFETY: it makes system calls only.
        unsafe { command.pre_exec(as_on_a_terminal) };
        let keyboard = master.try_clone().unwrap();
        Session { child: command.spawn().unwrap(), screen: Screen::new(master), keyboard }
    }

    /// Waits until the terminal has shown this.
    fn wait_for(&self, text: &str) {
        let begin = Instant::now();
        while !self.screen.text().contains(text) {
            assert!(begin.elapsed() < Duration::from_secs(100), "{:?}", self.screen.text());
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// The exit status, or minus the signal, and all that was shown.
    fn end(mut self) -> (i32, String) {
        let status = self.child.wait().unwrap();
        drop(self.keyboard);
        (status.code().unwrap_or_else(|| -status.signal().unwrap()), self.screen.into_text())
    }
}

/// What a command shows on a terminal whose pager marks its lines.
fn marked(directory: &Path, arguments: &[&str]) -> String {
    let (status, shown) = Session::start(directory, arguments, Some("sed 's/^/> /'; exit 5")).end();
    assert_eq!(status, 0, "the pager's status is not the command's: {shown}");
    shown.replace('\r', "")
}

/// A trace of more text than a pipe takes.
fn long_trace() -> tempfile::TempDir {
    let trace = trace();
    fs::write(trace.path().join("tr.0000001.004"), SECOND.repeat(20_000)).unwrap();
    trace
}

fn marked_lines(text: &str) -> String {
    text.lines().map(|line| format!("> {line}\n")).collect()
}

#[test]
fn a_terminal_shows_text_through_the_pager() {
    let trace = trace();
    let output = |arguments: &[&str]| String::from_utf8(run(trace.path(), arguments).stdout).unwrap();
    let text = output(&["-F", "text"]);
    assert_eq!(marked(trace.path(), &["."]), marked_lines(&text));
    assert_eq!(marked(trace.path(), &["-F", "raw"]), marked_lines(&format!("{FIRST}{SECOND}")));
    assert_eq!(marked(trace.path(), &["--stat"]), marked_lines(&output(&["--stat"])));
    assert_eq!(marked(trace.path(), &["report"]), marked_lines(&output(&["report"])));
    // Nothing to show, and nothing shown on the terminal.
    assert_eq!(marked(trace.path(), &["--head", "0", "-F", "raw"]), "");
    assert_eq!(marked(trace.path(), &["-o", "merged"]), "");
    assert_eq!(fs::read_to_string(trace.path().join("merged")).unwrap(), format!("{FIRST}{SECOND}"));
    let damaged = trace.path().join("tr.0000001.009");
    fs::write(&damaged, "rubbish\n").unwrap();
    let (status, shown) = Session::start(trace.path(), &["-F", "raw"], Some("sed 's/^/> /'")).end();
    assert!(
        status == 1 && shown.ends_with(&marked_lines(&format!("{FIRST}{SECOND}")).replace('\n', "\r\n")),
        "{shown}"
    );
}

#[test]
fn no_pager_is_used_where_none_is_wanted() {
    let trace = trace();
    let text = String::from_utf8(run(trace.path(), &["-F", "text"]).stdout).unwrap().replace('\n', "\r\n");
    for (arguments, pager) in [(&["--no-pager"][..], "sed 's/^/> /'"), (&[], ""), (&[], "cat")] {
        assert_eq!(
            Session::start(trace.path(), arguments, Some(pager)).end(),
            (0, text.clone()),
            "{arguments:?} {pager}"
        );
    }
    assert_eq!(
        marked(trace.path(), &["--follow", "--until-exit"]).lines().filter(|line| line.starts_with('>')).count(),
        0
    );
    let (status, shown) = Session::start(trace.path(), &[], Some("/no/pager")).end();
    let message = "trace-cat: /no/pager: cannot be run as pager: No such file or directory\r\n";
    assert_eq!((status, shown), (0, format!("{message}{text}")));
    // Not on a terminal.
    let output = command(trace.path()).env("PAGER", "sed 's/^/> /'").env("TERM", "xterm").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{FIRST}{SECOND}"));
}

#[test]
fn a_pager_that_is_left_early_is_no_error() {
    let trace = long_trace();
    let (status, shown) = Session::start(trace.path(), &["-F", "raw"], Some("head -n 1; exit 1")).end();
    assert_eq!((status, shown.as_str()), (0, FIRST.replace('\n', "\r\n").as_str()));
}

#[test]
fn less_is_the_default() {
    if Command::new("less").arg("-V").output().is_err() {
        return println!("less is not installed");
    }
    let trace = trace();
    let text = String::from_utf8(run(trace.path(), &["-F", "text"]).stdout).unwrap();
    // A screen is enough: less ends by itself.
    let (status, shown) = Session::start(trace.path(), &[], None).end();
    let last = text.lines().last().unwrap();
    assert!(status == 0 && shown.contains(last) && !shown.contains("(END)"), "{shown:?}");
    let trace = long_trace();
    let mut session = Session::start(trace.path(), &[], None);
    session.wait_for("mutex_unlock");
    session.wait_for("\n:");
    session.type_keys("q");
    let (status, shown) = session.end();
    assert!(status == 0 && shown.lines().count() < 60, "{status} {shown:?}");
}

#[test]
fn an_interrupt_ends_the_output_and_then_the_command_with_its_pager() {
    let trace = long_trace();
    // The pager goes on after the interrupt, as less does, and reads to the end of what it is given.
    let pager = "trap '' INT; head -n 1; read line </dev/tty; wc -l; echo left";
    let mut session = Session::start(trace.path(), &["-F", "raw"], Some(pager));
    session.wait_for(FIRST.trim_end());
    // The pipe is full.
    let path = format!("/proc/{}/wchan", session.child.id());
    let begin = Instant::now();
    while fs::read_to_string(&path).is_ok_and(|state| !state.contains("pipe"))
        && begin.elapsed() < Duration::from_secs(2)
    {
        thread::sleep(Duration::from_millis(10));
    }
    session.type_keys("\x03");
    session.wait_for("^C");
    assert!(session.child.try_wait().unwrap().is_none(), "it waits for the pager");
    session.type_keys("\n");
    session.wait_for("left");
    let (status, shown) = session.end();
    let lines: usize = shown.lines().rev().nth(1).unwrap().trim().parse().unwrap();
    assert!(status == -libc::SIGINT && lines < 20_000, "{status} {lines}");
}
