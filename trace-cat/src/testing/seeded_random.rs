//! Random numbers for tests, whose seed is printed, so that a failure can be reproduced.

use std::time::{Duration, Instant};

/// A xorshift64* generator.
pub struct SeededRandom(u64);

impl SeededRandom {
    /// The generator of test `name`; prints its seed. `THREADT_SEED` replaces `seed`.
    pub fn seeded(name: &str, seed: u64) -> SeededRandom {
        let seed = std::env::var("THREADT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(seed);
        println!("{name}: seed {seed} (set THREADT_SEED to run it again)");
        SeededRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A generator seeded by a number of another one.
    pub fn seeded_by(seed: u64) -> SeededRandom {
        SeededRandom(seed | 1)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number in `0..limit`; `limit` is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    /// Changes, inserts, removes or repeats bytes. `likely` are bytes that matter to the reader under test.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>, likely: &[u8]) {
        let byte = if self.below(4) == 0 { self.next() as u8 } else { likely[self.below(likely.len())] };
        if bytes.is_empty() {
            bytes.push(byte);
            return;
        }
        let at = self.below(bytes.len());
        match self.below(6) {
            0 => bytes.insert(at, byte),
            1 => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => {
                let end = at + self.below(bytes.len() - at);
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => bytes[at] = byte,
        }
    }
}

/// When a random test may end, if `THREADT_FUZZ_SECONDS` sets how long it runs.
pub fn fuzz_time() -> Option<Instant> {
    let seconds = std::env::var("THREADT_FUZZ_SECONDS").ok()?.parse().ok()?;
    Some(Instant::now() + Duration::from_secs(seconds))
}
