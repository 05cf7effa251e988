//! One file, several scenarios: its variants, and the values that `--vary` gives to fields.
//!
//! Every member of a family is read and checked like a file of its own, so an error in a variant has the position of that
//! variant. A variant may not change what belongs to the family as a whole: names, assertions (each lists its own
//! variants) and repetitions.

use std::str::FromStr;

use super::assertion::Holds;
use super::assign::{self, Assignment, ParseAssignmentError};
use super::error::{Fault, ScenarioError, shown};
use super::path::{Path, Step};
use super::yaml::{Document, Entry, Node};
use super::{Assertion, Scenario};

/// The most members of a family. Each keeps its text as a tree, of 100 KB for a file of 4 KB; a thousand take 100 MB.
pub const MAX_MEMBERS: usize = 1_000;

/// What belongs to the family and not to a member.
pub(crate) const OF_THE_FAMILY: [&str; 6] = ["apiVersion", "kind", "name", "variants", "repetitions", "assert"];

/// `--vary PATH=A,B,C`: one field and the values that it is given, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    path: Path,
    values: Vec<(String, Assignment)>,
}

/// Why a `--vary` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseVariationError {
    /// Not an assignment.
    #[error(transparent)]
    Assignment(#[from] ParseAssignmentError),
    /// The same value twice would be the same run twice.
    #[error("`{path}` is given the value `{value}` twice: keep one of them")]
    Twice {
        /// The field.
        path: Path,
        /// The value.
        value: String,
    },
    /// What cannot differ between runs that are compared.
    #[error("`{0}` is the same for all runs of one command: vary another field")]
    OfAll(Path),
}

impl Variation {
    /// The field.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl FromStr for Variation {
    type Err = ParseVariationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, values) = text.split_once('=').ok_or_else(|| ParseAssignmentError::NoValue(shown(text)))?;
        let mut varied: Vec<(String, Assignment)> = Vec::new();
        for value in at_outer_commas(values) {
            let assignment = Assignment::varied(&format!("{path}={}", value.trim()))?;
            if varied.iter().any(|(known, _)| known == value.trim()) {
                let path = assignment.path().clone();
                return Err(ParseVariationError::Twice { path, value: shown(value.trim()) });
            }
            varied.push((value.trim().to_owned(), assignment));
        }
        let path = varied[0].1.path().clone();
        if is_of_the_family(&path) {
            return Err(ParseVariationError::OfAll(path));
        }
        Ok(Self { path, values: varied })
    }
}

