//! How the registers of a frame's caller follow from those of the frame.

/// The rule of the code to which signal handlers return (`rt_sigreturn`). Its rsp is at the kernel's `struct ucontext`, in which the
/// offsets are.
pub const HANDLERS_RETURN: UnwindRule = UnwindRule {
    base: CfaBase::AtRsp,
    cfa_offset: 160,
    cfa_addend: 0,
    rbp: SavedRegister { place: SavedAt::Rsp, offset: 120 },
    rbx: SavedRegister { place: SavedAt::Rsp, offset: 128 },
    return_address: SavedRegister { place: SavedAt::Rsp, offset: 168 },
    is_signal_frame: true,
};

/// Where the canonical frame address, the caller's stack pointer, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CfaBase {
    /// The address is rsp and the offset.
    Rsp = 1,
    /// rbp and the offset.
    Rbp,
    /// rbx and the offset.
    Rbx,
    /// It is in memory, at rsp and the offset, with what is added to it: where the kernel saved it, in a signal's frame, or a function.
    AtRsp,
    /// In memory, at rbp and the offset, too: in a function that has aligned its stack.
    AtRbp,
    /// In an entry of the PLT, whose second half has one word more on the stack; the offset is where the second half begins.
    Plt,
    /// Another register or expression: the caller cannot be found.
    Other,
    /// r10 and the offset, in a function that aligns its stack. Callees change it: it is known only where a signal has interrupted the
    /// function.
    R10,
    /// r11 and the offset, in a function that probes a large frame as it makes it; as r10.
    R11,
}

impl CfaBase {
    /// Whether it is a register's value.
    pub fn is_register(self) -> bool {
        matches!(self, CfaBase::Rsp | CfaBase::Rbp | CfaBase::Rbx | CfaBase::R10 | CfaBase::R11)
    }
}

/// Where a frame has saved one of its caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SavedAt {
    /// The register still has its value.
    Same,
    /// At the canonical frame address and the offset.
    Cfa,
    /// At rsp and the offset.
    Rsp,
    /// At rbp and the offset.
    Rbp,
    /// Nowhere. Of the return address: the frame is the outermost one.
    Undefined,
    /// It cannot be found.
    Lost,
}

/// Where a register is saved, with the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedRegister {
    pub place: SavedAt,
    pub offset: i32,
}

impl SavedRegister {
    pub const SAME: SavedRegister = SavedRegister { place: SavedAt::Same, offset: 0 };
    pub const LOST: SavedRegister = SavedRegister { place: SavedAt::Lost, offset: 0 };
}

/// The rule of an address: what its function has done with the stack there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindRule {
    pub base: CfaBase,
    pub cfa_offset: i32,
    /// What is added to what is in memory, a multiple of 8.
    pub cfa_addend: u8,
    pub rbp: SavedRegister,
    pub rbx: SavedRegister,
    pub return_address: SavedRegister,
    /// The frame is one that the kernel has made for a signal: its caller was interrupted, and did not call.
    pub is_signal_frame: bool,
}

impl UnwindRule {
    /// Nothing is known.
    pub const UNKNOWN: UnwindRule = UnwindRule {
        base: CfaBase::Other,
        cfa_offset: 0,
        cfa_addend: 0,
        rbp: SavedRegister::SAME,
        rbx: SavedRegister::SAME,
        return_address: SavedRegister::LOST,
        is_signal_frame: false,
    };

    /// The rule as the cache has it; `None` if it does not fit.
    pub fn pack(&self) -> Option<PackedRule> {
        let short = |register: SavedRegister| i16::try_from(register.offset).ok().map(|it| u64::from(it as u16));
        let kinds = u64::from(self.base as u8)
            | u64::from(self.rbp.place as u8) << 8
            | u64::from(self.rbx.place as u8) << 12
            | u64::from(self.return_address.place as u8) << 16
            | u64::from(self.is_signal_frame) << 24
            | u64::from(self.cfa_addend / 8) << ADDEND_SHIFT
            | self.shape();
        Some(PackedRule([
            kinds | u64::from(self.cfa_offset as u32) << 32,
            u64::from(self.rbp.offset as u32) | short(self.rbx)? << 32 | short(self.return_address)? << 48,
        ]))
    }

