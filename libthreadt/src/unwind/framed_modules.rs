//! The modules that have a frame on a stack, and so stay loaded while it is walked.
//!
//! They have it if unwind information leads to it from the innermost one. Behind one that a frame pointer has led to, or a word of
//! the stack, there may be none, nor behind the outermost one of a coroutine whose stack is within the thread's own. So they
//! are believed only where nothing else is possible.

/// The identities of the last ones that were met; a stack has few.
#[derive(Clone, Debug, Default)]
pub struct FramedModules {
    identities: [u64; 4],
    count: usize,
}

impl FramedModules {
    pub fn add(&mut self, identity: u64) {
        if self.contain(identity) {
            return;
        }
        if let Some(place) = self.identities.get_mut(self.count & 3) {
            *place = identity;
        }
        self.count = self.count.wrapping_add(1);
    }

    pub fn contain(&self, identity: u64) -> bool {
        self.identities.contains(&identity)
    }
}
