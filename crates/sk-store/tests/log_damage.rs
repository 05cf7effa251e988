//! Whatever happens to a log's files, it opens, what is whole is there, and what is not is said to be missing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "support/facts.rs"]
mod facts;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use facts::{apply, at, delete, entries, open, pod};
use proptest::prelude::*;
use sk_store::log::{Entry, Fact, Item, Log, LogError, Options, Query};
use sk_store::trace::{self, Format};

const WEB: &str = "apps/v1.Deployment default/web";

/// The segments of a log, oldest first.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "sklog")).collect();
    paths.sort();
    paths
}

/// A log of one segment, synced after each of these entries, and how long it was after each sync.
fn synced_one_by_one(folder: &Path, count: i64) -> Vec<u64> {
    let mut log = open(folder);
    let lengths = (0..count).map(|n| {
        log.append(at(n), apply(WEB, n as u64)).unwrap();
        log.sync().unwrap();
        fs::metadata(&segments(folder)[0]).unwrap().len()
    });
    lengths.collect()
}

#[test]
fn a_segment_that_is_cut_at_any_byte_keeps_every_entry_that_was_synced_before() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = synced_one_by_one(folder.path(), 8);
    let path = segments(folder.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    for end in 0..=whole.len() {
        let damaged = tempfile::tempdir().unwrap();
        fs::write(damaged.path().join(path.file_name().unwrap()), &whole[..end]).unwrap();
        let (mut log, recovered) = Log::open(damaged.path(), Options::default()).unwrap();
        let kept = lengths.iter().filter(|length| **length <= end as u64).count();
        assert_eq!(entries(&log.reader()).len(), kept, "cut at {end}");
        assert_eq!(log.state().objects().len(), usize::from(kept > 0), "cut at {end}");
        if recovered.put_aside.is_empty() {
            let good = lengths.iter().rev().copied().find(|length| *length <= end as u64);
            assert!(good.is_none_or(|good| recovered.cut_bytes == end as u64 - good), "cut at {end}");
        }
        let seq = log.append(at(100), delete(WEB)).unwrap();
        assert_eq!(seq, kept as u64 + 1);
        log.sync().unwrap();
        assert_eq!(entries(&log.reader()).len(), kept + 1, "and it goes on, cut at {end}");
        assert_eq!(log.reader().items().count(), kept + 1);
    }
}

#[test]
fn a_torn_end_is_cut_once_and_then_the_log_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    synced_one_by_one(folder.path(), 5);
    let path = segments(folder.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [whole.as_slice(), &[0; 4096]].concat()).unwrap();
    let (log, recovered) = Log::open(folder.path(), Options::default()).unwrap();
    assert_eq!((recovered.cut_bytes, recovered.newest), (4096, Some((5, at(4)))));
    drop(log);
    assert_eq!(fs::read(&path).unwrap(), whole);
    let (_, recovered) = Log::open(folder.path(), Options::default()).unwrap();
    assert_eq!(recovered.cut_bytes, 0);
}

/// What [`several_segments`] makes.
struct Made {
    files: Vec<(PathBuf, Vec<u8>)>,
    entries: Vec<Entry>,
}

/// The same, made once.
fn made_once() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let log = several_segments(folder.path());
        let name = |path: &PathBuf| PathBuf::from(path.file_name().unwrap());
        let files = segments(folder.path()).iter().map(|path| (name(path), fs::read(path).unwrap())).collect();
        Made { files, entries: entries(&log.reader()) }
    })
}

/// A log of several segments of a growing and shrinking cluster; the last one is open.
fn several_segments(folder: &Path) -> Log {
    let (mut log, _) = Log::open(folder, Options { segment_bytes: 3_000, ..Options::default() }).unwrap();
    for n in 0..200 {
        let name = format!("v1.ConfigMap default/c{}", n % 5);
        let fact = match n % 23 {
            22 => delete(&name),
            21 => Fact::Node(format!("n{}", n % 3).into(), Some(format!("{{\"v\":{n}}}").into())),
            20 => Fact::Pod(Box::new(pod(&format!("p{n}"), None, at(n), Some("n1")))),
            _ => apply(&name, n as u64),
        };
        log.append(at(n), fact).unwrap();
        log.sync().unwrap();
    }
    log
}

