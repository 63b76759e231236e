//! What a program calls to record events of its own. It has no such functions itself: `threadt.h` and the crate
//! `threadt-events` refer to these weakly.
//!
//! A name is passed with its length and a word of the program's, in which its ID is kept for later calls; the word may be
//! null. The ID depends on the text alone, so the word stays right in forked children.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spec::tables::USER_EVENTS;
use spec::{RecordKind, id};

use crate::config::detail;
use crate::control::{CHANGES_OFFSET, CONTROL};
use crate::glibc::object_words::Ptr;
use crate::process_state::{self, PROCESS, Switch};
use crate::recorder::{switch, switch_at};
use crate::sys::stack_alignment::enter_aligned;
use crate::trace_dir::interned_names;
use crate::{clock, recorder};

type Text = *const u8;
type IdCache = *const AtomicU64;

/// The record kinds of the numbers that are the program's, by `which` and number.
static KINDS: [[RecordKind; USER_EVENTS as usize]; 3] = {
    let mut kinds = [const { [const { RecordKind::of_user(0, 0) }; USER_EVENTS as usize] }; 3];
    let mut which = 0;
    while which < kinds.len() {
        let mut number = 0;
        while number < kinds[which].len() {
            kinds[which][number] = RecordKind::of_user(number as u8, which as u8);
            number += 1;
        }
        which += 1;
    }
    kinds
};

/// Records an event of the program's own, after what the thread did before: a counter that a lock of the program's protects is
/// recorded in its order, also if the lock is not recorded. `code` has its number, and 256 times `which`. Another number records nothing.
unsafe extern "C" fn put_event(code: u32, a1: u64, a2: u64, a3: u64, a4: u64, a5: u64) {
    let kind = KINDS.get((code >> 8) as usize).and_then(|kinds| kinds.get((code & 255) as usize));
    if switch_at(process_state::USER_EVENTS).is_on()
        && let Some(kind) = kind
    {
        recorder::put(kind, clock::now_fenced(), [a1, a2, a3, a4, a5]);
    }
}

/// `void threadt_put_event(unsigned code, int64_t a1, …, int64_t a5);`: the stub of [`put_event`].
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
unsafe extern "C" fn threadt_put_event() {
    naked_asm!(
        ".cfi_startproc",
        "cmp byte ptr [rip + {switches} + {switch}], {off}",
        "jne 2f",
        "cmp dword ptr [rip + {control} + {changes}], 0",
        "jne 2f",
        "ret",
        "2:",
        enter_aligned!("{put_event}"),
        ".cfi_endproc",
        switches = sym PROCESS,
        switch = const process_state::switch_offset_at(process_state::USER_EVENTS),
        off = const Switch::OFF.bits(),
        control = sym CONTROL,
        changes = const CHANGES_OFFSET,
        put_event = sym put_event,
    )
}

/// Records `values` behind a name's ID.
///
/// # Safety
/// `text` has `length` bytes that may be read; `cache` is null or the program's word for this text.
#[inline(always)]
unsafe fn put_named(
    kind: &'static RecordKind,
    time: u64,
    (text, length, cache): (Text, usize, IdCache),
    value: u64,
    caller: u64,
) {
    // SAFETY: the caller's.
    let (text, cache) = unsafe { (core::slice::from_raw_parts(text, length), cache.as_ref()) };
    let id = match cache.map_or(0, |cache| cache.load(Relaxed)) {
        0 => {
            let id = interned_names::id_of(text);
            // Once: all threads that call from there share the word.
            if let Some(cache) = cache {
                cache.store(id, Relaxed);
            }
            id
        }
        id => id,
    };
    let is_new = !interned_names::is_stored(id);
    if is_new {
        interned_names::store(id, text);
    }
    let caller = if kind.which == 2 { 0 } else { detail(caller) };
    recorder::put(kind, time, [id, value, 0, 0, caller]);
    if is_new {
        // After the record, which may have made the process's files.
        interned_names::append_new();
    }
}

/// Defines a function that records a name: its event, its record kind, and when its time is read.
macro_rules! named {
    ($symbol:ident $event:ident $kind:ident $now:ident) => {
        hook! {
            fn $symbol(text: Text, length: usize, cache: IdCache, value: u64; caller) -> () [$event] {
                if switch(id::$event).is_on() {
                    // SAFETY: threadt.h has the prototype; the program grants what it demands.
                    unsafe { put_named(&id::$kind, clock::$now(), (text, length, cache), value, caller) };
                }
            }
        }
    };
}

named! { threadt_put_begin USER_SPAN USER_SPAN_1 now_fenced }
named! { threadt_put_end USER_SPAN USER_SPAN_2 now_fenced }
named! { threadt_put_mark USER_MARK USER_MARK_0 now_fenced }
named! { threadt_put_counter USER_COUNTER USER_COUNTER_0 now_fenced }
named! { threadt_put_object USER_OBJECT USER_OBJECT_0 now_unfenced }

/// Defines a function that records one record of a spinning barrier: its event, its record kind, when its time is read.
macro_rules! barrier_spin {
    ($symbol:ident($($argument:ident: $kind:ty),*) $event:ident $record:ident $now:ident [$($value:expr),*] $caller:ident) => {
        hook! {
            fn $symbol($($argument: $kind),*; $caller) -> () [$event] {
                if switch(id::$event).is_on() {
                    recorder::put(&id::$record, clock::$now(), [$($value),*]);
                }
            }
        }
    };
}

barrier_spin! {
    threadt_put_barrier_spin_init(barrier: Ptr, attr: Ptr, count: u32, rval: i32)
    BARRIER_SPIN_INIT BARRIER_SPIN_INIT_0 now_fenced
    [barrier as u64, attr as u64, count.into(), rval as u64, detail(caller)] caller
}
barrier_spin! {
    threadt_put_barrier_spin_wait(barrier: Ptr, missing: u32)
    BARRIER_SPIN_WAIT BARRIER_SPIN_WAIT_1 now_unfenced
    [barrier as u64, missing.into(), 0, 0, detail(caller)] caller
}
barrier_spin! {
    threadt_put_barrier_spin_return(rval: i32)
    BARRIER_SPIN_WAIT BARRIER_SPIN_WAIT_2 now_fenced
    [rval as u64, 0, 0, 0, 0] _caller
}
barrier_spin! {
    threadt_put_barrier_spin_destroy(barrier: Ptr, rval: i32)
    BARRIER_SPIN_DESTROY BARRIER_SPIN_DESTROY_0 now_unfenced
    [barrier as u64, rval as u64, 0, 0, detail(caller)] caller
}
