//! Opens a v2 trace: one walk over the file checks its structure and notes where its parts begin.

use serde_json::Value;
use sk_core::SimTime;

use super::{MAX_CONFIG_BYTES, MAX_NAME_BYTES};
use crate::msgpack::MAX_OBJECT_BYTES;
use crate::msgpack::decode::{Slice, Token};
use crate::msgpack::input::Input;
use crate::trace::config::TracerConfig;
use crate::trace::error::{Flaw, OpenError, Place, TraceError};
use crate::trace::header::Header;
use crate::trace::source::{Reader, Source};

/// An open v2 trace.
#[derive(Debug)]
pub(crate) struct V2 {
    pub(crate) source: Source,
    pub(crate) version: u64,
    pub(crate) header: Header,
    pub(crate) span: Option<(SimTime, SimTime)>,
    /// How many events there are, and where the first begins.
    pub(super) events: u64,
    pub(super) events_at: u64,
    /// Where the maps of lives and of bookkeeping begin.
    pub(super) lives_at: u64,
    pub(super) index_at: u64,
}

/// One event, not entered: when, and where its objects are.
pub(super) struct Event {
    pub(super) at: SimTime,
    pub(super) applied: Objects,
    pub(super) deleted: Objects,
    /// The first byte after it.
    pub(super) end: u64,
}

/// A list of objects: how many, and where the first begins.
#[derive(Clone, Copy, Default)]
pub(super) struct Objects {
    pub(super) count: u64,
    pub(super) at: u64,
}

/// What the walk has found so far.
#[derive(Default)]
struct Found {
    version: Option<u64>,
    config: Option<TracerConfig>,
    events: Option<(u64, u64)>,
    span: Option<(SimTime, SimTime)>,
    lives_at: Option<u64>,
    index_at: Option<u64>,
    tracked_objects_at: Option<u64>,
}

impl V2 {
    /// Walks the file.
    pub(crate) fn open(source: &Source) -> Result<Self, OpenError> {
        let reader = source.open().map_err(|error| OpenError::Io { name: source.name().clone(), source: error })?;
        let mut walk = Walk { input: Input::new(reader), source, part: "the beginning".into() };
        let mut found = Found::default();
        let keys = walk.input.map("a map").map_err(|error| walk.error(error))?;
        for _ in 0..keys {
            let key = walk.name()?;
            walk.part.clone_from(&key);
            walk.top_level(&key, &mut found)?;
        }
        walk.part = "the end".into();
        if !walk.input.at_end().map_err(|error| walk.error(error))? {
            return Err(walk.error(Flaw::Content("more bytes follow the trace".into())).into());
        }
        found.finish(&walk)
    }
}

impl Found {
    fn finish(self, walk: &Walk<'_>) -> Result<V2, OpenError> {
        let missing = |key| walk.error(Flaw::Content(format!("the trace has no `{key}`")));
        let Some(version) = self.version else {
            let looks_like = "it is MessagePack without a `version`".into();
            return Err(OpenError::Foreign { name: walk.source.name().clone(), looks_like });
        };
        let index_at = match version {
            2 => self.index_at.ok_or_else(|| missing("index"))?,
            _ => self.tracked_objects_at.ok_or_else(|| missing("tracked_objects"))?,
        };
        let (events, events_at) = self.events.ok_or_else(|| missing("events"))?;
        Ok(V2 {
            source: walk.source.clone(),
            version,
            header: Header { config: self.config.ok_or_else(|| missing("config"))?, origin: Some(version) },
            span: self.span,
            events,
            events_at,
            lives_at: self.lives_at.ok_or_else(|| missing("pod_lifecycles"))?,
            index_at,
        })
    }
}

/// A walk over a source, with what is needed to say where it went wrong.
pub(super) struct Walk<'a> {
    pub(super) input: Input<Reader>,
    pub(super) source: &'a Source,
    pub(super) part: String,
}

impl<'a> Walk<'a> {
    /// A walk that begins `offset` bytes into the source, where `part` is.
    pub(super) fn begin(source: &'a Source, part: &str, offset: u64) -> Result<Self, TraceError> {
        let place = || Place::new(part, offset);
        let reader = source.open().map_err(|error| TraceError::new(source.name(), place(), error))?;
        let mut input = Input::new(reader);
        input.seek(offset).map_err(|error| TraceError::new(source.name(), place(), error))?;
        Ok(Self { input, source, part: part.into() })
    }

    pub(super) fn error(&self, flaw: impl Into<Flaw>) -> TraceError {
        TraceError::new(self.source.name(), Place::new(self.part.clone(), self.input.offset()), flaw)
    }

    pub(super) fn name(&mut self) -> Result<String, TraceError> {
        let mut bytes = Vec::new();
        self.input.capture(&mut bytes, MAX_NAME_BYTES).map_err(|error| self.error(error))?;
        let name = Slice::new(&bytes).key().map_err(|fault| self.error(fault))?;
        Ok(name.to_owned())
    }

