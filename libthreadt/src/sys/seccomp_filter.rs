//! The seccomp filters that the program has installed: they are asked before each system call of this library.
//!
//! A filter that kills for a call that the program never makes must not meet that call; nor must one that lets another
//! thread answer it, which may wait for the asking one. Filters from before the program began, and those of an inlined
//! system call, are not known here.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

use libc::sock_filter;

use super::thread_word::thread_pointer;
use super::unasked_call::call_unasked;

/// What a filter decides on: the kernel's `struct seccomp_data` as words of 32 bits.
type CallData = [u32; 16];

/// `AUDIT_ARCH_X86_64`: the machine's number in ELF, 64 bits, little endian.
const ARCHITECTURE: u32 = 62 | 0x8000_0000 | 0x4000_0000;

/// A copy of a filter. As many instructions follow it as it says.
#[derive(Debug)]
#[repr(C)]
pub struct Filter {
    /// Instructions; 0 if the kernel has not taken the filter, or it concerns nobody any more.
    length: AtomicU32,
    /// Instructions for which there is room.
    capacity: AtomicU32,
    /// Of a vfork child's filter: the child's PID. Else 0.
    guest: AtomicU32,
    /// Of a vfork child's filter: [`thread_pointer`] of the thread that waits for it, in whose place the child runs.
    thread: AtomicUsize,
    older: AtomicPtr<Filter>,
}

/// The filters, newest first. A forked child inherits both the list and the filters.
static NEWEST: AtomicPtr<Filter> = AtomicPtr::new(null_mut());

impl Filter {
    /// Bytes for a filter of so many instructions.
    pub const fn size(instructions: usize) -> usize {
        size_of::<Filter>() + instructions * size_of::<sock_filter>()
    }

    /// A filter without instructions at `memory`, which has room for so many.
    ///
    /// # Safety
    /// The memory must be zero, of [`Filter::size`], and used for nothing else from now on.
    pub unsafe fn at(memory: *mut u8, instructions: u16) -> &'static Filter {
        // SAFETY: zeros are a valid filter; the caller's.
        let filter = unsafe { &*memory.cast::<Filter>() };
        filter.capacity.store(instructions.into(), Relaxed);
        filter
    }

    /// Where the instructions are.
    pub fn first_instruction(&self) -> *mut sock_filter {
        (&raw const *self).wrapping_add(1).cast_mut().cast()
    }

    /// The filter has so many instructions from now on. That of a vfork child, which is the caller and `guest`, does not concern the
    /// process whose memory the child shares.
    pub fn begin(&self, instructions: u16, guest: Option<u32>) {
        self.thread.store(thread_pointer(), Relaxed);
        self.guest.store(guest.unwrap_or(0), Relaxed);
        // ORDERING: Release; a signal handler of this thread, or who finds the filter, finds what is above.
        self.length.store(instructions.into(), Release);
    }

    fn instructions(&self) -> &[sock_filter] {
        // SAFETY: as many follow, and nobody changes them but this thread, when they concern nobody.
        unsafe { core::slice::from_raw_parts(self.first_instruction(), self.length.load(Acquire) as usize) }
    }

    /// Whether the filter would kill for this call, or have it answered by somebody else.
    fn kills(&self, data: &CallData) -> bool {
        let instructions = self.instructions();
        !instructions.is_empty() && !lets_live(run(instructions, data))
    }

    /// Whether a thread under the filter can no longer begin to record, or write files.
    pub fn kills_for_recording(&self) -> bool {
        let needed = [libc::SYS_openat, libc::SYS_fstat, libc::SYS_pwrite64, libc::SYS_close];
        let mut needed = needed.into_iter().chain([libc::SYS_getpid, libc::SYS_gettid]);
        needed.any(|number| self.kills(&call_data(number, &LATER)))
    }

    /// Whether a process under the filter may be unable to make the files of a trace.
    pub fn refuses_files(&self) -> bool {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NOCTTY;
        let open = (libc::SYS_openat, [libc::AT_FDCWD as usize, 0, flags as usize, 0o600, 0, 0]);
        let others = [libc::SYS_fstat, libc::SYS_fallocate, libc::SYS_close].map(|number| (number, LATER));
        let instructions = self.instructions();
        [open].into_iter().chain(others).any(|(number, arguments)| {
            let action = run(instructions, &call_data(number, &arguments)) & libc::SECCOMP_RET_ACTION_FULL;
            !lets_live(action) || action == libc::SECCOMP_RET_ERRNO
        })
    }

    /// Adds the filter, which is about to be installed, to those that are asked.
    pub fn apply(&'static self) {
        if filters().any(|filter| core::ptr::eq(filter, self)) {
            return;
        }
        let mut newest = NEWEST.load(Relaxed);
        loop {
            self.older.store(newest, Relaxed);
            // ORDERING: Release; who finds the filter finds its instructions.
            match NEWEST.compare_exchange(newest, (&raw const *self).cast_mut(), Release, Relaxed) {
                Ok(_) => return,
                Err(other) => newest = other,
            }
        }
    }

    /// Takes back what [`Filter::apply`] did: the kernel has refused the filter.
    pub fn withdraw(&self) {
        self.length.store(0, Relaxed);
    }
}

