//! The writer of each format.

use super::chrome::ChromeTimeline;
use super::paje::PajeTimeline;
use super::perfetto::PerfettoTimeline;
use super::sink::TimelineSink;
use crate::options::OutputFormat;

/// What writes a timeline in this format.
pub fn timeline_sink(format: OutputFormat) -> Box<dyn TimelineSink> {
    match format {
        OutputFormat::Perfetto => Box::new(PerfettoTimeline::default()),
        OutputFormat::Paje => Box::new(PajeTimeline::default()),
        _ => Box::new(ChromeTimeline::default()),
    }
}
