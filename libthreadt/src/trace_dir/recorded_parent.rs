//! The parent of a process that was not forked by itself: `posix_spawn` and its kin, or a vfork child, ran its program.

use spec::buffer::{Owner, PAGE};
use spec::names::{FileName, PROCESS_MASK};

use super::directory::{self, Scratch};
use super::identity;
use crate::sys::{self, Fd, path};

/// The PID of this process's parent, if that has made a trbuf in the directory; else 0.
pub(super) fn find(ourselves: &Owner, scratch: &mut Scratch) -> u32 {
    let parent = sys::parent_id();
    let path = path::trace_file(&mut scratch.path, directory::path(), FileName::Buffers(parent & PROCESS_MASK));
    let page = scratch.text.get_mut(..PAGE).unwrap_or_default();
    let length = Fd::open_trusted(path, libc::O_RDONLY).and_then(|(file, ..)| file.read_at(page, 0)).unwrap_or(0);
    let Ok(owner) = Owner::parse(page.get(..length).unwrap_or(b"")) else { return 0 };
    // Another process may have had the number before.
    let is_its_trbuf = owner.pid == parent
        && (owner.boot_id, owner.pid_namespace) == (ourselves.boot_id, ourselves.pid_namespace)
        && identity::is_start_of(parent, owner.start_time, &mut scratch.path);
    if is_its_trbuf { parent } else { 0 }
}
