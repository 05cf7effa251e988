//! Free ports on 127.0.0.1 for one control plane.
//!
//! A free port is found by binding port 0 and closing it again; until the component binds it, another process can take
//! it. In that case the start is repeated with other ports.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// The ports of one control plane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
    pub(crate) controller_manager: u16,
    pub(crate) scheduler: u16,
    pub(crate) kwok: u16,
    pub(crate) karpenter: u16,
    pub(crate) karpenter_metrics: u16,
}

/// Gives out wished-for ports first, then free ones.
#[derive(Debug)]
pub(crate) struct PortSource {
    wished: VecDeque<u16>,
}

impl PortSource {
    pub(crate) fn new(wished: &[u16]) -> Self {
        Self { wished: wished.iter().copied().collect() }
    }

    /// A set of ports. Each wish is granted once, whether the port is free or not: that shows soon enough.
    pub(crate) fn next_set(&mut self) -> io::Result<Ports> {
        // All sockets are held until all ports are known, or one might be given twice.
        let mut held = Vec::with_capacity(8);
        let mut port = || match self.wished.pop_front() {
            Some(port) => Ok(port),
            None => {
                let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let port = socket.local_addr()?.port();
                held.push(socket);
                Ok::<_, io::Error>(port)
            }
        };
        Ok(Ports {
            api_server: port()?,
            etcd: port()?,
            etcd_peer: port()?,
            controller_manager: port()?,
            scheduler: port()?,
            kwok: port()?,
            karpenter: port()?,
            karpenter_metrics: port()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn wishes_come_first_and_only_once() {
        let mut source = PortSource::new(&[4001, 4002]);
        let first = source.next_set().unwrap();
        assert_eq!((first.api_server, first.etcd), (4001, 4002));
        let second = source.next_set().unwrap();
        assert!(second.api_server != 4001 && second.etcd != 4002, "{second:?}");
    }

    #[test]
    fn no_port_is_given_twice_in_one_set() {
        let ports = PortSource::new(&[]).next_set().unwrap();
        let kubernetes = [ports.api_server, ports.controller_manager, ports.scheduler];
        let others = [ports.etcd, ports.etcd_peer, ports.kwok, ports.karpenter, ports.karpenter_metrics];
        let all = [&kubernetes[..], &others[..]].concat();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{ports:?}");
    }
}
