//! Diagnostics: what is wrong with a trace, as values that go to a sink, and the progress of long work.

use std::fmt::{self, Display};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::progress::{Amount, Phase, Progress};
use super::visible_text::visible;

/// How much a diagnostic matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Worth knowing; nothing is missing.
    Note,
    /// Something could not be read, and is missing from what the caller gets.
    Damage,
}

/// Something that the caller of the library should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How much it matters.
    pub severity: Severity,
    /// Where: a file, `FILE:LINE`, or what else the message is about. It may hold any character.
    pub place: String,
    /// What, in a line.
    pub message: String,
}

impl Display for Diagnostic {
    /// The place and the message as `place: message`. Control characters are escaped.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&visible(&format!("{}: {}", self.place, self.message)))
    }
}

/// Passes the diagnostics of a trace, from any thread, to a sink.
pub struct Diagnostics {
    has_damage: AtomicBool,
    sink: Mutex<Box<dyn FnMut(Diagnostic) + Send>>,
    progress: Option<Progress>,
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Diagnostics").field("has_damage", &self.has_damage).finish_non_exhaustive()
    }
}

impl Diagnostics {
    /// Passes each diagnostic to `sink`, one at a time.
    pub fn new(sink: impl FnMut(Diagnostic) + Send + 'static) -> Diagnostics {
        Diagnostics { has_damage: AtomicBool::new(false), sink: Mutex::new(Box::new(sink)), progress: None }
    }

    /// Whether damage was reported.
    pub fn has_damage(&self) -> bool {
        self.has_damage.load(Ordering::Relaxed)
    }

    /// Shows the progress of long work on `progress`, if there is one.
    pub(crate) fn with_progress(self, progress: Option<Progress>) -> Diagnostics {
        Diagnostics { progress, ..self }
    }

    /// Begins a phase of the work. `what` names it in a word or two. See [`Phase::advance`].
    pub(crate) fn start_phase(&self, what: &'static str, amount: Amount) -> Phase<'_> {
        self.progress.as_ref().map_or(Phase::hidden(), |progress| progress.phase(what, amount))
    }

    /// Stops showing progress: other text may be printed on the same terminal from now on.
    pub(crate) fn stop_progress(&self) {
        if let Some(progress) = &self.progress {
            progress.stop();
        }
    }

    /// Calls `write`, which may write to the terminal, while no progress is shown.
    pub(crate) fn without_progress<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.suspend(write),
            None => write(),
        }
    }

    /// Reports that something at `place` is missing from what is read.
    pub(crate) fn report_damage(&self, place: impl Display, message: impl Display) {
        self.has_damage.store(true, Ordering::Relaxed);
        self.report(Severity::Damage, &place, &message);
    }

    /// Reports something that is worth knowing and is no failure.
    pub(crate) fn report_note(&self, place: impl Display, message: impl Display) {
        self.report(Severity::Note, &place, &message);
    }

    fn report(&self, severity: Severity, place: &dyn Display, message: &dyn Display) {
        let diagnostic = Diagnostic { severity, place: place.to_string(), message: message.to_string() };
        // A sink that panicked gets no further diagnostics.
        if let Ok(mut sink) = self.sink.lock() {
            self.without_progress(|| sink(diagnostic));
        }
    }
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

    /// Diagnostics that can be read back.
    pub fn recorded_diagnostics() -> (Diagnostics, RecordedMessages) {
        let messages = RecordedMessages::default();
        let sink = messages.clone();
        let diagnostics = Diagnostics::new(move |diagnostic| {
            *sink.0.lock().unwrap() += &format!("trace-cat: {diagnostic}\n");
        });
        (diagnostics, messages)
    }

    /// Diagnostics as the program prints them.
    #[derive(Clone, Default)]
    pub struct RecordedMessages(Arc<Mutex<String>>);

    impl RecordedMessages {
        pub fn text(&self) -> String {
            self.0.lock().unwrap().clone()
        }
    }

    #[test]
    fn diagnostics_are_values_and_damage_is_remembered() {
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = received.clone();
        let diagnostics = Diagnostics::new(move |diagnostic| sink.lock().unwrap().push(diagnostic));
        diagnostics.report_note("a", 1);
        assert!(!diagnostics.has_damage());
        diagnostics.report_damage("b", "c");
        assert!(diagnostics.has_damage());
        let expected = [(Severity::Note, "a", "1"), (Severity::Damage, "b", "c")]
            .map(|(severity, place, message)| Diagnostic { severity, place: place.into(), message: message.into() });
        assert_eq!(*received.lock().unwrap(), expected);
    }

    #[test]
    fn reasons_have_no_numbers() {
        assert_eq!(reason(&io::Error::from_raw_os_error(libc::ENOENT)), "No such file or directory");
        assert_eq!(reason(&io::Error::other("plain")), "plain");
    }
}
