//! What the environment asks for, read once in the life of a program.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use spec::EventSet;
use spec::buffer::{RING_SIZES, STACK_FRAMES_MAX, SlotLayout};
use spec::size::SizeLimit;

use crate::sys::diagnostics::{Warning, warn};
use crate::sys::{self, SetOnce, path};

pub struct Config {
    /// Which events are recorded; [`EventSet::NONE`] also where the program must not be recorded.
    pub events: EventSet,
    /// `THR_TRACE_MAX`: recording stops when this many bytes have been written.
    pub max: SizeLimit,
    /// `THR_TRACE_BUF`: each record goes to its file at once.
    pub unbuffered: bool,
    /// `THR_TRACE_LEVEL=blocked`: only calls that show waiting are recorded.
    pub only_blocked: bool,
    /// `THR_TRACE_CONTROL`: the process shows itself at its start, so that users can change what is recorded.
    pub shows_itself: bool,
    /// `THR_TRACE_HANDLER` names a handler.
    pub has_handler: bool,
    /// `THR_TRACE_FUNC` names the functions to record.
    pub chooses_functions: bool,
    /// The size of the slots, and by `THR_TRACE_RING` whether they are rings.
    pub layout: SlotLayout,
}

/// The configuration, set when the library is initialised in the program.
pub static CONFIG: SetOnce<Config> = SetOnce::new(Config {
    events: EventSet::NONE,
    max: SizeLimit::NONE,
    unbuffered: false,
    only_blocked: false,
    shows_itself: false,
    has_handler: false,
    chooses_functions: false,
    layout: SlotLayout::BUFFERS,
});

impl Config {
    /// Whether anything may ever be recorded.
    pub fn may_record(&self) -> bool {
        self.shows_itself || !self.events.is_none()
    }
}

/// The bits of a column that only `THR_TRACE_DETAIL` fills: all or none.
static DETAIL: AtomicU64 = AtomicU64::new(0);

/// `value` with `THR_TRACE_DETAIL`, else 0.
#[inline(always)]
pub fn detail(value: u64) -> u64 {
    // ORDERING: Relaxed; set before the first switch is, and changed only by the user's wish.
    value & DETAIL.load(Relaxed)
}

/// Whether columns are filled that need more than the call's arguments.
#[inline(always)]
pub fn is_detailed() -> bool {
    detail(1) != 0
}

/// How many frames `THR_TRACE_STACK` wants recorded.
static STACK_FRAMES: AtomicU32 = AtomicU32::new(0);

/// How many frames are recorded of the stacks of calls that wait or fail; 0 without `THR_TRACE_STACK`.
#[inline(always)]
pub fn stack_frames() -> u32 {
    // ORDERING: as in `detail`.
    STACK_FRAMES.load(Relaxed)
}

/// Changes whether details, and how many frames, are recorded from now on.
pub fn change(detail: bool, frames: u32) {
    DETAIL.store(if detail { u64::MAX } else { 0 }, Relaxed);
    STACK_FRAMES.store(frames.min(STACK_FRAMES_MAX), Relaxed);
}

unsafe extern "C" {
    static environ: *const *const c_char;
    /// Where the kernel has put argc, argv and, behind the NULL of argv, the environment.
    static __libc_stack_end: *const usize;
}

/// `THR_TRACE_DIR`, empty for the working directory. Points into the host's environment: to be copied at once.
pub fn directory() -> &'static [u8] {
    variable(b"THR_TRACE_DIR").unwrap_or(c"").to_bytes()
}

fn variable(name: &[u8]) -> Option<&'static CStr> {
    // SAFETY: libc keeps `environ` as a NULL-terminated array of NUL-terminated strings; it is read before the program
    // itself runs (or, if a hook runs earlier, before there are other threads). If libc has not set it yet (a
    // sanitizer's runtime takes locks in its preinit_array), the initial stack is as the x86-64 ABI describes it, and
    // stays mapped.
    unsafe {
        let mut entry = if environ.is_null() { __libc_stack_end.add(*__libc_stack_end + 2).cast() } else { environ };
        while !(*entry).is_null() {
            let text = CStr::from_ptr(*entry);
            if let Some(value) = text.to_bytes().strip_prefix(name)
                && value.first() == Some(&b'=')
            {
                return Some(CStr::from_ptr((*entry).add(name.len() + 1)));
            }
            entry = entry.add(1);
        }
        None
    }
}

