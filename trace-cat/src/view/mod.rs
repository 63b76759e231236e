//! How the records are shown: one short file for each form of output.

mod raw;
mod text;

pub use raw::Raw;
pub use text::Text;

/// A form of output. Records come in the order of the timeline.
pub trait View {
    /// Appends what is shown for one record, whose line ends with its newline, to `out`.
    fn record(&mut self, line: &[u8], out: &mut Vec<u8>);
}
