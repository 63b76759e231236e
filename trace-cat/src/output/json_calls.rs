//! `-F json --calls`: an object for each call, one a line, when it returns; in the end the open calls.
//!
//! ```text
//! {"time":"1795174740.544763329","duration":8000000,"open":false,"waited":true,"lwpid":19955,"pid":19953,
//!  "tid":"0x7fc5de3f86c0","category":"mutex","event":"mutex_lock","object":"0x559469ed90a0",
//!  "arguments":{"mutex":"0x559469ed90a0","rval":0,"block?":1}}
//! ```
//!
//! (in one line). `time` is that of the entry record, and `duration` is in nanoseconds, of an open call the least that is known;
//! both are null if there is no entry record. `object` is null if the call names none. The arguments are those of both records.
//! A call whose stack was recorded has `"stack":["0x401136","0x7fc5de2a1083"]`, the innermost address first, or the names of the
//! frames instead, and `"stack_cut_off":true` if it could not be followed further.

use std::collections::HashMap;
use std::fmt::Write as _;

use spec::record::NANOS_PER_SECOND;
use spec::tables::CATEGORIES;
use spec::{Argument, Base, Record};

use super::formatter::TimelineFormatter;
use super::frame_names::FrameNames;
use super::json::stack_key;
use crate::calls::call::Call;
use crate::calls::call_assembler::CallAssembler;
use crate::calls::pairing::CallKey;
use crate::filter::OpenCallTable;
use crate::record::call_stack::{CallStack, is_stack};
use crate::record::columns;
use crate::record::fields::{Fields, bits};
use crate::record::record_kinds::detail_name;
use crate::trace::interned_names::{self, InternedNames};

/// Numbers from here on are strings, as in `-F json`.
const EXACT_END: u64 = 1_000_000_000_000_000;

/// The most stacks that are kept for their calls. There are fewer, unless records are missing.
const STACKS_MAX: usize = 1 << 16;

pub struct JsonCallsFormat {
    assembler: CallAssembler,
    open_calls: OpenCallTable,
    names: InternedNames,
    /// The names of frames, if they are asked for.
    frame_names: Option<FrameNames>,
    /// By process, LWP and time of their records.
    stacks: HashMap<(u32, u32, u64), CallStack>,
    /// The calls that returned at the time of the last record: their stacks may follow.
    returned: Vec<Call>,
    time: u64,
}

impl JsonCallsFormat {
    /// The format, with what is known of calls that do not return, the names of the program's own events, and those of frames
    /// if stacks are to have them.
    pub fn new(open_calls: OpenCallTable, names: InternedNames, frame_names: Option<FrameNames>) -> JsonCallsFormat {
        let (stacks, returned) = (HashMap::new(), Vec::new());
        JsonCallsFormat { assembler: CallAssembler::new(), open_calls, names, frame_names, stacks, returned, time: 0 }
    }

    fn add_stack(&mut self, line: &[u8]) {
        let Some(fields) = Fields::new(line) else { return };
        if self.stacks.len() >= STACKS_MAX {
            self.stacks.clear();
        }
        let stack = self.stacks.entry((fields.pid(), fields.lwpid(), fields.time())).or_default();
        stack.add(fields.which(), fields.arguments().map(bits));
    }

    /// Appends the calls that have returned.
    fn put_returned(&mut self, out: &mut Vec<u8>) {
        for call in std::mem::take(&mut self.returned) {
            self.put_call(&call, out);
        }
    }

    fn put_call(&mut self, call: &Call, out: &mut Vec<u8>) {
        let mut times = [call.entry, call.returned].into_iter().flatten().map(|record| record.time);
        let stack = times.find_map(|time| Some((self.stacks.remove(&(call.pid, call.lwp, time))?, time)));
        let keys = stack.map(|(stack, time)| match &self.frame_names {
            Some(names) => stack_key(&stack, &names.of(call.pid, &stack, time)),
            None => stack_key(&stack, &stack.texts()),
        });
        put_call(call, &self.open_calls, &self.names, &keys.unwrap_or_default(), out);
    }
}

impl TimelineFormatter for JsonCallsFormat {
    fn set_open_calls(&mut self, calls: OpenCallTable) {
        self.open_calls = calls;
    }

    fn begin_call(&mut self, line: &[u8]) {
        self.record(line, &mut Vec::new());
    }

