//! Where records come in, whatever they are read from.

use super::reorder_window::ReorderWindow;

/// What reading needs.
#[derive(Debug)]
pub struct Intake {
    /// Where the records wait.
    pub window: ReorderWindow,
    /// Memory to read into.
    pub buffer: Vec<u8>,
    /// How many records there were.
    count: u64,
}

impl Intake {
    /// Records go to `window`.
    pub fn new(window: ReorderWindow) -> Intake {
        Intake { window, buffer: vec![0; 256 << 10], count: 0 }
    }

    /// Takes a record.
    pub fn put(&mut self, time: u64, line: &[u8]) {
        self.count += 1;
        self.window.push(time, line);
    }

    /// How many records have come.
    pub fn count(&self) -> u64 {
        self.count
    }
}
