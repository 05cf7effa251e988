//! Paths of fields in a scenario: `cluster.groups.small.max`, `assert[0].that`, `labels["a.b/c"]`.
//!
//! One notation: error messages print it, `--set` and `set:` parse it.

use std::fmt;
use std::str::FromStr;

use sk_core::SmolStr;

/// The most steps a path may have: as many as a scenario may be deep, see `yaml::MAX_DEPTH`.
const MAX_STEPS: usize = super::yaml::MAX_DEPTH;

/// The path from the root of a scenario to a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Step>);

/// One step of a [`Path`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into a mapping, by key.
    Field(SmolStr),
    /// Into a list, by position from 0.
    Index(usize),
}

/// Why a path is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePathError {
    /// It does not follow the form.
    #[error(
        "this is not a path at character {at}: write fields with dots, like cluster.groups.small.max, positions like \
         assert[0], and names that have dots themselves like labels[\"topology.kubernetes.io/zone\"]"
    )]
    Form {
        /// Where it stops being one, from 1.
        at: usize,
    },
    /// It goes deeper than any scenario.
    #[error("this path has more than {MAX_STEPS} steps: no scenario is that deep")]
    TooDeep,
}

impl Path {
    /// A path through mappings only.
    pub fn of<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        Self(fields.into_iter().map(|field| Step::Field(field.into())).collect())
    }

    /// This path and one more field.
    pub fn field(&self, field: &str) -> Self {
        self.then(Step::Field(field.into()))
    }

    /// This path and one more position.
    pub fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// Its steps, from the top.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

/// Can this be written between dots?
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Field(name) if name.is_empty() || !name.chars().all(is_plain) => {
                    write!(f, "[\"{}\"]", name.replace('\\', "\\\\").replace('"', "\\\""))?;
                }
                Step::Field(name) if position == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Path {
    type Err = ParsePathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut reader = Reader { text, rest: text };
        let mut steps = Vec::new();
        while steps.is_empty() || !reader.rest.is_empty() {
            if steps.len() == MAX_STEPS {
                return Err(ParsePathError::TooDeep);
            }
            steps.push(reader.step(steps.is_empty())?);
        }
        Ok(Self(steps))
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn step(&mut self, first: bool) -> Result<Step, ParsePathError> {
        if self.take("[\"") {
            return self.quoted();
        }
        if self.take("[") {
            return self.position();
        }
        if !first && !self.take(".") {
            return Err(self.no_path());
        }
        let name = self.take_while(is_plain);
        if name.is_empty() { Err(self.no_path()) } else { Ok(Step::Field(name.into())) }
    }

    fn position(&mut self) -> Result<Step, ParsePathError> {
        let error = self.no_path();
        let digits = self.take_while(|c| c.is_ascii_digit());
        let index = digits.parse().map_err(|_| error)?;
        if self.take("]") { Ok(Step::Index(index)) } else { Err(self.no_path()) }
    }

    fn quoted(&mut self) -> Result<Step, ParsePathError> {
        let mut name = String::new();
        let mut chars = self.rest.chars();
        loop {
            match chars.next() {
                Some('\\') => name.extend(chars.next()),
                Some('"') => break,
                Some(c) => name.push(c),
                None => return Err(self.no_path()),
            }
        }
        self.rest = chars.as_str();
        if self.take("]") { Ok(Step::Field(name.into())) } else { Err(self.no_path()) }
    }

    fn take(&mut self, prefix: &str) -> bool {
        let after = self.rest.strip_prefix(prefix);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let (taken, rest) = self.rest.split_at(self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken.to_owned()
    }

    fn no_path(&self) -> ParsePathError {
        let read = self.text.len() - self.rest.len();
        ParsePathError::Form { at: self.text[..read].chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_read_and_print_the_same() {
        for text in [
            "name",
            "cluster.groups.small.max",
            "autoscaler.scale-down-unneeded-time",
            "assert[0]",
            "assert[12].that",
            "cluster.groups.small.taints[0].key",
            "cluster.groups.small.labels[\"topology.kubernetes.io/zone\"]",
            "variants[\"a \\\"b\\\" \\\\\"].x",
        ] {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_path_is_refused_where_it_stops_being_one() {
        let cases =
            [("", 1), (".a", 1), ("a.", 3), ("a..b", 3), ("a[", 3), ("a[x]", 3), ("a[0", 4), ("a[0]b", 5), ("ä", 1)];
        for (text, at) in cases {
            assert_eq!(text.parse::<Path>(), Err(ParsePathError::Form { at }), "{text}");
        }
        assert!(matches!("a[\"b".parse::<Path>(), Err(ParsePathError::Form { .. })));
        assert_eq!("a.".repeat(100).parse::<Path>(), Err(ParsePathError::TooDeep));
    }

    proptest! {
        #[test]
        fn any_path_reads_back_as_printed(steps in prop::collection::vec((any::<bool>(), ".{0,6}", 0_usize..99), 1..8)) {
            let step = |(is_field, name, index): (bool, String, usize)| {
                if is_field { Step::Field(name.into()) } else { Step::Index(index) }
            };
            let path: Path = steps.into_iter().map(step).collect();
            prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path));
        }

        #[test]
        fn no_text_makes_reading_a_path_panic(text in r#"([a-c.\[\]"\\0-9]|.){0,30}"#) {
            let _ = text.parse::<Path>();
        }
    }
}
