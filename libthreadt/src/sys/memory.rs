//! Memory mappings and memory barriers.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use super::call::{Errno, Result, call};

/// Size of a page of memory, bytes.
pub const PAGE: usize = 4096;

/// Maps fresh private memory.
pub fn map_anonymous(length: usize) -> Result<*mut u8> {
    // SAFETY: the kernel chooses a free range.
    unsafe { map_private(0, length, 0) }.map(|address| address as *mut u8)
}

/// Removes a mapping.
///
/// # Safety
/// The range must be a mapping of this library that nobody uses.
pub unsafe fn unmap(address: *mut u8, length: usize) {
    // SAFETY: the caller owns the range.
    let _ = unsafe { call(libc::SYS_munmap, [address as usize, length]) };
}

/// Changes what may be done with complete pages.
///
/// # Safety
/// The pages must be the caller's to change.
pub unsafe fn protect(address: usize, length: usize, protection: libc::c_int) -> Result {
    // SAFETY: the caller's.
    unsafe { call(libc::SYS_mprotect, [address, length, protection as usize]) }.map(drop)
}

/// Puts fresh private memory in the place of a mapping. A single page is there at once, since it will be written.
///
/// # Safety
/// The range must be a mapping of this library whose contents nobody needs any more.
pub unsafe fn replace_by_private(address: *mut u8, length: usize) -> Result {
    let populate = if length == PAGE { libc::MAP_POPULATE } else { 0 };
    // SAFETY: the caller owns the range.
    unsafe { map_private(address as usize, length, libc::MAP_FIXED | populate) }.map(drop)
}

/// Lets the kernel make a page ready to be written, and changes nothing: where a thread must not lose time between a look at its
/// process and a write, a page fault would be the most of it.
///
/// # Safety
/// The page must be mapped, writable, and begin with a word that other threads change only by atomic operations.
pub unsafe fn touch(page: *mut u8) {
    // A compare and exchange writes on x86-64 whatever it finds. Compilers remove an addition or a disjunction of 0.
    // SAFETY: the caller's.
    let _ = unsafe { &*page.cast::<AtomicU32>() }.compare_exchange(0, 0, Relaxed, Relaxed);
}

unsafe fn map_private(address: usize, length: usize, flags: libc::c_int) -> Result<usize> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags) as usize;
    // SAFETY: the caller's.
    unsafe { call(libc::SYS_mmap, [address, length, protection, flags, usize::MAX]) }
}

/// Lets the kernel find room for complete pages of a sparse file's mapping. It fails where touching them would raise SIGBUS.
/// They may get other contents, but not at the beginning of a page.
///
/// # Safety
/// The pages must be mapped and the caller's alone, whatever they hold.
pub unsafe fn reserve_pages(address: *mut u8, length: usize) -> Result {
    const MADV_POPULATE_WRITE: usize = 23;
    // SAFETY: nothing is changed.
    if unsafe { call(libc::SYS_madvise, [address as usize, length, MADV_POPULATE_WRITE]) }.is_ok() {
        return Ok(());
    }
    // Before Linux 5.14: the kernel returns an error where it cannot write what it is asked for.
    for page in (0..length).step_by(PAGE) {
        let place = address as usize + page + PAGE - size_of::<libc::timespec>();
        // SAFETY: a place in the caller's pages.
        unsafe { call(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as usize, place]) }?;
    }
    Ok(())
}

/// Lets the kernel prepare many pages at a time where one of these is touched first, of a file that [`super::Fd::map`] has mapped.
pub fn read_ahead(address: *mut u8, length: usize) {
    // SAFETY: the advice changes no contents.
    let _ = unsafe { call(libc::SYS_madvise, [address as usize, length, libc::MADV_NORMAL as usize]) };
}

/// Makes a hole of complete pages of a file's shared mapping, which are zeros then. It fails where the file system has no holes.
///
/// # Safety
/// Nobody may need what is in the pages.
pub unsafe fn remove_pages(address: *mut u8, length: usize) -> Result {
    // SAFETY: the caller's.
    unsafe { call(libc::SYS_madvise, [address as usize, length, libc::MADV_REMOVE as usize]) }.map(drop)
}

