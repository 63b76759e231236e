//! The graph of waits at a moment of the trace.

use super::analysis::Analysis;
use super::wait_graph::WaitGraph;

/// Who waits for whom at a moment that is asked for, or at the latest one up to which all records are there. The buffers of running
/// processes are read one after the other, so that of a later time some threads' records are there and others' are not.
#[derive(Debug)]
pub struct Moment {
    /// The moment that is asked for, in nanoseconds since the Epoch.
    asked: Option<u64>,
    /// The moment that is shown.
    time: u64,
    graph: Option<WaitGraph>,
}

impl Moment {
    /// The moment that is asked for, if one is, or what is known of it: `complete_until` is when the first buffer of a running
    /// process was read, if one was. `None` if that is the time after the last record.
    pub fn new(asked: Option<u64>, complete_until: Option<u64>) -> Option<Moment> {
        let time = asked.into_iter().chain(complete_until).min()?;
        Some(Moment { asked, time, graph: None })
    }

    /// Takes the time of the next record, before the analysis takes that.
    pub fn pass(&mut self, analysis: &mut Analysis, next: u64) {
        if next > self.time && self.graph.is_none() {
            let graph = WaitGraph::of(analysis);
            graph.objects().for_each(|object| analysis.objects[object as usize].is_named = true);
            self.graph = Some(graph);
        }
    }

    /// The graph at the moment, without what later records refute; `last` is that after the last record of the analysis.
    pub fn graph(self, last: WaitGraph, analysis: &Analysis) -> WaitGraph {
        let mut graph = WaitGraph { moment: self.asked, ..self.graph.unwrap_or(last) };
        graph.confirm(analysis, self.asked.is_none());
        graph
    }
}
