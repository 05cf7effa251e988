//! Reads a record: `run.json`, and the rows of each table one after the other.
//!
//! Size and digest of every table are checked before Parquet reads a byte of it, so a truncated or edited file is
//! reported by name. Rows come in batches; memory does not grow with the run.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use parquet::column::reader::ColumnReader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, SerializedFileReader};
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::column::{Batch, Column, Row};
use crate::error::Error;
use crate::meta::{Manifest, ManifestVersion, RECORD_VERSION, RunMeta, TableFile};
use crate::rows::{AutoscalerRow, DecisionRow, EventRow, NodeRow, PodRow, SeriesRow};

/// A `run.json` above this is not ours: a thousand groups and a thousand warnings of 1 KiB are under 2 MiB.
const META_MAX_BYTES: u64 = 16 << 20;

/// Rows decoded at a time: 4,096 × 17 columns × 40 bytes, plus their text, stays under 10 MiB.
const BATCH_ROWS: usize = 4096;

pub(crate) const TABLES: [&str; 6] =
    [PodRow::TABLE, NodeRow::TABLE, SeriesRow::TABLE, DecisionRow::TABLE, AutoscalerRow::TABLE, EventRow::TABLE];
/// Tables that records of earlier versions do not have: to a reader they are empty.
pub(crate) const LATER_TABLES: [&str; 2] = [AutoscalerRow::TABLE, EventRow::TABLE];

/// A run record opened for reading.
#[derive(Debug)]
pub struct Run {
    dir: PathBuf,
    manifest: Manifest,
}

impl Run {
    /// Opens the record in folder `dir` and checks that all of it is there and unchanged.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let manifest = read_manifest(dir)?;
        for table in TABLES {
            let expected = manifest.tables.get(table);
            if expected.is_some() || !LATER_TABLES.contains(&table) {
                check_table(&dir.join(table_file(table)), expected)?;
            }
        }
        Ok(Self { dir: dir.to_owned(), manifest })
    }

    /// What `run.json` says.
    pub fn meta(&self) -> &RunMeta {
        &self.manifest.meta
    }

    /// The folder it was opened from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All pods, in the order they were pushed.
    pub fn pods(&self) -> Result<Rows<PodRow>, Error> {
        self.rows()
    }

    /// All nodes, in the order they were pushed.
    pub fn nodes(&self) -> Result<Rows<NodeRow>, Error> {
        self.rows()
    }

    /// All changes of series, in the order they were pushed.
    pub fn series(&self) -> Result<Rows<SeriesRow>, Error> {
        self.rows()
    }

    /// All answers of the scheduler, in the order they were pushed.
    pub fn decisions(&self) -> Result<Rows<DecisionRow>, Error> {
        self.rows()
    }

    /// All decisions of the cluster autoscaler, in the order they were pushed; none in a record of an earlier version.
    pub fn autoscaler(&self) -> Result<Rows<AutoscalerRow>, Error> {
        self.rows()
    }

    /// All Events, in the order in which they were written; none in a record of an earlier version.
    pub fn events(&self) -> Result<Rows<EventRow>, Error> {
        self.rows()
    }

    /// The content of a file beside the tables, e.g. `scenario.yaml`; nothing if the record has none of that name.
    pub fn file(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.dir.join(name);
        match std::fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    fn rows<R: Row>(&self) -> Result<Rows<R>, Error> {
        let path = self.dir.join(table_file(R::TABLE));
        if self.manifest.tables.contains_key(R::TABLE) { Rows::open(path) } else { Ok(Rows::none(path)) }
    }
}

/// Only `run.json`, for listing runs: the tables are not read.
pub(crate) fn read_manifest(dir: &Path) -> Result<Manifest, Error> {
    let path = dir.join("run.json");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::NotARecord { path: dir.to_owned() });
        }
        Err(source) => return Err(Error::Read { path, source }),
    };
    let mut text = Vec::new();
    let read = file.take(META_MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|source| Error::Read { path: path.clone(), source })?;
    if text.len() as u64 > META_MAX_BYTES {
        return Err(Error::BadMeta { path, problem: format!("it is larger than {META_MAX_BYTES} bytes") });
    }
    let bad = |error: serde_json::Error| Error::BadMeta { path: path.clone(), problem: error.to_string() };
    let version: ManifestVersion = serde_json::from_slice(&text).map_err(bad)?;
    if version.record > RECORD_VERSION {
        return Err(Error::Newer { path, found: version.record, known: RECORD_VERSION });
    }
    serde_json::from_slice(&text).map_err(bad)
}

fn check_table(path: &Path, expected: Option<&TableFile>) -> Result<(), Error> {
    let damaged = |problem: String| Error::Damaged { path: path.to_owned(), problem };
    let Some(expected) = expected else { return Err(damaged("run.json does not know it".into())) };
    if !path.exists() {
        return Err(damaged("the file is missing".into()));
    }
    let (bytes, digest) = digest_of(path)?;
    if bytes != expected.bytes {
        return Err(damaged(format!("it has {bytes} bytes, not {}", expected.bytes)));
    }
    if digest != expected.digest {
        return Err(damaged("its content changed".into()));
    }
    Ok(())
}

