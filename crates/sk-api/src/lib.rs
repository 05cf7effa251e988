//! What people and other programs write for SimKube, as data: its shape, its defaults and what is wrong with it.
//!
//! Start with [`Scenario::parse`]. Nothing here carries anything out, opens a file or looks at a clock; text comes in
//! and typed data, or an error that names line and column, goes out.
//!
//! | module | what it owns |
//! |---|---|
//! | [`scenario`] | the scenario file: which cluster a trace is replayed on, how, and what must hold |

pub mod scenario;

pub use scenario::{Scenario, ScenarioError};
