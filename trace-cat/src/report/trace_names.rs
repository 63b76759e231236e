//! The names of what an analysis found, for people.

use std::collections::HashMap;

use spec::Event;
use spec::futex_locks::{
    FUTEX_CONDITIONS, FUTEX_LIBRARIES, FUTEX_LOCKS, FutexLock, LOCK_OF_ATOMICS, LOCKING_FUNCTIONS,
};

use super::contention::{Analysis, OTHER_SITES};
use super::recorded_process::RecordedProcess;
use crate::record::call_stack::CUT_OFF_FRAME;
use crate::support::visible_text::visible_bytes;
use crate::symbols::{CodeAddress, CodeFrame, Symbolizer};

/// What stands for sites of which there were too many to keep each.
pub const OTHER_SITES_NAME: &str = "[other sites]";

/// An analysis, with what names its threads, processes and sites.
#[derive(Clone, Copy)]
pub struct TraceNames<'a> {
    pub analysis: &'a Analysis,
    /// By process ID.
    pub recorded: &'a HashMap<u32, RecordedProcess>,
    pub symbols: &'a Symbolizer,
}

impl<'a> TraceNames<'a> {
    /// `PID:ADDRESS#N`.
    pub fn object_name(&self, index: u32) -> String {
        let process = self.analysis.objects[index as usize].process;
        self.object_name_in(self.analysis.processes[process as usize].pid, index)
    }

    /// The same with another ID of its process.
    pub fn object_name_in(&self, pid: u32, index: u32) -> String {
        let object = &self.analysis.objects[index as usize];
        format!("{pid}:{:#x}#{}", object.address, object.number)
    }

    /// Kind, name and address of an object for people; `source_name` is its name in the source.
    pub fn object_label(&self, index: u32, source_name: Option<&str>) -> String {
        let object = &self.analysis.objects[index as usize];
        let (kind, address) = (object.kind_name(), object.address);
        let label = match source_name {
            Some(name) if name.starts_with(kind) => format!("{name} {address:#x}"),
            Some(name) => format!("{kind} {name} {address:#x}"),
            None => format!("{kind} {}", self.object_name(index)),
        };
        if object.others > 0 { format!("{label} and {} others", object.others) } else { label }
    }

    /// Function, file and line of a site, or its module and offset; `None` if the site is not known.
    pub fn place(&self, site: u32) -> Option<String> {
        let state = self.analysis.sites.sites.get(site as usize).filter(|_| site > 0)?;
        if state.address == OTHER_SITES {
            return Some(OTHER_SITES_NAME.to_owned());
        }
        let stack = self.analysis.sites.stack(site);
        let code: Vec<CodeAddress> =
            stack.addresses.into_iter().map(|address| self.code(state.process, address, state.time)).collect();
        Some(self.symbols.site_name(&code))
    }

    /// The functions that a site is in, the innermost first: those of its stack if that was recorded.
    pub fn frames(&self, site: u32) -> Vec<CodeFrame> {
        let sites = &self.analysis.sites;
        let (state, stack) = (&sites.sites[site as usize], sites.stack(site));
        let unnamed = |function: String| CodeFrame { function, ..CodeFrame::default() };
        let mut frames = Vec::new();
        for code in stack.addresses.iter().map(|address| self.code(state.process, *address, state.time)) {
            let named = self.symbols.call_frames(code);
            // Without a stack, the name of the site has what is known.
            frames.extend((named.is_empty() && state.stack > 0).then(|| unnamed(code.place())));
            frames.extend(named.iter().cloned());
        }
        frames.extend(stack.is_cut_off.then(|| unnamed(CUT_OFF_FRAME.to_owned())));
        frames
    }

    /// The names of the frames of a site, the outermost first; only its own if its stack was not recorded.
    pub fn frame_names(&self, site: u32) -> Option<Vec<String>> {
        let place = self.place(site)?;
        let sites = &self.analysis.sites;
        let (state, stack) = (&sites.sites[site as usize], sites.stack(site));
        if state.stack == 0 {
            return Some(vec![place]);
        }
        let code = stack.addresses.iter().map(|address| self.code(state.process, *address, state.time));
        let mut names: Vec<String> = code.flat_map(|code| self.symbols.frame_names(code)).collect();
        names.extend(stack.is_cut_off.then(|| CUT_OFF_FRAME.to_owned()));
        names.reverse();
        Some(names)
    }

    /// The name of the function at an address in the code of a process at a time.
    pub fn function_name(&self, process: u32, address: u64, time: u64) -> String {
        self.symbols.function_name(self.code(process, address, time))
    }

    /// The symbol of the function that begins at an address, or that a return address is in, at a time.
    pub fn function_symbol(&self, process: u32, address: u64, time: u64, is_return: bool) -> Option<String> {
        self.symbols.symbol(self.code(process, address, time), is_return)
    }

