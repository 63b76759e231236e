//! Colours, for terminals.

use std::env;
use std::io::{self, IsTerminal as _};

/// What a colour highlights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Highlight {
    /// The time.
    Time,
    /// A thread's label. There are few colours, which threads share by their numbers.
    Thread(usize),
    /// An event's name.
    Event,
    /// A result that is an error.
    Error,
    /// An answer, such as that the call blocked.
    Wait,
}

/// Colours of threads. Red is for errors, and yellow for waiting.
const THREADS: [&[u8]; 4] = [b"\x1b[36m", b"\x1b[32m", b"\x1b[35m", b"\x1b[34m"];
/// The sequence that ends every colour.
pub const END: &[u8] = b"\x1b[m";

impl Highlight {
    /// The sequence that begins the colour.
    pub fn begin(self) -> &'static [u8] {
        match self {
            Highlight::Time => b"\x1b[2m",
            Highlight::Thread(number) => THREADS[number % THREADS.len()],
            Highlight::Event => b"\x1b[1m",
            Highlight::Error => b"\x1b[31m",
            Highlight::Wait => b"\x1b[33m",
        }
    }
}

/// Whether the standard output is a terminal on which the user wants colours (<https://no-color.org>).
pub fn is_wanted() -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_none_or(|terminal| terminal == "dumb" || terminal.is_empty());
    !refused && !dumb && io::stdout().is_terminal()
}
