//! Mappings that are about to be replaced by private memory.

use core::ptr::null_mut;

use crate::sys;

/// Memory that is about to be replaced by private memory. Adjacent mappings are replaced by one.
pub struct Replaced {
    start: *mut u8,
    end: *mut u8,
    /// Whether all was replaced so far.
    complete: bool,
}

impl Replaced {
    pub const NONE: Replaced = Replaced { start: null_mut(), end: null_mut(), complete: true };

    /// Adds a mapping of this library's; nobody needs its contents.
    pub fn add(&mut self, start: *mut u8, end: *mut u8) {
        if end == self.start {
            self.start = start;
        } else if start == self.end {
            self.end = end;
        } else {
            self.finish();
            (self.start, self.end) = (start, end);
        }
    }

    /// Replaces what is still to be replaced; whether all has been.
    pub fn finish(&mut self) -> bool {
        let length = self.end as usize - self.start as usize;
        // SAFETY: the mappings are this library's, and only returns into it are left, which write and forget.
        self.complete &= length == 0 || unsafe { sys::replace_by_private(self.start, length) }.is_ok();
        (self.start, self.end) = (null_mut(), null_mut());
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use spec::buffer::PAGE;

    use super::*;

    #[test]
    fn adjacent_mappings_are_replaced_by_one() {
        let pages = sys::map_anonymous(6 * PAGE).unwrap();
        let page = |number: usize| pages.wrapping_add(number * PAGE);
        // SAFETY: the mapping is this test's.
        let filled = || (0..6).map(|number| unsafe { page(number).read() }).collect::<Vec<_>>();
        // SAFETY: as above.
        unsafe { pages.write_bytes(1, 6 * PAGE) };
        let mut replaced = Replaced::NONE;
        replaced.add(page(2), page(3));
        replaced.add(page(1), page(2));
        replaced.add(page(3), page(4));
        assert_eq!(filled(), [1; 6]);
        replaced.add(page(5), page(6));
        assert_eq!(filled(), [1, 0, 0, 0, 1, 1]);
        assert!(replaced.finish() && replaced.finish());
        assert_eq!(filled(), [1, 0, 0, 0, 1, 0]);
        // SAFETY: as above.
        unsafe { sys::unmap(pages, 6 * PAGE) };
    }
}
