//! The threads of a trace: their labels, and their open calls.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use spec::event_numbers::USER_SPAN;
use spec::info;
use spec::names::FileName;
use spec::tables::USER;

use super::short_text::ShortText;
use crate::record::columns;
use crate::record::fields::{Fields, THREAD_KEY_WIDTH, bits};
use crate::trace::file_handle::read_info;
use crate::trace::file_names::FileGroup;
use crate::trace::host_view::HostView;

/// The most open calls of one thread; if it has more, the oldest is forgotten.
pub const OPEN_CALLS_MAX: usize = 64;
/// The most functions that a thread is in; with more, the outermost is forgotten.
const FUNCTIONS_MAX: usize = 1 << 12;
/// The most threads that are remembered; if there are more, all are forgotten.
pub const THREADS_MAX: usize = 1 << 18;
/// The least columns of labels.
const LABEL_WIDTH_MIN: usize = 15;
/// The most characters of a name, as in Linux.
const NAME_MAX: usize = 15;

/// The threads of the records so far.
#[derive(Debug)]
pub struct KnownThreads {
    groups: Vec<FileGroup>,
    /// Indexes in `threads` by [`Fields::thread_key`].
    indexes: HashMap<u128, usize, BuildHasherDefault<ThreadKeyHasher>>,
    threads: Vec<KnownThread>,
    /// Key and index of the last record's thread, which is often that of the next.
    last: Option<([u8; THREAD_KEY_WIDTH], usize)>,
    /// Names of programs by process ID.
    programs: HashMap<u32, Option<String>>,
    /// Indexes in `threads` by process and thread ID, for records that name another thread.
    indexes_by_id: HashMap<(u32, u64), usize>,
    /// Names, by process and thread ID, of threads without a record so far.
    early_names: HashMap<(u32, u64), String>,
    /// The columns of the widest label so far.
    pub width: usize,
}

#[derive(Debug)]
struct KnownThread {
    label: ThreadLabel,
    lwpid: u32,
    /// Its host, if the records are of several.
    host: Option<Arc<HostView>>,
    open_calls: Vec<OpenCall>,
    /// Address and return address of the functions that it is in.
    functions: Vec<(u64, u64)>,
    label_cache: (u64, u32),
}

/// `name/lwp`, or `pid/lwp` if the thread has no name; with several hosts, `host:` before it.
#[derive(Clone, Debug, Default)]
pub struct ThreadLabel {
    pub text: String,
    /// Columns of the text.
    pub width: usize,
}

/// A call whose entry record has a line of its own, or none.
#[derive(Clone, Copy, Debug)]
pub struct OpenCall {
    /// Category and number of the event.
    pub event: (u8, u8),
    pub time: u64,
    /// a1 of the entry record: in most calls, the object.
    pub object: ShortText,
}

impl OpenCall {
    /// The call that this record begins.
    pub fn of(entry: &Fields) -> OpenCall {
        OpenCall { event: entry.event(), time: entry.time(), object: ShortText::new(entry.argument(0)) }
    }
}

impl KnownThreads {
    /// No threads. Names of programs are found in the files of `groups`.
    pub fn new(groups: Vec<FileGroup>) -> KnownThreads {
        KnownThreads {
            groups,
            indexes: HashMap::default(),
            threads: Vec::new(),
            last: None,
            programs: HashMap::new(),
            indexes_by_id: HashMap::new(),
            early_names: HashMap::new(),
            width: LABEL_WIDTH_MIN,
        }
    }

    /// The index of the record's thread, if it is known.
    pub fn find(&mut self, fields: &Fields) -> Option<usize> {
        let key = *fields.thread_key();
        if let Some((last, index)) = self.last
            && last == key
        {
            return Some(index);
        }
        let index = *self.indexes.get(&u128::from_ne_bytes(key))?;
        self.last = Some((key, index));
        Some(index)
    }

    /// Adds the record's thread, which is not known, and returns its index.
    pub fn add(&mut self, fields: &Fields) -> usize {
        let (pid, lwpid, tid) = (fields.pid(), fields.lwpid(), columns::hex(fields.tid()));
        let name = self.early_names.remove(&(pid, tid)).or_else(|| self.program(pid));
        let host =
            self.groups.iter().filter_map(|group| group.host.as_ref()).find(|host| host.own(pid).is_some()).cloned();
        let label = label(host.as_deref(), name.unwrap_or_else(|| pid.to_string()), lwpid);
        self.width = self.width.max(label.width);
        let index = self.threads.len();
        self.threads.push(KnownThread {
            label,
            lwpid,
            host,
            open_calls: Vec::new(),
            functions: Vec::new(),
            label_cache: (0, 0),
        });
        self.indexes.insert(u128::from_ne_bytes(*fields.thread_key()), index);
        self.indexes_by_id.insert((pid, tid), index);
        index
    }

    /// Whether there are [`THREADS_MAX`].
    pub fn is_full(&self) -> bool {
        self.threads.len() >= THREADS_MAX
    }

    /// Removes all threads. The width of labels stays.
    pub fn clear(&mut self) {
        *self = KnownThreads { width: self.width, ..KnownThreads::new(std::mem::take(&mut self.groups)) };
    }