/// Lets the kernel zero the range in every child that does not share this process's memory (Linux 4.14).
///
/// # Safety
/// The range must be complete pages of private memory that a child may lose.
pub unsafe fn wipe_on_fork(address: *const u8, length: usize) -> Result {
    // SAFETY: the caller's: a child may lose the range.
    let wiped = unsafe { call(libc::SYS_madvise, [address as usize, length, libc::MADV_WIPEONFORK as usize]) };
    WIPES_ON_FORK.store(wiped.is_ok(), Relaxed);
    wiped.map(drop)
}

/// The kernel has agreed to zero memory in children.
static WIPES_ON_FORK: AtomicBool = AtomicBool::new(false);

/// Maps fresh memory that the children of a raw `clone` share where they cannot be told from their parent: where the kernel
/// does not zero memory in children. Elsewhere it is private.
pub fn map_for_process(length: usize) -> Result<*mut u8> {
    if WIPES_ON_FORK.load(Relaxed) {
        return map_anonymous(length);
    }
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: the kernel chooses a free range.
    unsafe { call(libc::SYS_mmap, [0, length, protection, flags, usize::MAX]) }.map(|address| address as *mut u8)
}

/// What [`is_readable`] asks for: no such thing is to be done with the set, which has so many bytes.
pub const IMPOSSIBLE_HOW: usize = i32::MAX as usize;
pub const SET_SIZE: usize = 8;

/// Whether the word at an address, a multiple of 8, can be read. The kernel tries: it reads a set of signals before it finds that
/// nothing is to be done with it.
pub fn is_readable(address: usize) -> bool {
    // SAFETY: the call changes nothing.
    let result = unsafe { call(libc::SYS_rt_sigprocmask, [IMPOSSIBLE_HOW, address, 0, SET_SIZE]) };
    result == Err(Errno(libc::EINVAL))
}

/// Whether a page is in memory. Unlike whoever reads it, the kernel does not bring it there for the answer. Of a file that the user may
/// not write to it says so of each page.
pub fn is_resident(page: usize) -> bool {
    let mut residence = 0u8;
    // SAFETY: the kernel writes one byte for one page.
    let asked = unsafe { call(libc::SYS_mincore, [page, PAGE, (&raw mut residence).addr()]) };
    asked.is_ok() && residence & 1 != 0
}

/// Lets the kernel copy from this process's memory, as far as that is there. `thread` is the ID of one of its threads.
///
/// # Safety
/// `to` must have room for `length` bytes.
pub(super) unsafe fn copy_memory(thread: u32, to: *mut u8, from: *const u8, length: usize) -> Result<usize> {
    let [to, from] = [to, from.cast_mut()].map(|start| libc::iovec { iov_base: start.cast(), iov_len: length });
    let arguments = [thread as usize, (&raw const to).addr(), 1, (&raw const from).addr(), 1];
    // SAFETY: the kernel writes to `to`, which has room by the caller, and reads what can be read.
    unsafe { call(libc::SYS_process_vm_readv, arguments) }
}

/// Words from an address on, as [`copy_memory`] copies them: they may be unmapped at the same time. `None` also where the kernel
/// has no such call.
pub fn copied_words<const COUNT: usize>(thread: u32, address: usize) -> Option<[u64; COUNT]> {
    let mut words = [0; COUNT];
    let (from, length) = (core::ptr::without_provenance(address), size_of_val(&words));
    // SAFETY: the room is that of the words.
    let copied = unsafe { copy_memory(thread, words.as_mut_ptr().cast(), from, length) };
    (copied == Ok(length)).then_some(words)
}

/// Whether these bytes are at an address, as [`copy_memory`] copies them.
pub fn has_bytes(thread: u32, address: usize, bytes: &[u8]) -> bool {
    let mut copy = [0; 256];
    address != 0
        && bytes.chunks(copy.len()).enumerate().all(|(index, bytes)| {
            let from = core::ptr::without_provenance(address + index * size_of_val(&copy));
            // SAFETY: a chunk is no longer than the room.
            let copied = unsafe { copy_memory(thread, copy.as_mut_ptr(), from, bytes.len()) };
            copied == Ok(bytes.len()) && copy.get(..bytes.len()) == Some(bytes)
        })
}

