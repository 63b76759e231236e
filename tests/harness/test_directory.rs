//! A test's own directory, and the commands that it runs there.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{CommandOutput, Trace, library, trace_cat};

/// How long a test waits for a command before that counts as hanging. Beside forty other programs git and java, not recorded, took more
/// than 120 seconds for what takes one.
const PATIENCE: Duration = Duration::from_secs(600);

/// A fresh directory for one test. It is removed when the test succeeds. When the test fails, it stays, and the commands that ran
/// there are printed.
#[derive(Debug)]
pub struct TestDirectory {
    directory: Option<TempDir>,
    commands: RefCell<Vec<String>>,
    /// Commands started so far; numbers their output files.
    started: Cell<u32>,
}

impl TestDirectory {
    /// A new directory with an empty trace directory in it; `name` helps to find it after a failure.
    pub fn new(name: &str) -> TestDirectory {
        let directory = tempfile::Builder::new().prefix(&format!("threadt-{name}-")).tempdir().unwrap();
        fs::create_dir(directory.path().join("trace")).unwrap();
        TestDirectory { directory: Some(directory), commands: RefCell::default(), started: Cell::new(0) }
    }

    /// The directory: where its commands run.
    pub fn directory(&self) -> &Path {
        self.directory.as_ref().expect("a test has its directory until it is dropped").path()
    }

    /// The trace directory: what `THR_TRACE_DIR` is for traced commands.
    pub fn trace_directory(&self) -> PathBuf {
        self.directory().join("trace")
    }

    /// A command without the library.
    pub fn native(&self, program: impl AsRef<OsStr>) -> TestCommand<'_> {
        let run = TestCommand { test: self, command: Command::new(program), noise: false };
        std::env::vars_os()
            .map(|(name, _)| name)
            .filter(|name| name == "LD_PRELOAD" || name.as_encoded_bytes().starts_with(b"THR_TRACE_"))
            .fold(run, |run, name| run.env_remove(name))
    }

    /// A command under the library, its trace in [`TestDirectory::trace_directory`].
    pub fn traced(&self, program: impl AsRef<OsStr>) -> TestCommand<'_> {
        self.native(program).env("LD_PRELOAD", library()).env("THR_TRACE_DIR", self.trace_directory())
    }

    /// trace-cat, with the trace directory as its only argument so far.
    pub fn trace_cat(&self) -> TestCommand<'_> {
        self.native(trace_cat()).arg(self.trace_directory())
    }

    /// The same, with a message for each thread whose ring has overwritten records.
    pub fn trace_cat_by_thread(&self) -> TestCommand<'_> {
        self.trace_cat().env("RUST_LOG", "trace_cat::trace::thread_completeness=info")
    }

    /// Every record that stands in the directory's `tr.*` files; each must decode.
    pub fn trace(&self) -> Trace {
        Trace::read(&self.trace_directory())
    }

    /// The records that trace-cat prints of the directory. It must print no message but that there are several runs, or several processes
    /// of one number.
    pub fn merged(&self) -> Trace {
        let output = self.trace_cat().run();
        output.success();
        let notes = [
            " runs; --last is for the newest alone",
            " renamed files (old.*) are not read",
            "process IDs stand for ",
            ": they have one clock;",
        ];
        let is_complaint = |line: &&str| notes.iter().all(|note| !line.contains(note));
        let complaints: Vec<&str> = output.stderr_text().lines().filter(is_complaint).collect();
        assert!(complaints.is_empty(), "trace-cat complains: {complaints:#?}");
        Trace::parse("trace-cat", &output.stdout)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        let users = if std::thread::panicking() { Vec::new() } else { remaining_users(directory.path()) };
        if std::thread::panicking() || !users.is_empty() {
            let kept = directory.keep();
            eprintln!("kept {}; what ran there:", kept.display());
            for command in self.commands.borrow().iter() {
                eprintln!("  {command}");
            }
        }
        assert!(users.is_empty(), "processes of the test still run: {users:?}");
    }
}

/// Waits until no process works in the directory or has a file of it mapped: a trace grows until its last process has ended, and a
/// directory that grows cannot be removed. Returns those that still do after a while, as `PID COMMAND`.
fn remaining_users(directory: &Path) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE / 10;
    loop {
        let users: Vec<String> = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && uses(name, directory))
            .map(|pid| {
                format!("{pid} {}", fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end())
            })
            .collect();
        if users.is_empty() || Instant::now() > deadline {
            return users;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process works in the directory or has a file of it mapped. One that has ended does neither.
fn uses(pid: &str, directory: &Path) -> bool {
    let process = Path::new("/proc").join(pid);
    let works_there = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
    let path = directory.as_os_str().as_encoded_bytes();
    works_there || fs::read(process.join("maps")).is_ok_and(|maps| memchr::memmem::find(&maps, path).is_some())
}

/// A command that is being put together.
#[derive(Debug)]
pub struct TestCommand<'a> {
    test: &'a TestDirectory,
    command: Command,
    noise: bool,
}

