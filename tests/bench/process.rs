//! Runs programs one at a time, measures them, and ends them when the benchmark is to end.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use std::{fs, mem, ptr, thread};

/// How long a program may take; one that hangs must not hang the benchmark.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a program may take to end after the signal that asks for it.
const GRACE: Duration = Duration::from_secs(3);
/// The signals that end the benchmark.
const ENDING: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Why there is no figure.
#[derive(Debug)]
pub enum Stop {
    /// This way cannot do this workload: the reason. The others can go on.
    Cannot(String),
    /// This signal ends the benchmark.
    Interrupted(i32),
}

impl From<String> for Stop {
    fn from(reason: String) -> Stop {
        Stop::Cannot(reason)
    }
}

/// What a program that ended with status 0 used, its waited-for children included.
#[derive(Debug)]
pub struct Usage {
    /// From before the start until it had ended.
    pub wall: Duration,
    /// User and system time.
    pub cpu: f64,
    /// The largest process's peak in KiB; never below the benchmark's own few MiB, which a child begins with.
    pub peak: u64,
    /// What it wrote to standard output.
    pub output: String,
}

/// The program that is running, for the thread that watches it.
struct Watched {
    /// Leader of its own process group, and not yet waited for: the number is still its own.
    group: Option<i32>,
    since: Instant,
    termination_requested: Option<Instant>,
    too_slow: bool,
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

/// Locks, whatever happened to another holder.
fn with_watched<T>(work: impl FnOnce(&mut Watched) -> T) -> T {
    let mut guard = WATCHED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let fresh = || Watched { group: None, since: Instant::now(), termination_requested: None, too_slow: false };
    work(guard.get_or_insert_with(fresh))
}

/// The first signal that arrived; 0 while there was none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: i32) {
    // ORDERING: the number stands for itself, and its reader reads it again soon.
    let _ = SIGNAL.compare_exchange(0, signal, Relaxed, Relaxed);
}

fn signal() -> Option<i32> {
    // ORDERING: as in `note`.
    Some(SIGNAL.load(Relaxed)).filter(|&signal| signal != 0)
}

/// From now on a signal ends the program that runs, and [`run`] then refuses to start another one. Signals are caught and
/// not blocked, because a program that is started inherits what is blocked.
pub fn watch_for_signals() {
    for number in ENDING {
        // SAFETY: an all-zero sigaction has an empty mask; the handler only changes an atomic.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            libc::sigaction(number, ptr::null(), &mut action);
            // By nohup, or by a shell that started us in the background.
            if action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action = mem::zeroed();
            action.sa_sigaction = note as extern "C" fn(i32) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(number, &action, ptr::null_mut());
        }
    }
    // Ten times a second: too seldom to disturb what is measured.
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_millis(100));
            with_watched(Watched::check);
        }
    });
}

impl Watched {
    fn check(&mut self) {
        if self.since.elapsed() > PATIENCE {
            self.too_slow = true;
        }
        let Some(group) = self.group.filter(|_| self.too_slow || signal().is_some()) else {
            return;
        };
        let with = match self.termination_requested {
            None => libc::SIGTERM,
            Some(since) if since.elapsed() > GRACE => libc::SIGKILL,
            Some(_) => return,
        };
        self.termination_requested.get_or_insert_with(Instant::now);
        end_group(group, with);
    }
}

/// Why a program could not be started, in words.
pub fn not_started(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{name} is not installed"),
        _ => format!("{name}: {error}"),
    }
}

/// Sends a signal to a process group that [`run`] made and whose leader it has not waited for.
fn end_group(group: i32, signal: i32) {
    // SAFETY: a system call without pointers.
    unsafe { libc::kill(-group, signal) };
}

/// Runs a program to its end, with nothing on standard input; its messages go to files of `scratch`.
///
/// # Errors
/// If it cannot be started, takes too long, ends with another status than 0, or a signal arrived.
pub fn run(command: &mut Command, scratch: &Path) -> Result<Usage, Stop> {
    let name = command.get_program().to_string_lossy().into_owned();
    let cannot = |error: io::Error| Stop::Cannot(not_started(&name, &error));
    let (output, errors) = (scratch.join("stdout"), scratch.join("stderr"));
    command
        .stdin(Stdio::null())
        .stdout(File::create(&output).map_err(cannot)?)
        .stderr(File::create(&errors).map_err(cannot)?)
        .process_group(0);
    // A signal arrives before the start, and is found here, or after it, and reaches the group.
    let (began, child) = with_watched(|watched| {
        if let Some(signal) = signal() {
            return Err(Stop::Interrupted(signal));
        }
        let began = Instant::now();
        let child = command.spawn().map_err(cannot)?;
        let group = child.id().cast_signed();
        *watched = Watched { group: Some(group), since: began, termination_requested: None, too_slow: false };
        Ok((began, child))
    })?;
    let (status, wall, usage) = wait(&child, began);
    if let Some(signal) = signal() {
        return Err(Stop::Interrupted(signal));
    }
    if with_watched(|watched| watched.too_slow) {
        return Err(Stop::Cannot(format!("{name} took longer than {} s", PATIENCE.as_secs())));
    }
    if status != 0 {
        let text = fs::read(&errors).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
        return Err(Stop::Cannot(format!("{name} ended {}: {last}", end_description(status))));
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Usage {
        wall,
        cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        peak: usage.ru_maxrss.cast_unsigned(),
        output: String::from_utf8_lossy(&fs::read(&output).map_err(cannot)?).into_owned(),
    })
}

/// Waits for a child of [`run`]: its status, how long it ran, what it used.
fn wait(child: &Child, began: Instant) -> (i32, Duration, libc::rusage) {
    let pid = child.id().cast_signed();
    // SAFETY: an all-zero siginfo_t and rusage are values; both calls write to these only.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        // First without reaping, so that the number is not free while the other thread may send a signal to it.
        while libc::waitid(libc::P_PID, child.id(), &mut info, libc::WEXITED | libc::WNOWAIT) != 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        let wall = began.elapsed();
        with_watched(|watched| {
            watched.group = None;
            // Processes of its group that outlived the leader.
            if watched.termination_requested.is_some() {
                end_group(pid, libc::SIGKILL);
            }
        });
        let (mut status, mut usage) = (0, mem::zeroed());
        libc::wait4(pid, &mut status, 0, &mut usage);
        (status, wall, usage)
    }
}

/// A wait status in words.
fn end_description(status: i32) -> String {
    if libc::WIFSIGNALED(status) {
        format!("by signal {}", libc::WTERMSIG(status))
    } else {
        format!("with status {}", libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_measured_and_its_failure_reported() {
        let scratch = tempfile::tempdir().unwrap();
        let shell = |text: &str| run(Command::new("sh").args(["-c", text]), scratch.path());
        let usage = shell("echo 12; i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done").unwrap();
        assert_eq!(usage.output, "12\n");
        assert!(usage.cpu > 0.0 && usage.wall > Duration::ZERO && usage.peak > 100, "{usage:?}");
        let reason = |text| match shell(text) {
            Err(Stop::Cannot(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason("echo what it was >&2; echo >&2; exit 3"), "sh ended with status 3: what it was");
        assert_eq!(reason("kill -9 $$"), "sh ended by signal 9: no message");
        let absent = run(&mut Command::new("no-such-program"), scratch.path());
        assert!(matches!(absent, Err(Stop::Cannot(reason)) if reason == "no-such-program is not installed"));
    }
}
