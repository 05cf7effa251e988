//! Hides private strings: each becomes a keyed hash. Equal strings have equal hashes, and without the key nobody can
//! find a string by trying.
//!
//! The hash is SipHash-2-4 with 128 bits, a pseudo-random function with a secret key per cluster. A hash is not hashed
//! again, so a template read back from a trace still equals that of a pod that was just seen. The empty string stays,
//! because Kubernetes treats it as absent.
//!
//! A CIDR is hidden bit by bit ([`Spelling::Range`]), so that ranges which contain each other still do; API servers
//! check that. Such strings are not cached; no pod has one.

use std::fmt;
use std::hash::Hasher;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use siphasher::sip128::{Hasher128, SipHasher24};

/// How many digits a hash has: 128 bits in hexadecimal.
const DIGITS: usize = 32;

/// The secret under which texts are hidden. Whoever keeps it keeps it in one place and out of traces.
#[derive(Clone)]
pub struct PrivacyKey([u8; 16]);

impl PrivacyKey {
    /// From 16 random bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The same, so that it can be kept over restarts.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    fn hash(&self, text: &str) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(text.as_bytes());
        hasher.finish128().as_u128()
    }

    /// What stands in for `text`, appended to `out`.
    pub(crate) fn hide(&self, text: &str, spelling: Spelling, out: &mut Vec<u8>) {
        if text.is_empty() || spelling.is_hidden(text) {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        let hash = self.hash(text);
        match spelling {
            Spelling::Address => put_text(out, format_args!("{}", address(hash))),
            Spelling::Range => match self.range(text) {
                Some((address, length)) => put_text(out, format_args!("{address}/{length}")),
                None => put_hash(out, Spelling::Text, hash),
            },
            Spelling::Text | Spelling::Base64 | Spelling::Name | Spelling::Path => put_hash(out, spelling, hash),
        }
    }

    /// A range of the same family and length, if it is one.
    fn range(&self, text: &str) -> Option<(IpAddr, u32)> {
        let (address, length) = text.split_once('/')?;
        let length: u32 = length.parse().ok()?;
        match address.parse().ok()? {
            IpAddr::V4(address) if length <= u32::BITS => {
                let bits = self.network(4, u128::from(address.to_bits()) << 96, length) >> 96;
                Some((Ipv4Addr::from_bits(u32::try_from(bits).ok()?).into(), length))
            }
            IpAddr::V6(address) if length <= u128::BITS => {
                Some((Ipv6Addr::from_bits(self.network(6, address.to_bits(), length)).into(), length))
            }
            _ => None,
        }
    }

    /// The first bits of an address, each turned over or not as the key says for those before it, so that two addresses
    /// have as many first bits in common afterwards as before. The rest is nought.
    fn network(&self, family: u8, bits: u128, length: u32) -> u128 {
        let turned = |place: u32| {
            let mut hasher = SipHasher24::new_with_key(&self.0);
            hasher.write(b"range");
            hasher.write_u8(family);
            hasher.write_u32(place);
            hasher.write_u128(bits & !(u128::MAX >> place));
            let top = 1 << (u128::BITS - 1);
            (bits ^ (u128::from(hasher.finish() & 1) << (u128::BITS - 1 - place))) & (top >> place)
        };
        (0..length).map(turned).fold(0, |hidden, bit| hidden | bit)
    }
}

impl fmt::Debug for PrivacyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivacyKey(secret)")
    }
}

/// How a hash is written, so that an API server takes it where the text stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `sk:0123…`, where anything goes.
    Text,
    /// `sk//0123…`, which is 36 letters of the base64 alphabet and so decodes.
    Base64,
    /// `sk-0123…`, where a DNS label, a relative path or a header's name is wanted.
    Name,
    /// `/sk-0123…`, where a path is wanted.
    Path,
    /// `fd73:6b01:…`, where an IP address is wanted: a local one that is nobody's.
    Address,
    /// `93.0.0.0/8`, where a range of addresses is wanted: as long, of the same family, and within whatever it was within.
    Range,
}

impl Spelling {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Text | Self::Range => "sk:",
            Self::Base64 => "sk//",
            Self::Name => "sk-",
            Self::Path => "/sk-",
            Self::Address => "fd73:6b",
        }
    }

    /// Has the text come from [`PrivacyKey::hide`]?
    fn is_hidden(self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.prefix()) else { return false };
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match self {
            Self::Address => rest.bytes().all(|byte| hex(byte) || byte == b':'),
            _ => rest.len() == DIGITS && rest.bytes().all(hex),
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes everything");
}

