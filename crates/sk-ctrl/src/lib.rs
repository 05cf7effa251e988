//! The controller: makes a driver Job of every Simulation, follows it, keeps its record and cleans up.
//!
//! ```text
//! Simulation ──► observe ──► decide (pure) ──► execute ──► Job, webhook, … ──► driver ──► record
//!                   ▲                              │                                        │
//!                   └──────── next round ◄─────────┘                          records ◄─────┘
//! ```
//!
//! Start with [`decide`], a pure function that contains the whole lifecycle of a Simulation. The controller holds no
//! state of its own: after a restart it reads from the cluster how far it had come. It never changes or deletes an object
//! that a run did not create.
//!
//! | module | what it owns |
//! |---|---|
//! | [`observed`] | the state of the cluster that a decision is based on |
//! | [`decide`] | the next step for that state |
//! | [`driver`] | the state of a driver, and the messages about it |
//! | [`parts`], `job` | the objects of a run |
//! | [`records`] | the HTTPS endpoint for records, logs and traces |
//! | `leader_election` | the Lease that lets one controller act at a time |
//! | [`install`] | the manifests of an installation, with the narrowest RBAC that works |
//! | [`cli`] | the binary's flags and its start |

pub mod cli;
mod cluster;
pub mod decide;
pub mod driver;
mod execute;
pub mod install;
mod job;
mod leader_election;
mod observe;
pub mod observed;
pub mod parts;
mod reconcile;
pub mod records;
pub mod settings;

pub use settings::Settings;