    /// What [`PackedRule::shape`] is to say.
    fn shape(&self) -> u64 {
        const SAVED_LIKE_RETURN_ADDRESS: SavedRegister = SavedRegister { place: SavedAt::Cfa, offset: -WORD };
        let lowest = match self.base {
            CfaBase::Rsp => -self.cfa_offset,
            _ => i32::MIN,
        };
        let is_in_frame = |saved: SavedRegister| match saved.place {
            SavedAt::Same => true,
            SavedAt::Cfa => (lowest..=-2 * WORD).contains(&saved.offset) && saved.offset % WORD == 0,
            _ => false,
        };
        if self.is_signal_frame
            || self.return_address != SAVED_LIKE_RETURN_ADDRESS
            || !is_in_frame(self.rbp)
            || !is_in_frame(self.rbx)
        {
            return 0;
        }
        match self.base {
            CfaBase::Rsp if self.cfa_offset >= WORD && self.cfa_offset % WORD == 0 => ON_RSP,
            CfaBase::Rbp if self.cfa_offset == 2 * WORD => ON_RBP,
            _ => 0,
        }
    }
}

const WORD: i32 = 8;

/// In a packed rule: its shape.
const ON_RSP: u64 = 1 << 25;
const ON_RBP: u64 = 1 << 26;
/// Above them an addend, in words.
const ADDEND_SHIFT: u32 = 27;

/// What nearly all rules of compilers look like. The return address is the word below the canonical frame address, and what is saved
/// of rbp and rbx is saved below that, at a multiple of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsualShape {
    /// The canonical frame address is above rsp, by a multiple of a word, and what is saved is not below rsp.
    OnRsp,
    /// It is two words above rbp.
    OnRbp,
}

/// A rule in two words.
#[derive(Clone, Copy, Debug)]
pub struct PackedRule(pub [u64; 2]);

impl PackedRule {
    /// The shape of a usual rule.
    #[inline(always)]
    pub fn shape(self) -> Option<UsualShape> {
        match self.0[0] {
            kinds if kinds & ON_RSP != 0 => Some(UsualShape::OnRsp),
            kinds if kinds & ON_RBP != 0 => Some(UsualShape::OnRbp),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn cfa_offset(self) -> i32 {
        (self.0[0] >> 32) as i32
    }

    /// Where a usual rule has rbp, below the canonical frame address; `None` if it has not been changed.
    #[inline(always)]
    pub fn rbp_offset(self) -> Option<isize> {
        const SAVED: u64 = (SavedAt::Cfa as u64) << 8;
        (self.0[0] & SAVED != 0).then_some(self.0[1] as i32 as isize)
    }

    /// As [`PackedRule::rbp_offset`].
    #[inline(always)]
    pub fn rbx_offset(self) -> Option<isize> {
        const SAVED: u64 = (SavedAt::Cfa as u64) << 12;
        (self.0[0] & SAVED != 0).then_some((self.0[1] >> 32) as i16 as isize)
    }

    /// The rule; `None` if the words are none's.
    pub fn unpack(self) -> Option<UnwindRule> {
        let PackedRule([kinds, offsets]) = self;
        let base = match kinds as u8 {
            1 => CfaBase::Rsp,
            2 => CfaBase::Rbp,
            3 => CfaBase::Rbx,
            4 => CfaBase::AtRsp,
            5 => CfaBase::AtRbp,
            6 => CfaBase::Plt,
            7 => CfaBase::Other,
            8 => CfaBase::R10,
            9 => CfaBase::R11,
            _ => return None,
        };
        let place = |shift: u32| match kinds >> shift & 15 {
            0 => SavedAt::Same,
            1 => SavedAt::Cfa,
            2 => SavedAt::Rsp,
            3 => SavedAt::Rbp,
            4 => SavedAt::Undefined,
            _ => SavedAt::Lost,
        };
        Some(UnwindRule {
            base,
            cfa_offset: (kinds >> 32) as i32,
            cfa_addend: (kinds >> ADDEND_SHIFT) as u8 % 32 * 8,
            rbp: SavedRegister { place: place(8), offset: offsets as i32 },
            rbx: SavedRegister { place: place(12), offset: ((offsets >> 32) as i16).into() },
            return_address: SavedRegister { place: place(16), offset: ((offsets >> 48) as i16).into() },
            is_signal_frame: kinds >> 24 & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_packing() {
        let saved = |place, offset| SavedRegister { place, offset };
        let rule = UnwindRule {
            base: CfaBase::AtRbp,
            cfa_offset: -8,
            cfa_addend: 248,
            rbp: saved(SavedAt::Rbp, i32::MIN),
            rbx: saved(SavedAt::Lost, -32768),
            return_address: saved(SavedAt::Undefined, 32767),
            is_signal_frame: true,
        };
        let interrupted = [CfaBase::R10, CfaBase::R11].map(|base| UnwindRule { base, ..rule });
        for rule in [rule, UnwindRule::UNKNOWN].into_iter().chain(interrupted) {
            assert_eq!(rule.pack().unwrap().unpack(), Some(rule));
        }
        assert!(UnwindRule { rbx: saved(SavedAt::Cfa, 40_000), ..rule }.pack().is_none());
        assert_eq!(PackedRule([0, 0]).unpack(), None);
    }
}