    /// The version and the number of the label that the planner added last for the thread.
    pub fn label_cache(&mut self, thread: usize) -> &mut (u64, u32) {
        &mut self.threads[thread].label_cache
    }

    /// The name of the program that a process ran last: that of its first thread, or else the base name of its file. `None`
    /// if processes of different programs had that number.
    fn program(&mut self, pid: u32) -> Option<String> {
        let groups = &self.groups;
        let find = || {
            let mut names = groups.iter().filter_map(|group| group.process(pid)).filter_map(|process| {
                let text = read_info(&process.path(FileName::Info(process.number))).ok()?;
                // A program's comm follows its exe.
                let (key, value) = info::lines(&text).filter(|(key, _)| matches!(*key, b"exe" | b"comm")).last()?;
                let text: Vec<u8> = info::unescape(value).collect();
                name(if key == b"comm" { &text } else { text.rsplit(|&byte| byte == b'/').next()? })
            });
            let first = names.next()?;
            names.all(|name| name == first).then_some(first)
        };
        self.programs.entry(pid).or_insert_with(find).clone()
    }

    /// Gives the thread with the ID `tid` a name.
    pub fn set_name(&mut self, pid: u32, tid: &[u8], bytes: &[u8]) {
        let Some(name) = name(bytes) else { return };
        let key = (pid, bits(tid));
        match self.indexes_by_id.get(&key) {
            Some(&index) => {
                let thread = &mut self.threads[index];
                thread.label = label(thread.host.as_deref(), name, thread.lwpid);
                self.width = self.width.max(thread.label.width);
            }
            None if self.early_names.len() < THREADS_MAX => drop(self.early_names.insert(key, name)),
            None => {}
        }
    }

    /// The thread's host, if the records are of several hosts.
    pub fn host(&self, thread: usize) -> Option<&HostView> {
        self.threads[thread].host.as_deref()
    }

    /// Whether the records are of several hosts.
    pub fn has_hosts(&self) -> bool {
        self.groups.iter().any(|group| group.host.is_some())
    }

    pub fn label(&self, thread: usize) -> &ThreadLabel {
        &self.threads[thread].label
    }

    pub fn begin_call(&mut self, thread: usize, call: OpenCall) {
        let calls = &mut self.threads[thread].open_calls;
        if calls.len() == OPEN_CALLS_MAX {
            calls.remove(0);
        }
        calls.push(call);
    }

    /// Removes the newest open call that this record can be the return of: a signal handler's call begins last and returns first.
    pub fn end_call(&mut self, thread: usize, ret: &Fields) -> Option<OpenCall> {
        let calls = &mut self.threads[thread].open_calls;
        let is_span = ends_span(ret);
        let is_its =
            |call: &OpenCall| call.event == ret.event() && (!is_span || call.object.bytes() == ret.argument(0));
        let index = calls.iter().rposition(is_its)?;
        Some(calls.remove(index))
    }

    pub fn enter_function(&mut self, thread: usize, fields: &Fields) {
        let functions = &mut self.threads[thread].functions;
        if functions.len() == FUNCTIONS_MAX {
            functions.remove(0);
        }
        functions.push(function(fields));
    }

    /// Leaves a function, and those that it called.
    pub fn leave_function(&mut self, thread: usize, fields: &Fields) {
        let functions = &mut self.threads[thread].functions;
        let left = function(fields);
        if let Some(index) = functions.iter().rposition(|function| *function == left) {
            functions.truncate(index);
        }
    }

    /// In how many spans and functions a thread is.
    pub fn depth(&self, thread: usize) -> u32 {
        let KnownThread { open_calls, functions, .. } = &self.threads[thread];
        let spans = open_calls.iter().filter(|call| call.event.0 == USER).count();
        (spans + functions.len()) as u32
    }
}

fn function(fields: &Fields) -> (u64, u64) {
    (bits(fields.argument(0)), bits(fields.argument(1)))
}

/// Whether a record is the end of a span, which has a name as its beginning has.
pub fn ends_span(fields: &Fields) -> bool {
    fields.event() == USER_SPAN && fields.which() == 2
}

fn label(host: Option<&HostView>, name: String, lwpid: u32) -> ThreadLabel {
    let text = host.map_or(String::new(), |host| format!("{}:", host.name)) + &format!("{name}/{lwpid}");
    let width = text.chars().count();
    ThreadLabel { text, width }
}

/// A name that is safe for a terminal; `None` if it is empty.
fn name(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let safe = |letter: char| if letter.is_control() || letter == '\u{fffd}' { '?' } else { letter };
    let name: String = text.chars().take(NAME_MAX).map(safe).collect();
    (!name.is_empty()).then_some(name)
}

/// The name in two arguments of thr_setname, each of which has eight bytes of it.
pub fn name_bytes(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut name = [first, second].map(|text| bits(text).to_be_bytes()).concat();
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    name
}

/// A hash with little mixing, which is enough for the digits of a thread key, and fast: most records need a lookup.
#[derive(Debug, Default)]
struct ThreadKeyHasher(u64);

impl Hasher for ThreadKeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }
}
