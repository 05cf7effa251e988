//! The lifecycles of a v2 trace: a map whose keys are arrays of two strings, which serde cannot derive.

use sk_core::{ObjectKey, ObjectRef, SimTime, StableHash};

use super::read::{V2, Walk, time_from_secs};
use crate::msgpack::Fault;
use crate::msgpack::decode::{Slice, Token};
use crate::trace::error::{Flaw, TraceError};
use crate::trace::lives::{Life, OwnerLives, TemplateLives};

/// The most lives of one owner: 2^21 at 32 bytes is 64 MiB, a CronJob's pods of every minute for four years.
const MAX_OWNER_LIVES: usize = 1 << 21;

/// Each life is at most a map, a key, an array and two numbers: 1 + 9 + 1 + 18 bytes.
const MAX_OWNER_BYTES: usize = MAX_OWNER_LIVES * 29;

/// Streams one owner at a time.
pub(crate) struct Lives<'a> {
    walk: Walk<'a>,
    left: u64,
    number: u64,
    bytes: Vec<u8>,
}

/// What is wrong with one owner's lives.
enum Wrong {
    Fault(Fault),
    Content(&'static str),
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<'a> Lives<'a> {
    pub(crate) fn new(trace: &'a V2) -> Result<Self, TraceError> {
        let mut walk = Walk::begin(&trace.source, "pod_lifecycles", trace.lives_at)?;
        let left = walk.input.map("a map of lives").map_err(|error| walk.error(error))?;
        Ok(Self { walk, left, number: 0, bytes: Vec::new() })
    }

    fn step(&mut self) -> Result<OwnerLives, TraceError> {
        self.walk.part = format!("pod_lifecycles, owner {}", self.number);
        self.number += 1;
        let owner = self.parse(owner)?;
        let templates = self.parse(templates)?;
        Ok(OwnerLives { owner, templates })
    }

    fn parse<T>(&mut self, parse: impl FnOnce(Slice<'_>) -> Result<T, Wrong>) -> Result<T, TraceError> {
        self.walk.input.capture(&mut self.bytes, MAX_OWNER_BYTES).map_err(|error| self.walk.error(error))?;
        parse(Slice::with_budget(&self.bytes, MAX_OWNER_LIVES * 5)).map_err(|wrong| match wrong {
            Wrong::Fault(fault) => self.walk.error(fault),
            Wrong::Content(what) => self.walk.error(Flaw::Content(what.into())),
        })
    }
}

impl Iterator for Lives<'_> {
    type Item = Result<OwnerLives, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let step = self.step();
        if step.is_err() {
            self.left = 0;
        }
        Some(step)
    }
}

fn owner(mut slice: Slice<'_>) -> Result<ObjectRef, Wrong> {
    const SHAPE: &str = "an owner must be the list of its kind and its `namespace/name`";
    let Token::Array(2) = slice.token()? else { return Err(Wrong::Content(SHAPE)) };
    let (Token::Text(gvk), Token::Text(key)) = (slice.token()?, slice.token()?) else {
        return Err(Wrong::Content(SHAPE));
    };
    let gvk = gvk.parse().map_err(|_| Wrong::Content("an owner's kind is not a group/version.Kind"))?;
    let key: ObjectKey = key.parse().map_err(|_| Wrong::Content("an owner's name is not a `namespace/name`"))?;
    Ok(ObjectRef::new(gvk, key))
}

fn templates(mut slice: Slice<'_>) -> Result<Vec<TemplateLives>, Wrong> {
    let Token::Map(len) = slice.token()? else {
        return Err(Wrong::Content("an owner's lives must be a map by pod hash"));
    };
    let mut templates = Vec::new();
    for _ in 0..len {
        let Token::Unsigned(hash) = slice.token()? else {
            return Err(Wrong::Content("a pod hash must be a whole number"));
        };
        templates.push(TemplateLives {
            template: None,
            pod_hash: Some(StableHash::new(hash)),
            lives: lives(&mut slice)?,
        });
    }
    Ok(templates)
}

fn lives(slice: &mut Slice<'_>) -> Result<Vec<Life>, Wrong> {
    let Token::Array(len) = slice.token()? else { return Err(Wrong::Content("a pod hash must lead to a list")) };
    let mut lives = Vec::new();
    for _ in 0..len {
        lives.extend(life(slice)?);
    }
    Ok(lives)
}

/// A life; `None` for a pod that never began to run, which a recorder may write as `"Empty"`.
fn life(slice: &mut Slice<'_>) -> Result<Option<Life>, Wrong> {
    const SHAPE: &str = "a life must be {\"Running\": start} or {\"Finished\": [start, end]}";
    match slice.token()? {
        Token::Text("Empty") => return Ok(None),
        Token::Map(1) => {}
        _ => return Err(Wrong::Content(SHAPE)),
    }
    match slice.key()? {
        "Running" => Ok(Some(Life { start: secs(slice)?, end: None, guessed: false, exit_code: None })),
        "Finished" => {
            let Token::Array(2) = slice.token()? else { return Err(Wrong::Content(SHAPE)) };
            Ok(Some(Life { start: secs(slice)?, end: Some(secs(slice)?), guessed: false, exit_code: None }))
        }
        _ => Err(Wrong::Content(SHAPE)),
    }
}

fn secs(slice: &mut Slice<'_>) -> Result<SimTime, Wrong> {
    let secs = match slice.token()? {
        Token::Unsigned(n) => i64::try_from(n).ok(),
        Token::Signed(n) => Some(n),
        _ => None,
    };
    secs.and_then(time_from_secs).ok_or(Wrong::Content("a life's times must be seconds that a clock can show"))
}