/// Whether these bytes are at an address, which nobody unmaps meanwhile. Unlike [`has_bytes`] it takes no 11 microseconds.
///
/// # Safety
/// The calling thread must be the only one that has this memory.
pub unsafe fn has_bytes_alone(address: usize, bytes: &[u8]) -> bool {
    let (first, end) = (address & !(SET_SIZE - 1), address + bytes.len());
    // SAFETY: each page of the range was readable just now, and no other thread changes that.
    let byte = |index: usize| unsafe { core::ptr::with_exposed_provenance::<u8>(address + index).read_volatile() };
    address != 0
        && core::iter::successors(Some(first), |word| Some((word & !(PAGE - 1)) + PAGE))
            .take_while(|word| *word < end)
            .all(is_readable)
        && bytes.iter().enumerate().all(|(index, expected)| byte(index) == *expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_what_can_be_read() {
        let page = map_anonymous(2 * PAGE).unwrap() as usize;
        assert!(is_readable(page) && is_readable(page + PAGE - 8));
        // SAFETY: a page of this test.
        unsafe { protect(page + PAGE, PAGE, libc::PROT_NONE) }.unwrap();
        assert!(is_readable(page) && !is_readable(page + PAGE));
        assert!(!is_readable(8) && !is_readable(usize::MAX - 7));
        // SAFETY: as above.
        unsafe { unmap(page as *mut u8, 2 * PAGE) };
        assert!(!is_readable(page));
    }

    #[test]
    #[cfg_attr(miri, ignore = "rt_sigprocmask")]
    fn bytes_are_compared_only_where_all_their_pages_are() {
        let page = map_anonymous(3 * PAGE).unwrap();
        let at = page.expose_provenance();
        // SAFETY: pages of this test.
        unsafe {
            page.add(PAGE - 3).copy_from(b"command".as_ptr(), 7);
            protect(at + 2 * PAGE, PAGE, libc::PROT_NONE).unwrap();
        }
        let last = [&[0; PAGE - 4][..], &[0; 4]].concat();
        // SAFETY: no other thread knows the pages.
        let has = |place: usize, bytes: &[u8]| unsafe { has_bytes_alone(place, bytes) };
        assert!(has(at + PAGE - 3, b"command") && !has(at + PAGE - 3, b"commanD") && !has(at + PAGE - 2, b"command"));
        assert!(has(at + 2 * PAGE - 8, &[0; 8]) && !has(at + 2 * PAGE - 8, &[0; 9]) && !has(0, b"a"));
        assert!(!has(at + PAGE + 4, &last) && !has(at + 2 * PAGE, b"\0"));
        // SAFETY: as above.
        unsafe { unmap(page, 3 * PAGE) };
    }

    #[test]
    #[cfg_attr(miri, ignore = "a mapped file")]
    fn to_touch_a_page_is_to_write_to_it() {
        use std::io::Write;
        use std::os::fd::AsRawFd;

        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; PAGE]).unwrap();
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let arguments = [0, PAGE, protection, libc::MAP_PRIVATE as usize, file.as_raw_fd() as usize];
        // SAFETY: the kernel chooses a free range.
        let page = unsafe { call(libc::SYS_mmap, arguments) }.unwrap() as *mut u8;
        // SAFETY: a page of this test.
        unsafe { touch(page) };
        // Who has written to a page of a private mapping has a copy, which no change of the file reaches.
        std::os::unix::fs::FileExt::write_all_at(&file, &[8; PAGE], 0).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { page.read_volatile() }, 7);
        // SAFETY: as above.
        unsafe { unmap(page, PAGE) };
    }

    #[test]
    #[cfg_attr(miri, ignore = "mincore")]
    fn a_page_that_nobody_has_touched_is_not_there() {
        let page = map_anonymous(2 * PAGE).unwrap();
        // SAFETY: a page of this test.
        unsafe { page.write_volatile(1) };
        let page = page as usize;
        assert_eq!([page, page + PAGE].map(is_resident), [true, false]);
        assert_eq!([page, page + PAGE].map(is_resident), [true, false]);
        // SAFETY: as above.
        unsafe { unmap(page as *mut u8, 2 * PAGE) };
        assert!(!is_resident(page));
    }
}
