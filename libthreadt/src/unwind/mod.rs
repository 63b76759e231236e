//! The call stack of the calling thread, by the unwind information of its program and libraries.
//!
//! It is read in the host's thread, before a call of it waits: without allocation, lock or panic path, in bounded steps, and
//! only from places that are known to be readable. Where a stack cannot be followed further, it ends there, marked.
//!
//! - `call_stack`: one return address after the other
//! - `caller`: registers of a frame, and how the caller's follow from them
//! - `frame_pointer`: the caller of code that has no unwind information
//! - `return_address`: whether a word of the stack is one, where no unwind information says so
//! - `called_function`: the function that a call names; `call_instruction` finds the call
//! - `rule_cache`: the rules of addresses that were met before, of the process
//! - `closings`: the libraries that are being closed; meanwhile no such rule is used
//! - `eh_frame`: the entry of an address in a module's unwind sections; `cfi` interprets it
//! - `rule`: where a frame's caller has its registers
//! - `loaded_module`: the module that has code at an address
//! - `framed_modules`: the modules that have a frame
//! - `bounded_memory`: a range of memory of which each page is probed before it is read, or each word copied

mod bounded_memory;
mod call_instruction;
mod call_stack;
mod called_function;
mod caller;
mod cfi;
mod closings;
mod eh_frame;
mod frame_pointer;
mod framed_modules;
mod loaded_module;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests load modules and list them")]
mod oracle_tests;
mod return_address;
mod rule;
mod rule_cache;
#[cfg(test)]
mod wild_tests;

pub use call_stack::CallStack;
pub use caller::FrameRegisters;
pub use closings::{CLOSINGS, Closing};
pub use loaded_module::{LoadedModule, note_modules};
