//! Writes the lines of a Paje trace.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fmt::{self, Display, Write as _};
use std::io;

use foldhash::fast::RandomState;
use spec::record::NANOS_PER_SECOND;

use super::item::{ALL_OTHERS, ALL_WAITING, FLOW_VALUES, ItemKind, MARK_NAMES, MarkKind, NONE, PajeItem};
use crate::export::program_event::ProgramText;
use crate::export::scene::TimelineScene;
use crate::export::text_cache::TextCache;
use crate::export::timeline_export::ByteConsumer;
use crate::report::trace_names::event_name;

/// Event definitions, types, and values whose names are known.
const HEADER: &str = include_str!("header.txt");
/// Bytes that are collected before they are written.
const CHUNK: usize = 256 << 10;

/// The colours of waits for locks, of other waits and of holds.
const CONTENTION: &str = "0.85 0.15 0.15";
const IDLENESS: &str = "0.6 0.65 0.75";
const HOLD: &str = "0.95 0.75 0.2";
/// Of what the program has recorded itself.
const PROGRAM: &str = "0.45 0.65 0.9";

/// Where an interval is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum PajeLane {
    /// The thread's own states.
    Thread,
    /// Waits within waits.
    Waits(u32),
    Holds(u32),
    /// Spans that do not nest with others.
    Spans(u32),
}

/// What ends, in the order in which it does at one time: a thread's life ends last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PajeEnd {
    State {
        thread: u32,
        lane: PajeLane,
    },
    /// Of those on one lane, each ends within the others.
    Span {
        thread: u32,
        lane: PajeLane,
    },
    Flow {
        thread: u32,
        value: &'static str,
        key: u64,
    },
    Life {
        thread: u32,
    },
}

/// Writes items, which are sorted.
pub struct PajeWriter<'a, 'b> {
    start: u64,
    notes: &'a [&'static str],
    texts: &'a [(u32, ProgramText)],
    /// The times of the threads that are drawn.
    spans: &'a [Option<(u64, u64)>],
    scene: &'a TimelineScene<'b>,
    write: &'a mut ByteConsumer<'a>,
    out: String,
    /// What has begun and not ended.
    open: BinaryHeap<Reverse<(u64, PajeEnd)>>,
    /// The lanes with an interval.
    busy: HashSet<(u32, PajeLane), RandomState>,
    /// The containers that exist.
    containers: HashSet<String, RandomState>,
    /// The numbers of values, by the alias of their type and their name.
    values: HashMap<(char, String), usize, RandomState>,
    places: TextCache<u32>,
    flows: u64,
}

/// PajeTime, with nine decimals.
struct PajeTime(u64);

impl Display for PajeTime {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}.{:09}", self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND)
    }
}

/// A text in quotes, which the format cannot have within quotes.
fn quoted(text: &str) -> String {
    let plain = |character: char| match character {
        '"' => '\'',
        character if character.is_control() => ' ',
        character => character,
    };
    // pj_dump reads no empty texts.
    let text = if text.is_empty() { "-" } else { text };
    format!("\"{}\"", text.chars().map(plain).collect::<String>())
}

impl<'a, 'b> PajeWriter<'a, 'b> {
    /// A writer of items at and after `start`.
    pub fn new(
        start: u64,
        (notes, texts): (&'a [&'static str], &'a [(u32, ProgramText)]),
        spans: &'a [Option<(u64, u64)>],
        scene: &'a TimelineScene<'b>,
        write: &'a mut ByteConsumer<'a>,
    ) -> PajeWriter<'a, 'b> {
        PajeWriter {
            start,
            notes,
            texts,
            spans,
            scene,
            write,
            out: HEADER.to_owned(),
            open: BinaryHeap::new(),
            busy: HashSet::default(),
            containers: HashSet::default(),
            values: HashMap::default(),
            places: TextCache::default(),
            flows: 0,
        }
    }

    /// Writes the next item, after what ends before.
    pub fn put(&mut self, item: &PajeItem) -> io::Result<()> {
        self.put_ends(item.from);
        let time = self.time(item.from);
        match item.kind {
            ItemKind::Life => {
                let thread = self.thread(item.thread, item.from);
                self.line(format_args!("8 {time} S {thread} R - - - -"));
                self.open.push(Reverse((item.to, PajeEnd::Life { thread: item.thread })));
            }
            ItemKind::Contention | ItemKind::Wait | ItemKind::Hold => self.put_state(item),
            ItemKind::Flow => self.put_flow(item),
            ItemKind::Mark => self.put_mark(item),
            ItemKind::Sample => self.put_sample(item),
            ItemKind::Span => self.put_span(item),
            ItemKind::ProgramMark => {
                let value = quoted(&self.text(item.subject));
                let (container, number) = (self.thread(item.thread, item.from), item.to as i64);
                self.line(format_args!("14 {time} U {container} {value} {number}"));
            }
            ItemKind::ProgramSample => {
                let process = self.process(self.scene.thread(item.thread).process, item.from);
                let (alias, name, value) =
                    (format!("{process}c{}", item.subject), self.text(item.subject), item.to as i64);
                let container = self.container(alias, 'C', &process, &name, item.from);
                self.line(format_args!("11 {time} V {container} {value}"));
            }
        }
        if self.out.len() >= CHUNK {
            (self.write)(self.out.as_bytes())?;
            self.out.clear();
        }
        Ok(())
    }

