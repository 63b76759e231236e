mod chosen_functions;
mod files;
mod initialise;
mod known_to_parent;
mod origin;
mod own_variables;
pub mod process_info;

#[cfg(not(test))]
pub use chosen_functions::choose_functions;
pub use chosen_functions::{forget_closed_modules, is_chosen_function};
pub use files::{begin_files_of_user, prepare_files, prepare_files_at_end, prepare_files_for_record};
pub use initialise::{
    after_fork_in_child, configured_switch_at, initialise, initialise_at_end, is_being_initialised, is_recording,
    records_nothing,
};
pub use known_to_parent::KnownToParent;
pub use origin::Origin;
pub use own_variables::have_children_own_variables;
