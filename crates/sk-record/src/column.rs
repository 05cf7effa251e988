//! Columns: the few types of a table, the buffers that collect rows, and the conversion to and from Parquet.
//!
//! Parquet stores columns, the rest of the code works with rows; this file is the only place where the two meet. It
//! uses the `parquet` crate's column API directly, because the arrow layer would triple what we compile for six flat
//! tables.

use std::ops::Range;

use bytes::Bytes;
use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::schema::types::{Type, TypePtr};
use sk_core::SimTime;

/// The longest text of a cell; a longer one is cut and ends in `…`. Kubernetes' names end at 253 bytes, an owner
/// (`ns/Kind/name`) at 63 + 63 + 253 + 2, the message of an Event at 1,024.
pub const TEXT_MAX_BYTES: usize = 1024;

/// One table's row: its columns, and how to put and take them in that order.
pub trait Row: Sized {
    /// The row with borrowed strings: as it is written, and as it is read.
    type Borrowed<'a>;
    /// The table's name; its file is `<TABLE>.parquet`.
    const TABLE: &'static str;
    /// All columns after `run_id`, in order; derived ones last.
    const COLUMNS: &'static [Column];
    /// Puts one cell per column.
    fn write(cells: &Self::Borrowed<'_>, row: &mut RowWriter<'_>);
    /// Takes one cell per column that is not derived.
    fn read<'a>(row: &mut RowReader<'a>) -> Result<Self::Borrowed<'a>, Malformed>;
    /// The row with texts of its own.
    fn own(borrowed: Self::Borrowed<'_>) -> Self;
}

/// What a column is called and holds.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) optional: bool,
    pub(crate) derived: bool,
    /// How often its values come again.
    pub(crate) spread: Spread,
}

/// How many different values a column has, which decides how it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// A handful, such as phases: a dictionary and runs of numbers, which nothing compresses any further.
    Words,
    /// Some, such as nodes and owners: a dictionary.
    Some,
    /// Hardly a value comes twice: a dictionary of them would only cost.
    Distinct,
}

/// The type of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// TIMESTAMP in microseconds, UTC, on the trace's own clock.
    Time,
    /// 64-bit whole number.
    Int,
    /// 64-bit floating point: lengths in seconds, prices, values of a series.
    Double,
}

impl Column {
    pub(crate) const fn required(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: false, derived: false, spread: Spread::Some }
    }

    pub(crate) const fn optional(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, optional: true, derived: false, spread: Spread::Some }
    }

    /// A length in seconds computed from other columns: written for people's queries, not read back.
    pub(crate) const fn derived(name: &'static str) -> Self {
        Self { name, kind: Kind::Double, optional: true, derived: true, spread: Spread::Some }
    }

    /// Names and uids.
    pub(crate) const fn distinct(self) -> Self {
        Self { spread: Spread::Distinct, ..self }
    }

    /// Strings from a small vocabulary.
    pub(crate) const fn words(self) -> Self {
        Self { spread: Spread::Words, ..self }
    }

    /// How its values are encoded, where Parquet's own choice, a dictionary, is the dearer one: moments come hardly
    /// twice, but each is near the one before.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        match self.kind {
            Kind::Time => Some(Encoding::DELTA_BINARY_PACKED),
            Kind::Text if self.spread == Spread::Distinct => Some(Encoding::PLAIN),
            Kind::Text | Kind::Int | Kind::Double => None,
        }
    }

    pub(crate) fn parquet_type(&self) -> ParquetResult<TypePtr> {
        let (physical, logical) = match self.kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            Kind::Int => (Physical::INT64, None),
            Kind::Double => (Physical::DOUBLE, None),
        };
        let repetition = if self.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = Type::primitive_type_builder(self.name, physical);
        builder.with_repetition(repetition).with_logical_type(logical).build().map(Into::into)
    }

    /// Does a file's column hold what this one should? A file may come from anywhere.
    pub(crate) fn accepts(&self, found: &Type) -> bool {
        let Ok(expected) = self.parquet_type() else { return false };
        found.is_primitive()
            && found.get_physical_type() == expected.get_physical_type()
            && found.get_basic_info().logical_type_ref() == expected.get_basic_info().logical_type_ref()
            && found.is_optional() == self.optional
    }
}

/// The cells of one column that wait to be written or taken. `present` is Parquet's definition level of a flat
/// column: 1 where there is a value, 0 where there is none; empty for a column that always has one.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    values: Values,
    present: Vec<i16>,
    optional: bool,
}

