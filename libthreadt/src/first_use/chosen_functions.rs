//! Which functions `THR_TRACE_FUNC` chooses: those of libraries, and those with symbols, whose names begin with one of its texts.
//!
//! Each module (the program or a library) is searched once: those that are there at the start in the constructor, others when one of
//! their functions is called first. Then a call costs a look into a table, and where the function is not there, a question for its
//! module.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::config::{CONFIG, wanted_functions};
use crate::process_state;
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::elf::LinkMap;
use crate::sys::function_symbols::{SymbolSearch, TEXTS_MAX, base_of, exported_functions, file_of, object_at};
use crate::sys::{Hold, SetOnce, path, sleep, thread_id};
#[cfg(not(test))]
use crate::sys::{elf::objects, function_symbols::address_in};
use crate::unwind::LoadedModule;

/// Where functions begin, by a hash; 0 for none.
static CHOSEN: [AtomicU64; 1 << 15] = [const { AtomicU64::new(0) }; 1 << 15];
/// The modules that were searched.
static MODULES: [SearchedModule; 512] = [const { SearchedModule::new() }; 512];
/// Bits of the texts that were found anywhere.
static FOUND: AtomicU32 = AtomicU32::new(0);
/// The right to search.
static SEARCHING: Hold = Hold::new();
static SEARCH: SetOnce<SymbolSearch> = SetOnce::new(SymbolSearch::new());
static PATH: SetOnce<[u8; path::PATH_MAX]> = SetOnce::new([0; path::PATH_MAX]);

/// How often a search by another thread is waited for, and how long each time, nanoseconds.
const WAITS: u32 = 1000;
const WAIT: i64 = 100_000;

struct SearchedModule {
    /// 0 for none.
    identity: AtomicU64,
    /// 0 until it has been searched.
    choice: AtomicU32,
}

/// Functions of the module are chosen by their symbols, or all are.
const BY_SYMBOL: u32 = 1;
const ALL: u32 = 2;

impl SearchedModule {
    const fn new() -> SearchedModule {
        SearchedModule { identity: AtomicU64::new(0), choice: AtomicU32::new(0) }
    }
}

/// Whether the function that begins at an address is recorded.
#[inline(always)]
pub fn is_chosen_function(address: usize) -> bool {
    !CONFIG.get().chooses_functions || is_named(address)
}

#[inline(never)]
fn is_named(address: usize) -> bool {
    is_in_table(address)
        || LoadedModule::at(address).is_some_and(|module| match choice_of(&module) {
            ALL => true,
            BY_SYMBOL => is_in_table(address),
            _ => false,
        })
}

/// What is chosen of a module, which is searched if it was not; 0 if it cannot be.
fn choice_of(module: &LoadedModule) -> u32 {
    let known = searched(module.identity).map_or(0, |place| place.choice.load(Acquire));
    if known != 0 {
        return known;
    }
    // SAFETY: the module has code that is running, or is one of those at the start.
    let Some(object) = (unsafe { object_at(module.link_map) }) else { return 0 };
    search(module, object)
}

/// The place of a module, or that which it takes.
fn searched(identity: u64) -> Option<&'static SearchedModule> {
    let start = (identity.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    (0..MODULES.len()).filter_map(|step| MODULES.get((start + step) % MODULES.len())).find(|place| {
        match place.identity.compare_exchange(0, identity, Relaxed, Relaxed) {
            Ok(_) => true,
            Err(found) => found == identity,
        }
    })
}

/// Searches a module. A thread that finds itself searching, in a signal handler, gets 0.
fn search(module: &LoadedModule, object: &LinkMap) -> u32 {
    let Some(place) = searched(module.identity) else { return 0 };
    for _ in 0..WAITS {
        if place.choice.load(Acquire) != 0 || process_state::is_vfork_child() {
            break;
        }
        if SEARCHING.take() {
            // SAFETY: this thread alone searches.
            let choice = unsafe { choose(object) };
            place.choice.store(choice, Release);
            SEARCHING.release();
            return choice;
        }
        if SEARCHING.holder().is_some_and(|holder| holder.lwp() == thread_id()) {
            break;
        }
        sleep(WAIT);
    }
    place.choice.load(Acquire)
}

/// Notes the functions of a module that are chosen.
///
/// # Safety
/// One thread may do this at a time.
unsafe fn choose(object: &LinkMap) -> u32 {
    // SAFETY: the caller's.
    let (search, buffer) = unsafe { (SEARCH.get_mut(), PATH.get_mut()) };
    let mut name = [0; 256];
    let name = match object.base_name() {
        b"" => path::read_link(c"/proc/self/exe", &mut name)
            .ok()
            .and_then(|length| name.get(..length))
            .map(path::base_name),
        name => Some(name),
    };
    for (index, text) in wanted_functions().enumerate() {
        if name.is_some_and(|name| name.starts_with(text)) {
            FOUND.fetch_or(1 << (index % TEXTS_MAX), Relaxed);
            return ALL;
        }
    }
    let mut has_room = true;
    let mut take = |value: usize, bits: u32| {
        FOUND.fetch_or(bits, Relaxed);
        has_room &= insert(base_of(object).wrapping_add(value));
    };
    match search.search(file_of(object, buffer), &mut wanted_functions(), &mut take) {
        Ok(is_complete) => has_room &= is_complete,
        Err(_) => {
            for (index, text) in wanted_functions().take(TEXTS_MAX).enumerate() {
                exported_functions(object, text, &mut |value| take(value, 1 << index));
            }
        }
    }
    if !has_room {
        warn(
            Warning::Functions,
            &[b"THR_TRACE_FUNC: too many functions of ", name.unwrap_or(b"?"), b", some are left out"],
        );
    }
    BY_SYMBOL
}

fn places(address: usize) -> impl Iterator<Item = &'static AtomicU64> {
    let start = ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..CHOSEN.len()).filter_map(move |step| CHOSEN.get((start + step) % CHOSEN.len()))
}

fn is_in_table(address: usize) -> bool {
    let found = places(address).map(|place| place.load(Relaxed)).find(|found| [0, address as u64].contains(found));
    found == Some(address as u64)
}

/// `false` if there are too many.
fn insert(address: usize) -> bool {
    // Some room stays, so that a search ends soon.
    places(address).take(CHOSEN.len() / 8).any(|place| {
        match place.compare_exchange(0, address as u64, Relaxed, Relaxed) {
            Ok(_) => true,
            Err(found) => found == address as u64,
        }
    })
}

/// In the constructor: searches what is loaded, and reports what is not there.
#[cfg(not(test))]
pub fn choose_functions() {
    if !CONFIG.get().chooses_functions {
        return;
    }
    for object in objects() {
        if let Some(module) = LoadedModule::at(address_in(object)) {
            search(&module, object);
        }
    }
    for (index, text) in wanted_functions().enumerate() {
        if index >= TEXTS_MAX {
            warn(Warning::Functions, &[b"THR_TRACE_FUNC: more than 32 names, '", text, b"' is ignored"]);
        } else if FOUND.load(Relaxed) >> index & 1 == 0 {
            warn(
                Warning::Functions,
                &[b"THR_TRACE_FUNC: no library and no function that is loaded so far begins with '", text, b"'"],
            );
        }
    }
}
