//! Whether what was begun on a thread's stack was left by a jump.
//!
//! A signal handler may leave by `siglongjmp` whatever it interrupted, and no code of ours runs then. What was in progress
//! has noted where the stack was. Whoever finds the note later, in the same thread, compares that with its own place.
//!
//! The answer is "abandoned" only if it is certain. To take for live what was abandoned costs some room until the next
//! call; to take for abandoned what is live would spoil a record. Certain are addresses of one stack: of the thread's own,
//! or of its alternate signal stack. Elsewhere (a coroutine's stack) a handler may have switched stacks, and what it
//! interrupted may go on at any time.

use core::arch::asm;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::judgements::{hash_of_pointer, judged, judged_left};
use super::memory::{PAGE, copied_words, is_readable, is_resident};
use super::process::{signal_stack, thread_id};
use super::seccomp;
use super::thread_word::thread_pointer;

/// What functions may use below rsp, and the kernel leaves alone (System V ABI, x86-64), bytes.
pub const RED_ZONE: usize = 128;

/// How far up the stack a signal frame is searched for, bytes.
const SEARCH: usize = 64 * 1024;
/// How far below its beginning an address is looked for on the thread's own stack, and how far two addresses of one stack
/// may be apart, bytes.
const REACH: usize = 2 << 20;
/// The flag of an alternate stack (include/uapi/linux/signal.h) that libc does not have.
pub const SS_AUTODISARM: u32 = 1 << 31;

unsafe extern "C" {
    static __libc_stack_end: usize;
}

/// The stack pointer of the calling function.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}

/// Whether a record that began with the stack at `begun` was certainly left by a jump. `here` is where the caller's stack
/// is; it is called by a signal handler if the record is live.
pub fn is_abandoned(begun: usize, here: usize) -> bool {
    is_span_abandoned(&(begun..begun), here)
}

/// As [`is_abandoned`], for work whose functions had their stack within `span` when it began.
pub fn is_span_abandoned(span: &Range<usize>, here: usize) -> bool {
    judged_left(span.start, here, || judged(false, || is_certainly_abandoned(span, here)))
}

fn is_certainly_abandoned(span: &Range<usize>, here: usize) -> bool {
    match known_alternate(span.start, here) {
        Some([begun, here]) if begun != here => return begun,
        Some([true, _]) => return is_left(span, here),
        _ => {}
    }
    // What decides most often comes first. It is asked at each record of a handler.
    let is_below = here < span.start;
    if is_below && !is_left(span, here) {
        return false;
    }
    let own_end = end_of_own_stack(here);
    match hidden_stack(here, own_end.map_or(SEARCH, |end| end - here)) {
        Some(stack) => stack.contains(&span.start) && is_left(span, here),
        None => (is_below || is_left(span, here)) && own_end.is_some(),
    }
}

/// Whether a signal frame between `here` and `span` shows that a handler, which is at `here`, has interrupted it.
pub fn is_interrupted_at(span: &Range<usize>, here: usize) -> bool {
    let is_near = (here..here + SEARCH).contains(&span.start);
    is_near && judged(true, || is_mapped(here, span.end) && has_signal_frame(here, span.end))
}

/// The best guess where nothing is certain, for a thread that has no room left for another live record.
pub fn is_probably_abandoned(begun: usize, here: usize) -> bool {
    match known_alternate(begun, here) {
        Some([begun, here]) if begun != here => begun,
        _ => here >= begun || begun - here < SEARCH && judged(false, || !has_signal_frame(here, begun)),
    }
}

/// Which of the two addresses are on the alternate signal stack; `None` if there is none.
///
/// If they differ: a handler on the alternate stack interrupted something on the other one; only a jump leads from it to
/// there while it is in progress.
fn known_alternate(begun: usize, here: usize) -> Option<[bool; 2]> {
    let stack = signal_stack().ok().filter(|stack| stack.ss_flags & libc::SS_DISABLE == 0)?;
    let start = stack.ss_sp as usize;
    Some([begun, here].map(|address| (start..start.saturating_add(stack.ss_size)).contains(&address)))
}

/// Whether the stack has been taken back since, or has been given to another call, if both addresses are on one stack.
fn is_left(span: &Range<usize>, here: usize) -> bool {
    if here >= span.start {
        here - span.start <= REACH && is_mapped(span.start, here)
    } else {
        span.start - here < SEARCH && !has_signal_frame(here, span.end)
    }
}

