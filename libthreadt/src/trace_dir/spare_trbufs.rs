//! Trbufs that forked children leave to the next ones.
//!
//! To make a file and to remove one is most of what a short child costs. Some file systems also examine each inode that was
//! removed lately before they give a number to a new file (ext4 without a journal), so that children cost the more the
//! more of them have ended. So a child that ends empties its trbuf and renames it to `trspare.xxxxxxx.n`, and the next
//! child renames it to its own name. A name leads to one file, so that a spare trbuf has one taker.
//!
//! The spare trbufs are those of one process, the keeper, whose children and children's children the others are. It removes
//! them when it ends, after its own trbuf: a child that ends later sees by this that nobody else removes what it leaves.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use spec::buffer::{Header, SlotLayout};
use spec::names::{FileName, PROCESS_MASK, SPARES};

use super::directory::{self, Scratch};
use crate::config::CONFIG;
use crate::process_state::{self, WorkingProcess};
use crate::sys::path::{self, PATH_MAX};
use crate::sys::{self, Fd, FileIdentity, seccomp, thread_exists};

/// Of larger ones too much of the disk would be used.
const SIZE_MAX: u64 = 5 << 20;

/// Whether a trbuf of this layout can be left to another process.
pub fn can_be_spare(layout: SlotLayout) -> bool {
    layout.first_size() <= SIZE_MAX
}

/// The process that keeps the spare trbufs; 0 until this process or one that it was forked from has made its files.
#[unsafe(link_section = "inherited")]
static KEEPER: AtomicU32 = AtomicU32::new(0);
/// The keeper has called `daemon`, which ends it within libc, and this process comes from that call.
static KEEPER_HAS_ENDED: AtomicBool = AtomicBool::new(false);

/// What this process knows of the keeper.
enum Keeper {
    Own,
    Living,
    /// It has ended without doing its work. Whoever sees that does it.
    Gone,
    /// There is none yet, or a filter that the program has installed may forbid to ask.
    Unknown,
}

fn keeper() -> Keeper {
    let keeper = KEEPER.load(Relaxed);
    // Mostly it is the parent, which exists as long as it is that.
    let exists = || sys::parent_id() == keeper || thread_exists(keeper, keeper);
    match keeper {
        _ if keeper == process_state::id() => Keeper::Own,
        0 => Keeper::Unknown,
        _ if seccomp::has_new_filter() => Keeper::Unknown,
        _ if !KEEPER_HAS_ENDED.load(Relaxed) && exists() => Keeper::Living,
        _ => Keeper::Gone,
    }
}

/// Notes that this process's parent, `parent`, has called `daemon`.
pub fn note_end_of_daemons_parent(parent: u32) {
    if KEEPER.load(Relaxed) == parent {
        KEEPER_HAS_ENDED.store(true, Relaxed);
    }
}

/// Whether another process keeps spare trbufs for this one.
pub fn has_keeper() -> bool {
    matches!(keeper(), Keeper::Living)
}

/// Makes this process the keeper, unless it was forked from one that lives. `buffer` is overwritten.
pub(super) fn find_keeper(buffer: &mut [u8; PATH_MAX]) {
    match keeper() {
        Keeper::Living => return,
        Keeper::Gone => remove(directory::path(), buffer),
        Keeper::Own | Keeper::Unknown => {}
    }
    become_keeper();
}

/// Makes this process the keeper of its own and its children's: another's are in another directory.
pub(super) fn become_keeper() {
    KEEPER.store(process_state::id(), Relaxed);
    KEEPER_HAS_ENDED.store(false, Relaxed);
}

fn spare_path<'a>(buffer: &'a mut [u8; PATH_MAX], directory: &[u8], number: u8) -> &'a CStr {
    let process = KEEPER.load(Relaxed) & PROCESS_MASK;
    path::trace_file(buffer, directory, FileName::Spare { process, number })
}

