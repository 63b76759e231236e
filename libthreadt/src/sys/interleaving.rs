//! Runs real code in every order that the steps of a few actors can have, up to a number of preemptions. For tests only.
//!
//! An actor is a closure in a thread of its own. The code under test calls [`observable_step`] before each access that
//! another thread, a signal handler or a reader of the files can observe; every system call that changes something is such a
//! step. Only one actor runs at a time, up to its next step. [`explore`] tries all orders in which an actor that could go on
//! is stopped at most so many times: few preemptions find most faults (Musuvathi and Qadeer, "Iterative context bounding for
//! systematic testing of multithreaded programs", PLDI 2007). Memory is sequentially consistent here; the orders that a
//! processor adds to that are not explored.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};

/// What one actor does.
pub type Actor = Box<dyn FnOnce() + Send>;
/// Called between any two steps: here the process may die.
pub type Observer = Box<dyn FnMut() + Send>;

thread_local! {
    /// The run that this thread is an actor of, with the actor's number.
    static CURRENT: RefCell<Option<(Arc<Run>, usize)>> = const { RefCell::new(None) };
    /// After how many more steps of this thread a signal interrupts it.
    static STEPS_TO_SIGNAL: Cell<Option<usize>> = const { Cell::new(None) };
    static SIGNAL_HANDLER: RefCell<Option<Actor>> = const { RefCell::new(None) };
}

/// A place where another actor may go on. Does nothing in a thread that is no actor.
pub fn observable_step() {
    yield_to_scheduler(Status::Ready);
}

/// A place where an actor waits: it goes on only after a step of another one, if there is another one.
pub fn waiting_step() {
    yield_to_scheduler(Status::Waiting);
}

/// Whether the calling thread is an actor.
pub fn is_actor() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Lets a real signal interrupt the calling actor at its step `steps`, the first being 0; its handler runs `handler`.
pub fn interrupt_at(steps: usize, handler: Actor) {
    extern "C" fn run_handler(_signal: libc::c_int) {
        let handler = SIGNAL_HANDLER.with(|handler| handler.borrow_mut().take());
        handler.expect("a handler is set before its signal")();
    }
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // SAFETY: the struct consists of integers and of an Option of a function, for which zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = run_handler as *const () as libc::sighandler_t;
        // A handler that leaves by a jump must not keep the next signal blocked.
        action.sa_flags = libc::SA_NODEFER;
        #[expect(clippy::disallowed_methods, reason = "the actor of a test is meant to be interrupted")]
        // SAFETY: the handler is only raised at steps, where the thread is in no function that a handler must not enter.
        let result = unsafe { libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()) };
        assert_eq!(result, 0);
    });
    SIGNAL_HANDLER.with(|old| *old.borrow_mut() = Some(handler));
    STEPS_TO_SIGNAL.set(Some(steps));
}

/// The signal does not come any more, if it has not.
pub fn cancel_interrupt() {
    STEPS_TO_SIGNAL.set(None);
}

