//! How many rounds of what, their seeds and their progress.

use std::env;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::harness::SeededRandom;

/// What is repeated.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Kills,
    Exits,
    /// Of [`super::storm::FORKS`] forks each.
    Storms,
    Crowds,
    Rewritten,
}

impl Kind {
    /// The test's name, to run it alone.
    fn test(self) -> &'static str {
        ["kills", "exits", "storms", "crowds", "rewritten"][self as usize]
    }

    /// The rounds for `make test` and `make soak`, or those that `THREADT_SOAK` sets.
    fn rounds(self) -> u64 {
        let wanted = env::var("THREADT_SOAK").unwrap_or_else(|_| "short".to_owned());
        let counts: Vec<u64> = match wanted.as_str() {
            "short" => vec![30, 30, 1, 2, 4],
            "long" => vec![1000, 1000, 25, 100, 500],
            counts => counts.split(':').map_while(|count| count.parse().ok()).collect(),
        };
        assert_eq!(counts.len(), 5, "THREADT_SOAK is short, long or KILLS:EXITS:STORMS:CROWDS:REWRITTEN");
        counts[self as usize]
    }

    /// What `THREADT_SOAK` has to be for one round.
    fn one_round(self) -> &'static str {
        ["1:0:0:0:0", "0:1:0:0:0", "0:0:1:0:0", "0:0:0:1:0", "0:0:0:0:1"][self as usize]
    }
}

/// The first round's seed: `THREADT_SEED`, or another one each time. Each further round's is one more.
fn first_seed() -> u64 {
    match env::var("THREADT_SEED") {
        Ok(text) => text.parse().expect("THREADT_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64,
    }
}

/// Runs the rounds; `round` returns how many records it checked. Prints the progress every fifty rounds.
pub fn run(kind: Kind, round: impl Fn(&mut SeededRandom) -> u64) {
    let (rounds, first) = (kind.rounds(), first_seed());
    let (test, begin) = (kind.test(), Instant::now());
    let mut records = 0;
    println!("{test}: {rounds} rounds from THREADT_SEED={first} on");
    for done in 0..rounds {
        let this = Round { kind, seed: first + done };
        records += round(&mut SeededRandom::of(this.seed));
        if (done + 1) % 50 == 0 || done + 1 == rounds {
            let seconds = begin.elapsed().as_secs();
            println!("{test}: {} of {rounds}, seed {}, {records} records checked, {seconds} s", done + 1, this.seed);
        }
    }
}

/// The round that runs. It prints how to repeat it if it fails.
struct Round {
    kind: Kind,
    seed: u64,
}

impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Round { kind, seed } = self;
            let (only, test) = (kind.one_round(), kind.test());
            eprintln!("{test}: seed {seed} failed. The same random once more (the machine adds its own chance):");
            eprintln!("  THREADT_SEED={seed} THREADT_SOAK={only} cargo test -p tests -- --nocapture soak::{test}");
        }
    }
}
