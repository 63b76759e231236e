//! The rules of every function of real modules, compared with gimli's.

use core::ffi::{CStr, c_void};
use std::collections::BTreeMap;
use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, Evaluation, EvaluationResult, NativeEndian,
    Operation, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow,
};

use super::bounded_memory::BoundedMemory;
use super::eh_frame::rule_of;
use super::loaded_module::{LoadedModule, note_modules, noted_module};
use super::rule::{CfaBase, SavedAt, SavedRegister, UnwindRule};
use crate::sys::unwind_sections;

type Section = EhFrame<EndianSlice<'static, NativeEndian>>;

/// A module of this process.
struct TestModule {
    name: String,
    /// The segment with its unwind sections.
    segment: Range<usize>,
    /// Where its `.eh_frame_hdr` is.
    header: Range<usize>,
}

/// The modules of this process that have unwind information.
fn modules() -> Vec<TestModule> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _size: usize, list: *mut c_void) -> i32 {
        // SAFETY: as dl_iterate_phdr describes its callback's arguments; the list is the caller's.
        let (info, list) = unsafe { (&*info, &mut *list.cast::<Vec<TestModule>>()) };
        // SAFETY: as above; the name is NUL-terminated.
        let (headers, name) = unsafe {
            (std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()), CStr::from_ptr(info.dlpi_name))
        };
        let range = |header: &libc::Elf64_Phdr| {
            let start = (info.dlpi_addr + header.p_vaddr) as usize;
            start..start + header.p_memsz as usize
        };
        let Some(header) = headers.iter().find(|it| it.p_type == libc::PT_GNU_EH_FRAME).map(range) else { return 0 };
        let segment = headers.iter().filter(|it| it.p_type == libc::PT_LOAD).map(range);
        let segment = segment.into_iter().find(|it| it.contains(&header.start)).expect("it is in a segment");
        list.push(TestModule { name: name.to_string_lossy().into_owned(), segment, header });
        0
    }
    // What this test binary does not need is loaded for the comparison, where it is installed.
    for name in [c"libstdc++.so.6", c"libcrypto.so.3"] {
        // SAFETY: the libraries' constructors have no demands.
        unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    }
    let mut list = Vec::new();
    // SAFETY: the callback gets the list.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut list).cast()) };
    list
}

/// The operations of an expression.
fn operations(
    expression: &UnwindExpression<usize>,
    section: &Section,
) -> Vec<Operation<EndianSlice<'static, NativeEndian>>> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut operations = expression.get(section).unwrap().operations(encoding);
    std::iter::from_fn(|| operations.next().unwrap()).collect()
}

/// The register and the offset, if the operation makes an address of these.
fn based(operation: &Operation<EndianSlice<'static, NativeEndian>>) -> Option<(u16, i32)> {
    match operation {
        Operation::RegisterOffset { register, offset, .. } => Some((register.0, *offset as i32)),
        _ => None,
    }
}

/// What is expected of an expression for the canonical frame address: the value itself, for a made-up frame.
fn value_of_plt(expression: &UnwindExpression<usize>, section: &Section, rsp: u64, rip: u64) -> u64 {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut evaluation: Evaluation<_> = expression.get(section).unwrap().evaluation(encoding);
    let mut result = evaluation.evaluate().unwrap();
    loop {
        result = match result {
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = if register == Register(7) { rsp } else { rip };
                evaluation.resume_with_register(gimli::Value::Generic(value)).unwrap()
            }
            EvaluationResult::Complete => break,
            other => panic!("{other:?}"),
        };
    }
    match evaluation.result()[0].location {
        gimli::Location::Address { address } => address,
        ref other => panic!("{other:?}"),
    }
}

