//! Rows as columns, and the bytes of these in a file.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use ::parquet::column::writer::ColumnWriterImpl;
use ::parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use ::parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use bytes::Bytes;

use super::columns::{COLUMNS, Column, ColumnType};
use super::row::{Row, TextId};
use super::texts::SharedTexts;

/// The most rows of a group: what a reader that looks for a moment loads, and what is in memory until it is complete.
pub const ROWS: usize = 1 << 17;
/// How many rows are made columns at a time: few enough for the processor's cache.
const BLOCK: usize = 1 << 10;
/// How many threads encode the columns of a group.
const ENCODERS: usize = 2;

/// Rows, most of them as columns.
#[derive(Debug)]
pub struct RowGroup {
    block: Vec<Row>,
    columns: Vec<ColumnValues>,
    rows: usize,
}

/// The values of a column.
#[derive(Debug)]
struct ColumnValues {
    /// 1 for each row that has a value, 0 for the others; empty if all have.
    levels: Vec<i16>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Text(Vec<TextId>),
    Flag(Vec<bool>),
}

impl Default for RowGroup {
    fn default() -> RowGroup {
        let values = |column: &Column| match column.column_type {
            ColumnType::Int32 => Values::Int32(Vec::new()),
            ColumnType::Int64 => Values::Int64(Vec::new()),
            ColumnType::Text => Values::Text(Vec::new()),
            ColumnType::Flag => Values::Flag(Vec::new()),
        };
        let columns = COLUMNS.iter().map(|column| ColumnValues { levels: Vec::new(), values: values(column) });
        RowGroup { block: Vec::new(), columns: columns.collect(), rows: 0 }
    }
}

impl RowGroup {
    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn push(&mut self, row: &Row) {
        self.block.push(*row);
        self.rows += 1;
        if self.block.len() == BLOCK {
            self.divide();
        }
    }

    /// Makes columns of the rows that are none yet.
    pub fn divide(&mut self) {
        for (column, values) in COLUMNS.iter().zip(&mut self.columns) {
            values.extend(column, &self.block);
        }
        self.block.clear();
    }

    /// Writes the rows as a group of a file. All of them are columns.
    ///
    /// # Errors
    /// Any failure of the file.
    pub fn write<W: Write + Send>(&self, file: &mut SerializedFileWriter<W>, texts: &SharedTexts) -> Result<()> {
        let (schema, properties) = (file.schema_descr().columns().to_vec(), file.properties().clone());
        let next = AtomicUsize::new(0);
        let encoded: Vec<_> = self.columns.iter().map(|_| Mutex::new(None)).collect();
        let encode = || {
            loop {
                // ORDERING: the number is all that the threads share here; the results are behind locks.
                let index = next.fetch_add(1, Ordering::Relaxed);
                let (Some(values), Some(place)) = (self.columns.get(index), encoded.get(index)) else { break };
                let mut bytes = TrackedWrite::new(Vec::new());
                let pages = Box::new(SerializedPageWriter::new(&mut bytes));
                let writer = get_column_writer(schema[index].clone(), properties.clone(), pages);
                let closed = values.write(writer, texts);
                let result = closed.and_then(|closed| Ok((closed, Bytes::from(bytes.into_inner()?))));
                *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        };
        thread::scope(|scope| {
            (1..ENCODERS).for_each(|_| _ = scope.spawn(encode));
            encode();
        });
        let mut group = file.next_row_group()?;
        for column in encoded {
            let result = column.into_inner().unwrap_or_else(PoisonError::into_inner);
            let (closed, bytes) = result.unwrap_or_else(|| Err(ParquetError::General("no column".to_owned())))?;
            group.append_column(&bytes, closed)?;
        }
        group.close()?;
        Ok(())
    }
}

impl ColumnValues {
    fn extend(&mut self, column: &Column, rows: &[Row]) {
        let values = &mut self.values;
        let mut put = |value: i64| match values {
            Values::Int32(values) => values.push(value as i32),
            Values::Int64(values) => values.push(value),
            Values::Text(values) => values.push(value as TextId),
            Values::Flag(values) => values.push(value != 0),
        };
        if column.is_required() {
            return rows.iter().for_each(|row| put((column.value)(row).unwrap_or(0)));
        }
        for value in rows.iter().map(column.value) {
            self.levels.push(value.is_some().into());
            value.into_iter().for_each(&mut put);
        }
    }

    fn write(&self, writer: ColumnWriter, texts: &SharedTexts) -> Result<ColumnCloseResult> {
        match (writer, &self.values) {
            (ColumnWriter::Int32ColumnWriter(writer), Values::Int32(values)) => {
                self.write_all::<Int32Type>(writer, values)
            }
            (ColumnWriter::Int64ColumnWriter(writer), Values::Int64(values)) => {
                self.write_all::<Int64Type>(writer, values)
            }
            (ColumnWriter::BoolColumnWriter(writer), Values::Flag(values)) => {
                self.write_all::<BoolType>(writer, values)
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Text(numbers)) => {
                self.write_texts(writer, numbers, texts)
            }
            _ => Err(ParquetError::General("a column has another type than its schema".to_owned())),
        }
    }

    fn write_all<T: DataType>(&self, mut writer: ColumnWriterImpl<T>, values: &[T::T]) -> Result<ColumnCloseResult> {
        writer.write_batch(values, Some(&*self.levels).filter(|levels| !levels.is_empty()), None)?;
        writer.close()
    }

    fn write_texts(
        &self,
        mut writer: ColumnWriterImpl<ByteArrayType>,
        numbers: &[TextId],
        texts: &SharedTexts,
    ) -> Result<ColumnCloseResult> {
        let (mut copies, mut numbers) = (Vec::with_capacity(BLOCK), numbers);
        if self.levels.is_empty() {
            for chunk in numbers.chunks(BLOCK) {
                texts.copy(chunk, &mut copies);
                writer.write_batch(&copies, None, None)?;
            }
            return writer.close();
        }
        for levels in self.levels.chunks(BLOCK) {
            let (chunk, others) = numbers.split_at(levels.iter().map(|level| *level as usize).sum());
            numbers = others;
            texts.copy(chunk, &mut copies);
            writer.write_batch(&copies, Some(levels), None)?;
        }
        writer.close()
    }
}