/// The end of the stack that the thread was made with, if the address is on that.
fn end_of_own_stack(address: usize) -> Option<usize> {
    // glibc puts its thread structure at the upper end of the thread's stack; the first thread's has another place.
    // SAFETY: libc sets its variable before any code of ours runs.
    let ends = [thread_pointer(), unsafe { __libc_stack_end }];
    let is_end_of =
        |end: &usize| is_own_up_to(address, *end & !7) || end - address <= REACH && is_mapped(address, *end);
    ends.into_iter().find(|end| *end > address && is_end_of(end))
}

/// The known end of the stack that has this address, or, of a stack that is not the thread's own, an address above it.
pub fn end_of_stack_above(address: usize) -> usize {
    const OTHER_STACK_MAX: usize = 8 << 20;
    // SAFETY: as in `end_of_own_stack`.
    let ends = [thread_pointer(), unsafe { __libc_stack_end }];
    let end = ends.into_iter().filter(|end| *end > address).min();
    end.unwrap_or(address.saturating_add(OTHER_STACK_MAX)) & !7
}

/// Where threads' own stacks begin, each at the place of its thread pointer: the number of the lowest page, and above it a hash of the
/// thread pointer. They are looked at again and again.
static OWN_STACKS: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];
const PAGE_NUMBER_BITS: u32 = 36;

/// The place of a thread pointer among [`OWN_STACKS`], and its hash.
fn own_stack_of(pointer: usize) -> (&'static AtomicU64, u64) {
    let hash = hash_of_pointer(pointer);
    (&OWN_STACKS[hash as usize >> 56], hash << 8 >> (PAGE_NUMBER_BITS + 8) << PAGE_NUMBER_BITS)
}

/// The thread pointer of the program's first thread, whose stack does not end there.
static FIRST_POINTER: AtomicUsize = AtomicUsize::new(0);

/// The calling thread is the program's first one.
pub fn note_first_thread() {
    FIRST_POINTER.store(thread_pointer(), Relaxed);
}

/// A thread is new: an ended one may have had its thread pointer, and a larger stack.
pub fn forget_own_stack() {
    let pointer = thread_pointer();
    // Nothing is noted of the first thread. The page would be a forked child's first one there.
    if pointer != FIRST_POINTER.load(Relaxed) {
        own_stack_of(pointer).0.store(0, Relaxed);
    }
}

/// Whether everything from an address to `end`, which is [`end_of_stack_above`] it, is certainly the thread's own stack.
pub fn is_own_up_to(address: usize, end: usize) -> bool {
    /// Nothing is mapped so near below the first thread's stack (mmap_base, arch/x86/mm/mmap.c).
    const FIRST_MAX: usize = 64 << 20;
    // SAFETY: as in `end_of_own_stack`.
    if end == unsafe { __libc_stack_end } & !7 {
        return end - address <= FIRST_MAX;
    }
    let pointer = thread_pointer();
    if end != pointer & !7 || pointer == FIRST_POINTER.load(Relaxed) {
        return false;
    }
    let (place, hash) = own_stack_of(end);
    // ORDERING: Relaxed; the word is all that is known, and another thread's has another hash.
    let noted = place.load(Relaxed);
    let page_number = noted & ((1 << PAGE_NUMBER_BITS) - 1);
    if noted ^ page_number == hash && noted != 0 {
        return address >= page_number as usize * PAGE;
    }
    let Some(begin) = begin_of_libc_stack(pointer) else { return false };
    place.store(hash | (begin / PAGE) as u64, Relaxed);
    address >= begin
}

