//! The critical path of each process: what its length depends on.
//!
//! It is found as in critical lock analysis (Chen and Stenström, SC'12): from the end of the process backwards, in the thread that
//! ended it. At each wait it goes to the thread that ended the wait, at the time when that did so; at the beginning of a thread, to
//! the thread that created it. So each moment belongs to one thread.
//!
//! ```text
//! contention ──► thread_activities ──► activity_log ──► backward_pass ──► path_segments
//! holds, waits   forwards in time      blocks, files    from the end on   for a picture
//! ```
//!
//! While the records are analysed, `thread_activities` divides the life of each thread into stretches: each ends where a wait
//! begins or ends, or where the thread may end the wait of another one. A stretch has sums of what the thread held during it, so
//! that a thread that locks without waiting makes no stretch for each hold. The path enters and leaves threads only where
//! stretches end.

mod activity;
mod activity_log;
mod backward_pass;
mod path_segments;
mod thread_activities;

pub use activity::WaitEnd;
pub use backward_pass::{CriticalPath, HoldShare, PathOrigin, PathThread};
#[allow(unused_imports, reason = "for pictures of the path")]
pub use path_segments::{PathActivity, PathSegment};
pub use thread_activities::ThreadActivities;
