//! A throw-away cluster on this machine: control plane, KWOK and controller as processes, no images, no containers.
//!
//! `skctl lab up` starts a process of its own that stays behind ([`serve`]): it starts everything else, runs the pods of the
//! controller and of drivers as processes in place of a kubelet, and ends it all when it is told to. Everything that is
//! known of a lab lies in one folder ([`Place`]): pid files, logs, a kubeconfig, the data. So a lab whose keeper was killed
//! can still be ended: what has a pid file that names a living process is ended, and nothing else.

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
