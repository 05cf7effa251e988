//! Formats numbers, money and names for people, and text that must fit a width.

use sk_core::{SimDuration, SimTime};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::escape::is_deceptive;
use crate::step::Window;

/// `1 pod`, `10 pods`, `1,234 pods`.
pub(crate) fn plural(count: i64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// With thousands apart: `5,610`.
pub(crate) fn grouped(count: i64) -> String {
    let digits = count.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if count < 0 { format!("-{text}") } else { text }
}

/// One decimal below a thousand, none above: `4.4`, `5,610`.
pub(crate) fn decimal(number: f64) -> String {
    if number.abs() < 999.95 { format!("{number:.1}") } else { grouped(number.round() as i64) }
}

/// A figure beside its limit: enough digits to tell them apart, and no more.
pub(crate) fn figure(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `58%`; never a false 0 % or 100 %.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p > 0.0 && p < 0.5 => "<1%".into(),
        p if (99.5..100.0).contains(&p) => ">99%".into(),
        p => format!("{p:.0}%"),
    }
}

/// `$0.22`, `€2,146`, `12.50 CHF`: cents below a thousand, whole units above.
pub(crate) fn money(amount: f64, currency: &str) -> String {
    let number = if amount.abs() < 999.995 { format!("{amount:.2}") } else { grouped(amount.round() as i64) };
    match currency {
        "USD" => format!("${number}"),
        "EUR" => format!("€{number}"),
        "GBP" => format!("£{number}"),
        other => format!("{number} {other}"),
    }
}

/// A time of the run, counted from its start: `15:00` in runs of up to two hours, else `14h20m` or `2d 14:20`.
pub(crate) fn moment(time: SimTime, start: SimTime, length: SimDuration) -> String {
    let secs = time.since(start).as_micros() / 1_000_000;
    let (days, hours, mins) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60);
    match days {
        _ if length <= SimDuration::from_mins(120) => format!("{}:{:02}", secs / 60, secs % 60),
        0 => format!("{hours}h{mins:02}m"),
        _ => format!("{days}d {hours:02}:{mins:02}"),
    }
}

/// A time on the trace's own clock, in UTC: `14:05:10`, with the day where the window has several.
pub(crate) fn clock(time: SimTime, window: Window) -> String {
    let (start, end, text) = (window.start.to_rfc3339_secs(), window.end.to_rfc3339_secs(), time.to_rfc3339_secs());
    let day = |text: &str| text.get(..10).unwrap_or_default().to_owned();
    let clock = text.get(11..19).unwrap_or(&text);
    if day(&start) == day(&end) { clock.to_owned() } else { format!("{} {clock}", text.get(5..10).unwrap_or_default()) }
}

/// What an owner is called in a sentence: `Deployment nginx` of `default/Deployment/nginx`.
pub(crate) fn owner_name(owner: &str) -> String {
    let mut parts = owner.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(kind), Some(name)) => format!("{kind} {name}"),
        _ => owner.to_owned(),
    }
}

/// `data/kafka` of `data/StatefulSet/kafka`: the object without its kind.
pub(crate) fn without_kind(object: &str) -> String {
    let mut parts = object.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(namespace), Some(_), Some(name)) => format!("{namespace}/{name}"),
        (Some(_), Some(name), None) => name.to_owned(),
        _ => object.to_owned(),
    }
}

/// `12 CPU`, `0.25 CPU`, `1,204 CPU`: two digits after the point below ten, none from ten on.
pub(crate) fn cpu(milli: i64) -> String {
    let cpu = milli as f64 / 1_000.0;
    match cpu {
        c if c >= 9.995 => format!("{} CPU", grouped(c.round() as i64)),
        c if c > 0.0 && c < 0.01 => "<0.01 CPU".to_owned(),
        c => format!("{} CPU", figure((c * 100.0).round() / 100.0)),
    }
}

/// Text from a trace for a terminal: what could move the cursor, begin a line, turn text around or hide it becomes `?`.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_deceptive(c) { '?' } else { c }).collect()
}

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text, or as much of it as fits with a `…` at the end.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let text = printable(text);
    if width(&text) <= columns {
        return text;
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        kept.push(c);
        used += wide;
    }
    if columns > 0 { kept.trim_end().to_owned() + "…" } else { String::new() }
}

