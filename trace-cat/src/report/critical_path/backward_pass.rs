//! Follows the critical paths of all processes at the same time, from the last stretch in the log to the first one.

use std::collections::HashMap;
use std::io;

use foldhash::fast::RandomState;

use super::activity::{Activity, ActivityKind, HeldTime, WaitEnd};
use super::path_segments::{PathActivity, PathSegment, SegmentList};
use super::thread_activities::ThreadActivities;

/// A process whose path is to be followed, with times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct PathOrigin {
    pub begin: u64,
    pub end: u64,
    /// The thread that ended it.
    pub thread: u32,
    /// From when on its records are complete.
    pub complete_from: u64,
}

/// What the backward pass has to know of a thread.
#[derive(Clone, Copy, Debug)]
pub struct PathThread {
    pub process: u32,
    /// The time of its first record.
    pub begin: u64,
    /// It is the process's first thread, which nobody created.
    pub is_main: bool,
    /// The thread that created it, and when, if its first record is that of its beginning.
    pub creator: Option<(u32, u64)>,
}

/// The parts of a path, in nanoseconds. Holding, other and unknown are all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathShares {
    /// Holding at least one object.
    pub holding: u64,
    /// Neither holding nor waiting for anything: latency is part of it.
    pub other: u64,
    /// From what ended a wait to the return of the waiting call, or from the creation of a thread to its first record.
    pub latency: u64,
    /// Waiting where no thread of the process is known to have ended the wait, or not recorded: waits that timed out, and those that
    /// a thread of another process ended, are part of it.
    pub unknown: u64,
    pub timed_out: u64,
    pub by_others: u64,
}

/// How much of a path was spent holding an object that was acquired at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldShare {
    pub object: u32,
    pub site: u32,
    pub time: u64,
    /// How many holds these were.
    pub holds: u64,
}

/// The critical path of a process.
#[derive(Debug)]
pub struct CriticalPath {
    /// The index of the process.
    pub process: u32,
    pub length: u64,
    pub shares: PathShares,
    /// The longest first. Where a thread held several objects, each has the time.
    pub holds: Vec<HoldShare>,
    /// How long each thread was on the path, the longest first.
    pub threads: Vec<(u32, u64)>,
    segments: Vec<PathSegment>,
}

impl CriticalPath {
    /// The path from its beginning to its end, without a gap: who was on it, and what it did most of that time. Short ones are
    /// put together, so that there are not too many for a picture.
    pub fn segments(&self) -> &[PathSegment] {
        &self.segments
    }

    /// Follows the paths of all processes; the numbers of `threads` are those of `activities`. `first` is the object as which an object
    /// is shown, and `hides_holders` whether it is a lock that other processes may have.
    ///
    /// # Errors
    /// Any failure of the temporary file that has the stretches.
    pub fn of_all(
        activities: ThreadActivities,
        threads: &[PathThread],
        origins: &[PathOrigin],
        first: &dyn Fn(u32) -> u32,
        hides_holders: &dyn Fn(u32) -> bool,
    ) -> io::Result<Vec<CriticalPath>> {
        let mut pass =
            BackwardPass { threads, first, hides_holders, retracted: HashMap::default(), observed: HashMap::default() };
        let mut walks: Vec<Walk> = (0..).zip(origins).map(|(process, origin)| Walk::new(process, *origin)).collect();
        walks.iter_mut().for_each(|walk| pass.arrive(walk, walk.origin.thread, walk.origin.end));
        activities.log.read_backwards(&mut |activity, holds| {
            let process = threads[activity.thread as usize].process;
            pass.take(&mut walks[process as usize], activity, holds);
            pass.forget_observed(activity);
        })?;
        Ok(walks.into_iter().map(Walk::finish).collect())
    }
}

