//! The kinds of misuse, and where they were observed.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A kind of misuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MisuseKind {
    UnlockNotOwner,
    DestroyHeld,
    DestroyWaited,
    ExitHolding,
    RelockSelf,
    CondTwoMutexes,
    JoinTwice,
    NeverJoined,
    /// A call of this event returned this errno value.
    Error((u8, u8), u8),
}

impl MisuseKind {
    pub fn name(self) -> &'static str {
        match self {
            MisuseKind::UnlockNotOwner => "unlock_not_owner",
            MisuseKind::DestroyHeld => "destroy_held",
            MisuseKind::DestroyWaited => "destroy_waited",
            MisuseKind::ExitHolding => "exit_holding",
            MisuseKind::RelockSelf => "relock_self",
            MisuseKind::CondTwoMutexes => "cond_two_mutexes",
            MisuseKind::JoinTwice => "join_twice",
            MisuseKind::NeverJoined => "never_joined",
            MisuseKind::Error(..) => "error",
        }
    }
}

/// A misuse at a site: the first time, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misuse {
    pub kind: MisuseKind,
    pub object: Option<u32>,
    pub thread: u32,
    pub time: u64,
    /// 0 if it is not known.
    pub site: u32,
    pub count: u64,
}

/// A use of a condition, or a destruction of a semaphore, that is misuse if a thread that waits since `entry` is not woken before.
#[derive(Clone, Copy, Debug)]
pub struct SuspectedMisuse {
    pub waiter: u32,
    pub entry: u64,
    pub misuse: Misuse,
}

/// What was observed.
#[derive(Debug, Default)]
pub struct MisuseTable {
    pub rows: Vec<Misuse>,
    /// By kind, site, and object or thread if the site is not known.
    indexes: HashMap<(MisuseKind, u32, u32), usize, RandomState>,
    /// By kind and site: the objects, where there were several.
    objects: HashMap<(MisuseKind, u32), HashSet<u32, RandomState>, RandomState>,
}

impl MisuseTable {
    /// Adds an observation; returns whether it is the first of its row.
    pub fn add(&mut self, new: Misuse) -> bool {
        let subject = if new.site == 0 { new.object.unwrap_or(new.thread) } else { 0 };
        let index = *self.indexes.entry((new.kind, new.site, subject)).or_insert(self.rows.len());
        let is_first = index == self.rows.len();
        match self.rows.get_mut(index) {
            Some(row) => {
                row.count += new.count;
                if new.object.is_some() && new.object != row.object {
                    let objects = row.object.into_iter().chain(new.object);
                    self.objects.entry((new.kind, new.site)).or_default().extend(objects);
                }
            }
            None => self.rows.push(new),
        }
        is_first
    }

    /// The objects of a row.
    pub fn objects_of(&self, row: &Misuse) -> impl Iterator<Item = u32> {
        let several = self.objects.get(&(row.kind, row.site)).filter(|_| row.site != 0);
        let one = row.object.filter(|_| several.is_none());
        one.into_iter().chain(several.into_iter().flatten().copied())
    }
}
