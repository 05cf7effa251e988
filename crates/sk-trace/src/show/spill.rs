//! Counts more keys than fit into memory: sorted temporary files are merged at the end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

/// How much of the keys stays in memory, with about 64 bytes besides for each.
const MAX_IN_MEMORY: usize = 64 << 20;
const BYTES_PER_KEY: usize = 64;

/// How many files are open at once; more are merged into one.
const MAX_FILES: usize = 64;

/// The longest key: the longest object that a trace may hold is 4 MiB, and so is what leads to a text in it.
const MAX_KEY: usize = 16 << 20;

/// Counts by key.
pub(super) struct Counter {
    counts: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    max_bytes: usize,
    files: Vec<File>,
}

impl Counter {
    pub(super) fn new() -> Self {
        Self::with_memory(MAX_IN_MEMORY)
    }

    fn with_memory(max_bytes: usize) -> Self {
        Self { counts: HashMap::new(), bytes: 0, max_bytes, files: Vec::new() }
    }

    /// Counts a key once more.
    pub(super) fn add(&mut self, key: &[u8]) -> io::Result<()> {
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
            return Ok(());
        }
        if self.bytes > self.max_bytes {
            self.spill()?;
        }
        self.bytes += key.len() + BYTES_PER_KEY;
        self.counts.insert(key.into(), 1);
        Ok(())
    }

    /// What is in memory, sorted.
    fn sorted(&mut self) -> Vec<(Box<[u8]>, u64)> {
        let mut counts: Vec<_> = std::mem::take(&mut self.counts).into_iter().collect();
        counts.sort_unstable();
        self.bytes = 0;
        counts
    }

    fn spill(&mut self) -> io::Result<()> {
        let mut file = BufWriter::new(tempfile::tempfile()?);
        for (key, count) in self.sorted() {
            write(&mut file, &key, count)?;
        }
        self.files.push(rewound(file)?);
        if self.files.len() >= MAX_FILES {
            let mut file = BufWriter::new(tempfile::tempfile()?);
            merge(std::mem::take(&mut self.files), Vec::new(), |key, count| write(&mut file, key, count))?;
            self.files.push(rewound(file)?);
        }
        Ok(())
    }

    /// Every key with its count, in the keys' order.
    pub(super) fn drain<E: From<io::Error>>(mut self, each: impl FnMut(&[u8], u64) -> Result<(), E>) -> Result<(), E> {
        let rest = self.sorted();
        merge(self.files, rest, each)
    }
}

fn rewound(file: BufWriter<File>) -> io::Result<File> {
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

fn write(file: &mut impl Write, key: &[u8], count: u64) -> io::Result<()> {
    let len = u32::try_from(key.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    file.write_all(&len.to_le_bytes())?;
    file.write_all(&count.to_le_bytes())?;
    file.write_all(key)
}

/// A sorted run of keys.
enum Run {
    File(BufReader<File>),
    Memory(std::vec::IntoIter<(Box<[u8]>, u64)>),
}

impl Run {
    fn next(&mut self) -> io::Result<Option<(Box<[u8]>, u64)>> {
        let file = match self {
            Self::Memory(counts) => return Ok(counts.next()),
            Self::File(file) => file,
        };
        let mut head = [0; 12];
        match file.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let (len, count) = head.split_at(4);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let len = usize::try_from(number(len)).unwrap_or(usize::MAX);
        if len > MAX_KEY {
            return Err(io::Error::other("a temporary file was changed by somebody else"));
        }
        let mut key = vec![0; len];
        file.read_exact(&mut key)?;
        Ok(Some((key.into(), number(count))))
    }
}

/// Walks through sorted runs at once, adding up equal keys.
fn merge<E: From<io::Error>>(
    files: Vec<File>,
    memory: Vec<(Box<[u8]>, u64)>,
    mut each: impl FnMut(&[u8], u64) -> Result<(), E>,
) -> Result<(), E> {
    let files = files.into_iter().map(|file| Run::File(BufReader::new(file)));
    let mut runs: Vec<Run> = files.chain([Run::Memory(memory.into_iter())]).collect();
    let mut next = BinaryHeap::new();
    for (place, run) in runs.iter_mut().enumerate() {
        next.extend(run.next()?.map(|(key, count)| Reverse((key, place, count))));
    }
    let mut open: Option<(Box<[u8]>, u64)> = None;
    while let Some(Reverse((key, place, count))) = next.pop() {
        next.extend(runs[place].next()?.map(|(key, count)| Reverse((key, place, count))));
        match &mut open {
            Some((same, sum)) if *same == key => *sum += count,
            _ => {
                if let Some((key, sum)) = open.replace((key, count)) {
                    each(&key, sum)?;
                }
            }
        }
    }
    open.map_or(Ok(()), |(key, sum)| each(&key, sum))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn counting_with_little_memory_is_counting(keys in prop::collection::vec("[a-c]{0,3}", 0..400)) {
            let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            // Room for one key: every other one goes to a file, and files are merged now and then.
            let mut counter = Counter::with_memory(1);
            for key in &keys {
                counter.add(key.as_bytes()).unwrap();
                *expected.entry(key.clone().into_bytes()).or_default() += 1;
            }
            let mut counted = Vec::new();
            counter.drain(|key, count| -> io::Result<()> { counted.push((key.to_vec(), count)); Ok(()) }).unwrap();
            prop_assert_eq!(counted, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
