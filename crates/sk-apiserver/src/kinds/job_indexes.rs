//! Sets of completion indexes as an indexed Job's status writes them: `1,3-5,7` (`indexed_job_utils.go`, 1.36).
//!
//! A set is a sorted list of intervals, so a Job with 100,000 indexes costs as much as its gaps.

use std::fmt;

/// A set of indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// First and last of each interval; no two touch.
    intervals: Vec<(u32, u32)>,
}

impl Indexes {
    /// Reads a set and drops what is not below `completions`. An interval that cannot be read is passed over, as
    /// Kubernetes does: the text is its own, from a status.
    pub fn parse(text: &str, completions: u32) -> Self {
        let mut set = Self::default();
        for interval in text.split(',').filter(|interval| !interval.is_empty()) {
            let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
            let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { continue };
            if first >= completions {
                break;
            }
            set.push((first, last.min(completions - 1)));
        }
        set
    }

    /// Joins two sets.
    pub fn merge(&self, other: &Self) -> Self {
        let mut all: Vec<_> = self.intervals.iter().chain(&other.intervals).copied().collect();
        all.sort_unstable();
        let mut set = Self::default();
        all.into_iter().for_each(|interval| set.push(interval));
        set
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.intervals.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// Is the set empty?
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Is this one of them?
    pub fn has(&self, index: u32) -> bool {
        let place = self.intervals.partition_point(|(_, last)| *last < index);
        self.intervals.get(place).is_some_and(|(first, _)| *first <= index)
    }

    /// How many both have.
    pub fn overlap(&self, other: &Self) -> u64 {
        let (mut mine, mut theirs, mut common) = (0, 0, 0);
        while let (Some(one), Some(two)) = (self.intervals.get(mine), other.intervals.get(theirs)) {
            let (first, last) = (one.0.max(two.0), one.1.min(two.1));
            if first <= last {
                common += u64::from(last - first) + 1;
            }
            if one.1 <= two.1 { mine += 1 } else { theirs += 1 }
        }
        common
    }

    /// The first `count` indexes below `completions` that are not in the set.
    pub fn first_missing(&self, count: usize, completions: u32) -> Vec<u32> {
        let mut missing = Vec::new();
        let mut candidate = 0;
        let ends = [(completions, completions)];
        for (first, last) in self.intervals.iter().chain(&ends) {
            let free = candidate..(*first).min(completions);
            missing.extend(free.take(count - missing.len()));
            candidate = candidate.max(last.saturating_add(1));
        }
        missing
    }

    /// Adds an interval that begins at or after the last one.
    fn push(&mut self, interval: (u32, u32)) {
        match self.intervals.last_mut() {
            Some(last) if interval.0 <= last.1.saturating_add(1) => last.1 = last.1.max(interval.1),
            _ => self.intervals.push(interval),
        }
    }
}

impl FromIterator<u32> for Indexes {
    fn from_iter<I: IntoIterator<Item = u32>>(indexes: I) -> Self {
        let mut sorted: Vec<_> = indexes.into_iter().collect();
        sorted.sort_unstable();
        let mut set = Self::default();
        sorted.into_iter().for_each(|index| set.push((index, index)));
        set
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.intervals.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_as_kubernetes_writes_it_and_comes_back() {
        let set: Indexes = [7, 1, 4, 3, 5, 9, 10, 3].into_iter().collect();
        assert_eq!(set.to_string(), "1,3-5,7,9,10");
        assert_eq!(Indexes::parse("1,3-5,7,9,10", 11), set);
        assert_eq!(Indexes::parse("1,3-5,7,9,10", 5).to_string(), "1,3,4", "a Job that shrank forgets the rest");
        assert_eq!(Indexes::parse("x,-3,2-y,4", 9).to_string(), "4");
        assert_eq!((set.total(), Indexes::default().total()), (7, 0));
    }

    #[test]
    fn sets_are_joined_searched_and_completed() {
        let set: Indexes = [0, 1, 5].into_iter().collect();
        let other = Indexes::parse("2-3,5,8", 20);
        assert_eq!(set.merge(&other).to_string(), "0-3,5,8");
        assert_eq!([0, 2, 5, 6].map(|index| set.has(index)), [true, false, true, false]);
        assert_eq!((set.overlap(&other), other.overlap(&set)), (1, 1));
        assert_eq!(set.first_missing(3, 10), [2, 3, 4]);
        assert_eq!(set.first_missing(9, 7), [2, 3, 4, 6]);
        assert_eq!(set.first_missing(0, 7), [0; 0]);
        assert_eq!(Indexes::default().first_missing(2, 1), [0]);
    }
}
