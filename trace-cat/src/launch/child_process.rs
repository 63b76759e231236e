//! Runs a program as if trace-cat were not there: with its own standard input, output and error, in the same process
//! group, and with the signals that are meant for it.
//!
//! What the terminal sends goes to the whole group, and so to the program as well: trace-cat goes on waiting. What
//! another process sends to trace-cat (`kill`, `timeout`) is handed on, except what the program itself sent to its group.
//! Signals that were ignored when trace-cat began are ignored by the program, unless it decides otherwise.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::support::inherited_state;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// With this exit status.
    Status(u8),
    /// By this signal.
    Signal(c_int),
}

/// The signals that end a process that does not expect them, and that people send to have something done.
const HANDED_ON: [c_int; 7] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// The program that runs, 0 if none does.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Runs the program at `path` to its end; `words` are its arguments, the name it was called by first.
///
/// # Errors
/// Why it could not be started.
pub fn run(path: &Path, words: &[OsString], variables: &[(&str, OsString)]) -> io::Result<ProgramEnd> {
    let start = ExecArguments::new(path, words, variables)?;
    let (mut result, failure) = pipe()?;
    // Held back until it is known whom to hand them to.
    let mask = SignalMask::block();
    let handlers = SignalHandlers::install();
    // SAFETY: this process has one thread, so that the child may do whatever this one may.
    let child = unsafe { libc::fork() };
    if child == 0 {
        handlers.restore();
        mask.restore();
        inherited_state::restore();
        let error = start.exec();
        let _ = (&failure).write_all(&error.raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes());
        // SAFETY: ends the process, and nothing of what it shares with the parent is flushed twice.
        unsafe { libc::_exit(super::refusal::CANNOT_EXECUTE.into()) }
    }
    let error = io::Error::last_os_error();
    drop(failure);
    CHILD.store(child.max(0), Relaxed);
    mask.restore();
    let ended = if child < 0 { Err(error) } else { wait(child) };
    handlers.restore();
    let ended = ended?;
    // The other end closes by itself when the program has begun.
    let mut errno = [0; 4];
    match result.read_exact(&mut errno) {
        Ok(()) => Err(io::Error::from_raw_os_error(c_int::from_ne_bytes(errno))),
        Err(_) => Ok(ended),
    }
}

/// Ends this process by a signal, so that whoever waits for it learns what has happened to the program.
pub fn end_by(signal: c_int) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid limit; the default action installs no code; signals to this process itself. A core of trace-cat
    // would replace the program's.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Waits for the end of `child`. Its number stays its own until nothing can be sent to it any more.
fn wait(child: c_int) -> io::Result<ProgramEnd> {
    // SAFETY: all bytes zero is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: a place for one siginfo_t.
    let seen =
        again(|| unsafe { libc::waitid(libc::P_PID, child as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT) });
    CHILD.store(0, Relaxed);
    seen?;
    let mut status = 0;
    // SAFETY: a place for one int.
    again(|| unsafe { libc::waitpid(child, &mut status, 0) })?;
    Ok(match libc::WIFSIGNALED(status) {
        true => ProgramEnd::Signal(libc::WTERMSIG(status)),
        false => ProgramEnd::Status(libc::WEXITSTATUS(status) as u8),
    })
}

/// Calls until no signal interrupts.
fn again(mut call: impl FnMut() -> c_int) -> io::Result<()> {
    loop {
        if call() >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A pipe whose ends an exec closes: the one to read from, the one to write to.
fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: a place for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just opened and belong to nobody else.
    Ok(ends.map(|end| unsafe { File::from_raw_fd(end) }).into())
}

/// What exec takes, made before the fork.
struct ExecArguments {
    path: CString,
    words: Vec<CString>,
    environment: Vec<CString>,
}

impl ExecArguments {
    fn new(path: &Path, words: &[OsString], variables: &[(&str, OsString)]) -> io::Result<ExecArguments> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into());
        let inherited = std::env::vars_os().filter(|(name, _)| variables.iter().all(|(set, _)| name != set));
        let set = variables.iter().map(|(name, value)| (OsString::from(name), value.clone()));
        let environment = inherited.chain(set).map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            text(&entry)
        });
        let environment = environment.collect::<io::Result<_>>()?;
        let words = words.iter().map(|word| text(word)).collect::<io::Result<_>>()?;
        Ok(ExecArguments { path: text(path.as_os_str())?, words, environment })
    }

    /// Becomes the program, or says why not. A script without `#!` is the shell's, as everywhere.
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
    /// Blocks [`HANDED_ON`].
    fn block() -> SignalMask {
        // SAFETY: all bytes zero is a valid sigset_t, and each call gets places for such.
        unsafe {
            let (mut set, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&mut set);
            for signal in HANDED_ON {
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

/// What was done before with the signals that are handed on. The program gets them so: ignored if they were.
struct SignalHandlers([libc::sigaction; HANDED_ON.len()]);

impl SignalHandlers {
    fn install() -> SignalHandlers {
        SignalHandlers(HANDED_ON.map(|signal| {
            // SAFETY: all bytes zero is a valid sigaction: no flags, nothing blocked.
            let (mut before, mut action): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
            action.sa_sigaction = hand_on as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            // SAFETY: places for one sigaction each; the handler is async-signal-safe.
            unsafe { libc::sigaction(signal, &action, &mut before) };
            before
        }))
    }

    fn restore(&self) {
        for (signal, before) in HANDED_ON.iter().zip(&self.0) {
            // SAFETY: the action is what the kernel gave.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

/// Hands a signal on that another process sent.
extern "C" fn hand_on(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    let child = CHILD.load(Relaxed);
    // SAFETY: the kernel gives a siginfo_t to handlers that ask for it; a code of 0 or less means that a process sent
    // it, and then the sender is there.
    let from = unsafe { if (*info).si_code <= 0 { (*info).si_pid() } else { 0 } };
    if child != 0 && from != 0 && from != child {
        // SAFETY: kill takes no pointers, and errno is put back for what was interrupted. The child has not been
        // waited for, so the number is its own.
        unsafe {
            let errno = *libc::__errno_location();
            libc::kill(child, signal);
            *libc::__errno_location() = errno;
        }
    }
}
