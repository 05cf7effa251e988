//! Errors of run records, by the step that failed, each with what to do next.

use std::path::PathBuf;

use parquet::errors::ParquetError;

/// Why a record could not be written, opened, read or found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be written.
    #[error("cannot write {}: {source}; is the folder writable and the disk not full?", path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A table could not be encoded.
    #[error("cannot write table {table} of the run record: {source}")]
    Encode {
        /// Which table.
        table: &'static str,
        /// Parquet's error.
        #[source]
        source: ParquetError,
    },
    /// `run.json` could not be made.
    #[error("cannot write run.json: {source}")]
    EncodeMeta {
        /// The JSON writer's error.
        #[source]
        source: serde_json::Error,
    },
    /// The id given at the start is not the one given at the end.
    #[error("the record was begun as run `{begun}` and finished as `{finished}`: give the same id both times")]
    OtherRun {
        /// At `create`.
        begun: String,
        /// At `finish`.
        finished: String,
    },
    /// An extra file's name is a path or already taken.
    #[error("`{name}` cannot be added to a run record: use a plain file name that the record does not use itself")]
    FileName {
        /// As given.
        name: String,
    },
    /// The place for the record has no name or parent.
    #[error("{} cannot hold a run record: name a folder, like runs/nginx", path.display())]
    NoFolder {
        /// As given.
        path: PathBuf,
    },
    /// Something that is not a run record has the record's name.
    #[error("{} exists and is not a run record, so it is not replaced: remove it or choose another place", path.display())]
    Occupied {
        /// Where.
        path: PathBuf,
    },
    /// A run record with something beside it that no run made.
    #[error(
        "{} holds {name}, which no run made, so it is not replaced: move {name} away or choose another place",
        path.display()
    )]
    SomebodyElses {
        /// Where.
        path: PathBuf,
        /// What lies there.
        name: String,
    },
    /// A file or folder could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// A folder without `run.json`.
    #[error("{} is not a run record: it has no run.json; `skctl run` makes one, `skctl list` shows those here", path.display())]
    NotARecord {
        /// Which folder.
        path: PathBuf,
    },
    /// `run.json` is not ours, damaged, or absurdly large.
    #[error("cannot parse {}: {problem}; run the simulation again to replace it", path.display())]
    BadMeta {
        /// Which file.
        path: PathBuf,
        /// What is wrong, with line and column where there is one.
        problem: String,
    },
    /// A record of a later version.
    #[error("{} is a run record of layout {found}, and this version reads up to {known}: use a newer skctl", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its layout.
        found: u32,
        /// The highest layout we read.
        known: u32,
    },
    /// A table's file is missing, cut off or changed since the run.
    #[error("{} is not the table this run wrote: {problem}; run the simulation again to replace it", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What differs.
        problem: String,
    },
    /// A cell or column is not what the table should hold.
    #[error("{} is not a table of a run record: {problem}", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Column and row where known.
        problem: String,
    },
    /// A record could not be put into an archive.
    #[error("cannot pack the run record {}: {source}", path.display())]
    Pack {
        /// Which record.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// Not an archive of a run record.
    #[error("this is not an archive of a run record: {problem}; fetch it again")]
    Unpack {
        /// What is wrong.
        problem: String,
    },
    /// There are no runs to choose from.
    #[error("there are no runs in {}: `skctl run TRACE` makes one", dir.display())]
    NoRuns {
        /// Where we looked.
        dir: PathBuf,
    },
    /// `@N` reaches further back than there are runs.
    #[error("`{text}` asks for a run further back than the {count} in {}: `skctl list` shows them", dir.display())]
    TooFarBack {
        /// As given.
        text: String,
        /// How many there are.
        count: usize,
        /// Where we looked.
        dir: PathBuf,
    },
    /// No run of that name.
    #[error("`{text}` is not a run: neither a folder with a run.json nor a name in {}{}", dir.display(), newest(near))]
    Unknown {
        /// As given.
        text: String,
        /// Where we looked.
        dir: PathBuf,
        /// The newest names there, to choose from.
        near: Vec<String>,
    },
}

fn newest(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; the newest there: {}", names.join(", ")) }
}
