//! A trace as a timeline: its records and its calls in order.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use spec::Record;

use crate::calls::call::Call;
use crate::calls::call_assembler::CallAssembler;
use crate::merge::{Merge, MergeLimits};
use crate::record::columns;
use crate::support::diagnostics::Diagnostics;
use crate::support::error::Error;
use crate::trace::file_handle::DescriptorBudget;
use crate::trace::inputs;

/// The records of directories and files, those that running and dead processes have in their buffers included.
///
/// Records are read from the files when they are asked for; in memory is an index of bounded size.
pub struct Trace<'a> {
    merge: Merge<'a>,
}

impl<'a> Trace<'a> {
    /// Opens the trace that `paths` stand for: directories, record files, or trbufs with all files of their process.
    /// Every file is read once, to find what is damaged and where which times are. What cannot be read is reported to
    /// `diagnostics`; all other records can be read.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        diagnostics: &'a Diagnostics,
    ) -> Result<Trace<'a>, Error> {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_owned()).collect();
        let inputs = inputs::collect(&paths, &DescriptorBudget::from_limit(), diagnostics);
        let merge = Merge::prepare(&inputs.texts, MergeLimits::default(), diagnostics).map_err(Error::temporary)?;
        Ok(Trace { merge })
    }

    /// The times of the first and of the last record, nanoseconds since the Epoch; `None` if there is no record.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.merge.span()
    }

    /// Gives `visit` all records in the order of time, until it breaks. `visit` is called by several threads, one at a
    /// time.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn for_each_record(&self, mut visit: impl FnMut(&Record) -> ControlFlow<()> + Send) -> Result<(), Error> {
        self.for_each_line(&mut |line| match Record::parse(line.strip_suffix(b"\n").unwrap_or(line)) {
            Ok(record) => visit(&record),
            // The file changed after it was checked, which is reported.
            Err(_) => ControlFlow::Continue(()),
        })
    }

    /// Gives `visit` all calls, until it breaks: each when it returns, and in the end those that are open, in the order
    /// in which they began. `visit` is called by several threads, one at a time.
    ///
    /// # Errors
    /// The failure of a temporary file.
    pub fn for_each_call(&self, mut visit: impl FnMut(&Call) -> ControlFlow<()> + Send) -> Result<(), Error> {
        let mut assembler = CallAssembler::new();
        let mut flow = ControlFlow::Continue(());
        let mut visit_until_break = |call: &Call| {
            if flow.is_continue() {
                flow = visit(call);
            }
            flow
        };
        self.for_each_line(&mut |line| {
            let mut line_flow = ControlFlow::Continue(());
            assembler.push(line, &mut |call| line_flow = visit_until_break(call));
            line_flow
        })?;
        assembler.finish(&mut |call| _ = visit_until_break(call));
        Ok(())
    }

    fn for_each_line(&self, visit: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send)) -> Result<(), Error> {
        let mut take = |lines: &[u8]| {
            let flow = columns::lines(lines).try_for_each(&mut *visit);
            Ok(flow.is_continue())
        };
        self.merge.run(0..u64::MAX, None, &mut take).map_err(Error::temporary)
    }
}
