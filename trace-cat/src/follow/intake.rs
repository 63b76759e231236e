//! Takes the records that are read, from buffers and files alike.

use super::reorder_window::ReorderWindow;

/// Where records that are read go, and memory for reading.
#[derive(Debug)]
pub struct Intake {
    /// Where the records wait.
    pub window: ReorderWindow,
    /// Memory to read into.
    pub buffer: Vec<u8>,
    /// How many records were taken.
    pub count: u64,
}

impl Intake {
    /// Records go to `window`.
    pub fn new(window: ReorderWindow) -> Intake {
        Intake { window, buffer: vec![0; 256 << 10], count: 0 }
    }

    /// Takes a record.
    pub fn push(&mut self, time: u64, line: &[u8]) {
        self.count += 1;
        self.window.push(time, line);
    }
}