/// The file's length and a digest of its content: against accidents, not against forgery.
pub(crate) fn digest_of(path: &Path) -> Result<(u64, String), Error> {
    let read_error = |source| Error::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(read_error)?;
    let mut hasher = SipHasher13::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut buffer).map_err(read_error)?;
        if count == 0 {
            return Ok((bytes, format!("{:032x}", hasher.finish128().as_u128())));
        }
        bytes += count as u64;
        hasher.write(&buffer[..count]);
    }
}

pub(crate) fn table_file(table: &str) -> String {
    format!("{table}.parquet")
}

/// The rows of one table. Ends after the first error.
pub struct Rows<R> {
    path: PathBuf,
    /// Nothing: the record has no such table.
    file: Option<SerializedFileReader<File>>,
    /// The position of each of the row's columns in the file.
    places: Vec<usize>,
    next_group: usize,
    readers: Vec<ColumnReader>,
    batch: Batch,
    count: u64,
    /// After the last row, or after an error.
    ended: bool,
    row: PhantomData<fn() -> R>,
}

impl<R> std::fmt::Debug for Rows<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({}, at row {})", self.path.display(), self.count)
    }
}

impl<R: Row> Rows<R> {
    fn open(path: PathBuf) -> Result<Self, Error> {
        let file = File::open(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        let file = SerializedFileReader::new(file).map_err(|error| foreign(&path, &error))?;
        let columns: Vec<Column> = R::COLUMNS.iter().filter(|column| !column.derived).copied().collect();
        let places = columns.iter().map(|column| place_of(&file, column));
        let places =
            places.collect::<Result<_, _>>().map_err(|problem| Error::Foreign { path: path.clone(), problem })?;
        let batch = Batch::new(&columns);
        let row = PhantomData;
        let file = Some(file);
        Ok(Self { path, file, places, next_group: 0, readers: Vec::new(), batch, count: 0, ended: false, row })
    }

    fn none(path: PathBuf) -> Self {
        let (file, places, readers) = (None, Vec::new(), Vec::new());
        Self {
            path,
            file,
            places,
            next_group: 0,
            readers,
            batch: Batch::new(&[]),
            count: 0,
            ended: false,
            row: PhantomData,
        }
    }

    /// The same rows without what these columns say: texts are empty, and what is optional is not there. It costs less.
    pub fn without(mut self, columns: &[&str]) -> Self {
        columns.iter().for_each(|column| self.batch.leave_out(column));
        self
    }

    /// Fills the batch with the next rows of this row group or the first ones of the next; false at the end.
    fn refill(&mut self) -> ParquetResult<bool> {
        loop {
            self.batch.refill(&mut self.readers, BATCH_ROWS)?;
            if self.batch.has_rows() {
                return Ok(true);
            }
            let Some(file) = self.file.as_ref().filter(|file| self.next_group < file.num_row_groups()) else {
                return Ok(false);
            };
            let group = file.get_row_group(self.next_group)?;
            let read = self.places.iter().enumerate().filter(|(column, _)| self.batch.reads(*column));
            self.readers = read.map(|(_, place)| group.get_column_reader(*place)).collect::<ParquetResult<_>>()?;
            self.next_group += 1;
        }
    }

    /// The next row, borrowed from the columns that were read: without an allocation, and valid until the one after it.
    pub fn next_borrowed(&mut self) -> Result<Option<R::Borrowed<'_>>, Error> {
        if self.ended {
            return Ok(None);
        }
        if !self.batch.has_rows() {
            self.ended = true;
            if !self.refill().map_err(|error| foreign(&self.path, &error))? {
                return Ok(None);
            }
            self.ended = false;
        }
        self.count += 1;
        let Self { batch, count, path, ended, .. } = self;
        batch.next::<R>().map(Some).map_err(|bad| {
            *ended = true;
            let problem = format!("column {} of row {count}: {}", bad.column, bad.problem);
            Error::Foreign { path: path.clone(), problem }
        })
    }
}

impl<R: Row> Iterator for Rows<R> {
    type Item = Result<R, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_borrowed().map(|row| row.map(R::own)).transpose()
    }
}

fn place_of(file: &SerializedFileReader<File>, column: &Column) -> Result<usize, String> {
    let schema = file.metadata().file_metadata().schema_descr();
    let place = schema.columns().iter().position(|found| found.path().parts() == [column.name]);
    let place = place.ok_or_else(|| format!("it has no column {}", column.name))?;
    if !column.accepts(schema.column(place).self_type()) {
        return Err(format!("its column {} has another type", column.name));
    }
    Ok(place)
}

fn foreign(path: &Path, error: &ParquetError) -> Error {
    Error::Foreign { path: path.to_owned(), problem: error.to_string() }
}
