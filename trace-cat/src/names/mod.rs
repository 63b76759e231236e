//! Names for numbers, and the right names for wrong ones.

mod errno;
mod nearest;
mod signal;
mod wall_clock;

pub use errno::errno;
pub use nearest::nearest;
pub use signal::signal;
pub use wall_clock::wall_clock;
