//! Parses quantities, with every oddity of the original: `.`, `+` and `Ki` alone are zero (but not `Pi`), `1.` is one,
//! `1E` is an exa but `1E3` an exponent, and anything finer than a nano rounds up, away from zero.
//!
//! It works on the digits as written, so nothing is lost before the one rounding at the end.

use std::borrow::Cow;
use std::str::FromStr;

use super::{Format, NANOS_PER_UNIT, Quantity};

/// The longest text that is read. An `i128` of nano-units has 39 digits, so anything longer is zeros or noise.
const MAX_TEXT_BYTES: usize = 256;

/// A number of this many decimal digits always fits an `i64` (Kubernetes' `maxInt64Factors`).
const MAX_SHORT_DIGITS: i64 = 18;

/// Digits after the point that a quantity keeps.
const NANO_DIGITS: i64 = 9;

const BINARY_SUFFIXES: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not a number followed by a suffix.
    #[error("`{0}` is not a quantity: write a number and a unit, like `500m`, `1.5` or `128Mi`")]
    Malformed(String),
    /// A number, but its unit is unknown.
    #[error("`{0}` has no known unit: use n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent like e3")]
    UnknownSuffix(String),
    /// A number that an `i128` of nano-units cannot hold.
    #[error("`{0}` is too large: quantities end at 1.7e29")]
    TooLarge(String),
    /// More text than any quantity needs.
    #[error("a quantity of {0} bytes is refused: at most {MAX_TEXT_BYTES} are read")]
    TooLong(usize),
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Written::parse(text)?.quantity().ok_or_else(|| ParseQuantityError::TooLarge(text.to_owned()))
    }
}

/// How an API server answers when it was given `text`: mostly the canonical form, but some texts come back as they
/// were written. Kubernetes keeps the text of a number that needs no shifting to print, and so `1.500` stays `1.500`
/// while `1.5` becomes `1500m`.
pub fn as_answered(text: &str) -> Result<Cow<'_, str>, ParseQuantityError> {
    let written = Written::parse(text)?;
    if written.keeps_its_text() {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(text.parse::<Quantity>()?.to_string()))
}

/// The suffix for 2^exponent; none beyond `Ei`, as in Kubernetes.
pub(super) fn binary_suffix(exponent: i32) -> &'static str {
    BINARY_SUFFIXES.iter().find(|(_, e)| *e == exponent).map_or("", |(suffix, _)| suffix)
}

/// The suffix for 10^exponent; none beyond `E`, as in Kubernetes.
pub(super) fn decimal_suffix(exponent: i32) -> &'static str {
    DECIMAL_SUFFIXES.iter().find(|(_, e)| *e == exponent).map_or("", |(suffix, _)| suffix)
}

/// A quantity's text, taken apart.
struct Written<'a> {
    negative: bool,
    /// Before the point, without leading zeros, but at least `0`.
    whole: &'a str,
    /// After the point.
    fraction: &'a str,
    /// Of ten, or of two in the binary format.
    exponent: i32,
    format: Format,
}

impl<'a> Written<'a> {
    fn parse(text: &'a str) -> Result<Self, ParseQuantityError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(ParseQuantityError::TooLong(text.len()));
        }
        if text.is_empty() {
            return Err(ParseQuantityError::Malformed(String::new()));
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if !looks_like_a_suffix(suffix) {
            return Err(ParseQuantityError::Malformed(text.to_owned()));
        }
        let (format, exponent) =
            read_suffix(suffix).ok_or_else(|| ParseQuantityError::UnknownSuffix(text.to_owned()))?;
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        let whole = Some(whole.trim_start_matches('0')).filter(|digits| !digits.is_empty()).unwrap_or("0");
        let written = Self { negative, whole, fraction, exponent, format };
        if !has_digits && !written.is_short() {
            return Err(ParseQuantityError::Malformed(text.to_owned()));
        }
        Ok(written)
    }

    /// Can Kubernetes read it with plain `i64` arithmetic? (quantity.go, the fast path of `ParseQuantity`.) It shows:
    /// only such a text may stand without digits or be printed back as written.
    fn is_short(&self) -> bool {
        let digits = (self.whole.len() + self.fraction.len()) as i64;
        match self.format {
            // Three of ten bits are a decimal digit, and 14 digits beside them always fit.
            Format::BinarySi => self.fraction.is_empty() && digits <= i64::from(14 - self.exponent * 3 / 10),
            _ => digits <= MAX_SHORT_DIGITS && self.scale() >= -NANO_DIGITS,
        }
    }

