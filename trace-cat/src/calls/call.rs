//! A call of a traced function, put together from its records.

use std::time::Duration;

use spec::{Argument, Column, Event, Record};

use super::object_columns::is_object;

/// A call of a traced function: an entry record and its return record, or one record that stands for both.
#[derive(Clone, Debug)]
pub struct Call {
    /// What was called.
    pub event: &'static Event,
    /// The process.
    pub pid: u32,
    /// The LWP, that is, the kernel's number of the thread.
    pub lwp: u32,
    /// The thread's `pthread_t`.
    pub tid: u64,
    /// The entry record; `None` if it was not recorded.
    pub entry: Option<Record>,
    /// The return record; `None` if the call is open. A call with one record has that as entry and as return record.
    pub returned: Option<Record>,
    /// The time up to which the call is known to have lasted, in nanoseconds since the Epoch: that of the return record, or if
    /// the call is open, that of the process's last record.
    pub known_until: u64,
    /// The records show that the call waited.
    pub(super) waited: bool,
}

impl Call {
    /// When the call began, nanoseconds since the Epoch; `None` if that was not recorded.
    pub fn entry_time(&self) -> Option<u64> {
        self.entry.map(|record| record.time)
    }

    /// True if the call has no return record: it lasted at least until [`known_until`](Call::known_until).
    pub fn is_open(&self) -> bool {
        self.returned.is_none()
    }

    /// How long the call lasted, or if it is open, how long it lasted at least; `None` if its entry was not recorded.
    pub fn duration(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.known_until.saturating_sub(self.entry_time()?)))
    }

    /// True if the call had to wait: a lock was taken, a semaphore was 0, and so on. A call that can wait and is open
    /// waits.
    pub fn waited(&self) -> bool {
        self.waited
    }

    /// The first object that the call names: the address of a mutex, a condition and so on, or the `pthread_t` of a
    /// thread that something is done to.
    pub fn object(&self) -> Option<u64> {
        let records = [self.entry, self.returned];
        records.into_iter().flatten().find_map(|record| column(&record, is_object)).map(Argument::bits)
    }

    /// What the call returned, as its 64 bits; `None` if it is open or returns nothing.
    pub fn result(&self) -> Option<u64> {
        column(&self.returned?, |column| column.name == "rval").map(Argument::bits)
    }
}

/// The value in the first column of a record that `is_wanted`.
fn column(record: &Record, is_wanted: impl Fn(&Column) -> bool) -> Option<Argument> {
    let columns = &record.kind()?.columns;
    let index = columns.iter().position(|column| column.as_ref().is_some_and(&is_wanted))?;
    Some(record.arguments[index])
}
