//! `-F perfetto`: protobuf packets for the Perfetto UI and its trace processor.
//!
//! ```text
//! process ─► thread
//!    │       ├─► its name     waits, marks, spans, functions
//!    │       ├─► … holds      one track or more, each of which nests
//!    │       └─► … spans      those that cross others
//!    └─► counter             of the program
//! ```
//!
//! There is one packet sequence, whose clock begins with the first record: times are nanoseconds since then. Texts are interned. A slice is two
//! packets that are written when it ends; Perfetto sorts packets by time and keeps the order of those with one time.

mod event_writer;
mod interned_texts;
mod intervals;
mod kept_slices;
mod message;
mod open_intervals;
mod program_slices;
mod timeline;
mod wake_marks;

pub use timeline::PerfettoTimeline;