/// Where the stack begins that libc has mapped for a thread, which is not the first one; `None` if the program has given the memory, or if
/// libc has made no guard pages: what is below may be another's then, and nothing shows where.
///
/// libc's thread structure begins at the thread pointer. The place of this in it is no ABI, so it is looked for: where the memory begins,
/// its size, and that of its guard pages (nptl/descr.h), which is 0 for the program's memory. The structure is in the stack's last page, and
/// what follows may be a page that the program serves.
#[cold]
fn begin_of_libc_stack(pointer: usize) -> Option<usize> {
    const STRUCTURE_MAX: usize = 4096;
    let is_page = |address: usize| address.is_multiple_of(PAGE);
    let word = |at: usize| {
        // SAFETY: a word of the page that has the thread pointer, whose first word is the structure's. The words are only compared.
        unsafe { core::ptr::with_exposed_provenance::<usize>(at).read_volatile() }
    };
    let end = (pointer + PAGE) & !(PAGE - 1);
    (pointer.next_multiple_of(8)..end - 16).step_by(8).find_map(|at| {
        let [begin, size, guard] = [at, at + 8, at + 16].map(word);
        let has_structure = begin.checked_add(size)?.checked_sub(pointer).is_some_and(|room| room <= 2 * STRUCTURE_MAX);
        let is_libc_stack = has_structure && begin < pointer && guard > 0 && guard < size;
        (is_libc_stack && [begin, size, guard].into_iter().all(is_page)).then(|| begin + guard)
    })
}

/// Whether an address is certainly on the stack that the thread was made with, and that is private memory.
pub fn is_on_own_stack(address: usize) -> bool {
    is_own_up_to(address, end_of_stack_above(address))
}

/// Whether the thread's structure, with its thread-local variables, is certainly private memory: the first thread's, or on a stack
/// that libc has mapped. 0 is the pointer where the kernel has wiped the memory.
pub fn is_structure_private() -> bool {
    let pointer = thread_pointer();
    pointer != 0 && (pointer == FIRST_POINTER.load(Relaxed) || begin_of_libc_stack(pointer).is_some())
}

/// Whether all pages from one address to another can be read: stacks end in pages that cannot. So do they for this where a page is not in
/// memory, unless it is certainly the thread's own stack: the program may serve the page fault, even in this thread (`userfaultfd`).
fn is_mapped(from: usize, to: usize) -> bool {
    let first = (from + PAGE) & !(PAGE - 1);
    if first >= to || is_own(from, to) {
        return true;
    }
    // A filter may kill for the question.
    let may_ask = !seccomp::has_filter();
    (first..to).step_by(PAGE).all(|page| (!may_ask || is_resident(page)) && is_readable(page))
}

/// Whether a range is certainly of the thread's own stack, or of the page above the first thread's, where the program's arguments are.
fn is_own(from: usize, to: usize) -> bool {
    let end = end_of_stack_above(from);
    // SAFETY: as in `end_of_own_stack`.
    let is_first = end == unsafe { __libc_stack_end } & !7;
    let is_within = to <= end || is_first && to - end <= PAGE && is_readable((to - 1) & !7);
    is_within && is_own_up_to(from, end)
}

/// The word at a multiple of 8 that was on this thread's stack, if that can be read.
pub fn word_of_stack(at: usize) -> Option<u64> {
    let before = (at & !(PAGE - 1)) - 1;
    let is_there = is_own(at, at + 8) || is_mapped(before, at + 8);
    is_there.then(|| StackWordReader::new(at..at + 8).word(at))?
}

/// Whether the kernel has put a signal frame between `here` and `begun` that will return to `begun` or below; also if that
/// cannot be seen.
fn has_signal_frame(here: usize, begun: usize) -> bool {
    // The two may be on different stacks after all, of coroutines; then there may be a guard page between them.
    if !is_mapped(here, begun) {
        return true;
    }
    let range = here..begun & !7;
    let mut words = StackWordReader::new(range.clone());
    let is_found = signal_frames(&mut words, range).any(|frame| (frame.at..=begun).contains(&frame.interrupted));
    is_found || words.has_failed
}

/// The alternate stack that the kernel had when it delivered a signal, by a signal frame less than `search` above `here`, if `here` is
/// on it.
///
/// With `SS_AUTODISARM` the kernel forgets the stack while a handler runs on it, and only the frame tells. A frame that a
/// handler before this one has left may have been partly overwritten: it does not count unless it tells of such a stack,
/// and is itself at the upper end of that.
fn hidden_stack(here: usize, search: usize) -> Option<Range<usize>> {
    let next_page = |address: usize| (address + PAGE) & !(PAGE - 1);
    let mut end = next_page(here);
    while end < here + search && is_mapped(end - 1, end + 1) {
        end += PAGE;
    }
    // Of the thread's own stack nothing is copied.
    let end = end.min(here + search);
    let is_at_end = |stack: &Range<usize>, at: usize| stack.contains(&at) && stack.end - at < SEARCH;
    signal_frames(&mut StackWordReader::new(here..end), here..end)
        .filter(|frame| frame.is_disarmed && is_at_end(&frame.alternate, frame.at))
        .map(|frame| frame.alternate)
        .find(|stack| stack.contains(&here))
}

