//! The workloads: loops of calls, threads, and complete programs.

use std::path::Path;

use crate::launch::Launch;
use crate::programs::Program;
use crate::ways::Way;

/// One thing that is measured in every way.
#[derive(Clone, Debug)]
pub struct Workload {
    /// As it stands in the table and in BENCH_ONLY.
    pub name: &'static str,
    /// In words.
    pub what: &'static str,
    /// What is run.
    pub kind: Kind,
}

/// How a workload is run, and what its figure means.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `calls KIND THREADS TURNS`: nanoseconds a turn.
    Calls {
        /// Of calls.c.
        calls: &'static str,
        /// How many make turns at once.
        threads: u64,
        /// Of each thread.
        turns: u64,
    },
    /// `functions TURNS`, recorded with THR_TRACE_EVENTS=func: nanoseconds a turn.
    Functions {
        /// Calls of the function.
        turns: u64,
    },
    /// `threads create WARM TURNS`: nanoseconds to create and join a thread.
    Create {
        /// Threads before it counts.
        warm: u64,
        /// Threads that count.
        turns: u64,
    },
    /// `forks KIND THREADS TURNS`: nanoseconds of processor time that a forked child takes.
    Forks {
        /// Of forks.c.
        child: &'static str,
        /// Threads of the process that forks.
        threads: u64,
        /// Children.
        turns: u64,
        /// The most that recording may add, microseconds.
        most: f64,
    },
    /// `threads memory THREADS PAIRS`: KiB.
    Memory {
        /// That live at the same time.
        threads: u64,
        /// Locks and unlocks of each.
        pairs: u64,
    },
    /// Wall time in seconds.
    Program(Program),
}

const fn calls(name: &'static str, what: &'static str, calls: &'static str, threads: u64, turns: u64) -> Workload {
    Workload { name, what, kind: Kind::Calls { calls, threads, turns } }
}

const fn forks(
    name: &'static str,
    what: &'static str,
    child: &'static str,
    threads: u64,
    turns: u64,
    most: f64,
) -> Workload {
    Workload { name, what, kind: Kind::Forks { child, threads, turns, most } }
}

const fn memory(name: &'static str, what: &'static str, threads: u64, pairs: u64) -> Workload {
    Workload { name, what, kind: Kind::Memory { threads, pairs } }
}

const fn real_program(name: &'static str, what: &'static str, program: Program) -> Workload {
    Workload { name, what, kind: Kind::Program(program) }
}

/// All of them, in the table's order. Turns are chosen so that a run takes a tenth of a second or two where it is traced.
pub const WORKLOADS: [Workload; 29] = [
    calls("mutex-1", "lock + unlock of a free mutex, one thread", "private", 1, 600_000),
    calls("mutex-2", "the same, two threads with a mutex each", "private", 2, 400_000),
    calls("shared-2", "the same, two threads with one mutex", "shared", 2, 200_000),
    calls("recursive-1", "lock + unlock of a free recursive mutex", "recursive", 1, 400_000),
    calls("rwlock-1", "read lock + unlock of a free rwlock", "read-lock", 1, 400_000),
    calls("semaphore-1", "post + wait that does not block", "semaphore", 1, 400_000),
    calls("ping-pong", "two threads wake each other by condition variables, there and back", "ping-pong", 2, 15_000),
    calls("stack-16", "a try of a locked mutex, in the innermost of 16 functions", "failed-try", 1, 100_000),
    calls("stack-16-fp", "the same in functions with frame pointers", "failed-try-fp", 1, 100_000),
    calls("backtrace-16", "the same place as stack-16, backtrace() of 16 frames", "backtrace", 1, 20_000),
    calls("unw-backtrace-16", "the same, unw_backtrace() of libunwind", "unw-backtrace", 1, 20_000),
    calls("system-call-1", "syscall(2) of a number that the library does not know: getppid", "system-call", 1, 600_000),
    Workload {
        name: "function-1",
        what: "enter + leave a function, compiled with -finstrument-functions, category func",
        kind: Kind::Functions { turns: 600_000 },
    },
    // A process can have 4096 record files: after as many threads each further one finds its file.
    Workload {
        name: "create-old",
        what: "create + join a thread whose record file exists",
        kind: Kind::Create { warm: 4200, turns: 2000 },
    },
    Workload {
        name: "create-new",
        what: "create + join a thread that gets a new record file",
        kind: Kind::Create { warm: 20, turns: 1000 },
    },
    forks("fork-begins", "fork of a child that ends by a system call", "begins", 1, 400, 300.0),
    forks("fork-ends", "fork of a child that ends by _exit", "ends", 1, 400, 300.0),
    forks("fork-records", "fork of a child that locks and unlocks, and ends by _exit", "records", 1, 400, 300.0),
    forks(
        "fork-1000",
        "fork of a process with 1000 threads; the child ends by a system call",
        "begins",
        1000,
        40,
        2000.0,
    ),
    // 560 pairs fill a buffer without writing it; of ten thousand threads that would be gigabytes.
    memory("memory-1", "peak memory with a live thread", 1, 560),
    memory("memory-100", "the same with 100", 100, 560),
    memory("memory-1000", "the same with 1000", 1000, 560),
    memory("memory-10000", "the same with 10000", 10_000, 1),
    real_program("sort", "sort -n of numbers, two threads", Program::Sort),
    real_program("xz", "xz -T2", Program::Xz),
    real_program("node", "node's crypto pool: pbkdf2 and scrypt", Program::Node),
    real_program("node-tls", "node starts and reads its certificates, in the complete environment", Program::NodeTls),
    real_program("java", "java: a thread pool, monitors and locks", Program::Java),
    real_program("git", "git repack -a -d -f, two threads", Program::Git),
];