#[derive(Clone, Debug)]
enum Values {
    /// Texts that wait to be written.
    Gathered(Texts),
    /// Texts as they were read.
    Text(Vec<ByteArray>),
    Int(Vec<i64>),
    Double(Vec<f64>),
}

/// Texts one behind the other, so that a row allocates nothing.
#[derive(Clone, Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    /// The byte range of each; a row group's texts are far below 4 GiB.
    places: Vec<(u32, u32)>,
}

impl Texts {
    /// A text like the one above it, which most are, shares its bytes.
    fn push(&mut self, text: &str) {
        let place = match self.places.last() {
            Some(last) if self.bytes.get(range(*last)) == Some(text.as_bytes()) => *last,
            _ => self.add(text),
        };
        self.places.push(place);
    }

    fn add(&mut self, text: &str) -> (u32, u32) {
        let start = self.end();
        if text.len() <= TEXT_MAX_BYTES {
            self.bytes.extend_from_slice(text.as_bytes());
        } else {
            let (text, mark) = cut(text);
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.extend_from_slice(mark.as_bytes());
        }
        (start, self.end())
    }

    fn end(&self) -> u32 {
        u32::try_from(self.bytes.len()).expect("a row group is closed at ROW_GROUP_TEXT_BYTES")
    }

    /// The texts as Parquet takes them: parts of one buffer.
    fn values(&self) -> Vec<ByteArray> {
        let all = Bytes::copy_from_slice(&self.bytes);
        self.places.iter().map(|place| ByteArray::from(all.slice(range(*place)))).collect()
    }
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

impl Values {
    fn push_text(&mut self, text: &str) {
        if let Self::Gathered(texts) = self {
            texts.push(text);
        }
    }

    fn push_int(&mut self, value: i64) {
        if let Self::Int(values) = self {
            values.push(value);
        }
    }

    fn push_double(&mut self, value: f64) {
        if let Self::Double(values) = self {
            values.push(value);
        }
    }

    fn as_text(&self) -> &[ByteArray] {
        if let Self::Text(values) = self { values } else { &[] }
    }

    fn as_int(&self) -> &[i64] {
        if let Self::Int(values) = self { values } else { &[] }
    }

    fn as_double(&self) -> &[f64] {
        if let Self::Double(values) = self { values } else { &[] }
    }
}

impl Cells {
    /// For a column to be written.
    pub(crate) fn to_write(column: &Column) -> Self {
        Self::new(column, Values::Gathered(Texts::default()))
    }

    /// For a column to be read.
    pub(crate) fn to_read(column: &Column) -> Self {
        Self::new(column, Values::Text(Vec::new()))
    }

    fn new(column: &Column, texts: Values) -> Self {
        let values = match column.kind {
            Kind::Text => texts,
            Kind::Time | Kind::Int => Values::Int(Vec::new()),
            Kind::Double => Values::Double(Vec::new()),
        };
        Self { values, present: Vec::new(), optional: column.optional }
    }

    pub(crate) fn clear(&mut self) {
        self.present.clear();
        match &mut self.values {
            Values::Gathered(texts) => {
                texts.bytes.clear();
                texts.places.clear();
            }
            Values::Text(values) => values.clear(),
            Values::Int(values) => values.clear(),
            Values::Double(values) => values.clear(),
        }
    }

    /// Writes all cells as (a part of) one column chunk.
    pub(crate) fn write_to(&self, writer: &mut ColumnWriter<'_>) -> ParquetResult<()> {
        let present = self.optional.then_some(self.present.as_slice());
        match (&self.values, writer) {
            (Values::Gathered(texts), ColumnWriter::ByteArrayColumnWriter(to)) => {
                to.write_batch(&texts.values(), present, None)?
            }
            (Values::Int(values), ColumnWriter::Int64ColumnWriter(to)) => to.write_batch(values, present, None)?,
            (Values::Double(values), ColumnWriter::DoubleColumnWriter(to)) => to.write_batch(values, present, None)?,
            _ => return Err(ParquetError::General("a column's cells and its schema differ in type".into())),
        };
        Ok(())
    }

