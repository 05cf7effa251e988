//! The tracer's durable event log.

mod fact;

pub use fact::{Applied, Attribution, Deleted, Entry, Fact, Link, PodFacts};
