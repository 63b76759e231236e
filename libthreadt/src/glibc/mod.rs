mod absent_functions;
mod calibration;
pub mod call_arguments;
pub mod cleanup_handler;
#[cfg(not(test))]
mod libc_mark;
pub mod loaded_libraries;
pub mod next_functions;
pub mod object_words;
pub mod unwind_guard;

pub use absent_functions::is_relocated;
pub use calibration::calibrate;
