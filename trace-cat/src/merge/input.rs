//! An input of a merge: a text with its index.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::record_text::RecordText;
use crate::trace::time_index::TimeIndex;

/// A text with its index. At equal times, the order of the inputs decides.
pub struct MergeInput {
    pub text: Arc<RecordText>,
    pub index: TimeIndex,
    has_failed: AtomicBool,
}

impl MergeInput {
    /// A text that was scanned.
    pub fn new(text: Arc<RecordText>, index: TimeIndex) -> MergeInput {
        MergeInput { text, index, has_failed: AtomicBool::new(false) }
    }

    pub fn size(&self) -> u64 {
        self.text.size(0..self.index.end)
    }

    /// Reports the first failure to read a text that could be read when it was scanned.
    pub fn fail(&self, error: &io::Error, diagnostics: &Diagnostics) {
        // ORDERING: only whether a failure was reported counts; nothing is published with it.
        if !self.has_failed.swap(true, Ordering::Relaxed) {
            diagnostics.report_damage(self.text.path.display(), reason(error));
        }
    }
}
