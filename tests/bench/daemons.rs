//! CPU time and memory of processes that are not our children: the daemons of the other tracers.

use std::fs;
use std::mem::MaybeUninit;

/// The process and every living one that descends from it, itself first.
pub fn tree(root: i32) -> Vec<i32> {
    let mut parents: Vec<(i32, i32)> = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = fs::read_to_string(entry.path().join("stat")).ok().and_then(|stat| parent(&stat)) {
            parents.push((pid, parent));
        }
    }
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&member) = family.get(next) {
        family.extend(parents.iter().filter(|&&(_, parent)| parent == member).map(|&(pid, _)| pid));
        next += 1;
    }
    family
}

/// The parent in a line of `/proc/PID/stat`; the name before it may hold spaces and brackets.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// CPU seconds that a process has used so far, its ended threads included; 0 if it is gone.
pub fn cpu(pid: i32) -> f64 {
    let mut clock = 0;
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: both calls write to these variables only; time is read where it was written.
    unsafe {
        if libc::clock_getcpuclockid(pid, &mut clock) != 0 || libc::clock_gettime(clock, time.as_mut_ptr()) != 0 {
            return 0.0;
        }
        let time = time.assume_init();
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
}

/// Starts a new measurement for [`peak`].
pub fn forget_peak(pid: i32) {
    // Not ours to change if this fails; the peak is then one since the process began.
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// The most memory of its own in KiB that a process had in use: without what it shares with others, because that is
/// counted in the traced program.
pub fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map_or(0, kibibytes);
    field("VmHWM:").saturating_sub(field("RssShmem:"))
}

fn kibibytes(text: &str) -> u64 {
    text.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_brackets_hides_no_parent() {
        assert_eq!(parent("12 (a) b (c)) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a"), None);
    }

    #[test]
    fn children_and_what_they_use() {
        // The shell waits for its reader, and both for us.
        let mut child = Command::new("sh").args(["-c", "cat; true"]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id().cast_signed();
        let own = std::process::id().cast_signed();
        while tree(pid).len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(tree(pid)[0], pid);
        assert!(tree(own).contains(&tree(pid)[1]));
        assert!(cpu(own) > 0.0 && peak(own) > 100);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((cpu(pid), peak(pid)), (0.0, 0));
    }
}