    /// Reads up to `rows` more cells; answers how many came.
    pub(crate) fn read_from(&mut self, reader: &mut ColumnReader, rows: usize) -> ParquetResult<usize> {
        let present = self.optional.then_some(&mut self.present);
        let (records, ..) = match (&mut self.values, reader) {
            (Values::Text(values), ColumnReader::ByteArrayColumnReader(from)) => {
                from.read_records(rows, present, None, values)?
            }
            (Values::Int(values), ColumnReader::Int64ColumnReader(from)) => {
                from.read_records(rows, present, None, values)?
            }
            (Values::Double(values), ColumnReader::DoubleColumnReader(from)) => {
                from.read_records(rows, present, None, values)?
            }
            _ => return Err(ParquetError::General("a column's cells and its schema differ in type".into())),
        };
        Ok(records)
    }
}

/// Takes the cells of one row, column by column, in the order of [`Row::COLUMNS`].
#[derive(Debug)]
pub struct RowWriter<'a> {
    columns: std::slice::IterMut<'a, Cells>,
    text_bytes: usize,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(columns: &'a mut [Cells]) -> Self {
        Self { columns: columns.iter_mut(), text_bytes: 0 }
    }

    /// How much text the row held: the part of a row's size that varies.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.opt_text(Some(text))
    }

    pub(crate) fn opt_text(&mut self, text: Option<&str>) -> &mut Self {
        self.text_bytes += text.map_or(0, |text| text.len().min(TEXT_MAX_BYTES));
        self.put(text, Values::push_text)
    }

    pub(crate) fn time(&mut self, time: SimTime) -> &mut Self {
        self.opt_time(Some(time))
    }

    pub(crate) fn opt_time(&mut self, time: Option<SimTime>) -> &mut Self {
        self.put(time.map(SimTime::as_micros), Values::push_int)
    }

    pub(crate) fn int(&mut self, value: i64) -> &mut Self {
        self.put(Some(value), Values::push_int)
    }

    pub(crate) fn opt_int(&mut self, value: Option<i64>) -> &mut Self {
        self.put(value, Values::push_int)
    }

    pub(crate) fn opt_double(&mut self, value: Option<f64>) -> &mut Self {
        self.put(value, Values::push_double)
    }

    /// A cell of the wrong type is not stored; the column is then shorter than its neighbours and Parquet refuses the
    /// row group. Only a [`Row`] whose `write` and `COLUMNS` disagree can get there.
    fn put<T>(&mut self, value: Option<T>, push: impl Fn(&mut Values, T)) -> &mut Self {
        if let Some(cells) = self.columns.next() {
            if cells.optional {
                cells.present.push(i16::from(value.is_some()));
            }
            if let Some(value) = value {
                push(&mut cells.values, value);
            }
        }
        self
    }
}

/// Cuts a text to [`TEXT_MAX_BYTES`], visibly and between characters: what is left of it, and the mark behind it.
fn cut(text: &str) -> (&str, &'static str) {
    const MARK: &str = "…";
    if text.len() <= TEXT_MAX_BYTES {
        return (text, "");
    }
    let mut end = TEXT_MAX_BYTES - MARK.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], MARK)
}

/// A cell that cannot be what its column says. The reader adds table and row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub(crate) column: &'static str,
    pub(crate) problem: String,
}

/// A batch of rows in columns, taken row by row.
#[derive(Debug)]
pub(crate) struct Batch {
    columns: Vec<(Column, Cells, Cursor)>,
    rows: usize,
    taken: usize,
}

#[derive(Debug, Default)]
struct Cursor {
    row: usize,
    value: usize,
    /// Nobody wants to know: cells are empty, or nothing where that is possible.
    is_left_out: bool,
}

impl Batch {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let columns = columns.iter().map(|column| (*column, Cells::to_read(column), Cursor::default())).collect();
        Self { columns, rows: 0, taken: 0 }
    }

    /// Lets a column of texts be empty instead of reading it, or one that is optional have nothing.
    pub(crate) fn leave_out(&mut self, name: &str) {
        for (column, _, cursor) in &mut self.columns {
            cursor.is_left_out |= column.name == name && (column.optional || column.kind == Kind::Text);
        }
    }

    /// Is the column at this place read?
    pub(crate) fn reads(&self, place: usize) -> bool {
        self.columns.get(place).is_some_and(|(.., cursor)| !cursor.is_left_out)
    }

    /// Replaces the rows by up to `limit` next ones; `readers` stand in the order of the columns that are read.
    pub(crate) fn refill(&mut self, readers: &mut [ColumnReader], limit: usize) -> ParquetResult<()> {
        let mut counts = Vec::with_capacity(readers.len());
        let read = self.columns.iter_mut().filter(|(.., cursor)| !cursor.is_left_out);
        for ((_, cells, cursor), reader) in read.zip(readers) {
            cells.clear();
            *cursor = Cursor::default();
            counts.push(cells.read_from(reader, limit)?);
        }
        self.taken = 0;
        self.rows = counts.first().copied().unwrap_or(0);
        if counts.iter().any(|count| *count != self.rows) {
            return Err(ParquetError::General("its columns differ in length".into()));
        }
        Ok(())
    }

    /// Are there rows left to take?
    pub(crate) fn has_rows(&self) -> bool {
        self.taken < self.rows
    }

    /// Takes one row.
    pub(crate) fn next<R: Row>(&mut self) -> Result<R::Borrowed<'_>, Malformed> {
        self.taken += 1;
        R::read(&mut RowReader { columns: self.columns.iter_mut() })
    }
}

