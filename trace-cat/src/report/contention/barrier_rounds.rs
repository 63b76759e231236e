//! The rounds of a barrier that have ended, and who arrived last in each.
//!
//! A thread may lose its processor between its entry record and its arrival: then the last to make a record is not the last to
//! arrive. glibc returns `PTHREAD_BARRIER_SERIAL_THREAD` to that one, often after others have returned. What a thread waited is
//! known when it returns; whose arrival ended that is counted when the round is over.

use super::waker::Waker;

/// The most rounds that are kept until all threads have returned: of those that leave by a jump and end nothing more may be recorded.
const ENDED_MAX: usize = 64;

/// The rounds of a barrier.
#[derive(Debug)]
pub struct BarrierRounds {
    /// How many threads make a round of a barrier that is known to be of one process.
    pub size: Option<u64>,
    /// How many threads were missing when the first of those that wait arrived, as these counted.
    pub missing: u64,
    /// The last that arrived.
    pub last_arrival: Option<Waker>,
    /// Those from which threads have not returned.
    ended: Vec<EndedRound>,
}

/// A round whose threads wait no longer.
#[derive(Debug)]
pub struct EndedRound {
    /// The last to arrive, if it is known and of this process.
    pub last: Option<Waker>,
    /// The last to arrive has returned, or will not be known.
    is_decided: bool,
    /// The threads that have not returned.
    threads: Vec<u32>,
    /// Waits that it has ended, as far as they are counted.
    pub waits: u64,
}

impl BarrierRounds {
    pub const EMPTY: BarrierRounds = BarrierRounds { size: None, missing: 0, last_arrival: None, ended: Vec::new() };

    /// Whether all threads have returned from all rounds that have ended.
    pub fn is_quiet(&self) -> bool {
        self.ended.is_empty()
    }

    /// Takes the end of a round of these threads, in which one seems to be the last to arrive. Returns the first round if there are
    /// too many.
    pub fn end(&mut self, threads: Vec<u32>, last: Option<Waker>) -> Option<EndedRound> {
        self.ended.push(EndedRound { last, is_decided: false, threads, waits: 0 });
        (self.ended.len() > ENDED_MAX).then(|| self.ended.remove(0))
    }

    fn round_of(&mut self, thread: u32) -> Option<&mut EndedRound> {
        self.ended.iter_mut().find(|round| round.threads.contains(&thread))
    }

    /// Takes that a thread waited until its round had ended.
    pub fn count_wait(&mut self, thread: u32) {
        if let Some(round) = self.round_of(thread) {
            round.waits += 1;
        }
    }

    /// Takes that a thread returns, `arrival` if as the last to arrive. Returns who seems to have ended its round.
    pub fn ended_by(&mut self, thread: u32, arrival: Option<Waker>) -> Option<Waker> {
        let round = self.round_of(thread)?;
        if !round.is_decided {
            (round.last, round.is_decided) = match arrival {
                Some(_) => (arrival, true),
                None => (round.last.filter(|last| last.thread != thread), false),
            };
        }
        round.last
    }

    /// Takes that the threads of rounds may be others than those that made their records then.
    pub fn doubt(&mut self) {
        for round in self.ended.iter_mut().filter(|round| !round.is_decided) {
            (round.last, round.is_decided) = (None, true);
        }
    }

    /// Removes a thread that has returned, or has left by a jump. Returns its round if nobody is left there.
    pub fn leave(&mut self, thread: u32) -> Option<EndedRound> {
        let index = self.ended.iter().position(|round| round.threads.contains(&thread))?;
        let round = &mut self.ended[index];
        round.threads.retain(|other| *other != thread);
        round.threads.is_empty().then(|| self.ended.remove(index))
    }

    /// Removes all rounds, after the last record.
    pub fn take_all(&mut self) -> Vec<EndedRound> {
        std::mem::take(&mut self.ended)
    }
}
