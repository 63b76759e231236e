//! The program's messages on stderr. Each begins with the program's name.

use std::fmt::Display;
use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::support::diagnostics::{Diagnostic, Diagnostics};
use crate::support::progress::Progress;
use crate::support::visible_text::visible;

/// Where messages are written.
#[derive(Clone)]
pub struct Messages(Arc<Mutex<Box<dyn Write + Send>>>);

impl Messages {
    /// Messages go to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Messages {
        Messages(Arc::new(Mutex::new(out)))
    }

    /// Diagnostics that are printed as messages. If stderr is a terminal, progress is shown there.
    pub fn diagnostics(&self) -> Diagnostics {
        self.sink().with_progress(Progress::on_stderr())
    }

    fn sink(&self) -> Diagnostics {
        let messages = self.clone();
        Diagnostics::new(move |diagnostic: Diagnostic| messages.print(&diagnostic.to_string()))
    }

    /// Prints why the program fails.
    pub fn print_failure(&self, message: impl Display) {
        self.print(&visible(&message.to_string()));
    }

    /// Prints a failure of several lines.
    pub fn print_lines(&self, message: &str) {
        let lines: Vec<_> = message.split('\n').map(visible).collect();
        self.print(&lines.join("\n"));
    }

    fn print(&self, text: &str) {
        // If stderr is closed, the exit status still reports the failure.
        if let Ok(mut out) = self.0.lock() {
            let _ = writeln!(out, "trace-cat: {text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Clone, Default)]
    struct SharedBytes(Arc<Mutex<Vec<u8>>>);

    impl SharedBytes {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for SharedBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn recorded_messages() -> (Messages, SharedBytes) {
        let bytes = SharedBytes::default();
        (Messages::new(Box::new(bytes.clone())), bytes)
    }

    #[test]
    fn a_message_names_the_tool_and_the_place() {
        let (messages, written) = recorded_messages();
        let diagnostics = messages.sink();
        assert!(!diagnostics.has_damage());
        diagnostics.report_damage("tr.0000001.002:7", "a1 is not valid");
        assert_eq!(written.text(), "trace-cat: tr.0000001.002:7: a1 is not valid\n");
        assert!(diagnostics.has_damage());
    }

    #[test]
    fn control_characters_in_names_are_escaped() {
        let (messages, written) = recorded_messages();
        messages.sink().report_note("tr.\n\x1b[2J", "\u{9b}31m\u{fffd} \x7f");
        messages.print_failure("a\nb");
        messages.print_lines("unexpected '\x1b'\n\nUsage: trace-cat");
        let expected = "trace-cat: tr.\\n\\u{1b}[2J: \\u{9b}31m\u{fffd} \\u{7f}\n\
                        trace-cat: a\\nb\ntrace-cat: unexpected '\\u{1b}'\n\nUsage: trace-cat\n";
        assert_eq!(written.text(), expected);
    }
}
