//! The contents of trinfo: what is known of the process, so that its trace can be understood later and elsewhere.

use core::cell::Cell;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spec::EventSet;
use spec::info::RINGS_REUSED;
use spec::tables::EVENTS;

use crate::clock;
use crate::config::CONFIG;
use crate::control;
use crate::glibc::object_words;
use crate::process_state::{self, PROCESS};
use crate::storage::{self, slot_layout};
use crate::sys::{self, SetOnce, UnknownClockError, path};
use crate::trace_dir::info_file::{self, InfoWriter, time_text};
use crate::trace_dir::{command_line, executable_maps, identity, interned_names};

/// The path of the program.
static EXECUTABLE: KeptText<4096> = KeptText::new();
/// libc's version. From a copy, a forked child needs no page of libc's for it.
static GLIBC_VERSION: KeptText<16> = KeptText::new();

/// Reading the mappings takes 50 microseconds or so; it is done at most once in this time.
const REFRESH_NS: u64 = 1_000_000_000;

/// At the first record: writes everything that is known.
pub fn write_at_first_record() {
    PROCESS.info_written_at.store(clock::now_fenced(), Relaxed);
    info_file::append(write_everything);
}

fn write_everything(writer: &mut InfoWriter) {
    describe(writer);
    executable_maps::write_all(writer);
    interned_names::write_all(writer);
}

/// Appends what `content` writes; where trinfo was removed, behind everything that is known.
fn append(content: impl FnOnce(&mut InfoWriter)) {
    append_if(|| true, content);
}

/// The same, unless `is_needed` says that there is nothing to write.
fn append_if(is_needed: impl FnOnce() -> bool, content: impl FnOnce(&mut InfoWriter)) {
    info_file::append_if(is_needed, |writer| {
        if writer.is_anew() {
            PROCESS.described_generation.store(0, Relaxed);
            write_everything(writer);
        }
        content(writer);
    });
}

/// Before an exec: writes new mappings, and what the rings have overwritten, which the next program does not know.
pub fn write_before_exec() {
    append(|writer| {
        executable_maps::write_new(writer);
        interned_names::write_last(writer);
        write_completeness(writer);
    });
}

/// Before and after a library is closed: writes what is new and what is gone, so that the trace shows what was where at any
/// time. Returns whether that was possible.
pub fn write_libraries() -> bool {
    let is_done = may_write() && info_file::append_in_turn(executable_maps::write_at_close);
    if !is_done {
        executable_maps::note_missing_reading();
    }
    is_done
}

/// Code of no module was on a stack at a time, a reading of the clock: writes where it is, unless that was done. It may be gone at the
/// next reading of the mappings, as that of a just-in-time compiler that frees all at its end.
#[cold]
pub fn describe_code(address: u64, time: u64) {
    let has_files = PROCESS.files.is_done() && PROCESS.final_flush_begun.load(Relaxed) == 0;
    if has_files && !executable_maps::is_met(address, time) && may_write() {
        info_file::append(|writer| executable_maps::write_met(writer, address, time));
    }
}

/// Before records are written to their file: writes what is new, unless that was done less than a second ago.
pub fn write_at_flush() {
    let now = clock::now_fenced();
    if may_write() && now.saturating_sub(PROCESS.info_written_at.load(Relaxed)) >= REFRESH_NS {
        PROCESS.info_written_at.store(now, Relaxed);
        append(|writer| {
            executable_maps::write_new(writer);
            interned_names::write_new(writer);
            command_line::write_if_changed(writer);
        });
    }
}

/// A trinfo that is made while the program changes its user would be the former user's. Threads of its parent do not know a vfork child
/// as one that is writing.
pub(super) fn may_write() -> bool {
    PROCESS.changing_user.load(Relaxed) == 0 && process_state::sandboxed().is_none() && !process_state::is_vfork_child()
}

/// Lets [`write_at_flush`] do nothing from now on: when it does something depends on the time.
#[cfg(test)]
pub fn never_write_at_flush() {
    PROCESS.info_written_at.store(u64::MAX, Relaxed);
}