/// Gives a spare trbuf the name `own`; `None` if there is none, or the name is taken. `buffer` is overwritten.
pub(super) fn take(own: &CStr, buffer: &mut [u8; PATH_MAX], process: WorkingProcess) -> Option<(Fd, FileIdentity)> {
    if KEEPER.load(Relaxed) == process_state::id() || !can_be_spare(CONFIG.get().layout) {
        return None;
    }
    (0..SPARES).find_map(|number| take_from(spare_path(buffer, directory::path(), number), own, process))
}

fn take_from(spare: &CStr, own: &CStr, process: WorkingProcess) -> Option<(Fd, FileIdentity)> {
    let (fd, identity) = open_blank(spare)?;
    process.check().ok()?;
    // OBSERVABLE: it is this process's from here on, as if it had just been made.
    path::rename(spare, own).ok()?;
    // Meanwhile another child may have taken the one that was examined, and left another one.
    if identity.is_at(own) {
        return Some((fd, identity));
    }
    let other = open_blank(own);
    if other.is_none() && process.is_current() {
        let _ = path::unlink(own);
    }
    other
}

/// Opens a trbuf if it is one that can be left to another process, and emptied.
fn open_blank(path: &CStr) -> Option<(Fd, FileIdentity)> {
    let (fd, identity, size) = Fd::open_trusted(path, libc::O_RDWR).ok()?;
    let mut header = [1; size_of::<Header>()];
    let is_blank = size == CONFIG.get().layout.first_size()
        && fd.read_at(&mut header, 0).is_ok()
        && header.iter().all(|&byte| byte == 0);
    is_blank.then_some((fd, identity))
}

/// Leaves the emptied trbuf at `own` to the next child; `false` if there are enough.
pub(super) fn leave(own: &CStr, scratch: &mut Scratch) -> bool {
    // OBSERVABLE: from here on it is another process's.
    let mut leave_as = |number| path::rename(own, spare_path(&mut scratch.path, directory::path(), number)).is_ok();
    if !(0..SPARES).any(&mut leave_as) {
        return false;
    }
    let keepers = FileName::Buffers(KEEPER.load(Relaxed) & PROCESS_MASK);
    if path::is_unused(path::trace_file(&mut scratch.other_path, directory::path(), keepers)) {
        let _ = path::unlink(path::in_buffer(&scratch.path));
    }
    true
}

/// Removes the spare trbufs in a directory if this process keeps them or their keeper is gone: after its own trbuf, unless it leaves that
/// to another program. `buffer` is overwritten.
pub(super) fn remove_all(directory: &[u8], buffer: &mut [u8; PATH_MAX]) {
    if matches!(keeper(), Keeper::Own | Keeper::Gone) {
        remove(directory, buffer);
    }
}

fn remove(directory: &[u8], buffer: &mut [u8; PATH_MAX]) {
    for number in 0..SPARES {
        let _ = path::unlink(spare_path(buffer, directory, number));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt as _;
    use std::sync::Arc;

    use super::*;
    use crate::sys::interleaving::{Actor, explore};

    /// Two children take one spare trbuf, and one of them leaves another in its place: what a child gets is what has its name.
    #[test]
    fn a_trbuf_that_was_taken_is_the_one_with_the_childs_name() {
        let scene = || {
            let directory = Arc::new(tempfile::tempdir().unwrap());
            for name in ["spare", "other"] {
                File::create(directory.path().join(name)).unwrap().set_len(SlotLayout::BUFFERS.first_size()).unwrap();
            }
            let child = |own: &'static str, left: Option<&'static str>| -> Actor {
                let directory = directory.clone();
                Box::new(move || {
                    let at = |name| CString::new(directory.path().join(name).as_os_str().as_bytes()).unwrap();
                    let (spare, own) = (at("spare"), at(own));
                    match take_from(&spare, &own, WorkingProcess::current()) {
                        Some((fd, identity)) => {
                            assert!(identity.is_at(&own), "another one has the name");
                            assert_eq!(fd.stat().unwrap().st_ino, identity.inode);
                        }
                        None => assert!(path::stat(&own).is_err()),
                    }
                    if let Some(left) = left {
                        let _ = path::rename(&at(left), &spare);
                    }
                })
            };
            (vec![child("first", None), child("second", Some("other"))], Box::new(|| {}) as _)
        };
        assert!(explore(2, scene) > 10);
    }
}
