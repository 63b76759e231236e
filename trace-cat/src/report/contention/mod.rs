//! Who waits for whom, for how long, and who holds what: the analysis of a report.
//!
//! ```text
//! merge ──► numeric_record ──► dispatch ──► locks, idle_waits, life_cycle ──► analysis
//! lines     numbers            by event     what the call means               objects, threads, blame
//! ```
//!
//! The threads that merge make numbers of the lines. Another one takes them in the order of time. `occupancy` knows who
//! holds an object, and divides the waits for it by that; `wakeups` knows who ended which other wait. `finish` ends what is open
//! after the last record, and `wait_graph` finds deadlocks there.

mod analysis;
mod analysis_parts;
mod barrier_rounds;
mod barrier_waits;
mod blame;
mod blame_limits;
mod blockers;
mod bucket_counts;
mod call_sites;
mod caller_sums;
mod cancellations;
mod chain_ends;
mod code_changes;
mod contention_shares;
mod counterparts;
mod dispatch;
mod ended_readers;
#[cfg(test)]
mod ended_readers_tests;
mod finish;
mod futex_calls;
mod futex_locks;
mod futex_state;
mod given_names;
mod handed_on;
#[cfg(test)]
mod handed_on_tests;
mod histogram;
mod hold_accounts;
mod holds;
mod idle_waits;
mod immediate_locks;
mod left_behind;
mod life_cycle;
mod lock_nesting;
mod locks;
mod losses;
mod misuse_checks;
mod moment;
mod numeric_record;
mod object_state;
mod object_table;
mod observed_holds;
#[cfg(test)]
mod observed_holds_tests;
mod occupancy;
mod once_calls;
mod owners_elsewhere;
#[cfg(test)]
mod owners_elsewhere_tests;
mod part_choice;
mod path_waits;
mod pending_wait;
mod process_sharing;
mod reader_holds;
mod running_threads;
mod segment_log;
mod shown_settings;
mod site_index;
mod small_vectors;
mod table_log;
mod tables;
mod thread_creation;
mod time_limits;
mod timeline_event;
mod timeline_log;
mod unknown_holders;
mod used_lwps;
#[cfg(test)]
mod used_lwps_tests;
mod wait_blocks;
mod wait_graph;
mod wait_nodes;
mod wait_selection;
mod wait_shares;
mod waiter_wakes;
mod waker;
mod wakeups;

pub use analysis::Analysis;
pub use analysis_parts::AnalysisParts;
pub use call_sites::{OTHER_SITES, SiteState};
pub use chain_ends::ChainEnd;
pub use contention_shares::{ContentionShares, ShareKey, WaitCause, WaitSum};
pub use histogram::{DurationHistogram, DurationSummary};
pub use holds::Knowledge;
pub use losses::MissingNewest;
pub use moment::Moment;
pub use numeric_record::NumericRecord;
pub use object_state::{ObjectFigures, ObjectKind, ObjectState};
pub use table_log::CallSubject;
pub use tables::{ImageEnd, OngoingCall, ProgramState, ThreadState};
pub use timeline_event::{HoldInterval, TimelineEvent, WaitInterval};
pub use wait_blocks::{WaitBlock, WaitBlocks};
pub use wait_graph::{BlockedThread, StuckThread, WaitGraph};
pub use wait_selection::WaitSelection;
pub use wait_shares::{Holder, WaitShares};
pub use waiter_wakes::WaiterWakes;

#[cfg(test)]
mod analysis_tests;
#[cfg(test)]
mod barrier_tests;
#[cfg(test)]
mod cancellation_tests;
#[cfg(test)]
mod condition_wait_tests;
#[cfg(test)]
mod counterpart_tests;
#[cfg(test)]
mod destructor_tests;
#[cfg(test)]
mod doubtful_wait_tests;
#[cfg(test)]
mod futex_call_tests;
#[cfg(test)]
mod immediate_locks_tests;
#[cfg(test)]
mod left_behind_tests;
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod misuse_tests;
#[cfg(test)]
mod object_sum_tests;
#[cfg(test)]
mod once_call_tests;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod order_capacity_tests;
#[cfg(test)]
mod order_oracle_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod path_oracle_tests;
#[cfg(test)]
mod path_tests;
#[cfg(test)]
pub mod random_threads;
#[cfg(test)]
mod rare_call_tests;
#[cfg(test)]
mod wait_graph_tests;
#[cfg(test)]
mod waiter_wakes_tests;
#[cfg(test)]
mod woken_chain_tests;