    /// Where an address in the code of a process was at a time.
    pub fn code(&self, process: u32, address: u64, time: u64) -> CodeAddress<'a> {
        let process = &self.analysis.processes[process as usize];
        let recorded = self.recorded.get(&process.pid);
        recorded.map_or(CodeAddress::Unknown(address), |recorded| recorded.code(process.image, address, time))
    }

    /// Since when what an address in the code of a process is in at a time has not changed.
    pub fn unchanged_since(&self, process: u32, address: u64, time: u64) -> u64 {
        let process = &self.analysis.processes[process as usize];
        let program = self.recorded.get(&process.pid).and_then(|recorded| recorded.program(process.image));
        program.map_or(0, |program| program.maps.unchanged_since(address, time))
    }

    /// The name that a thread was given, or that of its program, or of its start routine.
    pub fn thread_name(&self, index: u32) -> Option<String> {
        let thread = &self.analysis.threads[index as usize];
        if let Some(bytes) = thread.name.filter(|bytes| bytes[0] != 0) {
            let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            return Some(visible_bytes(&bytes[..length]));
        }
        let process = &self.analysis.processes[thread.process as usize];
        let start = thread.start.filter(|_| !process.is_main(thread.lwp));
        let routine = start.and_then(|start| self.symbols.routine_name(self.code(thread.process, start, thread.begin)));
        // Threads inherit it.
        routine.or_else(|| {
            let program = self.recorded.get(&process.pid)?.program(process.image)?;
            Some(program.comm.clone()).filter(|comm| !comm.is_empty())
        })
    }

    /// `NAME/LWP` of a thread, as `-F text` has it.
    pub fn thread_label(&self, index: u32) -> String {
        let thread = &self.analysis.threads[index as usize];
        let pid = self.analysis.processes[thread.process as usize].pid;
        let name = self.thread_name(index).unwrap_or_else(|| pid.to_string());
        format!("{name}/{}", thread.lwp)
    }

    /// The file name of the program of a process.
    pub fn program_name(&self, process: u32) -> Option<&'a str> {
        let state = &self.analysis.processes[process as usize];
        let program = self.recorded.get(&state.pid).and_then(|recorded| recorded.program(state.image));
        program.and_then(|program| program.exe.rsplit('/').next()).filter(|name| !name.is_empty())
    }
}

/// The name of an event.
pub fn event_name(event: (u8, u8)) -> &'static str {
    Event::find(event.0, event.1).map_or("unknown", |event| event.name)
}

/// Looks up what the analysis does not know of the program's code and memory, after each record: in the code of which lock the last
/// wait for a futex is, whether locks that a forked child found locked are static variables, and whether a cancelled thread's call is
/// made by its unwinding.
#[inline]
pub fn answer_questions(analysis: &mut Analysis, recorded: &HashMap<u32, RecordedProcess>, symbols: &Symbolizer) {
    if analysis.has_questions() {
        answer_all(analysis, recorded, symbols);
    }
}

fn answer_all(analysis: &mut Analysis, recorded: &HashMap<u32, RecordedProcess>, symbols: &Symbolizer) {
    for lock in std::mem::take(&mut analysis.locks_by_fork) {
        let object = &analysis.objects[lock.object as usize];
        let process = &analysis.processes[object.process as usize];
        let program = recorded.get(&process.pid).and_then(|recorded| recorded.program(process.image));
        if program.is_some_and(|program| symbols.is_static(&program.maps, object.address, lock.time)) {
            analysis.settle_lock_by_fork(lock);
        }
    }
    if let Some((thread, site)) = analysis.unwinding.take() {
        let site = &analysis.sites.sites[site as usize];
        let code = TraceNames { analysis, recorded, symbols }.code(site.process, site.address, site.time);
        // What libc opens by itself is in no reading of the mappings, or in a later one.
        let is_unwinder = match code {
            CodeAddress::InFile(map, _) => {
                map.path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libgcc_s.so"))
            }
            other => matches!(other, CodeAddress::Unmapped),
        };
        if is_unwinder {
            analysis.unwind(thread);
        }
    }
    if let Some(site) = analysis.unnamed_futex_site() {
        let frames = TraceNames { analysis, recorded, symbols }.frames(site);
        analysis.name_futex_site(futex_lock(frames.iter().map(|frame| &*frame.function)));
    }
}

