//! Reads kind, name and namespace from the bytes of an object, without decoding the rest.

use sk_core::ObjectRef;

use super::error::Flaw;
use super::record::{NotAnObject, name_object};
use crate::msgpack::Fault;
use crate::msgpack::decode::{Slice, Token};

/// The names in an encoded object.
pub(crate) fn reference(bytes: &[u8]) -> Result<ObjectRef, Flaw> {
    let mut slice = Slice::new(bytes);
    let Token::Map(len) = slice.token()? else { return Err(NotAnObject::NotAMap("something else").into()) };
    let (mut api_version, mut kind, mut namespace, mut name) = ("", "", "", "");
    let mut has_metadata = false;
    for _ in 0..len {
        match slice.key()? {
            "apiVersion" => api_version = text(&mut slice)?,
            "kind" => kind = text(&mut slice)?,
            "metadata" => {
                let mut metadata = slice.clone();
                slice.skip()?;
                let Token::Map(len) = metadata.token()? else { continue };
                has_metadata = true;
                for _ in 0..len {
                    match metadata.key()? {
                        "name" => name = text(&mut metadata)?,
                        "namespace" => namespace = text(&mut metadata)?,
                        _ => metadata.skip()?,
                    }
                }
            }
            _ => slice.skip()?,
        }
    }
    for (field, missing) in [
        ("apiVersion", api_version.is_empty()),
        ("kind", kind.is_empty()),
        ("metadata", !has_metadata),
        ("metadata.name", name.is_empty()),
    ] {
        if missing {
            return Err(NotAnObject::Missing(field).into());
        }
    }
    Ok(name_object(api_version, kind, namespace, name)?)
}

/// The next value if it is a text, else `""`, as a missing one is.
fn text<'a>(slice: &mut Slice<'a>) -> Result<&'a str, Fault> {
    let mut value = slice.clone();
    slice.skip()?;
    Ok(match value.token()? {
        Token::Text(text) => text,
        _ => "",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::msgpack::encode;
    use crate::trace::record::reference_of;

    fn encoded(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode::value(&mut bytes, value);
        bytes
    }

    #[test]
    fn peeking_and_decoding_agree() {
        for value in [
            json!({"spec": {"a": [1, {"name": "no"}]}, "kind": "Pod", "apiVersion": "v1",
                "metadata": {"labels": {"name": "no"}, "namespace": "b", "name": "a"}}),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": 1}}),
            json!({"apiVersion": "v1", "kind": "Node", "metadata": []}),
            json!({"apiVersion": "v1", "kind": ""}),
            json!({"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "a"}}),
        ] {
            let peeked = reference(&encoded(&value)).map_err(|flaw| flaw.to_string());
            let decoded = reference_of(&value).map_err(|error| Flaw::from(error).to_string());
            assert_eq!(peeked, decoded, "{value}");
        }
    }
}
