//! The handler: a shared object of the user's that gets each record, in the thread that makes it, beside or instead of the trace
//! (`THR_TRACE_HANDLER`).
//!
//! It is preloaded behind this library and found in the linker's list: a `dlopen` in a hook could deadlock. What it calls itself
//! is not recorded, by a flag of the thread. A forked child initialises it anew, at its first record at the latest.

use core::ffi::{c_char, c_int, c_uint};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use spec::encode::UntimedRecord;
use spec::id;

use super::followed_settings::begin_following;
use super::handler_call;
use super::keeping::keep_early;
use super::slot_adoption::pthread_self;
use crate::clock;
use crate::config::{self, CONFIG};
use crate::control;
use crate::first_use::prepare_files;
use crate::process_state::{self, PROCESS};
use crate::storage::kept_records::{Kept, move_first, read_next};
use crate::storage::thread_local;
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::errno::keeping_errno;
use crate::sys::{Once, SetOnce, preloaded, thread_id, thread_word};

/// The version of what handlers and this library expect of each other, as in `threadt.h`.
const VERSION: c_uint = 1;
/// What `threadt_handler_init` returns: the handler gets the records instead of the trace, or beside it.
const INSTEAD: c_int = 0;
const BESIDE: c_int = 1;

/// `struct threadt_record`.
#[repr(C)]
struct HandledRecord {
    time: u64,
    tid: u64,
    pid: u32,
    lwpid: u32,
    event1: u8,
    event2: u8,
    which: u8,
    unused: [u8; 5],
    arguments: [u64; 5],
}

type Init = unsafe extern "C" fn(*const c_char) -> c_int;
type Event = unsafe extern "C" fn(*const HandledRecord);
type Fini = unsafe extern "C" fn();

/// The functions of the handler's object.
struct HandlerFunctions {
    init: Init,
    event: Event,
    fini: Option<Fini>,
}

static HANDLER: SetOnce<Option<HandlerFunctions>> = SetOnce::new(None);
/// The object has been searched for, in this process or in one that it was forked from.
static SEARCHED: Once = Once::new();
/// There is no handler that can be used; forked children do not search again.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// Gives records of one time to the handler, if there is one. `true` if it gets them instead of the trace, or if they are kept until
/// that is known.
pub fn takes(time: u64, lines: &[UntimedRecord]) -> bool {
    if !is_in_force() {
        let is_kept = is_beginning();
        if is_kept {
            keep_early(time, lines);
        }
        return is_kept;
    }
    // Else they are the handler's own calls, which nobody gets.
    if !thread_word::is_handling() && PROCESS.handler_ended.load(Relaxed) == 0 {
        let time = clock::since_epoch(time);
        lines.iter().for_each(|line| handle(time, line));
    }
    replaces_trace() || thread_word::is_handling()
}

/// Whether the handler gets all records of this process, so that it makes no files. Initialises the handler if it is not.
pub fn is_instead_of_trace() -> bool {
    is_in_force() && replaces_trace()
}

fn replaces_trace() -> bool {
    PROCESS.handler_replaces_trace.load(Relaxed) != 0
}

/// Whether the handler gets the records of this process. A thread that may make no system call does not call it.
fn is_in_force() -> bool {
    if !CONFIG.get().has_handler || !process_state::is_initialised() || thread_word::is_muted() {
        return false;
    }
    if thread_word::is_handling() {
        handler_call::notice_jump();
    }
    if IS_REFUSED.load(Relaxed) {
        PROCESS.records_directly.store(1, Relaxed);
        return false;
    }
    (SEARCHED.is_done() || SEARCHED.run_calling_others(search))
        && (thread_word::is_handling() || PROCESS.handler.is_done() || !process_state::is_vfork_child() && is_begun())
}

/// Whether a signal handler has interrupted the search for the handler, or its initialisation: what it records waits until that is done.
fn is_beginning() -> bool {
    CONFIG.get().has_handler
        && process_state::is_initialised()
        && !thread_word::is_muted()
        && !thread_word::is_handling()
        && !IS_REFUSED.load(Relaxed)
        && (SEARCHED.is_busy() || PROCESS.handler.is_busy())
        && !process_state::is_vfork_child()
}

