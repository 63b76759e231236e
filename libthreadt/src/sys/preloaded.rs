//! Symbols of an object that was loaded behind this library, by the base name of its file.

use core::ffi::CStr;

use super::elf::{Tables, objects};
use super::path;

/// The address of a variable.
pub fn variable_behind(path: &CStr, name: &CStr) -> Option<usize> {
    // SAFETY: the tables are the loaded object's.
    unsafe { tables_behind(path)?.variable(name) }
}

/// The address of a function.
pub fn function_behind(path: &CStr, name: &CStr) -> Option<*const ()> {
    let tables = tables_behind(path)?;
    // SAFETY: as above; and the object has the symbol that was found.
    let address = unsafe { tables.find_symbol(name, |index| tables.function(index)) };
    address.map(|address| address as *const ())
}

fn tables_behind(path: &CStr) -> Option<Tables> {
    let name = path::base_name(path.to_bytes());
    objects().skip_while(|object| !object.is_ours()).find(|object| object.base_name() == name)?.tables()
}
