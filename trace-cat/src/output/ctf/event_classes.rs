//! The kinds of events in the stream, and how a record becomes an event.
//!
//! Events of mutexes, and functions that are entered and left, have the names and fields of LTTng's wrappers (its request and
//! acquisition are the entry and return record of a call), so that analyses of LTTng's traces understand them. The others have the
//! names of events.tsv.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;

use foldhash::fast::RandomState;
use spec::Base;
use spec::tables::{MUTEX, RMUTEX};

use crate::calls::pairing::{CallKey, OPEN_CALLS_MAX, OpenCalls};
use crate::record::columns;
use crate::record::fields::{self, Fields};
use crate::record::record_kinds::{RecordKindTable, detail_name, event_name};

/// LTTng's names of record kinds.
const LTTNG_NAMES: [((u8, u8, u8), &str); 6] = [
    (MUTEX_LOCK_ENTRY, "lttng_ust_pthread:pthread_mutex_lock_req"),
    (MUTEX_LOCK_RETURN, "lttng_ust_pthread:pthread_mutex_lock_acq"),
    ((2, 3, 0), "lttng_ust_pthread:pthread_mutex_trylock"),
    ((2, 4, 0), "lttng_ust_pthread:pthread_mutex_unlock"),
    ((13, 1, 0), "lttng_ust_cyg_profile:func_entry"),
    ((13, 2, 0), "lttng_ust_cyg_profile:func_exit"),
];
const MUTEX_LOCK_ENTRY: (u8, u8, u8) = (2, 2, 1);
const MUTEX_LOCK_RETURN: (u8, u8, u8) = (2, 2, 2);

/// What an event's ID stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct EventClass {
    /// Category, number and which.
    event: (u8, u8, u8),
    /// The columns that it has.
    columns: [Option<Base>; 5],
    /// Decimal numbers have 64 bits, else 32.
    is_wide: bool,
    /// Begins with the mutex, which the record itself does not have.
    has_mutex: bool,
}

/// The event classes of a stream.
#[derive(Default)]
pub struct EventClasses {
    kinds: RecordKindTable,
    ids: HashMap<EventClass, u16, RandomState>,
    /// The mutexes of calls that have not returned.
    open_locks: OpenCalls<u64>,
    /// The description of the classes so far.
    pub metadata: String,
}

