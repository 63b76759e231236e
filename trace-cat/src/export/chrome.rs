//! `-F chrome`: the JSON of the trace event format, for chrome://tracing, speedscope, the Firefox Profiler and Perfetto.
//!
//! ```text
//! {"displayTimeUnit":"ns","traceEvents":[
//! {"ph":"B","pid":7,"tid":9,"ts":12.345,"cat":"wait","name":"wait queue.lock","args":{"object":"0x10"}},
//! {"ph":"E","pid":7,"tid":9,"ts":13.347,"cat":"wait","name":"wait queue.lock","args":{"object":"0x10"}},
//! ```
//!
//! Times are microseconds since the first record, with three decimals. Holds are on lanes, which have thread numbers above those of
//! LWPs. The list is not closed until the end; viewers read a file without its end, too.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, Write as _};
use std::rc::Rc;

use super::hold_lanes::HoldLanes;
use super::program_event::{ProgramEvent, ProgramSpan, ProgramText, mark_arguments};
use super::scene::{TimelineScene, missing_text};
use super::sink::TimelineSink;
use super::text_cache::TextCache;
use super::thread_flow::ThreadFlow;
use super::timeline_export::ByteConsumer;
use super::waiting_counts::{CounterSample, CounterSubject};
use crate::report::contention::{HoldInterval, TimelineEvent, WaitInterval};
use crate::report::trace_names::event_name;

/// The number of the first lane: more than any LWP. Perfetto takes 32 bits of a number, and puts larger ones on one thread.
const FIRST_LANE: u64 = 10_000_000;

/// What is on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LaneKind {
    Holds,
    /// Spans that do not nest.
    Spans,
}

/// The format `chrome`.
#[derive(Debug, Default)]
pub struct ChromeTimeline {
    start: u64,
    has_events: bool,
    flow_count: u64,
    lanes: HoldLanes,
    /// The numbers of lanes that stand for thread numbers, by thread.
    lane_numbers: BTreeMap<(u32, LaneKind, u32), u64>,
    /// What waits and holds of objects are called, and where sites are: JSON strings.
    waits: TextCache<Option<u32>>,
    objects: TextCache<u32>,
    places: TextCache<u32>,
    stacks: TextCache<u32>,
    texts: TextCache<(u32, ProgramText)>,
}

/// Microseconds, with three decimals.
struct Microseconds(u64);

impl Display for Microseconds {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every text is a JSON string")
}

impl ChromeTimeline {
    /// Appends an event, whose members `text` has.
    fn put(&mut self, event: fmt::Arguments, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.has_events {
            b",\n{"
        } else {
            b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{"
        });
        self.has_events = true;
        write!(out, "{event}}}").expect("memory takes all bytes");
    }

    fn time(&self, time: u64) -> Microseconds {
        Microseconds(time.saturating_sub(self.start))
    }

    fn place(&mut self, site: u32, scene: &TimelineScene) -> Rc<str> {
        self.places.get(site, || quoted(&scene.place(site).unwrap_or_default()))
    }

    /// Appends an interval. `name` is a JSON string, `arguments` are members; an arrow begins (`s`) or ends (`f`) at its beginning.
    fn put_interval(
        &mut self,
        (pid, tid): (u32, u64),
        (from, to): (u64, u64),
        (category, name): (&str, &str),
        arguments: &str,
        arrow: Option<(&str, u64)>,
        out: &mut Vec<u8>,
    ) {
        // Not one event with a duration: readers add in floating point, and slices that touch would cross.
        let ts = self.time(from);
        self.put(
            format_args!(
                "\"ph\":\"B\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"cat\":\"{category}\",\"name\":{name},\
                 \"args\":{{{arguments}}}"
            ),
            out,
        );
        if let Some((phase, flow)) = arrow {
            self.put(
                format_args!(
                    "\"ph\":\"{phase}\",\"bp\":\"e\",\"id\":{flow},\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\
                     \"cat\":\"flow\",\"name\":\"flow\""
                ),
                out,
            );
        }
        let ts = self.time(to);
        // speedscope takes it for the end of the slice if it has the same arguments.
        self.put(
            format_args!(
                "\"ph\":\"E\",\"pid\":{pid},\"tid\":{tid},\"ts\":{ts},\"cat\":\"{category}\",\"name\":{name},\
                 \"args\":{{{arguments}}}"
            ),
            out,
        );
    }

    /// Appends a slice without a length, and there an end of an arrow.
    fn put_mark(
        &mut self,
        (thread, time, name): (u32, u64, &str),
        arrow: (&str, u64),
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) {
        let (pid, tid) = (scene.process_of(thread).pid, u64::from(scene.thread(thread).lwp));
        self.put_interval((pid, tid), (time, time), ("flow", &quoted(name)), "", Some(arrow), out);
    }

    /// Appends an arrow: thread, time and mark of both ends.
    fn put_flow(&mut self, from: (u32, u64, &str), to: (u32, u64, &str), scene: &TimelineScene, out: &mut Vec<u8>) {
        self.flow_count += 1;
        let flow = self.flow_count;
        self.put_mark(from, ("s", flow), scene, out);
        self.put_mark(to, ("f", flow), scene, out);
    }

