//! The trinfo file: what is known of the process, so that its trace can be understood later, elsewhere.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use spec::buffer::SLOT_PATH_MAX;
use spec::info::{RINGS_REUSED, escape};
use spec::names::{FileName, PROCESS_MASK};
use spec::record::NANOS_PER_SECOND;
use spec::tables::EVENTS;

use crate::config::CONFIG;
use crate::file::Path;
use crate::process::{self, PROCESS};
use crate::stage::Settled;
use crate::sys::{self, Fd};
use crate::{buffers, clock, directory, identity, maps, measure, ring};

/// When something is written to trinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Everything.
    FirstRecord,
    /// Mappings that have come since.
    Later,
    /// Those, and what the rings have overwritten: the next image will not know.
    Exec,
    /// Those, and what was lost.
    Exit,
}

/// A file that is written through memory that is not on a host's stack.
pub struct Writer {
    fd: Option<Fd>,
    path: [u8; SLOT_PATH_MAX],
    text: [u8; 4096],
    length: usize,
}

static WRITER: Settled<Writer> =
    Settled::new(Writer { fd: None, path: [0; SLOT_PATH_MAX], text: [0; 4096], length: 0 });
static SCRATCH: Settled<[u8; 4096]> = Settled::new([0; 4096]);
/// Somebody is writing.
static BUSY: AtomicBool = AtomicBool::new(false);
/// When the mappings were last looked at, a reading of the clock.
static LOOKED: AtomicU64 = AtomicU64::new(0);

/// Looking at the mappings takes 50 microseconds or so; at most once in this time.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

/// At the write of a full buffer: notes libraries that were loaded since.
pub fn refresh() {
    if clock::now().saturating_sub(LOOKED.load(Relaxed)) >= LOOK_EVERY_NS {
        write(Moment::Later);
    }
}

/// Writes what belongs to this moment; nothing if somebody (perhaps this thread, interrupted) is at it.
pub fn write(moment: Moment) {
    // ORDERING: Acquire and Release hand the writer's memory from one thread to the next.
    if BUSY.compare_exchange(false, true, Acquire, Relaxed).is_err() {
        return;
    }
    LOOKED.store(clock::now(), Relaxed);
    // SAFETY: BUSY makes us the only one.
    let writer = unsafe { WRITER.get_mut() };
    if moment == Moment::FirstRecord {
        maps::forget();
    }
    if writer.open() {
        if moment == Moment::FirstRecord {
            describe(writer);
        }
        maps::describe(writer);
        if matches!(moment, Moment::Exec | Moment::Exit) {
            rings(writer);
        }
        if moment == Moment::Exit {
            writer.number("lost", u64::from(PROCESS.lost.load(Relaxed)) + u64::from(PROCESS.homeless.load(Relaxed)));
        }
        writer.close();
    }
    BUSY.store(false, Release);
}

/// In a forked child: whoever was writing is not here.
pub fn forget() {
    // SAFETY: the child has no other thread, and this one was not writing: nobody else uses the writer.
    if let Some(fd) = unsafe { WRITER.get_mut() }.fd.take() {
        // Its number may be a file of the program's by now.
        core::mem::forget(fd);
    }
    BUSY.store(false, Relaxed);
}

impl Writer {
    fn open(&mut self) -> bool {
        let path = Path::build(&mut self.path, directory::path(), FileName::Info(process::id() & PROCESS_MASK));
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_NOFOLLOW;
        self.length = 0;
        self.fd = Fd::open(path, flags, 0o600).ok();
        if let Some(fd) = &self.fd {
            // Whatever the umask.
            let _ = fd.set_mode(0o600);
        }
        self.fd.is_some()
    }

    fn close(&mut self) {
        self.flush();
        self.fd = None;
    }

    fn flush(&mut self) {
        if let (Some(fd), Some(text)) = (&self.fd, self.text.get(..self.length)) {
            // What cannot be written is missing from a file that only helps.
            let _ = fd.write(text);
        }
        self.length = 0;
    }

    /// Adds bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.length == self.text.len() {
                self.flush();
            }
            if let Some(place) = self.text.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
    }

    /// Adds bytes, escaped.
    pub fn escaped(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.raw(escape(byte).as_bytes()));
    }

    fn line(&mut self, key: &str, value: &[u8]) {
        self.raw(key.as_bytes());
        self.raw(b" ");
        self.escaped(value);
        self.raw(b"\n");
    }

    fn number(&mut self, key: &str, value: u64) {
        self.line(key, itoa::Buffer::new().format(value).as_bytes());
    }
}