/// A path of which the part before `time` is not known yet.
struct Walk {
    process: u32,
    origin: PathOrigin,
    /// Where it is, if it has not reached the process's beginning.
    thread: u32,
    time: u64,
    shares: PathShares,
    holds: HashMap<(u32, u32), (u64, u64), RandomState>,
    threads: HashMap<u32, u64, RandomState>,
    segments: SegmentList,
    /// By thread, object and site: when the earliest hold began that was counted, if it goes further back.
    counted: HashMap<(u32, u32, u32), u64, RandomState>,
}

impl Walk {
    fn new(process: u32, origin: PathOrigin) -> Walk {
        Walk {
            process,
            origin,
            thread: origin.thread,
            time: origin.end,
            shares: PathShares::default(),
            holds: HashMap::default(),
            threads: HashMap::default(),
            segments: SegmentList::new(origin.end.saturating_sub(origin.begin)),
            counted: HashMap::default(),
        }
    }

    /// Gives the time from `from` on to the thread.
    fn go_back(&mut self, from: u64, shares: PathShares, what: PathActivity) {
        let from = from.max(self.origin.begin);
        if from >= self.time {
            return;
        }
        self.shares.holding += shares.holding;
        self.shares.other += shares.other;
        self.shares.latency += shares.latency;
        self.shares.unknown += shares.unknown;
        self.shares.timed_out += shares.timed_out;
        *self.threads.entry(self.thread).or_default() += self.time - from;
        self.segments.push_before(PathSegment { thread: self.thread, from, until: self.time, what });
        self.time = from;
    }

    fn go_back_unknown(&mut self, from: u64) {
        let unknown = self.time.saturating_sub(from.max(self.origin.begin));
        self.go_back(from, PathShares { unknown, ..PathShares::default() }, PathActivity::Unknown);
    }

    fn go_back_idle(&mut self, from: u64, is_latency: bool) {
        let other = self.time.saturating_sub(from.max(self.origin.begin));
        let latency = if is_latency { other } else { 0 };
        self.go_back(from, PathShares { other, latency, ..PathShares::default() }, PathActivity::Other);
    }

    /// Adds a hold during a stretch from `from` on.
    fn add_hold(&mut self, hold: HeldTime, from: u64) {
        let key = (self.thread, hold.object, hold.site);
        let is_counted = self.counted.get(&key).is_some_and(|begin| *begin < self.time);
        match hold.carried_from {
            Some(begin) => drop(self.counted.insert(key, begin)),
            None => drop(self.counted.remove(&key)),
        }
        let (time, holds) = self.holds.entry((hold.object, hold.site)).or_default();
        *time += hold.time.min(self.time - from);
        *holds += u64::from(hold.count - u32::from(is_counted));
    }

    fn finish(mut self) -> CriticalPath {
        // No record shows what was before.
        self.go_back_unknown(self.origin.begin);
        let mut holds: Vec<HoldShare> = self
            .holds
            .into_iter()
            .map(|((object, site), (time, holds))| HoldShare { object, site, time, holds })
            .collect();
        holds.sort_unstable_by_key(|hold| (std::cmp::Reverse(hold.time), hold.object, hold.site));
        let mut threads: Vec<(u32, u64)> = self.threads.into_iter().collect();
        threads.sort_unstable_by_key(|(thread, time)| (std::cmp::Reverse(*time), *thread));
        CriticalPath {
            process: self.process,
            length: self.origin.end.saturating_sub(self.origin.begin),
            shares: self.shares,
            holds,
            threads,
            segments: self.segments.finish(),
        }
    }
}

struct BackwardPass<'a> {
    threads: &'a [PathThread],
    first: &'a dyn Fn(u32) -> u32,
    hides_holders: &'a dyn Fn(u32) -> bool,
    /// By thread and object: times that holds had been counted for that ended nobody knows when.
    retracted: HashMap<(u32, u32), Vec<(u64, u64)>, RandomState>,
    /// By thread: holds that only their releases show, as far as stretches of the thread are left in which they may be.
    observed: HashMap<u32, Vec<ReleasedHold>, RandomState>,
}

