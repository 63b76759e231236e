//! Where calls are, and the stacks of those whose stack was recorded. Equal stacks are kept once, and so are the frames that stacks
//! have in common from the outermost on.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use spec::futex_locks::FutexLock;

use super::code_changes::{CodeChanges, SiteKey};
use super::numeric_record::NumericRecord;
use super::site_index::SiteIndex;
use super::wait_blocks::WaitBlocks;
use crate::record::call_stack::CallStack;
use crate::symbols::CodeMaps;

/// The most sites, and the most frames of all stacks, that are kept; calls beyond that have the site of their address.
const SITES_MAX: usize = 1 << 18;
const FRAMES_MAX: usize = 1 << 20;
/// The most sites if those of addresses without a stack are counted, too: of calls at further addresses each process has one site.
const WITH_ADDRESSES_MAX: usize = 3 << 17;
/// What this site has instead of an address. No code is there.
pub const OTHER_SITES: u64 = 2;
/// Stands for the outermost frame of a stack that could not be followed further.
const CUT_OFF: u64 = 1;

/// The sites.
#[derive(Debug)]
pub struct SiteTable {
    pub sites: Vec<SiteState>,
    /// By process, address and stack, and by what the code was there.
    index: SiteIndex,
    code_changes: CodeChanges,
    /// The time of the record in progress.
    time: u64,
    /// The next frame outwards, and the address; the first one stands for no frame.
    frames: Vec<(u32, u64)>,
    frame_indexes: HashMap<(u32, u64), u32, RandomState>,
    /// The stack of the next record, whose time, process and LWP are known, and how many records it has.
    next: (CallStack, (u64, u32, u32), u64),
    /// The innermost frame of the stack of the record in progress; 0 if it has none.
    stack: u32,
}

/// The figures of a site: an address in an image of a process, with a stack if that was recorded. What each call needs stands
/// together, so that it takes one or two lines of the processor's cache.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct SiteState {
    /// The return address of the calls.
    pub address: u64,
    pub process: u32,
    /// The innermost frame of their stack; 0 if it was not recorded.
    pub stack: u32,
    /// A number of the code that is there.
    code: u64,
    pub calls: u64,
    pub held: u64,
    pub contention: u64,
    /// How long others waited for an object that was acquired here.
    pub blamed: u64,
    pub waits: u64,
    pub idleness: u64,
    /// When their time was, if that is asked for.
    pub wait_blocks: WaitBlocks,
    /// The time of the first call: what the code is there may depend on it.
    pub time: u64,
    /// In the code of which lock that waits by futex(2) it is, once that has been looked up.
    pub futex_lock: Option<Option<&'static FutexLock>>,
}

impl SiteState {
    /// What tells it apart from other sites.
    fn key(&self) -> (SiteKey, u64) {
        ((self.process, self.address, self.stack), self.code)
    }
}

impl SiteTable {
    /// A table whose site 0 stands for calls whose site is not known.
    pub fn new() -> SiteTable {
        SiteTable {
            sites: vec![SiteState::default()],
            index: SiteIndex::new(),
            code_changes: CodeChanges::default(),
            time: 0,
            frames: vec![(0, 0)],
            frame_indexes: HashMap::default(),
            next: Default::default(),
            stack: 0,
        }
    }

    /// The index of the site at an address, with the stack of the record in progress; 0 if neither is known.
    pub fn intern(&mut self, process: u32, mut address: u64) -> u32 {
        if address == 0 {
            address = Some(self.frames[self.stack as usize].1).filter(|inner| *inner != CUT_OFF).unwrap_or(0);
        }
        if address == 0 {
            return 0;
        }
        let key = (process, address, self.stack);
        let code = self.code_of(key);
        let sites = &self.sites;
        let is_same = |known: u32| sites[known as usize].key() == (key, code);
        if let Some(known) = self.index.find(&(key, code), is_same) {
            return known;
        }
        if self.stack > 0 && self.sites.len() >= SITES_MAX {
            self.stack = 0;
            return self.intern(process, address);
        }
        if self.sites.len() >= WITH_ADDRESSES_MAX && address != OTHER_SITES {
            return self.intern(process, OTHER_SITES);
        }
        if self.sites.len() == self.sites.capacity() {
            self.sites.reserve_exact(self.sites.len() / 8 + 16);
        }
        let (stack, time) = (self.stack, self.time);
        self.sites.push(SiteState { process, address, stack, code, time, ..SiteState::default() });
        let index = self.sites.len() as u32 - 1;
        let sites = &self.sites;
        self.index.add(index, |known| sites[known as usize].key());
        index
    }

