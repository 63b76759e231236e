//! Which threads open files at this moment while others must not close what they rely on: the placeholders of `standard_numbers`.
//!
//! One thread at a time has the *turn*; the others wait for its end. One that has waited in vain opens its file beside it: the other may
//! hang in a file system, or be stopped by a debugger. Then whoever is done last closes what all of them have left. Either an opener
//! finds that somebody is closing, and waits until that is done, or who wants to close finds the opener, and leaves it to that one.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU8, AtomicU64, fence};

use super::hold::{Hold, Holder};
use super::signals::BlockedSignals;
use super::stack::stack_pointer;
use super::time::sleep;

/// For how long, in nanoseconds, a thread waits before it tries again, and how often it tries: 20 ms at least, some 120 as kernels sleep.
const PAUSE: i64 = 10_000;
const PATIENCE: u32 = 2000;

/// The right to open files. Several rights are had at a time where somebody has waited in vain.
#[derive(Debug)]
pub struct Opener {
    hold: Hold,
    /// Who had it when somebody waited for its end in vain. Nobody waits for the same one again.
    waited_for_in_vain: AtomicU64,
}

/// The first is the turn. A stopped file system may keep many.
static OPENERS: [Opener; 32] = [const { Opener { hold: Hold::new(), waited_for_in_vain: AtomicU64::new(0) } }; 32];
/// The right to close what openers have left.
static CLOSING: Opener = Opener { hold: Hold::new(), waited_for_in_vain: AtomicU64::new(0) };
/// What that is; 0 if there is nothing.
static LEFT: AtomicU8 = AtomicU8::new(0);

impl Opener {
    /// Takes it, and says whether the one that had it has left it by a jump, or is gone; `None` if another thread has it.
    #[inline(always)]
    fn take(&self, lwp: u32) -> Option<bool> {
        let before = self.hold.holder();
        self.hold.take().then(|| before.is_some_and(|before| before.is_abandoned(lwp, stack_pointer())))
    }

    fn give_up_waiting(&self) {
        self.waited_for_in_vain.store(self.hold.holder().map_or(0, Holder::word), Relaxed);
    }

    fn is_waited_for_in_vain(&self) -> bool {
        self.hold.holder().is_some_and(|holder| holder.word() == self.waited_for_in_vain.load(Relaxed))
    }

    /// Whether its holder opens a file at this moment. The thread `lwp` asks, the calling one.
    fn is_used(&self, lwp: u32) -> bool {
        self.hold.holder().is_some_and(|holder| !holder.is_abandoned(lwp, stack_pointer()))
    }

    /// Gives it up. Before, `close` closes what all openers have left, unless there are others.
    #[inline(always)]
    pub fn leave(&self, lwp: u32, close: impl Fn(u8)) {
        let may_close = wait_for_closing(|| CLOSING.hold.take());
        if may_close {
            close_left_unless(|| is_any_used(lwp, Some(self)), &close);
        }
        // Before the right to close: who gets that must not find this opener, which closes nothing any more.
        self.release();
        if may_close {
            CLOSING.release();
        }
        // Who has waited in vain for the end of the closing leaves it to whoever is seen to be done last.
        while has_left() && !is_any_used(lwp, None) && CLOSING.hold.take() {
            close_left_unless(|| is_any_used(lwp, None), &close);
            CLOSING.release();
        }
    }

    fn release(&self) {
        if self.waited_for_in_vain.load(Relaxed) != 0 {
            // The next turn from the same place of the stack has the same word.
            self.waited_for_in_vain.store(0, Relaxed);
        }
        self.hold.release();
    }
}

/// Whether there is another opener than `own`.
fn is_any_used(lwp: u32, own: Option<&Opener>) -> bool {
    OPENERS.iter().any(|opener| own.is_none_or(|own| !core::ptr::eq(own, opener)) && opener.is_used(lwp))
}

/// Closes what openers have left, unless there are others who will do that. The caller has [`CLOSING`].
fn close_left_unless(is_any_used: impl Fn() -> bool, close: impl Fn(u8)) {
    // ORDERING: see `enter`.
    fence(SeqCst);
    if has_left() && !is_any_used() {
        close(LEFT.swap(0, SeqCst));
    }
}

/// Notes what is to be closed when no thread is an opener any more. The caller is one, or its leaving follows.
pub fn note_left(left: u8) {
    if left != 0 {
        LEFT.fetch_or(left, SeqCst);
    }
}

fn has_left() -> bool {
    // ORDERING: SeqCst, as `note_left`, after which its caller gives up its opener, and `Opener::leave`, where that comes before.
    fence(SeqCst);
    LEFT.load(SeqCst) != 0
}