/// A record and its text in a file of its own, one system call after the other, are this much slower.
const AT_ONCE: u64 = 20;

impl Workload {
    /// The group, a word of BENCH_ONLY: several small programs, one complete program, or memory.
    pub fn group(&self) -> &'static str {
        match self.kind {
            Kind::Calls { .. } | Kind::Functions { .. } | Kind::Create { .. } | Kind::Forks { .. } => "calls",
            Kind::Memory { .. } => "memory",
            Kind::Program(_) => "programs",
        }
    }

    /// Whether BENCH_ONLY means this one by a word.
    pub fn answers_to(&self, word: &str) -> bool {
        [self.name, self.group()].contains(&word)
    }

    /// The unit of the figure.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Calls { .. } | Kind::Functions { .. } | Kind::Create { .. } | Kind::Forks { .. } => "ns",
            Kind::Memory { .. } => "KiB",
            Kind::Program(_) => "s",
        }
    }

    /// The program. THR_TRACE_BUF makes fewer turns: a record is then hundreds of times slower.
    pub fn launch(&self, way: Way, sources: &Path, scratch: &Path) -> Launch {
        match &self.kind {
            Kind::Calls { calls, threads, .. } => {
                let turns = self.turns(way).unwrap_or(1);
                Launch::new(scratch.join("calls")).args([calls, &*threads.to_string(), &*turns.to_string()])
            }
            // The variables of a way count more: with nothing enabled functions are not recorded either.
            Kind::Functions { .. } => {
                let turns = self.turns(way).unwrap_or(1);
                Launch::new(scratch.join("functions")).arg(turns.to_string()).env("THR_TRACE_EVENTS", "func")
            }
            Kind::Create { warm, turns } => {
                Launch::new(scratch.join("threads")).args(["create", &*warm.to_string(), &*turns.to_string()])
            }
            Kind::Forks { child, threads, turns, .. } => {
                Launch::new(scratch.join("forks")).args([child, &*threads.to_string(), &*turns.to_string()])
            }
            Kind::Memory { threads, pairs } => {
                Launch::new(scratch.join("threads")).args(["memory", &*threads.to_string(), &*pairs.to_string()])
            }
            Kind::Program(program) => program.launch(sources, scratch),
        }
    }

    /// Turns of each thread, where they are counted.
    pub fn turns(&self, way: Way) -> Option<u64> {
        match self.kind {
            Kind::Calls { calls: "ping-pong", turns, .. } if way == Way::Buf => Some(turns / 4),
            Kind::Calls { turns, .. } | Kind::Functions { turns } if matches!(way, Way::Buf | Way::BufFloor) => {
                Some(turns / AT_ONCE)
            }
            Kind::Calls { turns, .. } | Kind::Functions { turns } => Some(turns),
            _ => None,
        }
    }

    /// How many events this way has to record, where it has to record all and they are known: of each turn two of the
    /// call that may wait and one of the other; uftrace's are counted as calls.
    pub fn events(&self, way: Way) -> Option<u64> {
        let a_turn = match way {
            Way::Native | Way::Floor | Way::BufFloor | Way::Off | Way::Blocked => return None,
            Way::Uftrace => 2,
            _ => 3,
        };
        match self.kind {
            // How often a wait for the other side is gone through is not known.
            Kind::Calls { calls: "ping-pong", .. } => None,
            // None at all.
            Kind::Calls { calls: "system-call", .. } => None,
            // A record a turn, and a stack's.
            Kind::Calls { calls: "failed-try" | "failed-try-fp" | "backtrace" | "unw-backtrace", .. } => None,
            // Nor is how often a thread waits for the other one, which is when it has a stack.
            Kind::Calls { calls: "shared", .. } if way == Way::Stack => None,
            Kind::Calls { threads, .. } => Some(a_turn * threads * self.turns(way)?),
            // One call of a function: uftrace counts calls, the others its beginning and its end.
            Kind::Functions { .. } => Some(if way == Way::Uftrace { 1 } else { 2 } * self.turns(way)?),
            _ => None,
        }
    }

    fn is_backtrace(&self) -> bool {
        matches!(self.kind, Kind::Calls { calls: "backtrace" | "unw-backtrace", .. })
    }

    /// Whether this way means anything for this workload: the floors are those of one loop, and a backtrace is not recorded, nor is
    /// a system call that the library does not know.
    pub fn has(&self, way: Way) -> bool {
        match way {
            Way::Floor | Way::BufFloor => self.name == "mutex-1",
            Way::Native => true,
            Way::Off | Way::Before | Way::Default => !self.is_backtrace(),
            _ => !self.is_backtrace() && !matches!(self.kind, Kind::Calls { calls: "system-call", .. }),
        }
    }

    /// Why this workload is not measured in this way, though both are there.
    pub fn excludes(&self, way: Way) -> Option<&'static str> {
        let lttng = matches!(way, Way::Lttng | Way::LttngOverwrite);
        match self.kind {
            Kind::Calls { calls: "read-lock" | "semaphore" | "ping-pong", .. } | Kind::Create { .. } if lttng => {
                Some("its wrapper records mutexes only")
            }
            Kind::Functions { .. } if lttng => Some("its wrapper records mutexes only"),
            Kind::Functions { .. } if matches!(way, Way::Blocked | Way::Stack) => Some("a function does not wait"),
            Kind::Forks { .. } if lttng || way == Way::Uftrace => Some("it is for threads"),
            Kind::Forks { threads: 1000.., .. } if way == Way::Ring => Some("4 MiB of ring a thread"),
            Kind::Program(Program::NodeTls) if lttng => Some("its wrapper records mutexes only"),
            Kind::Program(Program::NodeTls) if way == Way::Buf => Some("a write for each of a million records"),
            Kind::Program(Program::Java) if way == Way::Uftrace => {
                Some("it does not see what a library calls that is loaded later")
            }
            Kind::Memory { threads: 10_000.., .. } if !matches!(way, Way::Native | Way::Before | Way::Default) => {
                Some("ten thousand files or buffers each; see default")
            }
            Kind::Memory { threads: 1000.., .. } if way == Way::Ring => Some("4 MiB of ring a thread"),
            Kind::Memory { .. } if lttng => Some("buffers are the user's, not the thread's"),
            _ => None,
        }
    }

    /// Memory hardly varies, and many threads take long.
    pub fn rounds(&self, rounds: usize) -> usize {
        if matches!(self.kind, Kind::Memory { .. }) { rounds.min(3) } else { rounds }
    }

    /// Traces of many files stay until the end: for seconds ext4 steps around inodes that were just freed, 300 microseconds
    /// for each new file.
    pub fn keeps_trace(&self) -> bool {
        matches!(self.kind, Kind::Create { .. } | Kind::Forks { .. } | Kind::Memory { threads: 100.., .. })
    }
}
