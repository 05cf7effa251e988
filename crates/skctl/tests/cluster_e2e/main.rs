//! `skctl` and a real Kubernetes: a control plane of this machine, KWOK as its kubelet, and the tracer and the controller
//! as they are installed. Each file is a story; each story has a control plane of its own.

mod fixture;
mod karpenter;
mod lab;
mod nginx;
mod recording;
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#[path = "../../../sk-store/tests/support/s3_server.rs"]
mod s3_server;
mod simulation;
mod sweep;
mod tracer;