/// Hands out the cells of one row, column by column, in the order of [`Row::COLUMNS`].
#[derive(Debug)]
pub struct RowReader<'a> {
    columns: std::slice::IterMut<'a, (Column, Cells, Cursor)>,
}

impl<'a> RowReader<'a> {
    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        self.required(Self::opt_text_named)
    }

    pub(crate) fn opt_text(&mut self) -> Result<Option<&'a str>, Malformed> {
        self.opt_text_named().map(|(_, text)| text)
    }

    pub(crate) fn time(&mut self) -> Result<SimTime, Malformed> {
        self.int().map(SimTime::from_micros)
    }

    pub(crate) fn opt_time(&mut self) -> Result<Option<SimTime>, Malformed> {
        self.take(Values::as_int).map(|(_, micros)| micros.copied().map(SimTime::from_micros))
    }

    pub(crate) fn int(&mut self) -> Result<i64, Malformed> {
        self.required(|row| row.take(Values::as_int)).copied()
    }

    pub(crate) fn opt_int(&mut self) -> Result<Option<i64>, Malformed> {
        self.take(Values::as_int).map(|(_, value)| value.copied())
    }

    pub(crate) fn opt_double(&mut self) -> Result<Option<f64>, Malformed> {
        self.take(Values::as_double).map(|(_, value)| value.copied())
    }

    /// One of a few known words.
    pub(crate) fn word<T: Copy>(&mut self, all: &[T], word: fn(T) -> &'static str) -> Result<T, Malformed> {
        self.required(|row| row.opt_word_named(all, word))
    }

    /// One of a few known words, or none.
    pub(crate) fn opt_word<T: Copy>(&mut self, all: &[T], word: fn(T) -> &'static str) -> Result<Option<T>, Malformed> {
        self.opt_word_named(all, word).map(|(_, found)| found)
    }

    fn opt_word_named<T: Copy>(
        &mut self,
        all: &[T],
        word: fn(T) -> &'static str,
    ) -> Result<(&'static str, Option<T>), Malformed> {
        let (column, text) = self.opt_text_named()?;
        let Some(text) = text else { return Ok((column, None)) };
        match all.iter().find(|one| word(**one) == text) {
            Some(found) => Ok((column, Some(*found))),
            None => Err(Malformed { column, problem: format!("`{text}` is not a known value") }),
        }
    }

    fn opt_text_named(&mut self) -> Result<(&'static str, Option<&'a str>), Malformed> {
        let next = self.columns.as_slice().first();
        let is_empty = next.is_some_and(|(column, _, cursor)| !column.optional && cursor.is_left_out);
        let (column, bytes) = self.take(Values::as_text)?;
        let Some(bytes) = bytes else { return Ok((column, is_empty.then_some(""))) };
        let text = std::str::from_utf8(bytes.data());
        let text = text.map_err(|_| Malformed { column, problem: "the text is not UTF-8".into() })?;
        Ok((column, Some(text)))
    }

    fn required<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<(&'static str, Option<T>), Malformed>,
    ) -> Result<T, Malformed> {
        let (column, value) = take(self)?;
        value.ok_or_else(|| Malformed { column, problem: "the cell is empty".into() })
    }

    fn take<T>(&mut self, typed: impl Fn(&'a Values) -> &'a [T]) -> Result<(&'static str, Option<&'a T>), Malformed> {
        let no_column = || Malformed { column: "?", problem: "the table has no more columns".into() };
        let (column, cells, cursor) = self.columns.next().ok_or_else(no_column)?;
        let present = !cells.optional || cells.present.get(cursor.row).copied().unwrap_or(0) == 1;
        cursor.row += 1;
        if !present || cursor.is_left_out {
            return Ok((column.name, None));
        }
        let value = typed(&cells.values).get(cursor.value);
        cursor.value += 1;
        Ok((column.name, value))
    }
}
