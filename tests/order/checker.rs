//! Checks that a merged timeline is possible: a lock is acquired only after its owner has released it.
//!
//! ```text
//! records ──► Timeline::record ──► threads   who was created, has begun, has ended
//!                                  pairing   a call's second record finds its first
//!                                  objects   locks, rwlocks, semaphores, barriers and their owners
//!                                  runs      waits on a condition variable, until a signal wakes them
//! ```
//!
//! A release is stamped before it happens and an acquisition after it has happened, so at each record of an
//! acquisition the object must be free by the records so far. Objects are known by process and address: one that
//! processes share is taken for two. An object whose past is not in the timeline (locked before a fork) is not checked
//! until it is next acquired, and a thread that was created past the library's hooks has no thr_begin.
//!
//! The end of a thread or process may come between a release and its record, which is written after the call. A
//! trace_inflight then reports that the release may have happened. Where nobody could write one, because the process was
//! killed, [`check_interrupted`] allows each thread that was interrupted one release that is not there.

use std::collections::{HashMap, HashSet};

use spec::{Event, Record};

use super::object_states::{Barrier, Lock, Rwlock, Semaphore};
use super::outcome::{Census, Impossible};
use super::record_fields::{Object, Thread, bits, object, succeeded};

/// A thread's waits on one condition variable, one behind the other with nothing in between.
struct Waits {
    cond: Object,
    /// The index of the first wait's first record.
    began: usize,
    /// Whether there was a signal since then; known when a wait has returned 0.
    woken: Option<bool>,
}

/// What is known at one point of a timeline.
#[derive(Default)]
struct Timeline {
    /// The index of the current record.
    at: usize,
    /// Its predecessor's time.
    time: u64,
    census: Census,
    /// Calls that have begun, the innermost last.
    open: HashMap<Thread, Vec<Record>>,
    /// Threads that were created and have not begun: by start routine and its argument.
    created: HashMap<(u32, u64, u64), usize>,
    /// Threads that have recorded something and no thr_begin.
    unbegun: HashSet<Thread>,
    lives: HashMap<Object, Life>,
    locks: HashMap<Object, Lock>,
    rwlocks: HashMap<Object, Rwlock>,
    semaphores: HashMap<Object, Semaphore>,
    barriers: HashMap<Object, Barrier>,
    /// The index of each condition variable's last signal or broadcast.
    signals: HashMap<Object, usize>,
    waits: HashMap<Thread, Waits>,
    /// The index of each thread's last record, if threads may have been interrupted there.
    last: HashMap<Thread, usize>,
    /// Releases that may have been made without a record, by threads that were interrupted.
    unrecorded: usize,
    /// Releases that were in flight at the end of their thread or process, with their times.
    in_flight: HashSet<(Thread, Object, u64)>,
}

/// How far a thread is, as its `pthread_t` knows it.
#[derive(PartialEq)]
enum Life {
    Created,
    Begun,
    Exited,
}

/// Goes through a timeline.
///
/// # Errors
/// The first thing that cannot have been.
pub fn check<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<Census, Impossible> {
    Timeline::default().go_through(records)
}

/// Goes through the timeline of processes whose end interrupted threads.
///
/// # Errors
/// As [`check`].
pub fn check_interrupted<'a>(records: impl IntoIterator<Item = &'a Record> + Clone) -> Result<Census, Impossible> {
    let last = records.clone().into_iter().enumerate().map(|(at, record)| ((record.pid, record.lwpid), at)).collect();
    Timeline { last, ..Timeline::default() }.go_through(records)
}

