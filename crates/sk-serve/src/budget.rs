//! A token bucket, for all callers together and for each address. Pure: the caller passes the time.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::Instant;

use lru::LruCache;

/// Addresses whose use is remembered: 4,096 of about 100 bytes are 400 KB. One that is forgotten begins anew; the sum of all
/// stays bounded.
const ADDRESSES: NonZeroUsize = NonZeroUsize::new(4_096).expect("the number is not zero");

/// So many at once, and so many a second after that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) burst: f64,
    pub(crate) per_second: f64,
}

/// What is left of a rate.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    filled: Instant,
}

/// What is left, of everything and for each address.
#[derive(Debug)]
pub(crate) struct Budget {
    all: (Rate, Bucket),
    each: Rate,
    addresses: LruCache<IpAddr, Bucket>,
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self { left: rate.burst, filled: now }
    }

    fn refill(&mut self, rate: Rate, now: Instant) {
        let since = now.saturating_duration_since(self.filled).as_secs_f64();
        self.left = (self.left + since * rate.per_second).min(rate.burst);
        self.filled = now;
    }
}

impl Budget {
    pub(crate) fn new(all: Rate, each: Rate, now: Instant) -> Self {
        Self { all: (all, Bucket::full(all, now)), each, addresses: LruCache::new(ADDRESSES) }
    }

    /// Takes one for this address, if there is one left. A refusal takes nothing from anybody.
    pub(crate) fn take(&mut self, from: IpAddr, now: Instant) -> bool {
        let (rate, all) = (self.all.0, &mut self.all.1);
        all.refill(rate, now);
        let each = self.each;
        let own = self.addresses.get_or_insert_mut(from, || Bucket::full(each, now));
        own.refill(each, now);
        if all.left < 1.0 || own.left < 1.0 {
            return false;
        }
        all.left -= 1.0;
        own.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_address_that_has_used_up_its_share_leaves_the_rest_to_others_and_gets_more_with_time() {
        let now = Instant::now();
        let mut budget = Budget::new(Rate { burst: 10.0, per_second: 2.0 }, Rate { burst: 3.0, per_second: 1.0 }, now);
        let [loud, quiet] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        assert_eq!((0..100).filter(|_| budget.take(loud, now)).count(), 3);
        assert_eq!((0..100).filter(|_| budget.take(quiet, now)).count(), 3);
        let later = now + Duration::from_secs(2);
        assert_eq!((0..100).filter(|_| budget.take(loud, later)).count(), 2);
    }

    #[test]
    fn all_addresses_together_have_no_more_than_the_whole() {
        let now = Instant::now();
        let mut budget = Budget::new(Rate { burst: 10.0, per_second: 2.0 }, Rate { burst: 3.0, per_second: 1.0 }, now);
        let many = (0..200).map(|last| IpAddr::from([10, 0, 1, last]));
        assert_eq!(many.clone().filter(|from| budget.take(*from, now)).count(), 10);
        let later = now + Duration::from_secs(3);
        assert_eq!(many.filter(|from| budget.take(*from, later)).count(), 6);
    }
}
