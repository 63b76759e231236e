//! Which threads call a lock whose acquisitions are not all recorded, so that each of them may have it unnoticed.

/// The most threads that are kept of a lock.
const USERS_MAX: usize = 64;

/// The threads that called a lock.
#[derive(Debug, Default)]
pub struct LockUsers {
    threads: Vec<u32>,
    are_many: bool,
}

impl LockUsers {
    pub fn note(&mut self, thread: u32) {
        // A thread mostly calls it several times in a row.
        if self.threads.last() == Some(&thread) || self.are_many || self.threads.contains(&thread) {
            return;
        }
        if self.threads.len() == USERS_MAX {
            (self.threads, self.are_many) = (Vec::new(), true);
        } else {
            self.threads.push(thread);
        }
    }

    /// The threads; `None` if there are too many of them.
    pub fn threads(&self) -> Option<&[u32]> {
        (!self.are_many).then_some(&self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_kept_once_and_not_too_many() {
        let mut users = LockUsers::default();
        [5, 5, 7, 5].into_iter().for_each(|thread| users.note(thread));
        assert_eq!(users.threads(), Some(&[5, 7][..]));
        (0..USERS_MAX as u32).for_each(|thread| users.note(thread));
        assert_eq!(users.threads().map(<[u32]>::len), Some(USERS_MAX));
        users.note(99);
        assert_eq!(users.threads(), None);
        users.note(5);
        assert_eq!(users.threads(), None);
    }
}
