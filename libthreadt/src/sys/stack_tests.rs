//! What is told of a thread's stacks while a handler runs on one that the kernel has forgotten.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::hint::black_box;

use super::*;

const STACK_SIZE: usize = 256 * 1024;

/// Where the stack was when the work began that the handler interrupts.
static BEGUN: AtomicUsize = AtomicUsize::new(0);
/// What the handler found of four spans: that which it interrupted; the same, over a remnant of a frame; one from which it has itself
/// returned; and the first one, from far below the signal frame.
static FOUND: [AtomicUsize; 4] = [const { AtomicUsize::new(NOTHING) }; 4];
const NOTHING: usize = 2;

/// Asks with a frame on the stack that was left there, and whose words for the alternate stack were overwritten by these.
#[inline(never)]
fn over_remnant(begun: usize, begin: usize, size: usize, flags: u64) -> bool {
    // The alternate stack, sixteen registers of which the last is rsp, rip, the flags and the selectors.
    let mut frame = [0u64; 22];
    [frame[0], frame[1], frame[2]] = [begin as u64, flags, size as u64];
    [frame[18], frame[19], frame[21]] = [begun as u64, 1, 0x002b_0000_0000_0033];
    let frame = black_box(&frame);
    let answer = is_abandoned(begun, stack_pointer());
    black_box(frame);
    answer
}

#[inline(never)]
fn deeper_place() -> usize {
    let room = black_box([0u8; 512]);
    stack_pointer() + usize::from(black_box(&room)[0])
}

#[inline(never)]
fn from_far_below(begun: usize) -> bool {
    let room = black_box([0u8; SEARCH + 32 * 1024]);
    is_abandoned(begun + usize::from(black_box(&room)[0]), stack_pointer())
}

extern "C" fn look(_signal: libc::c_int) {
    let begun = BEGUN.load(Relaxed);
    FOUND[0].store(is_abandoned(begun, stack_pointer()).into(), Relaxed);
    // As a range, either has this stack and what is below it: one of no such stack, one that is not at the end of its stack.
    let near_end = stack_pointer() + PAGE;
    let remnants = [(near_end, 0x1234_5678), (usize::MAX, u64::from(SS_AUTODISARM))];
    let any = remnants.into_iter().any(|(end, flags)| over_remnant(begun, PAGE, end - PAGE, flags));
    FOUND[1].store(any.into(), Relaxed);
    FOUND[2].store(is_abandoned(deeper_place(), stack_pointer()).into(), Relaxed);
    FOUND[3].store(from_far_below(begun).into(), Relaxed);
}

/// Lets a handler look that runs on this memory.
#[inline(never)]
fn look_from(memory: *mut u8) -> [usize; 4] {
    let flags = SS_AUTODISARM as libc::c_int;
    let stack = libc::stack_t { ss_sp: memory.cast(), ss_flags: flags, ss_size: STACK_SIZE };
    let mut before = stack;
    BEGUN.store(stack_pointer(), Relaxed);
    FOUND.iter().for_each(|found| found.store(NOTHING, Relaxed));
    #[expect(clippy::disallowed_methods, reason = "this thread of the test is meant to be interrupted here")]
    // SAFETY: the handler only reads its thread's stacks, and the memory is the caller's until it returns.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = look as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_ONSTACK;
        assert_eq!(libc::sigaltstack(&stack, &mut before), 0);
        assert_eq!(libc::sigaction(libc::SIGPWR, &action, core::ptr::null_mut()), 0);
        libc::raise(libc::SIGPWR);
        assert_eq!(libc::sigaltstack(&before, core::ptr::null_mut()), 0);
    }
    FOUND.each_ref().map(|found| found.load(Relaxed))
}

#[inline(never)]
fn look_from_array() -> [usize; 4] {
    let mut memory = [0u8; STACK_SIZE];
    look_from(black_box(&mut memory).as_mut_ptr())
}

/// The handler's stack is above what it interrupts, on the thread's own stack or elsewhere. A remnant of a frame does not
/// hide that it is another stack; and of that stack it is seen what has been given back.
#[test]
fn what_a_handler_on_a_forgotten_stack_interrupts_is_live() {
    assert_eq!(look_from_array(), [0, 0, 1, 0]);
    let mut memory = vec![0u8; STACK_SIZE];
    assert_eq!(look_from(memory.as_mut_ptr()), [0, 0, 1, 0]);
}

/// Of a thread's stack that libc has mapped it is known where it begins.
#[test]
#[cfg_attr(miri, ignore = "glibc's threads")]
fn a_stack_of_libcs_is_the_threads_own_down_to_the_guard_pages() {
    for size in [1 << 16, 1 << 20, 8 << 20] {
        let thread = std::thread::Builder::new().stack_size(size).spawn(move || {
            forget_own_stack();
            let here = stack_pointer();
            let end = end_of_stack_above(here);
            let begin = begin_of_libc_stack(thread_pointer()).unwrap();
            let answers = [here, begin, begin - 8].map(|address| is_own_up_to(address, end));
            (begin, here, end, answers)
        });
        let (begin, here, end, answers) = thread.unwrap().join().unwrap();
        // It may be a larger one, of a thread that has ended.
        assert!(begin < here && here < end && end - begin + (1 << 16) > size, "{begin:#x} {here:#x} {end:#x}");
        assert_eq!(answers, [true, true, false]);
    }
}

/// Thread-local variables are certainly private only where libc has made the stack.
#[test]
#[cfg_attr(miri, ignore = "glibc's threads")]
#[expect(clippy::disallowed_methods, reason = "the threads are the test's own")]
fn variables_of_threads_on_the_programs_memory_may_be_shared() {
    extern "C" fn ask(_: *mut libc::c_void) -> *mut libc::c_void {
        core::ptr::without_provenance_mut(is_structure_private().into())
    }
    let ask_in_thread = |prepare: &dyn Fn(*mut libc::pthread_attr_t)| {
        // SAFETY: the attributes are initialised before they are used, and the thread is joined.
        unsafe {
            let (mut attributes, mut thread, mut answer) = (core::mem::zeroed(), 0, core::ptr::null_mut());
            assert_eq!(libc::pthread_attr_init(&mut attributes), 0);
            prepare(&mut attributes);
            assert_eq!(libc::pthread_create(&mut thread, &attributes, ask, core::ptr::null_mut()), 0);
            assert_eq!(libc::pthread_join(thread, &mut answer), 0);
            answer.addr() != 0
        }
    };
    let mut memory = vec![0u8; 1 << 18];
    let stack = memory.as_mut_ptr();
    assert!(ask_in_thread(&|_| ()));
    // SAFETY: initialised attributes; the memory outlives the thread.
    assert!(!ask_in_thread(&|attributes| unsafe {
        assert_eq!(libc::pthread_attr_setstack(attributes, stack.cast(), 1 << 18), 0);
    }));
}
