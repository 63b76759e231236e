//! Who has what: the state of one synchronisation object at one point of a timeline.

use std::collections::HashMap;

use super::record_fields::Thread;

/// A mutex of any kind, or a spin lock.
#[derive(Debug, Default)]
pub struct Lock {
    owner: Option<Thread>,
    /// How often the owner has it.
    depth: u64,
    last: Option<Thread>,
    /// The thread that may have released it, if nobody has acquired it since.
    perhaps_released: Option<Thread>,
}

impl Lock {
    /// Whether another thread had it before.
    pub fn acquire(&mut self, thread: Thread, recursive: bool) -> Result<bool, String> {
        match self.owner {
            Some(owner) if owner != thread || !recursive => {
                return Err(format!("two owners: LWP {} has the lock", owner.1));
            }
            _ => {}
        }
        self.owner = Some(thread);
        self.perhaps_released = None;
        self.depth += 1;
        let last = self.last.replace(thread);
        Ok(last.is_some_and(|last| last != thread))
    }

    pub fn release(&mut self, thread: Thread) -> Result<(), String> {
        match self.owner {
            Some(owner) if owner == thread => {
                self.depth -= 1;
                self.owner = self.owner.filter(|_| self.depth > 0);
                Ok(())
            }
            Some(owner) => Err(format!("released by another than its owner, LWP {}", owner.1)),
            // Nobody has had it yet in this process: it was locked before a fork.
            None if self.last.is_none() => Ok(()),
            None if self.perhaps_released.take() == Some(thread) => Ok(()),
            None => Err("released while nobody had it".to_owned()),
        }
    }

    /// The thread may have released it.
    pub fn forget(&mut self, thread: Thread) {
        if self.owner == Some(thread) {
            (self.owner, self.depth) = (None, 0);
        }
    }

    /// The thread may have released it once: a release was in flight.
    pub fn perhaps_release(&mut self, thread: Thread) {
        if self.owner == Some(thread) && self.release(thread).is_ok() {
            self.perhaps_released = Some(thread);
        }
    }

    pub fn has_depth(&self, recorded: u64) -> Result<(), String> {
        if self.depth == recorded {
            return Ok(());
        }
        Err(format!("rm_depth is {recorded}, but the lock is held {} deep", self.depth))
    }
}

/// A reader-writer lock. `rw_unlock` has no column for the kind of lock that it releases, so each thread's account is kept.
#[derive(Debug, Default)]
pub struct Rwlock {
    writer: Option<Thread>,
    readers: HashMap<Thread, u32>,
    used: bool,
}

impl Rwlock {
    pub fn read(&mut self, thread: Thread) -> Result<(), String> {
        self.used = true;
        if let Some(writer) = self.writer {
            return Err(format!("a reader beside the writer, LWP {}", writer.1));
        }
        *self.readers.entry(thread).or_default() += 1;
        Ok(())
    }

    pub fn write(&mut self, thread: Thread) -> Result<(), String> {
        self.used = true;
        if let Some(writer) = self.writer {
            return Err(format!("a second writer beside LWP {}", writer.1));
        }
        if let Some(reader) = self.readers.keys().next() {
            return Err(format!("a writer beside the reader LWP {}", reader.1));
        }
        self.writer = Some(thread);
        Ok(())
    }

    pub fn release(&mut self, thread: Thread) -> Result<(), String> {
        if self.writer == Some(thread) {
            self.writer = None;
            return Ok(());
        }
        match self.readers.get_mut(&thread) {
            Some(1) => drop(self.readers.remove(&thread)),
            Some(count) => *count -= 1,
            // Nobody has had it yet in this process: it was locked before a fork.
            None if !self.used => {}
            None => return Err("released by a thread that neither reads nor writes".to_owned()),
        }
        Ok(())
    }

    /// The thread may have released it.
    pub fn forget(&mut self, thread: Thread) {
        self.writer = self.writer.filter(|&writer| writer != thread);
        self.readers.remove(&thread);
    }
}

/// A semaphore whose first value is known.
#[derive(Debug)]
pub struct Semaphore {
    tokens: u64,
}

impl Semaphore {
    pub fn new(value: u64) -> Semaphore {
        Semaphore { tokens: value }
    }

    pub fn post(&mut self) {
        self.tokens += 1;
    }

    pub fn take(&mut self) -> Result<(), String> {
        self.tokens = self.tokens.checked_sub(1).ok_or("a token that nobody has posted")?;
        Ok(())
    }
}

/// A barrier. Its rounds are counted for all threads together: as many may have left as arrived in complete rounds.
#[derive(Debug)]
pub struct Barrier {
    count: u64,
    arrived: u64,
    left: u64,
}

impl Barrier {
    pub fn new(count: u64) -> Barrier {
        Barrier { count, arrived: 0, left: 0 }
    }

    pub fn arrive(&mut self) {
        self.arrived += 1;
    }

    pub fn leave(&mut self) -> Result<(), String> {
        self.left += 1;
        let complete = self.arrived - self.arrived.checked_rem(self.count).unwrap_or(self.arrived);
        if self.left > complete {
            return Err(format!("a barrier of {} was left after {} arrivals", self.count, self.arrived));
        }
        Ok(())
    }
}
