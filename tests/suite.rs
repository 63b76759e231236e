//! The integration suite: programs run under `libthreadt.so`, and what their traces say.
//!
//! `make test` builds the library and trace-cat first, because cargo builds no cdylib that nothing depends on.
//! By hand: `cargo build --release && cargo test -p tests`; `THREADT_TARGET` names another directory to take the two
//! from. A test that fails keeps its directory and prints the commands that repeat it.

// How the tests run programs and read traces; nothing in there is a test.
mod harness;

// The crates: the layers of their sources, and the exports and imports of the built library.
mod artefact;

// Each row of the tables: C programs say what they passed and got, and the trace is compared with that.
mod rows;

// The merged timeline is a possible one: the checker, and programs that hand locks around.
mod order;

// kill -9 at random moments: what the program had finished is in the trace.
mod kill;

// Kills, exits and forks by the thousand with THREADT_SOAK=long, else a few.
mod soak;

// Real programs, with and without the library.
mod real_programs;

// The life cycle of processes and threads: fork, exec, exit, cancellation, files.
mod lifecycle;

// The environment variables, each wrong value included.
mod environment;

// Limits, full disks, filters, storms of signals, small stacks: nothing lost uncounted, no program harmed.
mod hostile;

// trace-cat run: programs that it starts, and those that it refuses.
mod run_command;

// THR_TRACE_LEVEL, THR_TRACE_RING, THR_TRACE_DETAIL: less recorded, only the newest kept, more told.
mod recording_modes;

// trace-cat --follow: what running processes record is printed as it happens, once, and in order.
mod follow;
