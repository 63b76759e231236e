//! A thread begins.
//!
//! The next `pthread_create` gets [`run`] instead of the program's routine. The program's routine and argument are in a
//! [`ThreadStart`], which comes from a pool: the creator may leave its stack at once, the library allocates nothing,
//! and the thread has a slot only after its first record.
//!
//! The first of the two threads to get there fills the creator's `pthread_t` variable. Afterwards the variable may be
//! gone, because a detached thread may free it (glibc itself fills it before the thread runs).

use core::arch::naked_asm;
use core::ffi::c_void;
use core::mem::offset_of;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use spec::id;

use super::thread_end;
use crate::glibc::cleanup_handler::{self, CleanupBuffer};
use crate::process_state::PROCESS;
use crate::recorder::records;
use crate::sys::stack_alignment::enter_aligned;
use crate::sys::{PAGE, Pool, Pooled, map_anonymous, user_dispatch, wait};
use crate::{clock, recorder};

/// The routine and argument of a new thread.
#[repr(C, align(64))]
pub struct ThreadStart {
    link: AtomicU64,
    routine: AtomicUsize,
    argument: AtomicUsize,
    /// Where the creator wants the new thread's ID.
    target: AtomicUsize,
    is_c11: AtomicU32,
    /// Whether the variable at `target` has the ID: one of the constants below.
    state: AtomicU32,
}

/// Neither of the two threads has begun to fill the variable.
const OPEN: u32 = 0;
/// One of them is filling it.
const FILLING: u32 = 1;
/// It is filled.
const FILLED: u32 = 2;

// SAFETY: the only pool at this head.
static STARTS: Pool<ThreadStart> = unsafe { Pool::at(&PROCESS.thread_starts) };

impl Pooled for ThreadStart {
    fn link(&self) -> &AtomicU64 {
        &self.link
    }
}

impl ThreadStart {
    /// Notes the routine and argument of a new thread; `None` if there is no memory for them.
    pub fn new(routine: usize, argument: usize, target: usize, is_c11: bool) -> Option<&'static ThreadStart> {
        let start = STARTS.take().or_else(|| {
            let page = NonNull::new(map_anonymous(PAGE).ok()?)?.cast::<ThreadStart>();
            for index in 1..PAGE / size_of::<ThreadStart>() {
                // SAFETY: zeroed memory of the page, which is never unmapped, is a valid ThreadStart.
                unsafe { STARTS.put(page.add(index)) };
            }
            Some(page)
        })?;
        // SAFETY: the item of a pool, or zeroed memory as above.
        let start: &'static ThreadStart = unsafe { start.as_ref() };
        start.routine.store(routine, Relaxed);
        start.argument.store(argument, Relaxed);
        start.target.store(target, Relaxed);
        start.is_c11.store(is_c11.into(), Relaxed);
        // ORDERING: creating the thread orders all this before what the thread does.
        start.state.store(OPEN, Relaxed);
        Some(start)
    }

    /// Publishes the new thread's ID in the creator's variable; called once by each of the two threads.
    ///
    /// When this returns, the variable is filled. The second caller releases the memory.
    pub fn publish_tid(&'static self, tid: u64) {
        // ORDERING: Acquire pairs with the other thread's Release: it does not use the memory any more.
        if self.state.compare_exchange(OPEN, FILLING, Acquire, Acquire).is_ok() {
            // SAFETY: pthread_create's caller grants a pthread_t that stays until the call has returned, and before
            // that the new thread runs none of the program's code: both threads call this first.
            unsafe { (self.target.load(Relaxed) as *mut u64).write(tid) };
            self.state.store(FILLED, Release);
            return;
        }
        // The other thread has a single store left, however the two are scheduled.
        while self.state.load(Acquire) == FILLING {
            wait(&self.state, FILLING, 1_000_000);
        }
        self.release();
    }

    /// Releases the memory; for the creator if no thread was made.
    pub fn release(&'static self) {
        // SAFETY: it came from the pool's memory, and neither thread uses it any more.
        unsafe { STARTS.put(NonNull::from(self)) };
    }
}

