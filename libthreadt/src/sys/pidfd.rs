//! Descriptors that refer to processes.

use core::ffi::{CStr, c_int};

use super::open::read_proc;

/// The PID of the process that `pidfd` refers to; 0 if /proc does not have it.
pub fn pid_of_pidfd(pidfd: c_int) -> u32 {
    const DIRECTORY: &[u8] = b"/proc/self/fdinfo/";
    let (mut path, mut number) = ([0; 32], itoa::Buffer::new());
    // The last byte of the path stays 0.
    let bytes = DIRECTORY.iter().chain(number.format(pidfd).as_bytes());
    path[..31].iter_mut().zip(bytes).for_each(|(place, &byte)| *place = byte);
    let mut text = [0; 256];
    let length = CStr::from_bytes_until_nul(&path).ok().and_then(|path| read_proc(path, &mut text).ok());
    let mut lines = text.get(..length.unwrap_or(0)).unwrap_or(b"").split(|&byte| byte == b'\n');
    let digits = lines.find_map(|line| line.strip_prefix(b"Pid:")).unwrap_or(b"").trim_ascii();
    core::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    use super::super::call::call;
    use super::*;

    #[test]
    fn the_process_of_a_pidfd_is_found() {
        let own = std::process::id();
        // SAFETY: the call takes no pointer, and nobody else has the descriptor.
        let pidfd = unsafe {
            let number = call(libc::SYS_pidfd_open, [own as usize, 0]).expect("this process exists");
            OwnedFd::from_raw_fd(number as c_int)
        };
        assert_eq!(pid_of_pidfd(pidfd.as_raw_fd()), own);
        assert_eq!(pid_of_pidfd(-1), 0);
    }
}
