//! The trace directory: where it is, which process owns which names in it, and the small files that processes share or
//! describe themselves in.

pub mod directory;
pub mod earlier_files;
pub mod executable_maps;
pub mod identity;
pub mod info_file;
pub mod names_owner;
mod shared_clock;

/// In a forked child: starts over what another thread of the parent was doing.
pub fn forget() {
    directory::forget();
    shared_clock::forget();
    info_file::forget();
}
