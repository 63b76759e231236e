//! Which functions `THR_TRACE_FUNC` chooses: those of libraries, and those with symbols, whose names begin with one of its texts.
//!
//! Each module (the program or a library) is searched once: those that are there at the start in the constructor, others when one of
//! their functions is called first. Then a call costs a look into a table, and where the function is not there, a question for its
//! module.
//!
//! Another library may be loaded at the address of one that was closed. So what is known of a module is forgotten when it was closed;
//! and from the beginning of the closing until then, while another thread may open the next library, modules are known by their names.

use core::ops::Range;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use crate::config::{CONFIG, wanted_functions};
use crate::glibc::loaded_libraries;
use crate::process_state::{self, PROCESS};
use crate::sys::diagnostics::{Warning, warn};
use crate::sys::elf::LinkMap;
use crate::sys::function_symbols::{SymbolSearch, TEXTS_MAX, base_of, exported_functions, file_of, object_at};
use crate::sys::{Hold, SetOnce, path, sleep, thread_id};
#[cfg(not(test))]
use crate::sys::{elf::objects, function_symbols::address_in};
use crate::unwind::{CLOSINGS, LoadedModule};

/// Where functions begin, by a hash; 0 for none, [`GONE`] for one of a module that was closed.
static CHOSEN: [AtomicU64; 1 << 15] = [const { AtomicU64::new(0) }; 1 << 15];
/// The modules that were searched.
static MODULES: [SearchedModule; 512] = [const { SearchedModule::new() }; 512];
/// Bits of the texts that were found anywhere.
static FOUND: AtomicU32 = AtomicU32::new(0);
/// How often what is known of a module has begun to be forgotten.
static FORGETTINGS: AtomicU32 = AtomicU32::new(0);
/// The right to search.
static SEARCHING: Hold = Hold::new();
static SEARCH: SetOnce<SymbolSearch> = SetOnce::new(SymbolSearch::new());
static PATH: SetOnce<[u8; path::PATH_MAX]> = SetOnce::new([0; path::PATH_MAX]);

/// How often a search by another thread is waited for, and how long each time, nanoseconds.
const WAITS: u32 = 1000;
const WAIT: i64 = 100_000;

struct SearchedModule {
    /// The module's identity, and in the lowest two bits what is chosen of it; 0 for none, [`GONE`] for one that was closed.
    word: AtomicU64,
    /// What the addresses of its file count from.
    base: AtomicUsize,
    /// Where the dynamic linker has its entry.
    link_map: AtomicUsize,
    /// A hash of its path.
    name: AtomicU64,
    /// Where it is mapped.
    range: [AtomicUsize; 2],
}

/// Functions of the module are chosen by their symbols, or all are.
const BY_SYMBOL: u32 = 1;
const ALL: u32 = 2;
const CHOICE_BITS: u64 = 3;
/// No function and no module. What is behind it in its table is searched nevertheless.
const GONE: u64 = 3;

impl SearchedModule {
    const fn new() -> SearchedModule {
        SearchedModule {
            word: AtomicU64::new(0),
            base: AtomicUsize::new(0),
            link_map: AtomicUsize::new(0),
            name: AtomicU64::new(0),
            range: [const { AtomicUsize::new(0) }; 2],
        }
    }

    fn is_in_use(&self) -> bool {
        ![0, GONE].contains(&self.word.load(Acquire))
    }

    fn range(&self) -> Range<usize> {
        self.range[0].load(Relaxed)..self.range[1].load(Relaxed)
    }

    fn overlaps(&self, range: &Range<usize>) -> bool {
        let own = self.range();
        own.start < range.end && range.start < own.end
    }

    /// Whether it is the module with this base and this path.
    fn is(&self, base: usize, path: &[u8]) -> bool {
        self.base.load(Relaxed) == base && self.name.load(Relaxed) == hash_of(path)
    }
}

