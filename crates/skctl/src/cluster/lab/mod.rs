//! A throw-away cluster on this machine: control plane, KWOK and controller as processes, without images or containers.
//!
//! `skctl lab up` starts a supervisor process ([`serve`]) that stays in the background: it starts everything else, runs
//! the pods of the controller and of drivers as processes in place of a kubelet, and stops everything on request. One
//! folder ([`Place`]) holds all of a lab: pid files, logs, a kubeconfig, the data. So a lab whose supervisor was killed
//! can still be stopped: every live process that a pid file names is killed, and nothing else.

pub(crate) mod place;
pub(crate) mod serve;

pub(crate) use place::Place;

use std::ffi::OsString;
use std::io;

/// The words by which skctl calls itself for a part of a lab; what follows is that part's own.
pub(crate) fn words(part: &str) -> io::Result<Vec<OsString>> {
    let own = std::env::current_exe()?;
    Ok(vec![own.into_os_string(), "lab".into(), part.into(), "--".into()])
}
