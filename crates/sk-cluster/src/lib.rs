//! What the programs that talk to a cluster share, so that tracer, controller, driver and skctl do each thing in one way.
//!
//! | module | what it owns | who uses it |
//! |---|---|---|
//! | [`hook`] | one hook of a Simulation, from its start to its end | controller, driver |
//! | [`lease`] | whether the holder of a Lease still renews it | controller, driver |
//! | [`discovery`] | where a kind is served | tracer, driver, skctl |
//! | [`certificate`] | authorities and certificates that we make ourselves | tracer, controller, driver |
//! | [`tls`] | how our servers speak TLS | tracer, controller, driver |
//!
//! It holds mechanisms only: when a hook runs, which Lease is taken and whom a certificate is for is each program's own.

pub mod certificate;
pub mod discovery;
pub mod hook;
pub mod lease;
pub mod tls;