#[test]
fn damage_in_an_older_segment_loses_only_what_follows_it_there_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let log = several_segments(folder.path());
    let truth = log.state().clone();
    let paths = segments(folder.path());
    assert!(paths.len() > 4, "{}", paths.len());
    let whole = entries(&log.reader());
    drop(log);
    let mut bytes = fs::read(&paths[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&paths[1], &bytes).unwrap();
    let (log, recovered) = Log::open(folder.path(), Options::default()).unwrap();
    assert_eq!((recovered.put_aside.len(), log.state()), (0, &truth), "the newest segment has the whole state");
    let mut items = log.reader().items();
    let (mut followed, mut lost, mut healed) = (sk_store::log::State::default(), whole.len(), 0);
    for item in items.by_ref() {
        match item {
            Item::State(fact) => followed.apply(at(0), fact),
            Item::Entry(entry) => {
                lost -= 1;
                assert!(whole.contains(&entry));
                followed.apply(entry.at, entry.fact);
            }
            Item::Healed(at, fact) => {
                healed += 1;
                followed.apply(at, fact);
            }
            Item::Vanished(..) => {}
        }
    }
    assert!(lost > 3 && lost < 40 && healed > 0, "lost {lost}, healed {healed}");
    assert!(followed.objects().eq(truth.objects()) && followed.nodes().eq(truth.nodes()), "who follows has the truth");
    let [damage] = items.damages() else { panic!("{:?}", items.damages()) };
    assert!(damage.from < damage.to.unwrap() && damage.reason.contains("checksum"), "{damage:?}");

    let mut bytes = Vec::new();
    let exported = log.reader().export(&Query::window(at(0), at(200)), Format::Native, &mut bytes).unwrap();
    assert_eq!((exported.damages.len(), exported.gaps), (1, 1));
    let trace = trace::from_bytes("export", bytes).unwrap();
    let gap = trace.gaps().unwrap().next().unwrap().unwrap();
    assert!(gap.from == damage.from && Some(gap.to) == damage.to && gap.reason.contains("damaged"), "{gap:?}");
    let after = log.reader().export(&Query::window(at(190), at(200)), Format::Native, std::io::sink()).unwrap();
    assert_eq!((after.damages.len(), after.gaps), (0, 0), "it does not reach there");
}

#[test]
fn a_segment_that_is_gone_is_damage_too() {
    let folder = tempfile::tempdir().unwrap();
    let log = several_segments(folder.path());
    drop(log);
    fs::remove_file(&segments(folder.path())[2]).unwrap();
    let log = open(folder.path());
    let mut items = log.reader().items();
    items.by_ref().for_each(drop);
    assert!(matches!(items.damages(), [damage] if damage.reason.contains("missing")), "{:?}", items.damages());
}

#[test]
fn a_segment_of_a_newer_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    synced_one_by_one(folder.path(), 2);
    let path = segments(folder.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 9;
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..40]);
    bytes[40..48].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let error = Log::open(folder.path(), Options::default()).err().unwrap();
    assert!(matches!(error, LogError::Newer { version: 9, .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn what_is_left_of_a_segment_that_never_began_is_swept_away() {
    let folder = tempfile::tempdir().unwrap();
    synced_one_by_one(folder.path(), 2);
    let left = folder.path().join("0000000002.new");
    fs::write(&left, b"half a state").unwrap();
    let log = open(folder.path());
    assert!(!left.exists());
    assert_eq!(entries(&log.reader()).len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_make_a_log_unopenable_and_never_invent_entries(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let Made { files, entries: whole } = made_once();
        files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        let paths = segments(folder.path());
        for (which, place, mask) in flips {
            let path = which.get(&paths);
            let mut bytes = fs::read(path).unwrap();
            let place = place.index(bytes.len());
            // Another version is not damage, and is refused by name elsewhere.
            if !(8..12).contains(&place) {
                bytes[place] ^= mask;
            }
            fs::write(path, &bytes).unwrap();
        }
        let (mut log, _) = Log::open(folder.path(), Options::default()).unwrap();
        let read = entries(&log.reader());
        prop_assert!(read.iter().all(|entry| whole.contains(entry)));
        prop_assert!(read.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].at <= pair[1].at));
        log.append(at(500), apply(WEB, 1)).unwrap();
        log.sync().unwrap();
        let (from, _) = log.reader().kept().unwrap();
        let mut bytes = Vec::new();
        log.reader().export(&Query::window(from, at(501)), Format::Native, &mut bytes).unwrap();
        let trace = trace::from_bytes("export", bytes).unwrap();
        prop_assert!(trace.records().unwrap().all(|record| record.is_ok()));
    }
}