impl Timeline {
    fn go_through<'a>(mut self, records: impl IntoIterator<Item = &'a Record>) -> Result<Census, Impossible> {
        for (at, record) in records.into_iter().enumerate() {
            self.at = at;
            self.record(record).map_err(|why| Impossible { at, why })?;
            if self.last.get(&(record.pid, record.lwpid)) == Some(&at) {
                self.interrupted(record);
            }
        }
        Ok(self.census)
    }

    /// The thread is not heard of again. What it has may be free from here on.
    fn interrupted(&mut self, record: &Record) {
        let thread = (record.pid, record.lwpid);
        if self.lives.get(&(record.pid, record.tid)) == Some(&Life::Exited) {
            return;
        }
        self.locks.values_mut().for_each(|lock| lock.forget(thread));
        self.rwlocks.values_mut().for_each(|rwlock| rwlock.forget(thread));
        self.unrecorded += 1;
    }

    fn record(&mut self, record: &Record) -> Result<(), String> {
        let thread = (record.pid, record.lwpid);
        if record.time < self.time {
            return Err("its time is before its predecessor's".to_owned());
        }
        self.time = record.time;
        let Some(event) = record.event() else { return Ok(()) };
        self.forget_the_image_before_exec(record, event.name);
        self.judge_waits(record, event.name)?;
        if event.name == "thr_begin" {
            self.begin(record)?;
        } else if !self.lives.contains_key(&(record.pid, record.tid)) {
            self.unbegun.insert(thread);
        }
        match record.which {
            1 => {
                self.open.entry(thread).or_default().push(*record);
                self.first(record, event.name)
            }
            2 => {
                let first = self.open.get_mut(&thread).and_then(Vec::pop);
                match first.filter(|first| (first.event1, first.event2) == (record.event1, record.event2)) {
                    Some(first) => self.second(&first, record, event.name),
                    None => Err(format!("the second record of {} without its first", event.name)),
                }
            }
            _ => self.single(record, event.name),
        }
    }

    /// An exec that has no second record was successful: nothing of the process is left but its number.
    fn forget_the_image_before_exec(&mut self, record: &Record, name: &str) {
        let calls = self.open.get(&(record.pid, record.lwpid));
        let in_exec = calls.and_then(|calls| calls.last()).and_then(Record::event).map(|event| event.name);
        if in_exec == Some("proc_exec") && name != "proc_exec" {
            let pid = record.pid;
            self.open.retain(|thread, _| thread.0 != pid);
            self.created.retain(|key, _| key.0 != pid);
            self.lives.retain(|object, _| object.0 != pid);
            self.unbegun.retain(|thread| thread.0 != pid);
            self.locks.retain(|object, _| object.0 != pid);
            self.rwlocks.retain(|object, _| object.0 != pid);
            self.semaphores.retain(|object, _| object.0 != pid);
            self.barriers.retain(|object, _| object.0 != pid);
            self.signals.retain(|object, _| object.0 != pid);
            self.waits.retain(|thread, _| thread.0 != pid);
        }
    }

    /// A wait may end without a signal if the thread then waits again at once: POSIX allows spurious wake-ups, and it
    /// is for the program to find that nothing has happened. When it goes on, there must have been a signal.
    fn judge_waits(&mut self, record: &Record, name: &str) -> Result<(), String> {
        let thread = (record.pid, record.lwpid);
        let Some(&Waits { cond, woken: Some(woken), .. }) = self.waits.get(&thread) else { return Ok(()) };
        let again = record.which == 1 && is_wait(name) && cond == object(record, 0);
        if !woken && !again && !self.was_unrecorded() {
            return Err(format!("{:#x} woke before its signal", cond.1));
        }
        if woken || !again {
            self.waits.remove(&thread);
        }
        Ok(())
    }

    fn begin(&mut self, record: &Record) -> Result<(), String> {
        let key = (record.pid, bits(record, 0), bits(record, 1));
        match self.created.get_mut(&key) {
            Some(count) if *count > 0 => *count -= 1,
            _ => return Err("thr_begin before the creator's thr_create".to_owned()),
        }
        if self.unbegun.contains(&(record.pid, record.lwpid)) {
            return Err("thr_begin is not the thread's first record".to_owned());
        }
        self.lives.insert((record.pid, record.tid), Life::Begun);
        Ok(())
    }

    /// Whether a release that is missing may have been made by a thread that was interrupted; takes it into account.
    fn was_unrecorded(&mut self) -> bool {
        let possible = self.unrecorded > 0;
        self.unrecorded = self.unrecorded.saturating_sub(1);
        possible
    }

    /// The first record of a call: what it lets go, it lets go here.
    fn first(&mut self, record: &Record, name: &str) -> Result<(), String> {
        let thread = (record.pid, record.lwpid);
        match name {
            "thr_create" => *self.created.entry((record.pid, bits(record, 2), bits(record, 3))).or_default() += 1,
            "barrier_wait" => {
                if let Some(barrier) = self.barriers.get_mut(&object(record, 0)) {
                    barrier.arrive();
                }
            }
            _ if is_wait(name) => {
                let fresh = Waits { cond: object(record, 0), began: self.at, woken: None };
                self.waits.entry(thread).or_insert(fresh).woken = None;
                if let Some(lock) = self.locks.get_mut(&object(record, 1)) {
                    lock.release(thread)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The second record of a call: what it got, it has here.
    fn second(&mut self, first: &Record, record: &Record, name: &str) -> Result<(), String> {
        let thread = (record.pid, record.lwpid);
        let subject = object(first, 0);
        match name {
            "thr_create" => {
                let key = (first.pid, bits(first, 2), bits(first, 3));
                if succeeded(record, 0) {
                    self.lives.entry(object(record, 1)).or_insert(Life::Created);
                } else if let Some(count) = self.created.get_mut(&key) {
                    *count = count.saturating_sub(1);
                }
                Ok(())
            }
            "thr_join" | "thr_timedjoin" => self.join(record, 2),
            "mutex_lock" | "mutex_timedlock" => self.acquire(record, subject, 0, false),
            "rmutex_lock" | "rmutex_timedlock" => {
                self.acquire(record, subject, 0, true)?;
                match self.locks.get(&subject).filter(|_| succeeded(record, 0)) {
                    Some(lock) => lock.has_depth(bits(record, 2)),
                    None => Ok(()),
                }
            }
            "spin_lock" => self.lock(subject).acquire(thread, false).map(|handed| self.count_lock(handed)),
            "sema_wait" | "sema_timedwait" => self.take_token(record, subject, 0),
            "rw_rdlock" | "rw_timedrdlock" => self.read(record, subject, 0),
            "rw_wrlock" | "rw_timedwrlock" => self.write(record, subject, 0),
            "barrier_wait" => self.leave_barrier(record, subject),
            _ if is_wait(name) => {
                let signal = self.signals.get(&subject).copied();
                if let Some(waits) = self.waits.get_mut(&thread) {
                    waits.woken = Some(bits(record, 0) != 0 || signal > Some(waits.began));
                }
                self.census.wakes += usize::from(succeeded(record, 0));
                // Whatever ended the wait, the mutex is the caller's again.
                self.lock(object(first, 1)).acquire(thread, true).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn single(&mut self, record: &Record, name: &str) -> Result<(), String> {
        let thread = (record.pid, record.lwpid);
        let subject = object(record, 0);
        match name {
            "thr_exit" => {
                self.lives.insert((record.pid, record.tid), Life::Exited);
            }
            "thr_tryjoin" => return self.join(record, 2),
            "mutex_init" | "rmutex_init" | "spin_init" => drop(self.locks.insert(subject, Lock::default())),
            "mutex_trylock" => return self.acquire(record, subject, 1, false),
            "rmutex_trylock" => return self.acquire(record, subject, 1, true),
            "spin_trylock" => return self.acquire(record, subject, 1, false),
            "trace_inflight" => self.perhaps_release(record),
            // Its record was written after all.
            _ if self.in_flight.contains(&(thread, subject, record.time)) => {}
            "mutex_unlock" | "rmutex_unlock" if succeeded(record, 1) => return self.release(thread, subject),
            "spin_unlock" => return self.release(thread, subject),
            "mutex_destroy" | "rmutex_destroy" | "spin_destroy" => drop(self.locks.remove(&subject)),
            "rwlock_init" => drop(self.rwlocks.insert(subject, Rwlock::default())),
            "rw_tryrdlock" => return self.read(record, subject, 1),
            "rw_trywrlock" => return self.write(record, subject, 1),
            "rw_unlock" if succeeded(record, 1) => {
                if let Some(rwlock) = self.rwlocks.get_mut(&subject) {
                    return rwlock.release(thread);
                }
            }
            "rwlock_destroy" => drop(self.rwlocks.remove(&subject)),
            "sema_init" => drop(self.semaphores.insert(subject, Semaphore::new(bits(record, 2)))),
            "sema_trywait" => return self.take_token(record, subject, 1),
            "sema_post" if succeeded(record, 1) => {
                if let Some(semaphore) = self.semaphores.get_mut(&subject) {
                    semaphore.post();
                }
            }
            "sema_destroy" => drop(self.semaphores.remove(&subject)),
            "cond_signal" | "cond_broadcast" => drop(self.signals.insert(subject, self.at)),
            "barrier_init" => drop(self.barriers.insert(subject, Barrier::new(bits(record, 2)))),
            _ => {}
        }
        Ok(())
    }

    /// A release in flight, which may have happened.
    fn perhaps_release(&mut self, record: &Record) {
        let (thread, subject) = ((record.pid, record.lwpid), object(record, 1));
        let call = bits(record, 0);
        let event = Event::find((call / 100) as u8, (call % 100) as u8);
        match event.map(|event| event.name) {
            Some("mutex_unlock" | "rmutex_unlock") => self.lock(subject).perhaps_release(thread),
            Some("rw_unlock") => drop(self.rwlocks.entry(subject).or_default().release(thread)),
            Some("sema_post") => self.unrecorded += 1,
            Some("cond_signal" | "cond_broadcast") => drop(self.signals.insert(subject, self.at)),
            _ => {}
        }
        self.in_flight.insert((thread, subject, record.time));
    }

    fn lock(&mut self, subject: Object) -> &mut Lock {
        self.locks.entry(subject).or_default()
    }

    fn count_lock(&mut self, handed_on: bool) {
        self.census.locks += 1;
        self.census.handed_on += usize::from(handed_on);
    }

    /// Acquires a lock if `rval` is success.
    fn acquire(&mut self, record: &Record, subject: Object, rval: usize, recursive: bool) -> Result<(), String> {
        // The owner of a robust mutex that died has let it go.
        if bits(record, rval) == libc::EOWNERDEAD as u64 {
            self.locks.insert(subject, Lock::default());
        } else if !succeeded(record, rval) {
            return Ok(());
        }
        let handed_on = self.lock(subject).acquire((record.pid, record.lwpid), recursive)?;
        self.count_lock(handed_on);
        Ok(())
    }

    fn release(&mut self, thread: Thread, subject: Object) -> Result<(), String> {
        self.locks.get_mut(&subject).map_or(Ok(()), |lock| lock.release(thread))
    }

    fn read(&mut self, record: &Record, subject: Object, rval: usize) -> Result<(), String> {
        if !succeeded(record, rval) {
            return Ok(());
        }
        self.census.rwlocks += 1;
        self.rwlocks.entry(subject).or_default().read((record.pid, record.lwpid))
    }

    fn write(&mut self, record: &Record, subject: Object, rval: usize) -> Result<(), String> {
        if !succeeded(record, rval) {
            return Ok(());
        }
        self.census.rwlocks += 1;
        self.rwlocks.entry(subject).or_default().write((record.pid, record.lwpid))
    }

    fn take_token(&mut self, record: &Record, subject: Object, rval: usize) -> Result<(), String> {
        let Some(semaphore) = self.semaphores.get_mut(&subject).filter(|_| succeeded(record, rval)) else {
            return Ok(());
        };
        self.census.tokens += 1;
        match semaphore.take() {
            Err(_) if self.was_unrecorded() => Ok(()),
            result => result,
        }
    }

    fn leave_barrier(&mut self, record: &Record, subject: Object) -> Result<(), String> {
        let passed = matches!(bits(record, 0) as i64, 0 | -1);
        match self.barriers.get_mut(&subject).filter(|_| passed) {
            Some(barrier) => {
                self.census.barriers += 1;
                barrier.leave()
            }
            None => Ok(()),
        }
    }

    fn join(&mut self, record: &Record, rval: usize) -> Result<(), String> {
        if !succeeded(record, rval) {
            return Ok(());
        }
        self.census.joins += 1;
        match self.lives.remove(&object(record, 0)) {
            Some(Life::Exited) | None => Ok(()),
            Some(Life::Begun) => Err("a join before the thread's thr_exit".to_owned()),
            Some(Life::Created) => Err("a join before the thread's thr_begin".to_owned()),
        }
    }
}

fn is_wait(name: &str) -> bool {
    matches!(name, "cond_wait" | "cond_timedwait" | "cond_clockwait")
}