impl<'a> TestCommand<'a> {
    /// Appends an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> TestCommand<'a> {
        self.command.arg(argument);
        self
    }

    /// Appends arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> TestCommand<'a> {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of the environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> TestCommand<'a> {
        self.command.env(name, value);
        self
    }

    /// Lets it write each record by itself, if that is wanted.
    pub fn unbuffered_if(self, unbuffered: bool) -> TestCommand<'a> {
        if unbuffered { self.env("THR_TRACE_BUF", "1") } else { self }
    }

    /// Takes a variable out of the environment.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> TestCommand<'a> {
        self.command.env_remove(name);
        self
    }

    /// Runs it there instead of in the test's directory.
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> TestCommand<'a> {
        self.command.current_dir(directory);
        self
    }

    /// Allows the library to print messages on stderr. The test checks them.
    pub fn noise_expected(mut self) -> TestCommand<'a> {
        self.noise = true;
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started, if it does not end in time, or if the library prints an unexpected message.
    pub fn run(self) -> CommandOutput {
        self.spawn().wait()
    }

    /// Starts it.
    pub fn spawn(mut self) -> RunningCommand {
        let number = self.test.started.get();
        self.test.started.set(number + 1);
        let directory = self.test.directory();
        // Files and not pipes: nobody has to read along, and a grandchild that lives on holds up nothing.
        let stdout = directory.join(format!("{number}.stdout"));
        let stderr = directory.join(format!("{number}.stderr"));
        let shown = shown(&self.command, directory);
        self.test.commands.borrow_mut().push(shown.clone());
        if self.command.get_current_dir().is_none() {
            self.command.current_dir(directory);
        }
        // A group of its own, so that a hanging command's children can be ended with it.
        self.command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap());
        // A shell starts what runs in its background with these signals ignored, and nohup, the tests perhaps, too.
        let suite = std::process::id();
        let as_usual = move || {
            // It dies with the thread that started it: a suite that is killed leaves none behind.
            // SAFETY: no memory is involved.
            let (result, parent) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
            if result != 0 || parent as u32 != suite {
                return Err(std::io::Error::last_os_error());
            }
            // Programs count descriptors. What runs the suite may leave some to it, as make and GNU time do.
            // SAFETY: no memory is involved.
            unsafe { libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) };
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
                // SAFETY: signal() may be called in a forked child, and takes no pointer but this constant.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: it only makes system calls.
        unsafe { self.command.pre_exec(as_usual) };
        let child = self.command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        RunningCommand { child, shown, stdout, stderr, noise: self.noise }
    }
}

/// The command as a line for a shell.
fn shown(command: &Command, directory: &Path) -> String {
    let mut line = format!("cd {} &&", quoted(command.get_current_dir().unwrap_or(directory).as_os_str()));
    let (set, removed): (Vec<_>, Vec<_>) = command.get_envs().partition(|(_, value)| value.is_some());
    if !set.is_empty() || !removed.is_empty() {
        line += " env";
    }
    for (name, _) in removed {
        line += &format!(" -u {}", quoted(name));
    }
    for (name, value) in set {
        line += &format!(" {}={}", quoted(name), quoted(value.unwrap_or_default()));
    }
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        line += &format!(" {}", quoted(word));
    }
    line
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+%@".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A command that runs.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    shown: String,
    stdout: PathBuf,
    stderr: PathBuf,
    noise: bool,
}

impl RunningCommand {
    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn stdout(&self) -> Vec<u8> {
        fs::read(&self.stdout).unwrap()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it has printed `text`.
    ///
    /// # Panics
    /// If it ends before, or takes too long.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while memchr::memmem::find(&self.stdout(), text.as_bytes()).is_none() {
            let ended = self.has_ended();
            let printed = memchr::memmem::find(&self.stdout(), text.as_bytes()).is_some();
            assert!(printed || !ended, "{}: ended before it printed {text:?}", self.shown);
            self.check_patience(deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        self.send(self.child.id() as libc::pid_t, signal);
    }

    /// Sends a signal to it and to all other processes of its group.
    pub fn signal_group(&self, signal: libc::c_int) {
        self.send(-(self.child.id() as libc::pid_t), signal);
    }

    fn send(&self, to: libc::pid_t, signal: libc::c_int) {
        // SAFETY: kill takes no pointers, and the process has not been waited for, so the ID is still its own.
        let result = unsafe { libc::kill(to, signal) };
        assert_eq!(result, 0, "{}: kill: {}", self.shown, std::io::Error::last_os_error());
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// As [`TestCommand::run`].
    pub fn wait(mut self) -> CommandOutput {
        let deadline = Instant::now() + PATIENCE;
        let mut pause = Duration::from_micros(200);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            self.check_patience(deadline);
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        let output = CommandOutput {
            status,
            stdout: fs::read(&self.stdout).unwrap(),
            stderr: fs::read(&self.stderr).unwrap(),
            command: self.shown.clone(),
        };
        if !self.noise {
            let noise: Vec<&str> = output.noise();
            assert!(noise.is_empty(), "{}: the library prints {noise:#?}", output.command);
        }
        output
    }

    /// Fails, and ends the command with its children, when its time is up.
    fn check_patience(&self, deadline: Instant) {
        if Instant::now() > deadline {
            panic!("{}: still running after its time; killed", self.shown);
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SAFETY: kill takes no pointers; the group was made for this child, which has not been waited for.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), libc::SIGKILL) };
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As when the suite is killed. A child in a group of its own gets no signal of the suite's.
    #[test]
    fn a_command_dies_with_the_thread_that_started_it() {
        let start = || {
            let test = TestDirectory::new("orphan");
            let running = test.native("sleep").arg("1000").spawn();
            (test, running)
        };
        let (_test, running) = std::thread::spawn(start).join().unwrap();
        running.wait().killed(libc::SIGKILL);
    }
}
