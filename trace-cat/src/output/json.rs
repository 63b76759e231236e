//! `-F json`: an object for each record, one a line.
//!
//! ```text
//! {"time":"1795174740.544763329","lwpid":19955,"pid":19953,"tid":"0x7fc5de3f86c0","category":"mutex",
//!  "event":"mutex_lock","which":2,"arguments":{"rval":0,"block?":1}}
//! ```
//!
//! (in one line). Arguments have their names from events.tsv; a column without a name that is not 0 appears under
//! the name of what THR_TRACE_DETAIL has put there (`caller`, `holder`), else as `a1` and so on. Readers of JSON hold numbers as doubles, which are exact up to 2^53. Therefore the time, hex numbers and long
//! decimal numbers are strings. Beside `name_id` stands `name`, its text, if that is known. A part of a stack has its addresses instead of arguments, and whether it ends there unfinished:
//!
//! ```text
//! {"time":"1795174740.544763329",…,"event":"trace_stack","which":1,"stack":["0x401136","0x7fc5de2a1083"],"stack_cut_off":true}
//! ```

use serde_json::Value;

use spec::event_numbers::TRACE_STACK;

use super::formatter::RecordFormatter;
use crate::record::call_stack::CallStack;
use crate::record::fields::{Fields, bits};
use crate::record::record_kinds::{self, KnownKind, RecordKindTable};
use crate::trace::interned_names::{self, InternedNames};

/// The most characters, the minus included, of decimal numbers that are exact in any reader: 10^15 is less than 2^53.
const EXACT_WIDTH_MAX: usize = 15;

#[derive(Debug, Default)]
pub struct JsonFormat {
    kinds: RecordKindTable,
    names: InternedNames,
}

impl JsonFormat {
    /// The format, with the names of the program's own events.
    pub fn new(names: InternedNames) -> JsonFormat {
        JsonFormat { names, ..JsonFormat::default() }
    }
}

impl RecordFormatter for JsonFormat {
    fn record(&self, line: &[u8], out: &mut Vec<u8>) {
        // The file changed after it was checked: a line that is not a record has no columns.
        let Some(fields) = Fields::new(line) else { return };
        let (seconds, nanoseconds) = fields.seconds_and_nanoseconds();
        let (lwpid, pid) = fields.lwpid_and_pid();
        let mut put = |texts: &[&[u8]]| texts.iter().for_each(|text| out.extend_from_slice(text));
        put(&[b"{\"time\":\"", seconds, b".", nanoseconds, b"\",\"lwpid\":", lwpid, b",\"pid\":", pid]);
        put(&[b",\"tid\":\"", fields.tid(), b"\",\"category\":\""]);
        let known = self.kinds.find(&fields);
        match known {
            Some(KnownKind { category, event, .. }) => {
                put(&[category.as_bytes(), b"\",\"event\":\"", event.name.as_bytes()]);
            }
            None => {
                put(&[
                    &record_kinds::category_name(fields.event().0),
                    b"\",\"event\":\"",
                    &record_kinds::event_name(&fields),
                ]);
            }
        }
        put(&[b"\",\"which\":", &[b'0' + fields.which()]]);
        if fields.event() == TRACE_STACK {
            let mut stack = CallStack::default();
            stack.add(fields.which(), fields.arguments().map(bits));
            return put(&[stack_key(&stack, &stack.texts()).as_bytes(), b"}\n"]);
        }
        put(&[b",\"arguments\":{"]);
        let mut separator: &[u8] = b"\"";
        for (index, text) in fields.arguments().into_iter().enumerate() {
            let number = [b'a', b'1' + index as u8];
            let detail = known.and_then(|known| record_kinds::detail_name(fields.event(), known.which, index));
            let name = match known.and_then(|known| known.columns[index]) {
                Some(column) => column.name.as_bytes(),
                None if text == b"0" => continue,
                None => detail.map_or(&number[..], str::as_bytes),
            };
            if is_exact(text) {
                put(&[separator, name, b"\":", text]);
            } else {
                put(&[separator, name, b"\":\"", text, b"\""]);
            }
            separator = b",\"";
            if name == interned_names::COLUMN.as_bytes()
                && let Some(name) = self.names.text(fields.pid(), bits(text))
            {
                put(&[b",\"name\":", Value::from(&*name).to_string().as_bytes()]);
            }
        }
        put(&[b"}}\n"]);
    }
}

