//! What is merged: a text with its index.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::diagnostics::{Diagnostics, reason};
use crate::trace::record_text::RecordText;
use crate::trace::time_index::TimeIndex;

/// A text with its index. Their order decides between records of the same time.
pub struct MergeInput {
    /// The text.
    pub text: Arc<RecordText>,
    /// Its index.
    pub index: TimeIndex,
    failed: AtomicBool,
}

impl MergeInput {
    /// A text that was scanned.
    pub fn new(text: Arc<RecordText>, index: TimeIndex) -> MergeInput {
        MergeInput { text, index, failed: AtomicBool::new(false) }
    }

    /// Bytes that are there.
    pub fn size(&self) -> u64 {
        self.text.size(0..self.index.end())
    }

    /// Tells what went wrong with a text that could be read before, once.
    pub fn fail(&self, error: &io::Error, diagnostics: &Diagnostics) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            diagnostics.report_damage(self.text.path().display(), reason(error));
        }
    }
}
