//! Random moments, seeded, so that a failure can be tried again.

use std::env;
use std::time::Duration;

/// A splitmix64 generator.
pub struct Moments(u64);

impl Moments {
    /// Prints its seed; `THREADT_SEED` sets another one.
    pub fn seeded() -> Moments {
        let seed = env::var("THREADT_SEED").map_or(20_261_121, |text| text.parse().expect("THREADT_SEED is a number"));
        println!("THREADT_SEED={seed}");
        Moments(seed)
    }

    /// A time shorter than `limit`, which is not 0, in whole microseconds.
    pub fn within(&mut self, limit: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        Duration::from_micros(word % limit.as_micros() as u64)
    }
}
