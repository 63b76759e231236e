//! A stretch of a thread's life, and its form in the log.

/// What a thread did from one time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    pub thread: u32,
    pub from: u64,
    pub until: u64,
    pub kind: ActivityKind,
    /// How long the thread held at least one object.
    pub held: u64,
    /// How long it may have held one: its release is missing.
    pub uncertain: u64,
}

/// The kinds of stretches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    Running,
    /// The thread waited, and holds did not change.
    Waiting(WaitEnd),
    /// Earlier stretches count a hold of this object during this time, but it ended nobody knows when.
    Retraction,
    /// The thread held this object during this time, as its release shows, which earlier stretches do not count.
    ObservedHold,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// A thread ended it at a time.
    Woken(u32, u64),
    /// A thread released this lock at a time, so that the thread got it, or another process did first.
    Released(u32, u64, u32),
    /// What it waited for had happened before it began.
    Latency,
    /// Its time was over.
    TimedOut,
    /// It is not known who ended it, or whether it has ended.
    Unknown,
}

/// How long a thread held an object that it had acquired at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldTime {
    pub object: u32,
    pub site: u32,
    pub time: u64,
    /// How many holds these were.
    pub count: u32,
    /// When the first one began, if that was before the stretch.
    pub carried_from: Option<u64>,
}

impl Activity {
    /// Appends the stretch, with what was held during it, to a block whose last one ended at `previous`.
    pub fn append_to(&self, holds: &[HeldTime], previous: u64, block: &mut Vec<u8>) {
        let (kind, waker) = match self.kind {
            ActivityKind::Running => (0, None),
            ActivityKind::Waiting(WaitEnd::Latency) => (1, None),
            ActivityKind::Waiting(WaitEnd::TimedOut) => (2, None),
            ActivityKind::Waiting(WaitEnd::Unknown) => (3, None),
            ActivityKind::Retraction => (4, None),
            ActivityKind::ObservedHold => (6, None),
            ActivityKind::Waiting(WaitEnd::Woken(thread, time)) => (5, Some((thread, time, None))),
            ActivityKind::Waiting(WaitEnd::Released(thread, time, lock)) => (7, Some((thread, time, Some(lock)))),
        };
        // One that ended earlier may be logged later, if it is of another thread.
        let ahead = self.until.wrapping_sub(previous) as i64;
        let mut push = |number: u64| append_number(number, block);
        push(u64::from(self.thread) << 3 | kind);
        push((ahead << 1 ^ ahead >> 63) as u64);
        push(self.until - self.from);
        if let Some((thread, time, lock)) = waker {
            push(u64::from(thread));
            push(self.until - time);
            lock.into_iter().for_each(|lock| push(u64::from(lock)));
        }
        push(self.held);
        push(self.uncertain);
        push(holds.len() as u64);
        for hold in holds {
            push(u64::from(hold.object));
            push(u64::from(hold.site));
            push(hold.time);
            push(u64::from(hold.count));
            push(hold.carried_from.map_or(0, |time| self.from - time));
        }
    }

    /// Takes the first stretch of `bytes`, and appends what was held to `holds`.
    pub fn take_from(bytes: &mut &[u8], previous: u64, holds: &mut Vec<HeldTime>) -> Activity {
        let mut take = || take_number(bytes);
        let first = take();
        let ahead = take();
        let until = previous.wrapping_add(ahead >> 1 ^ (ahead & 1).wrapping_neg());
        let from = until - take();
        let kind = match first & 7 {
            0 => ActivityKind::Running,
            1 => ActivityKind::Waiting(WaitEnd::Latency),
            2 => ActivityKind::Waiting(WaitEnd::TimedOut),
            3 => ActivityKind::Waiting(WaitEnd::Unknown),
            4 => ActivityKind::Retraction,
            6 => ActivityKind::ObservedHold,
            5 => ActivityKind::Waiting(WaitEnd::Woken(take() as u32, until - take())),
            _ => ActivityKind::Waiting(WaitEnd::Released(take() as u32, until - take(), take() as u32)),
        };
        let (held, uncertain) = (take(), take());
        for _ in 0..take() {
            let (object, site, time, count, before) = (take() as u32, take() as u32, take(), take() as u32, take());
            holds.push(HeldTime { object, site, time, count, carried_from: (before > 0).then(|| from - before) });
        }
        Activity { thread: (first >> 3) as u32, from, until, kind, held, uncertain }
    }
}

/// Appends a number: seven bits a byte, the lowest first, and a bit that more follow.
fn append_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let [byte, rest @ ..] = *bytes {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            break;
        }
    }
    number
}
