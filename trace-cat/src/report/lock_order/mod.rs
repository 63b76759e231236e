//! Lock order: which locks threads take while they hold others, and cycles in that order, which are possible deadlocks.
//!
//! Each acquisition that may wait, by a thread that holds other locks, is an edge from each of these to the lock that it takes. A
//! cycle is a possible deadlock if its edges can be taken at the same time, each by a thread of its own:
//!
//! - no two of the threads hold a common lock, unless both share it (a gate lock keeps them apart);
//! - no creation or join of a thread and no barrier orders two of them (`thread_phases`);
//! - no reader waits for readers only: glibc lets readers pass waiting writers, unless an attribute forbids it, which is not recorded.
//!   Linux's lockdep treats read locks that may recur in the same way.
//!
//! A try and a lock call with a time limit do not wait for ever; the locks that they take count as held. So an edge has some of its
//! observations, by thread, phase, and what else the thread held; `cycle_search` chooses among them.

mod components;
mod cycle_search;
mod edge_table;
mod held_sets;
mod observations;
mod thread_phases;

pub use cycle_search::{LockCycle, OrderStep};
pub use observations::{Acquisition, HeldLock, LockOrder, ThreadLife};
