//! Who is who, and which calls they are in.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;

use spec::names::{FileName, PROCESS_MASK};
use spec::{info, record};

use crate::record::fields::{Fields, bits};
use crate::trace::file_handle::read_info;
use crate::trace::file_names::ProcessFiles;

/// Calls of one thread that may be begun and not ended, one in another; more are forgotten.
pub const DEPTH: usize = 64;
/// Threads that are remembered; when there are more, all are forgotten.
pub const REMEMBERED: usize = 1 << 18;
/// Columns that labels have at least.
const NARROW: usize = 15;
/// A name's longest, as in Linux.
const NAME_MAX: usize = 15;
/// Numbers of thr_setname.
pub const SET_NAME: (u8, u8) = (1, 39);

/// The threads of a trace, as far as it has been read.
#[derive(Debug)]
pub struct KnownThreads {
    directories: Vec<PathBuf>,
    /// By the text of process and LWP.
    places: HashMap<u128, usize, BuildHasherDefault<ThreadKeyHasher>>,
    threads: Vec<KnownThread>,
    /// The thread of the last record, which is often that of the next.
    last: Option<([u8; 16], usize)>,
    /// Names of processes' programs.
    programs: HashMap<u32, Option<String>>,
    /// Threads by process and thread ID, for those that name others.
    ids: HashMap<(u32, u64), usize>,
    /// Names that were given to threads which have not recorded anything yet.
    given: HashMap<(u32, u64), String>,
    width: usize,
}

#[derive(Debug)]
struct KnownThread {
    label: ThreadLabel,
    lwpid: u32,
    begun: Vec<OpenCall>,
    noted: (u64, u32),
}

/// `name/lwp`, or `pid/lwp` for one without a name.
#[derive(Clone, Debug, Default)]
pub struct ThreadLabel {
    /// The text.
    pub text: String,
    /// Its columns.
    pub width: usize,
}

/// The first of two records.
#[derive(Clone, Copy, Debug)]
pub struct OpenCall {
    /// Category and event.
    pub event: (u8, u8),
    /// Its time.
    pub time: u64,
    /// Its a1: in most calls, the object.
    pub object: ArgumentText,
}

/// The text of an argument.
#[derive(Clone, Copy, Debug)]
pub struct ArgumentText {
    text: [u8; record::ARGUMENT_WIDTH_MAX],
    length: u8,
}

impl ArgumentText {
    /// Keeps what fits, which is all of an argument.
    pub fn new(bytes: &[u8]) -> ArgumentText {
        let mut text = [0; record::ARGUMENT_WIDTH_MAX];
        let length = bytes.len().min(text.len());
        text[..length].copy_from_slice(&bytes[..length]);
        ArgumentText { text, length: length as u8 }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.text[..usize::from(self.length)]
    }
}

impl KnownThreads {
    /// None is known yet; names of programs are found in `directories`.
    pub fn new(directories: Vec<PathBuf>) -> KnownThreads {
        KnownThreads {
            directories,
            places: HashMap::default(),
            threads: Vec::new(),
            last: None,
            programs: HashMap::new(),
            ids: HashMap::new(),
            given: HashMap::new(),
            width: NARROW,
        }
    }

    /// The number of the record's thread, if it is known.
    pub fn find(&mut self, fields: &Fields) -> Option<usize> {
        let key = *fields.thread_key();
        if let Some((last, index)) = self.last
            && last == key
        {
            return Some(index);
        }
        let index = *self.places.get(&u128::from_ne_bytes(key))?;
        self.last = Some((key, index));
        Some(index)
    }

    /// A number for the record's thread, which is not known.
    pub fn add(&mut self, fields: &Fields) -> usize {
        let (pid, lwpid, tid) = (fields.pid(), fields.lwpid(), thread_id(fields.tid()));
        let name = self.given.remove(&(pid, tid)).or_else(|| self.program(pid));
        let label = label(name.unwrap_or_else(|| pid.to_string()), lwpid);
        self.width = self.width.max(label.width);
        let index = self.threads.len();
        self.threads.push(KnownThread { label, lwpid, begun: Vec::new(), noted: (0, 0) });
        self.places.insert(u128::from_ne_bytes(*fields.thread_key()), index);
        self.ids.insert((pid, tid), index);
        index
    }

    /// Whether there are as many as may be remembered.
    pub fn are_many(&self) -> bool {
        self.threads.len() >= REMEMBERED
    }

    /// Forgets all, but not how wide they were.
    pub fn forget(&mut self) {
        *self = KnownThreads { width: self.width, ..KnownThreads::new(std::mem::take(&mut self.directories)) };
    }

    /// A note about the thread, for whoever wants to make one.
    pub fn noted(&mut self, thread: usize) -> &mut (u64, u32) {
        &mut self.threads[thread].noted
    }

    /// The base name of the program that a process ran last.
    fn program(&mut self, pid: u32) -> Option<String> {
        let directories = &self.directories;
        let find = || {
            directories.iter().find_map(|directory| {
                let process =
                    ProcessFiles { directory: directory.clone(), prefix: Vec::new(), number: pid & PROCESS_MASK };
                let text = read_info(&process.path(FileName::Info(process.number))).ok()?;
                let (_, exe) = info::lines(&text).filter(|(key, _)| *key == b"exe").last()?;
                let path: Vec<u8> = info::unescape(exe).collect();
                name(path.rsplit(|&byte| byte == b'/').next()?)
            })
        };
        self.programs.entry(pid).or_insert_with(find).clone()
    }

    /// A thread has got a name.
    pub fn name(&mut self, pid: u32, tid: &[u8], bytes: &[u8]) {
        let Some(name) = name(bytes.split(|&byte| byte == 0).next().unwrap_or_default()) else { return };
        let key = (pid, thread_id(tid));
        match self.ids.get(&key) {
            Some(&index) => {
                let thread = &mut self.threads[index];
                thread.label = label(name, thread.lwpid);
                self.width = self.width.max(thread.label.width);
            }
            None if self.given.len() < REMEMBERED => drop(self.given.insert(key, name)),
            None => {}
        }
    }

    /// What a thread is called.
    pub fn label(&self, thread: usize) -> &ThreadLabel {
        &self.threads[thread].label
    }

    /// The columns of the widest label so far.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A call has begun and others do something meanwhile.
    pub fn begin(&mut self, thread: usize, begun: OpenCall) {
        let calls = &mut self.threads[thread].begun;
        if calls.len() == DEPTH {
            calls.remove(0);
        }
        calls.push(begun);
    }

    /// A call has ended. A signal handler's call began last and ends first.
    pub fn end(&mut self, thread: usize, event: (u8, u8)) -> Option<OpenCall> {
        let calls = &mut self.threads[thread].begun;
        let index = calls.iter().rposition(|begun| begun.event == event)?;
        Some(calls.remove(index))
    }
}

fn label(name: String, lwpid: u32) -> ThreadLabel {
    let text = format!("{name}/{lwpid}");
    let width = text.chars().count();
    ThreadLabel { text, width }
}

/// A name as a terminal may show it.
fn name(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let shown = |letter: char| if letter.is_control() || letter == '\u{fffd}' { '?' } else { letter };
    let name: String = text.chars().take(NAME_MAX).map(shown).collect();
    (!name.is_empty()).then_some(name)
}

fn thread_id(text: &[u8]) -> u64 {
    bits(text)
}

/// Process and LWP need little mixing, and a lookup is made for most records.
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
