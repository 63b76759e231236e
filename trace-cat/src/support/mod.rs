//! What every layer uses.

pub mod diagnostics;
pub mod inherited;
pub mod local_time;
pub mod progress;
#[cfg(test)]
pub mod seeded_random;
pub mod temporary_files;
#[cfg(test)]
pub mod test_trace;
pub mod threads;
#[cfg(test)]
pub mod trbuf_image;