    /// The power of ten of a decimal number's last digit.
    fn scale(&self) -> i64 {
        i64::from(self.exponent) - self.fraction.len() as i64
    }

    /// `None` if it is too large.
    fn quantity(&self) -> Option<Quantity> {
        let mut digits: Vec<u8> = self.whole.bytes().chain(self.fraction.bytes()).map(|digit| digit - b'0').collect();
        let mut after_point = self.fraction.len() as i64;
        if self.format == Format::BinarySi {
            for _ in 0..self.exponent / 10 {
                multiply_by_1024(&mut digits);
            }
        } else {
            after_point -= i64::from(self.exponent);
        }
        let magnitude = nanos_rounded_up(&digits, after_point);
        let (magnitude, format) = match self.format {
            Format::BinarySi => limit_binary(magnitude),
            format => (magnitude?, format),
        };
        Some(Quantity { nanos: if self.negative { -magnitude } else { magnitude }, format })
    }

    /// Does Kubernetes print it back as it was written?
    fn keeps_its_text(&self) -> bool {
        let digits = || self.whole.bytes().chain(self.fraction.bytes());
        let needs_no_shift = match self.format {
            Format::BinarySi => self.whole.parse::<u64>().is_ok_and(|value| value % 8 != 0),
            _ => {
                let ends_in_000 = digits().count() >= 3 && digits().rev().take(3).all(|digit| digit == b'0');
                self.scale() % 3 == 0 && !ends_in_000 && !self.whole.starts_with('0')
            }
        };
        self.is_short() && needs_no_shift
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Letters that occur in suffixes, then perhaps a sign, then digits.
fn looks_like_a_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_suffix(suffix: &str) -> Option<(Format, i32)> {
    let find = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, exponent)| *exponent);
    if let Some(exponent) = find(&DECIMAL_SUFFIXES) {
        return Some((Format::DecimalSi, exponent));
    }
    if let Some(exponent) = find(&BINARY_SUFFIXES) {
        return Some((Format::BinarySi, exponent));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Format::DecimalExponent, exponent))
}

/// Long multiplication of a decimal number, most significant digit first.
fn multiply_by_1024(digits: &mut Vec<u8>) {
    let mut carry: u32 = 0;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit) * 1024 + carry;
        *digit = (product % 10) as u8;
        carry = product / 10;
    }
    while carry > 0 {
        digits.insert(0, (carry % 10) as u8);
        carry /= 10;
    }
}

/// The number whose last `after_point` digits stand behind the point, in nano-units; `None` if an `i128` cannot hold
/// it. A negative `after_point` means zeros before the point that are not written.
fn nanos_rounded_up(digits: &[u8], after_point: i64) -> Option<i128> {
    if digits.iter().all(|digit| *digit == 0) {
        return Some(0);
    }
    let kept = digits.len() as i64 - after_point + NANO_DIGITS;
    let mut nanos: i128 = 0;
    // Ends early at 10^38 through the checked arithmetic, however large an exponent was written.
    for place in 0..kept.max(0) {
        let digit = usize::try_from(place).ok().and_then(|place| digits.get(place)).copied().unwrap_or(0);
        nanos = nanos.checked_mul(10)?.checked_add(i128::from(digit))?;
    }
    let dropped = digits.get(usize::try_from(kept).unwrap_or(0)..).unwrap_or_default();
    let inexact = dropped.iter().any(|digit| *digit != 0);
    nanos.checked_add(i128::from(inexact))
}

/// Binary quantities are capped at the largest `i64`, and below one they become decimal.
fn limit_binary(magnitude: Option<i128>) -> (i128, Format) {
    const CAP: i128 = i64::MAX as i128 * NANOS_PER_UNIT;
    match magnitude {
        Some(nanos) if nanos > 0 && nanos < NANOS_PER_UNIT => (nanos, Format::DecimalSi),
        Some(nanos) => (nanos.min(CAP), Format::BinarySi),
        None => (CAP, Format::BinarySi),
    }
}
