//! Names for numbers, and the right names for wrong ones.

mod errno;
mod nearest;
mod signal;

pub use errno::errno;
pub use nearest::nearest;
pub use signal::signal;