    /// How many calls were at sites that are not kept.
    pub fn calls_at_others(&self) -> u64 {
        self.sites.iter().filter(|site| site.address == OTHER_SITES).map(|site| site.calls).sum()
    }

    /// Takes a part of the stack of a record that follows.
    pub fn add_stack_part(&mut self, part: &NumericRecord) {
        let (stack, owner, records) = &mut self.next;
        if *owner != part.owner() {
            stack.add(1, [0; 5]);
            *owner = part.owner();
        }
        stack.add(part.which, part.arguments);
        *records += 1;
    }

    /// Takes the record in progress. Returns how many records its stack has.
    pub fn begin_record(&mut self, record: &NumericRecord) -> u64 {
        (self.stack, self.time) = (0, record.time);
        if self.next.2 == 0 {
            return 0;
        }
        let (stack, owner, records) = std::mem::take(&mut self.next);
        if owner == record.owner() {
            let cut_off = stack.is_cut_off.then_some(CUT_OFF);
            let outermost_first = cut_off.into_iter().chain(stack.addresses.into_iter().rev());
            self.stack = self.intern_frames(outermost_first);
        }
        records
    }

    fn intern_frames(&mut self, outermost_first: impl Iterator<Item = u64>) -> u32 {
        let mut outer = 0;
        for address in outermost_first {
            let key = (outer, address);
            outer = match self.frame_indexes.get(&key) {
                Some(&known) => known,
                None if self.frames.len() >= FRAMES_MAX => return 0,
                None => {
                    self.frames.push(key);
                    let index = self.frames.len() as u32 - 1;
                    self.frame_indexes.insert(key, index);
                    index
                }
            };
        }
        outer
    }

    /// Takes what code a process has had at which time.
    pub fn know_code(&mut self, process: u32, maps: &CodeMaps) {
        self.code_changes.set(process, maps);
    }

    /// What the code of a call is at the time of the record in progress.
    fn code_of(&mut self, key: SiteKey) -> u64 {
        let (time, frames) = (self.time, &self.frames);
        let addresses = || addresses_of(frames, key).addresses;
        self.code_changes.code_of(key, time, addresses)
    }

    /// The stack of a site, as far as it is known.
    pub fn stack(&self, site: u32) -> CallStack {
        let SiteState { process, address, stack, .. } = self.sites[site as usize];
        addresses_of(&self.frames, (process, address, stack))
    }
}

