//! Random numbers from a seed, so that a failed test can be repeated.

use std::env;

/// A splitmix64 generator.
pub struct SeededRandom(u64);

impl SeededRandom {
    /// A generator with the seed of `THREADT_SEED`, or with a fixed one. Prints the seed.
    pub fn seeded() -> SeededRandom {
        let seed = env::var("THREADT_SEED").map_or(20_261_121, |text| text.parse().expect("THREADT_SEED is a number"));
        println!("THREADT_SEED={seed}");
        SeededRandom::of(seed)
    }

    /// A generator with this seed.
    pub fn of(seed: u64) -> SeededRandom {
        SeededRandom(seed)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ word >> 31) % limit
    }
}
