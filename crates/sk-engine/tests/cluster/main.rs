//! The whole embedded cluster, driven through its API as the driver drives it.

mod autoscaling;
mod bad_input;
mod daemon_sets;
mod disruption;
mod fork;
mod garbage;
mod harness;
mod kept_counts;
mod placement;
mod stateful_sets;
mod storage;
mod waiting;
mod workloads;
