//! The modes in which the recorder costs less or records more: `THR_TRACE_LEVEL`, `THR_TRACE_RING`, `THR_TRACE_DETAIL`.
//!
//! Most of it is tested with the programs of `rows`, which know each of their calls: in another mode they expect fewer
//! records, or other columns. What those programs cannot know has programs of its own in `programs/recording_modes`.

mod detail;
mod level;
mod order;
mod ring;
mod ring_deaths;
mod ring_signals;
