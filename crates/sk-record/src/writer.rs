//! Writes a record: rows stream into a temporary folder, which gets its name only when it is complete.
//!
//! [`Writer`] takes rows, [`Writer::finish`] closes the tables and returns a [`Staged`] record that can already be
//! read (figures and the report are computed from it and added as files), and [`Staged::publish`] renames it into
//! place. Dropping any of them before that leaves nothing behind. Nothing is fsynced: a run can be repeated.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::column::{Cells, Column, Kind, Row, RowWriter, Spread};
use crate::error::Error;
use crate::folder::{Folder, META_FILE, write_file};
use crate::meta::{Manifest, RECORD_VERSION, RunMeta, TableFile};
use crate::reader::{Run, digest_of, table_file};
use crate::rows::{AutoscalerRow, DecisionRow, EventRow, NodeRow, PodRow, SeriesRow};

/// A row group is closed at this many rows or this much text, whichever comes first. What the six tables hold in
/// memory is then at most 6 × (8 MiB of text + 8,192 rows × 19 columns × 10 bytes per cell ≈ 1.5 MiB) ≈ 57 MiB;
/// in practice, with pods, decisions and events as the wide tables and some 100 bytes of text in a row, about 5 MiB.
const ROW_GROUP_ROWS: usize = 8_192;
const ROW_GROUP_TEXT_BYTES: usize = 8 << 20;

/// What `run_id` is called, as a column and in a table's key-value metadata.
pub(crate) const RUN_ID: &str = "run_id";

/// The first column of every table.
const RUN_IDS: Column = Column::required(RUN_ID, Kind::Text).words();

/// Takes the rows of one run, in any order that does not depend on chance.
#[derive(Debug)]
pub struct Writer {
    folder: Folder,
    run_id: String,
    pods: Table,
    nodes: Table,
    series: Table,
    decisions: Table,
    autoscaler: Table,
    events: Table,
}

impl Writer {
    /// Begins a record that will be published as the folder `dir`. Nothing appears there before [`Staged::publish`].
    pub fn create(dir: &Path, run_id: &str) -> Result<Self, Error> {
        let folder = Folder::create(dir)?;
        Ok(Self {
            pods: Table::create::<PodRow>(folder.staging(), run_id)?,
            nodes: Table::create::<NodeRow>(folder.staging(), run_id)?,
            series: Table::create::<SeriesRow>(folder.staging(), run_id)?,
            decisions: Table::create::<DecisionRow>(folder.staging(), run_id)?,
            autoscaler: Table::create::<AutoscalerRow>(folder.staging(), run_id)?,
            events: Table::create::<EventRow>(folder.staging(), run_id)?,
            run_id: run_id.to_owned(),
            folder,
        })
    }

    /// A second record that begins with all that this one holds and will be published as the folder `dir`. From here on
    /// each continues on its own.
    pub fn fork(&mut self, dir: &Path, run_id: &str) -> Result<Self, Error> {
        let folder = Folder::create(dir)?;
        self.folder.copy_files_to(&folder)?;
        Ok(Self {
            pods: self.pods.fork::<PodRow>(folder.staging(), run_id)?,
            nodes: self.nodes.fork::<NodeRow>(folder.staging(), run_id)?,
            series: self.series.fork::<SeriesRow>(folder.staging(), run_id)?,
            decisions: self.decisions.fork::<DecisionRow>(folder.staging(), run_id)?,
            autoscaler: self.autoscaler.fork::<AutoscalerRow>(folder.staging(), run_id)?,
            events: self.events.fork::<EventRow>(folder.staging(), run_id)?,
            run_id: run_id.to_owned(),
            folder,
        })
    }

    /// Adds a pod.
    pub fn push_pod(&mut self, row: &PodRow<impl AsRef<str>>) -> Result<(), Error> {
        self.pods.push::<PodRow>(&row.borrowed())
    }

    /// Adds a node.
    pub fn push_node(&mut self, row: &NodeRow) -> Result<(), Error> {
        self.nodes.push::<NodeRow>(row)
    }

    /// Adds a change of a series.
    pub fn push_series(&mut self, row: &SeriesRow) -> Result<(), Error> {
        self.series.push::<SeriesRow>(row)
    }

    /// Adds an answer of the scheduler.
    pub fn push_decision(&mut self, row: &DecisionRow<impl AsRef<str>>) -> Result<(), Error> {
        self.decisions.push::<DecisionRow>(&row.borrowed())
    }

