//! Fetches records from an object store.

use std::fs::File;
use std::io::{self, Seek as _};
use std::path::Path;

use anyhow::{Context, Result, bail};
use sk_record::{Staged, archive};
use sk_store::Location;
use sk_store::location::shown;

/// A record in an object store is a folder of objects; those of these names are fetched.
pub(crate) fn from_store(place: &str, names: &[String], dir: &Path) -> Result<Staged> {
    let mut record = tar::Builder::new(spool()?);
    for name in names {
        let mut file = spool()?;
        object(place, name, &mut file)?;
        let mut header = tar::Header::new_ustar();
        header.set_size(file.stream_position()?);
        header.set_mode(0o644);
        file.rewind()?;
        record.append_data(&mut header, name, file)?;
    }
    let mut record: File = record.into_inner().context("cannot keep the record in the temporary folder")?;
    record.rewind()?;
    Ok(archive::stage(record, dir)?)
}

/// Copies one object of a record into a file.
pub(crate) fn object(place: &str, name: &str, to: &mut File) -> Result<()> {
    let Location::Remote(url) = format!("{place}/{name}").parse()? else {
        bail!("the record is at {}, which only the driver can read; fetch it from there", shown(place));
    };
    url.fetch(to).with_context(|| {
        let place = shown(place);
        format!("the record is at {place} and cannot be fetched from here; credentials come from the environment")
    })
}

/// A file without a name: it is gone with the process, however that ends.
pub(crate) fn spool() -> io::Result<File> {
    tempfile::tempfile()
}