/// The text in lines that fit, each but the first moved in; it is broken between words. One with a word that is wider
/// than that, such as a long path, stays as it is: a terminal breaks it anyway, and then it can still be copied whole.
pub(crate) fn wrapped(text: &str, columns: usize, indent: usize) -> String {
    let room = columns.saturating_sub(indent);
    if width(text) <= columns || text.split(' ').any(|word| width(word) > room) {
        return text.to_owned();
    }
    let mut lines = vec![String::new()];
    for token in text.split_inclusive(' ') {
        let word = token.trim_end_matches(' ');
        let last = lines.last_mut().expect("there is always a first line");
        if width(last) + width(word) > columns && !last.trim().is_empty() && !word.is_empty() {
            last.truncate(last.trim_end().len());
            lines.push(format!("{:indent$}{token}", ""));
        } else {
            last.push_str(token);
        }
    }
    lines.join("\n")
}

/// The text, or its beginning and end with a `…` between: names differ most often in their ends.
pub(crate) fn fit_middle(text: &str, columns: usize) -> String {
    let text = printable(text);
    if width(&text) <= columns || columns < 3 {
        return fit(&text, columns);
    }
    let mut tail = text.as_str();
    while width(tail) > (columns - 1) / 2 {
        tail = tail.char_indices().nth(1).map_or("", |(second, _)| &tail[second..]);
    }
    fit(&text, columns - width(tail)) + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_like_a_person_writes_them() {
        assert_eq!([0, 7, 999, 1_000, 1_234_567, -5_610].map(grouped).join(" "), "0 7 999 1,000 1,234,567 -5,610");
        assert_eq!([0.0, 4.44, 999.94, 999.96, 5_610.2].map(decimal).join(" "), "0.0 4.4 999.9 1,000 5,610");
        assert_eq!([0.0, 0.001, 0.58, 0.999, 1.0, 1.2].map(percent).join(" "), "0% <1% 58% >99% 100% 120%");
        assert_eq!(money(0.22, "USD"), "$0.22");
        assert_eq!(money(2_146.4, "EUR"), "€2,146");
        assert_eq!(money(12.5, "CHF"), "12.50 CHF");
        assert_eq!(plural(1, "pod") + " " + &plural(2_000, "pod"), "1 pod 2,000 pods");
    }

    #[test]
    fn moments_count_from_the_start() {
        let start = SimTime::from_secs(1_700_000_000);
        let after = |secs| start + SimDuration::from_secs(secs);
        assert_eq!(moment(after(1_510), start, SimDuration::from_mins(40)), "25:10");
        assert_eq!(moment(after(3_900), start, SimDuration::from_mins(180)), "1h05m");
        assert_eq!(moment(after(224_400), start, SimDuration::from_mins(10_080)), "2d 14:20");
    }

    #[test]
    fn sentences_are_broken_between_words_and_long_words_stay_whole() {
        assert_eq!(wrapped("TRUST  one two three", 14, 7), "TRUST  one two\n       three");
        assert_eq!(wrapped("  moved in, and longer", 10, 4), "  moved\n    in,\n    and\n    longer");
        assert_eq!(wrapped("run  a/very/long/path/of/it and more", 20, 5), "run  a/very/long/path/of/it and more");
        assert_eq!(wrapped("short", 0, 4), "short");
        assert_eq!(wrapped("", 10, 4), "");
    }

    #[test]
    fn text_fits_whatever_it_holds() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("a long sentence", 8), "a long…");
        assert_eq!(fit_middle("indexer-for-everything-blue", 15), "indexer…ng-blue");
        assert_eq!(fit("日本語の名前", 5), "日本…");
        assert_eq!(fit("red\x1b[31m alert\n", 80), "red?[31m alert?");
        for columns in 0..10 {
            for text in ["indexer-for-everything", "日本語の名前日本語の名前", ""] {
                assert!(width(&fit(text, columns)) <= columns);
                assert!(width(&fit_middle(text, columns)) <= columns, "{text} {columns}");
            }
        }
    }
}
