//! LTTng-UST's pthread wrapper, as its manual has it: `lttng create`, `enable-event -u 'lttng_ust_pthread:*'`, `start`.
//!
//! Buffers and channels are the default ones: four of 512 KiB a CPU, shared by the user's programs, no contexts (an event then
//! has neither process nor thread, which our records have; contexts would cost LTTng more). The session daemon is our own
//! child, in a home directory of its own. For root it has no other place than /run/lttng: if another daemon runs there, that
//! one is used, with sessions of our own name, and left alone. A daemon of ours gets SIGTERM if the benchmark dies.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::daemons;
use crate::launch::Launch;
use crate::process::{self, Stop, Usage, not_started};

/// What is preloaded; the linker finds it.
const WRAPPER: &str = "liblttng-ust-pthread-wrapper.so";
/// Made by the daemon and the programs in /dev/shm, and never removed by them.
const SHARED_MEMORY: &str = "lttng-ust-wait-";
/// Where root's daemon has its sockets.
const ROOT_DIRECTORY: &str = "/run/lttng";

/// How long the daemon may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What happens when the buffers are full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// New events are discarded; the consumer daemon writes the others to files. The default.
    Discard,
    /// The oldest are overwritten, and nothing is written before a snapshot is taken: LTTng's flight recorder.
    Overwrite,
}

/// A session daemon that answers.
#[derive(Debug)]
pub struct Lttng {
    home: PathBuf,
    daemon: i32,
    /// The daemon, if we started it.
    ours: Option<Child>,
    /// What was in /dev/shm before, and root's directory for sockets.
    before: Vec<PathBuf>,
    /// The version that `lttng --version` prints.
    pub version: String,
}

/// The results of a recorded run, beside the program's own figures.
#[derive(Debug)]
pub struct Recorded {
    /// The program's.
    pub usage: Usage,
    /// CPU seconds of the daemons.
    pub daemons_cpu: f64,
    /// The daemons' own memory in KiB.
    pub daemons_peak: u64,
    /// Discarded or overwritten events.
    pub lost: u64,
}

