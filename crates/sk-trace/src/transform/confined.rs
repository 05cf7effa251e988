//! The protocol for running a jq program in another process: requests and responses as bytes.
//!
//! The first request is the program; each of the others is an object. Numbers are sent in binary, because a decimal
//! text could change the last digit of a double.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime};

use super::program::{Evaluate, Outcome, Program, ProgramError};

/// A request to the process that runs a program.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Compile this program; all objects after it are for it.
    Compile(String),
    /// Run it on this object of this name, at this time in microseconds.
    Run(Value, Name, i64),
}

/// The parts of an object's reference. Joined into one string, unusual names could be parsed differently.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Name {
    group: String,
    version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
}

impl From<&ObjectRef> for Name {
    fn from(object: &ObjectRef) -> Self {
        Self {
            group: object.gvk.group.to_string(),
            version: object.gvk.version.to_string(),
            kind: object.gvk.kind.to_string(),
            namespace: object.key.namespace.as_ref().map(ToString::to_string),
            name: object.key.name.to_string(),
        }
    }
}

impl From<Name> for ObjectRef {
    fn from(name: Name) -> Self {
        let gvk = Gvk { group: name.group.into(), version: name.version.into(), kind: name.kind.into() };
        Self::new(gvk, ObjectKey { namespace: name.namespace.map(Into::into), name: name.name.into() })
    }
}

/// The response to a [`Request`].
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    /// Whether it is a program.
    Compiled(Result<(), ProgramError>),
    /// What it makes of the object, or what jq says.
    Ran(Result<Outcome, String>),
    /// The request could not be decoded.
    NotUnderstood(String),
}

/// Answers requests, one after the other.
#[derive(Default)]
pub struct Evaluator {
    program: Option<Program>,
}

impl Evaluator {
    /// Answers a request; request and response are bytes.
    pub fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let response = match decode(request) {
            Ok(request) => self.reply(request),
            Err(error) => Response::NotUnderstood(error),
        };
        // A response is JSON and strings, which any encoding can hold; the parent refuses an empty one.
        encode(&response).unwrap_or_default()
    }

    fn reply(&mut self, request: Request) -> Response {
        match (request, &self.program) {
            (Request::Compile(code), _) => Response::Compiled(Program::compile(&code).map(|program| {
                self.program = Some(program);
            })),
            (Request::Run(object, reference, at), Some(program)) => {
                Response::Ran(program.run(&object, &reference.into(), SimTime::from_micros(at)))
            }
            (Request::Run(..), None) => Response::NotUnderstood("there is no program yet".to_owned()),
        }
    }
}

/// Encodes a request or a response.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec(message).map_err(|error| error.to_string())
}

/// Decodes a request or a response.
pub fn decode<'a, M: Deserialize<'a>>(bytes: &'a [u8]) -> Result<M, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(evaluator: &mut Evaluator, request: &Request) -> Response {
        decode(&evaluator.answer(&encode(request).unwrap())).unwrap()
    }

    #[test]
    fn an_object_comes_back_from_afar_as_it_was() {
        let mut evaluator = Evaluator::default();
        let reference = ObjectRef::new("apps/v1.Deployment".parse().unwrap(), "default/web".parse().unwrap());
        let object = json!({"z": 1, "a": {"b": [0.1, 1e300, -1, u64::MAX, null, true, "ü"]}, "c": 2.0});
        let run = Request::Run(object.clone(), Name::from(&reference), 1);
        assert!(matches!(ask(&mut evaluator, &run), Response::NotUnderstood(_)));
        assert!(matches!(ask(&mut evaluator, &Request::Compile(".".into())), Response::Compiled(Ok(()))));
        let Response::Ran(Ok(Outcome::Object(back))) = ask(&mut evaluator, &run) else { panic!("it runs") };
        assert_eq!(back.to_string(), object.to_string(), "the order of keys too");
        assert!(matches!(ask(&mut evaluator, &Request::Compile("(".into())), Response::Compiled(Err(_))));
    }
}
