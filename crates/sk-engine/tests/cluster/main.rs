//! The whole embedded cluster, driven through its API as the driver drives it.

mod autoscaling;
mod fork;
mod garbage;
mod harness;
mod placement;
mod storage;
mod workloads;
