//! The listening sockets, and `CONFIG SET` of their addresses.
//!
//! `CONFIG SET` binds the new addresses first, so that a refusal changes nothing. An address that
//! stays keeps its socket and its queue. A removed address is shut down at once, so that it is free
//! when the reply is sent. The accepting thread adopts the change later; until then, clients of a
//! new address wait in the kernel's queue.

use crate::protocol::Protocol;
use crate::run::RunError;
use ladon_net::{
    ListenAddress, ListenError, ListenOptions, Listener, PeerAddr, Waker, set_keepalive,
};
use ladon_settings::{Endpoint, Settings};
use parking_lot::Mutex;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The sockets that the accepting thread has to use.
pub(crate) struct Listening {
    wanted: Mutex<Vec<Listener>>,
    changed: AtomicBool,
    /// Wakes the thread that accepts.
    waker: Waker,
}

impl Listening {
    /// Nobody is accepted before [`Listening::open`]. `waker` wakes the thread that accepts.
    pub(crate) fn new(wanted: Vec<Listener>, waker: Waker) -> Listening {
        Listening { wanted: Mutex::new(wanted), changed: AtomicBool::new(false), waker }
    }

    /// Lets the thread accept from now on.
    pub(crate) fn open(&self) {
        self.changed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// A protocol's addresses as they are bound, with the ports that the kernel chose.
    pub(crate) fn addresses(&self, protocol: Protocol) -> Vec<String> {
        let wanted = self.wanted.lock();
        let its = wanted.iter().filter(|listener| listener.index() == protocol.listener_index());
        its.map(|listener| listener.local().to_string()).collect()
    }

    /// Listens as the changed settings say, or refuses the change in Redis' words.
    pub(crate) fn follow(
        &self,
        settings: &Settings,
        changed: &[&'static str],
    ) -> Result<(), (&'static str, String)> {
        let rebinds = changed.contains(&"resp") || changed.contains(&"iproto");
        if !rebinds && !changed.contains(&"tcp-keepalive") {
            return Ok(());
        }
        let mut wanted = self.wanted.lock();
        // Everything that can fail comes first.
        let next = if rebinds {
            bind_all(settings, &wanted, Duration::ZERO).map_err(|error| refusal(&error, changed))?
        } else {
            wanted.clone()
        };
        for listener in next.iter().filter(|it| matches!(it.local(), PeerAddr::Tcp(_))) {
            // Future connections inherit it. As in Redis, existing ones keep their setting.
            set_keepalive(listener, keepalive(settings))
                .map_err(|error| ("tcp-keepalive", error.to_string()))?;
        }
        for gone in wanted.iter().filter(|listener| !next.contains(listener)) {
            gone.shut_down();
        }
        for listener in next.iter().filter(|listener| !wanted.contains(listener)) {
            tracing::info!("listening on {}", listener.local());
        }
        *wanted = next;
        self.open();
        Ok(())
    }

    /// The complete list of sockets to use, if it has changed. Called by the accepting thread.
    #[inline]
    pub(crate) fn news(&self) -> Option<Vec<Listener>> {
        if !self.changed.load(Ordering::Relaxed) {
            return None;
        }
        self.changed.store(false, Ordering::Relaxed);
        Some(self.wanted.lock().clone())
    }

    /// Drops all sockets.
    pub(crate) fn close(&self) {
        self.wanted.lock().clear();
    }
}

fn refusal(error: &RunError, changed: &[&'static str]) -> (&'static str, String) {
    tracing::warn!("cannot listen as CONFIG SET asks: {error}");
    if changed.contains(&"port") {
        ("port", "Unable to listen on this port. Check server logs.".to_owned())
    } else if changed.contains(&"bind") {
        ("bind", "Failed to bind to specified addresses.".to_owned())
    } else if changed.contains(&"iproto") {
        ("iproto", error.to_string())
    } else {
        ("resp", error.to_string())
    }
}

fn keepalive(settings: &Settings) -> Option<Duration> {
    let seconds = settings.tcp_keepalive();
    (seconds != 0).then(|| Duration::from_secs(u64::from(seconds)))
}

/// Binds the addresses of the settings, at start.
pub(crate) fn bind(settings: &Settings) -> Result<Vec<Listener>, RunError> {
    let listeners = bind_all(settings, &[], ListenOptions::default().in_use_patience)?;
    if listeners.is_empty() {
        let address = [ladon_settings::Id::resp, ladon_settings::Id::iproto]
            .map(|id| settings.value(id))
            .join(" ");
        return Err(RunError::Address { address, reason: "none of them is here".to_owned() });
    }
    Ok(listeners)
}

/// Binds the addresses of the settings, reusing those of `present` that they name.
fn bind_all(
    settings: &Settings,
    present: &[Listener],
    in_use_patience: Duration,
) -> Result<Vec<Listener>, RunError> {
    let options = ListenOptions {
        backlog: i32::try_from(settings.tcp_backlog()).unwrap_or(i32::MAX),
        keepalive: keepalive(settings),
        unix_mode: Some(settings.unixsocketperm()).filter(|&mode| mode != 0),
        in_use_patience,
        ..ListenOptions::default()
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for protocol in Protocol::ALL {
        let index = protocol.listener_index();
        for endpoint in endpoints_of(settings, protocol) {
            for address in addresses_of(&endpoint)? {
                let is_it = |it: &&Listener| *it.asked() == address && it.index() == index;
                if let Some(listener) = present.iter().find(is_it) {
                    listeners.push(listener.clone());
                    continue;
                }
                match Listener::bind(&address, &options, index) {
                    Ok(listener) => listeners.push(listener),
                    Err(ListenError::Io { address, source })
                        if is_optional(&endpoint) && is_missing(&source) =>
                    {
                        tracing::info!("not listening on {address}, which is optional: {source}");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Ok(listeners)
}

fn endpoints_of(settings: &Settings, protocol: Protocol) -> Vec<Endpoint> {
    match protocol {
        Protocol::Resp => settings.resp(),
        Protocol::Iproto => settings.iproto(),
    }
}

fn is_optional(endpoint: &Endpoint) -> bool {
    matches!(endpoint, Endpoint::Tcp { optional: true, .. })
}

/// Whether this machine lacks the address or its address family.
fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, Unsupported};
    matches!(error.kind(), AddrNotAvailable | Unsupported)
        || error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

fn addresses_of(endpoint: &Endpoint) -> Result<Vec<ListenAddress>, RunError> {
    match endpoint {
        Endpoint::Unix(path) => Ok(vec![ListenAddress::Unix(path.into())]),
        Endpoint::Tcp { host, port, .. } => {
            let any = match host.as_str() {
                "*" => Some(IpAddr::from([0; 4])),
                "::*" => Some(IpAddr::from([0; 16])),
                _ => None,
            };
            if let Some(any) = any {
                return Ok(vec![ListenAddress::Tcp(SocketAddr::new(any, *port))]);
            }
            let resolved = (host.as_str(), *port).to_socket_addrs().map_err(|error| {
                RunError::Address { address: format!("{host}:{port}"), reason: error.to_string() }
            })?;
            Ok(resolved.map(ListenAddress::Tcp).collect())
        }
    }
}
