//! The interpreter of call frame instructions (DWARF 5, 6.4.2; System V ABI for x86-64, 3.6.2), for the registers that matter.

use super::bounded_memory::Cursor;
use super::rule::{CfaBase, SavedAt, SavedRegister, UnwindRule};

const RBX: u64 = 3;
const R10: u64 = 10;
const R11: u64 = 11;
const RBP: u64 = 6;
const RSP: u64 = 7;
const RETURN_ADDRESS: u64 = 16;

/// The most instructions that are interpreted for one address.
const INSTRUCTIONS_MAX: u32 = 20_000;
/// The most rules that are remembered at once. Compilers remember one.
const REMEMBERED_MAX: usize = 4;

const DW_OP_DEREF: u8 = 0x06;
const DW_OP_PLUS_UCONST: u8 = 0x23;
const DW_OP_LIT0: u8 = 0x30;
const DW_OP_BREG6: u8 = 0x76;
const DW_OP_BREG7: u8 = 0x77;
/// What linkers write for the PLT: rsp + 8 + ((rip & 15 >= N) << 3), before and behind the literal N.
const PLT_BEFORE: [u8; 6] = [DW_OP_BREG7, 8, 0x80, 0, 0x3f, 0x1a];
const PLT_BEHIND: [u8; 4] = [0x2a, 0x33, 0x24, 0x22];

/// What a CIE says about the instructions of its entries.
#[derive(Clone, Copy, Debug)]
pub struct Alignment {
    pub code: u64,
    pub data: i64,
}

/// An interpretation in progress.
#[derive(Debug)]
pub struct RuleBuilder {
    alignment: Alignment,
    rule: UnwindRule,
    /// The rule behind the instructions of the CIE, for `DW_CFA_restore`.
    initial: UnwindRule,
    remembered: [UnwindRule; REMEMBERED_MAX],
    remembered_count: usize,
    instructions_left: u32,
    /// The address from which on `rule` holds.
    location: usize,
}

impl RuleBuilder {
    /// For a function that begins at `location`.
    pub fn new(alignment: Alignment, location: usize, is_signal_frame: bool) -> RuleBuilder {
        let rule = UnwindRule { is_signal_frame, ..UnwindRule::UNKNOWN };
        RuleBuilder {
            alignment,
            rule,
            initial: rule,
            remembered: [rule; REMEMBERED_MAX],
            remembered_count: 0,
            instructions_left: INSTRUCTIONS_MAX,
            location,
        }
    }

    /// Interprets the instructions of the CIE.
    pub fn begin(&mut self, cursor: &mut Cursor<'_>, end: usize) -> Option<()> {
        self.run(cursor, end, usize::MAX)?;
        self.initial = self.rule;
        Some(())
    }

    /// Interprets the instructions of the entry, and returns the rule of `address`.
    pub fn finish(mut self, cursor: &mut Cursor<'_>, end: usize, address: usize) -> Option<UnwindRule> {
        self.run(cursor, end, address)?;
        Some(self.rule)
    }

