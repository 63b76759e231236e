//! How the time of a wait is divided: to those who held the object meanwhile, to handoff, and to nobody known.

use super::small_vectors::sum_in_order;

/// A thread that holds an object, and where it got it; both are indexes of the analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    pub thread: u32,
    pub site: u32,
}

/// Who held an object for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// It is not known who.
    Unknown,
    /// Nobody: it had been released, and nobody had it again.
    Nobody,
    One(Holder),
    /// Readers, those first that have held it longest.
    Several(Box<[Holder]>),
}

/// A time during which an object had one occupant.
#[derive(Debug)]
pub struct Segment {
    pub from: u64,
    pub to: u64,
    pub occupant: Occupant,
}

/// The nanoseconds of a wait, divided. The sum of all is the time waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitShares {
    /// By holder. Until they have been put in order, one that had the object several times may be there as often.
    pub blamed: Vec<(Holder, u64)>,
    /// Between a release and the next acquisition.
    pub handoff: u64,
    pub unknown: u64,
}

impl WaitShares {
    /// Adds the nanoseconds during which an object had this occupant. Readers share them equally; what cannot be divided goes to
    /// those first that have held the object longest, a nanosecond each. The holders are not in order then.
    pub fn append(&mut self, occupant: &Occupant, duration: u64) {
        match occupant {
            Occupant::Unknown => self.unknown += duration,
            Occupant::Nobody => self.handoff += duration,
            Occupant::One(holder) => self.blame(*holder, duration),
            Occupant::Several(holders) => {
                let (each, more) = (duration / holders.len() as u64, duration % holders.len() as u64);
                for (index, holder) in (0..).zip(holders) {
                    self.blame(*holder, each + u64::from(index < more));
                }
            }
        }
    }

    /// Brings the holders in order and sums up those that are there more than once, after [`WaitShares::append`].
    pub fn put_in_order(&mut self) {
        sum_in_order(&mut self.blamed);
    }

    /// Takes back that nobody held the object.
    pub fn forget_handoff(&mut self) {
        self.unknown += std::mem::take(&mut self.handoff);
    }

    fn blame(&mut self, holder: Holder, duration: u64) {
        match self.blamed.last_mut() {
            Some((last, sum)) if *last == holder => *sum += duration,
            _ => self.blamed.push((holder, duration)),
        }
    }

    /// The time waited.
    pub fn total(&self) -> u64 {
        self.sum_of_blame() + self.handoff + self.unknown
    }

    /// The holder with the longest time, the last one of several in order.
    pub fn longest_holder(&self) -> Option<Holder> {
        self.blamed.iter().max_by_key(|(_, time)| *time).map(|(holder, _)| *holder)
    }

    /// The nanoseconds that are given to holders.
    pub fn sum_of_blame(&self) -> u64 {
        self.blamed.iter().map(|(_, duration)| duration).sum()
    }
}
