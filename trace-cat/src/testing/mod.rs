//! What tests of several layers share.
//!
//! ```text
//! test_trace      trace directories, and records to fill them with
//! trbuf_image     the bytes of a trbuf (the command tests use it, too)
//! damaged_trbuf   trbufs that are damaged at random
//! ring_recorder   the recorder's changes of a ring's words
//! seeded_random   random numbers whose seed is printed
//! ```

pub mod damaged_trbuf;
pub mod ring_recorder;
pub mod seeded_random;
pub mod test_trace;
pub mod trbuf_image;
