//! How the tests run programs and read traces.
//!
//! ```text
//! artefacts   libthreadt.so and trace-cat, as built
//! program     a C or C++ program of tests/programs, compiled once
//! glibc       another version of it, under which the programs run
//! test_directory  a test's own directory, and the commands that run there, with and without the library
//! clock       the kernel's clocks
//! seeded_random   random numbers that a seed repeats
//! output      how a command ended, and what it printed
//! files_in_use    programs that are installed, and traces that are recovered, when nobody uses their files
//! excerpt     the excerpts of long texts and lists that a failed test prints
//! trace       the records of a trace, with their columns by name
//! ```

mod artefacts;
mod clock;
mod excerpt;
mod files_in_use;
pub mod glibc;
mod output;
mod program;
mod seeded_random;
mod test_directory;
mod trace;

pub use artefacts::{library, repository, trace_cat};
pub use clock::realtime_offset;
pub use excerpt::{assert_same_items, assert_same_lines, excerpt};
pub use output::CommandOutput;
pub use program::Program;
pub use seeded_random::SeededRandom;
pub use test_directory::{RunningCommand, TestCommand, TestDirectory};
pub use trace::{Record, Trace};
