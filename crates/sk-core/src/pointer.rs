//! JSON pointers (RFC 6901), and patterns of them in which `*` stands for every element of a list.
//!
//! Tracer configurations name pod templates by pattern (`/spec/groups/*/template`); a [`Pointer`] with the index names
//! one match in an object. Where the value is not a list, `*` is a key like any other.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use smol_str::SmolStr;

/// The longest pointer that is read: a hundred keys of forty bytes.
const MAX_POINTER_BYTES: usize = 4_000;

/// One place in a JSON value. The empty pointer is the whole value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(SmolStr);

/// Places in a JSON value: a pointer in which `*` stands for every element of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointerPattern(Pointer);

/// Why a text is not a pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParsePointerError {
    /// It does not start with a slash.
    #[error("`{0}` is not a JSON pointer: it starts with a slash, like `/spec/template`, or is empty")]
    NoSlash(String),
    /// A tilde that escapes nothing.
    #[error("`{0}` is not a JSON pointer: write `~` as `~0`, and a `/` inside a key as `~1`")]
    Escape(String),
    /// Too long a text.
    #[error("a JSON pointer of {0} bytes is refused: at most {MAX_POINTER_BYTES} are read")]
    TooLong(usize),
}

impl Pointer {
    /// As text, with its escapes; fits [`Value::pointer`].
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value there in `value`.
    pub fn get<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.pointer(&self.0)
    }

    /// The value there in `value`, for writing.
    pub fn get_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        value.pointer_mut(&self.0)
    }

    /// The place under a key of the object here, or an index of the list here.
    #[must_use]
    pub fn child(&self, key: &str) -> Self {
        Self(format!("{}/{}", self.0, escape(key)).into())
    }

    /// Its keys from the outside in, without their escapes.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        self.0.split('/').skip(1).map(unescape)
    }
}

impl PointerPattern {
    /// As text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Every match in `value`, in the value's order.
    pub fn resolve(&self, value: &Value) -> Vec<Pointer> {
        let keys: Vec<String> = self.0.keys().collect();
        let mut found = Vec::new();
        descend(value, &keys, Pointer::default(), &mut found);
        found
    }

    /// Every match and its value.
    pub fn find<'a>(&self, value: &'a Value) -> impl Iterator<Item = (Pointer, &'a Value)> {
        self.resolve(value).into_iter().filter_map(|pointer| pointer.get(value).map(|found| (pointer, found)))
    }

    /// Calls `change` for every match and returns their number. What `change` does to one match
    /// does not add or remove others.
    pub fn change_each(&self, value: &mut Value, mut change: impl FnMut(&Pointer, &mut Value)) -> usize {
        let mut changed = 0;
        for pointer in self.resolve(value) {
            if let Some(place) = pointer.get_mut(value) {
                change(&pointer, place);
                changed += 1;
            }
        }
        changed
    }
}

