//! Wild stacks and wild unwind sections: whatever they hold, the walk ends, and reads only what is there.

use super::bounded_memory::{BoundedMemory, Cursor};
use super::call_stack::CallStack;
use super::caller::FrameRegisters;
use super::cfi::{Alignment, RuleBuilder};
use super::closings::CLOSINGS;
use super::eh_frame::rule_of;
use super::loaded_module::LoadedModule;
use crate::glibc::next_functions;

/// SplitMix64.
struct SeededRandom(u64);

impl SeededRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// A word that may be on a stack: any number, an address of code, or of this stack.
fn stack_word(random: &mut SeededRandom, stack: usize, size: usize) -> usize {
    let code = [rule_of as *const (), libc::qsort as *const (), libc::strtol as *const ()].map(|it| it.addr());
    match random.below(4) {
        0 => random.next() as usize,
        // Some are met again and again.
        1 => code[random.below(code.len())] + random.below(200) / (1 + 24 * random.below(2)),
        2 => stack + random.below(size + 64),
        _ => (stack + random.below(size)) & !15,
    }
}

#[test]
fn walks_over_wild_stacks_end() {
    next_functions::look_up_all();
    let mut random = SeededRandom(1);
    let mut words = [0usize; 512];
    let (start, size) = (words.as_ptr().addr(), size_of_val(&words));
    let mut longest = 0;
    for _ in 0..20_000 {
        for word in &mut words {
            *word = stack_word(&mut random, start, size);
        }
        // The walk reads the words by their address.
        std::hint::black_box(&mut words);
        let registers = FrameRegisters {
            rip: stack_word(&mut random, start, size),
            rsp: start + random.below(size),
            rbp: stack_word(&mut random, start, size),
            rbx: stack_word(&mut random, start, size),
            scratch: [0; 2].map(|_| stack_word(&mut random, start, size)),
        };
        // What other stacks have left in the cache leads nowhere else than an empty cache, rules without callers, all of it, and none, as
        // while a library is being closed.
        let walks = [0, 1, 2, 3, 4].map(|walk| {
            if walk == 1 {
                CLOSINGS.end(CLOSINGS.begin(), true);
            }
            let closing = (walk == 4).then(|| CLOSINGS.begin());
            let mut places = [0; 128];
            let mut stack = CallStack::above(registers);
            let taken = stack.take_into(&mut places);
            if let Some(closing) = closing {
                CLOSINGS.end(closing, false);
            }
            (places[..taken].to_vec(), stack.is_cut())
        });
        assert!(walks.iter().all(|walk| *walk == walks[0]), "{registers:?}: {walks:x?}");
        longest = longest.max(walks[0].0.len());
    }
    assert!(longest > 3, "no wild stack had frames: {longest}");
}

#[test]
fn wild_entries_are_interpreted_to_an_end() {
    next_functions::look_up_all();
    let mut random = SeededRandom(2);
    let own = LoadedModule::at((rule_of as *const ()).addr()).unwrap();
    let mut whole = BoundedMemory::new(own.range.clone());
    let section = own.eh_frame_header;
    let length = (section..own.range.end).take(200_000).take_while(|at| whole.byte(*at).is_some()).count();
    // SAFETY: these bytes have just been read.
    let original = unsafe { std::slice::from_raw_parts(section as *const u8, length) };
    let mut copy = original.to_vec();
    let mut found = 0;
    for _ in 0..200_000 {
        let mut place = || {
            // Most of the header is its table.
            let limit = if random.below(2) == 0 { 64 } else { length };
            random.below(limit)
        };
        let changes: Vec<usize> = (0..5).map(|_| place()).collect();
        for at in &changes {
            copy[*at] = random.next() as u8;
        }
        let start = copy.as_ptr().addr();
        let mut memory = BoundedMemory::new(start..start + length);
        let address = start.wrapping_sub(random.below(2_000_000)).wrapping_add(random.below(2_000_000));
        found += usize::from(rule_of(&mut memory, start, address).is_some());
        for at in changes {
            copy[at] = original[at];
        }
    }
    println!("{found} rules");
}

#[test]
fn wild_instructions_are_interpreted_to_an_end() {
    let mut random = SeededRandom(3);
    let mut bytes = [0u8; 256];
    let mut valid = 0;
    for _ in 0..200_000 {
        let length = 1 + random.below(bytes.len() - 1);
        bytes[..length].fill_with(|| match random.below(3) {
            0 => random.next() as u8,
            1 => random.below(0x18) as u8,
            _ => random.below(20) as u8,
        });
        let start = bytes.as_ptr().addr();
        let mut memory = BoundedMemory::new(start..start + length);
        let alignment =
            Alignment { code: random.next() >> random.below(64), data: random.next() as i64 >> random.below(64) };
        let location = random.next() as usize;
        let mut builder = RuleBuilder::new(alignment, location, false);
        let middle = random.below(length + 1);
        let begun = builder.begin(&mut Cursor { memory: &mut memory, at: start }, start + middle);
        let mut cursor = Cursor { memory: &mut memory, at: start + middle };
        let address = random.next() as usize;
        valid += usize::from(begun.and_then(|()| builder.finish(&mut cursor, start + length, address)).is_some());
    }
    assert!(valid > 1000, "{valid}");
}