/// The pieces between commas that stand in no brackets and no quotes; at least one.
fn at_outer_commas(text: &str) -> Vec<&str> {
    let (mut pieces, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (index, char) in text.char_indices() {
        match (quote, char) {
            (Some(open), char) if open == char => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                pieces.push(&text[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[begin..]);
    pieces
}

pub(crate) fn is_of_the_family(path: &Path) -> bool {
    matches!(path.steps().first(), Some(Step::Field(name)) if OF_THE_FAMILY.contains(&name.as_str()))
}

/// One scenario of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// What tells it from the others: `packed`, `max=36`, `packed max=36`. Nothing if it is the only one.
    pub label: String,
    /// The variant of the file that it is made from, if it has any.
    pub variant: Option<String>,
    /// The scenario itself: without variants, with the assertions that are for it.
    pub scenario: Scenario,
}

/// A file as it stands, and its members in order. The first is what the others are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// The scenario as it stands in the file, with its variants.
    pub base: Scenario,
    /// At least one.
    pub members: Vec<Member>,
}

impl Scenario {
    /// Reads a scenario, changes some of its fields, and makes one scenario for each variant and each combination of the
    /// values that `varied` gives; the last field changes fastest.
    pub fn family(file: &str, text: &str, sets: &[Assignment], varied: &[Variation]) -> Result<Family, ScenarioError> {
        for (place, variation) in varied.iter().enumerate() {
            if varied[..place].iter().any(|before| before.path == variation.path) {
                return Err(ScenarioError::VariedTwice(variation.path.clone()));
            }
        }
        let mut document = Document::parse(file, text)?;
        assign::apply(&mut document, sets)?;
        let base = Self::from_document(document.clone())?;
        let mut members = Vec::new();
        for variant in variants_of(&base) {
            refuse_varied_twice(&base, variant.as_deref(), varied)?;
            let mut document = document.clone();
            if let Some(name) = &variant {
                change(&mut document, name)?;
            }
            for chosen in combinations(varied) {
                if members.len() == MAX_MEMBERS {
                    return Err(ScenarioError::TooManyMembers { file: file.to_owned() });
                }
                let mut document = document.clone();
                assign::apply(&mut document, chosen.iter().map(|(_, set)| *set))?;
                let mut scenario = Self::from_document(document)?;
                scenario.narrow(variant.as_deref());
                members.push(Member {
                    label: label(variant.as_deref(), varied, &chosen),
                    variant: variant.clone(),
                    scenario,
                });
            }
        }
        Ok(Family { base, members })
    }

    /// Takes what concerns other variants off.
    fn narrow(&mut self, variant: Option<&str>) {
        self.variants.clear();
        let concerns = |assertion: &Assertion| match &assertion.holds {
            Holds::Variants(names) => names.iter().any(|name| Some(name.as_str()) == variant),
            Holds::Every | Holds::Any | Holds::Mean => true,
        };
        self.assertions.retain(concerns);
        for assertion in &mut self.assertions {
            if matches!(assertion.holds, Holds::Variants(_)) {
                assertion.holds = Holds::Every;
            }
        }
    }
}

fn variants_of(base: &Scenario) -> Vec<Option<String>> {
    match base.variants.as_slice() {
        [] => vec![None],
        variants => variants.iter().map(|variant| Some(variant.name.to_string())).collect(),
    }
}

/// A field that a variant sets and `--vary` sets again would make two variants the same without a word.
fn refuse_varied_twice(base: &Scenario, variant: Option<&str>, varied: &[Variation]) -> Result<(), ScenarioError> {
    let Some(variant) = base.variants.iter().find(|known| Some(known.name.as_str()) == variant) else { return Ok(()) };
    for path in variant.changes.keys() {
        let is_varied = path.parse::<Path>().is_ok_and(|path| varied.iter().any(|variation| variation.path == path));
        let at = Path::of(["variants", &variant.name]).field(path);
        if let Some(place) = base.place(&at).filter(|_| is_varied) {
            let problem = "this variant sets it, and --vary sets it again: leave one of them out".to_owned();
            return Err(ScenarioError::Set(Fault { place, path: at, problem }));
        }
    }
    Ok(())
}

/// Makes the variant's changes. They keep their places, so that what is wrong with one is found where it stands.
fn change(document: &mut Document, variant: &str) -> Result<(), ScenarioError> {
    let changes = document.root.get("variants").and_then(|variants| variants.get(variant)).cloned();
    for Entry { key, mark, node } in changes.iter().flat_map(Node::entries) {
        let made = key.parse::<Path>().map_err(|error| error.to_string()).and_then(|path| {
            *assign::find_or_make(&mut document.root, &path, *mark)? = node.clone();
            Ok(())
        });
        made.map_err(|problem| {
            let path = Path::of(["variants", variant]).field(key);
            ScenarioError::Set(Fault { place: document.place(*mark), path, problem })
        })?;
    }
    Ok(())
}

/// Every choice of one value of each variation; one empty choice if there is none.
fn combinations(varied: &[Variation]) -> Vec<Vec<(&str, &Assignment)>> {
    let mut all = vec![Vec::new()];
    for variation in varied {
        let longer = |chosen: &Vec<_>| {
            let chosen = chosen.clone();
            variation.values.iter().map(move |(value, set)| {
                let mut chosen = chosen.clone();
                chosen.push((value.as_str(), set));
                chosen
            })
        };
        all = all.iter().flat_map(longer).take(MAX_MEMBERS + 1).collect();
    }
    all
}

fn label(variant: Option<&str>, varied: &[Variation], chosen: &[(&str, &Assignment)]) -> String {
    let last = |path: &Path| path.steps().last().map(step_text).unwrap_or_default();
    let name = |path: &Path| {
        let alike = varied.iter().filter(|variation| last(&variation.path) == last(path)).count();
        if alike > 1 { path.to_string() } else { last(path) }
    };
    let values = chosen.iter().map(|(value, set)| format!("{}={value}", name(set.path())));
    variant.map(str::to_owned).into_iter().chain(values).collect::<Vec<_>>().join(" ")
}

fn step_text(step: &Step) -> String {
    match step {
        Step::Field(name) => name.to_string(),
        Step::Index(index) => index.to_string(),
    }
}
