//! What a misuse is, in words.

use crate::record::errno_names::errno;
use crate::report::misuse::MisuseKind;
use crate::report::trace_names::event_name;

/// A sentence about the thread.
pub fn misuse_text(kind: MisuseKind) -> String {
    let text = match kind {
        MisuseKind::UnlockNotOwner => "unlocks what another thread has",
        MisuseKind::DestroyHeld => "destroys what a thread has",
        MisuseKind::DestroyWaited => "destroys what a thread waits for",
        MisuseKind::ExitHolding => "ended and had it",
        MisuseKind::RelockSelf => "waits for what it has itself",
        MisuseKind::CondTwoMutexes => "waits with another mutex than a thread that is waiting",
        MisuseKind::JoinTwice => "joins a thread that was joined",
        MisuseKind::NeverJoined => "ended, and was neither joined nor detached",
        MisuseKind::Error(event, error) => {
            return format!("{} returned {}", event_name(event), errno(u64::from(error)).unwrap_or("an error"));
        }
    };
    text.to_owned()
}
