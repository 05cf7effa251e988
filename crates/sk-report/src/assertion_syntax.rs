//! What is wrong with the text of an assertion, in plain words.
//!
//! The CEL library passes on the messages of its parser generator, which list tokens of the grammar. People who write an
//! assertion want to know which part of their text is wrong.

/// The message of the parser, in words.
pub(crate) fn in_words(message: &str) -> String {
    let message = message.trim_start_matches("Syntax error: ");
    if message.starts_with("Incomplete") {
        return ENDS_EARLY.to_owned();
    }
    if let Some(part) = quoted_after(message, "token recognition error at: ") {
        return not_cel(part.trim());
    }
    let misplaced = ["mismatched input ", "extraneous input ", "no viable alternative at input ", "missing "];
    match misplaced.into_iter().find_map(|start| quoted_after(message, start)) {
        Some("<EOF>") => ENDS_EARLY.to_owned(),
        Some(part) => format!("`{part}` does not belong here; is an operator such as && or < missing before it?"),
        None => message.to_owned(),
    }
}

const ENDS_EARLY: &str = "it ends too early: a value is missing, or a bracket or quote is not closed";

fn not_cel(part: &str) -> String {
    match part {
        "=" => "`=` is not an operator; write == to compare".to_owned(),
        "&" | "|" => format!("`{part}` is not an operator; write {part}{part}"),
        _ if part.starts_with(['"', '\'']) => format!("the quote at `{part}` is not closed"),
        _ => format!("`{part}` is not part of CEL"),
    }
}

/// The part in quotes after `start`, if the message begins so.
fn quoted_after<'a>(message: &'a str, start: &str) -> Option<&'a str> {
    let rest = message.strip_prefix(start)?.strip_prefix('\'')?;
    let end = rest.find("' expecting").or_else(|| rest.rfind('\''))?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use cel::Program;

    use super::*;

    #[test]
    fn nobody_reads_the_words_of_a_parser_generator() {
        let table = [
            ("pods.created >", ENDS_EARLY),
            ("(", ENDS_EARLY),
            ("pods['x", "the quote at `'x` is not closed"),
            ("\"", "the quote at `\"` is not closed"),
            ("pods.created = 1", "`=` is not an operator; write == to compare"),
            ("a & b", "`&` is not an operator; write &&"),
            ("@", "`@` is not part of CEL"),
            ("a b", "`b` does not belong here; is an operator such as && or < missing before it?"),
            ("a )", "`)` does not belong here; is an operator such as && or < missing before it?"),
            ("x..y", "`..` does not belong here; is an operator such as && or < missing before it?"),
        ];
        for (text, words) in table {
            let errors = Program::compile(text).expect_err("it is not CEL");
            let said: Vec<_> = errors.errors.iter().map(|error| in_words(&error.msg)).collect();
            assert!(said.iter().any(|said| said == words), "{text}: {said:?}");
            assert!(!said[0].contains("expecting") && !said[0].contains("EOF"), "{text}: {said:?}");
        }
    }
}
