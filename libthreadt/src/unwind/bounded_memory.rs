//! Memory that others made: a stack, or a module's unwind sections. Each page is probed before it is read; what another thread may
//! unmap meanwhile is copied by the kernel.

use core::ops::Range;

use crate::sys::stack::{RED_ZONE, end_of_stack_above, is_own_up_to};
use crate::sys::{PAGE, copied_words, is_readable, is_resident, seccomp, thread_id};

/// A range of memory, of which any part may be unreadable.
#[derive(Clone, Debug)]
pub struct BoundedMemory {
    range: Range<usize>,
    /// Pages that can be read: the one that was probed last, and those around it that were probed before.
    readable: Range<usize>,
    /// What the kernel has copied, if it copies what is read.
    copy: Option<Copy>,
}

/// Words that the kernel has copied.
#[derive(Clone, Debug)]
struct Copy {
    /// The ID of a thread of this process.
    thread: u32,
    /// Where the words are; a multiple of their size.
    place: usize,
    words: [u64; 4],
    /// Only pages that are in memory are copied.
    is_resident_only: bool,
    /// The page that was found to be there last; 0 for none.
    resident: usize,
}

impl Copy {
    const SIZE: usize = 32;

    /// The word that has an address.
    #[inline(never)]
    fn word(&mut self, address: usize) -> Option<u64> {
        let place = address & !(Copy::SIZE - 1);
        if self.place != place {
            if self.is_resident_only && !self.is_resident(place & !(PAGE - 1)) {
                return None;
            }
            self.words = copied_words(self.thread, place)?;
            self.place = place;
        }
        self.words.get(address / 8 % 4).copied()
    }

    fn is_resident(&mut self, page: usize) -> bool {
        if page != self.resident && is_resident(page) {
            self.resident = page;
        }
        page == self.resident
    }
}

impl BoundedMemory {
    /// The memory of this range.
    pub fn new(range: Range<usize>) -> BoundedMemory {
        BoundedMemory { range, readable: 0..0, copy: None }
    }

    /// As [`BoundedMemory::new`], of memory that another thread may unmap at any time: bytes are read from copies. `None` where the kernel
    /// makes none, and where a seccomp filter is in force, which may kill for the question.
    ///
    /// A page that is not there is not read, so that the kernel does not have to find one: it might wait for the thread that serves the
    /// page faults of the program (`userfaultfd`, FUSE), and this may be that thread.
    pub fn copied_if_resident(range: Range<usize>) -> Option<BoundedMemory> {
        let mut memory = BoundedMemory::new(range);
        memory.copy_if_resident().then_some(memory)
    }

    /// Lets bytes be read from copies; `false` where that is not possible.
    #[cold]
    #[inline(never)]
    pub fn copy_from_now_on(&mut self) -> bool {
        if seccomp::has_filter() {
            return false;
        }
        let thread = thread_id();
        let own = [1; 4];
        let words = copied_words(thread, own.as_ptr().addr()).filter(|words| *words == own);
        // No words are there: it is no multiple of their size.
        self.copy = words.map(|words| Copy { thread, place: 1, words, is_resident_only: false, resident: 0 });
        self.copy.is_some()
    }

    /// As [`BoundedMemory::copy_from_now_on`], of pages that are in memory.
    fn copy_if_resident(&mut self) -> bool {
        self.copy_from_now_on();
        self.copy.as_mut().map(|copy| copy.is_resident_only = true).is_some()
    }

    /// The stack of what a signal has interrupted, from its red zone on: registers may be saved there. Nothing of it has been probed.
    pub fn of_interrupted_stack(rsp: usize) -> BoundedMemory {
        let mut stack = BoundedMemory::of_stack(rsp, false);
        stack.range.start = rsp.saturating_sub(RED_ZONE);
        stack
    }

    /// The stack above an address of it. What is not certainly the thread's own is copied, where that is possible: what is above a
    /// coroutine's stack may be other threads', or have pages that the program serves. `is_running`: the address is in the frame of a function that is running, which does not
    /// have to be probed.
    pub fn of_stack(start: usize, is_running: bool) -> BoundedMemory {
        let end = end_of_stack_above(start);
        let mut memory =
            if is_running { BoundedMemory::beginning_readable(start..end) } else { BoundedMemory::new(start..end) };
        if !is_own_up_to(start, end) {
            memory.copy_if_resident();
        }
        memory
    }

    /// As [`BoundedMemory::new`]; the range begins in the stack frame of a function that is running, and so does not have to be
    /// probed there.
    fn beginning_readable(range: Range<usize>) -> BoundedMemory {
        let page = range.start & !(PAGE - 1);
        BoundedMemory { readable: page..page.saturating_add(PAGE), ..BoundedMemory::new(range) }
    }

    /// Whether the kernel copies what is read.
    pub fn is_copied(&self) -> bool {
        self.copy.is_some()
    }

