//! MessagePack as traces use it: the types of JSON and nothing else.
//!
//! There are two readers, because a file can be larger than memory: [`input`] walks a file without keeping it, and
//! [`decode`] turns the bytes of one bounded value into JSON. [`encode`] writes what both read. Binary and extension types,
//! maps with keys that are not strings, and numbers that JSON cannot express are refused.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod input;

/// How deep values may nest: below the 127 levels that `serde_json` reads, with room for the lines and lists around
/// an object, so that what is read here can be written as JSON and read back. Ordinary objects nest about 20 levels.
pub(crate) const MAX_DEPTH: usize = 100;

/// The largest object in bytes. An API server refuses requests over 3 MiB and etcd by default over 1.5 MiB.
pub(crate) const MAX_OBJECT_BYTES: usize = 4 << 20;

/// The most values (scalars, arrays, maps) in one object: 2^20 at up to 80 bytes each is at most 80 MiB of JSON
/// values, however small the bytes they came from (an array of a million nulls is 1 MiB of MessagePack).
pub(crate) const MAX_OBJECT_NODES: usize = 1 << 20;

/// What is wrong with a piece of MessagePack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the bytes end in the middle of a value")]
    Cut,
    #[error("values nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("one value is larger than {0} bytes")]
    TooLong(usize),
    #[error("one object holds more than {MAX_OBJECT_NODES} values")]
    TooMany,
    #[error("a text is not UTF-8")]
    NotUtf8,
    #[error("a map has a key that is not text")]
    KeyNotText,
    #[error("a map has the key `{0}` twice")]
    KeyTwice(String),
    #[error("a number is infinite or not a number, which JSON does not have")]
    NotFinite,
    #[error("byte 0x{0:02x} begins a binary or extension value, which JSON does not have")]
    Foreign(u8),
    #[error("{expected} was expected, but byte 0x{found:02x} begins something else")]
    Unexpected { expected: &'static str, found: u8 },
}
