//! What the environment asks for, read once in the life of a program.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spec::EventSet;
use spec::buffer::{RING_SIZES, SlotLayout};

use crate::say::{Cause, say};
use crate::stage::Settled;
use crate::sys;

/// The environment's wishes.
pub struct Config {
    /// Which events are recorded; [`EventSet::NONE`] also where nothing may be.
    pub events: EventSet,
    /// `THR_TRACE_MAX`: recording stops when so many bytes have been written.
    pub max: u64,
    /// `THR_TRACE_BUF`: each record goes to its file at once.
    pub unbuffered: bool,
    /// `THR_TRACE_LEVEL=blocked`: only calls that tell of waiting are recorded.
    pub only_blocked: bool,
    /// How large the slots are, and by `THR_TRACE_RING` whether they are rings.
    pub shape: SlotLayout,
}

/// The configuration, settled when the library wakes for the first time.
pub static CONFIG: Settled<Config> = Settled::new(Config {
    events: EventSet::NONE,
    max: u64::MAX,
    unbuffered: false,
    only_blocked: false,
    shape: SlotLayout::BUFFERS,
});

/// The bits of a column that only `THR_TRACE_DETAIL` fills: all or none.
static DETAIL: AtomicU64 = AtomicU64::new(0);

/// `value` with `THR_TRACE_DETAIL`, else 0.
#[inline(always)]
pub fn detail(value: u64) -> u64 {
    // ORDERING: Relaxed; set before the first switch is, and never changed.
    value & DETAIL.load(Relaxed)
}

/// Whether columns are to be filled that need a look at more than the call's arguments.
#[inline(always)]
pub fn is_detailed() -> bool {
    detail(1) != 0
}

unsafe extern "C" {
    static environ: *const *const c_char;
    /// Where the kernel has put argc, argv and, behind its NULL, the environment.
    static __libc_stack_end: *const usize;
}

/// The environment: libc's, or the one that the kernel gave if libc has not noted it yet (a sanitizer's runtime takes
/// locks in its preinit_array).
///
/// # Safety
/// The program must not be changing its environment in another thread.
unsafe fn environment() -> *const *const c_char {
    // SAFETY: the caller's; the initial stack is as the x86-64 ABI describes it, and stays mapped.
    unsafe { if environ.is_null() { __libc_stack_end.add(*__libc_stack_end + 2).cast() } else { environ } }
}

/// `THR_TRACE_DIR`, empty for the working directory. Points into the host's environment: to be copied at once.
pub fn directory() -> &'static [u8] {
    variable(b"THR_TRACE_DIR").unwrap_or(c"").to_bytes()
}

/// The value of an environment variable.
fn variable(name: &[u8]) -> Option<&'static CStr> {
    // SAFETY: libc keeps `environ` as a NULL-terminated array of NUL-terminated strings; it is read before the program
    // itself runs (or, if a hook runs earlier, before there are other threads).
    unsafe {
        let mut entry = environment();
        while !(*entry).is_null() {
            let text = CStr::from_ptr(*entry);
            if let Some(rest) = text.to_bytes().strip_prefix(name)
                && rest.first() == Some(&b'=')
            {
                return Some(CStr::from_ptr((*entry).add(name.len() + 1)));
            }
            entry = entry.add(1);
        }
        None
    }
}

/// Reads the environment.
pub fn read() -> Config {
    // SAFETY: getauxval only reads what the kernel gave to the process.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    let events = match variable(b"THR_TRACE_EVENTS") {
        _ if privileged || !is_wanted_program() => EventSet::NONE,
        None => EventSet::ALL,
        Some(list) => EventSet::parse(list.to_bytes(), &mut |name| {
            say(Cause::UnknownEvent, &[b"THR_TRACE_EVENTS: unknown category or event '", name, b"', ignored"]);
        }),
    };
    if variable(b"THR_TRACE_DETAIL").is_some() {
        DETAIL.store(u64::MAX, Relaxed);
    }
    let shape = ring();
    Config {
        events,
        max: size(b"THR_TRACE_MAX").unwrap_or(u64::MAX),
        unbuffered: variable(b"THR_TRACE_BUF").is_some() && !shape.is_ring(),
        only_blocked: is_blocked_wanted(),
        shape,
    }
}

/// Whether `THR_TRACE_LEVEL` is `blocked`; what it does not know is told of, and taken as `all`.
fn is_blocked_wanted() -> bool {
    match variable(b"THR_TRACE_LEVEL").unwrap_or(c"").to_bytes() {
        b"blocked" => true,
        b"" | b"all" => false,
        other => {
            say(Cause::Level, &[b"THR_TRACE_LEVEL: '", other, b"' is neither 'all' nor 'blocked', taken as 'all'"]);
            false
        }
    }
}

/// The slots that `THR_TRACE_RING` asks for. Who asks for a ring of an impossible size gets the nearest one: files that
/// grow without end are what he does not want.
fn ring() -> SlotLayout {
    let Some(size) = size(b"THR_TRACE_RING") else { return SlotLayout::BUFFERS };
    let possible = size.clamp(*RING_SIZES.start(), *RING_SIZES.end());
    if size != possible {
        let taken: &[u8] = if size < possible { b"64K, the least" } else { b"1G, the most" };
        say(Cause::Ring, &[b"THR_TRACE_RING: taken as ", taken]);
    }
    SlotLayout::ring(possible).unwrap_or(SlotLayout::BUFFERS)
}

/// The size that a variable holds; one that is no size is told of and ignored.
fn size(name: &'static [u8]) -> Option<u64> {
    let value = variable(name)?.to_bytes();
    let size = spec::size::parse(value);
    if size.is_none() {
        say(Cause::Size, &[name, b": '", value, b"' is not a size such as 64K, 10M or 1G, ignored"]);
    }
    size
}

/// Whether `THR_TRACE_ONLY` lets this program be recorded. trace-cat never is: it inherits the environment of the
/// program whose trace it reads, and would write into it.
fn is_wanted_program() -> bool {
    let mut path = [0; 256];
    let program = program_name(&mut path);
    if program == b"trace-cat" {
        return false;
    }
    match variable(b"THR_TRACE_ONLY") {
        Some(list) if !list.is_empty() => list.to_bytes().split(|&byte| byte == b':').any(|name| name == program),
        _ => true,
    }
}

/// The base name of the program's file; for a script, that of its interpreter.
fn program_name(path: &mut [u8]) -> &[u8] {
    let length = sys::read_link(c"/proc/self/exe", path).unwrap_or(0);
    if length == 0 || length == path.len() {
        // No /proc, or a path too long for the buffer: the name by which the program was started.
        // SAFETY: the kernel's string for the path given to execve, NUL-terminated, kept for the process's life.
        let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
        if name.is_null() {
            return b"";
        }
        // SAFETY: as above.
        return base_name(unsafe { CStr::from_ptr(name) }.to_bytes());
    }
    base_name(path.get(..length).unwrap_or(b""))
}

fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_whole_name() {
        assert!(variable(b"PATH").is_some_and(|path| !path.is_empty()));
        assert!(variable(b"PAT").is_none());
    }

    #[test]
    fn the_program_is_known_by_its_base_name() {
        let expected = std::env::current_exe().unwrap();
        assert_eq!(program_name(&mut [0; 256]), expected.file_name().unwrap().as_encoded_bytes());
    }
}
