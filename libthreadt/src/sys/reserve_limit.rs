//! How much memory may be mapped in reserve.

use super::call::{call, filled_by};
use super::memory::{PAGE, is_resident, map_anonymous, unmap};

/// The part of the program's address space, if that is limited, that reserves may take: one of so many.
const PARTS: u64 = 16;

/// How many bytes may be mapped that are mostly never used. None where the program locks in memory what is mapped
/// (`mlockall` with MCL_FUTURE): all of it would be there at once.
pub fn reserve_limit() -> usize {
    let ask = |limit| {
        // SAFETY: the kernel reads no limit and fills this one.
        unsafe { call(libc::SYS_prlimit64, [0, libc::RLIMIT_AS as usize, 0, limit]) }
    };
    // SAFETY: as above, when it returns 0.
    let limit = unsafe { filled_by(ask) }.map_or(u64::MAX, |limit: libc::rlimit| limit.rlim_cur);
    if locks_all() { 0 } else { usize::try_from(limit / PARTS).unwrap_or(usize::MAX) }
}

/// Whether the kernel brings into memory at once what is mapped.
fn locks_all() -> bool {
    map_anonymous(PAGE).is_ok_and(|page| {
        let is_there = is_resident(page as usize);
        // SAFETY: nobody else knows the page.
        unsafe { unmap(page, PAGE) };
        is_there
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_nobody_has_used_is_not_there() {
        assert!(!locks_all());
        assert_ne!(reserve_limit(), 0);
    }
}