    /// Interprets instructions up to `end`, or up to those behind `address`. `None` if they are invalid.
    fn run(&mut self, cursor: &mut Cursor<'_>, end: usize, address: usize) -> Option<()> {
        while cursor.at < end {
            self.instructions_left = self.instructions_left.checked_sub(1)?;
            let opcode = cursor.byte()?;
            let low = u64::from(opcode & 0x3f);
            match opcode {
                0x40..=0x7f => self.advance(low)?,
                0x80..=0xbf => {
                    let offset = self.factored(cursor.uleb128()? as i64);
                    self.set(low, SavedAt::Cfa, offset);
                }
                0xc0..=0xff => self.restore(low),
                0x00 => {}
                // DW_CFA_set_loc is of no compiler for this machine.
                0x01 => return None,
                0x02 => self.advance(cursor.unsigned(1)?)?,
                0x03 => self.advance(cursor.unsigned(2)?)?,
                0x04 => self.advance(cursor.unsigned(4)?)?,
                0x05 => self.offset(cursor, false, 1)?,
                0x06 => self.restore(cursor.uleb128()?),
                0x07 => self.set(cursor.uleb128()?, SavedAt::Undefined, Some(0)),
                0x08 => self.set(cursor.uleb128()?, SavedAt::Same, Some(0)),
                // DW_CFA_register and DW_CFA_val_offset: no compiler uses them for these registers.
                0x09 | 0x14 | 0x15 => {
                    let register = cursor.uleb128()?;
                    cursor.uleb128()?;
                    self.set(register, SavedAt::Lost, Some(0));
                }
                0x0a => self.remember()?,
                0x0b => self.restore_remembered()?,
                0x0c | 0x12 => {
                    let register = cursor.uleb128()?;
                    let offset = self.cfa_offset(cursor, opcode == 0x12)?;
                    self.set_cfa(cfa_base(register), offset);
                }
                0x0d => {
                    let register = cursor.uleb128()?;
                    self.rule.base = cfa_base(register);
                }
                0x0e | 0x13 => {
                    let offset = self.cfa_offset(cursor, opcode == 0x13)?;
                    let is_register = self.rule.base.is_register();
                    let base = if is_register { self.rule.base } else { CfaBase::Other };
                    self.set_cfa(base, offset);
                }
                0x0f => self.cfa_expression(cursor)?,
                0x10 => self.expression(cursor)?,
                0x11 => self.offset(cursor, true, 1)?,
                0x16 => {
                    let register = cursor.uleb128()?;
                    let length = cursor.uleb128()?;
                    cursor.skip(length)?;
                    self.set(register, SavedAt::Lost, Some(0));
                }
                // DW_CFA_GNU_args_size
                0x2e => drop(cursor.uleb128()?),
                // DW_CFA_GNU_negative_offset_extended
                0x2f => self.offset(cursor, false, -1)?,
                _ => return None,
            }
            if self.location > address {
                // What follows is behind the address. The instruction was an advance, which changes no rule.
                return Some(());
            }
        }
        Some(())
    }

    fn advance(&mut self, delta: u64) -> Option<()> {
        let bytes = usize::try_from(delta.checked_mul(self.alignment.code)?).ok()?;
        self.location = self.location.checked_add(bytes)?;
        Some(())
    }

    fn factored(&self, value: i64) -> Option<i64> {
        value.checked_mul(self.alignment.data)
    }

    /// The register that is described, if it is one of those that matter.
    fn register(rule: &mut UnwindRule, register: u64) -> Option<&mut SavedRegister> {
        match register {
            RBX => Some(&mut rule.rbx),
            RBP => Some(&mut rule.rbp),
            RETURN_ADDRESS => Some(&mut rule.return_address),
            _ => None,
        }
    }

    fn set(&mut self, register: u64, place: SavedAt, offset: Option<i64>) {
        let Some(saved) = RuleBuilder::register(&mut self.rule, register) else { return };
        *saved = match offset.and_then(|offset| i32::try_from(offset).ok()) {
            Some(offset) => SavedRegister { place, offset },
            None => SavedRegister::LOST,
        };
    }

    fn restore(&mut self, register: u64) {
        if let Some(initial) = RuleBuilder::register(&mut self.initial, register).copied() {
            self.set(register, initial.place, Some(initial.offset.into()));
        }
    }

    /// `DW_CFA_offset_extended` and its variants.
    fn offset(&mut self, cursor: &mut Cursor<'_>, is_signed: bool, sign: i64) -> Option<()> {
        let register = cursor.uleb128()?;
        let offset = if is_signed { cursor.sleb128()? } else { cursor.uleb128()? as i64 };
        let offset = self.factored(offset).and_then(|offset| offset.checked_mul(sign));
        self.set(register, SavedAt::Cfa, offset);
        Some(())
    }

    fn cfa_offset(&self, cursor: &mut Cursor<'_>, is_factored: bool) -> Option<i64> {
        if is_factored { self.factored(cursor.sleb128()?) } else { cursor.uleb128().map(|offset| offset as i64) }
    }

