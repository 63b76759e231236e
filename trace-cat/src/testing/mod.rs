//! What tests of several layers share.

pub mod seeded_random;
pub mod test_trace;
pub mod trbuf_image;
