//! A memory barrier that all threads of the process pass.

use super::call::{Result, call};
use super::time::sleep;

/// Announces that [`barrier`] will be used.
pub fn register_barrier() -> Result {
    // SAFETY: no memory is involved.
    unsafe { call(libc::SYS_membarrier, [libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED as usize]) }.map(drop)
}

/// Makes every running thread of this process pass a full memory barrier. Where the kernel may not be asked for one, waits a millisecond: no
/// processor keeps a store to itself for so long.
pub fn barrier() {
    // SAFETY: no memory is involved.
    if unsafe { call(libc::SYS_membarrier, [libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED as usize]) }.is_err() {
        sleep(1_000_000);
    }
}