/// The lock that one of these functions, the innermost first, takes by futex(2). A function of the program's own ends the search:
/// what it waits for is not what its caller locks. It may be that of a lock which the program makes of atomics.
fn futex_lock<'a>(functions: impl Iterator<Item = &'a str>) -> Option<&'static FutexLock> {
    let is_of = |names: &[&str], function: &str| names.iter().any(|name| function.starts_with(name));
    let functions: Vec<String> = functions.map(plain_name).collect();
    let own = functions.iter().position(|function| !is_of(&FUTEX_LIBRARIES, function)).unwrap_or(functions.len());
    let (functions, callers) = functions.split_at(own);
    if functions.iter().any(|function| is_of(&FUTEX_CONDITIONS, function)) {
        return None;
    }
    let known =
        functions.iter().find_map(|function| FUTEX_LOCKS.iter().find(|lock| function.starts_with(lock.function)));
    let waits_for_atomic =
        functions.iter().any(|name| name.starts_with("std::__") && (name.contains("atomic") || name.contains("wait")));
    let of_program = callers.first().and_then(|caller| caller.rsplit_once("::"));
    let is_lock = waits_for_atomic && of_program.is_some_and(|(_, name)| LOCKING_FUNCTIONS.contains(&name));
    known.or(is_lock.then_some(&LOCK_OF_ATOMICS))
}

/// A function's name as the table has it: `<std::sys::sync::mutex::futex::Mutex>::lock_contended` without angle brackets,
/// `absl::lts_20220623::Mutex::LockSlow` without the version, which Debian calls `debian3`.
fn plain_name(function: &str) -> String {
    let plain = function.replace(['<', '>'], "");
    match plain.strip_prefix("absl::").and_then(|name| name.split_once("::")) {
        Some((version, name)) if version.starts_with("lts_") || version.starts_with("debian") => {
            format!("absl::{name}")
        }
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_told_by_the_names_of_their_functions() {
        let name = |function: &str| futex_lock([function].into_iter()).map(|lock| lock.name);
        for (function, expected) in [
            ("<std::sys::sync::mutex::futex::Mutex>::lock_contended", "std Mutex"),
            ("std::sys::sync::rwlock::futex::RwLock::write_contended", "std RwLock"),
            ("parking_lot::raw_rwlock::RawRwLock::lock_shared_slow", "parking_lot RwLock"),
            ("absl::lts_20220623::Mutex::LockSlowLoop", "absl Mutex"),
            ("absl::debian3::Mutex::LockSlow", "absl Mutex"),
            ("tbb::detail::d1::rw_mutex::lock_shared", "tbb rw_mutex"),
            ("__cxa_guard_acquire", "static variable's guard"),
            ("srw_mutex_impl<true>::wait_and_lock", "InnoDB latch"),
            ("srw_mutex_impl<false>::wait_and_lock", "InnoDB latch"),
            ("ssux_lock_impl<true>::rd_wait", "InnoDB latch"),
            ("ssux_lock_impl<false>::wr_wait", "InnoDB latch"),
        ] {
            assert_eq!(name(function), Some(expected), "{function}");
        }
        for function in ["<std::sys::sync::condvar::futex::Condvar>::wait", "std::__detail::__platform_wait<int>", ""] {
            assert_eq!(name(function), None, "{function}");
        }
        let when = [
            "AbslInternalPerThreadSemWait_debian3",
            "libabsl_synchronization.so.1+0x50d7",
            "absl::debian3::Mutex::LockSlow",
        ];
        assert!(futex_lock(when.into_iter()).is_some());
        assert_eq!(futex_lock(when.into_iter().chain(["absl::debian3::Mutex::LockWhen"])), None);
        let once = "<std::sys::sync::once::futex::Once>::call";
        let routine =
            ["std::sys::pal::unix::futex::futex_wait", "<std::thread::thread::Thread>::park", "main::routine", once];
        assert_eq!(futex_lock(routine.into_iter()), None);
        assert!(futex_lock([routine[0], once, "main::routine"].into_iter()).is_some());
    }

    /// In C++ what can be locked has a function `lock` (BasicLockable).
    #[test]
    fn a_wait_of_an_atomic_is_one_for_a_lock_where_a_function_of_that_name_waits() {
        let wait = "std::__detail::__platform_wait<int>";
        let inlined = [
            "std::__atomic_wait_address_v<int, std::__atomic_base<int>::wait(int) const::{lambda()#1}>",
            "std::__atomic_base<int>::wait",
        ];
        let name = |functions: &[&str]| futex_lock(functions.iter().copied()).map(|lock| lock.name);
        let expected = Some("lock of atomics");
        for caller in ["SpinLock::lock", "(anonymous namespace)::Lock<int>::lock_shared"] {
            assert_eq!(name(&[wait, caller, "main"]), expected, "{caller}");
            assert_eq!(name(&[wait, inlined[0], inlined[1], caller]), expected, "{caller}");
            assert_eq!(name(&[wait, "Pool::next", caller]), None, "the pool waits for work");
            assert_eq!(name(&[caller, "main"]), None, "it calls futex itself");
        }
        for other in ["lock", "Queue::pop", "Queue::unlock", "std::latch::wait", "Pool::block"] {
            assert_eq!(name(&[wait, inlined[1], other]), None, "{other}");
        }
    }
}
