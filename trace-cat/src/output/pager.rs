//! The program that shows output page by page on a terminal: `$PAGER`, or less.
//!
//! As with git, `LESS=FRX` makes less end by itself if a screen is enough, unless LESS is set; a pager that is left early is no error, and
//! its exit status does not count. SIGINT ends the output; trace-cat ends by the signal when the pager has ended.

use std::env;
use std::ffi::{OsStr, OsString, c_int};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::support::diagnostics::{Diagnostics, reason};

/// Characters that make a shell necessary to understand a command line.
const OF_SHELL: &[u8] = b"|&;<>()$`\\\"' \t\n*?[#~=%";

/// The most bytes that are written at once: as many as a pipe takes.
const BLOCK_SIZE: usize = 1 << 16;

/// The pipe to the pager; -1 if there is none.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// A pipe that nobody reads.
static BROKEN_PIPE: AtomicI32 = AtomicI32::new(-1);
/// The signal by which trace-cat has to end after the pager.
static CAUGHT: AtomicI32 = AtomicI32::new(0);

/// Replaces the pipe, so that writing fails as if the pager had been left.
extern "C" fn end_output(signal: c_int) {
    CAUGHT.store(signal, Relaxed);
    let pipe = PIPE.load(Relaxed);
    if pipe >= 0 {
        // SAFETY: dup2 may be called in a signal handler. Both descriptors are open while PIPE has the number.
        unsafe {
            let errno = *libc::__errno_location();
            libc::dup2(BROKEN_PIPE.load(Relaxed), pipe);
            *libc::__errno_location() = errno;
        }
    }
}

/// A pager, until its end.
pub struct Pager {
    child: Child,
    /// `None` when it has been closed.
    input: Option<File>,
    _broken: OwnedFd,
}

impl Pager {
    /// Starts the pager; `None` if none is wanted or there is none. What cannot be started although PAGER names it is reported.
    pub fn start(diagnostics: &Diagnostics) -> Option<Pager> {
        let named = env::var_os("PAGER");
        let mut command = command(named.as_deref(), env::var_os("TERM").as_deref())?;
        for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        let (read_end, broken) = io::pipe().ok()?;
        drop(read_end);
        let broken = OwnedFd::from(broken);
        BROKEN_PIPE.store(broken.as_raw_fd(), Relaxed);
        replace_action(libc::SIG_DFL, handler());
        let mut child = match command.stdin(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => {
                if named.is_some() || error.kind() != ErrorKind::NotFound {
                    let program = command.get_program().display().to_string();
                    diagnostics.report_note(program, format_args!("cannot be run as pager: {}", reason(&error)));
                }
                end_by_caught_signal();
                return None;
            }
        };
        let mut input = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        PIPE.store(input.as_ref().map_or(-1, AsRawFd::as_raw_fd), Relaxed);
        if CAUGHT.load(Relaxed) != 0 {
            PIPE.store(-1, Relaxed);
            input = None;
        }
        Some(Pager { child, input, _broken: broken })
    }

    pub fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(ErrorKind::BrokenPipe.into()) };
        // A write that a thread is in while another one gets the signal goes on.
        chunk.chunks(BLOCK_SIZE).try_for_each(|piece| input.write_all(piece))
    }
}

impl Drop for Pager {
    /// Waits until the user leaves the pager.
    fn drop(&mut self) {
        PIPE.store(-1, Relaxed);
        self.input = None;
        let _ = self.child.wait();
        end_by_caught_signal();
    }
}

/// The command line for the pager that PAGER and TERM ask for; `None` for no pager.
fn command(pager: Option<&OsStr>, terminal: Option<&OsStr>) -> Option<Command> {
    if terminal.is_none_or(|terminal| terminal.is_empty() || terminal == "dumb") {
        return None;
    }
    let pager = pager.map_or_else(|| OsString::from("less"), OsString::from);
    if pager.is_empty() || pager == "cat" {
        return None;
    }
    if !pager.as_bytes().iter().any(|byte| OF_SHELL.contains(byte)) {
        return Some(Command::new(pager));
    }
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(pager);
    Some(shell)
}

fn handler() -> libc::sighandler_t {
    end_output as *const () as libc::sighandler_t
}

/// Replaces the action of each signal that ends a program, where it is `old`: what is ignored stays ignored.
fn replace_action(old: libc::sighandler_t, new: libc::sighandler_t) {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all zeros are a valid sigaction; both are read and written by the kernel alone. The handler makes one system
        // call that handlers may make, and restores errno.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            let mut before: libc::sigaction = zeroed();
            action.sa_sigaction = new;
            if libc::sigaction(signal, std::ptr::null(), &mut before) == 0 && before.sa_sigaction == old {
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    }
}

/// Ends this process by the signal that was caught, if one was.
fn end_by_caught_signal() {
    replace_action(handler(), libc::SIG_DFL);
    let signal = CAUGHT.load(Relaxed);
    if signal != 0 {
        // SAFETY: the signal goes to this process itself.
        unsafe { libc::raise(signal) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_pager() {
        let words = |pager: Option<&str>, terminal: Option<&str>| {
            let command = command(pager.map(OsStr::new), terminal.map(OsStr::new))?;
            let words = [command.get_program()].into_iter().chain(command.get_args());
            Some(words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>())
        };
        let xterm = Some("xterm");
        assert_eq!(words(None, xterm).unwrap(), ["less"]);
        assert_eq!(words(Some("more"), xterm).unwrap(), ["more"]);
        assert_eq!(words(Some("less -S"), xterm).unwrap(), ["sh", "-c", "less -S"]);
        for (pager, terminal) in [(Some(""), xterm), (Some("cat"), xterm), (None, None), (None, Some("dumb"))] {
            assert_eq!(words(pager, terminal), None, "{pager:?} {terminal:?}");
        }
    }
}