    /// Writes the ends of what is still open.
    pub fn finish(mut self) -> io::Result<()> {
        self.put_ends(u64::MAX);
        (self.write)(self.out.as_bytes())
    }

    /// Writes what ends before `time`, and what ends at it and may be followed by others.
    fn put_ends(&mut self, time: u64) {
        while let Some(&Reverse((end_time, end))) = self.open.peek() {
            let is_due = end_time < time || end_time == time && !matches!(end, PajeEnd::Life { .. });
            if !is_due && time < u64::MAX {
                break;
            }
            self.open.pop();
            let at = self.time(end_time);
            match end {
                PajeEnd::State { thread, lane } | PajeEnd::Span { thread, lane } => {
                    if matches!(end, PajeEnd::State { .. }) {
                        self.busy.remove(&(thread, lane));
                    }
                    let (kind, container) = self.lane(thread, lane, end_time);
                    self.line(format_args!("9 {at} {kind} {container}"));
                }
                PajeEnd::Life { thread } => {
                    let container = self.thread(thread, end_time);
                    self.line(format_args!("9 {at} S {container}"));
                }
                PajeEnd::Flow { thread, value, key } => {
                    let container = self.thread(thread, end_time);
                    self.line(format_args!("13 {at} K a {value} {container} {key}"));
                }
            }
        }
    }

    fn put_state(&mut self, item: &PajeItem) {
        let PajeItem { thread, subject, site, .. } = *item;
        let is_hold = item.kind == ItemKind::Hold;
        let object = Some(subject).filter(|object| *object != NONE);
        let is_free = |lane: &PajeLane| !self.busy.contains(&(thread, *lane));
        let lane = match is_hold {
            true => (0..).map(PajeLane::Holds).find(is_free),
            false => [PajeLane::Thread].into_iter().chain((0..).map(PajeLane::Waits)).find(is_free),
        };
        let lane = lane.unwrap_or(PajeLane::Thread);
        let (kind, container) = self.lane(thread, lane, item.from);
        let (name, color) = match object {
            Some(object) if is_hold => (format!("hold {}", self.scene.object_name(object)), HOLD),
            object if item.kind == ItemKind::Contention => (self.scene.wait_name(object), CONTENTION),
            object => (self.scene.wait_name(object), IDLENESS),
        };
        let value = self.value(kind, name, color);
        let address =
            object.map(|object| format!("{:#x}", self.scene.object(object).address)).unwrap_or("-".to_owned());
        let scene = self.scene;
        let place = self.places.get(site, || quoted(&scene.place(site).unwrap_or_default()));
        let holder = Some(item.other).filter(|holder| *holder != NONE).map(|holder| scene.names.thread_label(holder));
        let (holder, note) = (quoted(&holder.unwrap_or_default()), quoted(self.notes[usize::from(item.note)]));
        let time = self.time(item.from);
        self.line(format_args!("8 {time} {kind} {container} {value} {address} {place} {holder} {note}"));
        self.busy.insert((thread, lane));
        self.open.push(Reverse((item.to, PajeEnd::State { thread, lane })));
    }

    /// What an event of a program is called.
    fn text(&self, place: u32) -> String {
        let (pid, text) = self.texts[place as usize];
        self.scene.program_text(pid, text)
    }

    fn put_span(&mut self, item: &PajeItem) {
        let PajeItem { thread, other, .. } = *item;
        let lane = if other == 0 { PajeLane::Thread } else { PajeLane::Spans(other) };
        let (kind, container) = self.lane(thread, lane, item.from);
        let value = self.value(kind, self.text(item.subject), PROGRAM);
        let (time, note) = (self.time(item.from), quoted(self.notes[usize::from(item.note)]));
        self.line(format_args!("8 {time} {kind} {container} {value} - - - {note}"));
        self.open.push(Reverse((item.to, PajeEnd::Span { thread, lane })));
    }