    /// Adds a decision of the cluster autoscaler.
    pub fn push_autoscaler(&mut self, row: &AutoscalerRow) -> Result<(), Error> {
        self.autoscaler.push::<AutoscalerRow>(row)
    }

    /// Adds a Kubernetes Event.
    pub fn push_event(&mut self, row: &EventRow<impl AsRef<str>>) -> Result<(), Error> {
        self.events.push::<EventRow>(&row.borrowed())
    }

    /// Adds a whole file beside the tables, e.g. `scenario.yaml`.
    pub fn add_file(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.folder.add_file(name, content)
    }

    /// Closes the tables and writes `run.json`. The record can be read, but has not yet taken its name.
    pub fn finish(self, meta: &RunMeta) -> Result<Staged, Error> {
        if meta.run_id != self.run_id {
            return Err(Error::OtherRun { begun: self.run_id, finished: meta.run_id.clone() });
        }
        let mut tables = BTreeMap::new();
        for table in [self.pods, self.nodes, self.series, self.decisions, self.autoscaler, self.events] {
            tables.insert(table.name.to_owned(), table.finish()?);
        }
        let manifest = Manifest { record: RECORD_VERSION, meta: meta.clone(), tables, files: Vec::new() };
        let mut json = serde_json::to_vec_pretty(&manifest).map_err(|source| Error::EncodeMeta { source })?;
        json.push(b'\n');
        write_file(&self.folder.staging().join(META_FILE), &json)?;
        Ok(Staged { folder: self.folder })
    }
}

/// A record that is whole but not yet in place.
#[derive(Debug)]
pub struct Staged {
    folder: Folder,
}

impl Staged {
    /// A record that was found whole in this folder.
    pub(crate) fn of(folder: Folder) -> Self {
        Self { folder }
    }

    /// Reads the record, to compute what is to be added to it.
    pub fn run(&self) -> Result<Run, Error> {
        Run::open(self.folder.staging())
    }

    /// Adds a whole file beside the tables, e.g. `summary.json`.
    pub fn add_file(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.folder.add_file(name, content)
    }

    /// Gives the record its name and returns it. A record of that name is replaced: the same question has the same
    /// folder. A folder that holds anything that no run made is left alone and the call fails.
    pub fn publish(self) -> Result<PathBuf, Error> {
        self.folder.publish()
    }
}

/// One table being written: rows gather in columns, a full set of columns becomes a row group.
struct Table {
    name: &'static str,
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
    run_id: String,
    /// The column of run ids of a whole row group, where it stands in the file: it is the same in all of them.
    ids: Option<(File, ColumnChunkMetaData)>,
    /// All others.
    columns: Vec<Cells>,
    rows: usize,
    text_bytes: usize,
    written: u64,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}, {} rows)", self.name, self.written + self.rows as u64)
    }
}

impl Table {
    fn create<R: Row>(folder: &Path, run_id: &str) -> Result<Self, Error> {
        let name = R::TABLE;
        let path = folder.join(table_file(name));
        let file = File::create(&path).map_err(|source| Error::Write { path: path.clone(), source })?;
        let columns: Vec<Column> = with_run_id::<R>();
        let writer = new_parquet(BufWriter::new(file), name, run_id, &columns)
            .map_err(|source| Error::Encode { table: name, source })?;
        let (run_id, ids, columns) = (run_id.to_owned(), None, R::COLUMNS.iter().map(Cells::to_write).collect());
        Ok(Self { name, path, writer, run_id, ids, columns, rows: 0, text_bytes: 0, written: 0 })
    }

    /// A table in another folder with the same rows under another run's id: what is on disk is copied as it is, but for
    /// the id, and rows that wait wait there too.
    fn fork<R: Row>(&mut self, folder: &Path, run_id: &str) -> Result<Self, Error> {
        let mut other = Self::create::<R>(folder, run_id)?;
        self.copy_row_groups_to(&mut other).map_err(|source| Error::Encode { table: self.name, source })?;
        other.columns.clone_from(&self.columns);
        (other.rows, other.text_bytes, other.written) = (self.rows, self.text_bytes, self.written);
        Ok(other)
    }

    /// The first column of so many rows.
    fn run_ids(&self, rows: usize) -> Cells {
        let mut ids = [Cells::to_write(&RUN_IDS)];
        for _ in 0..rows {
            RowWriter::new(&mut ids).text(&self.run_id);
        }
        let [ids] = ids;
        ids
    }