/// What the frame of [`run`] holds.
#[repr(C)]
struct RoutineFrame {
    routine: u64,
    argument: u64,
    is_c11: u64,
    buffer: CleanupBuffer,
}

/// How large the frame is. With the two return addresses, of which the program's routine has one anyway, it is as many bytes as the
/// stack is lower there than without the library: a multiple of 128, so that a routine whose compiler counts on more than the ABI's
/// 16 (`-mpreferred-stack-boundary`) finds its variables aligned as they would be.
const FRAME_SIZE: usize = 128 - size_of::<usize>();
const _: () = assert!(size_of::<RoutineFrame>() <= FRAME_SIZE);

/// The routine of every thread that the program creates: begins its trace, runs the program's routine, ends the trace.
#[unsafe(naked)]
pub extern "C-unwind" fn run(start: *mut c_void) -> *mut c_void {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, {size}",
        ".cfi_adjust_cfa_offset {size}",
        "mov rsi, rsp",
        "call {begin}",
        "mov rdi, qword ptr [rsp + {argument}]",
        "call qword ptr [rsp + {routine}]",
        "mov rdi, rsp",
        "mov rsi, rax",
        "call {end}",
        "add rsp, {size}",
        ".cfi_adjust_cfa_offset -{size}",
        "ret",
        ".cfi_endproc",
        size = const FRAME_SIZE,
        begin = sym begin,
        argument = const offset_of!(RoutineFrame, argument),
        routine = const offset_of!(RoutineFrame, routine),
        end = sym end,
    )
}

/// Begins the thread's trace and fills the frame of [`run`].
///
/// # Safety
/// `start` is what `pthread_create`'s hook has passed, and `frame` that frame.
unsafe extern "C-unwind" fn begin(start: *mut c_void, frame: *mut RoutineFrame) {
    // SAFETY: `pthread_create`'s hook passed a ThreadStart, which is not released before both threads have published.
    let start: &'static ThreadStart = unsafe { &*start.cast::<ThreadStart>() };
    let (routine, argument) = (start.routine.load(Relaxed) as u64, start.argument.load(Relaxed) as u64);
    let is_c11 = start.is_c11.load(Relaxed).into();
    // An earlier thread in the same memory may have ended unnoticed.
    user_dispatch::end();
    recorder::begin_thread();
    if records(id::THR_BEGIN) {
        recorder::put(&id::THR_BEGIN_0, clock::now_fenced(), [routine, argument, 0, 0, 0]);
    }
    start.publish_tid(recorder::pthread_self());
    // SAFETY: the caller's. The buffer is above this frame; `end` takes it out of glibc's list, or unwinding does.
    unsafe {
        frame.write(RoutineFrame { routine, argument, is_c11, buffer: CleanupBuffer::EMPTY });
        cleanup_handler::push(&raw mut (*frame).buffer, routine_left);
    }
}

/// Ends the thread's trace, and returns what its routine has returned.
///
/// # Safety
/// `frame` is that of [`run`], filled by [`begin`].
unsafe extern "C-unwind" fn end(frame: *mut RoutineFrame, result: u64) -> u64 {
    // SAFETY: the caller's.
    let is_c11 = unsafe { (*frame).is_c11 != 0 };
    // A thrd_start_t returns an int.
    let status = if is_c11 { i64::from(result as i32) as u64 } else { result };
    thread_end::record_thread_exit(status, 0);
    // SAFETY: the buffer that `begin` has pushed.
    unsafe { cleanup_handler::pop(&raw mut (*frame).buffer) };
    status
}

/// Called by glibc, within what the program has called.
#[unsafe(naked)]
extern "C" fn routine_left(argument: *mut c_void) {
    naked_asm!(
        ".cfi_startproc",
        enter_aligned!("{end}"),
        ".cfi_endproc",
        end = sym end_by_unwinding
    )
}

extern "C" fn end_by_unwinding(_argument: *mut c_void) {
    thread_end::end_by_unwinding();
}