/// Searches for the handler's functions in the objects that were loaded behind this library.
fn search() -> bool {
    let path = config::handler_path();
    let variable = |name| preloaded::variable_behind(path, name);
    let Some(version) = variable(c"threadt_handler_version") else {
        return refuse(b"is not preloaded behind libthreadt.so, or is no handler");
    };
    // SAFETY: `threadt.h` defines the variable.
    if unsafe { *(version as *const c_uint) } != VERSION {
        return refuse(b"is for another version of libthreadt");
    }
    let function = |name| preloaded::function_behind(path, name);
    let (Some(init), Some(event)) = (function(c"threadt_handler_init"), function(c"threadt_handler_event")) else {
        return refuse(b"lacks threadt_handler_init or threadt_handler_event");
    };
    let fini = function(c"threadt_handler_fini");
    // SAFETY: `threadt.h` declares them with these types. Within SEARCHED, which all readers have passed.
    unsafe {
        *HANDLER.get_mut() = Some(HandlerFunctions {
            init: core::mem::transmute::<*const (), Init>(init),
            event: core::mem::transmute::<*const (), Event>(event),
            fini: fini.map(|fini| core::mem::transmute::<*const (), Fini>(fini)),
        });
    }
    true
}

/// Reports why there is no handler, and lets records go to the trace. Always `false`.
fn refuse(why: &[u8]) -> bool {
    IS_REFUSED.store(true, Relaxed);
    warn(
        Warning::Handler,
        &[b"THR_TRACE_HANDLER: '", config::handler_path().to_bytes(), b"' ", why, b"; records go to the trace"],
    );
    false
}

/// Initialises the handler in this process, and gives it what was kept until then.
fn is_begun() -> bool {
    let mut has_begun = false;
    let is_begun = PROCESS.handler.run_calling_others(|| {
        has_begun = begin();
        has_begun
    });
    // Now that nothing more is kept.
    if is_begun && has_begun {
        hand_over_kept();
    }
    is_begun
}

/// Initialises the handler.
fn begin() -> bool {
    let Some(handler) = HANDLER.get() else { return false };
    // SAFETY: the handler's own function; the parameters are NUL-terminated.
    let result = call(|| unsafe { (handler.init)(config::handler_parameters().as_ptr()) });
    if ![INSTEAD, BESIDE].contains(&result) {
        return refuse(b"does not want any records");
    }
    PROCESS.handler_replaces_trace.store((result == INSTEAD).into(), Relaxed);
    // The files have the offset of the clock.
    if result == INSTEAD || !prepare_files() {
        clock::learn_offset();
    }
    let parent = PROCESS.unrecorded_parent.load(Relaxed);
    if parent != 0 {
        // A thread of the parent may have had this process's number.
        begin_following();
    }
    if parent != 0 && control::records_now(id::PROC_BEGIN) {
        let line = UntimedRecord { kind: &id::PROC_BEGIN_0, arguments: [u64::from(parent), 0, 0, 0, 0] };
        let mut time = PROCESS.initialised_at.load(Relaxed);
        // What a signal handler has recorded while the process was initialised is earlier.
        read_next(0, |first| time = time.min(first.time));
        handle(clock::since_epoch(time), &line);
    }
    true
}

/// Gives the handler what was kept until it was ready. What goes to the trace, too, stays for that.
fn hand_over_kept() {
    let hand_over = |record: Kept| {
        handle_of(record.lwp, record.tid, clock::since_epoch(record.time), &record.line);
    };
    if replaces_trace() {
        while move_first(|_| true, hand_over).is_some() {}
    } else {
        let mut last = 0;
        while let Some(number) = read_next(last, hand_over) {
            last = number;
        }
    }
}

/// Gives the handler a record of the calling thread.
fn handle(time: u64, line: &UntimedRecord) {
    let lwp = thread_local::slot_of_any_thread().map_or_else(thread_id, |slot| slot.lwp.load(Relaxed));
    handle_of(lwp, pthread_self(), time, line);
}

fn handle_of(lwp: u32, tid: u64, time: u64, line: &UntimedRecord) {
    let Some(handler) = HANDLER.get() else { return };
    let [a, b, _, c, d, _, which, _] = line.kind.event_text;
    let number = |tens: u8, ones: u8| (tens & 15) * 10 + (ones & 15);
    let record = HandledRecord {
        time,
        tid,
        pid: process_state::recorded_id(),
        lwpid: lwp,
        event1: number(a, b),
        event2: number(c, d),
        which: which & 15,
        unused: [0; 5],
        arguments: line.arguments,
    };
    // SAFETY: the handler's own function.
    call(|| unsafe { (handler.event)(&raw const record) });
}

/// Lets the handler do something, whose own calls are not recorded, and whose errno does not reach the host.
fn call<R>(what: impl FnOnce() -> R) -> R {
    keeping_errno(|| handler_call::note_call(what))
}

/// In the constructor: a handler that cannot be used is reported before the program begins.
#[cfg(not(test))]
pub fn begin_early() {
    is_in_force();
}

/// At the process's end: the handler gets no records any more.
pub fn end() {
    if PROCESS.handler.is_done()
        && PROCESS.handler_ended.swap(1, Relaxed) == 0
        && let Some(fini) = HANDLER.get().as_ref().and_then(|handler| handler.fini)
    {
        // SAFETY: the handler's own function.
        call(|| unsafe { fini() });
    }
}
