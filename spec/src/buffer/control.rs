//! What users change in a running process: words in the header of its trbuf, which `trace-cat set` writes and the process reads.
//!
//! There are two sets of settings. [`ControlWords::changes`] says which one is in force: the one with its parity. Whoever changes
//! something holds a lock of the file (`flock`), fills the other set and then adds 1 to `changes`. A reader that finds
//! `changes` as it was before has read a set in one state. The words only choose what is recorded: any value is valid, and
//! what is too large is cut.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};

use crate::EventSet;

/// In [`ControlWords::version`] of a process that follows the words.
pub const CONTROL_VERSION: u32 = 1;
/// The most frames that are recorded of a stack.
pub const STACK_FRAMES_MAX: u32 = 64;

/// How often settings are read that change meanwhile.
const READS_MAX: u32 = 8;

/// The words; zeros are those of a process that nobody can change.
#[derive(Debug, Default)]
#[repr(C)]
pub struct ControlWords {
    /// [`CONTROL_VERSION`] while the process follows these words.
    pub version: AtomicU32,
    /// How often something was changed; 0 only while nothing was.
    pub changes: AtomicU32,
    /// Records that the process has lost.
    pub lost: AtomicU64,
    /// By the parity of `changes`.
    pub settings: [SettingsWords; 2],
    /// Records of threads that had no slot, which no slot and no trace_lost record counts yet.
    pub lost_without_slot: AtomicU64,
    /// The errno of the last one's cause.
    pub without_slot_cause: AtomicU32,
    /// Threads that had ended and whose rings others have reused, in all programs that the process has executed.
    pub reused_rings: AtomicU64,
}

/// [`Settings`], in words.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SettingsWords {
    events: [AtomicU64; 3],
    generation: AtomicU32,
    flushes: AtomicU32,
    stack_frames: AtomicU32,
    only_blocked: AtomicU32,
    detail: AtomicU32,
    paused: AtomicU32,
}

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// These events, unless `paused`.
    pub events: EventSet,
    /// How often these settings were changed; threads record it.
    pub generation: u32,
    /// How often threads have been asked to write their buffers.
    pub flushes: u32,
    /// As `THR_TRACE_STACK`; 0 for none.
    pub stack_frames: u32,
    /// As `THR_TRACE_LEVEL=blocked`.
    pub only_blocked: bool,
    /// As `THR_TRACE_DETAIL`.
    pub detail: bool,
    /// Nothing is recorded.
    pub paused: bool,
}

impl SettingsWords {
    const fn new() -> SettingsWords {
        SettingsWords {
            events: [const { AtomicU64::new(0) }; 3],
            generation: AtomicU32::new(0),
            flushes: AtomicU32::new(0),
            stack_frames: AtomicU32::new(0),
            only_blocked: AtomicU32::new(0),
            detail: AtomicU32::new(0),
            paused: AtomicU32::new(0),
        }
    }

    /// Stores settings, which are not in force yet.
    pub fn store(&self, settings: &Settings) {
        self.events.iter().zip(settings.events.words()).for_each(|(word, value)| word.store(value, Relaxed));
        self.generation.store(settings.generation, Relaxed);
        self.flushes.store(settings.flushes, Relaxed);
        self.stack_frames.store(settings.stack_frames, Relaxed);
        self.only_blocked.store(settings.only_blocked.into(), Relaxed);
        self.detail.store(settings.detail.into(), Relaxed);
        self.paused.store(settings.paused.into(), Relaxed);
    }

    fn load(&self) -> Settings {
        let [first, second, categories] = &self.events;
        Settings {
            events: EventSet::from_words([first.load(Relaxed), second.load(Relaxed), categories.load(Relaxed)]),
            generation: self.generation.load(Relaxed),
            flushes: self.flushes.load(Relaxed),
            stack_frames: self.stack_frames.load(Relaxed).min(STACK_FRAMES_MAX),
            only_blocked: self.only_blocked.load(Relaxed) != 0,
            detail: self.detail.load(Relaxed) != 0,
            paused: self.paused.load(Relaxed) != 0,
        }
    }
}

impl ControlWords {
    /// The words of a process of which nothing can be or was changed.
    pub const fn new() -> ControlWords {
        ControlWords {
            version: AtomicU32::new(0),
            changes: AtomicU32::new(0),
            lost: AtomicU64::new(0),
            settings: [const { SettingsWords::new() }; 2],
            lost_without_slot: AtomicU64::new(0),
            without_slot_cause: AtomicU32::new(0),
            reused_rings: AtomicU64::new(0),
        }
    }

    /// The settings that are in force, and the number of the change by which they are; `None` while they change all the time.
    pub fn current(&self) -> Option<(u32, Settings)> {
        for _ in 0..READS_MAX {
            // ORDERING: Acquire pairs with the Release in `change`; the fence keeps the second load behind those of the settings.
            let changes = self.changes.load(Acquire);
            let settings = self.settings[changes as usize & 1].load();
            fence(Acquire);
            if self.changes.load(Relaxed) == changes {
                return Some((changes, settings));
            }
        }
        None
    }

    /// Puts settings in force. The caller has the lock of the file.
    pub fn change(&self, settings: &Settings) {
        let mut next = self.changes.load(Relaxed).wrapping_add(1);
        if next == 0 {
            next = 2;
        }
        // ORDERING: the fence keeps the stores behind the last change's, for readers that still read that set.
        fence(Release);
        self.settings[next as usize & 1].store(settings);
        // OBSERVABLE: the settings are in force. ORDERING: Release, see `current`.
        self.changes.store(next, Release);
    }

    /// Takes over what another process, or this one in another file, asks for in its words.
    pub fn copy_from(&self, other: &ControlWords) {
        self.changes.store(other.changes.load(Relaxed), Relaxed);
        for (own, other) in self.settings.iter().zip(&other.settings) {
            own.store(&other.load());
        }
    }

    /// Goes on with the counts that this process has in other words.
    pub fn take_over_counts(&self, other: &ControlWords) {
        self.lost.fetch_add(other.lost.load(Relaxed), Relaxed);
        self.reused_rings.fetch_add(other.reused_rings.load(Relaxed), Relaxed);
        let records = other.lost_without_slot.swap(0, Relaxed);
        if records != 0 {
            self.without_slot_cause.store(other.without_slot_cause.load(Relaxed), Relaxed);
            self.lost_without_slot.fetch_add(records, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_in_force_at_once() {
        let words = ControlWords::new();
        let settings = Settings {
            events: EventSet::parse(b"mutex:cond_wait", &mut |_| panic!()),
            generation: 3,
            flushes: 2,
            stack_frames: 7,
            only_blocked: true,
            detail: false,
            paused: true,
        };
        words.change(&settings);
        assert_eq!(words.current(), Some((1, settings.clone())));
        let wild = Settings { stack_frames: u32::MAX, ..settings.clone() };
        words.change(&wild);
        assert_eq!(words.current(), Some((2, Settings { stack_frames: 64, ..settings.clone() })));
        words.changes.store(u32::MAX, Relaxed);
        words.change(&settings);
        assert_eq!(words.current(), Some((2, settings)), "0 stands for no change");
    }
}
