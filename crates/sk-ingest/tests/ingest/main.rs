//! The crate from outside, as a tracer uses it: bytes in, facts out.

mod objects;
mod pods;
mod privacy;
mod recording;
mod sieve;
