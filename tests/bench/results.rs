//! Everything that one run of the benchmark measured.

use crate::figures::Cell;
use crate::ways::Way;
use crate::workloads::Workload;

/// A table of workloads by ways.
#[derive(Debug)]
pub struct Results {
    /// Its rows.
    pub workloads: Vec<Workload>,
    /// Its columns.
    pub ways: Vec<Way>,
    cells: Vec<Cell>,
}

impl Results {
    /// With nothing measured yet.
    pub fn new(workloads: Vec<Workload>, ways: Vec<Way>) -> Results {
        let cells = vec![Cell::Measured(Vec::new()); workloads.len() * ways.len()];
        Results { workloads, ways, cells }
    }

    fn place(&self, workload: &str, way: Way) -> Option<usize> {
        let row = self.workloads.iter().position(|candidate| candidate.name == workload && candidate.has(way))?;
        let column = self.ways.iter().position(|&candidate| candidate == way)?;
        Some(row * self.ways.len() + column)
    }

    /// The runs of a workload in a way; `None` if they were not selected, or make no sense.
    pub fn cell(&self, workload: &str, way: Way) -> Option<&Cell> {
        self.place(workload, way).map(|place| &self.cells[place])
    }

    /// The same, to be added to.
    pub fn cell_mut(&mut self, workload: &str, way: Way) -> Option<&mut Cell> {
        self.place(workload, way).map(|place| &mut self.cells[place])
    }
}
