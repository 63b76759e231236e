//! `-F raw`: the records as they are in the files.

use super::View;

/// The view that changes nothing.
pub struct Raw;

impl View for Raw {
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(line);
    }
}
