//! Messages on stderr, whether one of them means that something could not be read, and how far the work is.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::progress::{Amount, Phase, Progress};

/// Where messages go. One serves the whole run.
pub struct Say {
    damaged: AtomicBool,
    out: Mutex<Box<dyn Write + Send>>,
    progress: Option<Progress>,
}

impl Say {
    /// Messages go to `out`, a line each.
    pub fn new(out: Box<dyn Write + Send>) -> Say {
        Say { damaged: AtomicBool::new(false), out: Mutex::new(out), progress: None }
    }

    /// Messages go to stderr, and if that is a terminal, it is told there how far long work is.
    pub fn on_stderr() -> Say {
        Say { progress: Progress::on_stderr(), ..Say::new(Box::new(io::stderr())) }
    }

    /// Begins a phase of the work, `what` in a word or two; see [`Phase::done`].
    pub fn phase(&self, what: &'static str, amount: Amount) -> Phase<'_> {
        self.progress.as_ref().map_or(Phase::unseen(), |progress| progress.phase(what, amount))
    }

    /// Does not tell any more how far the work is: something else may be printed on the same terminal from now on.
    pub fn no_more_progress(&self) {
        if let Some(progress) = &self.progress {
            progress.quit();
        }
    }

    /// Writes something that is no message, perhaps to the same terminal.
    pub fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.aside(write),
            None => write(),
        }
    }

    /// Tells that something at `place` is missing from the output, which makes the exit status 1.
    pub fn damage(&self, place: impl Display, what: impl Display) {
        self.damaged.store(true, Ordering::Relaxed);
        self.line(format_args!("trace-cat: {place}: {what}"));
    }

    /// Tells something that is worth knowing and nobody's failure.
    pub fn note(&self, place: impl Display, what: impl Display) {
        self.line(format_args!("trace-cat: {place}: {what}"));
    }

    /// Tells something that makes the whole run fail.
    pub fn failure(&self, what: impl Display) {
        self.damaged.store(true, Ordering::Relaxed);
        self.line(format_args!("trace-cat: {what}"));
    }

    /// As [`failure`](Say::failure), of several lines.
    pub fn failure_of_lines(&self, what: &str) {
        self.damaged.store(true, Ordering::Relaxed);
        let lines: Vec<_> = what.split('\n').map(visible).collect();
        self.put(format_args!("trace-cat: {}", lines.join("\n")));
    }

    /// Whether anything was told.
    pub fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    fn line(&self, text: std::fmt::Arguments<'_>) {
        self.put(format_args!("{}", visible(&text.to_string())));
    }

    fn put(&self, text: std::fmt::Arguments<'_>) {
        // When stderr is gone there is nobody left to tell; the exit status still says it.
        if let Ok(mut out) = self.out.lock() {
            let _ = self.aside(|| writeln!(out, "{text}"));
        }
    }
}

/// A line as it may be shown on a terminal: names of files may hold newlines, and what makes a terminal do things.
pub fn visible(line: &str) -> Cow<'_, str> {
    if !line.contains(char::is_control) {
        return Cow::Borrowed(line);
    }
    let shown = |letter: char| match letter.is_control() {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    Cow::Owned(line.chars().map(shown).collect())
}

/// An error as a person wants to read it: `No such file or directory`, without `(os error 2)`.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::sync::Arc;

    /// A `Say` whose messages can be read back.
    pub fn recorded() -> (Say, Messages) {
        let messages = Messages::default();
        (Say::new(Box::new(messages.clone())), messages)
    }

    #[derive(Clone, Default)]
    pub struct Messages(Arc<Mutex<Vec<u8>>>);

    impl Messages {
        pub fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Messages {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_names_the_tool_and_the_place() {
        let (say, messages) = recorded();
        assert!(!say.damaged());
        say.damage("tr.0000001.002:7", "a1 is not valid");
        assert_eq!(messages.text(), "trace-cat: tr.0000001.002:7: a1 is not valid\n");
        assert!(say.damaged());
    }

    #[test]
    fn names_that_would_command_a_terminal_are_shown_as_text() {
        let (say, messages) = recorded();
        say.note("tr.\n\x1b[2J", "\u{9b}31m\u{fffd} \x7f");
        say.failure("a\nb");
        say.failure_of_lines("unexpected '\x1b'\n\nUsage: trace-cat");
        let expected = "trace-cat: tr.\\n\\u{1b}[2J: \\u{9b}31m\u{fffd} \\u{7f}\n\
                        trace-cat: a\\nb\ntrace-cat: unexpected '\\u{1b}'\n\nUsage: trace-cat\n";
        assert_eq!(messages.text(), expected);
    }

    #[test]
    fn reasons_have_no_numbers() {
        assert_eq!(reason(&io::Error::from_raw_os_error(libc::ENOENT)), "No such file or directory");
        assert_eq!(reason(&io::Error::other("plain")), "plain");
    }
}
