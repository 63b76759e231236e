//! The tr files of the process: which file each is, and how far it is given to writers.
//!
//! The table is private memory. The trbuf has a copy of the ends, for readers.

use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

use spec::buffer::{FileEntry, PAGE};
use spec::names::LWP_MASK;

use super::slot::Slot;
use super::slot_table::{HEADERS, for_each_slot};
use crate::process_state::{GENERATIONS, WorkingProcess, of_generation};
use crate::sys::{self, FileIdentity, Result};

/// The state of the tr file with one `yyy`. Each entry has a cache line of its own, because threads that are made one
/// after the other have neighbouring entries.
#[repr(C, align(64))]
pub struct RecordFileEntry {
    /// The file's inode number; 0 before it is made.
    inode: AtomicU64,
    /// The device that holds the file.
    device: AtomicU64,
    /// The user whose it was when it was made.
    owner: AtomicU32,
    /// Bytes of the file that are written or given to a writer.
    end: AtomicU64,
    /// The copy for readers.
    published: AtomicPtr<FileEntry>,
    /// Whose slots take ranges of this file ([`super::file_users`]).
    pub(super) users: AtomicU64,
}

/// Entries of the table, one for each `yyy`.
const ENTRIES: usize = LWP_MASK as usize + 1;
/// Bytes of the table.
pub const TABLE_SIZE: usize = ENTRIES * size_of::<RecordFileEntry>();

/// The tables, by generation; null without a trbuf.
#[unsafe(link_section = "inherited")]
static TABLES: [AtomicPtr<RecordFileEntry>; GENERATIONS] = [const { AtomicPtr::new(null_mut()) }; GENERATIONS];
/// By generation: the files may be there already, since this process made them before an exec.
#[unsafe(link_section = "inherited")]
static MADE_BEFORE_EXEC: [AtomicBool; GENERATIONS] = [const { AtomicBool::new(false) }; GENERATIONS];

/// Makes the table of a generation of this process's files, which may be there if it `has_executed` another program before. `ECHILD` in
/// a child of `process` that returns into this: it may have a table with files of its own.
pub fn make(generation: usize, has_executed: bool, process: WorkingProcess) -> Result {
    let table = sys::map_for_process(TABLE_SIZE)?;
    process.check()?;
    of_generation(&MADE_BEFORE_EXEC, generation).store(has_executed, Relaxed);
    of_generation(&TABLES, generation).store(table.cast(), Release);
    Ok(())
}

/// Forgets the tables in a forked child, and returns them, or null.
pub fn forget() -> [*mut u8; GENERATIONS] {
    TABLES.each_ref().map(|table| table.swap(null_mut(), Relaxed).cast())
}

/// The entry of the file for this LWP, to which the slot's records go.
pub fn file_entry(slot: Slot, lwp: u32) -> &'static RecordFileEntry {
    /// For a forked child that returns into a record of its parent's.
    static NONE: RecordFileEntry = RecordFileEntry::new();
    let generation = usize::from(slot.generation.load(Relaxed));
    let table = of_generation(&TABLES, generation).load(Acquire);
    let header = of_generation(&HEADERS, generation).load(Acquire);
    if table.is_null() || header.is_null() {
        return &NONE;
    }
    let index = (lwp & LWP_MASK) as usize;
    // SAFETY: within the table, which is mapped for good; zeros are valid entries.
    let entry = unsafe { &*table.add(index) };
    // Behind the header's page the trbuf has an entry for each `yyy`, too.
    entry.published.store(header.wrapping_add(PAGE).cast::<FileEntry>().wrapping_add(index), Relaxed);
    entry
}

/// Whether the program has written records to files that are still its own, or the one before an exec has.
pub fn has_records() -> bool {
    let mut is_used = false;
    for_each_slot(|slot| is_used |= slot.state.load(Relaxed) != 0);
    let header = of_generation(&HEADERS, 0).load(Acquire);
    if is_used || header.is_null() || !of_generation(&MADE_BEFORE_EXEC, 0).load(Relaxed) {
        return is_used;
    }
    // SAFETY: the header is mapped for good, with its entries, in which every pattern of bytes is valid.
    let entries = unsafe { slice::from_raw_parts(header.add(PAGE).cast::<FileEntry>(), ENTRIES) };
    entries.iter().any(|entry| entry.end.load(Relaxed) != 0)
}

