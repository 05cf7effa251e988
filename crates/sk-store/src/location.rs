//! Locations of traces: a path, standard input, or a URL of an object store.
//!
//! A remote trace is copied into a temporary file before it is read, because readers seek. A trace is written into a
//! temporary file before it is uploaded, or beside its destination and then renamed, so that a failed write leaves
//! nothing behind. Object stores need the feature `remote`; credentials come from the same environment variables as for
//! the stores' own tools.

mod output;
#[cfg(feature = "remote")]
mod remote;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::SystemTime;

use crate::trace::{self, OpenError, Trace};

pub use output::{Output, SaveError, send_files};

/// A place to read a trace from or to write one to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `-`: only for reading.
    StandardInput,
    /// A path, or a `file://` URL.
    File(PathBuf),
    /// An object in a store.
    Remote(RemoteUrl),
}

/// An `s3://`, `gs://`, `azure://`, `http://` or `https://` URL.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteUrl(String);

impl fmt::Debug for RemoteUrl {
    /// As people may see it: what is debugged ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteUrl").field(&shown(&self.0)).finish()
    }
}

/// Why a text is not a location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLocationError {
    /// Nothing at all.
    #[error("an empty string is not a location; give a path or a URL")]
    Empty,
    /// A URL of an unknown kind.
    #[error("`{0}` is not a known location; use a path, -, file://, s3://, gs://, azure://, http:// or https://")]
    Scheme(String),
    /// Parts of a URL that an object store does not have.
    #[error("`{0}` has a query or a fragment, which is not supported; download it first")]
    Query(String),
    /// A URL without a path.
    #[error("`{0}` names no object; write it like s3://bucket/path/week.sktrace")]
    NoObject(String),
}

const REMOTE: [&str; 5] = ["s3", "gs", "azure", "http", "https"];

impl FromStr for Location {
    type Err = ParseLocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shown = || shown(text).chars().take(200).collect::<String>();
        match text.split_once("://") {
            _ if text.is_empty() => Err(ParseLocationError::Empty),
            _ if text == "-" => Ok(Self::StandardInput),
            None => Ok(Self::File(text.into())),
            Some(("file", path)) if path.starts_with('/') => Ok(Self::File(path.into())),
            Some((scheme, rest)) if REMOTE.contains(&scheme) => {
                if rest.contains(['?', '#']) {
                    return Err(ParseLocationError::Query(shown()));
                }
                let object = rest.split_once('/').map_or("", |(_, object)| object);
                if rest.starts_with('/') || object.is_empty() {
                    return Err(ParseLocationError::NoObject(shown()));
                }
                Ok(Self::Remote(RemoteUrl(text.to_owned())))
            }
            Some(_) => Err(ParseLocationError::Scheme(shown())),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
            Self::Remote(url) => f.write_str(&shown(&url.0)),
        }
    }
}

/// A place as people may see it: a URL without the name and password before its host and without what follows its path,
/// both of which may let whoever reads them in.
pub fn shown(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// An error message about `place`, without credentials.
#[cfg(feature = "remote")]
fn discreet(words: &str, place: &str) -> String {
    let before_host = place.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let secret = before_host.and_then(|host| host.rsplit_once('@')).map(|(secret, _)| secret);
    let words = words.replace(place, &shown(place));
    match secret {
        Some(secret) if !secret.is_empty() => {
            let parts = secret.split(':').filter(|part| part.len() > 2);
            parts.fold(words.replace(&format!("{secret}@"), ""), |words, part| words.replace(part, "…"))
        }
        _ => words,
    }
}

/// What a store said, for people. A store that did not answer at all has a kind of its own.
#[cfg(feature = "remote")]
fn told(error: &remote::RemoteError, place: &str) -> io::Error {
    let kind = if error.is_away() { AWAY } else { io::ErrorKind::Other };
    io::Error::new(kind, discreet(&error.to_string(), place))
}

/// The kind of an error that says: the object store did not answer. It may do so later; any other error stays.
pub const AWAY: io::ErrorKind = io::ErrorKind::HostUnreachable;

impl Location {
    /// Opens the trace there. Remote ones are copied first; call this where blocking is allowed.
    pub fn open(&self) -> Result<Trace, OpenError> {
        self.open_with(&StoreSettings::from_environment())
    }

    /// Opens the trace there, with these settings for object stores.
    pub fn open_with(&self, settings: &StoreSettings) -> Result<Trace, OpenError> {
        match self {
            Self::StandardInput => trace::from_reader("standard input", io::stdin().lock()),
            Self::File(path) => trace::open(path),
            Self::Remote(url) => open_remote(url, settings),
        }
    }

    /// Begins to write there. Nothing is there until [`Output::commit`].
    pub fn create(&self) -> Result<Output, SaveError> {
        self.create_with(&StoreSettings::from_environment())
    }

    /// Begins to write there, with these settings for object stores.
    pub fn create_with(&self, settings: &StoreSettings) -> Result<Output, SaveError> {
        Output::create(self, settings)
    }
}

/// How object stores are reached: names and values such as `aws_region`, as the `object_store` crate knows them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoreSettings(Vec<(String, String)>);

impl StoreSettings {
    /// What the environment says: `AWS_…`, `GOOGLE_…` and `AZURE_…` variables, as the stores' own tools read them.
    pub fn from_environment() -> Self {
        let of_stores = |name: &str| ["aws_", "google_", "azure_"].iter().any(|store| name.starts_with(store));
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?.to_ascii_lowercase(), value.into_string().ok()?))
        });
        Self(variables.filter(|(name, _)| of_stores(name)).collect())
    }

    /// These and no others.
    pub fn new<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl fmt::Debug for StoreSettings {
    /// Names only: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// An object below a folder in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredObject {
    /// Its name below the folder, with slashes between its parts.
    pub name: String,
    /// When it was last written, by the store's clock.
    pub modified: SystemTime,
}