/// Makes the thread `lwp`, the calling one, an opener; also the signals that wait until it is none. `None` in a handler that has interrupted
/// it while it was one, and where too many have waited in vain. `unknown` is left where somebody has left without closing.
#[inline(always)]
pub fn enter(lwp: u32, unknown: u8) -> (Option<&'static Opener>, Option<BlockedSignals>) {
    let [turn, others @ ..] = &OPENERS;
    for tries_left in (0..PATIENCE).rev() {
        // Anew each time: they come meanwhile if this has to wait.
        let blocked = BlockedSignals::unless_others_get_them();
        if is_interrupted(lwp) {
            return (None, blocked);
        }
        let mut taken = turn.take(lwp).map(|is_left| (turn, is_left));
        if taken.is_none() && tries_left == 0 {
            turn.give_up_waiting();
        }
        if taken.is_none() && (tries_left == 0 || turn.is_waited_for_in_vain()) {
            taken = others.iter().find_map(|other| Some((other, other.take(lwp)?)));
        }
        if let Some((opener, is_left)) = taken {
            if is_left {
                note_left(unknown);
            }
            // ORDERING: SeqCst between the taking of the opener and the look at `CLOSING`, here, and between the taking of `CLOSING` and the
            // look at the openers, there: one of two threads sees the other.
            fence(SeqCst);
            wait_for_closing(|| !CLOSING.is_used(lwp));
            return (Some(opener), blocked);
        }
        drop(blocked);
        sleep(PAUSE);
    }
    (None, BlockedSignals::unless_others_get_them())
}

/// Asks until the answer is yes, but not for ever, and not again while the same thread closes; whether it was.
#[inline(always)]
fn wait_for_closing(is_so: impl Fn() -> bool) -> bool {
    for _ in 0..PATIENCE {
        if is_so() {
            return true;
        }
        if CLOSING.is_waited_for_in_vain() {
            return false;
        }
        sleep(PAUSE);
    }
    CLOSING.give_up_waiting();
    false
}

/// All openers, and who closes what they have left.
fn all() -> impl Iterator<Item = &'static Opener> {
    OPENERS.iter().chain([&CLOSING])
}

/// Whether the calling thread, `lwp`, is in a handler that has interrupted it while it was an opener.
fn is_interrupted(lwp: u32) -> bool {
    let is_own = |opener: &Opener| opener.hold.holder().is_some_and(|holder| holder.lwp() == lwp);
    all().any(|opener| is_own(opener) && opener.is_used(lwp))
}

/// Whether the thread `lwp` is one, or closes what they have left, also if it has left by a jump.
pub fn contain(lwp: u32) -> bool {
    all().filter_map(|opener| opener.hold.holder()).any(|holder| holder.lwp() == lwp)
}

/// Whether there are others than the thread `lwp`, or one closes what they have left. Not those for whose end somebody has waited in vain.
pub fn contain_others(lwp: u32) -> bool {
    let is_another = |opener: &Opener| opener.hold.holder().is_some_and(|holder| holder.lwp() != lwp);
    all().any(|opener| is_another(opener) && !opener.is_waited_for_in_vain())
}

/// Notes that somebody has waited in vain for the end of all there are now.
pub fn give_up_waiting() {
    all().for_each(Opener::give_up_waiting);
}

/// Ends what the thread `lwp`, the calling one, has left by a jump; `is_left` says of what it holds whether it has left it. Then `unknown`
/// is left, and `close` closes what is left of all openers, as in [`Opener::leave`].
pub fn leave_abandoned(lwp: u32, is_left: impl Fn(Holder) -> bool, unknown: u8, close: impl Fn(u8)) {
    let is_abandoned = |opener: &&Opener| opener.hold.holder().is_some_and(&is_left);
    if is_abandoned(&&CLOSING) {
        // What it has not closed is the next one's.
        note_left(unknown);
        CLOSING.release();
    }
    for opener in OPENERS.iter().filter(is_abandoned) {
        note_left(unknown);
        opener.leave(lwp, &close);
    }
}

/// In a forked child: forgets all but those that a handler has interrupted which has forked, as `is_live` says: they are the thread's that
/// is `new_lwp` now. Whether there is such a one: if there were others, `unknown` is left for it; else nothing is left.
pub fn forget_inherited(is_live: impl Fn(Holder) -> bool, new_lwp: u32, unknown: u8) -> bool {
    let mut were_others = false;
    // What is so already is not written to: the kernel would copy its page.
    for (opener, holder) in all().filter_map(|opener| Some((opener, opener.hold.holder()?))) {
        if is_live(holder) {
            opener.hold.hand_on(holder.of_thread(new_lwp));
        } else {
            were_others = true;
            opener.release();
        }
    }
    let is_any = contain(new_lwp);
    if is_any && were_others {
        note_left(unknown);
    } else if !is_any && has_left() {
        LEFT.store(0, Relaxed);
    }
    is_any
}
