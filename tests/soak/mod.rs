//! Ends of processes, in rounds: `make soak` runs thousands of rounds, `make test` some of each kind.
//!
//! `THREADT_SOAK` is `short`, `long` or `KILLS:EXITS:STORMS:CROWDS:REWRITTEN`; `THREADT_SEED` the first round's seed. A round that fails
//! keeps its directory and prints how to repeat it.

mod crowd;
mod exits;
mod rewritten;
mod rounds;
mod storm;

use self::rounds::Kind;
use crate::kill::{self, Death};

/// A kill at a random moment: the trace has a complete record of all that each thread had finished, once.
#[test]
fn kills() {
    rounds::run(Kind::Kills, |random| {
        let unbuffered = random.below(4) == 0;
        let mode = if random.below(3) == 0 { "churn" } else { "steady" };
        match random.below(8) {
            0 => kill::early(random),
            kind => {
                // A buffer has room for a thousand calls of each of four workers.
                let within = if unbuffered { 20_000 } else { [8_000, 40_000, 160_000][kind as usize % 3] };
                kill::one(&Death { mode, unbuffered, within }, random)
            }
        }
    });
}

/// Ended by itself while eight threads run: each call that had returned before the end is there, once.
#[test]
fn exits() {
    rounds::run(Kind::Exits, exits::one);
}

/// Forked in a storm of locks.
#[test]
fn storms() {
    rounds::run(Kind::Storms, storm::one);
}

/// Four hundred threads at once.
#[test]
fn crowds() {
    rounds::run(Kind::Crowds, crowd::one);
}

/// Another process rewrites the buffers.
#[test]
fn rewritten() {
    rounds::run(Kind::Rewritten, rewritten::one);
}