    /// Appends an instant of a thread.
    fn put_instant(
        &mut self,
        thread: u32,
        time: u64,
        category: &str,
        name: &str,
        scene: &TimelineScene,
        out: &mut Vec<u8>,
    ) {
        let (pid, lwp, ts, name) =
            (scene.process_of(thread).pid, scene.thread(thread).lwp, self.time(time), quoted(name));
        self.put(
            format_args!(
                "\"ph\":\"i\",\"s\":\"t\",\"pid\":{pid},\"tid\":{lwp},\"ts\":{ts},\"cat\":\"{category}\",\"name\":{name}"
            ),
            out,
        );
    }

    fn put_wait(&mut self, wait: &WaitInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let key = (scene.process_of(wait.thread).pid, u64::from(scene.thread(wait.thread).lwp));
        let name = self.waits.get(wait.object, || quoted(&scene.wait_name(wait.object)));
        let mut arguments = String::new();
        if let Some(object) = wait.object {
            arguments += &format!("\"object\":\"{:#x}\",", scene.object(object).address);
        }
        if wait.site > 0 {
            arguments += &format!("\"site\":{},", self.place(wait.site, scene));
        }
        if let Some(holder) = wait.holder {
            arguments += &format!("\"held by\":{},", quoted(&scene.names.thread_label(holder)));
        }
        if let Some(waker) = wait.waker {
            arguments += &format!("\"ended by\":{},", quoted(&scene.names.thread_label(waker.thread)));
        }
        if scene.has_stack(wait.site) {
            let stack = self.stacks.get(wait.site, || quoted(&scene.stack(wait.site)));
            arguments += &format!("\"stack\":{stack},");
        }
        if let Some(note) = wait.note() {
            arguments += &format!("\"note\":\"{note}\",");
        }
        self.put_interval(key, (wait.from, wait.to), ("wait", &name), arguments.trim_end_matches(','), None, out);
        if let Some(waker) = wait.drawn_waker(&scene.names.analysis.selection.times) {
            let name = format!("ends the wait of {}", scene.names.thread_label(wait.thread));
            self.put_flow((waker.thread, waker.time, &name), (wait.thread, wait.to, "goes on"), scene, out);
        }
    }

    fn put_hold(&mut self, hold: &HoldInterval, scene: &TimelineScene, out: &mut Vec<u8>) {
        let (lane, _) = self.lanes.place(hold, scene);
        let (pid, tid) = (scene.process_of(hold.thread).pid, self.lane_number(hold.thread, LaneKind::Holds, lane));
        let object = self.objects.get(hold.object, || quoted(&format!("hold {}", scene.object_name(hold.object))));
        let mut arguments = format!("\"object\":\"{:#x}\"", scene.object(hold.object).address);
        if hold.site > 0 {
            arguments += &format!(",\"site\":{}", self.place(hold.site, scene));
        }
        if let Some(note) = hold.note() {
            arguments += &format!(",\"note\":\"{note}\"");
        }
        self.put_interval((pid, tid), (hold.from, hold.to), ("hold", &object), &arguments, None, out);
    }

    fn put_span(&mut self, span: &ProgramSpan, scene: &TimelineScene, out: &mut Vec<u8>) {
        let (pid, lwp) = (scene.process_of(span.thread).pid, scene.thread(span.thread).lwp);
        let tid = match span.lane {
            0 => lwp.into(),
            lane => self.lane_number(span.thread, LaneKind::Spans, lane),
        };
        let name = self.texts.get((pid, span.text), || quoted(&scene.program_text(pid, span.text)));
        let note = span.note().map(|note| format!("\"note\":\"{note}\"")).unwrap_or_default();
        self.put_interval((pid, tid), (span.from, span.to), (span.text.category(), &name), &note, None, out);
    }

    /// The number that stands for a lane of a thread.
    fn lane_number(&mut self, thread: u32, content: LaneKind, lane: u32) -> u64 {
        let next = FIRST_LANE + self.lane_numbers.len() as u64;
        *self.lane_numbers.entry((thread, content, lane)).or_insert(next)
    }

    /// Appends the name of a process, a thread or a lane.
    fn put_name(&mut self, what: &str, (pid, tid): (u32, u64), name: &str, out: &mut Vec<u8>) {
        let name = quoted(name);
        self.put(
            format_args!("\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{what}\",\"args\":{{\"name\":{name}}}"),
            out,
        );
    }

    fn put_names(&mut self, thread: u32, scene: &TimelineScene, out: &mut Vec<u8>) {
        let (process, lwp, name) = (scene.process_of(thread), scene.thread(thread).lwp, scene.thread_name(thread));
        self.put_name("thread_name", (process.pid, lwp.into()), &name, out);
        let of_thread = (thread, LaneKind::Holds, 0)..=(thread, LaneKind::Spans, u32::MAX);
        for ((_, content, _), tid) in
            self.lane_numbers.range(of_thread).map(|(lane, tid)| (*lane, *tid)).collect::<Vec<_>>()
        {
            let content = if content == LaneKind::Holds { "holds" } else { "spans" };
            self.put_name("thread_name", (process.pid, tid), &format!("{name} {lwp} {content}"), out);
        }
    }
}

