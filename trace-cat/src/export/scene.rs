//! The names and states of what events are about.

use std::cell::RefCell;

use super::program_event::ProgramText;
use super::waiting_counts::CounterSubject;
use crate::report::contention::{Analysis, ObjectState, ProgramState, ThreadState};
use crate::report::object_names::ObjectNames;
use crate::report::trace_names::TraceNames;
use crate::trace::interned_names::InternedNames;

/// The threads, objects and sites that the records so far have shown. A format asks for each name once and keeps it in its form.
pub struct TimelineScene<'a> {
    pub names: TraceNames<'a>,
    pub object_names: &'a RefCell<ObjectNames>,
    pub interned_names: &'a InternedNames,
}

impl<'a> TimelineScene<'a> {
    fn analysis(&self) -> &'a Analysis {
        self.names.analysis
    }

    pub fn thread(&self, index: u32) -> &'a ThreadState {
        &self.analysis().threads[index as usize]
    }

    pub fn object(&self, index: u32) -> &'a ObjectState {
        &self.analysis().objects[index as usize]
    }

    pub fn process(&self, index: u32) -> &'a ProgramState {
        &self.analysis().processes[index as usize]
    }

    /// The process of a thread.
    pub fn process_of(&self, thread: u32) -> &'a ProgramState {
        self.process(self.thread(thread).process)
    }

    /// Whether a thread is its process's first.
    pub fn is_main(&self, thread: u32) -> bool {
        self.process_of(thread).is_main(self.thread(thread).lwp)
    }

    /// The name of a thread as far as it is known; it is no part of it which LWP it has.
    pub fn thread_name(&self, thread: u32) -> String {
        let main = if self.is_main(thread) { "main thread" } else { "thread" };
        self.names.thread_name(thread).unwrap_or_else(|| main.to_owned())
    }

    /// The name of a process's program.
    pub fn process_name(&self, process: u32) -> String {
        self.names.program_name(process).unwrap_or("process").to_owned()
    }

    /// The name of an object as the report has it, without its address where it has another name.
    pub fn object_name(&self, object: u32) -> String {
        let kind = self.object(object).kind_name();
        self.known_object_name(object).unwrap_or_else(|| format!("{kind} {:#x}", self.object(object).address))
    }

    /// The name of an object as the report has it, if it has one.
    pub fn known_object_name(&self, object: u32) -> Option<String> {
        let mut names = self.object_names.borrow_mut();
        names.extend(self.names, object + 1);
        names.get(object).map(str::to_owned)
    }

    /// What a wait for an object, or for the end of a thread, is called.
    pub fn wait_name(&self, object: Option<u32>) -> String {
        object.map_or_else(
            || "wait for the end of a thread".to_owned(),
            |object| format!("wait {}", self.object_name(object)),
        )
    }

    /// What a counter is called.
    pub fn counter_name(&self, subject: CounterSubject) -> String {
        match subject {
            CounterSubject::WaitingFor(object) => format!("waiting for {}", self.object_name(object)),
            CounterSubject::Waiting => "threads that wait".to_owned(),
            CounterSubject::NotWaiting => "threads that do not wait".to_owned(),
        }
    }

    /// What an event of the program of the process with this ID is called.
    pub fn program_text(&self, pid: u32, text: ProgramText) -> String {
        match text {
            ProgramText::Name(id) => {
                let name = self.interned_names.text(pid, id);
                name.map_or_else(|| format!("{id:#x}"), |name| name.to_string())
            }
            ProgramText::Number(number) => format!("user.{number:02}"),
            ProgramText::Function(process, address, since) => self
                .names
                .function_symbol(process, address, since, false)
                .unwrap_or_else(|| self.names.function_name(process, address, since)),
        }
    }

    /// Function, file and line of a site; `None` if it is not known.
    pub fn place(&self, site: u32) -> Option<String> {
        self.names.place(site)
    }

    /// Whether the stack of a site's calls was recorded.
    pub fn has_stack(&self, site: u32) -> bool {
        self.analysis().sites.sites[site as usize].stack > 0
    }

    /// The functions that a site is in, the innermost first, in one line.
    pub fn stack(&self, site: u32) -> String {
        let mut names = self.names.frame_names(site).unwrap_or_default();
        names.reverse();
        names.join(" ← ")
    }
}

/// What a view says where what is recorded was changed.
pub const OTHER_CALLS: &str = "other calls recorded from here on";

/// What a view says of a time for which records of a thread are missing.
pub fn missing_text(lost: u64) -> String {
    match lost {
        0 => OTHER_CALLS.to_owned(),
        lost => format!("{lost} records lost"),
    }
}