fn yield_to_scheduler(status: Status) {
    let Some((run, actor)) = CURRENT.with(|current| current.borrow().clone()) else { return };
    run.choose_next(actor, status);
    run.wait_for_turn(actor);
    match STEPS_TO_SIGNAL.get() {
        Some(0) => {
            STEPS_TO_SIGNAL.set(None);
            #[expect(clippy::disallowed_methods, reason = "the actor of a test is meant to be interrupted here")]
            // SAFETY: the handler is installed.
            unsafe {
                libc::raise(libc::SIGUSR2)
            };
        }
        steps => STEPS_TO_SIGNAL.set(steps.map(|steps| steps - 1)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ready,
    /// Goes on only after a step of another actor.
    Waiting,
    Finished,
}

/// What the scheduler could choose from at one step, and its choice.
#[derive(Clone, Debug)]
struct Choice {
    /// The actors that could go on. All but the first are preemptions if `preempts`.
    candidates: Vec<usize>,
    taken: usize,
    preempts: bool,
}

struct Schedule {
    status: Vec<Status>,
    /// The actor that runs; `None` when all have finished.
    running: Option<usize>,
    /// Which candidates are taken at the first steps; later the first candidate is.
    prefix: Vec<usize>,
    choices: Vec<Choice>,
    observer: Observer,
    failed: bool,
}

impl Schedule {
    /// Chooses who goes on after `last`; at the beginning there is none.
    fn choose(&mut self, last: Option<usize>) {
        let status = &self.status;
        let others = |wanted| (0..status.len()).filter(move |&actor| status[actor] == wanted && Some(actor) != last);
        let goes_on = last.filter(|&actor| status[actor] == Status::Ready);
        let mut candidates: Vec<usize> = goes_on.into_iter().chain(others(Status::Ready)).collect();
        candidates.extend(others(Status::Waiting));
        if candidates.is_empty() {
            candidates.extend(last.filter(|&actor| status[actor] == Status::Waiting));
        }
        let taken = self.prefix.get(self.choices.len()).copied().unwrap_or(0);
        self.running = candidates.get(taken).copied();
        assert_eq!(self.running.is_none(), candidates.is_empty(), "the same choices lead to other steps");
        if self.running.is_some() {
            self.choices.push(Choice { candidates, taken, preempts: goes_on.is_some() });
        }
        assert!(self.choices.len() < 10_000, "the actors wait for each other, or do not end");
    }
}

/// What an actor's thread ends with when another actor has failed.
struct FailedElsewhere;

struct Run {
    schedule: Mutex<Schedule>,
    changed: Condvar,
}

impl Run {
    fn lock(&self) -> MutexGuard<'_, Schedule> {
        // An observer's failed assertion poisons the mutex.
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choose_next(&self, actor: usize, status: Status) {
        let mut schedule = self.lock();
        if schedule.failed {
            drop(schedule);
            panic_any(FailedElsewhere);
        }
        schedule.status[actor] = status;
        (schedule.observer)();
        schedule.choose(Some(actor));
        self.changed.notify_all();
    }

    fn wait_for_turn(&self, actor: usize) {
        let waits = |schedule: &mut Schedule| schedule.running != Some(actor) && !schedule.failed;
        let schedule = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if schedule.failed {
            drop(schedule);
            panic_any(FailedElsewhere);
        }
    }

    /// The thread of one actor.
    fn act(self: &Arc<Run>, actor: usize, work: Actor) -> Result<(), Box<dyn Any + Send>> {
        CURRENT.with(|current| *current.borrow_mut() = Some((self.clone(), actor)));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.wait_for_turn(actor);
            work();
            self.choose_next(actor, Status::Finished);
        }));
        if outcome.is_err() {
            self.lock().failed = true;
            self.changed.notify_all();
        }
        outcome
    }
}

/// Runs the actors once in the order that begins with `prefix` and then has no preemption. Returns all choices.
fn run_once(actors: Vec<Actor>, observer: Observer, prefix: Vec<usize>) -> Vec<Choice> {
    let status = vec![Status::Ready; actors.len()];
    let mut schedule = Schedule { status, running: None, prefix, choices: Vec::new(), observer, failed: false };
    schedule.choose(None);
    let run = Arc::new(Run { schedule: Mutex::new(schedule), changed: Condvar::new() });
    let failures: Vec<_> = std::thread::scope(|scope| {
        let spawn = |(actor, work)| {
            let run = run.clone();
            scope.spawn(move || run.act(actor, work))
        };
        let threads: Vec<_> = actors.into_iter().enumerate().map(spawn).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap().err()).collect()
    });
    let choices = run.lock().choices.clone();
    if let Some(failure) = failures.into_iter().find(|failure| !failure.is::<FailedElsewhere>()) {
        let taken: Vec<_> = choices.iter().map(|choice| choice.taken).collect();
        eprintln!("fails in the order {taken:?}");
        resume_unwind(failure);
    }
    choices
}

