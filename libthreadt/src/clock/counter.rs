//! `CLOCK_MONOTONIC` by the processor's time stamp counter, converted as the kernel does.
//!
//! The vDSO converts by the words of a page that the kernel updates: the counter's value at the last update, the time
//! then, and the rate. [`read`] uses the same words, so that it returns what the vDSO would return, in every thread of
//! every process, and never goes back. It saves the calls, and the fence before the counter where a record does not
//! need one.
//!
//! The page is no ABI. It has been the same since Linux 5.3 but for its place and one word (`struct vdso_data` in
//! include/vdso/datapage.h, since 6.13 `struct vdso_clock`). So it is searched for at start, and only used if it gives
//! the vDSO's times. It is checked again from time to time ([`check`]), and its own word says at each reading whether
//! the counter can be used. Where anything is not as expected, the vDSO is asked instead.

use core::arch::x86_64::{_mm_lfence, _rdtsc};
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};

use crate::sys::{self, PAGE};

/// The page's words up to `cycle_last`.
#[repr(C)]
struct ClockHead {
    /// Odd while the kernel changes the words.
    sequence: AtomicU32,
    /// `VDSO_CLOCKMODE_TSC`, or something else where the counter cannot be used.
    mode: AtomicU32,
    /// The counter at the last update.
    cycle_last: AtomicU64,
}

/// What follows, behind `mask` and perhaps another word.
#[repr(C)]
struct ClockRate {
    multiplier: AtomicU32,
    shift: AtomicU32,
    /// `CLOCK_REALTIME` at the last update.
    _realtime: [AtomicU64; 2],
    seconds: AtomicU64,
    /// Nanoseconds, shifted.
    fraction: AtomicU64,
}

/// `VDSO_CLOCKMODE_TSC`.
const MODE_TSC: u32 = 1;
/// What the words of a time namespace other than the initial one begin with: a sequence that stays odd, and `VDSO_CLOCKMODE_TIMENS`.
const OTHER_NAMESPACE: u64 = (i32::MAX as u64) << 32 | 1;
/// The kernel's pages lie before the vDSO; so many of them are searched.
const PAGES: usize = 8;
/// Where the words begin in their page: since 6.13, and before.
const BEGINNINGS: [usize; 2] = [0, 128];
/// How far behind the head the rate is: without and with `max_cycles`.
const RATES: [usize; 2] = [24, 32];

/// The page's words; null where the counter is not used.
static HEAD: AtomicPtr<ClockHead> = AtomicPtr::new(core::ptr::null_mut());
/// When the words were found there were none of another time namespace.
static IS_OF_INITIAL_NAMESPACE: AtomicBool = AtomicBool::new(false);
/// How far behind the head the rate is, bytes.
static RATE_AT: AtomicUsize = AtomicUsize::new(0);

/// Nanoseconds of `CLOCK_MONOTONIC`, or `None` if the counter cannot be used, now or at all.
///
/// With `FENCED` the counter is read after all earlier instructions have completed; else it may be read a little
/// earlier, but not before an earlier reading that was fenced.
#[inline(always)]
pub fn read<const FENCED: bool>() -> Option<u64> {
    let address = HEAD.load(Relaxed);
    // SAFETY: null, or what `find` found; the kernel's page stays mapped.
    let head = unsafe { address.as_ref() }?;
    // SAFETY: as above; the rate lies within the same page.
    let rate = unsafe { &*address.byte_add(RATE_AT.load(Relaxed)).cast::<ClockRate>() };
    loop {
        // ORDERING: the kernel makes the sequence odd before it changes a word, and even, and another, afterwards.
        let sequence = head.sequence.load(Acquire);
        if sequence & 1 != 0 || head.mode.load(Relaxed) != MODE_TSC {
            return None;
        }
        if FENCED {
            // SAFETY: SSE2 belongs to x86-64.
            unsafe { _mm_lfence() };
        }
        // SAFETY: the instruction touches no memory. The kernel's mode says that the processor has the counter. The
        // program may forbid its threads to read it (`prctl(PR_SET_TSC)`, strict seccomp), so that it raises SIGSEGV, as
        // in the vDSO; before that, `stop` is called.
        let cycles = unsafe { _rdtsc() };
        // The kernel's last update may be later than a counter that was read without a fence.
        let passed = cycles.saturating_sub(head.cycle_last.load(Relaxed));
        let scaled =
            u128::from(passed) * u128::from(rate.multiplier.load(Relaxed)) + u128::from(rate.fraction.load(Relaxed));
        let nanoseconds = (scaled >> (rate.shift.load(Relaxed) & 63)) as u64;
        let time = rate.seconds.load(Relaxed).wrapping_mul(1_000_000_000).wrapping_add(nanoseconds);
        fence(Acquire);
        if head.sequence.load(Relaxed) == sequence {
            return Some(time);
        }
    }
}

