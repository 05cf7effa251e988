//! The tutorial does what it says: every command of docs/tutorial.md is run in order, in one folder, and prints what the page
//! shows. Figures may differ, because the page is about the commands and not about a generated morning; words may not.
//!
//! `UPDATE_DOCS=1` writes what commands print into the page.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What stands between fences.
enum Block {
    /// A file to write.
    File { name: String, text: String },
    /// Commands, each with the lines that the page shows after it.
    Console(Vec<(String, Vec<String>)>),
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md")
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```").filter(|fence| !fence.is_empty()) else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match fence.split_once(' ') {
            Some((_, name)) => blocks.push(Block::File { name: name.to_owned(), text: body.join("\n") + "\n" }),
            None => blocks.push(Block::Console(commands(&body))),
        }
    }
    blocks
}

fn commands(body: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in body {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((_, shown))) => shown.push((*line).to_owned()),
            (None, None) => panic!("a console begins with a command, not with {line}"),
        }
    }
    commands
}

/// What a command prints, and nothing on standard error that is not an answer.
fn run(command: &str, dir: &Path) -> String {
    let binary = assert_cmd::cargo::cargo_bin("skctl");
    let folder = binary.parent().expect("a program lies in a folder").display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").expect("there is a PATH"));
    let out = Command::new("bash").args(["-c", command]).current_dir(dir).env("PATH", path).output().expect("bash");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command}\n{errors}");
    String::from_utf8(out.stdout).expect("answers are text")
}

/// A line without its figures and pictures.
fn words(line: &str) -> Vec<String> {
    let is_figure = |word: &str| word.chars().any(|char| char.is_ascii_digit() || "▁▂▃▄▅▆▇█·".contains(char));
    let words = line.split_whitespace().filter(|word| *word != "=" && !is_figure(word));
    words.map(str::to_owned).collect()
}

#[test]
fn every_command_of_the_tutorial_works_and_prints_what_the_page_shows() {
    let dir = tempfile::tempdir().expect("there is room for a temporary folder");
    let text = std::fs::read_to_string(page()).expect("there is a tutorial");
    let mut rewritten = text.clone();
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let mut ran = 0;
    for block in blocks(&text) {
        match block {
            Block::File { name, text } => std::fs::write(dir.path().join(name), text).expect("a file is written"),
            Block::Console(commands) => {
                for (command, shown) in &commands {
                    let printed = run(command, dir.path());
                    ran += 1;
                    if update {
                        rewrite(&mut rewritten, command, shown, &printed);
                    } else {
                        let (shown, printed): (Vec<_>, Vec<_>) =
                            (shown.iter().map(|line| words(line)).collect(), printed.lines().map(words).collect());
                        assert_eq!(shown, printed, "{command}: docs/tutorial.md shows something else (`make docs`)");
                    }
                }
            }
        }
    }
    assert!(ran >= 12, "the page has lost its commands");
    if update {
        std::fs::write(page(), rewritten).expect("the page is written");
    }
}

fn rewrite(page: &mut String, command: &str, shown: &[String], printed: &str) {
    let mut old = format!("$ {command}\n");
    shown.iter().for_each(|line| writeln!(old, "{line}").expect("a String takes any text"));
    assert!(page.contains(&old), "{old}");
    *page = page.replacen(&old, &format!("$ {command}\n{printed}"), 1);
}
