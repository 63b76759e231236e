//! Files of earlier processes with our number: they are renamed to `old.START.NAME`.

use core::ffi::CStr;

use spec::names::{FileName, PROCESS_MASK, SANDBOX_SPARES};

use super::directory::{self, Scratch};
use crate::process_state::WorkingProcess;
use crate::sys::path::{self, PATH_MAX};
use crate::sys::{Errno, Fd, Result};

/// Renames all files of the earlier process with the number of this `process`, which began at `start`; its trbuf only if `with_trbuf`.
/// Those that may not be renamed, because they are somebody else's, stay, and are not used.
pub(super) fn rename_all(process: WorkingProcess, start: u64, with_trbuf: bool, scratch: &mut Scratch) -> Result {
    let mut number = itoa::Buffer::new();
    let start = number.format(start).as_bytes();
    let wanted = process.id() & PROCESS_MASK;
    let fd = Fd::open_directory(path::join(&mut scratch.path, &[directory::path()]))?;
    loop {
        let length = fd.directory_entries(&mut scratch.text)?;
        if length == 0 {
            return Ok(());
        }
        let mut entries = scratch.text.get(..length).unwrap_or(b"");
        // struct linux_dirent64: inode, offset (8 bytes each), length of the entry (2), type (1), name.
        while let Some(size) = entries.get(16..18).map(|size| usize::from(u16::from_le_bytes([size[0], size[1]]))) {
            let Some((entry, further)) = entries.split_at_checked(size).filter(|_| size > 19) else { break };
            entries = further;
            let name = CStr::from_bytes_until_nul(entry.get(19..).unwrap_or(b"")).unwrap_or(c"").to_bytes();
            let earlier = match FileName::parse(name) {
                Some(FileName::Records { process, .. } | FileName::Info(process)) => process == wanted,
                Some(FileName::Spare { process, number }) => process == wanted && SANDBOX_SPARES.contains(&number),
                Some(FileName::Buffers(process)) => process == wanted && with_trbuf,
                _ => false,
            };
            if earlier {
                let from = path::join(&mut scratch.path, &[directory::path(), b"/", name]);
                let directory = path::join(&mut scratch.other_path, &[directory::path(), b"/"]).to_bytes();
                // What has the number of a child's parent are the files of that.
                process.check()?;
                match rename(from, directory, start, name) {
                    Ok(()) | Err(Errno(libc::EACCES | libc::EPERM)) => {}
                    failed => return failed,
                }
            }
        }
    }
}

/// Renames a file of an unknown earlier process to `old.0.NAME`, or `old.0-2.NAME` and so on.
pub fn rename_unknown(path: &CStr) -> Result {
    let (directory, name) = path::split(path.to_bytes());
    rename(path, directory, b"0", name)
}

/// Renames `path`, which is `name` in `directory` (with its slash), to `old.START.NAME`; if that is taken, to
/// `old.START-2.NAME` and so on.
#[cold]
#[inline(never)]
fn rename(path: &CStr, directory: &[u8], start: &[u8], name: &[u8]) -> Result {
    let mut buffer = [0u8; PATH_MAX];
    for attempt in 1..1000u64 {
        let mut number = itoa::Buffer::new();
        let suffix: [&[u8]; 2] = if attempt == 1 { [b"", b""] } else { [b"-", number.format(attempt).as_bytes()] };
        let to = path::join(&mut buffer, &[directory, b"old.", start, suffix[0], suffix[1], b".", name]);
        match path::rename(path, to) {
            Err(Errno(libc::EEXIST)) => {}
            other => return other,
        }
    }
    Err(Errno(libc::EEXIST))
}