fn hash_of(path: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    path.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Whether the function that begins at an address is recorded.
#[inline(always)]
pub fn is_chosen_function(address: usize) -> bool {
    !CONFIG.get().chooses_functions || is_named(address)
}

#[inline(never)]
fn is_named(address: usize) -> bool {
    loop {
        let forgettings = FORGETTINGS.load(Acquire);
        // When a closing has ended, the tables have nothing of what it has unmapped.
        let is_sure = CLOSINGS.number().is_some();
        let is_named = is_sure && is_in_table(address)
            || LoadedModule::at(address).is_some_and(|module| match choice_of(&module, is_sure) {
                ALL => true,
                BY_SYMBOL => is_in_table(address),
                _ => false,
            });
        // A thread that has closed the library before may forget what another has found of this one, which has taken its place, between
        // the look for the module and that for the function. Nothing is forgotten without end.
        if is_named || FORGETTINGS.load(Relaxed) == forgettings {
            return is_named;
        }
    }
}

/// What is chosen of a module, which is searched if it was not; 0 if it cannot be. Unless it `is_sure` that nothing is being closed,
/// what is known may be of another module.
fn choice_of(module: &LoadedModule, is_sure: bool) -> u32 {
    let known = searched(module);
    if let Some((_, choice)) = known
        && (is_sure || module.link_map == 0)
    {
        return choice;
    }
    // SAFETY: the module has code that is running, or is one of those at the start.
    let Some(object) = (unsafe { object_at(module.link_map) }) else { return 0 };
    match known {
        Some((place, choice)) if place.is(base_of(object), object.path()) => choice,
        _ => search(module, object),
    }
}

/// The places that a module may have.
fn places_of(module: &LoadedModule) -> impl Iterator<Item = &'static SearchedModule> {
    let start = (module.identity.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    (0..MODULES.len()).filter_map(move |step| MODULES.get((start + step) % MODULES.len()))
}

/// The place of a module that was searched, and what is chosen of it.
fn searched(module: &LoadedModule) -> Option<(&'static SearchedModule, u32)> {
    let words = places_of(module).map(|place| (place, place.word.load(Acquire))).take_while(|(_, word)| *word != 0);
    let mut own = words.filter(|(_, word)| *word != GONE && word & !CHOICE_BITS == module.identity & !CHOICE_BITS);
    own.next().map(|(place, word)| (place, (word & CHOICE_BITS) as u32))
}

/// Does something as the only thread that searches. A thread that finds itself searching, in a signal handler, gets `None`, as one
/// that has waited too long, or until `is_done`.
#[inline(always)]
fn alone<R>(is_done: impl Fn() -> bool, work: impl FnOnce() -> R) -> Option<R> {
    for _ in 0..WAITS {
        if is_done() {
            break;
        }
        if SEARCHING.take() {
            let result = work();
            SEARCHING.release();
            return Some(result);
        }
        if process_state::is_vfork_child() || SEARCHING.holder().is_some_and(|holder| holder.lwp() == thread_id()) {
            break;
        }
        sleep(WAIT);
    }
    None
}

/// Searches a module, unless another thread has.
fn search(module: &LoadedModule, object: &LinkMap) -> u32 {
    let (base, path) = (base_of(object), object.path());
    let known = || searched(module).filter(|(place, _)| place.is(base, path)).map(|(_, choice)| choice);
    let found = alone(
        || known().is_some() || process_state::is_vfork_child(),
        || {
            // The thread that had the right before may have searched it.
            if let Some(choice) = known() {
                return choice;
            }
            if let Some((other, _)) = searched(module) {
                forget(other);
            }
            let Some(place) = places_of(module).find(|place| !place.is_in_use()) else { return 0 };
            // SAFETY: this thread alone searches.
            let choice = unsafe { choose(object) };
            place.base.store(base, Relaxed);
            place.link_map.store(module.link_map, Relaxed);
            place.name.store(hash_of(path), Relaxed);
            place.range[0].store(module.range.start, Relaxed);
            place.range[1].store(module.range.end, Relaxed);
            place.word.store(module.identity & !CHOICE_BITS | u64::from(choice), Release);
            choice
        },
    );
    found.or_else(known).unwrap_or(0)
}

/// Forgets a module and its functions, and modules that are searched once more then: another thread may have opened a library where this
/// one was, and its functions be known by now. The caller is the only thread that searches.
fn forget(module: &SearchedModule) {
    let range = module.range();
    let others = MODULES.iter().filter(|other| other.is_in_use() && other.overlaps(&range));
    module.word.store(GONE, Release);
    others.for_each(|other| other.word.store(GONE, Release));
    // ORDERING: Release: who finds the word of before and a function's place empty sees that this has begun, by the Acquire of
    // `is_in_table`; who has seen this before does not find the word.
    FORGETTINGS.fetch_add(1, Release);
    CHOSEN
        .iter()
        .filter(|place| range.contains(&(place.load(Relaxed) as usize)))
        .for_each(|place| place.store(GONE, Release));
    // What is before a place that was never used ends no search too early. So the tables do not fill up.
    for pair in CHOSEN.windows(2).rev() {
        if let [place, next] = pair
            && place.load(Relaxed) == GONE
            && next.load(Relaxed) == 0
        {
            place.store(0, Release);
        }
    }
    for pair in MODULES.windows(2).rev() {
        if let [place, next] = pair
            && place.word.load(Relaxed) == GONE
            && next.word.load(Relaxed) == 0
        {
            place.word.store(0, Relaxed);
        }
    }
}

/// A thread has closed a library: forgets the modules that are not there any more. After that the closing may be taken for ended.
pub fn forget_closed_modules() {
    let mut is_there = [false; MODULES.len()];
    let is_forked = PROCESS.forked_from.load(Relaxed) != 0;
    let mut mark = |base: usize, path: &[u8]| {
        for (place, is_there) in MODULES.iter().zip(&mut is_there) {
            *is_there |= place.is_in_use() && place.is(base, path);
        }
    };
    // A forked child must not ask the linker.
    if CONFIG.get().chooses_functions && (is_forked || !loaded_libraries::visit(&mut mark)) {
        for (place, is_there) in MODULES.iter().zip(&mut is_there) {
            let module = LoadedModule::at(place.range[0].load(Relaxed));
            *is_there = module.is_some_and(|module| {
                searched(&module).is_some_and(|(own, _)| core::ptr::eq(own, place))
                    && place.link_map.load(Relaxed) == module.link_map
            });
        }
    }
    if CONFIG.get().chooses_functions {
        let gone = || MODULES.iter().zip(&is_there).filter(|(place, is_there)| place.is_in_use() && !**is_there);
        if gone().next().is_some() {
            alone(|| false, || gone().for_each(|(place, _)| forget(place)));
        }
    }
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
    let found = places(address).map(|place| place.load(Acquire)).find(|found| [0, address as u64].contains(found));
    found == Some(address as u64)
}

/// `false` if there are too many. The caller is the only thread that searches.
fn insert(address: usize) -> bool {
    if is_in_table(address) {
        return true;
    }
    // Some room stays, so that a search ends soon.
    let free = places(address).take(CHOSEN.len() / 8).find(|place| [0, GONE].contains(&place.load(Relaxed)));
    if let Some(place) = free {
        place.store(address as u64, Relaxed);
    }
    free.is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A module that was searched, of which the function at its beginning is chosen.
    fn searched_at(place: &'static SearchedModule, range: Range<usize>) {
        place.range[0].store(range.start, Relaxed);
        place.range[1].store(range.end, Relaxed);
        assert!(insert(range.start));
        place.word.store(range.start as u64 | u64::from(BY_SYMBOL), Release);
    }

    /// A thread that has closed a library forgets it when another one has opened, and searched, one at the same addresses.
    #[test]
    fn a_library_in_the_place_of_a_closed_one_is_searched_again() {
        let [closed, within, across, behind] = [&MODULES[0], &MODULES[1], &MODULES[2], &MODULES[3]];
        searched_at(closed, 0x10000..0x20000);
        searched_at(within, 0x14000..0x18000);
        searched_at(across, 0x1f000..0x24000);
        searched_at(behind, 0x20000..0x28000);
        forget(closed);
        assert!(![closed, within, across].iter().any(|module| module.is_in_use()));
        assert!(![0x10000, 0x14000, 0x1f000].into_iter().any(is_in_table));
        assert!(behind.is_in_use() && is_in_table(0x20000));
        forget(behind);
        assert!(!is_in_table(0x20000) && CHOSEN.iter().all(|place| place.load(Relaxed) == 0));
    }
}