fn descend(value: &Value, keys: &[String], at: Pointer, found: &mut Vec<Pointer>) {
    let Some((key, rest)) = keys.split_first() else {
        found.push(at);
        return;
    };
    match value {
        Value::Array(elements) if key == "*" => {
            for (index, element) in elements.iter().enumerate() {
                descend(element, rest, at.child(&index.to_string()), found);
            }
        }
        _ => {
            let here = at.child(key);
            let key = format!("/{}", escape(key));
            if let Some(inside) = value.pointer(&key) {
                descend(inside, rest, here, found);
            }
        }
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn unescape(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

impl FromStr for Pointer {
    type Err = ParsePointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_POINTER_BYTES {
            return Err(ParsePointerError::TooLong(text.len()));
        }
        let shown = || text.chars().take(200).collect();
        if !text.is_empty() && !text.starts_with('/') {
            return Err(ParsePointerError::NoSlash(shown()));
        }
        if text.split('~').skip(1).any(|after| !after.starts_with(['0', '1'])) {
            return Err(ParsePointerError::Escape(shown()));
        }
        Ok(Self(text.into()))
    }
}

impl FromStr for PointerPattern {
    type Err = ParsePointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PointerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Serialize for PointerPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for PointerPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Pointer::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pattern(text: &str) -> PointerPattern {
        text.parse().unwrap()
    }

    fn groups() -> Value {
        json!({"spec": {"groups": [
            {"template": {"spec": 1}, "m/n": {"~": "odd"}},
            {"no": "template"},
            {"template": {"spec": 2}},
        ], "map": {"*": "star", "0": "zero"}}})
    }

    fn found(text: &str) -> Vec<(String, Value)> {
        let value = groups();
        pattern(text).find(&value).map(|(pointer, found)| (pointer.to_string(), found.clone())).collect()
    }

    #[test]
    fn a_star_finds_every_element_that_goes_on_and_names_it_by_its_index() {
        let templates = [
            ("/spec/groups/0/template/spec".to_owned(), json!(1)),
            ("/spec/groups/2/template/spec".to_owned(), json!(2)),
        ];
        assert_eq!(found("/spec/groups/*/template/spec"), templates);
        assert_eq!(found("/spec/groups/1/no"), [("/spec/groups/1/no".to_owned(), json!("template"))]);
        assert_eq!(found(""), [(String::new(), groups())]);
    }

    #[test]
    fn a_star_is_a_plain_key_where_there_is_no_list() {
        assert_eq!(found("/spec/map/*"), [("/spec/map/*".to_owned(), json!("star"))]);
        assert_eq!(found("/spec/map/0"), [("/spec/map/0".to_owned(), json!("zero"))]);
    }

    #[test]
    fn keys_with_slashes_and_tildes_are_escaped() {
        assert_eq!(found("/spec/groups/*/m~1n/~0"), [("/spec/groups/0/m~1n/~0".to_owned(), json!("odd"))]);
        assert_eq!(Pointer::default().child("a/~1").to_string(), "/a~1~01");
        assert_eq!(Pointer::default().child("a/~1").keys().collect::<Vec<_>>(), ["a/~1"]);
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for text in
            ["/none", "/spec/groups/3", "/spec/groups/-", "/spec/groups/00", "/spec/groups/*/*", "/spec/groups/"]
        {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn every_found_place_can_be_changed() {
        let mut value = groups();
        let mut seen = Vec::new();
        let changed = pattern("/spec/groups/*/template").change_each(&mut value, |pointer, template| {
            seen.push(pointer.to_string());
            template["stamped"] = json!(true);
        });
        assert_eq!((changed, seen.len()), (2, 2));
        assert_eq!(value["spec"]["groups"][2]["template"], json!({"spec": 2, "stamped": true}));
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        assert_eq!("spec".parse::<Pointer>(), Err(ParsePointerError::NoSlash("spec".into())));
        for text in ["/a~", "/a~2", "/~~0"] {
            assert_eq!(text.parse::<PointerPattern>(), Err(ParsePointerError::Escape(text.into())));
        }
        assert_eq!("/".repeat(4_001).parse::<Pointer>(), Err(ParsePointerError::TooLong(4_001)));
    }

    proptest! {
        #[test]
        fn a_path_of_any_keys_is_found_where_it_was_built(keys in prop::collection::vec("[a~/*0-9]{0,3}", 0..6)) {
            let value = keys.iter().rev().fold(json!("here"), |inner, key| json!({ (key): inner }));
            let pointer = keys.iter().fold(Pointer::default(), |pointer, key| pointer.child(key));
            prop_assert_eq!(pointer.get(&value), Some(&json!("here")));
            prop_assert_eq!(pointer.to_string().parse::<Pointer>().unwrap(), pointer.clone());
            prop_assert_eq!(pattern(pointer.as_str()).resolve(&value), vec![pointer]);
        }
    }
}
