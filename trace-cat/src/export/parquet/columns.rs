//! The columns of the table, in their order, and how the files have them.

use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use ::parquet::errors::Result;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::{ColumnPath, Type};

use self::ColumnType::{Flag, Int32, Int64, Text};
use super::row::Row;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Int32,
    Int64,
    /// The values are numbers of texts.
    Text,
    Flag,
}

/// A column.
pub struct Column {
    pub name: &'static str,
    pub column_type: ColumnType,
    /// It has times, which are near those of the rows before, so that the differences need less space than a dictionary.
    has_times: bool,
    /// Its value in a row, as 64 bits.
    pub value: fn(&Row) -> Option<i64>,
}

const fn column(name: &'static str, column_type: ColumnType, value: fn(&Row) -> Option<i64>) -> Column {
    Column { name, column_type, has_times: false, value }
}

const fn times(name: &'static str, value: fn(&Row) -> Option<i64>) -> Column {
    Column { name, column_type: Int64, has_times: true, value }
}

fn text(id: u32) -> Option<i64> {
    (id != 0).then_some(i64::from(id))
}

/// One of the arguments, as the bit pattern: engines have no unsigned numbers, and results may be negative.
fn argument(row: &Row, index: usize) -> Option<i64> {
    row.record.map(|(_, arguments)| arguments[index] as i64)
}

const TIMESTAMP: &str = "timestamp";
/// Bytes of data in a page: what a reader that knows the page loads for one row.
const PAGE: usize = 64 << 10;
/// The level of zstd: higher ones save little and cost much.
const LEVEL: i32 = 1;

/// All columns.
pub static COLUMNS: [Column; 36] = [
    column("kind", Text, |row| text(row.kind)),
    times(TIMESTAMP, |row| Some(row.time as i64)),
    column("host", Text, |row| text(row.process.host)),
    column("boot", Text, |row| text(row.process.boot)),
    column("program", Text, |row| text(row.process.program)),
    column("build_id", Text, |row| text(row.process.build_id)),
    column("pid", Int32, |row| Some(row.process.pid.into())),
    column("lwp", Int32, |row| Some(row.lwp.into())),
    column("tid", Int64, |row| Some(row.tid as i64)),
    column("event", Text, |row| text(row.event)),
    column("event_number", Int32, |row| {
        let (category, number) = row.event_number;
        (row.event != 0).then_some(i64::from(category) * 100 + i64::from(number))
    }),
    column("which", Int32, |row| row.record.map(|(which, _)| which.into())),
    column("a1", Int64, |row| argument(row, 0)),
    column("a2", Int64, |row| argument(row, 1)),
    column("a3", Int64, |row| argument(row, 2)),
    column("a4", Int64, |row| argument(row, 3)),
    column("a5", Int64, |row| argument(row, 4)),
    times("entry", |row| row.entry.map(|time| time as i64)),
    times("duration", |row| row.duration.map(|time| time as i64)),
    times("waited", |row| row.waited.map(|wait| wait.waited as i64)),
    column("contention", Flag, |row| row.waited.map(|wait| wait.is_contention.into())),
    column("timed_out", Flag, |row| row.waited.map(|wait| wait.has_timed_out.into())),
    column("open", Flag, |row| {
        let can_be = row.record.is_none() || row.duration.is_some() || row.waited.is_some() || row.held.is_some();
        can_be.then_some(row.is_open.into())
    }),
    times("handoff", |row| row.waited.filter(|wait| wait.is_contention).map(|wait| wait.handoff as i64)),
    times("unknown", |row| row.waited.filter(|wait| wait.is_contention).map(|wait| wait.unknown as i64)),
    column("holder", Int32, |row| row.blame.map(|share| share.holder.into())),
    column("holder_site", Text, |row| text(row.blame.map_or(0, |share| share.site))),
    times("blamed", |row| row.blame.map(|share| share.time as i64)),
    column("waker", Int32, |row| row.waited.and_then(|wait| Some(wait.waker?.0.into()))),
    column("waker_site", Text, |row| text(row.waited.and_then(|wait| Some(wait.waker?.1)).unwrap_or(0))),
    times("held", |row| row.held.map(|hold| hold.held as i64)),
    column("held_site", Text, |row| text(row.held.map_or(0, |hold| hold.site))),
    column("object", Text, |row| text(row.object.object)),
    column("object_kind", Text, |row| text(row.object.kind)),
    column("object_name", Text, |row| text(row.object.name)),
    column("site", Text, |row| text(row.site)),
];

impl Column {
    /// Whether all rows have a value.
    pub fn is_required(&self) -> bool {
        matches!(self.name, "kind" | TIMESTAMP | "host" | "pid" | "lwp" | "tid")
    }

    fn schema(&self) -> Result<Type> {
        let (physical, logical) = match self.column_type {
            Int32 => (PhysicalType::INT32, None),
            Int64 => (PhysicalType::INT64, None),
            Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Flag => (PhysicalType::BOOLEAN, None),
        };
        let repetition = if self.is_required() { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        Type::primitive_type_builder(self.name, physical).with_logical_type(logical).with_repetition(repetition).build()
    }
}

/// The schema of a file.
///
/// # Errors
/// None, unless the crate changes what it accepts.
pub fn schema() -> Result<Type> {
    let fields = COLUMNS.iter().map(|column| column.schema().map(Arc::new)).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("threadt").with_fields(fields).build()
}

/// How columns are encoded.
///
/// # Errors
/// None, unless the crate changes what it accepts.
pub fn properties() -> Result<WriterProperties> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("trace-cat version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_column_statistics_enabled(ColumnPath::from(TIMESTAMP), EnabledStatistics::Page)
        .set_data_page_size_limit(PAGE);
    for column in COLUMNS.iter().filter(|column| column.has_times) {
        let path = ColumnPath::from(column.name);
        properties = properties.set_column_dictionary_enabled(path.clone(), false);
        properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}