    /// An integer; `None` for anything else.
    fn signed(&mut self) -> Result<Option<i64>, TraceError> {
        self.scalar(|token| match token {
            Token::Unsigned(n) => i64::try_from(n).ok(),
            Token::Signed(n) => Some(n),
            _ => None,
        })
    }

    /// An integer that is not negative; `None` for anything else.
    pub(super) fn unsigned(&mut self) -> Result<Option<u64>, TraceError> {
        self.scalar(|token| match token {
            Token::Unsigned(n) => Some(n),
            _ => None,
        })
    }

    fn scalar<T>(&mut self, pick: impl FnOnce(Token<'_>) -> T) -> Result<T, TraceError> {
        let mut bytes = Vec::new();
        self.input.capture(&mut bytes, MAX_NAME_BYTES).map_err(|error| self.error(error))?;
        Slice::new(&bytes).token().map(pick).map_err(|fault| self.error(fault))
    }

    fn top_level(&mut self, key: &str, found: &mut Found) -> Result<(), OpenError> {
        match key {
            "version" => found.version = Some(self.version()?),
            "config" => found.config = Some(self.config()?),
            "events" => {
                let count = self.input.array("the list of events").map_err(|error| self.error(error))?;
                found.events = Some((count, self.input.offset()));
                found.span = self.span(count)?;
            }
            "pod_lifecycles" => {
                found.lives_at = Some(self.input.offset());
                self.skip()?;
            }
            "index" => {
                found.index_at = Some(self.input.offset());
                self.skip()?;
            }
            "tracked_objects" => {
                found.tracked_objects_at = Some(self.input.offset());
                self.skip()?;
            }
            _ => self.skip()?,
        }
        Ok(())
    }

    pub(super) fn skip(&mut self) -> Result<(), TraceError> {
        self.input.skip().map_err(|error| self.error(error))
    }

    fn version(&mut self) -> Result<u64, OpenError> {
        match self.signed()? {
            Some(version @ (2 | 3)) => Ok(version.unsigned_abs()),
            Some(version) => Err(OpenError::Version {
                name: self.source.name().clone(),
                version: version.to_string(),
                advice: "versions 2 and 3 are; export it again with SimKube 2 or newer",
            }),
            None => Err(self.error(Flaw::Content("`version` is not a number".into())).into()),
        }
    }

    fn config(&mut self) -> Result<TracerConfig, TraceError> {
        let mut bytes = Vec::new();
        self.input.capture(&mut bytes, MAX_CONFIG_BYTES).map_err(|error| self.error(error))?;
        let value: Value = Slice::new(&bytes).value().map_err(|fault| self.error(fault))?;
        TracerConfig::from_value(value).map_err(|error| self.error(error))
    }

    /// Walks over all events; the times of the earliest and the latest.
    fn span(&mut self, count: u64) -> Result<Option<(SimTime, SimTime)>, TraceError> {
        let mut span: Option<(SimTime, SimTime)> = None;
        for number in 0..count {
            self.part = format!("event {number}");
            let at = self.event()?.at;
            span = Some(span.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        }
        Ok(span)
    }

    /// Walks over one event.
    pub(super) fn event(&mut self) -> Result<Event, TraceError> {
        let keys = self.input.map("an event").map_err(|error| self.error(error))?;
        let (mut at, mut applied, mut deleted) = (None, Objects::default(), Objects::default());
        for _ in 0..keys {
            match self.name()?.as_str() {
                "ts" => at = Some(self.time()?),
                "applied_objs" => applied = self.objects()?,
                "deleted_objs" => deleted = self.objects()?,
                _ => self.skip()?,
            }
        }
        let at = at.ok_or_else(|| self.error(Flaw::Content("the event has no `ts`".into())))?;
        Ok(Event { at, applied, deleted, end: self.input.offset() })
    }

    fn time(&mut self) -> Result<SimTime, TraceError> {
        let secs = self.signed()?;
        secs.and_then(time_from_secs)
            .ok_or_else(|| self.error(Flaw::Content("the event's `ts` is not a valid number of seconds".into())))
    }

    fn objects(&mut self) -> Result<Objects, TraceError> {
        let count = self.input.array("a list of objects").map_err(|error| self.error(error))?;
        let at = self.input.offset();
        for _ in 0..count {
            self.skip()?;
        }
        Ok(Objects { count, at })
    }

    /// Reads the bytes of one object.
    pub(super) fn object(&mut self, bytes: &mut Vec<u8>) -> Result<(), TraceError> {
        self.input.capture(bytes, MAX_OBJECT_BYTES).map_err(|error| self.error(error))
    }
}

/// A second of v2 as our time; `None` if it lies beyond what microseconds can count.
pub(super) fn time_from_secs(secs: i64) -> Option<SimTime> {
    let time = SimTime::from_secs(secs);
    (time.as_secs() == secs).then_some(time)
}
