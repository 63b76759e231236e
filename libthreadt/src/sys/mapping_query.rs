//! The size of the executable mappings, by a question for each of them (PROCMAP_QUERY, Linux 6.11): where there are a few, the answers take
//! half of the time in which the kernel writes `/proc/self/status`.

use super::call::{Errno, Result, call};
use super::fd::Fd;
use super::seccomp;

/// `struct procmap_query` of include/uapi/linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    mapping_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    device: [u32; 2],
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: usize = 3 << 30 | size_of::<Query>() << 16 | (b'f' as usize) << 8 | 17;
/// A mapping may be written.
const WRITABLE: u64 = 0x02;
/// Only a mapping that may be executed is asked for.
const EXECUTABLE: u64 = 0x04;
/// The mapping that has the address, or the next one behind it, is asked for.
const COVERING_OR_NEXT: u64 = 0x10;

/// How many mappings are asked for. Where there are more, the file is read in less time.
const MAPPINGS_MAX: usize = 24;

/// The size of all mappings that may be executed and not be written, KiB, which the kernel counts as those of code. `None` where it does
/// not know the question, where a seccomp filter is in force, which may not either, and where there are many.
pub fn executable_size() -> Option<u64> {
    if seccomp::has_filter() {
        return None;
    }
    let maps = Fd::open_proc_briefly(c"/proc/self/maps").ok()?;
    let (mut size, mut address) = (0, 0);
    for _ in 0..MAPPINGS_MAX {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            flags: EXECUTABLE | COVERING_OR_NEXT,
            address,
            ..Query::default()
        };
        match ask(&maps, &mut query) {
            Ok(()) => {}
            Err(Errno(libc::ENOENT)) => return Some(size / 1024),
            Err(_) => return None,
        }
        if query.mapping_flags & WRITABLE == 0 {
            size += query.end.wrapping_sub(query.start);
        }
        address = query.end;
    }
    None
}

fn ask(maps: &Fd, query: &mut Query) -> Result {
    // SAFETY: the kernel reads and fills a struct of this size.
    unsafe { call(libc::SYS_ioctl, [maps.for_call(), PROCMAP_QUERY, (&raw mut *query).addr()]) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the kernel knows the question. Other tests may map code meanwhile.
    #[test]
    fn the_size_is_that_of_the_file() {
        let read = || std::fs::read_to_string("/proc/self/maps").unwrap();
        let (text, asked) = std::iter::repeat_with(|| (read(), executable_size(), read()))
            .find_map(|(before, asked, after)| (before == after).then_some((after, asked)))
            .unwrap();
        let of_line = |line: &str| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let number = |digits| u64::from_str_radix(digits, 16).ok();
            let is_counted = rest.as_bytes()[1..3] == *b"-x" && !rest.ends_with("[vsyscall]");
            is_counted.then_some((number(end)? - number(start)?) / 1024)
        };
        let size: u64 = text.lines().filter_map(of_line).sum();
        assert!(size > 0 && asked.is_none_or(|asked| asked == size), "{asked:?}, not {size}: {text}");
    }
}
