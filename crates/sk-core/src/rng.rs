//! Seeded randomness with a named stream per use.
//!
//! The n-th number of a stream depends on seed, stream name and n alone, so drawing one more number in one place never
//! shifts the numbers drawn in another: a run stays comparable when a feature is switched on. Not for secrets.

/// One stream of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
    drawn: u64,
}

/// Kubernetes' alphabet for generated name suffixes: no vowels and no look-alikes, so that no word is spelt by accident
/// (apimachinery `util/rand`, 1.36).
const NAME_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

impl Stream {
    /// The stream called `name` of the run seeded with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a folds the name; the finaliser spreads it over all bits.
        let folded = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self { key: mix(folded ^ mix(seed)), drawn: 0 }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        mix(self.key.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// How many numbers were drawn so far.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    /// Passes over `count` numbers, as if each had been drawn.
    pub fn skip(&mut self, count: u64) {
        self.drawn = self.drawn.wrapping_add(count);
    }

    /// The next 128 bits.
    pub fn next_u128(&mut self) -> u128 {
        (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64())
    }

    /// A number below `bound`; 0 when `bound` is 0. The bias of the multiplication is below 2⁻³² for our small bounds.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts a list into any order; for a list of fewer than two, nothing is drawn.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            list.swap(place, self.below(place as u64 + 1) as usize);
        }
    }

    /// `len` characters as Kubernetes puts behind a `generateName`.
    pub fn name_suffix(&mut self, len: usize) -> String {
        let mut suffix = String::with_capacity(len);
        self.push_name_suffix(len, &mut suffix);
        suffix
    }

    /// The same, put behind what is there.
    pub fn push_name_suffix(&mut self, len: usize, name: &mut String) {
        name.extend((0..len).map(|_| char::from(NAME_ALPHABET[self.below(NAME_ALPHABET.len() as u64) as usize])));
    }
}

/// The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_different_names_and_seeds_differ_and_repeat() {
        let draw = |seed, name| Stream::new(seed, name).next_u128();
        assert_eq!(draw(1, "uid"), draw(1, "uid"));
        assert_ne!(draw(1, "uid"), draw(2, "uid"));
        assert_ne!(draw(1, "uid"), draw(1, "jitter"));
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut stream = Stream::new(7, "test");
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[stream.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (800..1200).contains(&count)), "{seen:?}");
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn numbers_that_are_passed_over_are_as_good_as_drawn() {
        let (mut drawn, mut skipped) = (Stream::new(7, "test"), Stream::new(7, "test"));
        for bound in 0..1_000 {
            drawn.below(bound);
        }
        skipped.skip(1_000);
        assert_eq!((skipped.drawn(), skipped.next_u64()), (1_000, drawn.next_u64()));
        assert_eq!(skipped, drawn);
    }

    #[test]
    fn a_shuffled_list_comes_in_every_order_about_as_often() {
        let mut stream = Stream::new(7, "shuffle");
        let mut seen = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..6_000 {
            let mut list = [1, 2, 3];
            stream.shuffle(&mut list);
            *seen.entry(list).or_default() += 1;
        }
        assert!(seen.len() == 6 && seen.values().all(|count| (850..1150).contains(count)), "{seen:?}");
    }

    #[test]
    fn name_suffixes_use_the_alphabet_of_kubernetes() {
        let suffix = Stream::new(1, "name").name_suffix(500);
        assert_eq!(suffix.len(), 500);
        assert!(suffix.bytes().all(|byte| NAME_ALPHABET.contains(&byte)));
    }
}
