//! String formats in the schemas of custom resources (`kube-openapi/pkg/validation/strfmt`, 1.36): dates and times,
//! addresses, names, identifiers.
//!
//! `email` and `uri` get a check of their shape; Go's parsers check every character. `isbn`, `creditcard`, `ssn`,
//! `rgbcolor` and `bsonobjectid` get no check. Like a real API server, this code ignores formats that it does not
//! know.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::base64;

/// Is a text of this format? `None`: the format is not judged.
pub(super) fn is_valid(format: &str, text: &str) -> Option<bool> {
    Some(match format.replace('-', "").as_str() {
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "ipv4" => text.contains('.') && is_address(text),
        "ipv6" => text.contains(':') && is_address(text),
        "cidr" => is_network(text),
        "mac" => is_mac(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "byte" => !text.is_empty() && base64::decode(text).is_ok(),
        "hostname" => is_host_name(text),
        "email" => is_email(text),
        "uri" => is_uri(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            [3, 6].contains(&digits.len()) && is_hex(digits)
        }
        "k8sshortname" => text.len() <= 63 && is_short_name(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_short_name),
        _ => return None,
    })
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn number(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// `2006-01-02`
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |digits| parts.next().and_then(|part| number(part, digits));
    let (Some(year), Some(month), Some(day)) = (part(4), part(2), part(2)) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    parts.next().is_none() && (1..=days).contains(&day)
}

/// A date, and a time with its zone.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_zoned_time(time).unwrap_or(false)
}

/// `15:04:05.999+02:00`; `None`: it is too short.
fn is_zoned_time(time: &str) -> Option<bool> {
    let is_clock = |text: &str, limits: [u32; 3]| {
        let parts: Vec<&str> = text.split(':').collect();
        parts.len() == 3
            && parts.iter().zip(limits).all(|(part, limit)| number(part, 2).is_some_and(|number| number <= limit))
    };
    let (clock, mut rest) = (time.get(..8)?, time.get(8..)?);
    let mut letters = rest.chars();
    // Any letter may stand before the fraction, as in the server's pattern.
    if letters.next().is_some_and(|first| !['z', '+', '-'].contains(&first)) {
        let fraction = letters.as_str();
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Some(false);
        }
        rest = fraction.get(digits..)?;
    }
    let is_offset = |offset: &str| {
        let (hours, minutes) = offset.split_once(':').unwrap_or_default();
        number(hours, 2).is_some() && number(minutes, 2).is_some()
    };
    let is_zone = rest == "z" || rest.strip_prefix(['+', '-']).is_some_and(is_offset);
    Some(is_clock(clock, [23, 59, 59]) && is_zone)
}

/// As Go reads it, or numbers with the names of units: `1h30m`, `3 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    if ["0", "+0", "-0"].contains(&text) {
        return true;
    }
    let is_unit = |unit: &str| {
        let unit = unit.to_lowercase();
        let fits =
            |names: &&[&str]| names.contains(&unit.as_str()) || names.last().is_some_and(|last| unit.starts_with(last));
        UNITS.iter().any(fits)
    };
    let mut rest = text;
    let mut is_found = false;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let digits = rest[start..].find(|letter: char| !letter.is_ascii_digit()).map_or(rest.len(), |end| start + end);
        let after = rest[digits..].trim_start();
        let end = after.find(|letter: char| !letter.is_ascii_alphabetic() && letter != 'µ').unwrap_or(after.len());
        is_found |= is_unit(&after[..end]);
        rest = &after[end..];
    }
    is_found
}

/// An address, whose numbers may begin with zeros.
fn is_address(text: &str) -> bool {
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        plain => plain.to_owned(),
    };
    let four: Vec<String> = text.split('.').map(plain).collect();
    if text.contains(':') { text.parse::<Ipv6Addr>().is_ok() } else { four.join(".").parse::<Ipv4Addr>().is_ok() }
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    is_address(address)
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|n| n <= most)
}

/// Six, eight or twenty bytes, as pairs or as fours with dots.
fn is_mac(text: &str) -> bool {
    let of = |separator: char, digits: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_long = [6, 8, 20].contains(&(parts.len() * digits / 2));
        is_long && parts.iter().all(|part| part.len() == digits && is_hex(part))
    };
    of(':', 2) || of('-', 2) || of('.', 4)
}