/// A hold that only its release shows.
struct ReleasedHold {
    object: u32,
    from: u64,
    until: u64,
}

impl BackwardPass<'_> {
    /// Goes on at a time in a thread, or in the one that created it if that is its beginning.
    fn arrive(&self, walk: &mut Walk, thread: u32, time: u64) {
        (walk.thread, walk.time) = (thread, time);
        while walk.time > walk.origin.begin {
            let state = self.threads[walk.thread as usize];
            if walk.time > state.begin {
                return;
            }
            match state.creator.filter(|(_, created)| *created < walk.time) {
                Some((creator, created)) => {
                    walk.go_back_idle(created, true);
                    walk.thread = creator;
                }
                None if state.is_main && walk.origin.complete_from <= walk.origin.begin => {
                    walk.go_back_idle(walk.origin.begin, false);
                }
                None => walk.go_back_unknown(walk.origin.begin),
            }
        }
    }

    /// Takes a stretch of a thread of the walk's process.
    fn take(&mut self, walk: &mut Walk, activity: &Activity, holds: &[HeldTime]) {
        let &Activity { thread, from, until, kind, .. } = activity;
        if kind == ActivityKind::Retraction {
            let retracted = holds.iter().map(|hold| (thread, hold.object));
            retracted.for_each(|key| self.retracted.entry(key).or_default().push((from, until)));
            return;
        }
        if kind == ActivityKind::ObservedHold {
            let observed = holds.iter().map(|hold| ReleasedHold { object: hold.object, from, until });
            self.observed.entry(thread).or_default().extend(observed);
            return;
        }
        if thread != walk.thread || from >= walk.time || walk.time <= walk.origin.begin {
            return;
        }
        if until > walk.time {
            // A signal handler ended a wait of another thread while this one waited.
            walk.go_back_unknown(from);
            self.arrive(walk, thread, walk.time);
            return;
        }
        walk.go_back_unknown(until);
        let how = match kind {
            ActivityKind::Waiting(WaitEnd::Woken(waker, _) | WaitEnd::Released(waker, ..))
                if !self.is_in_process(waker, walk) =>
            {
                ActivityKind::Waiting(WaitEnd::Unknown)
            }
            kind => kind,
        };
        let is_by_others = how != kind;
        let (how, next, start) = match how {
            ActivityKind::Waiting(WaitEnd::Woken(waker, time)) => (how, waker, time),
            ActivityKind::Waiting(WaitEnd::Released(releaser, time, lock)) => {
                let end = if (self.hides_holders)(lock) { WaitEnd::Unknown } else { WaitEnd::Latency };
                let (next, start) = if time > from { (releaser, time) } else { (thread, from) };
                (ActivityKind::Waiting(end), next, start)
            }
            _ => (how, thread, from),
        };
        let unknown_before = walk.shares.unknown;
        self.add_stretch(walk, activity, how, start, holds);
        if is_by_others {
            walk.shares.by_others += walk.shares.unknown - unknown_before;
        }
        self.arrive(walk, next, start);
    }

    fn is_in_process(&self, thread: u32, walk: &Walk) -> bool {
        self.threads[thread as usize].process == walk.process
    }

    /// Adds the part of a stretch from `start` on to the path.
    fn add_stretch(&self, walk: &mut Walk, activity: &Activity, how: ActivityKind, start: u64, holds: &[HeldTime]) {
        let length = walk.time - start;
        let (mut longest, mut what, mut sum, mut lost) = (0, PathActivity::Other, 0, 0);
        for hold in holds {
            let mut hold = HeldTime { time: hold.time.min(length), ..*hold };
            if start > activity.from {
                hold.carried_from.get_or_insert(activity.from);
            }
            let retracted = self.retracted_time(activity.thread, hold.object, start, walk.time).min(hold.time);
            hold.time -= retracted;
            (sum, lost) = (sum + hold.time, lost + retracted);
            if hold.time > longest {
                (longest, what) = (hold.time, PathActivity::Holding(hold.object));
            }
            if hold.time > 0 {
                walk.add_hold(HeldTime { object: (self.first)(hold.object), ..hold }, start);
            }
        }
        let held = activity.held.min(length);
        let mut holding = if lost > 0 { held.min(sum) } else { held };
        let mut uncertain = activity.uncertain.saturating_add(held - holding);
        let (observed, most) = self.add_observed(walk, activity.thread, start);
        if let Some((object, time)) = most.filter(|(_, time)| *time > longest) {
            (longest, what) = (time, PathActivity::Holding(object));
        }
        // Whether the thread had these and other objects at the same time is not known.
        uncertain = uncertain.saturating_add(observed.min(holding));
        holding = holding.max(observed);
        uncertain = uncertain.min(length - holding);
        let (rest, others) = (length - holding, length - holding - uncertain);
        let mut shares = PathShares { holding, ..PathShares::default() };
        match how {
            ActivityKind::Waiting(WaitEnd::TimedOut) => (shares.unknown, shares.timed_out) = (rest, rest),
            ActivityKind::Waiting(WaitEnd::Unknown) => shares.unknown = rest,
            ActivityKind::Waiting(_) => (shares.other, shares.latency, shares.unknown) = (others, others, uncertain),
            _ => (shares.other, shares.unknown) = (others, uncertain),
        }
        if shares.other > longest {
            (longest, what) = (shares.other, PathActivity::Other);
        }
        let is_unknown_wait = matches!(how, ActivityKind::Waiting(WaitEnd::TimedOut | WaitEnd::Unknown));
        if is_unknown_wait || shares.unknown > longest {
            what = PathActivity::Unknown;
        }
        walk.go_back(start, shares, what);
    }

    /// Adds the holds that only releases show to the part of the path from `start` on. Returns how long the thread had any of them,
    /// and which it had longest.
    fn add_observed(&self, walk: &mut Walk, thread: u32, start: u64) -> (u64, Option<(u32, u64)>) {
        let Some(observed) = self.observed.get(&thread) else { return (0, None) };
        let (mut parts, mut most) = (Vec::new(), None);
        for hold in observed {
            let (from, until) = (hold.from.max(start), hold.until.min(walk.time));
            if from >= until {
                continue;
            }
            parts.push((from, until));
            let (object, time) = (hold.object, until - from);
            most = most.filter(|(_, longest)| *longest >= time).or(Some((object, time)));
            let carried_from = Some(hold.from).filter(|from| *from < start);
            walk.add_hold(HeldTime { object: (self.first)(object), site: 0, time, count: 1, carried_from }, start);
        }
        parts.sort_unstable();
        let (mut sum, mut reached) = (0, 0);
        for (from, until) in parts {
            sum += until.saturating_sub(from.max(reached));
            reached = reached.max(until);
        }
        (sum, most)
    }

    /// Forgets the observed holds that are behind a stretch of their thread: what is left is before it.
    fn forget_observed(&mut self, activity: &Activity) {
        if self.observed.is_empty() || activity.kind == ActivityKind::ObservedHold {
            return;
        }
        if let Some(observed) = self.observed.get_mut(&activity.thread) {
            observed.retain(|hold| hold.from < activity.from);
            if observed.is_empty() {
                self.observed.remove(&activity.thread);
            }
        }
    }

    /// How much of a time had been counted as a thread's hold of an object for which that is not known.
    fn retracted_time(&self, thread: u32, object: u32, from: u64, until: u64) -> u64 {
        if self.retracted.is_empty() {
            return 0;
        }
        let times = self.retracted.get(&(thread, object)).into_iter().flatten();
        times.map(|(begin, end)| until.min(*end).saturating_sub(from.max(*begin))).sum()
    }
}