impl Lttng {
    /// Starts a daemon, or finds one.
    ///
    /// # Errors
    /// Why LTTng cannot be measured here, in one line.
    pub fn start(scratch: &Path) -> Result<Lttng, String> {
        let home = scratch.join("lttng");
        fs::create_dir(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        let mut lttng = Lttng { home, daemon: 0, ours: None, before: left_behind(), version: String::new() };
        let version = lttng.ask(["--version"])?;
        lttng.version = version.split(" - ").next().unwrap_or_default().trim().to_owned();
        if lttng.ask(["list"]).is_err() {
            lttng.start_daemon(scratch)?;
        }
        lttng.daemon = lttng.find_daemon()?;
        Ok(lttng)
    }

    fn start_daemon(&mut self, scratch: &Path) -> Result<(), String> {
        let messages = scratch.join("lttng-sessiond.log");
        let cannot = |error: io::Error| not_started("lttng-sessiond", &error);
        let mut command = Command::new("lttng-sessiond");
        command.arg("--no-kernel").env("LTTNG_HOME", &self.home).env_remove("LD_PRELOAD").stdin(Stdio::null());
        command.stdout(File::create(&messages).map_err(cannot)?);
        command.stderr(File::options().append(true).open(&messages).map_err(cannot)?);
        // A group of its own: ^C in a terminal is for us, and we end it after its sessions.
        command.process_group(0);
        // SAFETY: prctl is a system call, allowed between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let child = self.ours.insert(command.spawn().map_err(cannot)?);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = child.try_wait().map_err(cannot)? {
                let text = fs::read_to_string(&messages).unwrap_or_default();
                let last = text.lines().last().unwrap_or("no message").to_owned();
                return Err(format!("lttng-sessiond ended ({status}): {last}"));
            }
            if ask(&self.home, ["list"]).is_ok() {
                return Ok(());
            }
            if Instant::now() > until {
                return Err("lttng-sessiond does not answer".to_owned());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process that answers us.
    fn find_daemon(&self) -> Result<i32, String> {
        if let Some(child) = &self.ours {
            return Ok(child.id().cast_signed());
        }
        let files = [self.home.join(".lttng/lttng-sessiond.pid"), Path::new(ROOT_DIRECTORY).join("lttng-sessiond.pid")];
        let pid = files.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
        pid.ok_or_else(|| "a session daemon answers, but its PID is not to be found".to_owned())
    }

    fn ask<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<String, String> {
        ask(&self.home, arguments)
    }

    /// Runs a program in a session of its own, whose files go to `output`.
    ///
    /// # Errors
    /// As [`process::run`], and if LTTng refuses.
    pub fn record(&self, mode: Mode, launch: Launch, output: &Path, scratch: &Path) -> Result<Recorded, Stop> {
        let session = Session { lttng: self, name: format!("threadt-bench-{}", std::process::id()) };
        let name = session.name.as_str();
        let output = format!("--output={}", output.display());
        match mode {
            Mode::Discard => self.ask(["create", name, &output])?,
            Mode::Overwrite => self.ask(["create", name, "--snapshot", &output])?,
        };
        self.ask(["enable-event", "--userspace", "lttng_ust_pthread:*"])?;
        self.ask(["start"])?;
        let family = daemons::tree(self.daemon);
        family.iter().for_each(|&pid| daemons::forget_peak(pid));
        let before: f64 = family.iter().map(|&pid| daemons::cpu(pid)).sum();
        let command = launch.env("LD_PRELOAD", WRAPPER).env("LTTNG_HOME", &self.home);
        let usage = process::run(&mut command.command(), scratch)?;
        self.ask(["stop"])?;
        if mode == Mode::Overwrite {
            self.ask(["snapshot", "record"])?;
        }
        let lost = lost(&self.ask(["list", name])?);
        self.ask(["destroy", name])?;
        let family = daemons::tree(self.daemon);
        let after: f64 = family.iter().map(|&pid| daemons::cpu(pid)).sum();
        let daemons_peak = family.iter().map(|&pid| daemons::peak(pid)).sum();
        Ok(Recorded { usage, daemons_cpu: after - before, daemons_peak, lost })
    }
}

/// Asks the daemon of this home directory; never starts one.
fn ask<A: AsRef<OsStr>>(home: &Path, arguments: impl IntoIterator<Item = A>) -> Result<String, String> {
    let mut command = Command::new("lttng");
    command.arg("--no-sessiond").args(arguments).env("LTTNG_HOME", home).env_remove("LD_PRELOAD");
    // Also a group of its own: it has to finish when we were interrupted.
    let Output { status, stdout, stderr } =
        command.process_group(0).stdin(Stdio::null()).output().map_err(|error| not_started("lttng", &error))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&stderr);
    Err(format!("lttng: {}", text.lines().last().unwrap_or("failed without a message")))
}

/// Events that the channels of `lttng list SESSION` discarded, or packets that were overwritten.
fn lost(list: &str) -> u64 {
    let number = |line: &str| {
        let (name, value) = line.trim().split_once(':')?;
        ["Discarded events", "Lost packets"].contains(&name).then(|| value.trim().parse::<u64>().ok())?
    };
    list.lines().filter_map(number).sum::<u64>()
}

/// A session; destroyed when it goes, so that a program that fails leaves none.
struct Session<'a> {
    lttng: &'a Lttng,
    name: String,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // Refused where `record` came to its own end.
        let _ = self.lttng.ask(["destroy", self.name.as_str()]);
    }
}

impl Drop for Lttng {
    fn drop(&mut self) {
        let Some(child) = &mut self.ours else { return };
        let family = daemons::tree(child.id().cast_signed());
        // SAFETY: a system call without pointers, on a child that was not waited for.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
        let until = Instant::now() + PATIENCE;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        // Nothing to kill if it ended, which waits for its consumers.
        let _ = child.kill();
        let _ = child.wait();
        end_surviving(&family[1..]);
        for path in left_behind().iter().filter(|path| !self.before.contains(path)) {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

/// Ends the processes that a killed daemon left. A process that reuses such a number is recognised: it is no LTTng program.
fn end_surviving(family: &[i32]) {
    let until = Instant::now() + PATIENCE;
    for &pid in family {
        let lives = || fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("lttng-"));
        if lives() {
            // SAFETY: a system call without pointers.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        while lives() && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What LTTng leaves in the system when all its processes have ended.
fn left_behind() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let shared = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(SHARED_MEMORY));
    let sockets = Some(PathBuf::from(ROOT_DIRECTORY)).filter(|path| path.exists());
    shared.map(|entry| entry.path()).chain(sockets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_all_channels() {
        let list =
            "- channel0: [enabled]\n    Statistics:\n      Discarded events: 20362\n- c1\n      Discarded events: 8\n";
        assert_eq!(lost(list), 20370);
        assert_eq!(lost("      Lost packets:     12\n"), 12);
        assert_eq!(lost("Recording session b: [inactive]\n"), 0);
    }
}
