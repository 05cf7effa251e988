//! Recognises objects that differ only in their names, so that each such *shape* is decoded once.
//!
//! A trace of a hundred thousand bare pods contains some dozens of different pods under a hundred thousand names. [`Shapes`]
//! cuts the name out of an encoded object and looks the rest up among those it has seen; a known one was decoded and checked
//! before. A replay prepares one object of each [`Shape`] and gives the others their names.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use sk_core::ObjectRef;
use sk_core::lookup::{Lookup, hash_of};

use super::error::Flaw;
use super::record::{Object, set_name};
use crate::msgpack::decode::Slice;
use crate::msgpack::encode;

/// Larger objects are not compared with others: they are rarely repeated, and would be kept whole.
const MAX_BODY_BYTES: usize = 4 << 10;
/// How many shapes are kept. A tree takes about twelve times its bytes, so at most 1,024 × 13 × 4 KiB = 52 MiB, and with
/// ordinary pods of 1 KiB a quarter of that. Beyond it all are forgotten and learnt again.
const MAX_SHAPES: usize = 1 << 10;
/// How many bodies are remembered as met once, by hash: 16 bytes each, 1 MiB in all.
const MAX_MET: usize = 1 << 16;

/// What objects have in common that differ in nothing but their names.
#[derive(Debug)]
pub struct Shape {
    /// One of them.
    reference: ObjectRef,
    example: Value,
    /// Its bytes around its name.
    before: Box<[u8]>,
    after: Box<[u8]>,
}

impl Shape {
    /// One of the objects, whole.
    pub fn example(&self) -> &Value {
        &self.example
    }

    /// The object of this shape that has this name.
    pub(super) fn named(&self, name: &str) -> Value {
        let mut value = self.example.clone();
        set_name(&mut value, name);
        value
    }

    fn is_of(&self, reference: &ObjectRef) -> bool {
        self.reference.gvk == reference.gvk && self.reference.key.namespace == reference.key.namespace
    }
}

/// The shapes of what was read so far.
#[derive(Default)]
pub(super) struct Shapes {
    known: Vec<Arc<Shape>>,
    places: Lookup<u32>,
    /// Hashes of bodies that were met once. A body becomes a shape when it comes again: most never do.
    met: HashSet<u64>,
    /// The encoded name, with its key; kept to be used again.
    name: Vec<u8>,
}

impl Shapes {
    /// Reads an encoded object, which must be the one of that name.
    pub(super) fn read(&mut self, reference: &ObjectRef, body: &[u8]) -> Result<Object, Flaw> {
        let Some((before, after)) = self.around_name(body, &reference.key.name) else {
            return decode(reference, body);
        };
        let hash = hash_of(&(before, after));
        let is_it = |place: &u32| {
            let shape = &self.known[*place as usize];
            *shape.before == *before && *shape.after == *after && shape.is_of(reference)
        };
        if let Some(place) = self.places.find(hash, is_it) {
            return Ok(Object::alike(reference.clone(), self.known[*place as usize].clone()));
        }
        let object = decode(reference, body)?;
        if self.met.len() >= MAX_MET {
            self.met.clear();
        }
        if !self.met.insert(hash) && is_name_alone(before, after, object.value()) {
            self.learn(hash, &object, before, after);
        }
        Ok(object)
    }

    /// The bytes before and behind the first field `name` that is the object's name. Whether that is `metadata.name` is
    /// found out when a shape is made of it.
    fn around_name<'b>(&mut self, body: &'b [u8], name: &str) -> Option<(&'b [u8], &'b [u8])> {
        if body.len() > MAX_BODY_BYTES {
            return None;
        }
        self.name.clear();
        encode::text(&mut self.name, "name");
        let key_len = self.name.len();
        encode::text(&mut self.name, name);
        let at = memchr::memmem::find(body, &self.name)?;
        Some((&body[..at + key_len], &body[at + self.name.len()..]))
    }

    fn learn(&mut self, hash: u64, object: &Object, before: &[u8], after: &[u8]) {
        if self.known.len() >= MAX_SHAPES {
            self.known.clear();
            self.places.clear();
        }
        let (reference, example) = (object.reference().clone(), object.value().clone());
        let shape = Shape { reference, example, before: before.into(), after: after.into() };
        let place = u32::try_from(self.known.len()).expect("there are at most MAX_SHAPES");
        self.known.push(Arc::new(shape));
        let known = &self.known;
        self.places.insert(hash, place, |place| {
            let shape = &known[*place as usize];
            hash_of(&(&*shape.before, &*shape.after))
        });
    }
}

/// Decodes an object, which must be the one of that name.
pub(super) fn decode(reference: &ObjectRef, body: &[u8]) -> Result<Object, Flaw> {
    Ok(Object::known(reference, Slice::new(body).value()?)?)
}

/// Is it the object's name that stands between these bytes, and nothing else? Tried with another name.
fn is_name_alone(before: &[u8], after: &[u8], value: &Value) -> bool {
    const OTHER: &str = "another name";
    let mut body = before.to_vec();
    encode::text(&mut body, OTHER);
    body.extend_from_slice(after);
    let mut expected = value.clone();
    set_name(&mut expected, OTHER);
    Slice::new(&body).value().is_ok_and(|read| read == expected)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, image: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": image}]},
            "metadata": {"namespace": "a", "name": name, "labels": {"app": "x"}}})
    }

    fn read(shapes: &mut Shapes, value: &Value) -> Object {
        let reference = Object::new(value.clone()).unwrap().reference().clone();
        let mut body = Vec::new();
        encode::value(&mut body, value);
        shapes.read(&reference, &body).unwrap()
    }

    #[test]
    fn what_comes_a_third_time_under_another_name_is_not_decoded_and_still_the_same() {
        let mut shapes = Shapes::default();
        let names = ["p-1", "p-22", "p-333", &"p".repeat(200)];
        let objects = names.map(|name| read(&mut shapes, &pod(name, "i:1")));
        assert_eq!(objects.each_ref().map(|object| object.shape().is_some()), [false, false, true, true]);
        for (name, object) in names.into_iter().zip(objects) {
            assert_eq!(object.reference().key.name, name);
            assert_eq!(object.value(), &pod(name, "i:1"));
            assert_eq!(object.into_value(), pod(name, "i:1"));
        }
        assert!(read(&mut shapes, &pod("p-4", "i:2")).shape().is_none(), "another image is another shape");
    }

    #[test]
    fn a_container_that_is_called_as_its_pod_is_not_taken_for_it() {
        let mut shapes = Shapes::default();
        let pod = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": name}]},
                "metadata": {"name": name, "namespace": "a"}})
        };
        for name in ["a", "a", "a", "b"] {
            let object = read(&mut shapes, &pod(name));
            assert_eq!((object.shape().is_some(), object.value()), (false, &pod(name)));
        }
    }

    #[test]
    fn another_object_than_was_announced_is_refused_though_its_bytes_are_known() {
        let mut shapes = Shapes::default();
        (1..4).for_each(|number| drop(read(&mut shapes, &pod(&format!("p-{number}"), "i:1"))));
        let mut body = Vec::new();
        encode::value(&mut body, &pod("p-5", "i:1"));
        let mut reference = Object::new(pod("p-5", "i:1")).unwrap().reference().clone();
        reference.key.namespace = Some("b".into());
        assert!(shapes.read(&reference, &body).is_err());
    }
}
