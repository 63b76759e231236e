//! The progress line on a terminal. An input is fed through a pipe until the line is shown, so that the work takes long
//! enough.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{FIRST, SECOND, command, trace};

/// A terminal of so many columns: the end for the command, and the end that shows its output.
pub fn terminal(columns: u16) -> (OwnedFd, File) {
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: openpty writes the two descriptors and reads the size, all of which outlive the call; it may get no name
    // and no modes.
    let result =
        unsafe { libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null_mut(), &raw const size) };
    assert_eq!(result, 0);
    // SAFETY: openpty has just opened both descriptors, and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(slave), File::from_raw_fd(master)) }
}

/// Collects what is written to a terminal.
pub struct Screen {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Screen {
    pub fn new(mut master: File) -> Screen {
        let text = Arc::new(Mutex::new(Vec::new()));
        let shared = text.clone();
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when nobody has the other end open any more.
            while let Ok(length @ 1..) = master.read(&mut buffer) {
                shared.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Screen { text, reader }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    /// The complete text, when the command has ended.
    pub fn into_text(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8(self.text.lock().unwrap().clone()).unwrap()
    }
}

/// Starts trace-cat with its standard error on a terminal, and its standard output too, unless `out` is given.
fn start(directory: &Path, arguments: &[&str], columns: u16, out: Option<Stdio>) -> (Child, Screen) {
    let (slave, master) = terminal(columns);
    let mut command = command(directory);
    command.args(arguments).env("TERM", "xterm").stdin(Stdio::piped());
    command.args(["-F", "raw", "--no-pager"]);
    command.stdout(out.unwrap_or_else(|| slave.try_clone().unwrap().into())).stderr(slave);
    (command.spawn().unwrap(), Screen::new(master))
}

/// Feeds records until `enough` is true, and ends the input. Returns what was fed.
fn feed(child: &mut Child, mut enough: impl FnMut() -> bool) -> String {
    let mut input = child.stdin.take().unwrap();
    let (mut fed, begin) = (String::new(), Instant::now());
    while !enough() {
        assert!(begin.elapsed() < Duration::from_secs(100), "nothing was shown");
        input.write_all(FIRST.as_bytes()).unwrap();
        fed += FIRST;
        thread::sleep(Duration::from_millis(20));
    }
    fed
}

/// What a terminal shows after `text`, without what was cleared or overwritten.
fn shown_after(text: &str, columns: u16) -> String {
    let mut parser = vt100::Parser::new(NonZero::new(24).unwrap(), NonZero::new(columns).unwrap(), 0);
    parser.process(text.as_bytes());
    parser.screen().contents()
}

#[test]
fn the_line_is_shown_until_records_come_on_the_same_terminal() {
    let directory = trace();
    let (mut child, screen) = start(directory.path(), &["-", "tr.0000001.003"], 100, None);
    let fed = feed(&mut child, || screen.text().contains("trace-cat: reading: "));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let records = format!("{fed}{SECOND}").replace('\n', "\r\n");
    let shown = screen.into_text();
    // All records follow the last progress line without a break.
    assert!(shown.ends_with(&records), "{shown:?}");
    assert_eq!(shown_after(shown.strip_suffix(&records).unwrap(), 100), "");
}

#[test]
fn a_message_stands_on_a_line_of_its_own() {
    let directory = trace();
    let (mut child, screen) = start(directory.path(), &["-"], 100, Some(Stdio::null()));
    child.stdin.as_mut().unwrap().write_all(b"rubbish\n").unwrap();
    feed(&mut child, || screen.text().contains("trace-cat: reading: "));
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(shown_after(&screen.into_text(), 100), "trace-cat: /dev/stdin:1: not a record: the line ends in time1");
}

#[test]
fn a_narrow_terminal_shows_the_beginning_of_the_line() {
    let directory = trace();
    let (mut child, screen) = start(directory.path(), &["-"], 15, Some(Stdio::null()));
    feed(&mut child, || screen.text().contains("trace-cat: rea"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(shown_after(&screen.into_text(), 15), "");
}

#[test]
fn no_line_is_shown_where_stderr_is_no_terminal() {
    // Another command on a terminal shows when the work has taken long enough.
    let directory = trace();
    let (mut shown, screen) = start(directory.path(), &["-"], 100, Some(Stdio::null()));
    let mut child = command(directory.path())
        .arg("-")
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    feed(&mut shown, || {
        input.write_all(FIRST.as_bytes()).unwrap();
        screen.text().contains("trace-cat: reading: ")
    });
    drop(input);
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap(), "");
    assert_eq!(shown.wait().unwrap().code(), Some(0));
}
