//! Whether the program's control group limits its memory, and nothing makes it wait before written text fills that.
//!
//! The pages of a file that a program has written count as its memory until they are on the disk. A control group of version 2
//! makes a program wait that writes faster than the disk takes. One of version 1 does not, and the kernel begins late to
//! write its pages: then it kills the program (Documentation/admin-guide/cgroup-v2.rst, "Writeback"). Of pages that are
//! being written, it waits for the end.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::decimal::decimal;
use super::open::read_proc;
use super::path::{self, PATH_MAX};
use super::{Fd, SetOnce};

/// Where control groups of version 1 are found.
const MOUNTED_AT: &[u8] = b"/sys/fs/cgroup/memory";
/// The limit of a group that has none is above, bytes.
const UNLIMITED: u64 = 1 << 60;
/// After how many bytes of a file the kernel is asked to begin with them: about a buffer.
const STEP: u64 = 64 * 1024;

static TEXT: SetOnce<[u8; 4096]> = SetOnce::new([0; 4096]);
static PATH: SetOnce<[u8; PATH_MAX]> = SetOnce::new([0; PATH_MAX]);

static IS_LIMITED: AtomicBool = AtomicBool::new(false);

/// Finds out which group the process is in.
///
/// # Safety
/// The library is being initialised, by one thread.
pub unsafe fn note() {
    // SAFETY: the caller's.
    let (text, path) = unsafe { (TEXT.get_mut(), PATH.get_mut()) };
    IS_LIMITED.store(limit(text, path).is_some_and(|limit| limit < UNLIMITED), Relaxed);
}

/// Begins to write a file to the disk behind which text has just been written, if that may fill the program's memory.
#[inline]
pub fn begin_write_back(file: &Fd, at: u64, length: u64) {
    if IS_LIMITED.load(Relaxed) && at / STEP != at.saturating_add(length) / STEP {
        file.begin_write_back();
    }
}

/// The least limit of the group of version 1 and of those above it; `None` if there is no such group.
fn limit(text: &mut [u8], path: &mut [u8; PATH_MAX]) -> Option<u64> {
    let length = read_proc(c"/proc/self/cgroup", text).ok()?;
    let group = memory_group(text.get(..length)?)?;
    let end = MOUNTED_AT.len() + group.len();
    path::join(path, &[MOUNTED_AT, group, b"/memory.stat"]);
    // In a container the group may be where all groups are elsewhere.
    let is_seen = end < PATH_MAX - b"/memory.stat".len();
    let length = is_seen.then(|| read_proc(path::in_buffer(path), text).ok()).flatten();
    let length = length.or_else(|| read_proc(path::join(path, &[MOUNTED_AT, b"/memory.stat"]), text).ok())?;
    least_limit(text.get(..length)?)
}

/// The group's name in the lines of `/proc/PID/cgroup`: `4:memory:/system.slice/name`.
fn memory_group(lines: &[u8]) -> Option<&[u8]> {
    lines.split(|&byte| byte == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |&byte| byte == b':');
        let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        controllers.split(|&byte| byte == b',').any(|name| name == b"memory").then_some(group)
    })
}

/// The limit in the lines of a group's `memory.stat`.
fn least_limit(lines: &[u8]) -> Option<u64> {
    let digits =
        lines.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"hierarchical_memory_limit "))?;
    Some(decimal(digits.iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_version_1_have_a_name_and_a_limit() {
        let lines = b"5:pids:/\n4:cpu,memory:/system.slice/a:b\n1:cpuset:/memory\n0::/x\n";
        assert_eq!(memory_group(lines), Some(&b"/system.slice/a:b"[..]));
        assert_eq!(memory_group(b"0::/user.slice/memory\n"), None);
        let stat = b"cache 0\nhierarchical_memory_limit 12582912\nhierarchical_memsw_limit 9223372036854771712\n";
        assert_eq!(least_limit(stat), Some(12 << 20));
        assert_eq!(least_limit(b"anon 0\n"), None);
        // None is given as the most pages that can be counted.
        assert!(least_limit(b"hierarchical_memory_limit 9223372036854771712").is_some_and(|limit| limit > UNLIMITED));
    }
}