/// Digits in groups of 8, 4, 4, 4 and 12, whose dashes may be left out one by one.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut groups = Vec::new();
    for (index, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(digits).filter(|(group, _)| is_hex(group)) else {
            return false;
        };
        groups.push(group);
        rest = after;
    }
    let is_variant = version == Some('3') || version.is_none() || groups[3].starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    rest.is_empty() && is_variant && version.is_none_or(|version| groups[2].starts_with(version))
}

fn is_host_name(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || (!letter.is_ascii() && letter.is_alphabetic());
    let labels: Vec<&str> = text.split('.').collect();
    let is_label = |label: &&str| {
        let inner = label.chars().all(|letter| is_letter(letter) || letter == '-');
        inner && label.starts_with(is_letter) && label.ends_with(is_letter) && label.len() <= 63
    };
    if text.len() > 255 || !labels.iter().all(|label| label.len() <= 63) {
        return false;
    }
    match labels.split_last() {
        // Alone, it may have a dash in the second place and nowhere else.
        Some((only, [])) => {
            let mut letters = only.chars();
            let rest = letters.next().filter(|first| is_letter(*first)).map(|_| letters.as_str());
            rest.is_some_and(|rest| rest.strip_prefix('-').unwrap_or(rest).chars().all(is_letter))
        }
        Some((last, before)) => {
            last.chars().count() >= 2
                && last.chars().all(|letter| is_letter(letter) && !letter.is_ascii_digit())
                && before.iter().all(is_label)
        }
        None => false,
    }
}

/// `me@example.com`, alone or behind a name in angle brackets.
fn is_email(text: &str) -> bool {
    let address = match text.trim().strip_suffix('>').map(|named| named.split_once('<')) {
        Some(Some((_, address))) => address,
        Some(None) => return false,
        None => text.trim(),
    };
    let is_atom = |part: &str| {
        let is_plain = |letter: char| !letter.is_whitespace() && !"()<>[]:;@\\,\"".contains(letter);
        !part.is_empty() && part.chars().all(is_plain) && !part.starts_with('.') && !part.ends_with('.')
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| is_atom(local) && is_atom(domain))
}

/// A path, or a scheme and what follows.
fn is_uri(text: &str) -> bool {
    let is_readable = !text.chars().any(|letter| letter.is_control() || letter == ' ');
    let is_scheme = |scheme: &str| {
        let is_of_scheme = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic()) && scheme.chars().all(is_of_scheme)
    };
    is_readable && (text.starts_with('/') || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)))
}

fn is_short_name(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && text.chars().all(|letter| is_plain(letter) || letter == '-')
}

#[cfg(test)]
mod tests {
    use super::is_valid;

    #[test]
    fn each_format_takes_and_refuses() {
        for (format, right, wrong) in [
            ("date", "2024-02-29", "2023-02-29"),
            ("date-time", "2026-01-31T23:59:59.5-01:30", "2026-01-31T24:00:00Z"),
            ("datetime", "2026-01-31t00:00:00z", "2026-01-31 00:00:00Z"),
            ("duration", "90 minutes", "minutes"),
            ("duration", "1.5h", "1.5"),
            ("ipv4", "010.000.0.1", "1.2.3"),
            ("ipv6", "::ffff:1.2.3.4", "1::2::3"),
            ("cidr", "::/0", "1.2.3.4/"),
            ("mac", "0000.0000.0000", "00:00:00:00:00:0g"),
            ("uuid5", "11111111-2222-5333-a444-555555555555", "11111111-2222-5333-c444-555555555555"),
            ("byte", "YQ==", ""),
            ("hostname", "a-b", "a-b-c"),
            ("hostname", "a-b-c.example.com", "example.c"),
            ("email", "Me <me@example.com>", "me@"),
            ("uri", "mailto:me@example.com", "example.com"),
            ("hexcolor", "fff", "ffff"),
            ("k8s-short-name", "a-1", "a-"),
            ("k8s-long-name", "a.b-c", ".a"),
        ] {
            assert_eq!((is_valid(format, right), is_valid(format, wrong)), (Some(true), Some(false)), "{format}");
        }
        assert_eq!(is_valid("isbn", "anything"), None);
        assert_eq!(is_valid("date-time", "ü"), Some(false));
    }
}
