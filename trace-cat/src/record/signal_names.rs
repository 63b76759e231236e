//! The names of signals, with the numbers that Linux has on x86 and most other machines.

/// The name of a signal, if it has one.
pub fn signal(number: u64) -> Option<&'static str> {
    let name = NAMES.get(usize::try_from(number).ok()?)?;
    (!name.is_empty()).then_some(name)
}

/// By number; empty for a number without a name.
#[rustfmt::skip]
static NAMES: [&str; 32] = [
    "", "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
    "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",
    "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_systems() {
        for (number, name) in [
            (libc::SIGHUP, "SIGHUP"),
            (libc::SIGUSR1, "SIGUSR1"),
            (libc::SIGTERM, "SIGTERM"),
            (libc::SIGWINCH, "SIGWINCH"),
            (libc::SIGSYS, "SIGSYS"),
        ] {
            assert_eq!(signal(number as u64), Some(name));
        }
        assert_eq!((signal(0), signal(32)), (None, None));
    }
}
