//! The state of the process, and for which process work is done.

mod page;
mod working_process;

pub use page::{
    ENDS_LATE, GENERATIONS, ORIGIN_OFFSET, PROCESS, ProcessState, SWITCHES, Switch, USER_EVENTS, generation, id,
    is_initialised, is_unrecorded, is_vfork_child, loaded_switch, may_renumber, note_renumbering, of_generation,
    owns_memory, recorded_id, sandboxed, set_switch, switch_all_off, switch_offset, switch_offset_at, wipe_after_fork,
    wipe_left_by_parent, writes_through,
};
pub use working_process::{PLACES, WorkingProcess, attempts, begin_elsewhere, change_place, of_process};