    fn copy_row_groups_to(&mut self, other: &mut Self) -> ParquetResult<()> {
        self.writer.flush()?;
        let written = File::open(&self.path)?;
        for group in self.writer.flushed_row_groups() {
            let ids = other.run_ids(usize::try_from(group.num_rows()).unwrap_or_default());
            let mut copy = other.writer.next_row_group()?;
            if let Some(mut column) = copy.next_column()? {
                ids.write_to(column.untyped())?;
                column.close()?;
            }
            for column in group.columns().iter().skip(1) {
                append(&mut copy, &written, column, group.num_rows())?;
            }
            copy.close()?;
        }
        Ok(())
    }

    fn push<R: Row>(&mut self, row: &R::Borrowed<'_>) -> Result<(), Error> {
        let mut cells = RowWriter::new(&mut self.columns);
        R::write(row, &mut cells);
        self.text_bytes += cells.text_bytes();
        self.rows += 1;
        if self.rows >= ROW_GROUP_ROWS || self.text_bytes >= ROW_GROUP_TEXT_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.write_row_group().map_err(|source| Error::Encode { table: self.name, source })?;
        self.columns.iter_mut().for_each(Cells::clear);
        self.written += self.rows as u64;
        self.rows = 0;
        self.text_bytes = 0;
        Ok(())
    }

    fn write_row_group(&mut self) -> ParquetResult<()> {
        let is_whole = self.rows == ROW_GROUP_ROWS;
        let known = self.ids.as_ref().filter(|_| is_whole);
        let ids = known.is_none().then(|| self.run_ids(self.rows));
        let mut group = self.writer.next_row_group()?;
        if let Some((written, column)) = known {
            append(&mut group, written, column, self.rows as i64)?;
        }
        for cells in ids.iter().chain(&self.columns) {
            let Some(mut column) = group.next_column()? else { break };
            cells.write_to(column.untyped())?;
            column.close()?;
        }
        let written = group.close()?;
        if is_whole && self.ids.is_none() {
            self.writer.flush()?;
            self.ids = Some((File::open(&self.path)?, written.column(0).clone()));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<TableFile, Error> {
        if self.rows > 0 {
            self.flush()?;
        }
        let encode = |source| Error::Encode { table: self.name, source };
        let buffer = self.writer.into_inner().map_err(encode)?;
        let file = buffer.into_inner().map_err(std::io::IntoInnerError::into_error);
        file.map_err(|source| Error::Write { path: self.path.clone(), source })?;
        let (bytes, digest) = digest_of(&self.path)?;
        Ok(TableFile { rows: self.written, bytes, digest })
    }
}

/// Copies a column of so many rows from where it stands in a file.
fn append(
    group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    from: &File,
    column: &ColumnChunkMetaData,
    rows: i64,
) -> ParquetResult<()> {
    let close = ColumnCloseResult {
        bytes_written: u64::try_from(column.compressed_size()).unwrap_or_default(),
        rows_written: u64::try_from(rows).unwrap_or_default(),
        metadata: column.clone(),
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(from, close)
}

fn with_run_id<R: Row>() -> Vec<Column> {
    std::iter::once(RUN_IDS).chain(R::COLUMNS.iter().copied()).collect()
}

fn new_parquet(
    to: BufWriter<File>,
    table: &str,
    run_id: &str,
    columns: &[Column],
) -> ParquetResult<SerializedFileWriter<BufWriter<File>>> {
    let fields = columns.iter().map(Column::parquet_type).collect::<ParquetResult<_>>()?;
    let schema = Type::group_type_builder(table).with_fields(fields).build()?;
    let mut properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // No reader looks for single pages, and a fork could not copy the index.
        .set_offset_index_disabled(true)
        // The quickest level. What that costs in size has not been measured.
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_created_by("simkube".into())
        .set_key_value_metadata(Some(vec![KeyValue::new(RUN_ID.into(), run_id.to_owned())]));
    for column in columns {
        let path = ColumnPath::from(column.name);
        // No reader searches files by string, so the minimum and maximum are not worth computing.
        if column.kind == Kind::Text {
            properties = properties.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        // Neither runs of numbers nor packed differences become smaller.
        if column.spread == Spread::Words || column.kind == Kind::Time {
            properties = properties.set_column_compression(path, Compression::UNCOMPRESSED);
        }
    }
    for (column, encoding) in columns.iter().filter_map(|column| Some((column, column.encoding()?))) {
        let path = ColumnPath::from(column.name);
        properties = properties.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, encoding);
    }
    SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties.build()))
}
