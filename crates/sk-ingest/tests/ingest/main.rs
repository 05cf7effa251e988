//! The crate from outside, as a tracer uses it: bytes in, facts out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod objects;
mod pods;
mod privacy;
mod recording;
mod sieve;
