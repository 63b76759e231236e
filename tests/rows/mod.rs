//! Each row of the tables, exercised by a program of `programs/rows`.
//!
//! A program calls the functions, natively and under the library, and prints what it passed and got (`expect.h`
//! describes how). The trace must hold exactly that, record by record and column by column; and the programs together must call
//! every function and make every record that the tables have.

mod coverage;
pub mod expectation;
pub mod recorded_calls;

use crate::harness::{Program, TestCommand, TestDirectory};
pub use coverage::in_c_library;
use expectation::Printed;

/// One run of a row program.
pub struct Case {
    /// Its source in `programs/rows`.
    pub source: &'static str,
    /// Its argument; empty for none.
    pub argument: &'static str,
    /// The exit status it ends with.
    status: i32,
}

impl Case {
    /// The program, compiled.
    pub fn program(&self) -> Program {
        self.program_with(&[])
    }

    /// The program, compiled with further flags.
    pub fn program_with(&self, flags: &[&str]) -> Program {
        Program::with_flags(&format!("rows/{}", self.source), flags)
    }

    /// Runs it and reads what it prints.
    pub fn print(&self, run: TestCommand<'_>) -> Printed {
        let arguments = Some(self.argument).filter(|argument| !argument.is_empty());
        let output = run.args(arguments).run();
        output.exited(self.status);
        let printed = Printed::parse(output.stdout_text());
        for function in &printed.missing {
            assert!(!in_c_library(function), "{}: prints that {function} is missing", output.command);
        }
        printed
    }

    /// Runs it natively and traced, with records that are buffered and that are written at once, and compares.
    fn test(&self) {
        let test = TestDirectory::new(self.source);
        let native = self.print(test.native(self.program()));
        self.compare(&native, &test, test.traced(self.program()));
        let test = TestDirectory::new(self.source);
        self.compare(&native, &test, test.traced(self.program()).env("THR_TRACE_BUF", "1"));
    }

    /// Runs it under the library and compares what it prints with the trace.
    fn compare(&self, native: &Printed, test: &TestDirectory, run: TestCommand<'_>) {
        let traced = self.print(run);
        native.assert_same_calls(&traced);
        recorded_calls::assert_as_expected(&traced.expectations, &test.trace());
        recorded_calls::assert_merged(&test.trace(), &test.merged());
    }
}

/// Makes a test of each line, and `CASES` of all of them.
macro_rules! cases {
    ($($name:ident: $source:literal $argument:literal => $status:literal;)*) => {
        /// All of them.
        pub const CASES: &[Case] = &[
            $(Case { source: $source, argument: $argument, status: $status },)*
        ];
        $(
            #[test]
            fn $name() {
                Case { source: $source, argument: $argument, status: $status }.test();
            }
        )*
    };
}

cases! {
    mutex_normal: "mutex.c" "normal" => 0;
    mutex_recursive: "mutex.c" "recursive" => 0;
    mutex_errorcheck: "mutex.c" "errorcheck" => 0;
    mutex_adaptive: "mutex.c" "adaptive" => 0;
    robust: "robust.c" "plain" => 0;
    robust_recursive: "robust.c" "recursive" => 0;
    ceiling: "ceiling.c" "plain" => 0;
    ceiling_recursive: "ceiling.c" "recursive" => 0;
    cond: "cond.c" "" => 0;
    sema: "sema.c" "" => 0;
    rwlock: "rwlock.c" "" => 0;
    barrier: "barrier.c" "" => 0;
    spin: "spin.c" "" => 0;
    futex: "futex.c" "" => 0;
    thread: "thread.c" "" => 0;
    keys: "keys.c" "" => 0;
    join: "join.c" "" => 0;
    once: "once.c" "" => 0;
    cancel: "cancel.c" "" => 0;
    c11: "c11.c" "" => 0;
    old_versions: "versions.c" "" => 0;
    process_return: "process.c" "return" => 41;
    // What the kernel keeps of -3.
    process_exit: "process.c" "exit" => 253;
    process_exit_at_once: "process.c" "_exit" => 41;
    process_exit_at_once_c99: "process.c" "_Exit" => 41;
    process_quick_exit: "process.c" "quick_exit" => 41;
    process_old_quick_exit: "process.c" "quick_exit@GLIBC_2.10" => 41;
    process_fork: "process.c" "fork" => 0;
    process_fork_without_handlers: "process.c" "_Fork" => 0;
    process_vfork: "spawn.c" "vfork" => 0;
    process_forkpty: "spawn.c" "forkpty" => 0;
    process_daemon: "spawn.c" "daemon" => 0;
    process_posix_spawn: "spawn.c" "posix_spawn" => 0;
    process_posix_spawnp: "spawn.c" "posix_spawnp" => 0;
    process_pidfd_spawn: "spawn.c" "pidfd_spawn" => 0;
    process_pidfd_spawnp: "spawn.c" "pidfd_spawnp" => 0;
    process_system: "spawn.c" "system" => 0;
    process_popen: "spawn.c" "popen" => 0;
    process_execve: "process.c" "execve" => 0;
    process_execv: "process.c" "execv" => 0;
    process_execvp: "process.c" "execvp" => 0;
    process_execvpe: "process.c" "execvpe" => 0;
    process_execl: "process.c" "execl" => 0;
    process_execlp: "process.c" "execlp" => 0;
    process_execle: "process.c" "execle" => 0;
    process_fexecve: "process.c" "fexecve" => 0;
    process_execveat: "process.c" "execveat" => 0;
}