impl RemoteUrl {
    /// Copies the object into a file, byte for byte, with the settings of the environment; call this where blocking is
    /// allowed.
    pub fn fetch(&self, file: &mut File) -> io::Result<()> {
        fetch_remote(self, &StoreSettings::from_environment(), file)
    }

    /// The objects below this folder, at whatever depth, with the settings of the environment; none if there is no such
    /// folder. Call this where blocking is allowed.
    pub fn list(&self) -> io::Result<Vec<StoredObject>> {
        self.list_with(&StoreSettings::from_environment())
    }

    /// The objects below this folder, with these settings.
    pub fn list_with(&self, settings: &StoreSettings) -> io::Result<Vec<StoredObject>> {
        list_remote(self, settings)
    }
}

#[cfg(feature = "remote")]
fn open_remote(url: &RemoteUrl, settings: &StoreSettings) -> Result<Trace, OpenError> {
    let name = shown(&url.0);
    let cannot = |source| OpenError::Io { name: name.as_str().into(), source };
    // Without a name in any folder, so that it is gone with the process, however that ends.
    let mut file = tempfile::tempfile().map_err(cannot)?;
    fetch_remote(url, settings, &mut file).map_err(cannot)?;
    trace::open_unnamed(&name, file)
}

#[cfg(not(feature = "remote"))]
fn open_remote(url: &RemoteUrl, _: &StoreSettings) -> Result<Trace, OpenError> {
    Err(OpenError::Io { name: shown(&url.0).as_str().into(), source: io::Error::other(NO_REMOTE) })
}

#[cfg(feature = "remote")]
fn fetch_remote(url: &RemoteUrl, settings: &StoreSettings, file: &mut File) -> io::Result<()> {
    let fetched = remote::fetch(&url.0, settings, file);
    fetched.map_err(|error| told(&error, &url.0))
}

#[cfg(not(feature = "remote"))]
fn fetch_remote(_: &RemoteUrl, _: &StoreSettings, _: &mut File) -> io::Result<()> {
    Err(io::Error::other(NO_REMOTE))
}

#[cfg(feature = "remote")]
fn list_remote(url: &RemoteUrl, settings: &StoreSettings) -> io::Result<Vec<StoredObject>> {
    remote::list(&url.0, settings).map_err(|error| told(&error, &url.0))
}

#[cfg(not(feature = "remote"))]
fn list_remote(_: &RemoteUrl, _: &StoreSettings) -> io::Result<Vec<StoredObject>> {
    Err(io::Error::other(NO_REMOTE))
}

/// What a build without object stores says. The one program that is built so is a small `skctl`.
#[cfg(not(feature = "remote"))]
const NO_REMOTE: &str = "this build of skctl cannot read or write URLs; use a file, or install all of skctl: run `cargo \
                         install --path crates/skctl --locked` in its source folder";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart_by_their_scheme() {
        let parse = |text: &str| text.parse::<Location>();
        assert_eq!(parse("-"), Ok(Location::StandardInput));
        assert_eq!(parse("runs/a.sktrace"), Ok(Location::File("runs/a.sktrace".into())));
        assert_eq!(parse("file:///data/a.sktrace"), Ok(Location::File("/data/a.sktrace".into())));
        for url in ["s3://b/a", "gs://b/x/a", "azure://c/a", "http://h:9000/a", "https://h/a"] {
            assert_eq!(parse(url).unwrap().to_string(), url);
        }
        for (url, expected) in [
            ("", "empty"),
            ("ftp://h/a", "not a known location"),
            ("file://relative", "not a known location"),
            ("s3://bucket", "no object"),
            ("s3://bucket/", "no object"),
            ("s3:///a", "no object"),
            ("https://h/a?signature=1", "download it first"),
        ] {
            assert!(parse(url).unwrap_err().to_string().contains(expected), "{url}");
        }
    }

    #[test]
    fn nobody_sees_what_lets_one_in() {
        for (place, seen) in [
            ("https://user:pass@host:9000/a/b", "https://host:9000/a/b"),
            ("https://b.s3.amazonaws.com/a?X-Amz-Signature=1f&x=/@y", "https://b.s3.amazonaws.com/a"),
            ("https://c.blob.core.windows.net/a?sig=1f#part", "https://c.blob.core.windows.net/a"),
            ("https://us@er:p@ss@host", "https://host"),
            ("s3://bucket/a@b", "s3://bucket/a@b"),
            ("/a?b@c", "/a?b@c"),
        ] {
            assert_eq!(shown(place), seen);
        }
        let error = "https://host/a?sig=secret".parse::<Location>().unwrap_err().to_string();
        assert!(error.contains("https://host/a") && !error.contains("secret"), "{error}");
        let location = "https://u:p@h/a".parse::<Location>().unwrap();
        assert_eq!(format!("{location} {location:?}"), "https://h/a Remote(RemoteUrl(\"https://h/a\"))");
    }

    #[cfg(feature = "remote")]
    #[test]
    fn what_a_store_says_is_repeated_without_it_too() {
        let place = "http://user:secret@127.0.0.1:1/a";
        let said = discreet("error sending request for url (http://user:secret@127.0.0.1:1/a): secret is wrong", place);
        assert_eq!(said, "error sending request for url (http://127.0.0.1:1/a): … is wrong");
        let error = place.parse::<Location>().unwrap().open().unwrap_err();
        let whole = format!("{error} {error:?} {:?}", std::error::Error::source(&error).map(ToString::to_string));
        assert!(!whole.contains("secret"), "{whole}");
    }
}