/// Arguments of the calls that follow the opening of a file. Its number is not known before, and a filter may judge by it: of
/// the program's own ones, which are the least. This is one of those to which this library moves its files.
const LATER: [usize; 6] = [63, 0, 0, 0, 0, 0];

/// Whether a filter would kill for this system call, raise SIGSYS or have somebody else answer it; or for closing what it
/// opens, or writing to it.
#[inline]
pub fn would_kill(number: libc::c_long, arguments: &[usize; 6]) -> bool {
    !NEWEST.load(Relaxed).is_null() && would_kill_for_all(number, arguments)
}

#[cold]
#[inline(never)]
fn would_kill_for_all(number: libc::c_long, arguments: &[usize; 6]) -> bool {
    let [_, _, flags, ..] = arguments;
    let later: &[libc::c_long] = match number {
        libc::SYS_openat if *flags as i32 & libc::O_ACCMODE == libc::O_WRONLY => {
            &[libc::SYS_close, libc::SYS_fstat, libc::SYS_pwrite64]
        }
        libc::SYS_openat => &[libc::SYS_close, libc::SYS_fstat],
        _ => &[],
    };
    some_filter_kills(number, arguments) || later.iter().any(|number| some_filter_kills(*number, &LATER))
}

fn some_filter_kills(number: libc::c_long, arguments: &[usize; 6]) -> bool {
    let data = call_data(number, arguments);
    filters().any(|filter| filter.kills(&data) && !has_gone(filter))
}

/// The filters that may concern the calling thread, newest first.
fn filters() -> impl Iterator<Item = &'static Filter> {
    // ORDERING: Acquire pairs with the Release in `apply`.
    // SAFETY: null, or a filter, which stays.
    let first = unsafe { NEWEST.load(Acquire).as_ref() };
    // SAFETY: as above.
    let all = core::iter::successors(first, |filter| unsafe { filter.older.load(Acquire).as_ref() });
    all.filter(|filter| filter.guest.load(Relaxed) == 0 || filter.thread.load(Relaxed) == thread_pointer())
}

/// Whether the filter was that of a vfork child that is not the caller, and so has ended or executed a program. It is not asked again.
fn has_gone(filter: &Filter) -> bool {
    let guest = filter.guest.load(Relaxed);
    let question = call_data(libc::SYS_getpid, &[0; 6]);
    if guest == 0 || filters().any(|filter| filter.kills(&question)) {
        return false;
    }
    // SAFETY: the call takes no pointer.
    let has_gone = unsafe { call_unasked(libc::SYS_getpid, [0; 6]) } != Ok(guest as usize);
    if has_gone {
        filter.withdraw();
    }
    has_gone
}

/// A filter of an earlier vfork child of the calling thread's that has room for so many instructions.
pub fn left_by_guest(instructions: u16) -> Option<&'static Filter> {
    filters().find(|filter| filter.capacity.load(Relaxed) >= instructions.into() && has_gone(filter))
}

