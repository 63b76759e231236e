//! A small analysis, for tests of the outputs.

use std::collections::HashMap;

use super::document::write_document;
use super::view::ReportView;
use crate::report::contention::{
    Analysis, AnalysisParts, ContentionShares, Knowledge, NumericRecord, WaitGraph, WaitSelection,
};
use crate::report::process_info::ProcessInfo;
use crate::report::recorded_process::RecordedProcess;
use crate::symbols::Symbolizer;

/// What a view is made of.
pub struct SampleView {
    pub analysis: Analysis,
    graph: WaitGraph,
    pub recorded: HashMap<u32, RecordedProcess>,
    pub known: HashMap<u32, ProcessInfo>,
    symbols: Symbolizer,
}

/// Process 1 runs `/bin/a b`. LWPs 1 and 2 hold the mutex at 0x10 while 2 and 3 wait for it.
pub const WAITS: &str = "\
    10:1:02:02:1:0x10:0:0:0:0x1500\n10:1:02:02:2:0:0:0:0:0\n\
    20:2:02:02:1:0x10:0:0:0:0x1600\n30:3:02:30:1:0x10:0:99:0:0\n\
    45:1:02:04:0:0x10:0:1:0:0\n50:2:02:02:2:0:1:0:0:0\n\
    60:3:02:30:2:110:1:0:0:0\n90:2:02:04:0:0x10:0:0:0:0\n";
/// The trinfo of process 1.
pub const INFO: &str = "format 1\npid 1\nexe /bin/a b\nmap 0x1000 0x2000 0x500 0a0b0c /bin/a b\n";

impl SampleView {
    /// An analysis of lines without seconds, process and pthread_t.
    pub fn new(lines: &str, info: &str) -> SampleView {
        SampleView::with_knowledge(lines, info, Knowledge::default())
    }

    /// The same if this is known of the records.
    pub fn with_knowledge(lines: &str, info: &str, knowledge: Knowledge) -> SampleView {
        let record = |line: &str| {
            let [time, lwp, event] = line.splitn(3, ':').collect::<Vec<&str>>()[..] else { panic!("{line}") };
            let line = format!("1795174740:{time:0>9}:{lwp:0>7}:0000001:0x{lwp:0>12}:{event}\n");
            NumericRecord::parse(line.as_bytes()).unwrap()
        };
        SampleView::analysed(&lines.lines().map(record).collect::<Vec<_>>(), info, AnalysisParts::ALL, knowledge)
    }

    /// An analysis of these parts of records of process 1.
    pub fn of_records(records: &[NumericRecord], info: &str, parts: AnalysisParts) -> SampleView {
        SampleView::analysed(records, info, parts, Knowledge::default())
    }

    fn analysed(records: &[NumericRecord], info: &str, parts: AnalysisParts, knowledge: Knowledge) -> SampleView {
        let mut analysis = Analysis::new(HashMap::from([(1, knowledge)]), WaitSelection::default());
        analysis.limit_to(parts);
        analysis.shares = Some(ContentionShares::default());
        records.iter().for_each(|record| analysis.add(record));
        let graph = analysis.finish(&[]);
        let mut recorded = RecordedProcess::default();
        recorded.add_text(info.as_bytes());
        let symbols = Symbolizer::new(Vec::new(), &[]);
        SampleView { analysis, graph, recorded: HashMap::from([(1, recorded)]), known: HashMap::new(), symbols }
    }

    pub fn view(&self) -> ReportView<'_> {
        ReportView::new(&self.analysis, &self.graph, &self.recorded, &self.known, &self.symbols)
    }

    /// The document of the report.
    pub fn document(&self) -> serde_json::Value {
        let mut text = Vec::new();
        let write = |bytes: &[u8]| {
            text.extend_from_slice(bytes);
            Ok(())
        };
        write_document(&self.view(), write).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}
