//! A folder of manifests: every `.yaml`, `.yml` and `.json` file in it and below it, in the order of their paths.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{MAX_BYTES, ManifestFile, too_long};
use crate::trace::error::OpenError;
use crate::trace::source::Digest;

/// The most files.
const MAX_FILES: usize = 100_000;

/// How deep folders may nest.
const MAX_LEVELS: usize = 32;

/// Reads all files; the digest is that of each file's path in the folder, a zero byte, its length as eight bytes,
/// little end first, and its bytes, one after another.
pub(crate) fn read(folder: &Path) -> Result<(Vec<ManifestFile>, Digest), OpenError> {
    let mut paths = Vec::new();
    find(folder, 0, &mut paths)?;
    paths.sort();
    let mut hasher = Sha256::new();
    let mut files = Vec::new();
    let mut left = MAX_BYTES;
    for path in paths {
        let text = read_file(&path, left + 1).map_err(|error| cannot(&path, error))?;
        if text.len() as u64 > left {
            return Err(too_long(&folder.display().to_string()));
        }
        left -= text.len() as u64;
        hasher.update(path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().as_bytes());
        hasher.update([0]);
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(&text);
        files.push(ManifestFile { name: path.display().to_string().into(), text: text.into() });
    }
    if files.is_empty() {
        let looks_like = "it is a folder without .yaml, .yml or .json files".into();
        return Err(OpenError::Foreign { name: folder.display().to_string().into(), looks_like });
    }
    Ok((files, Digest::from(hasher)))
}

fn find(folder: &Path, level: usize, paths: &mut Vec<PathBuf>) -> Result<(), OpenError> {
    for entry in fs::read_dir(folder).map_err(|error| cannot(folder, error))? {
        let entry = entry.map_err(|error| cannot(folder, error))?;
        let (path, name) = (entry.path(), entry.file_name());
        // Hidden ones are editors' and version control's, and the `..data` of a mounted ConfigMap.
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        // The type of the entry itself: links to folders are not followed, so that there are no circles.
        let kind = entry.file_type().map_err(|error| cannot(&path, error))?;
        if kind.is_dir() {
            if level >= MAX_LEVELS {
                return Err(cannot(&path, io::Error::other(format!("folders nest deeper than {MAX_LEVELS}"))));
            }
            find(&path, level + 1, paths)?;
        } else if path.is_file()
            && path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|e| extension == *e))
        {
            if paths.len() >= MAX_FILES {
                return Err(cannot(folder, io::Error::other(format!("it holds more than {MAX_FILES} files"))));
            }
            paths.push(path);
        }
    }
    Ok(())
}

fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut text)?;
    Ok(text)
}

fn cannot(path: &Path, source: io::Error) -> OpenError {
    OpenError::Io { name: path.display().to_string().into(), source }
}
