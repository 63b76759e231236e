//! Operations of futex(2), as the column `op` has them.

/// The operation without its options.
const COMMAND: u64 = 0x7f;
/// Options, and how an operation's name shows them.
const OPTIONS: [(u64, &str); 2] = [(0x80, "_PRIVATE"), (0x100, "|FUTEX_CLOCK_REALTIME")];

/// Operations whose call locks the word, or waits until it is locked for the caller: FUTEX_LOCK_PI, FUTEX_LOCK_PI2.
const LOCKS: [u64; 2] = [6, 13];
const UNLOCK_PI: u64 = 7;
/// FUTEX_WAIT_REQUEUE_PI, which waits for a condition and then for the lock.
const WAIT_REQUEUE_PI: u64 = 11;
/// System calls of their own have the call's number as operation.
const CALLS: [(u64, &str); 4] =
    [(449, "futex_waitv"), (454, "futex_wake"), (455, "futex_wait"), (456, "futex_requeue")];

fn command(operation: u64) -> Option<u64> {
    let is_call = CALLS.iter().any(|(number, _)| *number == operation);
    (!is_call).then_some(operation & COMMAND)
}

/// What an operation is called in C, if it is known.
pub fn operation_name(operation: u64) -> Option<String> {
    if let Some((_, name)) = CALLS.iter().find(|(number, _)| *number == operation) {
        return Some((*name).to_owned());
    }
    let known = COMMAND | OPTIONS.iter().fold(0, |bits, (bit, _)| bits | bit);
    let name = NAMES.get(usize::try_from(operation & COMMAND).ok()?)?;
    let options: String = OPTIONS.iter().filter(|(bit, _)| operation & bit != 0).map(|(_, name)| *name).collect();
    (operation & !known == 0).then(|| format!("FUTEX_{name}{options}"))
}

/// Whether an operation locks the word, after it has waited where that is necessary.
pub fn locks(operation: u64) -> bool {
    command(operation).is_some_and(|command| LOCKS.contains(&command))
}

/// Whether an operation gives up the word that another one has locked.
pub fn unlocks(operation: u64) -> bool {
    command(operation) == Some(UNLOCK_PI)
}

/// Whether an operation other than those of `futex_wait` may wait.
pub fn may_wait(operation: u64) -> bool {
    locks(operation) || command(operation) == Some(WAIT_REQUEUE_PI)
}

/// By number.
#[rustfmt::skip]
static NAMES: [&str; 14] = [
    "WAIT", "WAKE", "FD", "REQUEUE", "CMP_REQUEUE", "WAKE_OP", "LOCK_PI", "UNLOCK_PI", "TRYLOCK_PI", "WAIT_BITSET",
    "WAKE_BITSET", "WAIT_REQUEUE_PI", "CMP_REQUEUE_PI", "LOCK_PI2",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernels_header() {
        let named = |operation: i32| operation_name(operation as u64).unwrap_or_default();
        for (operation, name) in [
            (libc::FUTEX_WAIT, "FUTEX_WAIT"),
            (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, "FUTEX_WAKE_PRIVATE"),
            (libc::FUTEX_CMP_REQUEUE_PI, "FUTEX_CMP_REQUEUE_PI"),
            (libc::FUTEX_LOCK_PI2 | libc::FUTEX_PRIVATE_FLAG, "FUTEX_LOCK_PI2_PRIVATE"),
            (0x189, "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME"),
            (libc::SYS_futex_waitv as i32, "futex_waitv"),
            (456, "futex_requeue"),
            (14, ""),
            (0x200, ""),
        ] {
            assert_eq!(named(operation), name);
        }
    }

    #[test]
    fn operations_that_lock_or_wait() {
        let private = libc::FUTEX_PRIVATE_FLAG;
        let all = [
            libc::FUTEX_LOCK_PI | private,
            libc::FUTEX_LOCK_PI2,
            libc::FUTEX_WAIT_REQUEUE_PI,
            libc::FUTEX_UNLOCK_PI,
            454,
        ];
        assert_eq!(all.map(|operation| locks(operation as u64)), [true, true, false, false, false]);
        assert_eq!(all.map(|operation| unlocks(operation as u64)), [false, false, false, true, false]);
        assert_eq!(all.map(|operation| may_wait(operation as u64)), [true, true, true, false, false]);
    }
}
