//! Runs a program as if trace-cat were not there: with its own standard input, output and error, in the same process
//! group, and with the signals that are meant for it.
//!
//! A signal to the group, from the terminal or from a process (`kill 0`, a shell's `kill %1`), reaches the program without help,
//! and trace-cat goes on waiting. A signal that another process sends to trace-cat alone is forwarded; `timeout` does both, one
//! after the other, and the program gets one signal, as without trace-cat. The program ignores the signals that trace-cat
//! inherited as ignored, unless it decides otherwise.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_long, c_void};
use std::io::{self, Read as _, Write as _, pipe};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions, WaitOptions, setrlimit, waitid, waitpid};

use super::group_witness::{GroupWitness, take_pending, was_sent_to_group};
use crate::support::inherited_state;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this exit status.
    Status(u8),
    /// By this signal.
    Signal(c_int),
}

/// The signals that end a process that does not handle them, and that people send to have something done.
///
/// libc sets their handlers: signal-hook would handle those that are ignored, and could not restore them for the child.
const FORWARDED: [c_int; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// The process ID of the program while it runs, else 0.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// The descriptor of the group's witness, or -1.
static WITNESS: AtomicI32 = AtomicI32::new(-1);

/// For how long a signal is held back that may have been sent to the group as well, in nanoseconds.
const SETTLING: c_long = 10_000_000;

/// Runs the program at `path` to its end; `words` are its arguments, the name it was called by first.
pub fn run(path: &Path, words: &[OsString], variables: &[(&str, Option<OsString>)]) -> io::Result<ProgramEnd> {
    let arguments = ExecArguments::new(path, words, variables)?;
    // Both ends are closed by an exec.
    let (mut result, mut failure) = pipe()?;
    // Signals wait until the process ID is known that they are forwarded to.
    let mask = SignalMask::block();
    // Without one, each signal that a process sends is forwarded.
    let witness = GroupWitness::start().ok();
    WITNESS.store(witness.as_ref().map_or(-1, GroupWitness::descriptor), Relaxed);
    let handlers = SignalHandlers::install();
    // SAFETY: this process has one thread, so that the child may do whatever this one may.
    let child = unsafe { libc::fork() };
    if child == 0 {
        handlers.restore();
        mask.restore();
        inherited_state::restore();
        let error = arguments.exec();
        let _ = failure.write_all(&error.raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes());
        // SAFETY: ends the process, and nothing of what it shares with the parent is flushed twice.
        unsafe { libc::_exit(super::refusal::CANNOT_EXECUTE.into()) }
    }
    let error = io::Error::last_os_error();
    drop(failure);
    CHILD.store(child.max(0), Relaxed);
    mask.restore();
    let ended = Pid::from_raw(child.max(0)).map_or(Err(error), wait);
    handlers.restore();
    drop(witness);
    let ended = ended?;
    // The child's end of the pipe closes by itself when the program has begun.
    let mut errno = [0; 4];
    match result.read_exact(&mut errno) {
        Ok(()) => Err(io::Error::from_raw_os_error(c_int::from_ne_bytes(errno))),
        Err(_) => Ok(ended),
    }
}

/// Ends this process by a signal, so that its parent learns what has happened to the program.
pub fn end_by(signal: c_int) {
    // A core of trace-cat would replace the program's.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // SAFETY: the default action installs no code; the signal goes to this process itself.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Waits for the end of `child`. Its process ID is released only when no signal can be forwarded to it any more.
fn wait(child: Pid) -> io::Result<ProgramEnd> {
    let ended = retry_on_intr(|| waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    CHILD.store(0, Relaxed);
    ended?;
    let status = retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()))?.map(|(_, status)| status);
    Ok(match status.and_then(|status| status.terminating_signal()) {
        Some(signal) => ProgramEnd::Signal(signal),
        None => ProgramEnd::Status(status.and_then(|status| status.exit_status()).unwrap_or(0) as u8),
    })
}

/// What exec takes, made before the fork.
struct ExecArguments {
    path: CString,
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl ExecArguments {
    fn new(path: &Path, words: &[OsString], variables: &[(&str, Option<OsString>)]) -> io::Result<ExecArguments> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into());
        let inherited = std::env::vars_os().filter(|(name, _)| variables.iter().all(|(set, _)| name != set));
        let set = variables.iter().filter_map(|(name, value)| Some((OsString::from(name), value.clone()?)));
        let environment = inherited.chain(set).map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            text(&entry)
        });
        let environment = environment.collect::<io::Result<_>>()?;
        let words = words.iter().map(|word| text(word)).collect::<io::Result<_>>()?;
        Ok(ExecArguments { path: text(path.as_os_str())?, words, environment })
    }

    /// Becomes the program, or returns why not. A script without `#!` is executed by the shell, as `execvp` does it.
    fn exec(&self) -> io::Error {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (words, environment) = (pointers(&self.words), pointers(&self.environment));
        // SAFETY: NUL-terminated strings, and arrays of them that end with NULL; all outlive the call.
        unsafe { libc::execvpe(self.path.as_ptr(), words.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// The signals that were blocked before.
struct SignalMask(libc::sigset_t);

impl SignalMask {
    /// Blocks [`FORWARDED`].
    fn block() -> SignalMask {
        // SAFETY: all bytes zero is a valid sigset_t, and each call gets places for such.
        unsafe {
            let (mut set, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            for signal in FORWARDED {
                libc::sigaddset(&mut set, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before);
            SignalMask(before)
        }
    }

    fn restore(&self) {
        // SAFETY: the set is what the kernel gave.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// The inherited actions of the forwarded signals. The program gets them back: ignored signals stay ignored.
struct SignalHandlers([libc::sigaction; FORWARDED.len()]);

impl SignalHandlers {
    fn install() -> SignalHandlers {
        SignalHandlers(FORWARDED.map(|signal| {
            // SAFETY: all bytes zero is a valid sigaction: no flags, nothing blocked.
            let (mut before, mut action): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
            action.sa_sigaction = forward as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: places for a set and one sigaction each; the handler is async-signal-safe. Handlers do not nest, as they
            // share the witness's socket.
            unsafe {
                libc::sigfillset(&mut action.sa_mask);
                libc::sigaction(signal, &action, &mut before);
            }
            before
        }))
    }

    fn restore(&self) {
        for (signal, before) in FORWARDED.iter().zip(&self.0) {
            // SAFETY: the action is what the kernel gave.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// Forwards a signal that another process sent to trace-cat alone.
extern "C" fn forward(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    let (child, witness) = (CHILD.load(Relaxed), WITNESS.load(Relaxed));
    // SAFETY: the kernel gives a siginfo_t to handlers that ask for it; a code of 0 or less means that a process sent
    // the signal, and then the siginfo_t names the sender: 0 for one of an outer PID namespace.
    let is_sent = unsafe { (*info).si_code <= 0 && (*info).si_pid() != child };
    // SAFETY: nanosleep reads a timespec, kill takes no pointers, and errno is restored for the code that was interrupted. The
    // child has not been waited for, so the process ID is still the child's.
    unsafe {
        let errno = *libc::__errno_location();
        if is_sent && witness != -1 {
            // A sender that means the group as well sends that signal next.
            libc::nanosleep(&libc::timespec { tv_sec: 0, tv_nsec: SETTLING }, std::ptr::null_mut());
            take_pending(signal);
        }
        // The witness is asked in each case, so that no signal stays pending there.
        if was_sent_to_group(witness, signal) {
            // Of one that came to the group before the witness could answer, that has taken both as one.
            while take_pending(signal) {
                was_sent_to_group(witness, signal);
            }
        } else if is_sent && child != 0 {
            libc::kill(child, signal);
        }
        *libc::__errno_location() = errno;
    }
}
