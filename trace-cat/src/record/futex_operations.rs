//! Operations of futex(2), as the column `op` has them.

/// The operation without its options.
const COMMAND: u64 = 0x7f;
/// Options, and how an operation's name shows them.
const OPTIONS: [(u64, &str); 2] = [(0x80, "_PRIVATE"), (0x100, "|FUTEX_CLOCK_REALTIME")];

/// What an operation does, as far as it is known here; waits and wake-ups are events of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FutexOperation {
    /// FUTEX_LOCK_PI, FUTEX_LOCK_PI2: locks the word, after it has waited where that is necessary.
    Lock,
    /// FUTEX_TRYLOCK_PI.
    TryLock,
    /// FUTEX_UNLOCK_PI.
    Unlock,
    /// FUTEX_WAIT_REQUEUE_PI: waits for the word and then for the lock that is the second word.
    WaitForLock,
    /// FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_CMP_REQUEUE_PI, futex_requeue: wakes waiters and moves others to the second word.
    Requeue,
    Other,
}

/// System calls of their own have the call's number as operation.
const CALLS: [(u64, &str); 4] =
    [(449, "futex_waitv"), (454, "futex_wake"), (455, "futex_wait"), (456, "futex_requeue")];

/// What the operation with this number does.
pub fn operation(number: u64) -> FutexOperation {
    let is_call = CALLS.iter().any(|(call, _)| *call == number);
    match if is_call { number } else { number & COMMAND } {
        6 | 13 => FutexOperation::Lock,
        8 => FutexOperation::TryLock,
        7 => FutexOperation::Unlock,
        11 => FutexOperation::WaitForLock,
        3 | 4 | 12 | 456 => FutexOperation::Requeue,
        _ => FutexOperation::Other,
    }
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

/// Whether an operation other than those of `futex_wait` may wait.
pub fn may_wait(number: u64) -> bool {
    matches!(operation(number), FutexOperation::Lock | FutexOperation::WaitForLock)
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
    fn operations_that_lock_wait_or_requeue() {
        let private = libc::FUTEX_PRIVATE_FLAG;
        let requeues = [libc::FUTEX_REQUEUE, libc::FUTEX_CMP_REQUEUE | private, libc::FUTEX_CMP_REQUEUE_PI, 456];
        for (numbers, expected) in [
            (&[libc::FUTEX_LOCK_PI | private, libc::FUTEX_LOCK_PI2][..], FutexOperation::Lock),
            (&[libc::FUTEX_TRYLOCK_PI | private], FutexOperation::TryLock),
            (&[libc::FUTEX_UNLOCK_PI], FutexOperation::Unlock),
            (&[libc::FUTEX_WAIT_REQUEUE_PI | private], FutexOperation::WaitForLock),
            (&requeues, FutexOperation::Requeue),
            // Calls of their own have other numbers that would be these of operations.
            (&[libc::FUTEX_WAKE_OP, 454, 455, 449], FutexOperation::Other),
        ] {
            for number in numbers {
                assert_eq!(operation(*number as u64), expected, "{number}");
                let waits = matches!(expected, FutexOperation::Lock | FutexOperation::WaitForLock);
                assert_eq!(may_wait(*number as u64), waits, "{number}");
            }
        }
    }
}