/// Tries every order of the actors' steps with at most `preemptions`; `scene` makes actors and observer anew for each.
/// Returns how many orders there were.
pub fn explore(preemptions: usize, mut scene: impl FnMut() -> (Vec<Actor>, Observer)) -> usize {
    let (mut orders, mut pending) = (0, vec![Vec::new()]);
    while let Some(prefix) = pending.pop() {
        let fixed = prefix.len();
        let (actors, observer) = scene();
        let choices = run_once(actors, observer, prefix);
        orders += 1;
        let mut used = 0;
        for (index, choice) in choices.iter().enumerate() {
            if index >= fixed && used + usize::from(choice.preempts) <= preemptions {
                // The orders that begin alike and take another candidate here.
                for other in 1..choice.candidates.len() {
                    pending.push(choices[..index].iter().map(|choice| choice.taken).chain([other]).collect());
                }
            }
            used += usize::from(choice.preempts && choice.taken != 0);
        }
    }
    orders
}

mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    /// The sums that two actors arrive at which each add one by a load and a store, and in how many orders.
    fn sums(preemptions: usize) -> (usize, BTreeSet<u32>) {
        let mut counters: Vec<Arc<AtomicU32>> = Vec::new();
        let orders = explore(preemptions, || {
            let counter = Arc::new(AtomicU32::new(0));
            counters.push(counter.clone());
            let actor = || -> Actor {
                let counter = counter.clone();
                Box::new(move || {
                    observable_step();
                    let value = counter.load(SeqCst);
                    observable_step();
                    counter.store(value + 1, SeqCst);
                })
            };
            (vec![actor(), actor()], Box::new(|| {}))
        });
        (orders, counters.iter().map(|counter| counter.load(SeqCst)).collect())
    }

    #[test]
    fn a_lost_update_needs_a_preemption() {
        assert_eq!(sums(0), (2, BTreeSet::from([2])));
        assert_eq!(sums(1).1, BTreeSet::from([1, 2]));
        // Each actor has three stretches between steps: C(6, 3) orders.
        assert_eq!(sums(9).0, 20);
    }

    #[test]
    fn an_actor_that_waits_lets_the_others_go_on() {
        let orders = explore(2, || {
            let word = Arc::new(AtomicU32::new(0));
            let waited_for = word.clone();
            let waits: Actor = Box::new(move || {
                while waited_for.load(SeqCst) == 0 {
                    waiting_step();
                }
            });
            let sets: Actor = Box::new(move || {
                observable_step();
                word.store(1, SeqCst);
            });
            (vec![waits, sets], Box::new(|| {}))
        });
        assert!(orders >= 2);
    }

    #[test]
    fn a_signal_comes_at_each_step() {
        let mut states = BTreeSet::new();
        for step in 0..3 {
            let word = Arc::new(AtomicU32::new(0));
            let observed = Arc::new(AtomicU32::new(u32::MAX));
            explore(0, || {
                let (word, observed) = (word.clone(), observed.clone());
                let actor: Actor = Box::new(move || {
                    let interrupted = word.clone();
                    interrupt_at(step, Box::new(move || observed.store(interrupted.load(SeqCst), SeqCst)));
                    for value in 1..4 {
                        observable_step();
                        word.store(value, SeqCst);
                    }
                });
                (vec![actor], Box::new(|| {}))
            });
            states.insert(observed.load(SeqCst));
        }
        assert_eq!(states, BTreeSet::from([0, 1, 2]));
    }

    #[test]
    #[should_panic(expected = "observed between the steps")]
    fn the_observer_is_called_between_any_two_steps() {
        explore(0, || {
            let word = Arc::new(AtomicU32::new(0));
            let observed = word.clone();
            let actor: Actor = Box::new(move || {
                word.store(1, SeqCst);
                observable_step();
                word.store(2, SeqCst);
            });
            (vec![actor], Box::new(move || assert_ne!(observed.load(SeqCst), 1, "observed between the steps")))
        });
    }
}
