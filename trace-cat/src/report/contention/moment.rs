//! The graph of waits at a moment of the trace.

use super::analysis::Analysis;
use super::wait_graph::WaitGraph;

/// Who waits for whom at a moment.
#[derive(Debug)]
pub struct Moment {
    /// In nanoseconds since the Epoch.
    time: u64,
    graph: Option<WaitGraph>,
}

impl Moment {
    pub fn new(time: u64) -> Moment {
        Moment { time, graph: None }
    }

    /// Takes the time of the next record, before the analysis takes that.
    pub fn pass(&mut self, analysis: &mut Analysis, next: u64) {
        if next > self.time && self.graph.is_none() {
            let graph = WaitGraph::of(analysis);
            graph.objects().for_each(|object| analysis.objects[object as usize].is_named = true);
            self.graph = Some(graph);
        }
    }

    /// The graph at the moment; `last` is that after the last record.
    pub fn graph(self, last: WaitGraph) -> WaitGraph {
        WaitGraph { moment: Some(self.time), ..self.graph.unwrap_or(last) }
    }
}
