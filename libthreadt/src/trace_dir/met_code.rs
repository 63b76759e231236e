//! Code that is on a stack and in no module of the dynamic linker's: of just-in-time compilers, and in files that the program maps by
//! itself. Which mappings had it when trinfo got them.
//!
//! What is mapped at an address may be another file than before, and no hook shows that. The kernel is asked for the file of a mapping,
//! each time that a stack has it. Memory without a file is not asked for: its code is made anew all the time, and has no names.

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::info_file::{hex_number, nonzero_hash};
use crate::sys::{Errno, path};

/// Where the mapping begins and ends, and a hash of its file's path; 0 if it has none.
static MAPPINGS: [[AtomicU64; 3]; 64] = [const { [const { AtomicU64::new(0) }; 3] }; 64];
/// How often the mappings are read because of such code, and how often they were.
const READINGS_MAX: u32 = 256;
static READINGS: AtomicU32 = AtomicU32::new(0);

/// Whether the mappings may be read once more.
pub fn may_read() -> bool {
    READINGS.load(Relaxed) < READINGS_MAX
}

/// Lets the mappings not be read any more.
pub fn end_readings() {
    READINGS.store(READINGS_MAX, Relaxed);
}

fn mapping_of(address: u64) -> Option<&'static [AtomicU64; 3]> {
    // ORDERING: Relaxed; of a mapping that is being changed an address may be in it or not.
    MAPPINGS.iter().find(|[start, end, _]| (start.load(Relaxed)..end.load(Relaxed)).contains(&address))
}

/// Whether trinfo has what is mapped at an address: `Some(false)` if it has another file there, `None` if nothing.
pub fn is_known(address: u64) -> Option<bool> {
    let [start, end, file] = mapping_of(address)?.each_ref().map(|word| word.load(Relaxed));
    Some(file == 0 || file_hash(start..end).is_none_or(|present| present == file))
}

/// trinfo has the mapping.
pub fn note(range: Range<u64>) {
    let number = READINGS.fetch_add(1, Relaxed);
    let file = file_hash(range.clone()).unwrap_or(0);
    // An older one is replaced, where all are used.
    let unused = MAPPINGS.iter().find(|[start, end, _]| start.load(Relaxed) >= end.load(Relaxed));
    if let Some(mapping) = mapping_of(range.start).or(unused).or(MAPPINGS.get(number as usize % MAPPINGS.len())) {
        mapping.iter().zip([range.start, range.end, file]).for_each(|(word, value)| word.store(value, Relaxed));
    }
}

/// The mapping that began at an address is gone.
pub fn forget(start: u64) {
    if let Some([_, end, _]) = mapping_of(start) {
        end.store(0, Relaxed);
    }
}

/// A hash of the path of the file that is mapped there, 0 if none is mapped so; `None` if that cannot be found out.
#[inline(never)]
fn file_hash(range: Range<u64>) -> Option<u64> {
    let mut name = [0; 64];
    let text = b"/proc/self/map_files/".iter().copied();
    let [start, end] = [range.start, range.end].map(|number| hex_number(number).skip(2));
    let text = text.chain(start).chain([b'-']).chain(end);
    name.iter_mut().zip(text).for_each(|(place, byte)| *place = byte);
    let mut file = [0; 256];
    match path::read_link(CStr::from_bytes_until_nul(&name).ok()?, &mut file) {
        Ok(length) => Some(nonzero_hash(file.get(..length)?)),
        Err(Errno(libc::ENOENT)) => Some(0),
        Err(_) => None,
    }
}