/// A hash in hexadecimal after its prefix. Most of what is hidden comes this way.
fn put_hash(out: &mut Vec<u8>, spelling: Spelling, hash: u128) {
    let digit = |place: usize| b"0123456789abcdef"[(hash >> (4 * (DIGITS - 1 - place))) as usize & 15];
    out.extend_from_slice(spelling.prefix().as_bytes());
    out.extend_from_slice(&std::array::from_fn::<u8, DIGITS, _>(digit));
}

/// A unique local IPv6 address (RFC 4193) that starts with the letters "sk" after its first byte.
fn address(hash: u128) -> Ipv6Addr {
    Ipv6Addr::from((0x00fd_736b_u128 << 104) | (hash >> 24) | 1 << 103)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Spelling; 5] = [Spelling::Text, Spelling::Base64, Spelling::Name, Spelling::Path, Spelling::Address];

    fn hidden(key: u8, text: &str, spelling: Spelling) -> String {
        let mut out = Vec::new();
        PrivacyKey::new([key; 16]).hide(text, spelling, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn equal_texts_stay_equal_under_one_key_and_only_there() {
        for spelling in ALL {
            let secret = hidden(1, "hunter2", spelling);
            assert_eq!(secret, hidden(1, "hunter2", spelling));
            assert_ne!(secret, hidden(1, "hunter3", spelling));
            assert_ne!(secret, hidden(2, "hunter2", spelling));
            assert!(!secret.contains("hunter"));
        }
    }

    #[test]
    fn hiding_twice_is_hiding_once_and_nothing_stays_nothing() {
        for spelling in ALL {
            let once = hidden(1, "hunter2", spelling);
            assert_eq!(hidden(1, &once, spelling), once, "{spelling:?}");
            assert_eq!(hidden(1, "", spelling), "");
        }
        let near = "sk:0123456789ABCDEF0123456789abcdef";
        assert_ne!(hidden(1, near, Spelling::Text), near, "only what looks exactly like a hash");
    }

    #[test]
    fn a_hash_is_spelt_as_its_place_wants_it() {
        assert_eq!(hidden(1, "x", Spelling::Base64).len() % 4, 0);
        assert!(sk_core::label::is_dns_subdomain(&hidden(1, "x", Spelling::Name)));
        let address: std::net::IpAddr = hidden(1, "10.0.0.1", Spelling::Address).parse().unwrap();
        assert!(address.is_ipv6());
    }

    #[test]
    fn a_range_stays_a_range_within_whatever_it_was_within_and_as_long() {
        let range = |key, text: &str| hidden(key, text, Spelling::Range);
        let bits = |text: &str| match text.split_once('/').unwrap().0.parse().unwrap() {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        for [outer, inner] in [
            ["203.0.0.0/9", "203.0.113.0/24"],
            ["203.0.113.0/24", "203.0.113.7/32"],
            ["2001:db8::/32", "2001:db8:1::/48"],
            ["2001:db8::/32", "2001:db8::1/128"],
        ] {
            let [hidden_outer, hidden_inner] = [range(1, outer), range(1, inner)];
            assert_ne!(hidden_inner, inner);
            assert_ne!(hidden_inner, range(2, inner), "nobody without the key can try it out");
            assert_eq!(hidden_inner, range(1, inner));
            for (plain, hidden) in [(outer, &hidden_outer), (inner, &hidden_inner)] {
                assert_eq!(plain.split_once('/').unwrap().1, hidden.split_once('/').unwrap().1, "as long");
                assert_eq!(plain.contains(':'), hidden.contains(':'), "of the same family");
            }
            let length: u32 = outer.split_once('/').unwrap().1.parse().unwrap();
            assert_eq!(bits(&hidden_outer) >> (128 - length), bits(&hidden_inner) >> (128 - length), "within");
        }
        assert_eq!(range(1, "0.0.0.0/0"), "0.0.0.0/0", "everything stays everything");
        for no_range in ["203.0.113.7", "203.0.113.0/33", "x/8", "/", "2001:db8::/129"] {
            assert!(range(1, no_range).starts_with("sk:"), "{no_range}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", PrivacyKey::new([7; 16])), "PrivacyKey(secret)");
    }
}
