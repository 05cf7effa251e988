//! The controller: makes a driver Job of every Simulation, follows it, keeps its record and cleans up.
//!
//! ```text
//! Simulation ──► observe ──► decide (pure) ──► execute ──► Job, webhook, … ──► driver ──► record
//!                   ▲                              │                                        │
//!                   └──────── look again ◄─────────┘                          records ◄─────┘
//! ```
//!
//! Start with [`decide`], which is the whole story as a pure function. The controller holds no state of its own: killed
//! anywhere, it sees in the cluster where it was. It never changes or deletes what a run has not made.
//!
//! | module | what it owns |
//! |---|---|
//! | [`observed`] | what is known when something is decided |
//! | [`decide`] | what follows from it |
//! | [`driver`] | how a driver does, and in what words |
//! | [`parts`], `job` | the objects of a run |
//! | [`records`] | the records that it keeps, and who gets them |
//! | `leader_election` | the Lease by which one controller acts at a time |
//! | [`install`] | the manifests of an installation, with the smallest rights that do |
//! | [`cli`] | the binary's flags, and the start of all of it |

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
