//! What is drawn, on a terminal that keeps all text.

use std::sync::Arc;

use indicatif::TermLike;

use super::*;

/// A terminal of one line: its text, and every text that it ever had.
#[derive(Clone, Debug, Default)]
struct Terminal(Arc<Mutex<(String, Vec<String>)>>);

impl Terminal {
    fn line(&self) -> String {
        self.0.lock().unwrap().0.trim_end().to_owned()
    }

    fn history(&self) -> Vec<String> {
        self.0.lock().unwrap().1.clone()
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        100
    }
    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        assert_eq!(lines, 0);
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        unreachable!()
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        unreachable!()
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        unreachable!()
    }
    fn write_line(&self, _: &str) -> io::Result<()> {
        unreachable!()
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut this = self.0.lock().unwrap();
        this.0 += text;
        if !text.trim().is_empty() {
            this.1.push(text.trim_end().to_owned());
        }
        Ok(())
    }
    fn clear_line(&self) -> io::Result<()> {
        self.0.lock().unwrap().0.clear();
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn shown(patience: Duration) -> (Progress, Terminal) {
    let terminal = Terminal::default();
    (Progress::new(ProgressDrawTarget::term_like(Box::new(terminal.clone())), patience), terminal)
}

#[test]
fn a_phase_shows_its_progress_and_is_removed_at_its_end() {
    let (progress, terminal) = shown(Duration::ZERO);
    let phase = progress.phase("reading", Amount::Bytes(4 << 30));
    phase.advance(1 << 30);
    assert!(terminal.line().starts_with("trace-cat: reading: 25 % of 4.00 GiB"), "{terminal:?}");
    drop(phase);
    assert_eq!(terminal.line(), "");
    let phase = progress.phase("opening", Amount::Files(100_000));
    phase.advance(99_000);
    assert!(terminal.line().starts_with("trace-cat: opening: 99 % of 100000 files"), "{terminal:?}");
    drop(phase);
    let phase = progress.phase("reading", Amount::Unknown);
    phase.advance(3 << 20);
    assert_eq!(terminal.line(), "trace-cat: reading: 3.00 MiB");
    drop(phase);
    assert_eq!(terminal.line(), "");
}

#[test]
fn short_work_is_not_shown() {
    let (progress, terminal) = shown(Duration::from_secs(1_000_000));
    let phase = progress.phase("reading", Amount::Bytes(2));
    phase.advance(1);
    progress.suspend(|| ());
    drop(phase);
    assert_eq!(terminal.history(), Vec::<String>::new());
}

#[test]
fn a_phase_within_a_phase_is_part_of_it() {
    let (progress, terminal) = shown(Duration::ZERO);
    let outer = progress.phase("sorting", Amount::Bytes(10));
    {
        let inner = progress.phase("reading", Amount::Bytes(5));
        inner.advance(5);
    }
    assert_eq!(terminal.history(), Vec::<String>::new());
    outer.advance(5);
    assert!(terminal.line().starts_with("trace-cat: sorting: 50 %"), "{terminal:?}");
}

#[test]
fn other_text_gets_an_empty_line_and_nothing_is_shown_after_the_stop() {
    let (progress, terminal) = shown(Duration::ZERO);
    let phase = progress.phase("merging", Amount::Bytes(10));
    phase.advance(5);
    progress.suspend(|| assert_eq!(terminal.line(), ""));
    assert!(terminal.line().starts_with("trace-cat: merging: 50 %"), "{terminal:?}");
    progress.stop();
    assert_eq!(terminal.line(), "");
    let before = terminal.history().len();
    phase.advance(2);
    drop(phase);
    progress.phase("sorting", Amount::Bytes(10)).advance(5);
    assert_eq!((terminal.line(), terminal.history().len()), (String::new(), before));
}
