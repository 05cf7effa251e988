//! The limits of connections: how many, and how long each phase may take.

use std::time::Duration;

/// The bounds of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. Each has buffers of at most [`HEADER_BYTES`] and 64 KiB of a body: 256 are 32 MiB.
    pub connections: usize,
    /// Of these, how many one address may have. Its next connection replaces its own oldest idle one.
    pub per_address: usize,
    /// Of all, how many may be at work, which are not evicted. The rest turns over, so that a probe always finds a slot.
    pub at_work: usize,
    /// How long a new connection may take until its first request is there, the handshake included.
    pub first_request: Duration,
    /// How long a connection may wait between two requests.
    pub idle: Duration,
    /// How long a request may take until it is answered, or its caller is known and at work.
    pub request: Duration,
    /// How long nothing may be sent or received while a caller is at work.
    pub stall: Duration,
}

/// What a request line and its headers may have: a token of 16 KiB and everything else that clients send, twice.
pub const HEADER_BYTES: usize = 64 << 10;

/// Requests of one HTTP/2 connection at a time; people and probes send one.
pub const STREAMS: u32 = 16;

impl Limits {
    /// For a server that probes, scrapers and a few callers come to.
    pub const fn new(connections: usize, at_work: usize) -> Self {
        Self {
            connections,
            // A mesh's proxy, or a port-forward, brings many callers from one address.
            per_address: connections / 4,
            at_work,
            first_request: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            request: Duration::from_secs(60),
            stall: Duration::from_secs(900),
        }
    }
}