fn describe(writer: &mut Writer) {
    writer.number("format", 1);
    writer.line("version", env!("CARGO_PKG_VERSION").as_bytes());
    writer.line("arch", b"x86_64");
    // SAFETY: returns a constant, NUL-terminated string.
    writer.line("glibc", unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_bytes());
    if let Ok(name) = sys::system_name() {
        writer.line("kernel", text(&name.release));
        writer.line("host", text(&name.nodename));
    }
    writer.line("boot_id", &identity::boot_id());
    writer.number("start", identity::start());
    writer.number("pid", process::id().into());
    writer.number("ppid", sys::parent_id().into());
    writer.number("pidns", identity::pid_namespace());
    // SAFETY: BUSY makes us the only one.
    let scratch = unsafe { SCRATCH.get_mut() };
    if let Ok(length) = sys::read_link(c"/proc/self/exe", scratch) {
        writer.line("exe", scratch.get(..length).unwrap_or(b""));
    }
    command_line(writer, scratch);
    writer.line("clock", b"CLOCK_MONOTONIC");
    writer.line("clock_source", clock::source());
    writer.line("offset", itoa::Buffer::new().format(clock::offset()).as_bytes());
    events(writer);
    let config = CONFIG.get();
    writer.line("level", if config.only_blocked { b"blocked" } else { b"all" });
    if buffers::shape().is_ring() {
        writer.line("buffer", b"ring");
        writer.number("ring", buffers::shape().ring_size());
    } else {
        writer.line("buffer", if buffers::are_anonymous() { b"anonymous" } else { b"shared" });
    }
    for (_, name) in measure::LAYOUTS.iter().filter(|(layout, _)| !measure::knows(*layout)) {
        writer.raw(b"note the layout of this libc's ");
        writer.raw(name);
        writer.raw(b" is not known: columns read from it are 0\n");
    }
}

/// From when on the trace of each thread is complete whose ring has overwritten records.
fn rings(writer: &mut Writer) {
    let mut number = itoa::Buffer::new();
    buffers::for_each_slot(|slot| {
        let (lwp, from) = (slot.lwp.load(Relaxed), slot.complete_from.load(Relaxed));
        if lwp == 0 || from == 0 {
            return;
        }
        writer.raw(b"complete_from ");
        writer.raw(number.format(lwp).as_bytes());
        writer.raw(b" ");
        writer.raw(number.format(from / NANOS_PER_SECOND).as_bytes());
        writer.raw(b".");
        // With its zeros in front.
        writer.raw(number.format(NANOS_PER_SECOND + from % NANOS_PER_SECOND).as_bytes().get(1..).unwrap_or_default());
        writer.raw(b"\n");
    });
    let reused = ring::reused();
    if reused != 0 {
        let [before, behind] = RINGS_REUSED;
        for text in ["note ", before, number.format(reused), behind, "\n"] {
            writer.raw(text.as_bytes());
        }
    }
}

fn text(field: &[c_char]) -> &[u8] {
    // SAFETY: c_char and u8 have the same layout.
    let bytes = unsafe { core::slice::from_raw_parts(field.as_ptr().cast(), field.len()) };
    CStr::from_bytes_until_nul(bytes).map_or(b"", CStr::to_bytes)
}

fn command_line(writer: &mut Writer, buffer: &mut [u8]) {
    writer.raw(b"cmdline ");
    if let Ok(file) = Fd::open(c"/proc/self/cmdline", libc::O_RDONLY, 0) {
        // Each argument ends with a NUL; the last one's is not shown.
        let mut ended = false;
        while let Ok(length @ 1..) = file.read(buffer) {
            for &byte in buffer.get(..length).unwrap_or(b"") {
                if ended {
                    writer.raw(b" ");
                }
                ended = byte == 0;
                if !ended {
                    writer.escaped(&[byte]);
                }
            }
        }
    }
    writer.raw(b"\n");
}

/// The events that are recorded, as THR_TRACE_EVENTS would name them.
fn events(writer: &mut Writer) {
    writer.raw(b"events ");
    let set = &CONFIG.get().events;
    if *set == spec::EventSet::ALL {
        writer.raw(b"all");
    } else {
        let mut separator: &[u8] = b"";
        for event in EVENTS.iter().filter(|event| event.category != 0) {
            if set.contains_numbers(event.category, event.number) {
                writer.raw(separator);
                writer.raw(event.name.as_bytes());
                separator = b":";
            }
        }
    }
    writer.raw(b"\n");
}
