//! Whether a word of a stack is a return address, where no unwind information says so: what is before it in the code is a call.

use core::ops::Range;

use super::bounded_memory::BoundedMemory;
use super::call_instruction::Calls;
use super::called_function::{Called, called_function};
use super::framed_modules::FramedModules;
use super::loaded_module::LoadedModule;

/// Addresses of user space.
const ADDRESSES: Range<usize> = 1 << 16..1 << 47;

/// Words of a stack that may point to code.
pub struct StackWords<'a> {
    framed: &'a FramedModules,
    /// The module that the last word pointed to, and its code if that can be read.
    last: Option<(LoadedModule, Option<BoundedMemory>)>,
    /// All memory, for code that is in no module, if it can be copied: such code may be removed at any time. Most such words are data.
    /// Code that has called is in a page that is there.
    elsewhere: Option<Option<BoundedMemory>>,
    /// How many words were asked about, and the last ones that are no return addresses.
    asked: usize,
    others: [usize; 4],
}

impl<'a> StackWords<'a> {
    pub fn new(framed: &'a FramedModules) -> StackWords<'a> {
        StackWords { framed, last: None, elsewhere: None, asked: 0, others: [0; 4] }
    }

    /// What the code before an address can be read from, and where its module is mapped.
    fn find(&mut self, address: usize) -> (Option<&mut BoundedMemory>, Option<Range<usize>>) {
        let before = address.wrapping_sub(1);
        if !self.last.as_ref().is_some_and(|(module, _)| module.range.contains(&before)) {
            let Some(module) = LoadedModule::at(before) else {
                return (
                    self.elsewhere.get_or_insert_with(|| BoundedMemory::copied_if_resident(ADDRESSES)).as_mut(),
                    None,
                );
            };
            let code = module.code(self.framed);
            self.last = Some((module, code));
        }
        match &mut self.last {
            Some((module, code)) => (code.as_mut(), Some(module.range.clone())),
            None => (None, None),
        }
    }

    /// Whether a call returns to an address, or a signal handler; `None` if that cannot be read. A byte of an instruction, and data that
    /// is no code, may look like a call, so a word that is none may be taken for one, but not the other way round.
    pub fn is_return_address(&mut self, address: usize) -> Option<bool> {
        self.ask(address).0
    }

    /// As [`StackWords::is_return_address`], and whether the address is in a module.
    fn ask(&mut self, address: usize) -> (Option<bool>, bool) {
        let (code, module) = self.find(address);
        let is_in_module = module.is_some();
        let Some(code) = code else { return (None, is_in_module) };
        let answer = match Calls::before(code, address) {
            Some(calls) if calls.is_direct || calls.is_indirect => Some(true),
            None if is_in_module => None,
            _ => Some(is_return_from_handler(code, address)),
        };
        (answer, is_in_module)
    }

    /// Whether an address is in a module, and certainly behind a call or what a handler returns to.
    pub fn is_known_return_address(&mut self, address: usize) -> bool {
        self.ask(address) == (Some(true), true)
    }

    /// Whether a word may be a return address. `generated_code`: where code of no module is that may have been called. Such code calls
    /// other such code, which is mostly near. After many words any other one may be, since each of them takes some time.
    pub fn may_be_return_address(&mut self, word: usize, generated_code: Option<usize>) -> bool {
        const NEAR: usize = 1 << 20;
        const WORDS_MAX: usize = 64;
        if !ADDRESSES.contains(&word) || self.others.contains(&word) {
            return false;
        }
        let (answer, is_in_module) = match generated_code {
            Some(code) if word.abs_diff(code) < NEAR => return true,
            _ if self.asked >= WORDS_MAX => return true,
            _ => self.ask(word),
        };
        if let Some(place) = self.others.get_mut(self.asked & 3) {
            *place = word;
        }
        self.asked += 1;
        answer.unwrap_or(is_in_module)
    }

    /// Whether the code at an address is what handlers return to.
    pub fn is_return_from_handler(&mut self, address: usize) -> bool {
        self.find(address).0.is_some_and(|code| is_return_from_handler(code, address))
    }

    /// Whether an address in a module is known to be the return address of a call, which may have led to code at another place, that has
    /// no unwind information; `callee` is the module that this is in. What a call names is mostly known. It may be another function,
    /// which has jumped there, but none with unwind information or of another module: behind a function's last call, of one that does
    /// not return, another function begins.
    pub fn is_of_call_to(&mut self, callee: Option<&LoadedModule>, address: usize) -> bool {
        if self.is_return_address(address) != Some(true) {
            return false;
        }
        let (Some(code), Some(range)) = self.find(address) else { return false };
        match (called_function(code, &range, address), callee) {
            (Called::Nothing, _) => false,
            (Called::Unknown, _) => true,
            (Called::Function(function), Some(module)) => {
                module.range.contains(&function) && !module.has_unwind_information(function, self.framed)
            }
            (Called::Function(function), None) => range.contains(&function) || LoadedModule::at(function).is_none(),
        }
    }
}

/// Whether the code at an address is what handlers return to: `mov $SYS_rt_sigreturn, %rax; syscall`, or with `%eax`. Debuggers know it
/// by these bytes, so that C libraries do not change them.
fn is_return_from_handler(code: &mut BoundedMemory, address: usize) -> bool {
    const MOV_AND_FIRST_OF_SYSCALL: u64 = 0x0f00_0000_0fc0_c748;
    const LAST_OF_SYSCALL: u8 = 0x05;
    const SHORT_MOV_AND_SYSCALL: u64 = 0x0005_0f00_0000_0fb8;
    const SEVEN_BYTES: u64 = u64::MAX >> 8;
    let Some(bytes) = code.number(address, 8) else { return false };
    bytes & SEVEN_BYTES == SHORT_MOV_AND_SYSCALL
        || bytes == MOV_AND_FIRST_OF_SYSCALL && code.byte(address.wrapping_add(8)) == Some(LAST_OF_SYSCALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_handlers_return_to_is_known() {
        let code = [0x48u8, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let start = code.as_ptr().addr();
        let is_known = |length| is_return_from_handler(&mut BoundedMemory::new(start..start + length), start);
        assert_eq!([code.len(), 8, 7].map(is_known), [true, false, false]);
        let code = [0xb8u8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0xcc];
        let start = code.as_ptr().addr();
        assert!(is_return_from_handler(&mut BoundedMemory::new(start..start + code.len()), start));
    }
}
