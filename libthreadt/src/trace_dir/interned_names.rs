//! The names that the program gives to its own events and to objects: lines `name ID TEXT` of trinfo.
//!
//! The ID is a hash of the text. So it is the same in every process, and whoever keeps it (the program does, where it calls)
//! may keep it across a fork, an exec and the unloading of the library that has the text. What is stored here only shows which
//! texts trinfo has to have: a process that makes a trinfo, such as a forked child, writes all of them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::info_file::{self, InfoWriter, nonzero_hash};
use crate::process_state::{self, PROCESS};
use crate::sys::thread_word;

/// The longest text, bytes; of a longer one only the beginning counts.
pub const TEXT_MAX: usize = 255;

const ID_BITS: u32 = 48;
/// How many names a process may have.
const NAMES: usize = 2048;
/// How many places a name may be at, from the one that its ID selects.
const PROBES: usize = 32;
/// The room for texts, in words of eight bytes. A text begins with a byte that has its length.
const WORDS: usize = 16 * 1024;

/// An ID in the upper bits, and one more than the index of its text's first word below them; 0 for none.
static TABLE: [AtomicU64; NAMES] = [const { AtomicU64::new(0) }; NAMES];
static TEXTS: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
static USED_WORDS: AtomicU32 = AtomicU32::new(0);
/// A bit for each place of the table whose line is in trinfo.
static WRITTEN: [AtomicU64; NAMES / 64] = [const { AtomicU64::new(0) }; NAMES / 64];
/// There was no room for a name.
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// The ID of a text; never 0.
pub fn id_of(text: &[u8]) -> u64 {
    let hash = nonzero_hash(text.get(..TEXT_MAX).unwrap_or(text));
    ((hash ^ hash >> ID_BITS) & ((1 << ID_BITS) - 1)).max(1)
}

fn places(id: u64) -> impl Iterator<Item = (usize, &'static AtomicU64)> {
    (0..PROBES).filter_map(move |step| {
        let place = (id as usize).wrapping_add(step) % NAMES;
        TABLE.get(place).map(|word| (place, word))
    })
}

/// Whether the text of this ID is stored.
#[inline]
pub fn is_stored(id: u64) -> bool {
    // ORDERING: Relaxed; the text is not read here.
    places(id)
        .map(|(_, word)| word.load(Relaxed))
        .take_while(|&word| word != 0)
        .any(|word| word >> (64 - ID_BITS) == id)
}

/// Stores a text, unless there is no room.
#[cold]
#[inline(never)]
pub fn store(id: u64, text: &[u8]) {
    let text = text.get(..TEXT_MAX).unwrap_or(text);
    let words = (text.len() + 1).div_ceil(8);
    let begin = USED_WORDS.fetch_add(words as u32, Relaxed) as usize;
    let Some(room) = TEXTS.get(begin..begin.saturating_add(words)) else {
        USED_WORDS.store(WORDS as u32, Relaxed);
        return IS_FULL.store(true, Relaxed);
    };
    let mut bytes = core::iter::once(text.len() as u8).chain(text.iter().copied());
    for word in room {
        word.store(u64::from_le_bytes(core::array::from_fn(|_| bytes.next().unwrap_or(0))), Relaxed);
    }
    let stored = id << (64 - ID_BITS) | (begin as u64 + 1);
    for (_, word) in places(id) {
        // ORDERING: Release pairs with the Acquire in `write`: who finds the ID finds the text.
        match word.compare_exchange(0, stored, Release, Relaxed) {
            // A signal handler or another thread was faster.
            Err(other) if other >> (64 - ID_BITS) == id => return,
            Err(_) => {}
            Ok(_) => return,
        }
    }
    IS_FULL.store(true, Relaxed);
}

/// Writes all names, to a trinfo that has none.
pub fn write_all(writer: &mut InfoWriter) {
    forget_written();
    write_new(writer);
}

/// Whether no name has been stored. The table, of several pages, need not be looked at then.
fn is_empty() -> bool {
    USED_WORDS.load(Relaxed) == 0
}

/// Writes the names that trinfo does not have yet.
pub fn write_new(writer: &mut InfoWriter) {
    if is_empty() {
        return;
    }
    for (index, word) in TABLE.iter().enumerate() {
        let word = word.load(Acquire);
        let (Some(written), bit) = (WRITTEN.get(index / 64), 1 << (index % 64)) else { continue };
        if word == 0 || written.load(Relaxed) & bit != 0 {
            continue;
        }
        writer.raw(b"name ");
        writer.hex(word >> (64 - ID_BITS));
        writer.raw(b" ");
        let begin = (word & ((1 << (64 - ID_BITS)) - 1)) as usize;
        let words = TEXTS.get(begin.saturating_sub(1)..).unwrap_or_default();
        let mut bytes = words.iter().flat_map(|word| word.load(Relaxed).to_le_bytes());
        let length = bytes.next().unwrap_or(0);
        bytes.take(length.into()).for_each(|byte| writer.escaped(&[byte]));
        writer.raw(b"\n");
        written.fetch_or(bit, Relaxed);
    }
    if !writer.flush() {
        // Which of them are there is not known: all are written again.
        forget_written();
    }
}

/// At the process's end: writes the names that are not there yet, and whether there are more.
pub fn write_last(writer: &mut InfoWriter) {
    write_new(writer);
    if IS_FULL.load(Relaxed) {
        writer.note(&[b"some names of the program's own events are not here: it has too many"]);
    }
}

fn forget_written() {
    // A word that is 0 is not written to: the kernel would copy its page for a forked child.
    WRITTEN.iter().filter(|bits| bits.load(Relaxed) != 0).for_each(|bits| bits.store(0, Relaxed));
}

/// Whether [`write_last`] would write something.
pub fn has_last() -> bool {
    let is_new = |(place, word): (usize, &AtomicU64)| {
        let written = WRITTEN.get(place / 64).map_or(0, |bits| bits.load(Relaxed));
        word.load(Relaxed) != 0 && written >> (place % 64) & 1 == 0
    };
    IS_FULL.load(Relaxed) || !is_empty() && TABLE.iter().enumerate().any(is_new)
}

/// Writes new names now, if this process has files and this thread may write.
#[cold]
#[inline(never)]
pub fn append_new() {
    let may_write = PROCESS.files.is_done()
        && PROCESS.changing_user.load(Relaxed) == 0
        && process_state::sandboxed().is_none()
        && !process_state::is_vfork_child()
        && !thread_word::is_muted();
    if may_write {
        info_file::append(write_new);
    }
}