pub fn read() -> Config {
    // SAFETY: getauxval only reads what the kernel gave to the process.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    let is_left_out = privileged || sys::elf::is_second_copy() || !selects_program();
    let shows_itself = !is_left_out && variable(b"THR_TRACE_CONTROL").is_some();
    let events = match variable(b"THR_TRACE_EVENTS") {
        _ if is_left_out => EventSet::NONE,
        None => EventSet::DEFAULT,
        Some(list) => chosen_events(list.to_bytes()),
    };
    if variable(b"THR_TRACE_DETAIL").is_some() {
        DETAIL.store(u64::MAX, Relaxed);
    }
    STACK_FRAMES.store(wanted_stack_frames(), Relaxed);
    let layout = ring();
    let mut config = Config {
        max: size(b"THR_TRACE_MAX", SizeLimit::parse).unwrap_or(SizeLimit::NONE),
        unbuffered: variable(b"THR_TRACE_BUF").is_some() && !layout.is_ring(),
        only_blocked: records_only_blocked(),
        has_handler: false,
        chooses_functions: false,
        shows_itself,
        events,
        layout,
    };
    if config.may_record() {
        config.has_handler = note_handler(variable(b"THR_TRACE_HANDLER").unwrap_or(c"").to_bytes());
        config.chooses_functions = note_functions(variable(b"THR_TRACE_FUNC").unwrap_or(c"").to_bytes());
    }
    config
}

/// The events of a list, of which unknown names are reported, and that nothing else is there.
fn chosen_events(list: &[u8]) -> EventSet {
    let mut has_unknown = false;
    let events = EventSet::parse_recorded(list, &mut |name| {
        has_unknown = true;
        warn(Warning::UnknownEvent, &[b"THR_TRACE_EVENTS: unknown category or event '", name, b"', ignored"]);
    });
    if has_unknown && events.is_none() {
        warn(Warning::UnknownEvent, &[b"THR_TRACE_EVENTS: nothing is recorded; where it is not set all is"]);
    }
    events
}

/// A copy of `THR_TRACE_HANDLER`: the file, a NUL, the parameters, a NUL.
static HANDLER: SetOnce<[u8; 1024]> = SetOnce::new([0; 1024]);

/// Notes `FILE` or `FILE:PARAMETERS`; whether there is a file.
fn note_handler(value: &[u8]) -> bool {
    // SAFETY: the configuration is read once, before anybody asks for the handler.
    let text = unsafe { HANDLER.get_mut() };
    let fits = value.len() + 2 <= text.len();
    if fits {
        text.iter_mut().zip(value).for_each(|(place, &byte)| *place = byte);
        if let Some(colon) = text.iter_mut().find(|byte| **byte == b':') {
            *colon = 0;
        }
    } else {
        warn(Warning::Handler, &[b"THR_TRACE_HANDLER: too long, ignored"]);
    }
    fits && !value.is_empty()
}

/// A copy of `THR_TRACE_FUNC`, and a NUL.
static FUNCTIONS: SetOnce<[u8; 512]> = SetOnce::new([0; 512]);

/// Notes libraries and symbols; whether there are any.
fn note_functions(value: &[u8]) -> bool {
    // SAFETY: as in `note_handler`.
    let text = unsafe { FUNCTIONS.get_mut() };
    let fits = value.len() < text.len();
    if fits {
        text.iter_mut().zip(value).for_each(|(place, &byte)| *place = byte);
    } else {
        warn(Warning::Functions, &[b"THR_TRACE_FUNC: too long, ignored"]);
    }
    fits && wanted_functions().next().is_some()
}

/// The beginnings of names of libraries and symbols whose functions are recorded; none for all.
pub fn wanted_functions() -> impl Iterator<Item = &'static [u8]> {
    let text = CStr::from_bytes_until_nul(FUNCTIONS.get()).unwrap_or(c"").to_bytes();
    text.split(|&byte| byte == b':').filter(|name| !name.is_empty())
}

/// The path of the handler's file.
pub fn handler_path() -> &'static CStr {
    CStr::from_bytes_until_nul(HANDLER.get()).unwrap_or(c"")
}

/// What is behind the path.
pub fn handler_parameters() -> &'static CStr {
    let parameters = HANDLER.get().get(handler_path().count_bytes() + 1..).unwrap_or_default();
    CStr::from_bytes_until_nul(parameters).unwrap_or(c"")
}