/// What filters see of a call.
fn call_data(number: libc::c_long, arguments: &[usize; 6]) -> CallData {
    core::array::from_fn(|word| match word {
        0 => number as u32,
        1 => ARCHITECTURE,
        // The address of the call, which no filter can expect to be in this library.
        2 | 3 => 0,
        _ => {
            let argument = arguments.get((word - 4) / 2).copied().unwrap_or(0);
            (argument >> (32 * (word % 2))) as u32
        }
    })
}

/// Whether the kernel makes the call, or refuses it without a signal.
fn lets_live(action: u32) -> bool {
    let harmless = [libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_LOG, libc::SECCOMP_RET_TRACE, libc::SECCOMP_RET_ERRNO];
    harmless.contains(&(action & libc::SECCOMP_RET_ACTION_FULL))
}

/// What a program returns for a call: an action. What the kernel would not take as a program kills.
///
/// These are the instructions that filters may have (`seccomp_check_filter`, kernel/seccomp.c): words of 32 bits, jumps
/// forward only.
fn run(program: &[sock_filter], data: &CallData) -> u32 {
    const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const MEMORY_WORDS: usize = 16;
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; MEMORY_WORDS]);
    let mut at = 0usize;
    while let Some(&sock_filter { code, jt, jf, k }) = program.get(at) {
        at += 1;
        let code = u32::from(code);
        let place = k as usize & (MEMORY_WORDS - 1);
        let operand = if code & libc::BPF_X != 0 { x } else { k };
        match code & 7 {
            libc::BPF_LD | libc::BPF_LDX => {
                let value = match code & 0xe0 {
                    libc::BPF_ABS => data.get(k as usize / size_of::<u32>()).copied().unwrap_or(0),
                    libc::BPF_LEN => size_of::<CallData>() as u32,
                    libc::BPF_IMM => k,
                    libc::BPF_MEM => memory[place],
                    _ => return KILL,
                };
                *(if code & 7 == libc::BPF_LD { &mut a } else { &mut x }) = value;
            }
            libc::BPF_ST => memory[place] = a,
            libc::BPF_STX => memory[place] = x,
            libc::BPF_ALU => {
                a = match code & 0xf0 {
                    libc::BPF_ADD => a.wrapping_add(operand),
                    libc::BPF_SUB => a.wrapping_sub(operand),
                    libc::BPF_MUL => a.wrapping_mul(operand),
                    libc::BPF_DIV => match a.checked_div(operand) {
                        Some(quotient) => quotient,
                        None => return KILL,
                    },
                    libc::BPF_OR => a | operand,
                    libc::BPF_AND => a & operand,
                    libc::BPF_XOR => a ^ operand,
                    libc::BPF_LSH => a.checked_shl(operand).unwrap_or(0),
                    libc::BPF_RSH => a.checked_shr(operand).unwrap_or(0),
                    libc::BPF_NEG => a.wrapping_neg(),
                    _ => return KILL,
                }
            }
            libc::BPF_JMP => {
                let holds = match code & 0xf0 {
                    libc::BPF_JA => {
                        at = at.saturating_add(k as usize);
                        continue;
                    }
                    libc::BPF_JEQ => a == operand,
                    libc::BPF_JGT => a > operand,
                    libc::BPF_JGE => a >= operand,
                    libc::BPF_JSET => a & operand != 0,
                    _ => return KILL,
                };
                at += usize::from(if holds { jt } else { jf });
            }
            libc::BPF_RET => return if code & 0x18 == libc::BPF_A { a } else { k },
            // BPF_MISC: TAX and TXA.
            _ if code & 0xf8 == 0 => x = a,
            _ => a = x,
        }
    }
    KILL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
        sock_filter { code: code as u16, jt, jf, k }
    }

    /// The words of a call, and what the kernel's arithmetic makes of them.
    #[test]
    fn programs_compute_as_the_kernel_does() {
        use libc::{
            BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_DIV, BPF_IMM, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP,
            BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LEN, BPF_LSH, BPF_MEM, BPF_MISC, BPF_MUL, BPF_NEG, BPF_OR, BPF_RET,
            BPF_RSH, BPF_ST, BPF_STX, BPF_SUB, BPF_TAX, BPF_TXA, BPF_W, BPF_X, BPF_XOR,
        };
        let data = call_data(257, &[0x1_0000_0002, 3, 0, 0, 0, 0x5_0000_0006]);
        let result = |before: &[sock_filter]| {
            let mut program = before.to_vec();
            program.push(instruction(BPF_RET | BPF_A, 0, 0, 0));
            run(&program, &data)
        };
        let load = |at| instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, at);
        let words = [(0, 257), (4, 0xc000_003e), (8, 0), (16, 2), (20, 1), (24, 3), (56, 6), (60, 5)];
        for (at, word) in words {
            assert_eq!(result(&[load(at)]), word, "{at}");
        }
        assert_eq!(result(&[instruction(BPF_LD | BPF_W | BPF_LEN, 0, 0, 0)]), 64);
        for (operation, value) in [
            (BPF_ADD, 264),
            (BPF_SUB, 250),
            (BPF_MUL, 1799),
            (BPF_DIV, 36),
            (BPF_AND, 1),
            (BPF_OR, 263),
            (BPF_XOR, 262),
            (BPF_LSH, 32896),
            (BPF_RSH, 2),
        ] {
            let by_constant = [load(0), instruction(BPF_ALU | operation | BPF_K, 0, 0, 7)];
            assert_eq!(result(&by_constant), value, "{operation:#x}");
            let by_index =
                [load(0), instruction(BPF_LDX | BPF_IMM, 0, 0, 7), instruction(BPF_ALU | operation | BPF_X, 0, 0, 0)];
            assert_eq!(result(&by_index), value, "{operation:#x} by X");
        }
        assert_eq!(result(&[load(0), instruction(BPF_ALU | BPF_NEG, 0, 0, 0)]), 257u32.wrapping_neg());
        assert_eq!(result(&[load(0), instruction(BPF_ALU | BPF_DIV | BPF_X, 0, 0, 0)]), libc::SECCOMP_RET_KILL_PROCESS);
        for (jump, k, holds) in [
            (BPF_JEQ, 257, true),
            (BPF_JEQ, 256, false),
            (BPF_JGT, 256, true),
            (BPF_JGT, 257, false),
            (BPF_JGE, 257, true),
            (BPF_JGE, 258, false),
            (BPF_JSET, 0x101, true),
            (BPF_JSET, 0xfe, false),
        ] {
            let jumps = [load(0), instruction(BPF_JMP | jump | BPF_K, 1, 0, k), load(8), load(0), load(0)];
            let skips = instruction(BPF_JMP | BPF_JA, 0, 0, 1);
            let program = [
                jumps[0],
                jumps[1],
                skips,
                instruction(BPF_RET | BPF_K, 0, 0, 1),
                instruction(BPF_RET | BPF_K, 0, 0, 2),
            ];
            assert_eq!(run(&program, &data), if holds { 1 } else { 2 }, "{jump:#x} {k}");
        }
        let through_memory = [
            load(16),
            instruction(BPF_ST, 0, 0, 3),
            instruction(BPF_LDX | BPF_MEM, 0, 0, 3),
            instruction(BPF_STX, 0, 0, 15),
            instruction(BPF_LD | BPF_IMM, 0, 0, 0),
            instruction(BPF_LD | BPF_MEM, 0, 0, 15),
            instruction(BPF_MISC | BPF_TAX, 0, 0, 0),
            instruction(BPF_LD | BPF_IMM, 0, 0, 0),
            instruction(BPF_MISC | BPF_TXA, 0, 0, 0),
        ];
        assert_eq!(result(&through_memory), 2);
        assert_eq!(run(&[load(0)], &data), libc::SECCOMP_RET_KILL_PROCESS, "a program that returns nothing");
    }

    #[test]
    fn only_actions_with_a_signal_or_an_answer_forbid() {
        for action in [libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ERRNO | 13, libc::SECCOMP_RET_LOG] {
            assert!(lets_live(action), "{action:#x}");
        }
        for action in [
            libc::SECCOMP_RET_KILL_PROCESS,
            libc::SECCOMP_RET_KILL_THREAD,
            libc::SECCOMP_RET_TRAP | 1,
            libc::SECCOMP_RET_USER_NOTIF,
            77 << 16,
        ] {
            assert!(!lets_live(action), "{action:#x}");
        }
    }
}
