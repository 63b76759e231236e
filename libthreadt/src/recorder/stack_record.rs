//! The stack of a call that waits or has failed, as records behind the call's own one.

use core::arch::naked_asm;

use spec::encode::UntimedRecord;
use spec::{RecordKind, id};

use super::record::{put, put_all};
use crate::config::stack_frames;
use crate::first_use::process_info;
use crate::process_state::Switch;
use crate::storage::RECORDS_AT_ONCE;
use crate::unwind::{CallStack, FrameRegisters};

/// Stands for a frame that was not found.
const CUT: u64 = 1;

/// Lines of a stack that are made at once.
const LINES: usize = 4;

/// Records one line, and behind it, with `THR_TRACE_STACK`, the stack, if the call has failed.
#[inline(always)]
pub fn put_result(kind: &'static RecordKind, time: u64, arguments: [u64; 5], has_failed: bool) {
    if has_failed {
        put_failure(kind, time, &arguments);
    } else {
        put(kind, time, arguments);
    }
}

/// Records one line of a mutex call, of category 6 if the mutex is recursive, and the stack if the call has failed.
#[inline(always)]
pub fn put_mutex(
    switch: Switch,
    recursive: bool,
    kind: &'static RecordKind,
    recursive_kind: &'static RecordKind,
    time: u64,
    arguments: [u64; 5],
    has_failed: bool,
) {
    if switch.is_on_for(recursive) {
        put_result(if recursive { recursive_kind } else { kind }, time, arguments, has_failed);
    }
}

#[cold]
#[inline(never)]
fn put_failure(kind: &'static RecordKind, time: u64, arguments: &[u64; 5]) {
    put(kind, time, *arguments);
    put_stack(time);
}

/// Records the stack of the hook's caller, with `THR_TRACE_STACK`. `time` is that of the call's record, which has been made.
#[inline(always)]
pub fn put_stack(time: u64) {
    if stack_frames() != 0 {
        // SAFETY: the function has this argument.
        unsafe { walk_from_caller(time) };
    }
}

/// Passes its caller's registers on. The way from there to the host's frames is found as that through the host's is: this
/// library has unwind information.
#[cold]
#[unsafe(naked)]
unsafe extern "C" fn walk_from_caller(time: u64) {
    naked_asm!(
        ".cfi_startproc",
        "mov rsi, qword ptr [rsp]",
        "lea rdx, [rsp + 8]",
        "mov rcx, rbp",
        "mov r8, rbx",
        "jmp {walk}",
        ".cfi_endproc",
        walk = sym walk
    )
}

/// Records the return addresses above the frame with these registers.
unsafe extern "C" fn walk(time: u64, rip: usize, rsp: usize, rbp: usize, rbx: usize) {
    let mut stack = CallStack::above(FrameRegisters { rip, rsp, rbp, rbx, scratch: [0; 2] });
    let mut frames_left = stack_frames() as usize;
    let mut kind = &id::TRACE_STACK_1;
    while frames_left > 0 {
        let mut frames = [[0; 5]; LINES];
        let wanted = frames_left.min(5 * LINES);
        let places = frames.as_flattened_mut().get_mut(..wanted).unwrap_or_default();
        frames_left -= wanted;
        let taken = stack.take_into(places);
        if let Some(place) = places.get_mut(taken) {
            // The stack has ended.
            *place = if stack.is_cut() { CUT } else { 0 };
            frames_left = 0;
        }
        let mut lines = frames.map(|arguments| UntimedRecord { kind: &id::TRACE_STACK_2, arguments });
        lines[0].kind = kind;
        let used = lines.iter().take_while(|line| line.arguments[0] != 0).count();
        lines.get(..used).unwrap_or(&lines).chunks(RECORDS_AT_ONCE).for_each(|lines| put_all(time, lines));
        kind = &id::TRACE_STACK_2;
    }
    if let Some(address) = stack.code_of_no_module() {
        process_info::describe_code(address as u64, time);
    }
}
