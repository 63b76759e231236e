//! Where records come in, whatever they are read from.

use std::time::Instant;

use super::window::Window;

/// What reading needs.
#[derive(Debug)]
pub struct Intake {
    /// Where the records wait.
    pub window: Window,
    /// Memory to read into.
    pub buffer: Vec<u8>,
    start: Instant,
    /// When what is read now came.
    now: u64,
    /// How many records there were.
    count: u64,
}

impl Intake {
    /// Records go to `window`.
    pub fn new(window: Window) -> Intake {
        Intake { window, buffer: vec![0; 256 << 10], start: Instant::now(), now: 0, count: 0 }
    }

    /// What comes from now on comes now. Returns when that is, nanoseconds since the beginning.
    pub fn tick(&mut self) -> u64 {
        self.now = self.start.elapsed().as_nanos() as u64;
        self.now
    }

    /// Takes a record.
    pub fn put(&mut self, time: u64, line: &[u8]) {
        self.count += 1;
        self.window.push(time, line, self.now);
    }

    /// How many records have come.
    pub fn count(&self) -> u64 {
        self.count
    }
}
