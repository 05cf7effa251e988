//! The protocol for running a jq program in another process: requests and responses as bytes.
//!
//! The first request is the program; each of the others is an object. Numbers are sent in binary, because a decimal
//! text could change the last digit of a double.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sk_core::{Gvk, ObjectKey, ObjectRef, SimTime};

use super::program::{Evaluate, Outcome, Program, ProgramError};

/// What is asked of a process that runs a program.
#[derive(Debug, Serialize, Deserialize)]
pub enum Question {
    /// Compile this program; all objects after it are for it.
    Compile(String),
    /// Run it on this object of this name, at this time in microseconds.
    Run(Value, Name, i64),
}

/// An object's names, each by itself: put together as text, odd ones could be read as others.
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

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Whether it is a program.
    Compiled(Result<(), ProgramError>),
    /// What it makes of the object, or what jq says.
    Ran(Result<Outcome, String>),
    /// The question could not be read.
    NotUnderstood(String),
}

/// Answers one question after the other.
#[derive(Default)]
pub struct Evaluator {
    program: Option<Program>,
}

impl Evaluator {
    /// Answers a question, both as bytes.
    pub fn answer(&mut self, question: &[u8]) -> Vec<u8> {
        let answer = match decode(question) {
            Ok(question) => self.reply(question),
            Err(error) => Answer::NotUnderstood(error),
        };
        // An answer is JSON and texts, which any encoding holds; an empty one is not understood by the asker.
        encode(&answer).unwrap_or_default()
    }

    fn reply(&mut self, question: Question) -> Answer {
        match (question, &self.program) {
            (Question::Compile(code), _) => Answer::Compiled(Program::compile(&code).map(|program| {
                self.program = Some(program);
            })),
            (Question::Run(object, reference, at), Some(program)) => {
                Answer::Ran(program.run(&object, &reference.into(), SimTime::from_micros(at)))
            }
            (Question::Run(..), None) => Answer::NotUnderstood("there is no program yet".to_owned()),
        }
    }
}

/// A question or an answer as bytes.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>, String> {
    rmp_serde::to_vec(message).map_err(|error| error.to_string())
}

/// A question or an answer from bytes.
pub fn decode<'a, M: Deserialize<'a>>(bytes: &'a [u8]) -> Result<M, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(evaluator: &mut Evaluator, question: &Question) -> Answer {
        decode(&evaluator.answer(&encode(question).unwrap())).unwrap()
    }

    #[test]
    fn an_object_comes_back_from_afar_as_it_was() {
        let mut evaluator = Evaluator::default();
        let reference = ObjectRef::new("apps/v1.Deployment".parse().unwrap(), "default/web".parse().unwrap());
        let object = json!({"z": 1, "a": {"b": [0.1, 1e300, -1, u64::MAX, null, true, "ü"]}, "c": 2.0});
        let run = Question::Run(object.clone(), Name::from(&reference), 1);
        assert!(matches!(ask(&mut evaluator, &run), Answer::NotUnderstood(_)));
        assert!(matches!(ask(&mut evaluator, &Question::Compile(".".into())), Answer::Compiled(Ok(()))));
        let Answer::Ran(Ok(Outcome::Object(back))) = ask(&mut evaluator, &run) else { panic!("it runs") };
        assert_eq!(back.to_string(), object.to_string(), "the order of keys too");
        assert!(matches!(ask(&mut evaluator, &Question::Compile("(".into())), Answer::Compiled(Err(_))));
    }
}