/// The stack of a call, as far as it is known.
fn addresses_of(frames: &[(u32, u64)], (_, address, mut frame): SiteKey) -> CallStack {
    let mut stack = CallStack::default();
    while frame > 0 {
        let (outer, address) = frames[frame as usize];
        if address == CUT_OFF {
            stack.is_cut_off = true;
        } else {
            stack.addresses.push(address);
        }
        frame = outer;
    }
    if stack.addresses.is_empty() && address > 0 {
        stack.addresses.push(address);
    }
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(time: u64, which: u8, arguments: [u64; 5]) -> NumericRecord {
        NumericRecord { time, which, arguments, ..NumericRecord::default() }
    }

    #[test]
    fn a_site_has_the_stack_of_the_record_in_progress() {
        let mut table = SiteTable::new();
        let mut site = |parts: &[NumericRecord], time, address| {
            parts.iter().for_each(|part| table.add_stack_part(part));
            let records = table.begin_record(&part(time, 1, [0; 5]));
            let site = table.intern(0, address);
            (records, site, table.stack(site).addresses, table.stack(site).is_cut_off, table.frames.len())
        };
        let long = [part(1, 1, [6, 5, 4, 3, 2]), part(1, 2, [9, 1, 0, 0, 0])];
        assert_eq!(site(&long, 1, 6), (2, 1, vec![6, 5, 4, 3, 2, 9], true, 8));
        assert_eq!(site(&[], 2, 6), (0, 2, vec![6], false, 8));
        assert_eq!(site(&[], 3, 0), (0, 0, vec![], false, 8));
        // The outer frames are there.
        let other = [part(4, 1, [7, 5, 4, 3, 2]), part(4, 2, [9, 1, 0, 0, 0])];
        assert_eq!(site(&other, 4, 0), (2, 3, vec![7, 5, 4, 3, 2, 9], true, 9));
        let again = long.map(|part| NumericRecord { time: 5, ..part });
        assert_eq!(site(&again, 5, 6), (2, 1, vec![6, 5, 4, 3, 2, 9], true, 9));
        // The record of this stack is missing.
        assert_eq!(site(&[part(6, 1, [8, 0, 0, 0, 0])], 7, 6), (1, 2, vec![6], false, 9));
    }

    #[test]
    fn calls_at_too_many_addresses_are_at_one_site_of_their_process() {
        let mut table = SiteTable::new();
        let first_left_out = 0x1000 + WITH_ADDRESSES_MAX as u64 - 1;
        for process in [0, 1] {
            for address in 0x1000..first_left_out + 5 {
                let site = table.intern(process, address);
                table.sites[site as usize].calls += 1;
            }
        }
        let others: Vec<(u32, u64)> =
            table.sites.iter().skip(WITH_ADDRESSES_MAX).map(|site| (site.process, site.calls)).collect();
        assert_eq!(others, [(0, 5), (1, WITH_ADDRESSES_MAX as u64 + 4)]);
        assert_eq!(table.calls_at_others(), WITH_ADDRESSES_MAX as u64 + 9);
        // Those that are kept go on.
        assert_eq!(table.intern(0, 0x1000), 1);
        let known = table.intern(0, first_left_out - 1);
        assert_eq!((known as usize, table.sites[known as usize].calls), (WITH_ADDRESSES_MAX - 1, 1));
        // A stack whose sites are too many has the site of its address.
        table.add_stack_part(&part(1, 1, [0x1000, 7, 0, 0, 0]));
        table.begin_record(&part(1, 1, [0; 5]));
        assert_eq!(table.intern(0, 0), 1);
    }

    #[test]
    fn stacks_come_before_the_first_record_of_their_call() {
        let line = |time: u32, lwp: u32, event: &str| {
            format!("1795174740:{time:09}:{lwp:07}:0000001:0x7fc5de3f86c0:{event}:0x10:0:0:0:0\n")
        };
        let kinds = [(1, 1, "02:04:0"), (2, 1, "02:02:1"), (2, 2, "02:02:1"), (2, 1, "02:02:2"), (2, 1, "00:03:1")];
        let text: String = kinds.iter().map(|(time, lwp, event)| line(*time, *lwp, event)).collect();
        let text = text + &line(2, 2, "00:03:1") + &line(2, 1, "00:03:2") + &line(2, 3, "00:03:1");
        let mut bytes = vec![7; 72];
        NumericRecord::append_lines(text.as_bytes(), &mut bytes);
        let found: Vec<_> =
            NumericRecord::of_bytes(&bytes[72..]).map(|record| (record.lwp, record.event.0, record.which)).collect();
        assert_eq!(found, [(1, 2, 0), (1, 0, 1), (1, 0, 2), (1, 2, 1), (2, 0, 1), (2, 2, 1), (1, 2, 2), (3, 0, 1)]);
    }
}
