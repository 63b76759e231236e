//! The rules of addresses that were met before, for all threads of the process.
//!
//! A table without locks. An entry is two words of a rule, and their exclusive or with the key, so that a reader finds an entry
//! that another thread, or a signal handler, is changing not equal to the key that it wants. The key has the module's place,
//! and changes when modules were closed: another one may be loaded at the address of a closed one. A rule that is wrong nevertheless
//! leads to a wrong frame, and to no access outside the stack.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::loaded_module::LoadedModule;
use super::rule::PackedRule;

/// Entries: call sites that wait are few.
const ENTRIES: usize = 4096;

struct CachedRule {
    check: AtomicU64,
    words: [AtomicU64; 2],
}

static CACHE: [CachedRule; ENTRIES] =
    [const { CachedRule { check: AtomicU64::new(0), words: [AtomicU64::new(0), AtomicU64::new(0)] } }; ENTRIES];

/// Changes when modules are closed: others may be loaded where they were, and look alike.
static CLOSED_MODULES: AtomicU64 = AtomicU64::new(0);

/// When modules are closed: lets the rules that are known be those of other modules.
pub fn forget_rules() {
    CLOSED_MODULES.fetch_add(1, Relaxed);
}

/// The entry for an address in a module, and its key.
fn entry_of(module: &LoadedModule, address: usize) -> (&'static CachedRule, u64) {
    // ORDERING: Relaxed; a program that calls a module's code has waited until the linker had loaded it.
    let key = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ module.identity ^ CLOSED_MODULES.load(Relaxed);
    (&CACHE[(key >> 52) as usize & (ENTRIES - 1)], key)
}

/// The rule of an address, if the cache has it.
#[inline]
pub fn cached_rule(module: &LoadedModule, address: usize) -> Option<PackedRule> {
    let (entry, key) = entry_of(module, address);
    // ORDERING: Relaxed; words that do not belong together do not give the key.
    let words = entry.words.each_ref().map(|word| word.load(Relaxed));
    (entry.check.load(Relaxed) ^ words[0] ^ words[1] == key).then_some(PackedRule(words))
}

/// Puts the rule of an address into the cache, in the place of another one.
pub fn cache_rule(module: &LoadedModule, address: usize, PackedRule(words): PackedRule) {
    let (entry, key) = entry_of(module, address);
    entry.check.store(key ^ words[0] ^ words[1], Relaxed);
    entry.words[0].store(words[0], Relaxed);
    entry.words[1].store(words[1], Relaxed);
}