/// At the process's end: writes what is new, what the rings have overwritten, and how many records were lost. Of a process that has
/// ended soon after it began, as many forked children have, there is mostly nothing of this.
pub fn write_at_exit() {
    let maps_may_have_changed = Cell::new(true);
    let is_needed = || {
        maps_may_have_changed.set(executable_maps::may_have_changed());
        let is_old = clock::now_fenced().saturating_sub(PROCESS.info_written_at.load(Relaxed)) >= REFRESH_NS;
        maps_may_have_changed.get()
            || is_old
            || interned_names::has_last()
            || command_line::has_changed()
            || control::changes() != 0
            || slot_layout().is_ring()
            || lost_records() != 0
    };
    append_if(is_needed, |writer| {
        if maps_may_have_changed.get() {
            executable_maps::write_new(writer);
        }
        interned_names::write_last(writer);
        command_line::write_if_changed(writer);
        write_changed_events(writer);
        write_completeness(writer);
        write_clock_error(writer);
        writer.number("lost", lost_records());
    });
}

/// At the end of a process whose files were made only so that users could change what it records: removes its trinfo if there
/// is nothing else of it.
pub fn remove_if_nothing_was_recorded() {
    let is_early = PROCESS.made_early.load(Relaxed) != 0;
    let was_shown = is_early || CONFIG.get().shows_itself || control::changes() != 0;
    // The count in the trbuf has also what the program before an exec has lost.
    let has_lost = lost_records() != 0 || control::words().lost.load(Relaxed) != 0;
    // In the directory of the former user this process may remove nothing.
    if was_shown && PROCESS.generation.load(Relaxed) == 0 && !has_lost && !storage::has_records() {
        info_file::remove();
    }
}

fn lost_records() -> u64 {
    u64::from(PROCESS.lost.load(Relaxed)) + control::words().lost_without_slot.load(Relaxed)
}

/// A text that is asked for once: a forked child has its parent's.
struct KeptText<const SIZE: usize> {
    bytes: SetOnce<[u8; SIZE]>,
    length: AtomicUsize,
}

impl<const SIZE: usize> KeptText<SIZE> {
    const fn new() -> Self {
        KeptText { bytes: SetOnce::new([0; SIZE]), length: AtomicUsize::new(0) }
    }

    /// The text. `ask` writes it and returns its length, 0 if it is not known now.
    ///
    /// # Safety
    /// One thread of the process may call this.
    unsafe fn get(&'static self, ask: impl FnOnce(&mut [u8]) -> usize) -> &'static [u8] {
        // SAFETY: the caller's.
        let bytes = unsafe { self.bytes.get_mut() };
        if self.length.load(Relaxed) == 0 {
            self.length.store(ask(bytes), Relaxed);
        }
        bytes.get(..self.length.load(Relaxed)).unwrap_or(b"")
    }
}

fn glibc_version() -> &'static [u8] {
    // SAFETY: the one writer of trinfo calls this. libc returns a constant, NUL-terminated string.
    unsafe {
        GLIBC_VERSION.get(|copy| {
            let text = CStr::from_ptr(libc::gnu_get_libc_version()).to_bytes();
            copy.iter_mut().zip(text).map(|(to, from)| *to = *from).count()
        })
    }
}

#[inline(never)]
fn describe_system(writer: &mut InfoWriter) {
    if let Ok(name) = sys::system_name() {
        writer.line("kernel", text(&name.release));
        writer.line("host", text(&name.nodename));
    }
}

// Not inlined, nor what asks the kernel for its names, so that they take no room on the stack of a first record while
// mappings are read.
#[inline(never)]
fn describe(writer: &mut InfoWriter) {
    writer.number("format", 1);
    writer.line("version", env!("CARGO_PKG_VERSION").as_bytes());
    writer.line("arch", b"x86_64");
    writer.line("glibc", glibc_version());
    describe_system(writer);
    writer.line("boot_id", &identity::boot_id());
    writer.number("start", identity::start());
    writer.number("pid", process_state::id().into());
    writer.number("ppid", sys::parent_id().into());
    // Its parent may have ended since, or be in another PID namespace.
    let forked_from = PROCESS.forked_from.load(Relaxed);
    if forked_from != 0 {
        writer.number("forked_from", forked_from.into());
    }
    writer.number("pidns", identity::pid_namespace());
    describe_executable(writer);
    if let Ok(name) = sys::process_name() {
        writer.line("comm", text(&name));
    }
    command_line::write(writer);
    writer.line("clock", b"CLOCK_MONOTONIC");
    writer.line("clock_source", clock::source());
    writer.line("offset", itoa::Buffer::new().format(clock::offset()).as_bytes());
    write_clock_error(writer);
    write_events(writer, &CONFIG.get().events);
    write_changed_events(writer);
    let config = CONFIG.get();
    writer.line("level", if config.only_blocked { b"blocked" } else { b"all" });
    if slot_layout().is_ring() {
        writer.line("buffer", b"ring");
        writer.number("ring", slot_layout().ring_size());
    } else {
        writer.line("buffer", if PROCESS.anonymous.load(Relaxed) != 0 { b"anonymous" } else { b"shared" });
    }
    for (_, name) in object_words::LAYOUTS.iter().filter(|(layout, _)| !object_words::knows(*layout)) {
        writer.note(&[b"the layout of this libc's ", name, b" is not known: columns read from it are 0"]);
    }
}

