//! A run record as one stream of bytes: how it travels from the driver to the controller and from there to skctl.
//!
//! It is a tar of plain files, without folders, times or owners, so that the same record makes the same bytes.
//! Incoming archives are not trusted: paths as names, anything but regular files, too many files and too many bytes
//! are refused, and the record gets its name only when all of it was read and is complete.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::Error;
use crate::folder::Folder;
use crate::reader::{LATER_TABLES, Run, TABLES, read_manifest, table_file};
use crate::writer::Staged;

/// Files of one record: `run.json`, six tables, and what is added beside them (scenario, summary, report, junit, logs).
const MAX_FILES: usize = 64;
/// Bytes of one record, unpacked. Two million pods are about 200 MB of tables; this is twenty times that.
pub const MAX_BYTES: u64 = 4 << 30;

/// The tables of the record whose `run.json` lies in `dir`. A record of an earlier version has fewer of them.
pub fn tables(dir: &Path) -> Result<Vec<String>, Error> {
    let manifest = read_manifest(dir)?;
    let has = |table: &&&str| !LATER_TABLES.contains(table) || manifest.tables.contains_key(**table);
    Ok(TABLES.iter().filter(has).map(|table| table_file(table)).collect())
}

/// Writes the record in folder `dir` as a tar.
pub fn pack<W: Write>(dir: &Path, to: W) -> Result<W, Error> {
    Run::open(dir)?;
    let cannot = |source| Error::Pack { path: dir.to_owned(), source };
    let mut archive = tar::Builder::new(to);
    for name in file_names(dir)? {
        let mut file = File::open(dir.join(&name)).map_err(cannot)?;
        let mut header = tar::Header::new_ustar();
        header.set_size(file.metadata().map_err(cannot)?.len());
        header.set_mode(0o644);
        archive.append_data(&mut header, &name, &mut file).map_err(cannot)?;
    }
    archive.into_inner().map_err(cannot)
}

/// Reads a tar made by [`pack`] and publishes it as the folder `dir`. An older record there is replaced.
pub fn unpack(from: impl Read, dir: &Path) -> Result<(), Error> {
    stage(from, dir)?.publish().map(drop)
}

/// Like [`unpack`], but the record takes its name only when it is published, so that files can be added before.
pub fn stage(from: impl Read, dir: &Path) -> Result<Staged, Error> {
    let folder = Folder::create(dir)?;
    let refuse = |problem: String| Error::Unpack { problem };
    let broken = |error: io::Error| refuse(format!("it is damaged or cut off: {error}"));
    let mut archive = tar::Archive::new(from);
    let (mut files, mut bytes) = (0, 0_u64);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = plain_name(&entry).ok_or_else(|| {
            let path = String::from_utf8_lossy(&entry.path_bytes()).chars().take(100).collect::<String>();
            refuse(format!("`{path}` in it is not a plain file"))
        })?;
        files += 1;
        bytes = bytes.saturating_add(entry.size());
        if files > MAX_FILES || bytes > MAX_BYTES {
            return Err(refuse(format!("it holds more than {MAX_FILES} files or {MAX_BYTES} bytes")));
        }
        let path = folder.staging().join(&name);
        let mut file = File::create_new(&path).map_err(|source| Error::Write { path: path.clone(), source })?;
        io::copy(&mut entry, &mut file).map_err(broken)?;
    }
    Run::open(folder.staging())?;
    Ok(Staged::of(folder))
}

/// The names of a record's files, sorted; folders and hidden files are not part of it.
fn file_names(dir: &Path) -> Result<Vec<String>, Error> {
    let cannot = |source| Error::Read { path: dir.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(cannot)?.is_file() && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    if names.len() > MAX_FILES {
        let problem = format!("there are {} files beside run.json, and a record has at most {MAX_FILES}", names.len());
        return Err(Error::BadMeta { path: dir.to_owned(), problem });
    }
    Ok(names)
}

/// The name of a regular file that is not a path and not hidden.
fn plain_name<R: Read>(entry: &tar::Entry<'_, R>) -> Option<String> {
    let name = std::str::from_utf8(&entry.path_bytes()).ok()?.to_owned();
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    (entry.header().entry_type().is_file() && is_plain).then_some(name)
}