/// The keys of a stack whose frames have these texts, with the comma before them.
pub fn stack_key(stack: &CallStack, frames: &[impl AsRef<str>]) -> String {
    let frames = frames.iter().map(|frame| Value::from(frame.as_ref())).collect::<Value>();
    let cut_off = if stack.is_cut_off { ",\"stack_cut_off\":true" } else { "" };
    format!(",\"stack\":{frames}{cut_off}")
}

/// Whether a value can be a JSON number that every reader holds exactly.
fn is_exact(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    // JSON has no zero before other digits. The recorder never writes one, but a record may have it.
    let plain = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    text.len() <= EXACT_WIDTH_MAX && plain && !digits.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(event: &str, arguments: &str) -> String {
        let (format, mut out) = (JsonFormat::default(), Vec::new());
        let line = format!("1795174740:044763329:0019955:0000007:0x7fc5de3f86c0:{event}:{arguments}\n");
        format.record(line.as_bytes(), &mut out);
        let text = String::from_utf8(out).unwrap();
        let head = "{\"time\":\"1795174740.044763329\",\"lwpid\":19955,\"pid\":7,\"tid\":\"0x7fc5de3f86c0\",";
        text.strip_prefix(head).unwrap_or_else(|| panic!("{text}")).trim_end().to_owned()
    }

    #[test]
    fn arguments_have_their_names() {
        for (event, arguments, expected) in [
            (
                "02:02:2",
                "0:1:0:0:0x401136",
                r#""category":"mutex","event":"mutex_lock","which":2,"arguments":{"rval":0,"block?":1,"a5":"0x401136"}}"#,
            ),
            (
                "02:02:1",
                "0x10:0:0:71:0x401136",
                r#""category":"mutex","event":"mutex_lock","which":1,"arguments":{"mutex":"0x10","holder":71,"caller":"0x401136"}}"#,
            ),
            ("01:16:0", "0:0:0:0:0", r#""category":"thread","event":"thr_yield","which":0,"arguments":{}}"#),
            (
                "04:01:0",
                "0x10:0:5:0:-22",
                r#""category":"sema","event":"sema_init","which":0,"arguments":{"sem":"0x10","pshared":0,"value":5,"rval":-22}}"#,
            ),
            (
                "12:05:0",
                "999999999999999:1000000000000000:-99999999999999:18446744073709551615:007",
                concat!(
                    r#""category":"user","event":"user.05","which":0,"arguments":{"a1":999999999999999,"#,
                    r#""a2":"1000000000000000","a3":-99999999999999,"a4":"18446744073709551615","a5":"007"}}"#
                ),
            ),
            ("50:01:0", "0:0:0:0:0", r#""category":"50","event":"50.01","which":0,"arguments":{}}"#),
        ] {
            assert_eq!(object(event, arguments), expected);
        }
    }

    #[test]
    fn names_of_the_program_stand_beside_their_ids() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trinfo.0000007"), "name 0x10 a\\x20\"b\"\\x0a").unwrap();
        let format = JsonFormat::new(InternedNames::new(vec![directory.path().to_owned().into()]));
        let mut out = Vec::new();
        for arguments in ["0x10:-5", "0x11:6"] {
            let line = format!("1795174740:044763329:0019955:0000007:0x7fc5de3f86c0:12:91:0:{arguments}:0:0:0\n");
            format.record(line.as_bytes(), &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let arguments: Vec<&str> = text.lines().map(|line| line.split_once("\"arguments\":").unwrap().1).collect();
        assert_eq!(
            arguments,
            [r#"{"name_id":"0x10","name":"a \"b\"\n","value":-5}}"#, r#"{"name_id":"0x11","value":6}}"#]
        );
    }

    #[test]
    fn a_line_that_is_not_a_record_is_left_out() {
        let mut out = Vec::new();
        JsonFormat::default().record(b"\"},\x1b[2J\n", &mut out);
        assert!(out.is_empty());
    }
}
