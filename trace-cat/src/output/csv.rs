//! `-F csv`: a line of names, then a line for each record.
//!
//! ```text
//! time,lwpid,pid,tid,category,event,which,a1,a2,a3,a4,a5,columns,name
//! 1795174740.544763329,19955,19953,0x7fc5de3f86c0,mutex,mutex_lock,1,0x559469ed90a0,0,0,0,0,mutex
//! ```
//!
//! Values are the texts that the record has, with all digits, and need no quotes. `columns` has the names of a1 and so on as in
//! events.tsv, separated by spaces, and `-` for a column without a name; one that THR_TRACE_DETAIL has filled has the name of
//! that (`caller`, `holder`). `name` is the text that `name_id` stands for, in quotes, else empty.

use super::formatter::RecordFormatter;
use crate::record::fields::{Fields, bits};
use crate::record::record_kinds::{self, KnownKind, RecordKindTable};
use crate::trace::interned_names::{self, InternedNames};

#[derive(Debug, Default)]
pub struct CsvFormat {
    kinds: RecordKindTable,
    names: InternedNames,
}

impl CsvFormat {
    /// The format, with the names of the program's own events.
    pub fn new(names: InternedNames) -> CsvFormat {
        CsvFormat { names, ..CsvFormat::default() }
    }
}

impl RecordFormatter for CsvFormat {
    fn head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"time,lwpid,pid,tid,category,event,which,a1,a2,a3,a4,a5,columns,name\n");
    }

    fn record(&self, line: &[u8], out: &mut Vec<u8>) {
        // The file changed after it was checked: a line that is not a record has no columns.
        let Some(fields) = Fields::new(line) else { return };
        let (seconds, nanoseconds) = fields.seconds_and_nanoseconds();
        let (lwpid, pid) = fields.lwpid_and_pid();
        let mut put = |texts: &[&[u8]]| texts.iter().for_each(|text| out.extend_from_slice(text));
        put(&[seconds, b".", nanoseconds, b",", lwpid, b",", pid, b",", fields.tid(), b","]);
        let known = self.kinds.find(&fields);
        match known {
            Some(KnownKind { category, event, .. }) => put(&[category.as_bytes(), b",", event.name.as_bytes()]),
            None => put(&[&record_kinds::category_name(fields.event().0), b",", &record_kinds::event_name(&fields)]),
        }
        put(&[b",", &[b'0' + fields.which()]]);
        for argument in fields.arguments() {
            put(&[b",", argument]);
        }
        put(&[b","]);
        let Some(known) = known else { return put(&[b",\n"]) };
        let detail = |index: usize| {
            let name = record_kinds::detail_name(fields.event(), known.which, index);
            name.filter(|_| known.columns[index].is_none() && fields.argument(index) != b"0")
        };
        let used = (known.used..5).rfind(|&index| detail(index).is_some()).map_or(known.used, |last| last + 1);
        for index in 0..used {
            let separator: &[u8] = if index > 0 { b" " } else { b"" };
            let name = known.columns[index].map(|column| column.name).or_else(|| detail(index));
            put(&[separator, name.map_or(b"-", str::as_bytes)]);
        }
        let name_id =
            known.columns.iter().position(|column| column.is_some_and(|it| it.name == interned_names::COLUMN));
        let name = name_id.and_then(|index| self.names.text(fields.pid(), bits(fields.argument(index))));
        if let Some(name) = name {
            put(&[b",\"", name.replace('"', "\"\"").as_bytes(), b"\""]);
        } else {
            put(&[b","]);
        }
        put(&[b"\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_program_are_quoted() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trinfo.0000007"), "name 0x10 a\\x20\"b\"").unwrap();
        let (format, mut out) =
            (CsvFormat::new(InternedNames::new(vec![directory.path().to_owned().into()])), Vec::new());
        format.record(b"1795174740:044763329:0019955:0000007:0x7fc5de3f86c0:12:91:0:0x10:-5:0:0:0\n", &mut out);
        let expected = "1795174740.044763329,19955,7,0x7fc5de3f86c0,user,user_mark,0,0x10,-5,0,0,0,name_id value,\"a \"\"b\"\"\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn records_and_their_names() {
        let (format, mut out) = (CsvFormat::default(), Vec::new());
        format.head(&mut out);
        for line in [
            "1795174740:044763329:0019955:0000007:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0\n",
            "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:02:2:35:1:0:0:0x401136\n",
            "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:01:16:0:0:0:0:0:0\n",
            "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:12:05:0:18446744073709551615:-1:0:0:0\n",
            "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:04:01:0:0x10:0:5:0:22\n",
            "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:02:1:0x10:0:0:71:0x401136\n",
            "rubbish\n",
        ] {
            format.record(line.as_bytes(), &mut out);
        }
        let expected = "\
time,lwpid,pid,tid,category,event,which,a1,a2,a3,a4,a5,columns,name
1795174740.044763329,19955,7,0x7fc5de3f86c0,mutex,mutex_lock,1,0x559469ed90a0,0,0,0,0,mutex,
1795174740.544763329,19955,7,0x7fc5de3f86c0,mutex,mutex_lock,2,35,1,0,0,0x401136,rval block?,
1795174740.544763329,19955,7,0x7fc5de3f86c0,thread,thr_yield,0,0,0,0,0,0,,
1795174740.544763329,19955,7,0x7fc5de3f86c0,user,user.05,0,18446744073709551615,-1,0,0,0,,
1795174740.544763329,19955,7,0x7fc5de3f86c0,sema,sema_init,0,0x10,0,5,0,22,sem pshared value - rval,
1795174740.544763329,19955,7,0x7fc5de3f86c0,mutex,mutex_lock,1,0x10,0,0,71,0x401136,mutex - - holder caller,
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
