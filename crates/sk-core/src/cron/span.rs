//! Durations as Go's `time.ParseDuration` parses them, in nanoseconds.

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a span such as `1h30m10s`, `-1.5h` or `0`.
pub(super) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|char: char| char == '.' || char.is_ascii_digit()).unwrap_or(after.len());
        let (unit, left) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        };
        let part = amount(whole, fraction, *nanos).ok_or_else(invalid)?;
        total = total.checked_add(part).filter(|total| *total <= i128::from(i64::MAX)).ok_or_else(invalid)?;
        rest = left;
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| invalid())
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len()))
}

fn amount(whole: &str, fraction: &str, nanos: i128) -> Option<i128> {
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Beyond 18 digits a fraction of an hour is less than a nanosecond.
    let fraction: String = fraction.chars().take(18).collect();
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.checked_mul(nanos)?.checked_add(part * nanos / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_go_reads_them() {
        let cases = [("1h30m10s", 5_410_000_000_000), ("-1.5h", -5_400_000_000_000), (".5s", 500_000_000), ("0", 0)];
        for (text, nanos) in cases {
            assert_eq!(parse(text), Ok(nanos), "{text}");
        }
        assert_eq!(parse("1µs"), Ok(1_000));
        for text in ["", "-", ".", ".s", "s", "1h-1s", "99999999999999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
