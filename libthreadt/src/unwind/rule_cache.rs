//! The rules of addresses that were met before, for all threads of the process.
//!
//! A table without locks. An entry is two words of a rule, and their exclusive or with the key, so that a reader finds an entry
//! that another thread, or a signal handler, is changing not equal to the key that it wants. The key has the module's place,
//! and changes when modules were closed: another one may be loaded at the address of a closed one. While one is being closed, there is
//! no key (`closings`). A rule that is wrong nevertheless leads to a wrong frame, and to no access outside the stack.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::closings::CLOSINGS;
use super::loaded_module::LoadedModule;
use super::rule::PackedRule;

/// Entries: call sites that wait are few.
const ENTRIES: usize = 4096;

#[repr(C, align(32))]
struct CachedRule {
    check: AtomicU64,
    words: [AtomicU64; 2],
    caller: LikelyCaller,
}

static CACHE: [CachedRule; ENTRIES] = [const {
    CachedRule { check: AtomicU64::new(0), words: [AtomicU64::new(0), AtomicU64::new(0)], caller: LikelyCaller::new() }
}; ENTRIES];

/// The return address that the first frame with a rule had; 0 before. Most frames have the same one.
pub struct LikelyCaller(AtomicU64);

impl LikelyCaller {
    pub const fn new() -> LikelyCaller {
        LikelyCaller(AtomicU64::new(0))
    }

    /// The return address that has been found on the stack.
    ///
    /// If it is the noted one, that is what is returned: the processor, which guesses that they are equal, goes on to the
    /// caller's rule before it has the stack's word, whose address depends on the rule of this frame.
    #[inline(always)]
    pub fn confirmed(&self, found: usize) -> usize {
        // ORDERING: Relaxed, here and below; whatever is there is only compared.
        let noted = self.0.load(Relaxed) as usize;
        let mut guess = noted;
        // SAFETY: nothing is executed. The compiler no longer knows that the two are equal, so it cannot return `found` for `guess`.
        unsafe { asm!("/* {0} */", inout(reg) guess, options(pure, nomem, nostack, preserves_flags)) };
        if noted == found {
            return guess;
        }
        // SAFETY: nothing is executed. What has an effect for the compiler is reached by a jump, which the processor guesses, and
        // not replaced by a conditional move.
        unsafe { asm!("", options(nomem, nostack, preserves_flags)) };
        if noted == 0 {
            self.0.store(found as u64, Relaxed);
        }
        found
    }
}

/// What the keys of one module's addresses have in common.
#[derive(Clone, Copy, Debug)]
pub struct ModuleKey(u64);

impl ModuleKey {
    /// The key of a module that has a frame on the stack, and so stays loaded; `None` while a module is being closed. A rule is to be
    /// cached by a key that was there before it was read.
    #[inline(always)]
    pub fn of(module: &LoadedModule) -> Option<ModuleKey> {
        Some(ModuleKey(module.identity ^ CLOSINGS.number()?))
    }

    #[inline(always)]
    fn with(self, return_address: usize) -> u64 {
        (return_address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.0
    }
}

/// The place of an address. Its low bits are as good as any: code that calls may end at any byte.
#[inline(always)]
fn place_of(return_address: usize) -> &'static CachedRule {
    &CACHE[return_address & (ENTRIES - 1)]
}

/// The rule of the code before an address, and its usual caller, if the cache has it.
#[inline(always)]
pub fn cached_rule(module: ModuleKey, return_address: usize) -> Option<(PackedRule, &'static LikelyCaller)> {
    let entry = place_of(return_address);
    // ORDERING: Relaxed; words that do not belong together do not give the key.
    let words = entry.words.each_ref().map(|word| word.load(Relaxed));
    let is_its_own = entry.check.load(Relaxed) ^ words[0] ^ words[1] == module.with(return_address);
    is_its_own.then_some((PackedRule(words), &entry.caller))
}

/// Puts the rule of the code before an address into the cache, in the place of another one.
pub fn cache_rule(module: ModuleKey, return_address: usize, PackedRule(words): PackedRule) {
    let entry = place_of(return_address);
    entry.check.store(module.with(return_address) ^ words[0] ^ words[1], Relaxed);
    entry.words[0].store(words[0], Relaxed);
    entry.words[1].store(words[1], Relaxed);
    entry.caller.0.store(0, Relaxed);
}
