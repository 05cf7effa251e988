//! "Did you mean": the known name that is nearest to a mistyped one.

/// Longer texts are no mistyped names and are not compared: the work is the product of both lengths.
const MAX_NAME_CHARS: usize = 64;

/// The known name that `typed` most likely stands for, if one is near enough: a third of its letters may differ.
fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = typed.chars().count();
    if letters > MAX_NAME_CHARS {
        return None;
    }
    let measured = known.into_iter().map(|name| (distance(typed, name), name));
    // The first of the nearest, so that the answer does not depend on anything but the order of `known`.
    measured
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= (letters / 3).max(1))
        .map(|(_, name)| name)
}

/// The same as the end of a message, or nothing.
pub(crate) fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// How many letters must be changed, added, left out or swapped with their neighbour; upper and lower case are alike.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.chars().take(MAX_NAME_CHARS).flat_map(char::to_lowercase).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let changed = last[j] + usize::from(a[i] != b[j]);
            let mut best = changed.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_name_is_suggested_and_nothing_far_fetched() {
        let known = ["min", "max", "cpu", "memory", "allocatable"];
        let cases = [
            ("mim", Some("min")),
            ("Max", Some("max")),
            ("maxx", Some("max")),
            ("cup", Some("cpu")),
            ("memroy", Some("memory")),
            ("allocateable", Some("allocatable")),
            ("disk", None),
            ("", None),
            ("replicas", None),
        ];
        for (typed, expected) in cases {
            assert_eq!(nearest(typed, known), expected, "{typed}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