    fn put_flow(&mut self, item: &PajeItem) {
        let PajeItem { thread, subject, .. } = *item;
        let is_drawn = |thread: u32| self.spans.get(thread as usize).is_some_and(Option::is_some);
        if !is_drawn(thread) || !is_drawn(subject) {
            return;
        }
        let container = self.thread(thread, item.from);
        let (value, key, time) = (FLOW_VALUES[item.other as usize], self.flows, self.time(item.from));
        self.flows += 1;
        self.line(format_args!("12 {time} K a {value} {container} {key}"));
        self.open.push(Reverse((item.to, PajeEnd::Flow { thread: subject, value, key })));
    }

    fn put_mark(&mut self, item: &PajeItem) {
        let (mark, name) = MARK_NAMES[item.other as usize];
        let subject = match mark {
            MarkKind::Loss => item.subject.to_string(),
            MarkKind::LossEnd | MarkKind::Change => String::new(),
            MarkKind::MissingBegin => self.text(item.subject),
            MarkKind::MissingEntry | MarkKind::MissingReturn => {
                event_name(((item.subject / 100) as u8, (item.subject % 100) as u8)).to_owned()
            }
            MarkKind::LostHold | MarkKind::BeganEarlier | MarkKind::EndsLater if item.subject == NONE => {
                self.scene.wait_name(None)
            }
            MarkKind::LostHold | MarkKind::BeganEarlier | MarkKind::EndsLater => self.scene.object_name(item.subject),
        };
        let value = quoted(&format!("{name}{subject}"));
        let (container, time) = (self.thread(item.thread, item.from), self.time(item.from));
        self.line(format_args!("10 {time} M {container} {value}"));
    }

    fn put_sample(&mut self, item: &PajeItem) {
        let (kind, container) = match item.subject {
            ALL_WAITING => ('W', self.trace()),
            ALL_OTHERS => ('N', self.trace()),
            object => {
                let state = self.scene.object(object);
                let name = self.scene.object_name(object);
                let process = self.process(state.process, item.from);
                ('Q', self.container(format!("o{object}"), 'O', &process, &name, item.from))
            }
        };
        let (time, value) = (self.time(item.from), item.to);
        self.line(format_args!("11 {time} {kind} {container} {value}"));
    }

    fn time(&self, time: u64) -> PajeTime {
        PajeTime(time.saturating_sub(self.start))
    }

    /// The state type and the container of a lane.
    fn lane(&mut self, thread: u32, lane: PajeLane, time: u64) -> (char, String) {
        let parent = self.thread(thread, time);
        let (alias, what) = match lane {
            PajeLane::Thread => return ('S', parent),
            PajeLane::Waits(number) => (format!("{parent}w{number}"), "waits within"),
            PajeLane::Holds(number) => (format!("{parent}h{number}"), "holds"),
            PajeLane::Spans(number) => (format!("{parent}s{number}"), "spans"),
        };
        let name = format!("{} {} {what}", self.scene.thread_name(thread), self.scene.thread(thread).lwp);
        ('I', self.container(alias, 'L', &parent, &name, time))
    }

    fn thread(&mut self, thread: u32, time: u64) -> String {
        let alias = format!("t{thread}");
        if self.containers.contains(&alias) {
            return alias;
        }
        let process = self.process(self.scene.thread(thread).process, time);
        let name = format!("{} {}", self.scene.thread_name(thread), self.scene.thread(thread).lwp);
        self.container(alias, 'T', &process, &name, time)
    }

    fn process(&mut self, process: u32, time: u64) -> String {
        let trace = self.trace();
        let name = format!("{} {}", self.scene.process_name(process), self.scene.process(process).pid);
        self.container(format!("p{process}"), 'P', &trace, &name, time)
    }

    fn trace(&mut self) -> String {
        self.container("a".to_owned(), 'A', "0", "trace", self.start)
    }

    /// The alias of a container, which is created at its first use.
    fn container(&mut self, alias: String, kind: char, parent: &str, name: &str, time: u64) -> String {
        if self.containers.insert(alias.clone()) {
            let (time, name) = (self.time(time), quoted(name));
            self.line(format_args!("6 {time} {alias} {kind} {parent} {name}"));
        }
        alias
    }

    /// The alias of a state's value, which is defined at its first use. Events and links have names instead: ViTE reports each
    /// definition of a value that is not a state's.
    fn value(&mut self, kind: char, name: String, color: &str) -> String {
        let next = self.values.len();
        let text = quoted(&name);
        let number = *self.values.entry((kind, name)).or_insert(next);
        if number == next {
            self.line(format_args!("5 v{number} {kind} {text} \"{color}\""));
        }
        format!("v{number}")
    }

    fn line(&mut self, line: fmt::Arguments) {
        // Writing to a String does not fail.
        let _ = writeln!(self.out, "{line}");
    }
}
