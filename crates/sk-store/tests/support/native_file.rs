//! Native files put together by hand, block by block, with right checksums and whatever else is asked for.
//!
//! It follows docs/trace-format.md and nothing else, so that it also shows that the document is enough.

/// What an index says of one chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) at: u64,
    pub(crate) len: u64,
    pub(crate) records: u64,
    /// The earliest and the latest time, in microseconds.
    pub(crate) span: (i64, i64),
    /// The first and the last sequence number.
    pub(crate) seqs: (u64, u64),
}

/// A file in the making.
pub(crate) struct NativeFile {
    bytes: Vec<u8>,
    /// The blocks that the directory will list: kind, offset, count.
    pub(crate) listed: Vec<(u8, u64, u64)>,
}

impl NativeFile {
    /// The file header and the header block.
    pub(crate) fn new() -> Self {
        let mut file = Self { bytes: b"SKTRACE\0\x01\0\0\0\0\0\0\0".to_vec(), listed: Vec::new() };
        file.block(1, 1, br#"{"simkube":"trace","version":1,"config":{}}"#);
        file
    }

    /// Heads and bodies; answers what an honest index says of them.
    pub(crate) fn chunk(&mut self, heads: &[u8], bodies: &[u8]) -> Chunk {
        let at = self.bytes.len() as u64;
        let (records, span, seqs) = truth(heads).unwrap_or_default();
        self.block(2, u32::try_from(records).unwrap_or(u32::MAX), heads);
        self.block(3, 1, bodies);
        Chunk { at, len: self.bytes.len() as u64 - at, records, span, seqs }
    }

    /// An index over these chunks; `tail` is its texts and objects.
    pub(crate) fn index(&mut self, chunks: &[Chunk], tail: &[u8]) {
        let mut index = Vec::new();
        put(&mut index, chunks.len() as u64);
        for chunk in chunks {
            [chunk.at, chunk.len, chunk.records].into_iter().for_each(|number| put(&mut index, number));
            [chunk.span.0, chunk.span.1].into_iter().for_each(|time| put_signed(&mut index, time));
            [chunk.seqs.0, chunk.seqs.1].into_iter().for_each(|number| put(&mut index, number));
        }
        index.extend_from_slice(tail);
        self.listed(4, chunks.len(), &index);
    }

    /// A block that the directory lists.
    pub(crate) fn listed(&mut self, kind: u8, count: usize, payload: &[u8]) {
        self.listed.push((kind, self.bytes.len() as u64, count as u64));
        self.block(kind, u32::try_from(count).expect("files made by hand are small"), payload);
    }

    /// The directory with what it says of all records, and the trailer.
    pub(crate) fn finish(mut self, records: u64, span: Option<(i64, i64)>) -> Vec<u8> {
        let at = self.bytes.len() as u64;
        let mut directory = Vec::new();
        put(&mut directory, records);
        directory.push(u8::from(span.is_some()));
        if let Some((earliest, latest)) = span {
            [earliest, latest].into_iter().for_each(|time| put_signed(&mut directory, time));
        }
        put(&mut directory, self.listed.len() as u64);
        for (kind, at, count) in std::mem::take(&mut self.listed) {
            directory.push(kind);
            [at, count].into_iter().for_each(|number| put(&mut directory, number));
        }
        self.block(5, 2, &directory);
        self.bytes.extend_from_slice(&at.to_le_bytes());
        self.bytes.extend_from_slice(b"SKTRACE.");
        self.bytes
    }

    fn block(&mut self, kind: u8, count: u32, payload: &[u8]) {
        let stored = zstd::bulk::compress(payload, 1).expect("memory can be compressed");
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("files made by hand are small").to_le_bytes();
        let mut block = vec![kind, 0, 0, 0];
        block.extend_from_slice(&len(&stored));
        block.extend_from_slice(&len(payload));
        block.extend_from_slice(&count.to_le_bytes());
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(&block);
        hasher.update(&stored);
        block.extend_from_slice(&hasher.digest().to_le_bytes());
        self.bytes.extend_from_slice(&block);
        self.bytes.extend_from_slice(&stored);
    }
}

/// Records, earliest and latest time, first and last sequence number.
type Truth = (u64, (i64, i64), (u64, u64));

/// How many records the heads have, their earliest and latest time, their first and last sequence number: all that an
/// index repeats. `None` if the heads are damaged before that can be known.
fn truth(heads: &[u8]) -> Option<Truth> {
    let mut rest = heads;
    let records = take(&mut rest)?;
    for _ in 0..take(&mut rest)? {
        let len = take(&mut rest)?;
        rest = rest.get(usize::try_from(len).ok()?..)?;
    }
    for _ in 0..take(&mut rest)? {
        (0..4).try_for_each(|_| take(&mut rest).map(drop))?;
    }
    for _ in 0..take(&mut rest)? {
        (0..take(&mut rest)?.checked_mul(2)?).try_for_each(|_| take(&mut rest).map(drop))?;
    }
    rest = rest.get(usize::try_from(records).ok()?..)?;
    let (mut time, unit) = (take_signed(&mut rest)?, take(&mut rest)?.cast_signed());
    let mut span = (time, time);
    for _ in 1..records {
        time = time.wrapping_add(take_signed(&mut rest)?.wrapping_mul(unit));
        span = (span.0.min(time), span.1.max(time));
    }
    let first = take(&mut rest)?;
    let last = (1..records).try_fold(first, |seq, _| seq.checked_add(take(&mut rest)?))?;
    Some((records, span, (first, last)))
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let len = rest.iter().position(|byte| byte & 0x80 == 0)?;
    let (number, after) = rest.split_at(len + 1);
    *rest = after;
    let digits = number.iter().take(10).enumerate();
    Some(
        digits
            .fold(0, |n, (place, byte)| n | u64::from(byte & 0x7f).wrapping_shl(u32::try_from(7 * place).unwrap_or(0))),
    )
}

fn take_signed(rest: &mut &[u8]) -> Option<i64> {
    let n = take(rest)?;
    Some((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
}

/// Appends a varint.
pub(crate) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(u8::try_from(n & 0x7f).expect("seven bits") | 0x80);
        n >>= 7;
    }
    out.push(u8::try_from(n).expect("seven bits"));
}

/// Appends a signed varint.
pub(crate) fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, ((n << 1) ^ (n >> 63)).cast_unsigned());
}