impl RecordFileEntry {
    pub const fn new() -> RecordFileEntry {
        RecordFileEntry {
            inode: AtomicU64::new(0),
            device: AtomicU64::new(0),
            owner: AtomicU32::new(0),
            end: AtomicU64::new(0),
            published: AtomicPtr::new(null_mut()),
            users: AtomicU64::new(0),
        }
    }

    /// The file, once this process has made it or found it.
    pub fn identity(&self) -> Option<FileIdentity> {
        // ORDERING: Acquire pairs with the Release in `note`: device and owner belong to the inode.
        let inode = self.inode.load(Acquire);
        let others = || (self.device.load(Relaxed), self.owner.load(Relaxed));
        (inode != 0).then(others).map(|(device, owner)| FileIdentity { device, inode, owner })
    }

    /// Notes that the file is this one.
    pub fn note(&self, identity: FileIdentity) {
        self.device.store(identity.device, Relaxed);
        self.owner.store(identity.owner, Relaxed);
        self.inode.store(identity.inode, Release);
    }

    /// Whether a file of `size` bytes that has the name already, and that nobody has noted, is this process's: one that
    /// another thread has just made, or one from before an exec.
    pub fn may_be(&self, size: u64) -> bool {
        let made_before = self.generation_from_before_exec().is_some();
        if made_before {
            self.at_least(size);
        }
        size == 0 || made_before
    }

    /// The generation of files to which this entry belongs, if the file may be there from before an exec.
    pub fn generation_from_before_exec(&self) -> Option<usize> {
        self.generation().filter(|generation| of_generation(&MADE_BEFORE_EXEC, *generation).load(Relaxed))
    }

    /// The generation of files to which this entry belongs.
    pub fn generation(&self) -> Option<usize> {
        let has_this = |generation: &usize| {
            let table = of_generation(&TABLES, *generation).load(Acquire);
            !table.is_null() && (table..table.wrapping_add(ENTRIES)).contains(&(&raw const *self).cast_mut())
        };
        (0..GENERATIONS).find(has_this)
    }

    /// Notes that the file has been removed.
    pub fn note_removal(&self, identity: FileIdentity) {
        if self.inode.compare_exchange(identity.inode, 0, AcqRel, Relaxed).is_ok() {
            self.set_end(0);
        }
    }

    /// Bytes of the file that are written or given to a writer.
    pub fn end(&self) -> u64 {
        self.end.load(Acquire)
    }

    /// Takes `length` bytes for a writer, and returns where they begin.
    pub fn take(&self, length: u64) -> u64 {
        let at = self.end.fetch_add(length, AcqRel);
        self.publish(at, at.saturating_add(length));
        at
    }

    /// Takes `length` bytes for a writer at the end `at`, unless it has changed.
    pub fn take_at(&self, at: u64, length: u64) -> bool {
        let end = at.saturating_add(length);
        let taken = self.end.compare_exchange(at, end, AcqRel, Relaxed).is_ok();
        if taken {
            self.publish(at, end);
        }
        taken
    }

    /// Changes the end, unless it has changed meanwhile.
    pub fn change_end(&self, from: u64, to: u64) -> bool {
        let changed = self.end.compare_exchange(from, to, AcqRel, Relaxed).is_ok();
        if changed && let Some(published) = self.published() {
            published.end.store(to, Release);
        }
        changed
    }

    /// Notes that so many bytes are given to writers, or more.
    pub fn at_least(&self, end: u64) {
        let before = self.end.fetch_max(end, AcqRel);
        self.publish(before, end);
    }

    fn set_end(&self, end: u64) {
        self.end.store(end, Relaxed);
        if let Some(published) = self.published() {
            published.end.store(end, Release);
        }
    }

    /// Empties the copy for readers: nobody has the trbuf any more.
    pub fn forget_published(&self) {
        if let Some(published) = self.published() {
            published.end.store(0, Release);
        }
    }

    /// Lets readers know of an end, which was `before` until now. Another thread may have published a greater one.
    fn publish(&self, before: u64, end: u64) {
        let Some(published) = self.published() else { return };
        // First, as that is one page fault where the page of the trbuf has not been used yet; `fetch_max` reads first, and takes two.
        if before != 0 || published.end.compare_exchange(0, end, AcqRel, Relaxed).is_err() {
            published.end.fetch_max(end, AcqRel);
        }
    }

    fn published(&self) -> Option<&'static FileEntry> {
        // SAFETY: null, or in the mapped header, where every pattern of bytes is valid.
        unsafe { self.published.load(Relaxed).as_ref() }
    }
}