    /// Where the range ends.
    pub fn end(&self) -> usize {
        self.range.end
    }

    /// Up to where it can be read from its beginning on, without another probe. What is there may end before the beginning.
    #[inline(always)]
    pub fn readable_end(&self) -> usize {
        if self.copy.is_none() && self.readable.contains(&self.range.start) {
            self.readable.end.min(self.range.end)
        } else {
            0
        }
    }

    /// Whether all pages from one address to another can be read, as those of one stack can: between two stacks there is
    /// a page that cannot. `false` also if that takes too many probes.
    #[cold]
    pub fn can_read(&mut self, Range { start, end }: Range<usize>) -> bool {
        const PROBES_MAX: usize = 64;
        if !self.readable.contains(&start) && !self.probe(start & !(PAGE - 1)) {
            return false;
        }
        for _ in 0..PROBES_MAX {
            if end <= self.readable.end {
                return true;
            }
            if !self.probe(self.readable.end) {
                return false;
            }
        }
        false
    }

    /// Takes what is below `start` out of the range.
    pub fn begin_at(&mut self, start: usize) {
        self.range.start = self.range.start.max(start);
    }

    /// The byte at an address.
    #[inline]
    pub fn byte(&mut self, address: usize) -> Option<u8> {
        if !self.range.contains(&address) {
            return None;
        }
        if let Some(copy) = &mut self.copy {
            return Some((copy.word(address)? >> (8 * (address & 7))) as u8);
        }
        if !self.is_page_readable(address) {
            return None;
        }
        // SAFETY: the kernel has read from this page. This thread's stack stays, and so do modules that were loaded at the start, and
        // those with a frame on it. Others are copied, and those with a frame where that is possible (`LoadedModule::allow`).
        Some(unsafe { (address as *const u8).read_volatile() })
    }

    /// The word at an address, which must be a multiple of 8.
    #[inline]
    pub fn word(&mut self, address: usize) -> Option<usize> {
        let is_within = address >= self.range.start && self.range.end.saturating_sub(address) >= 8;
        if !address.is_multiple_of(8) || !is_within {
            return None;
        }
        if let Some(copy) = &mut self.copy {
            return Some(copy.word(address)? as usize);
        }
        if !self.is_page_readable(address) {
            return None;
        }
        // SAFETY: as in `byte`; an aligned word is within one page.
        Some(unsafe { (address as *const usize).read_volatile() })
    }

    /// Whether the page of an address can be read. It is not probed again as long as only adjoining ones were probed since.
    #[inline]
    fn is_page_readable(&mut self, address: usize) -> bool {
        self.readable.contains(&address) || self.probe(address & !(PAGE - 1))
    }

    #[cold]
    #[inline(never)]
    fn probe(&mut self, page: usize) -> bool {
        // The probe, too, lets the kernel find a page.
        let is_left_alone = self.copy.as_mut().is_some_and(|copy| copy.is_resident_only && !copy.is_resident(page));
        if is_left_alone || !is_readable(page) {
            return false;
        }
        let end = page.saturating_add(PAGE);
        self.readable = if page == self.readable.end {
            self.readable.start..end
        } else if end == self.readable.start {
            page..self.readable.end
        } else {
            page..end
        };
        true
    }

    /// The little-endian number of up to eight bytes at an address.
    pub fn number(&mut self, address: usize, size: usize) -> Option<u64> {
        (0..size).try_fold(0, |number, at| {
            let byte = self.byte(address.checked_add(at)?)?;
            Some(number | u64::from(byte) << (8 * (at & 7)))
        })
    }
}

/// Where one value after the other is read.
#[derive(Debug)]
pub struct Cursor<'a> {
    pub memory: &'a mut BoundedMemory,
    pub at: usize,
}

impl Cursor<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        let byte = self.memory.byte(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// An unsigned little-endian number of `size` bytes.
    pub fn unsigned(&mut self, size: usize) -> Option<u64> {
        let number = self.memory.number(self.at, size)?;
        self.at = self.at.checked_add(size)?;
        Some(number)
    }

    /// A LEB128 number and how many bits it has.
    fn leb128(&mut self) -> Option<(u64, u32)> {
        let (mut number, mut bits) = (0, 0);
        loop {
            let byte = self.byte()?;
            if bits < 64 {
                number |= u64::from(byte & 0x7f) << bits;
            }
            bits += 7;
            if byte & 0x80 == 0 {
                return Some((number, bits));
            }
            if bits > 70 {
                return None;
            }
        }
    }

    pub fn uleb128(&mut self) -> Option<u64> {
        self.leb128().map(|(number, _)| number)
    }

    pub fn sleb128(&mut self) -> Option<i64> {
        let (number, bits) = self.leb128()?;
        let unused = 64u32.saturating_sub(bits) & 63;
        Some((number << unused).cast_signed() >> unused)
    }

    pub fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        Some(())
    }
}
