mod build_id;
pub mod command_line;
pub mod directory;
pub mod directory_count;
pub mod earlier_files;
pub mod executable_maps;
pub mod identity;
pub mod info_file;
pub mod interned_names;

mod met_code;
pub mod names_owner;
mod present_lines;
mod recorded_parent;
pub mod sandbox_spares;
pub mod shared_clock;
mod spare_trbufs;
pub mod user_directory;

pub use shared_clock::follow_time_namespace;
pub use spare_trbufs::{can_be_spare, has_keeper, note_end_of_daemons_parent};