/// Whether `read` returns what the vDSO returns; `vdso` reads its clock.
fn agrees(vdso: impl Fn() -> u64) -> bool {
    for _ in 0..8 {
        let before = vdso();
        if let Some(time) = read::<true>() {
            return before <= time && time <= vdso();
        }
    }
    // The counter cannot be used now. The vDSO is asked then, so that no time is wrong.
    true
}

/// Searches the pages before the vDSO, which is at `base`, for the kernel's words. In another time namespace than the initial one these
/// are there, too, and right where `CLOCK_MONOTONIC` is not shifted.
pub fn find(base: usize, vdso: impl Fn() -> u64) {
    // Some of the pages cannot be read, so the kernel is asked to.
    let words =
        |address: usize| sys::read_timespec(address as *const _).map(|pair| [pair.tv_sec as u64, pair.tv_nsec as u64]);
    let heads: [Option<(usize, u64)>; PAGES * BEGINNINGS.len()] = core::array::from_fn(|place| {
        let page = base.checked_sub((place / BEGINNINGS.len() + 1) * PAGE)?;
        let address = page + BEGINNINGS[place % BEGINNINGS.len()];
        words(address).map(|[first, _]| (address, first))
    });
    let is_initial = heads.iter().flatten().all(|(_, first)| *first != OTHER_NAMESPACE);
    IS_OF_INITIAL_NAMESPACE.store(is_initial, Relaxed);
    for (address, _) in heads.into_iter().flatten().filter(|(_, first)| first >> 32 == u64::from(MODE_TSC)) {
        for rate_at in RATES {
            if words(address + rate_at - 8).is_none_or(|[mask, rate]| mask != u64::MAX || !is_rate(rate)) {
                continue;
            }
            RATE_AT.store(rate_at, Relaxed);
            HEAD.store(address as *mut ClockHead, Relaxed);
            // Some readings may be impossible, but none may be wrong.
            if (0..64).all(|_| agrees(&vdso)) && read::<true>().is_some() {
                return;
            }
            stop();
        }
    }
}

/// Whether a word could be the multiplier (its lower half) and the shift.
fn is_rate(word: u64) -> bool {
    word as u32 != 0 && (1..=32).contains(&(word >> 32))
}

/// Compares the counter with the vDSO once more. If they differ, or if the page has no words for the counter any more, the
/// counter is not used from now on; `false` then.
///
/// The page has none when this process has got into another time namespace, and after a restore on another kernel.
pub fn check(vdso: impl Fn() -> u64) -> bool {
    // SAFETY: as in `read`.
    let Some(head) = (unsafe { HEAD.load(Relaxed).as_ref() }) else { return true };
    let is_right = head.mode.load(Relaxed) == MODE_TSC && agrees(vdso);
    if !is_right {
        stop();
    }
    is_right
}

/// The counter is not used any more.
pub fn stop() {
    HEAD.store(core::ptr::null_mut(), Relaxed);
}

pub fn is_used() -> bool {
    !HEAD.load(Relaxed).is_null()
}

/// Whether the counter is used by words that only the initial time namespace has.
pub fn is_of_initial_namespace() -> bool {
    is_used() && IS_OF_INITIAL_NAMESPACE.load(Relaxed)
}