impl EventClasses {
    /// Appends the event of a record, of which `time` are the low bits of its time.
    ///
    /// # Errors
    /// There are more kinds of events than IDs.
    pub fn append(&mut self, fields: &Fields, time: u32, out: &mut Vec<u8>) -> io::Result<()> {
        let (category, number) = fields.event();
        let event = (category, number, fields.which());
        let known = self.kinds.find(fields).map(|known| known.columns);
        let (mut columns, mut values, mut is_wide) = ([None; 5], [0; 5], false);
        for (index, text) in fields.arguments().into_iter().enumerate() {
            let value = fields::bits(text);
            let base = match known {
                Some(known) => known[index].map(|column| column.base).or((text != b"0").then(|| base_of(text, value))),
                None => Some(base_of(text, value)),
            };
            is_wide |= match base {
                Some(Base::Signed) => i32::try_from(value as i64).is_err(),
                Some(Base::Unsigned) => u32::try_from(value).is_err(),
                Some(Base::Hex | Base::Thread) | None => false,
            };
            (columns[index], values[index]) = (base, value);
        }
        let mutex = self.mutex(fields, plain(event), values[0]);
        let is_recursive = lttng_name(event).is_some() && category == RMUTEX;
        let id = self.id(EventClass { event, columns, is_wide, has_mutex: mutex.is_some() }, fields)?;
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&time.to_le_bytes());
        out.extend_from_slice(&fields.pid().to_le_bytes());
        out.extend_from_slice(&fields.lwpid().to_le_bytes());
        out.extend_from_slice(&columns::hex(fields.tid()).to_le_bytes());
        out.extend(mutex.into_iter().flat_map(u64::to_le_bytes));
        for (base, value) in columns.into_iter().zip(values) {
            let Some(base) = base else { continue };
            let is_long = is_wide || matches!(base, Base::Hex | Base::Thread);
            out.extend_from_slice(&value.to_le_bytes()[..if is_long { 8 } else { 4 }]);
        }
        out.extend(is_recursive.then_some(1));
        Ok(())
    }

    /// The mutex of a return record, which only its entry record has.
    fn mutex(&mut self, fields: &Fields, event: (u8, u8, u8), a1: u64) -> Option<u64> {
        let call = || CallKey::of(fields.line(), (fields.event().0, fields.event().1, fields.which()));
        match event {
            MUTEX_LOCK_ENTRY => {
                if self.open_locks.len() >= OPEN_CALLS_MAX {
                    self.open_locks = OpenCalls::default();
                }
                self.open_locks.begin(call(), a1);
                None
            }
            MUTEX_LOCK_RETURN => self.open_locks.end(call()),
            _ => None,
        }
    }

    /// The ID of a class, which is described at its first event.
    fn id(&mut self, class: EventClass, fields: &Fields) -> io::Result<u16> {
        if let Some(id) = self.ids.get(&class) {
            return Ok(*id);
        }
        let id =
            u16::try_from(self.ids.len()).map_err(|_| io::Error::other("it has more than 65536 kinds of events"))?;
        self.ids.insert(class, id);
        self.describe(class, id, fields);
        Ok(id)
    }

    fn describe(&mut self, class: EventClass, id: u16, fields: &Fields) {
        let EventClass { event, columns, is_wide, has_mutex } = class;
        let lttng = lttng_name(event);
        let own = String::from_utf8_lossy(&event_name(fields)).into_owned();
        let part = ["", "_entry", "_exit"][usize::from(event.2)];
        let name = lttng.map_or_else(|| format!("threadt:{own}{part}"), str::to_owned);
        let known = self.kinds.find(fields).map(|known| known.columns);
        // Writing to a String does not fail.
        let _ = write!(
            self.metadata,
            "event {{\n\tname = \"{name}\";\n\tid = {id};\n\tstream_id = 0;\n\tfields := struct {{\n"
        );
        if has_mutex {
            self.metadata += "\t\taddress_t _mutex;\n";
        }
        for (index, base) in columns.into_iter().enumerate() {
            let Some(base) = base else { continue };
            let column = known.and_then(|known| known[index]).map(|column| column.name);
            let column = column.or(known.and(detail_name((event.0, event.1), event.2, index)));
            let field = match column {
                Some("rval") if lttng.is_some() => "status".to_owned(),
                Some("function") if lttng.is_some() => "addr".to_owned(),
                Some(name) => name.trim_end_matches('?').to_owned(),
                None => format!("a{}", index + 1),
            };
            let kind = match (base, is_wide) {
                (Base::Hex | Base::Thread, _) => "address_t",
                (Base::Signed, false) => "int32_t",
                (Base::Signed, true) => "int64_t",
                (Base::Unsigned, false) => "uint32_t",
                (Base::Unsigned, true) => "uint64_t",
            };
            // The underscore, which readers take away, keeps names apart from keywords (`clock`).
            let _ = writeln!(self.metadata, "\t\t{kind} _{field};");
        }
        if lttng.is_some() && event.0 == RMUTEX {
            self.metadata += "\t\tuint8_t _recursive;\n";
        }
        self.metadata += "\t};\n};\n\n";
    }
}

/// The base of a value whose column has none.
fn base_of(text: &[u8], value: u64) -> Base {
    match text {
        [b'0', b'x', ..] => Base::Hex,
        [b'-', ..] => Base::Signed,
        _ if i64::try_from(value).is_err() => Base::Unsigned,
        _ => Base::Signed,
    }
}

fn lttng_name(event: (u8, u8, u8)) -> Option<&'static str> {
    LTTNG_NAMES.iter().find(|(known, _)| *known == plain(event)).map(|(_, name)| *name)
}

/// The event itself, or that of mutexes for one of recursive mutexes: LTTng has one name for both.
fn plain((category, number, which): (u8, u8, u8)) -> (u8, u8, u8) {
    (if category == RMUTEX { MUTEX } else { category }, number, which)
}
