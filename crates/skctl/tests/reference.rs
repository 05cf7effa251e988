//! docs/cli.md is generated from what the program understands. `UPDATE_DOCS=1` writes it anew; without that, a page
//! that is out of date fails.

use std::fmt::Write as _;
use std::path::Path;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command, CommandFactory};

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs/ can be written to");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "docs/cli.md is out of date; `make docs` writes it anew");
}

/// The whole page.
fn page() -> String {
    let mut root = skctl::cli::Cli::command();
    root.build();
    let mut page = String::from("# The command line\n\nGenerated from the program by `make docs`; do not edit.\n\n");
    let _ = writeln!(page, "{}\n", root.get_about().expect("skctl says what it is"));
    for command in visible(&root) {
        contents(&mut page, command, 0);
    }
    page.push_str("\n## Every command understands\n\n");
    options(&mut page, globals(&root));
    fenced(&mut page, &root.get_after_help().map(ToString::to_string).unwrap_or_default());
    let shared: Vec<&str> = globals(&root).map(|arg| arg.get_id().as_str()).collect();
    for command in visible(&root) {
        section(&mut page, command, &shared);
    }
    page.replace("\n\n\n", "\n\n").trim_end().to_owned() + "\n"
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn globals(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| arg.is_global_set())
}

fn name(command: &Command) -> &str {
    command.get_bin_name().expect("a built command has its whole name")
}

fn contents(page: &mut String, command: &Command, depth: usize) {
    let anchor = name(command).replace(' ', "-");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "{:depth$}- [`{}`](#{anchor}): {about}", "", name(command));
    for command in visible(command) {
        contents(page, command, depth + 2);
    }
}

/// A command, then the commands below it. `shared` are the arguments that a command above it has told of.
fn section(page: &mut String, command: &Command, shared: &[&str]) {
    let _ = writeln!(page, "\n## {}\n", name(command));
    let _ = writeln!(page, "{}\n", command.get_about().map(ToString::to_string).unwrap_or_default());
    fenced(page, &command.clone().render_usage().to_string());
    let is_own = |arg: &&Arg| !arg.is_hide_set() && !shared.contains(&arg.get_id().as_str());
    let own: Vec<&Arg> = command.get_arguments().filter(is_own).collect();
    let is_builtin = |arg: &Arg| matches!(arg.get_action(), ArgAction::Help | ArgAction::Version);
    let (positional, flags): (Vec<&Arg>, Vec<&Arg>) =
        own.into_iter().filter(|arg| !is_builtin(arg)).partition(|arg| arg.is_positional());
    options(page, positional.into_iter().chain(flags));
    fenced(page, &command.get_after_help().map(ToString::to_string).unwrap_or_default());
    let shared: Vec<&str> = shared.iter().copied().chain(globals(command).map(|arg| arg.get_id().as_str())).collect();
    for command in visible(command) {
        section(page, command, &shared);
    }
}

fn fenced(page: &mut String, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(page, "```text\n{}\n```\n", text.trim_end());
    }
}

fn options<'a>(page: &mut String, args: impl Iterator<Item = &'a Arg>) {
    let rows: Vec<String> = args.map(row).collect();
    if !rows.is_empty() {
        let _ = writeln!(page, "| | |\n|---|---|\n{}\n", rows.join("\n"));
    }
}

fn row(arg: &Arg) -> String {
    let mut what = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
    let takes_value = arg.get_action().takes_values();
    let values: Vec<PossibleValue> = if takes_value { arg.get_possible_values() } else { Vec::new() };
    for value in values.iter().filter(|value| !value.is_hide_set()) {
        let help = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
        let _ = write!(what, "<br>`{}`{help}", value.get_name());
    }
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value && !default.is_empty() && !arg.is_hide_default_value_set() {
        let _ = write!(what, "<br>default `{}`", default.join(" "));
    }
    format!("| `{}` | {what} |", spelt(arg))
}

/// `-f, --scenario SCENARIO`, or `TRACE`.
fn spelt(arg: &Arg) -> String {
    let value = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let flags = [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))];
    let flags: Vec<String> = flags.into_iter().flatten().collect();
    match (flags.is_empty(), arg.get_action().takes_values()) {
        (true, _) => value,
        (false, true) => format!("{} {value}", flags.join(", ")),
        (false, false) => flags.join(", "),
    }
}
