//! What the library knows of glibc: the functions behind its hooks, the words of synchronisation objects, and the
//! frames that cancellation and exceptions unwind.

mod calibration;
pub mod call_arguments;
pub mod next_functions;
pub mod object_words;
pub mod unwind_guard;

pub use calibration::calibrate;