/// The number in `THR_TRACE_STACK`; 0 if there is none, or an invalid one, which is reported.
fn wanted_stack_frames() -> u32 {
    let Some(value) = variable(b"THR_TRACE_STACK") else { return 0 };
    let number = core::str::from_utf8(value.to_bytes()).ok().and_then(|digits| digits.parse().ok());
    let frames = number.filter(|frames| (1..=STACK_FRAMES_MAX).contains(frames));
    if frames.is_none() {
        const { assert!(STACK_FRAMES_MAX == 64) };
        let text: [&[u8]; 3] = [b"THR_TRACE_STACK: '", value.to_bytes(), b"' is not a number from 1 to 64, ignored"];
        warn(Warning::Stack, &text);
    }
    frames.unwrap_or(0)
}

/// Whether `THR_TRACE_LEVEL` is `blocked`; an unknown value is reported and taken as `all`.
fn records_only_blocked() -> bool {
    match variable(b"THR_TRACE_LEVEL").unwrap_or(c"").to_bytes() {
        b"blocked" => true,
        b"" | b"all" => false,
        other => {
            warn(Warning::Level, &[b"THR_TRACE_LEVEL: '", other, b"' is neither 'all' nor 'blocked', taken as 'all'"]);
            false
        }
    }
}

/// The slots that `THR_TRACE_RING` asks for. A size that a ring cannot have is replaced by the nearest one that it can
/// have, because the user does not want files that grow without end.
fn ring() -> SlotLayout {
    let Some(size) = size(b"THR_TRACE_RING", spec::size::parse) else { return SlotLayout::BUFFERS };
    let possible = size.clamp(*RING_SIZES.start(), *RING_SIZES.end());
    if size != possible {
        const { assert!(*RING_SIZES.start() == 64 << 10 && *RING_SIZES.end() == 1 << 30) };
        let taken: &[u8] = if size < possible { b"64K, the least" } else { b"1G, the most" };
        warn(Warning::Ring, &[b"THR_TRACE_RING: taken as ", taken]);
    }
    SlotLayout::ring(possible).unwrap_or(SlotLayout::BUFFERS)
}

/// The size in a variable; an invalid one is reported and ignored.
fn size<T>(name: &'static [u8], parse: fn(&[u8]) -> Option<T>) -> Option<T> {
    let value = variable(name)?.to_bytes();
    let size = parse(value);
    if size.is_none() {
        warn(Warning::Size, &[name, b": '", value, b"' is not a size such as 64K, 10M or 1G, ignored"]);
    }
    size
}

/// Whether `THR_TRACE_ONLY` selects this program. trace-cat is never recorded: it inherits the environment of the
/// program whose trace it reads, and would write into that trace.
fn selects_program() -> bool {
    let mut path = [0; 256];
    let file = file_name(&mut path);
    if file == b"trace-cat" {
        return false;
    }
    match variable(b"THR_TRACE_ONLY") {
        Some(list) if !list.is_empty() => {
            let process = sys::process_name().unwrap_or_default().map(c_char::cast_unsigned);
            let process = process.split(|&byte| byte == 0).next().unwrap_or(b"");
            let names = [file, given_name(), process];
            list.to_bytes().split(|&byte| byte == b':').any(|name| names.contains(&name))
        }
        _ => true,
    }
}

/// The base name of the program's file; for a script, that of its interpreter.
fn file_name(buffer: &mut [u8]) -> &[u8] {
    let length = path::read_link(c"/proc/self/exe", buffer).unwrap_or(0);
    if length == 0 || length == buffer.len() {
        // No /proc, or a path too long for the buffer: the name by which the program was started.
        // SAFETY: the kernel's string for the path given to execve, NUL-terminated, kept for the process's life.
        return unsafe {
            let name = libc::getauxval(libc::AT_EXECFN) as *const c_char;
            if name.is_null() { b"" } else { path::base_name(CStr::from_ptr(name).to_bytes()) }
        };
    }
    path::base_name(buffer.get(..length).unwrap_or(b""))
}

/// The base name that the program was given as its first argument: the link's, where its file has several names.
fn given_name() -> &'static [u8] {
    // SAFETY: the initial stack is as the x86-64 ABI describes it, and stays mapped.
    unsafe {
        let name = (*__libc_stack_end.add(1)) as *const c_char;
        if name.is_null() { b"" } else { path::base_name(CStr::from_ptr(name).to_bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_complete_name() {
        assert!(variable(b"PATH").is_some_and(|path| !path.is_empty()));
        assert!(variable(b"PAT").is_none());
    }

    #[test]
    fn the_program_is_known_by_its_base_name() {
        let expected = std::env::current_exe().unwrap();
        assert_eq!(file_name(&mut [0; 256]), expected.file_name().unwrap().as_encoded_bytes());
        assert_eq!(given_name(), expected.file_name().unwrap().as_encoded_bytes());
    }
}