fn expected(row: &UnwindTableRow<usize>, section: &Section, is_signal_frame: bool) -> UnwindRule {
    let mut cfa_addend = 0;
    let (base, cfa_offset) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => match register.0 {
            7 => (CfaBase::Rsp, *offset as i32),
            6 => (CfaBase::Rbp, *offset as i32),
            3 => (CfaBase::Rbx, *offset as i32),
            10 => (CfaBase::R10, *offset as i32),
            11 => (CfaBase::R11, *offset as i32),
            _ => (CfaBase::Other, 0),
        },
        CfaRule::Expression(expression) => {
            let operations = operations(expression, section);
            match (operations.first().and_then(based), &operations[1..]) {
                (Some((7, offset)), [Operation::Deref { .. }]) => (CfaBase::AtRsp, offset),
                (Some((6, offset)), [Operation::Deref { .. }]) => (CfaBase::AtRbp, offset),
                (Some((register @ (6 | 7), offset)), [Operation::Deref { .. }, Operation::PlusConstant { value }]) => {
                    cfa_addend = u8::try_from(*value).unwrap();
                    (if register == 6 { CfaBase::AtRbp } else { CfaBase::AtRsp }, offset)
                }
                (Some((7, 8)), [second, ..]) if based(second) == Some((16, 0)) => {
                    let second_half =
                        (0..16).find(|rip| value_of_plt(expression, section, 4096, *rip) == 4112).unwrap() as i32;
                    for rip in 0..16 {
                        let more = if rip >= second_half as u64 { 16 } else { 8 };
                        assert_eq!(value_of_plt(expression, section, 4096, 64 + rip), 4096 + more);
                    }
                    (CfaBase::Plt, second_half)
                }
                _ => (CfaBase::Other, 0),
            }
        }
    };
    let saved = |register: u16, default: SavedAt| {
        let at = |place, offset| SavedRegister { place, offset };
        match row.register(Register(register)) {
            RegisterRule::Undefined => at(default, 0),
            RegisterRule::SameValue => SavedRegister::SAME,
            RegisterRule::Offset(offset) => at(SavedAt::Cfa, offset as i32),
            RegisterRule::Expression(expression) => match operations(&expression, section)[..] {
                [ref only] => match based(only) {
                    Some((7, offset)) => at(SavedAt::Rsp, offset),
                    Some((6, offset)) => at(SavedAt::Rbp, offset),
                    _ => SavedRegister::LOST,
                },
                _ => SavedRegister::LOST,
            },
            _ => SavedRegister::LOST,
        }
    };
    UnwindRule {
        base,
        cfa_offset,
        cfa_addend,
        rbp: saved(6, SavedAt::Same),
        rbx: saved(3, SavedAt::Same),
        return_address: saved(16, SavedAt::Undefined),
        is_signal_frame,
    }
}

/// Compares all rules of a module, and returns how many of each kind there are.
fn compare(module: &TestModule) -> BTreeMap<String, usize> {
    let bytes = |start: usize, end: usize| {
        // SAFETY: mapped, in a module that is never closed.
        EndianSlice::new(unsafe { std::slice::from_raw_parts(start as *const u8, end - start) }, NativeEndian)
    };
    let bases = BaseAddresses::default().set_eh_frame_hdr(module.header.start as u64);
    let header = EhFrameHdr::from(bytes(module.header.start, module.header.end)).parse(&bases, 8).unwrap();
    let gimli::Pointer::Direct(section_start) = header.eh_frame_ptr() else { panic!("an indirect pointer") };
    let bases = bases.set_eh_frame(section_start);
    let section = EhFrame::from(bytes(section_start as usize, module.segment.end));
    let mut entries = section.entries(&bases);
    let mut context = UnwindContext::new();
    let mut memory = BoundedMemory::new(module.segment.clone());
    let mut kinds = BTreeMap::new();
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(entry) = entry else { continue };
        let entry = entry.parse(EhFrame::cie_from_offset).unwrap();
        let mut table = entry.rows(&section, &bases, &mut context).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let expected = expected(row, &section, entry.is_signal_trampoline());
            let (start, end) = (row.start_address() as usize, row.end_address() as usize);
            for address in [start, start + (end - start) / 2, end - 1] {
                let mut found = rule_of(&mut memory, module.header.start, address)
                    .unwrap_or_else(|| panic!("{}: nothing for {address:#x}", module.name));
                if found.base == CfaBase::Other {
                    found.cfa_offset = 0;
                }
                assert_eq!(found, expected, "{} at {address:#x}, {start:#x}..{end:#x}", module.name);
            }
            *kinds.entry(format!("{:?}", expected.base)).or_default() += 1;
        }
    }
    kinds
}

#[test]
fn every_rule_of_real_modules_is_gimlis() {
    let modules = modules();
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for module in &modules {
        let kinds = compare(module);
        println!("{}: {kinds:?}", module.name);
        kinds.into_iter().for_each(|(kind, count)| *all.entry(kind).or_default() += count);
    }
    for kind in ["Rsp", "Rbp", "AtRsp", "Plt"] {
        assert!(all.get(kind).is_some_and(|count| *count > 0), "no rule of kind {kind}: {all:?}");
    }
    assert!(modules.iter().any(|module| module.name.contains("libc.so.6")));
}

#[test]
fn modules_are_found_with_their_unwind_information() {
    crate::glibc::next_functions::look_up_all();
    let modules = modules();
    // For this test, what is there now was there at the start.
    unwind_sections::note_start();
    // SAFETY: no other test has noted them, or reads them.
    unsafe { note_modules() };
    for module in modules {
        let entry = module.header.start;
        let Some(found) = LoadedModule::at(entry) else { panic!("{} is not found", module.name) };
        assert_eq!(found.eh_frame_header, entry, "{}", module.name);
        assert!(found.range.contains(&(module.segment.end - 1)));
        // As older glibcs need it.
        let noted = noted_module(entry).unwrap_or_else(|| panic!("{} is not noted", module.name));
        assert_eq!((noted.eh_frame_header, noted.range.start), (entry, found.range.start), "{}", module.name);
    }
    let local = 0;
    assert!(LoadedModule::at((&raw const local).addr()).is_none() && LoadedModule::at(0).is_none());
}