    fn set_cfa(&mut self, base: CfaBase, offset: i64) {
        (self.rule.base, self.rule.cfa_offset) = match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => (CfaBase::Other, 0),
        };
        self.rule.cfa_addend = 0;
    }

    fn remember(&mut self) -> Option<()> {
        *self.remembered.get_mut(self.remembered_count)? = self.rule;
        self.remembered_count += 1;
        Some(())
    }

    fn restore_remembered(&mut self) -> Option<()> {
        self.remembered_count = self.remembered_count.checked_sub(1)?;
        self.rule = *self.remembered.get(self.remembered_count)?;
        Some(())
    }

    /// `DW_CFA_def_cfa_expression`: the expressions of signal frames, of the PLT, and of functions that align their stack, or keep their
    /// caller's rsp in it, as those of OpenSSL do.
    fn cfa_expression(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let length = cursor.uleb128()?;
        let mut cursor_in = Cursor { memory: cursor.memory, at: cursor.at };
        let end = cursor_in.at.checked_add(usize::try_from(length).ok()?)?;
        let (base, offset, addend) = known_cfa_expression(&mut cursor_in, end).unwrap_or((CfaBase::Other, 0, 0));
        self.set_cfa(base, offset);
        self.rule.cfa_addend = addend;
        cursor.at = end;
        Some(())
    }

    /// `DW_CFA_expression`: a place relative to rsp or rbp.
    fn expression(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let register = cursor.uleb128()?;
        let length = cursor.uleb128()?;
        let mut cursor_in = Cursor { memory: cursor.memory, at: cursor.at };
        let end = cursor_in.at.checked_add(usize::try_from(length).ok()?)?;
        let (opcode, offset) = (cursor_in.byte()?, cursor_in.sleb128()?);
        let place = match opcode {
            DW_OP_BREG6 if cursor_in.at == end => SavedAt::Rbp,
            DW_OP_BREG7 if cursor_in.at == end => SavedAt::Rsp,
            _ => SavedAt::Lost,
        };
        self.set(register, place, Some(if place == SavedAt::Lost { 0 } else { offset }));
        cursor.at = end;
        Some(())
    }
}

fn cfa_base(register: u64) -> CfaBase {
    match register {
        RSP => CfaBase::Rsp,
        RBP => CfaBase::Rbp,
        RBX => CfaBase::Rbx,
        R10 => CfaBase::R10,
        R11 => CfaBase::R11,
        _ => CfaBase::Other,
    }
}

/// The base, the offset and what is added of an expression up to `end` that is one of the known ones.
fn known_cfa_expression(cursor: &mut Cursor<'_>, end: usize) -> Option<(CfaBase, i64, u8)> {
    let start = cursor.at;
    let (opcode, offset) = (cursor.byte()?, cursor.sleb128()?);
    if cursor.at < end && cursor.byte()? == DW_OP_DEREF {
        let addend = match cursor.at {
            at if at == end => 0,
            _ if cursor.byte()? == DW_OP_PLUS_UCONST => cursor.uleb128()?,
            _ => return None,
        };
        let addend = u8::try_from(addend).ok().filter(|addend| addend % 8 == 0 && cursor.at == end)?;
        return match opcode {
            DW_OP_BREG6 => Some((CfaBase::AtRbp, offset, addend)),
            DW_OP_BREG7 => Some((CfaBase::AtRsp, offset, addend)),
            _ => None,
        };
    }
    if end - start != PLT_BEFORE.len() + 1 + PLT_BEHIND.len() {
        return None;
    }
    cursor.at = start;
    let mut are_next = |bytes: &[u8]| bytes.iter().all(|byte| cursor.byte() == Some(*byte));
    if !are_next(&PLT_BEFORE) {
        return None;
    }
    let literal = cursor.byte()?.checked_sub(DW_OP_LIT0).filter(|literal| *literal < 32)?;
    let mut are_next = |bytes: &[u8]| bytes.iter().all(|byte| cursor.byte() == Some(*byte));
    are_next(&PLT_BEHIND).then_some((CfaBase::Plt, literal.into(), 0))
}
