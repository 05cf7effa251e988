//! Error messages for YAML files, in the words of the person who wrote the file.
//!
//! The parser's own messages name its options, types and counters; these name the line and the field. Used for files
//! that this crate and sk-trace read; the limits of scenarios are in sk-api.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter as _, UserMessageFormatter};

/// What is wrong, on one line, without its place.
pub fn in_words(error: &Error) -> String {
    match error.without_snippet() {
        Error::AliasError { error, .. } => in_words(error),
        Error::Budget { breach, .. } => over_budget(breach).to_owned(),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => TOO_REPETITIVE.to_owned(),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("`{}` occurs twice; keep one of them", key.escape_debug())
        }
        // The parser's own limit of brackets has no variant of its own.
        Error::ExternalMessage { msg, .. } if msg.contains("recursion limit") => TOO_DEEP.to_owned(),
        Error::InvalidScalar { ty, .. } => format!("{} is expected here", type_in_words(ty)),
        Error::Unexpected { expected, .. } => format!("{} is expected here", token_in_words(expected)),
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("there is no field `{}`, only {}", field.escape_debug(), expected.join(", "))
        }
        other => {
            let message = UserMessageFormatter.format_message(other);
            message.lines().next().unwrap_or_default().to_owned()
        }
    }
}

const TOO_DEEP: &str = "it is nested deeper than is read";
const TOO_REPETITIVE: &str = "aliases (`*name`) repeat more than is read; write out less of it";

fn over_budget(breach: &BudgetBreach) -> &'static str {
    match breach {
        BudgetBreach::Depth { .. } => TOO_DEEP,
        BudgetBreach::Documents { .. } => "it has more documents (`---`) than are read; make several files of it",
        BudgetBreach::Anchors { .. }
        | BudgetBreach::Aliases { .. }
        | BudgetBreach::MergeKeys { .. }
        | BudgetBreach::AliasAnchorRatio { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. } => TOO_REPETITIVE,
        _ => "one document is larger than is read; make several of it",
    }
}

/// What Rust calls a `u32` is a whole number to everybody else.
fn type_in_words(ty: &str) -> &str {
    match ty {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not below 0,",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" | "floating point" => "a number",
        "bool" | "boolean" => "true or false",
        other => other,
    }
}

fn token_in_words(token: &str) -> &str {
    match token {
        "mapping start" => "a mapping (`key: value`)",
        "sequence start" => "a list",
        "scalar" | "string scalar" => "a single value",
        other => other,
    }
}
