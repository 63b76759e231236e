//! Lines of frames: the stack of a call, under its line.

use crate::output::frame_names::FrameNames;
use crate::record::call_stack::{CUT_OFF_FRAME, CallStack};
use crate::record::fields::Fields;

/// The column of frames.
const INDENTATION: usize = 16;

/// Whether a line of text is one of a frame, not one of a call.
pub fn is_frame_line(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

/// Appends a line for each frame of a stack of the process and the time of `record`, numbered as debuggers do. `first` is the
/// number of the first one. Returns the number after the last.
pub fn write_frames(names: &FrameNames, record: &Fields, stack: &CallStack, first: usize, out: &mut Vec<u8>) -> usize {
    let names = names.of(record.pid(), stack, record.time());
    let cut_off = stack.is_cut_off.then_some(CUT_OFF_FRAME);
    let frames = names.iter().map(String::as_str).chain(cut_off);
    let mut number = first;
    for frame in frames {
        out.extend_from_slice(format!("{:INDENTATION$}#{number:<2} {frame}\n", "").as_bytes());
        number += 1;
    }
    number
}
