//! How the tests run programs and read traces.
//!
//! ```text
//! artefacts   libthreadt.so and trace-cat, as built
//! program     a C or C++ program of tests/programs, compiled once
//! trial       a test's own directory, and the commands that run there, native or traced
//! output      how a command ended and what it printed
//! excerpt     what of long texts and lists a failed test prints
//! trace       the records that came of it, with their columns by name
//! ```

mod artefacts;
mod excerpt;
mod output;
mod program;
mod trace;
mod trial;

pub use artefacts::{library, repository, trace_cat};
pub use excerpt::{assert_same_items, assert_same_lines, excerpt};
pub use output::Output;
pub use program::Program;
pub use trace::{Record, Trace};
pub use trial::{Run, Running, Trial};
