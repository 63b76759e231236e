//! The integration suite: it runs programs under `libthreadt.so` and checks their traces.
//!
//! `make test` builds the library and trace-cat first, because cargo builds no cdylib that nothing depends on.
//! By hand: `cargo build --release && cargo test -p tests`. `THREADT_TARGET` names another directory that has the two. A test
//! that fails keeps its directory and prints the commands that repeat it.

// Shared by the tests: it runs programs and reads traces.
mod harness;

// The crates: the layers of their sources, and the exports and imports of the built library.
mod artefact;

// Each row of the tables: C programs print what they passed and got, and the trace is compared with that.
mod rows;

// The merged timeline is a possible one: a checker of timelines, and programs whose threads pass locks to each other.
mod order;

// kill -9 at random moments: the trace has all that the program had finished.
mod kill;

// Kills, exits and forks: thousands with THREADT_SOAK=long, otherwise some rounds of each.
mod soak;

// Real programs, which behave the same with and without the library.
mod real_programs;

// The life cycle of processes and threads: fork, exec, exit, cancellation, files.
mod lifecycle;

// The environment variables, each wrong value included.
mod environment;

// Limits, full disks, filters, storms of signals, small stacks: nothing lost uncounted, no program harmed.
mod hostile;

// trace-cat run: programs that it starts, and programs that it refuses.
mod run_command;

// THR_TRACE_LEVEL, THR_TRACE_RING, THR_TRACE_DETAIL: fewer records, only the newest records, more columns.
mod recording_modes;

// What programs record themselves, by threadt.h and the crate threadt-events.
mod user_events;

// Functions of programs that are compiled with -finstrument-functions, and THR_TRACE_FUNC.
mod functions;

// THR_TRACE_HANDLER: shared objects that get the records.
mod handler;

// THR_TRACE_STACK: the call stacks of calls that waited or failed.
mod stack;

// trace-cat report: who waits for whom, how long, and who is stuck.
mod report;

// trace-cat set and status: what is recorded changes while programs run.
mod control;

// trace-cat --follow: what running processes record is printed as it happens, once, and in order.
mod follow;

// The documents: their commands are run, and print what they show.
mod documents;
