//! A file that is written atomically.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::{Location, ParseLocationError, RemoteUrl, StoreSettings};

/// Why something could not be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// No file could be begun there.
    #[error("cannot write to {place}: {source}; check that the folder exists and that you may write there")]
    Create {
        /// Where.
        place: String,
        /// What the file system said.
        source: io::Error,
    },
    /// The last bytes could not be written, or the finished file not put in its place.
    #[error("cannot finish {place}: {source}; check that there is disk space; nothing was left there")]
    Finish {
        /// Where.
        place: String,
        /// What the file system said.
        source: io::Error,
    },
    /// An object store refused.
    #[error("cannot send to {place}: {source}; nothing was left there")]
    Send {
        /// Where.
        place: String,
        /// What the store said.
        source: io::Error,
    },
    /// A file that is to be sent could not be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the file system said.
        source: io::Error,
    },
    /// Not a place to write to.
    #[error(transparent)]
    Place(#[from] ParseLocationError),
    /// Standard input is not a place to write to.
    #[error("standard input is not a place to write to; give a path or a URL")]
    StandardInput,
}

/// Something that is being written. Dropped without [`Output::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct Output {
    file: BufWriter<Target>,
    place: String,
}

/// What is written to meanwhile, and where it goes in the end.
#[derive(Debug)]
enum Target {
    /// A file beside the one that it will replace.
    Aside(NamedTempFile, PathBuf),
    /// A device or a pipe: it cannot be renamed onto, and is written as it comes.
    Direct(fs::File),
    /// A temporary file, in no folder's list so that it is gone with the process, to be sent to an object store.
    ToSend(fs::File, RemoteUrl, StoreSettings),
}

impl Output {
    pub(super) fn create(location: &Location, settings: &StoreSettings) -> Result<Self, SaveError> {
        let place = location.to_string();
        let target = match location {
            Location::StandardInput => return Err(SaveError::StandardInput),
            Location::File(path) => create_local(path),
            Location::Remote(url) => {
                tempfile::tempfile().map(|file| Target::ToSend(file, url.clone(), settings.clone()))
            }
        };
        let target = target.map_err(|source| SaveError::Create { place: place.clone(), source })?;
        Ok(Self { file: BufWriter::with_capacity(256 << 10, target), place })
    }

    /// Puts what was written in its place.
    pub fn commit(self) -> Result<(), SaveError> {
        let Self { file, place } = self;
        let finish = |source| SaveError::Finish { place: place.clone(), source };
        match file.into_inner().map_err(|error| finish(error.into_error()))? {
            Target::Direct(file) => {
                // A pipe or a terminal cannot be synced, and need not be.
                let _ = file.sync_all();
                Ok(())
            }
            Target::ToSend(file, url, settings) => send(&url, &settings, &file),
            Target::Aside(file, path) => {
                file.as_file().sync_all().map_err(finish)?;
                file.persist(path).map(drop).map_err(|error| finish(error.error))
            }
        }
    }
}

/// Copies the files of a folder to a folder in an object store. The file called `last` is sent last: whoever finds it there
/// finds all the others.
pub fn send_files(folder: &Path, place: &str, last: &str) -> Result<(), SaveError> {
    let unreadable = |path: &Path| {
        let file = path.display().to_string();
        move |source| SaveError::Read { file, source }
    };
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(unreadable(folder))?;
    let mut names: Vec<_> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_by_key(|name| (name == last, name.clone()));
    for name in names {
        let path = folder.join(&name);
        let mut output = format!("{place}/{name}").parse::<Location>()?.create()?;
        let copied = fs::File::open(&path).and_then(|mut file| io::copy(&mut file, &mut output));
        copied.map_err(unreadable(&path))?;
        output.commit()?;
    }
    Ok(())
}

fn create_local(path: &Path) -> io::Result<Target> {
    let path = match fs::metadata(path) {
        Ok(there) if there.is_dir() => return Err(io::Error::other("it is a folder")),
        Ok(there) if !there.is_file() => {
            return Ok(Target::Direct(fs::File::options().write(true).open(path)?));
        }
        // What a link points to is replaced, not the link.
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".sktrace-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As an ordinary new file: the umask takes its share. Temporary files would otherwise be for their owner only.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    Ok(Target::Aside(file, path))
}

#[cfg(feature = "remote")]
fn send(url: &RemoteUrl, settings: &StoreSettings, file: &fs::File) -> Result<(), SaveError> {
    super::remote::send(&url.0, settings, file)
        .map_err(|error| SaveError::Send { place: super::shown(&url.0), source: super::told(&error, &url.0) })
}

#[cfg(not(feature = "remote"))]
fn send(url: &RemoteUrl, _: &StoreSettings, _: &fs::File) -> Result<(), SaveError> {
    Err(SaveError::Send { place: super::shown(&url.0), source: io::Error::other(super::NO_REMOTE) })
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Aside(file, _) => file.write(bytes),
            Self::Direct(file) | Self::ToSend(file, ..) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Aside(file, _) => file.flush(),
            Self::Direct(file) | Self::ToSend(file, ..) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sktrace");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        fs::write(&path, "old").unwrap();
        let mut output = Location::File(path.clone()).create().unwrap();
        output.write_all(b"half").unwrap();
        drop(output);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("old", 1), "given up: nothing changed");
        let mut output = Location::File(path.clone()).create().unwrap();
        output.write_all(b"whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old", "not yet");
        output.commit().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("whole", 1));
    }

    #[test]
    fn links_stay_links_and_devices_stay_devices() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&target, &link).unwrap();
            let mut output = Location::File(link.clone()).create().unwrap();
            output.write_all(b"new").unwrap();
            output.commit().unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&target).unwrap(), "new");
            let mut output = Location::File("/dev/null".into()).create().unwrap();
            output.write_all(b"gone").unwrap();
            output.commit().unwrap();
            assert!(!fs::metadata("/dev/null").unwrap().is_file());
        }
    }

    #[test]
    fn a_full_disk_and_a_missing_folder_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Location::File(folder.path().join("no/such/a.sktrace")).create().unwrap_err().to_string();
        assert!(missing.contains("no/such/a.sktrace") && missing.contains("folder exists"), "{missing}");
        assert!(Location::File(folder.path().to_owned()).create().unwrap_err().to_string().contains("it is a folder"));
        #[cfg(target_os = "linux")]
        {
            let mut output = Location::File("/dev/full".into()).create().unwrap();
            output.write_all(b"too much").unwrap();
            let full = output.commit().unwrap_err().to_string();
            assert!(full.contains("/dev/full") && full.contains("disk space"), "{full}");
        }
    }
}