impl TimelineSink for ChromeTimeline {
    fn begin(&mut self, start: u64, _out: &mut Vec<u8>) {
        self.start = start;
    }

    fn program_event(&mut self, event: &ProgramEvent, scene: &TimelineScene, out: &mut Vec<u8>) {
        let thread = event.thread();
        let (pid, lwp) = (scene.process_of(thread).pid, scene.thread(thread).lwp);
        match *event {
            ProgramEvent::Span(span) => self.put_span(&span, scene, out),
            ProgramEvent::Mark { time, text, values, .. } => {
                let name = self.texts.get((pid, text), || quoted(&scene.program_text(pid, text)));
                let arguments: Vec<String> =
                    mark_arguments(text, values).map(|(name, value)| format!("\"{name}\":{value}")).collect();
                let (ts, category, arguments) = (self.time(time), text.category(), arguments.join(","));
                self.put(
                    format_args!(
                        "\"ph\":\"i\",\"s\":\"t\",\"pid\":{pid},\"tid\":{lwp},\"ts\":{ts},\"cat\":\"{category}\",\
                         \"name\":{name},\"args\":{{{arguments}}}"
                    ),
                    out,
                );
            }
            ProgramEvent::Count { time, text, value, .. } => {
                let name = self.texts.get((pid, text), || quoted(&scene.program_text(pid, text)));
                let ts = self.time(time);
                self.put(
                    format_args!(
                        "\"ph\":\"C\",\"pid\":{pid},\"tid\":0,\"ts\":{ts},\"name\":{name},\"args\":{{\"value\":{value}}}"
                    ),
                    out,
                );
            }
            ProgramEvent::MissingBegin { time, text, .. } => {
                let name = format!("{}: no beginning recorded", scene.program_text(pid, text));
                self.put_instant(thread, time, "missing", &name, scene, out);
            }
        }
    }

    fn event(&mut self, event: &TimelineEvent, scene: &TimelineScene, out: &mut Vec<u8>) {
        match *event {
            TimelineEvent::ThreadBegin { thread } => {
                let process = scene.process_of(thread);
                if process.threads.len() == 1 {
                    let name = scene.process_name(scene.thread(thread).process);
                    self.put_name("process_name", (process.pid, 0), &name, out);
                }
            }
            TimelineEvent::ThreadEnd { thread, .. } => self.put_names(thread, scene, out),
            TimelineEvent::Wait(wait) => self.put_wait(&wait, scene, out),
            TimelineEvent::Hold(hold) => self.put_hold(&hold, scene, out),
            TimelineEvent::LostHold { thread, object, from, .. } => {
                self.lanes.forget(thread, object);
                let name = format!("hold {}: no release recorded", scene.object_name(object));
                self.put_instant(thread, from, "missing", &name, scene, out);
            }
            TimelineEvent::Loss { thread, time, lost } => {
                self.put_instant(thread, time, "missing", &missing_text(lost), scene, out);
            }
            TimelineEvent::LossEnd { thread, time } => {
                self.put_instant(thread, time, "missing", "records are complete again", scene, out);
            }
            TimelineEvent::MissingEntry { thread, time, event } => {
                let name = format!("{}: no entry record", event_name(event));
                self.put_instant(thread, time, "missing", &name, scene, out);
            }
            TimelineEvent::MissingReturn { thread, time, event } => {
                let name = format!("{}: no return record", event_name(event));
                self.put_instant(thread, time, "missing", &name, scene, out);
            }
            TimelineEvent::ProcessEnd { .. } => {}
            TimelineEvent::Creation { .. } | TimelineEvent::Join { .. } | TimelineEvent::Fork { .. } => {
                if let Some([from, to]) = ThreadFlow::ends(event, scene) {
                    self.put_flow((from.thread, from.time, &from.name), (to.thread, to.time, &to.name), scene, out);
                }
            }
        }
    }

    fn count(&mut self, sample: &CounterSample, scene: &TimelineScene, out: &mut Vec<u8>) {
        let pid = match sample.subject {
            CounterSubject::WaitingFor(object) => scene.process(scene.object(object).process).pid,
            CounterSubject::Waiting | CounterSubject::NotWaiting => 0,
        };
        let name = scene.counter_name(sample.subject);
        let (ts, name, value) = (self.time(sample.time), quoted(&name), sample.value);
        self.put(
            format_args!(
                "\"ph\":\"C\",\"pid\":{pid},\"tid\":0,\"ts\":{ts},\"name\":{name},\"args\":{{\"threads\":{value}}}"
            ),
            out,
        );
    }

    fn end(&mut self, _scene: &TimelineScene, write: &mut ByteConsumer) -> io::Result<()> {
        write(if self.has_events { b"\n]}\n" } else { b"{\"traceEvents\":[]}\n" })
    }
}
