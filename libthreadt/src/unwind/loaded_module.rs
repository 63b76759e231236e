//! The module (the program or a library) that has code at an address.
//!
//! glibc's `_dl_find_object` finds it without a lock. Where glibc is older than 2.35, only the modules are known that the dynamic linker
//! has loaded before any constructor ran. Those are never closed, so that they are noted in any case.

use core::ops::Range;

use super::bounded_memory::BoundedMemory;
use super::closings::CLOSINGS;
use super::eh_frame;
use super::framed_modules::FramedModules;
use crate::glibc::next_functions;
use crate::sys::{SetOnce, unwind_sections};

/// `struct dl_find_object` of x86-64.
#[repr(C)]
struct FoundObject {
    flags: u64,
    map_start: usize,
    map_end: usize,
    link_map: usize,
    eh_frame_header: usize,
    reserved: [u64; 7],
}

/// Of each module that was loaded at the start: where it begins and ends, and where its `.eh_frame_hdr` is; behind the last
/// one zeros.
static AT_START: SetOnce<[[usize; 3]; 128]> = SetOnce::new([[0; 3]; 128]);

/// Notes the modules that were loaded at the start.
///
/// # Safety
/// The library is being initialised, and nobody walks a stack.
pub unsafe fn note_modules() {
    // SAFETY: the caller's.
    let places = unsafe { AT_START.get_mut() };
    for (place, (range, header)) in places.iter_mut().zip(unwind_sections::of_objects_at_start()) {
        *place = [range.start, range.end, header];
    }
}

/// The module that was loaded at the start and has this address.
pub(super) fn noted_module(address: usize) -> Option<LoadedModule> {
    let modules = AT_START.get().iter().map(|[start, end, header]| (*start..*end, *header));
    let mut having = modules.take_while(|(range, _)| range.end != 0).filter(|(range, _)| range.contains(&address));
    having.next().map(|(range, eh_frame_header)| LoadedModule::new(range, eh_frame_header, 0))
}

/// A module.
#[derive(Clone, Debug)]
pub struct LoadedModule {
    /// Where it is mapped. Of a module whose segments do not adjoin, only the segment that has the address.
    pub range: Range<usize>,
    /// Where its `.eh_frame_hdr` is; 0 if it has none.
    pub eh_frame_header: usize,
    /// The dynamic linker's entry of it, 0 if that is not known.
    pub link_map: usize,
    /// A number that another module at the same place has not.
    pub identity: u64,
    /// It is this library.
    pub is_own: bool,
}

impl LoadedModule {
    /// The module with these places. What each of its frames is asked is found once.
    fn new(range: Range<usize>, eh_frame_header: usize, link_map: usize) -> LoadedModule {
        let identity =
            (range.start as u64).rotate_left(17) ^ (eh_frame_header as u64).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let is_own = range.contains(&(LoadedModule::at as *const ()).addr());
        LoadedModule { range, eh_frame_header, link_map, identity, is_own }
    }

    /// The module that has code at an address.
    pub fn at(address: usize) -> Option<LoadedModule> {
        if !LoadedModule::are_all_known() {
            return noted_module(address);
        }
        // SAFETY: glibc's function with a struct of its layout. It only compares the address.
        let (found, result) = unsafe {
            let mut found: FoundObject = core::mem::zeroed();
            let find: unsafe extern "C" fn(usize, *mut FoundObject) -> i32 =
                core::mem::transmute(next_functions::_dl_find_object.address());
            let result = find(address, &mut found);
            (found, result)
        };
        let FoundObject { map_start, map_end, eh_frame_header, link_map, .. } = found;
        (result == 0).then(|| LoadedModule::new(map_start..map_end, eh_frame_header, link_map))
    }

    /// Whether each module is found, and not only those that were loaded at the start.
    pub fn are_all_known() -> bool {
        next_functions::_dl_find_object.is_known()
    }

    /// Whether its memory may be read, and from now on how. Another thread may close it meanwhile, unless it was loaded at the start; then
    /// the kernel copies what is read, where that is possible. What has a frame is copied too: frames that a wrong rule has led to are none,
    /// nor is what a coroutine's stack has behind its outermost frame. Where no copies are made, what has a frame is read, but not while
    /// a library is being closed, which may be that one.
    #[inline(never)]
    pub fn allow(&self, memory: &mut BoundedMemory, framed: &FramedModules) -> bool {
        noted_module(self.range.start).is_some()
            || memory.copy_from_now_on()
            || framed.contain(self.identity) && CLOSINGS.number().is_some()
    }

    /// Its code, if it may be read.
    pub fn code(&self, framed: &FramedModules) -> Option<BoundedMemory> {
        let mut code = BoundedMemory::new(self.range.clone());
        self.allow(&mut code, framed).then_some(code)
    }

    /// The memory that may have its unwind sections: offsets from the header have 32 bits. [`LoadedModule::allow`] says whether it may be
    /// read.
    pub fn unwind_sections(&self) -> BoundedMemory {
        const REACH: usize = 1 << 31;
        let header = self.eh_frame_header;
        BoundedMemory::new(header.saturating_sub(REACH)..header.saturating_add(REACH))
    }

    /// Whether it has a rule for an address; `false` if it cannot be read.
    #[cold]
    pub fn has_unwind_information(&self, address: usize, framed: &FramedModules) -> bool {
        let mut sections = self.unwind_sections();
        self.allow(&mut sections, framed) && eh_frame::rule_of(&mut sections, self.eh_frame_header, address).is_some()
    }

    /// Whether it can be read.
    #[cold]
    pub fn can_be_read(&self, framed: &FramedModules) -> bool {
        self.code(framed).is_some()
    }
}
