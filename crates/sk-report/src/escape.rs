//! Escapes text from a trace, which anyone may have written, for HTML, XML, Markdown, terminals and JSON inside a
//! script.

use std::borrow::Cow;

/// Characters that are not seen themselves but change how what is around them is seen: marks of direction, which turn
/// text around, separators of lines and paragraphs, and the byte order mark. Controls are not among them.
pub fn is_deceptive(char: char) -> bool {
    matches!(char,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// For HTML and XML, in content and in quoted attributes. What XML 1.0 cannot hold at all becomes `�`.
pub(crate) fn markup(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(c),
            c if c.is_control() || is_deceptive(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// For attributes of XML that people read line by line: ends of lines are written as references, so that a text stays within
/// the line of its element.
pub(crate) fn attribute(text: &str) -> String {
    markup(text).replace('\n', "&#10;").replace('\r', "&#13;").replace('\t', "&#9;")
}

/// JSON for terminals: deceptive characters, which can only occur in its strings, are written as escapes.
pub fn json_in_terminal(json: &str) -> Cow<'_, str> {
    if !json.contains(is_deceptive) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if is_deceptive(c) { safe.push_str(&format!("\\u{:04x}", u32::from(c))) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// JSON that is safe inside `<script>`: no `<` means no `</script>` and no `<!--`. Deceptive characters, which can only
/// occur in its strings, are shown as `�` there.
pub(crate) fn json_in_script(json: &str) -> String {
    let safe = json.replace('<', "\\u003c");
    if safe.contains(is_deceptive) { safe.replace(is_deceptive, "\u{fffd}") } else { safe }
}

/// For one cell of a Markdown table or one line of a list.
pub(crate) fn markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => safe.extend(['\\', c]),
            c if c.is_control() || is_deceptive(c) => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

/// What a text takes in the page: `<`, quotes and control characters are written as up to six.
pub(crate) fn embedded_bytes(text: &str) -> usize {
    let longer = text.bytes().filter(|byte| matches!(byte, b'<' | b'"' | b'\\' | 0..32)).count();
    text.len() + 5 * longer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_becomes_harmless() {
        assert_eq!(markup("<script>alert('1')</script>"), "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;");
        assert_eq!(markup("a\u{0}b\u{1b}[0m\u{ffff}"), "a\u{fffd}b\u{fffd}[0m\u{fffd}");
        assert_eq!(json_in_script(r#"{"a":"</script><!--"}"#), r#"{"a":"\u003c/script>\u003c!--"}"#);
        assert_eq!(markdown("a|b <b>*c*\n"), "a\\|b &lt;b>\\*c\\* ");
        assert_eq!(markup("pay\u{202e}roll\u{2066}"), "pay\u{fffd}roll\u{fffd}");
        assert_eq!(markdown("pay\u{200f}roll\u{2028}"), "pay roll ");
        assert_eq!(json_in_script("[\"a\u{202e}b\"]"), "[\"a\u{fffd}b\"]");
    }

    #[test]
    fn a_text_cannot_leave_its_line() {
        assert_eq!(attribute("a\"\nPASS\r\t<b>"), "a&quot;&#10;PASS&#13;&#9;&lt;b&gt;");
        let json = serde_json::to_string("pay\u{202e}roll").unwrap();
        let shown = json_in_terminal(&json);
        assert_eq!(shown, "\"pay\\u202eroll\"");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "pay\u{202e}roll", "it is the same JSON");
    }
}