    fn record(&mut self, line: &[u8], out: &mut Vec<u8>) {
        if is_stack(line) {
            return self.add_stack(line);
        }
        let time = columns::time(line).unwrap_or(0);
        if time != self.time {
            self.put_returned(out);
            self.time = time;
        }
        let JsonCallsFormat { assembler, returned, .. } = self;
        assembler.push(line, &mut |call| returned.push(call.clone()));
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        self.put_returned(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let JsonCallsFormat { assembler, returned, .. } = self;
        assembler.finish(&mut |call| returned.push(call.clone()));
        self.put_returned(out);
    }
}

/// Appends the object of a call. `more` has further keys, with the comma before them.
fn put_call(call: &Call, open_calls: &OpenCallTable, interned: &InternedNames, more: &str, out: &mut Vec<u8>) {
    let Call { event, pid, lwp, tid, entry, returned, .. } = call;
    let (category, number) = (event.category, event.number);
    let name = entry.map_or(0, |entry| CallKey::name_of((category, number), || entry.arguments[0].bits()));
    let key = CallKey { pid: *pid, lwp: *lwp, tid: *tid, category, number, name };
    let open_duration = entry.filter(|_| call.is_open()).and_then(|entry| {
        let until = open_calls.find(key, entry.time)?;
        Some(u128::from(until.time.saturating_sub(entry.time)))
    });
    let duration = open_duration.or_else(|| call.duration().map(|duration| duration.as_nanos()));
    let or_null = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
    let time =
        call.entry_time().map(|time| format!("\"{:010}.{:09}\"", time / NANOS_PER_SECOND, time % NANOS_PER_SECOND));
    let object = call.object().map(|object| format!("\"{object:#x}\""));
    let mut text = format!(
        "{{\"time\":{},\"duration\":{},\"open\":{},\"waited\":{},\"lwpid\":{lwp},\"pid\":{pid},\"tid\":\"{tid:#014x}\",\
         \"category\":\"{}\",\"event\":\"{}\",\"object\":{},\"arguments\":{{",
        or_null(time),
        or_null(duration.map(|duration| duration.to_string())),
        call.is_open(),
        call.waited(),
        CATEGORIES[usize::from(event.category)],
        event.name,
        or_null(object),
    );
    let mut names = Vec::new();
    let second = returned.filter(|returned| Some(*returned) != *entry);
    for record in entry.iter().chain(&second) {
        put_arguments(record, interned, &mut names, &mut text);
    }
    text.push('}');
    text += more;
    text += "}\n";
    out.extend_from_slice(text.as_bytes());
}

/// Appends the arguments of a record that have a name, each name once.
fn put_arguments(record: &Record, interned: &InternedNames, names: &mut Vec<&'static str>, text: &mut String) {
    let Some(kind) = record.kind() else { return };
    for (index, argument) in record.arguments.iter().enumerate() {
        let detail =
            || detail_name((record.event1, record.event2), record.which, index).filter(|_| argument.bits() != 0);
        let Some(name) = kind.columns[index].map(|column| column.name).or_else(detail) else { continue };
        if names.contains(&name) {
            continue;
        }
        let separator = if names.is_empty() { "" } else { "," };
        names.push(name);
        let is_thread = kind.columns[index].is_some_and(|column| column.base == Base::Thread);
        let value = match *argument {
            Argument::Hex(bits) if is_thread => format!("\"{bits:#014x}\""),
            Argument::Hex(bits) => format!("\"{bits:#x}\""),
            Argument::Decimal(number) if number < EXACT_END => number.to_string(),
            Argument::Decimal(number) => format!("\"{number}\""),
            Argument::Negative(number) if number.unsigned_abs() < EXACT_END / 10 => number.to_string(),
            Argument::Negative(number) => format!("\"{number}\""),
        };
        // Writing to a String does not fail.
        let _ = write!(text, "{separator}\"{name}\":{value}");
        if name == interned_names::COLUMN
            && let Some(name) = interned.text(record.pid, argument.bits())
        {
            let _ = write!(text, ",\"name\":{}", serde_json::Value::from(&*name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::test_trace::record;

    #[test]
    fn a_call_has_the_values_of_both_records() {
        let (mut format, mut out) =
            (JsonCallsFormat::new(OpenCallTable::default(), InternedNames::default(), None), Vec::new());
        for line in [
            record(5, 2, "02:02:2", 35),
            record(1_000_000_007, 2, "02:02:1", 0x10).replace(":0\n", ":0x401136\n"),
            record(1_000_000_008, 3, "03:04:1", 0x20),
            record(1_000_000_009, 2, "02:02:2", 0).replace("02:02:2:0:0", "02:02:2:0:1"),
            record(1_000_000_010, 2, "12:05:0", 0),
            record(1_000_000_011, 2, "02:04:0", 0x10),
        ] {
            format.record(line.replace(":1:16:", ":1:0x10:").replace(":1:32:", ":1:0x20:").as_bytes(), &mut out);
        }
        format.end(&mut out);
        let thread = |lwp| format!(r#""lwpid":{lwp},"pid":1,"tid":"0x7fc5de3f86c0","#);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let [alone, lock, unlock, wait] = lines[..] else { panic!("{text}") };
        let head = |values: &str, lwp| format!("{{{values},{}", thread(lwp));
        let lone = r#""category":"mutex","event":"mutex_lock","object":null,"arguments":{"rval":35,"block?":0}}"#;
        assert_eq!(alone, head(r#""time":null,"duration":null,"open":false,"waited":false"#, 2) + lone);
        let arguments = r#""arguments":{"mutex":"0x10","caller":"0x401136","rval":0,"block?":1}}"#;
        let values = r#""time":"0000000001.000000007","duration":2,"open":false,"waited":true"#;
        let both = r#""category":"mutex","event":"mutex_lock","object":"0x10","#;
        assert_eq!(lock, head(values, 2) + both + arguments);
        assert!(unlock.contains(r#""event":"mutex_unlock","object":"0x10","#) && unlock.contains(r#""duration":0,"#));
        let values = r#""time":"0000000001.000000008","duration":3,"open":true,"waited":true"#;
        let open = r#""category":"cond","event":"cond_wait","object":"0x20","arguments":{"cond":"0x20","mutex":0}}"#;
        assert_eq!(wait, head(values, 3) + open);
    }
}
