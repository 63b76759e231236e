//! Which parts of an analysis its output shows.

use crate::options::{Figure, ReportFormat, ReportOptions, ReportTable};

/// What is found besides the figures of waits, which each output needs. Nothing is kept for what no output shows. What an output
/// does show is the same whatever other parts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalysisParts {
    /// The order of locks, and the possible deadlocks in it.
    pub lock_order: bool,
    pub critical_paths: bool,
    /// Percentiles of the holds of each object. How many there were, and how long, is known without.
    pub hold_percentiles: bool,
    /// By object: who held it while others waited, and who ended waits.
    pub callers: bool,
    /// Who waited for whom.
    pub pairs: bool,
    /// When the time of waits was, at each site and for each object, which a comparison with another trace needs.
    pub wait_blocks: bool,
}

impl AnalysisParts {
    pub const ALL: AnalysisParts = AnalysisParts {
        lock_order: true,
        critical_paths: true,
        hold_percentiles: true,
        callers: true,
        pairs: true,
        wait_blocks: true,
    };

    pub const NONE: AnalysisParts = AnalysisParts {
        lock_order: false,
        critical_paths: false,
        hold_percentiles: false,
        callers: false,
        pairs: false,
        wait_blocks: false,
    };

    /// What a comparison with a newer trace needs of the older one.
    pub const COMPARED: AnalysisParts = AnalysisParts { wait_blocks: true, ..AnalysisParts::NONE };

    /// What a report with these options shows of its trace.
    pub fn of_report(options: &ReportOptions) -> AnalysisParts {
        let shown = match (options.format, options.by) {
            (ReportFormat::Json | ReportFormat::Html, _) => AnalysisParts { wait_blocks: false, ..AnalysisParts::ALL },
            (ReportFormat::Folded | ReportFormat::Pprof, _) => AnalysisParts::NONE,
            (ReportFormat::Text, _) if options.against.is_some() => AnalysisParts::NONE,
            (ReportFormat::Text, None) => {
                AnalysisParts { lock_order: true, critical_paths: true, callers: true, ..AnalysisParts::NONE }
            }
            (ReportFormat::Text, Some(ReportTable::Object)) => AnalysisParts { callers: true, ..AnalysisParts::NONE },
            (ReportFormat::Csv, None | Some(ReportTable::Object)) => {
                AnalysisParts { hold_percentiles: true, ..AnalysisParts::NONE }
            }
            (ReportFormat::Text | ReportFormat::Csv, Some(ReportTable::Pair)) => {
                AnalysisParts { pairs: true, ..AnalysisParts::NONE }
            }
            (ReportFormat::Text | ReportFormat::Csv, Some(ReportTable::Thread | ReportTable::Site)) => {
                AnalysisParts::NONE
            }
        };
        AnalysisParts {
            lock_order: shown.lock_order || options.fail_if.iter().any(|limit| limit.figure == Figure::Cycles),
            wait_blocks: options.against.is_some(),
            ..shown
        }
    }
}