/// What a signal frame tells.
struct SignalFrame {
    /// Where in it the selectors are.
    at: usize,
    /// The stack pointer at the moment of the signal.
    interrupted: usize,
    /// The alternate stack at that moment.
    alternate: Range<usize>,
    /// Whether the kernel forgets that stack while a handler runs on it.
    is_disarmed: bool,
}

/// Reads words of pages that can be read. What is not certainly the thread's own stack is copied by the kernel, where that is possible:
/// above a coroutine's stack is memory that another thread may unmap at any time.
struct StackWordReader {
    /// The ID of the thread, if words are copied.
    copier: Option<u32>,
    /// The words that were copied last, and where they are.
    words: [u64; StackWordReader::COUNT],
    place: usize,
    /// Something could not be copied.
    has_failed: bool,
}

impl StackWordReader {
    const COUNT: usize = 64;

    fn new(range: Range<usize>) -> StackWordReader {
        let is_copied = !is_own(range.start, range.end) && !seccomp::has_filter();
        let own = [1];
        let can_copy = |thread: &u32| copied_words(*thread, own.as_ptr().addr()) == Some(own);
        let copier = is_copied.then(thread_id).filter(can_copy);
        // No words are there: it is no multiple of 8.
        StackWordReader { copier, words: [0; StackWordReader::COUNT], place: 1, has_failed: false }
    }

    fn word(&mut self, at: usize) -> Option<u64> {
        let Some(thread) = self.copier else {
            // SAFETY: an aligned word of a page that the kernel has just read from; other threads do not write to our stack,
            // and whatever is there is only compared.
            return Some(unsafe { core::ptr::with_exposed_provenance::<u64>(at).read_volatile() });
        };
        let place = at & !(8 * StackWordReader::COUNT - 1);
        if place != self.place {
            let Some(words) = copied_words(thread, place) else {
                self.has_failed = true;
                return None;
            };
            (self.words, self.place) = (words, place);
        }
        self.words.get((at - place) / 8).copied()
    }

    /// As [`StackWordReader::word`], of another place than the ones that are read in turn.
    fn word_elsewhere(&mut self, at: usize) -> Option<u64> {
        match self.copier {
            None => self.word(at),
            Some(thread) => {
                let copied = copied_words(thread, at).map(|[word]| word);
                self.has_failed |= copied.is_none();
                copied
            }
        }
    }
}

/// What looks like a signal frame in a range of this thread's stack, which must be readable.
///
/// Such a frame holds the alternate stack, the interrupted rsp and rip, the flags, and a word of segment selectors, cs
/// lowest and ss highest, both of user mode (`struct ucontext`, arch/x86/include/uapi/asm/ucontext.h and sigcontext.h).
fn signal_frames(words: &mut StackWordReader, range: Range<usize>) -> impl Iterator<Item = SignalFrame> {
    /// What all have in the word of their selectors: bits of user mode in cs and ss, and nothing between the two.
    const MASK: u64 = 0x0003_ffff_ffff_0003;
    const SELECTORS: u64 = 0x0003_0000_0000_0003;
    let start = range.start.next_multiple_of(8);
    (start + 24..range.end).step_by(8).filter_map(move |at| {
        // Most words are none of these, and there may be many.
        if words.word(at)? & MASK != SELECTORS || words.word_elsewhere(at - 16)? == 0 {
            return None;
        }
        let (alternate, flags) = if at >= start + 168 {
            let [begin, flags, size] = [168, 160, 152].map(|below| words.word_elsewhere(at - below));
            let begin = begin? as usize;
            // The kernel does not write the padding behind the flags.
            (begin..begin.saturating_add(size? as usize), flags? as u32)
        } else {
            (0..0, 0)
        };
        let is_disarmed = flags & !(libc::SS_ONSTACK as u32) == SS_AUTODISARM;
        Some(SignalFrame { at, interrupted: words.word_elsewhere(at - 24)? as usize, alternate, is_disarmed })
    })
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