fn describe_executable(writer: &mut InfoWriter) {
    // SAFETY: the one writer of trinfo calls this.
    let path = unsafe { EXECUTABLE.get(|path| path::read_link(c"/proc/self/exe", path).unwrap_or(0)) };
    if !path.is_empty() {
        writer.line("exe", path);
    }
}

/// Writes how far the times of records are from the true time: the kernel's bound, the state of the host's clock, what the
/// kernel is going to add to the wall clock, by how much that is ahead of the records' clock, and the time of all this.
fn write_clock_error(writer: &mut InfoWriter) {
    let mut number = itoa::Buffer::new();
    let now = clock::since_epoch(clock::now_fenced());
    writer.raw(b"clock_error ");
    match sys::wall_clock_error() {
        Ok(error) => {
            writer.raw(number.format(error.bound).as_bytes());
            writer.raw(if error.is_synchronized { b" synchronized " } else { b" unsynchronized " });
            writer.raw(number.format(error.pending).as_bytes());
        }
        Err(UnknownClockError::NotAsked) => writer.raw(b"- not_asked -"),
        Err(UnknownClockError::Refused) => writer.raw(b"- refused -"),
    }
    writer.raw(b" ");
    writer.raw(number.format(clock::wall_clock_lead()).as_bytes());
    writer.raw(b" ");
    time_text(now, b':').for_each(|byte| writer.raw(&[byte]));
    writer.raw(b"\n");
}

/// Writes, for each thread whose ring has overwritten records, from when on its trace is complete.
fn write_completeness(writer: &mut InfoWriter) {
    let mut number = itoa::Buffer::new();
    storage::for_each_slot(|slot| {
        let lwp = slot.lwp.load(Relaxed);
        // The pages of a slot without an owner may be a hole in the file, and the disk full.
        if lwp == 0 || slot.is_stale() {
            return;
        }
        let from = slot.published().complete_from.load(Relaxed);
        if from == 0 {
            return;
        }
        writer.raw(b"complete_from ");
        writer.raw(number.format(lwp).as_bytes());
        writer.raw(b" ");
        time_text(from, b'.').for_each(|byte| writer.raw(&[byte]));
        writer.raw(b"\n");
    });
    let reused = control::reused_rings();
    if slot_layout().is_ring() && reused != 0 {
        let [before, after] = RINGS_REUSED;
        writer.note(&[before, number.format(reused), after].map(str::as_bytes));
    }
}

fn text(field: &[c_char]) -> &[u8] {
    // SAFETY: the kernel ends each field with a NUL.
    unsafe { CStr::from_ptr(field.as_ptr()) }.to_bytes()
}

/// Writes the events that are recorded, as THR_TRACE_EVENTS would name them.
fn write_events(writer: &mut InfoWriter, set: &EventSet) {
    writer.raw(b"events ");
    write_list(writer, set);
}

/// Writes the events that are recorded by the user's wish, unless trinfo has them.
pub fn write_changes() {
    if may_write() {
        append(write_changed_events);
    }
}

fn write_changed_events(writer: &mut InfoWriter) {
    if control::changes() != 0
        && let Some((_, settings)) = control::words().current()
        && PROCESS.described_generation.swap(settings.generation, Relaxed) != settings.generation
    {
        writer.raw(b"events ");
        writer.raw(itoa::Buffer::new().format(settings.generation).as_bytes());
        writer.raw(b" ");
        write_list(writer, &settings.events);
    }
}

fn write_list(writer: &mut InfoWriter, set: &EventSet) {
    if *set == EventSet::DEFAULT {
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
