//! Arrows from a thread to one that it created, from an ended thread to who joined it, and from a fork to the child.

use super::scene::TimelineScene;
use crate::report::contention::TimelineEvent;

/// An end of such an arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFlow {
    pub thread: u32,
    pub time: u64,
    /// What the thread does there.
    pub name: String,
}

impl ThreadFlow {
    /// Both ends of the arrow that an event stands for.
    pub fn ends(event: &TimelineEvent, scene: &TimelineScene) -> Option<[ThreadFlow; 2]> {
        let label = |thread: u32| scene.names.thread_label(thread);
        let end = |thread, time, name: String| ThreadFlow { thread, time, name };
        Some(match *event {
            TimelineEvent::Creation { creator, created, time } => {
                let begin = scene.thread(created).begin.max(time);
                [end(creator, time, format!("creates {}", label(created))), end(created, begin, "begins".to_owned())]
            }
            TimelineEvent::Join { joiner, joined, time } => {
                let last = scene.thread(joined).last.min(time);
                [end(joined, last, "ends".to_owned()), end(joiner, time, format!("joined {}", label(joined)))]
            }
            TimelineEvent::Fork { parent, child, forked_at, time } => {
                let pid = scene.process_of(child).pid;
                let from = end(parent, forked_at.unwrap_or(time), format!("forks {pid}"));
                [from, end(child, time, "begins".to_owned())]
            }
            _ => return None,
        })
    }
}
