//! The graph of waits at a moment of the trace.

use spec::event_numbers::{THR_JOIN, THR_TIMEDJOIN};

use super::analysis::Analysis;
use super::numeric_record::NumericRecord;
use super::tables::OngoingCall;
use super::wait_graph::{BlockedThread, WaitGraph};

/// Who waits for whom at a moment that is asked for, or at the latest one up to which all records are there. The buffers of running
/// processes are read one after the other, so that of a later time some threads' records are there and others' are not.
#[derive(Debug)]
pub struct Moment {
    /// The moment that is asked for, in nanoseconds since the Epoch.
    asked: Option<u64>,
    /// The moment that is shown.
    time: u64,
    graph: Option<WaitGraph>,
    /// The threads of its deadlocks whose calls have returned since, in the order of time, and whether they were cancelled.
    returns: Vec<(u32, bool)>,
}

impl Moment {
    /// The moment that is asked for, if one is, or what is known of it: `complete_until` is when the first buffer of a running
    /// process was read, if one was. `None` if that is the time after the last record.
    pub fn new(asked: Option<u64>, complete_until: Option<u64>) -> Option<Moment> {
        let time = asked.into_iter().chain(complete_until).min()?;
        Some(Moment { asked, time, graph: None, returns: Vec::new() })
    }

    /// Takes the next record, before the analysis takes that.
    pub fn pass(&mut self, analysis: &mut Analysis, next: &NumericRecord) {
        if next.time <= self.time {
            return;
        }
        let graph = self.graph.get_or_insert_with(|| {
            analysis.find_counterparts();
            let graph = WaitGraph::of(analysis);
            graph.objects().for_each(|object| analysis.objects[object as usize].is_named = true);
            graph
        });
        if next.which == 2 && !graph.deadlocks.is_empty() {
            let mut blocked = graph.deadlocks.iter().flatten();
            if let Some(blocked) = blocked.find(|blocked| ends(analysis, blocked, next)) {
                // Return records of joins have the result in another column.
                let is_join = matches!(next.event, THR_JOIN | THR_TIMEDJOIN);
                let result = next.arguments[if is_join { 2 } else { 0 }];
                self.returns.push((blocked.thread, result == libc::ECANCELED as u64));
            }
        }
    }

    /// The graph at the moment, without what later records refute; `last` is that after the last record of the analysis. A deadlock of
    /// which the first thread to go on was cancelled is not refuted: nothing else would have ended it.
    pub fn graph(self, last: WaitGraph, analysis: &Analysis) -> WaitGraph {
        let Moment { asked, graph, returns, .. } = self;
        let mut graph = WaitGraph { moment: asked, ..graph.unwrap_or(last) };
        let was_cancelled = |threads: &[BlockedThread]| {
            let is_in_it = |thread: u32| threads.iter().any(|blocked| blocked.thread == thread);
            let first = returns.iter().find(|(thread, _)| is_in_it(*thread));
            asked.is_some() && first.is_some_and(|(_, was_cancelled)| *was_cancelled)
        };
        graph.confirm(analysis, asked.is_none(), was_cancelled);
        graph
    }
}

/// Whether a record is the return record of a blocked thread's call.
fn ends(analysis: &Analysis, blocked: &BlockedThread, record: &NumericRecord) -> bool {
    let BlockedThread { thread, call: OngoingCall { event, entry, .. }, .. } = *blocked;
    let state = &analysis.threads[thread as usize];
    let is_of_thread = state.lwp == record.lwp && analysis.processes[state.process as usize].pid == record.pid;
    is_of_thread
        && event == record.event
        && state.find_open(event).is_some_and(|index| state.open[index].entry == entry)
}
