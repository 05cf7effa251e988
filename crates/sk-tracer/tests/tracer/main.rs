//! The tracer against a real control plane, and against a server of the test's own where a real one cannot be made to do
//! what is needed. One program, so that it is linked once and its tests run beside one another; they are run in the order of
//! their names, and the longest (`crashes`) comes first.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod crashes;
mod disk;
mod fake;
mod gaps;
mod object_store;
mod privacy;
mod recording;
#[path = "../../../sk-store/tests/support/s3_server.rs"]
mod s3_server;
mod serving;
mod soak;
mod support;
