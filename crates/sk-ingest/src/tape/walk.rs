//! The tree of a value on a tape, for other crates.

use serde_json::{Map, Value};

use super::{Node, Token};

impl Node<'_, '_> {
    /// The value here as a tree.
    pub(crate) fn to_value(self) -> Value {
        match self.token() {
            Token::Null => Value::Null,
            Token::Bool(flag) => Value::Bool(*flag),
            Token::Unsigned(number) => Value::from(*number),
            Token::Signed(number) => Value::from(*number),
            Token::Float(number) => Value::from(*number),
            Token::Text(text) => Value::from(text.as_ref()),
            Token::List { .. } => self.elements().map(Self::to_value).collect(),
            Token::Map { .. } => self.fields().map(|(key, value)| (key.to_owned(), value.to_value())).collect(),
        }
    }

    /// The map here as a tree, with these fields only.
    pub(crate) fn only(self, keys: &[&str]) -> Value {
        let kept = self.fields().filter(|(key, _)| keys.contains(key));
        Value::Object(kept.map(|(key, value)| (key.to_owned(), value.to_value())).collect::<Map<_, _>>())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Tape;
    use super::*;

    /// Any JSON value that a server could send, without doubled keys.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9_f64).prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 48, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,6}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_tape_says_what_a_tree_says(value in any_json()) {
            let json = serde_json::to_vec(&value).unwrap();
            let tape = Tape::parse(&json).unwrap();
            let read: Value = serde_json::from_slice(&json).unwrap();
            prop_assert_eq!(tape.root().to_value(), read);
        }

        #[test]
        fn rubbish_is_refused_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(tape) = Tape::parse(&bytes) {
                tape.root().to_value();
            }
        }
    }

    #[test]
    fn a_tree_can_have_some_of_the_fields_only() {
        let tape = Tape::parse(br#"{"b": 1, "a": {"b": 2}, "c": 3}"#).unwrap();
        assert_eq!(tape.root().only(&["c", "z"]), json!({"c": 3}));
    }
}
