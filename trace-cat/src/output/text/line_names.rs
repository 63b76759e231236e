//! The names in lines that are not in the records.

use std::sync::{Arc, LazyLock};

use crate::output::frame_names::FrameNames;
use crate::trace::file_names::FileGroup;
use crate::trace::interned_names::InternedNames;

type MakeFrameNames = Box<dyn FnOnce() -> FrameNames + Send>;

/// The texts of the program's own events, and the names of functions.
pub struct LineNames {
    pub interned: Arc<InternedNames>,
    functions: LazyLock<FrameNames, MakeFrameNames>,
}

impl LineNames {
    /// The names in the files of `groups`.
    pub fn new(groups: Vec<FileGroup>) -> LineNames {
        let interned = Arc::new(InternedNames::new(groups.clone()));
        LineNames { interned, functions: LazyLock::new(Box::new(|| FrameNames::new(groups))) }
    }

    /// The name of the function of process `pid` that began at `address` at a time.
    pub fn function(&self, pid: u32, address: u64, time: u64) -> String {
        self.functions.of_function(pid, address, time).concat()
    }
}

impl std::fmt::Debug for LineNames {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.interned.fmt(out)
    }
}
