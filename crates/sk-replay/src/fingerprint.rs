//! A run's id: a hash of everything that determines its result, so the same run has the same id.

use std::fmt;

use sha2::{Digest, Sha256};

/// A hash of everything that decides something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these parts, in this order; each is preceded by its length, so that no two lists of parts run together.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// The six digits that end a run's id.
    pub fn short(&self) -> String {
        self.to_string().chars().take(6).collect()
    }
}

impl fmt::Display for Fingerprint {
    /// 32 hexadecimal digits: as unique as a UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(16).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts_and_parts_do_not_run_together() {
        assert_eq!(Fingerprint::of(&[b"a", b"bc"]), Fingerprint::of(&[b"a", b"bc"]));
        assert_ne!(Fingerprint::of(&[b"a", b"bc"]), Fingerprint::of(&[b"ab", b"c"]));
        assert_eq!(Fingerprint::of(&[]).short().len(), 6);
    }
}
