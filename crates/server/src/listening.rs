//! The listening sockets, and `CONFIG SET` of their addresses.
//!
//! `CONFIG SET` binds the new addresses first, so that a refusal changes nothing. An address that
//! stays keeps its socket and its queue. A removed address is shut down at once, so that it is free
//! when the reply is sent. The accepting thread adopts the change later; until then, clients of a
//! new address wait in the kernel's queue.

use crate::protocol::{ListenerKind, Protocol};
use crate::run_error::RunError;
use crate::tls::{self, TlsDoor};
use ladon_http::{Rules, SharedRules, Sites};
use ladon_kernel::long::aside_job::{ReadAhead, ReadFiles};
use ladon_kernel::shared::FollowSettings;
use ladon_net::{
    ListenAddress, ListenError, ListenOptions, Listener, PeerAddr, Waker, set_keepalive,
};
use ladon_settings::{Endpoint, Settings};
use ladon_tls::TlsError;
use parking_lot::Mutex;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The sockets that the accepting threads have to use.
pub(crate) struct Listening {
    wanted: Mutex<Vec<Listener>>,
    /// Somebody may be accepted.
    is_open: AtomicBool,
    /// The thread that accepts has not taken over the sockets.
    changed: AtomicBool,
    /// Wakes the thread that accepts.
    waker: Waker,
    /// Those with TLS have their own thread.
    tls: TlsDoor,
    tls_changed: AtomicBool,
    /// What connections of HTTP follow.
    http: SharedRules,
}

impl Listening {
    /// Nobody is accepted before [`Listening::open`]. `waker` wakes the thread that accepts.
    pub(crate) fn new(wanted: Vec<Listener>, waker: Waker, settings: &Settings) -> Listening {
        Listening {
            wanted: Mutex::new(wanted),
            is_open: AtomicBool::new(false),
            changed: AtomicBool::new(false),
            waker,
            tls: TlsDoor::default(),
            tls_changed: AtomicBool::new(false),
            http: SharedRules::new(http_rules(settings)),
        }
    }

    /// What connections of HTTP follow.
    pub(crate) fn http_rules(&self) -> SharedRules {
        self.http.clone()
    }

    /// Lets the threads accept from now on.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        self.changed.store(true, Ordering::Release);
        self.tls_changed.store(true, Ordering::Release);
        self.waker.wake();
        self.tls.wake();
    }

    /// The thread of the handshakes.
    pub(crate) fn tls(&self) -> &TlsDoor {
        &self.tls
    }

    /// The addresses of a kind as they are bound, with the ports that the kernel chose.
    pub(crate) fn addresses(&self, kind: ListenerKind) -> Vec<String> {
        let wanted = self.wanted.lock();
        let its = wanted.iter().filter(|listener| listener.index() == kind.listener_index());
        its.map(|listener| listener.local().to_string()).collect()
    }

    /// Listens as the changed settings say, or refuses the change in Redis' words.
    fn follow(
        self: &Arc<Self>,
        settings: &Settings,
        changed: &[&'static str],
        read: Option<ReadAhead>,
    ) -> Result<(), (&'static str, String)> {
        if changed.contains(&tls::PER_SECOND) {
            self.tls.set_per_second(settings.tls_handshakes_per_second());
        }
        if changed.iter().any(|name| HTTP_RULES.contains(name)) {
            self.http.replace(http_rules(settings));
        }
        let rebinds = changed.iter().any(|name| REBINDING.contains(name));
        let reloads = changed.iter().any(|name| tls::is_of_config(name));
        if !rebinds && !reloads && !changed.contains(&"tcp-keepalive") {
            return Ok(());
        }
        // Everything that can fail comes first.
        let config = if reloads && settings.has_tls() {
            let config = tls::Loaded::of(read, settings).config;
            Some(config.map_err(|error| refusal_of_tls(&error, changed))?)
        } else {
            None
        };
        let mut wanted = self.wanted.lock();
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
        if let Some(config) = config {
            let per_second = settings.tls_handshakes_per_second();
            let installed = self.tls.install(self, config, per_second);
            installed.map_err(|error| ("tls-port", error.to_string()))?;
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
        self.news_of(&self.changed, false)
    }

    /// The same, for the thread of the handshakes.
    pub(crate) fn tls_news(&self) -> Option<Vec<Listener>> {
        self.news_of(&self.tls_changed, true)
    }

    #[inline]
    fn news_of(&self, changed: &AtomicBool, tls: bool) -> Option<Vec<Listener>> {
        if !changed.load(Ordering::Relaxed) {
            return None;
        }
        changed.store(false, Ordering::Relaxed);
        let wanted = self.wanted.lock();
        let is_its = |it: &&Listener| ListenerKind::of_listener(it.index()).tls == tls;
        Some(wanted.iter().filter(is_its).cloned().collect())
    }

    /// Drops all sockets, once the server stops.
    pub(crate) fn close(&self) {
        self.wanted.lock().clear();
        self.tls.join();
    }

    /// Reads certificates and keys again. If they cannot be used, those in force stay.
    pub(crate) fn reload_tls(self: &Arc<Self>, settings: &Settings) {
        loop {
            let loaded = match settings.has_tls() {
                true => tls::Loaded::now(tls::options(settings)),
                false => return,
            };
            let config = match loaded.config {
                Ok(config) => config,
                Err(error) => {
                    return tracing::error!("TLS: {error}; the certificates in force stay");
                }
            };
            // While no setting changes.
            let mut installed = None;
            let nothing: [(&str, &str); 0] = [];
            let _ = settings.set_many_with(&nothing, |settings, _| {
                if tls::options(settings) == loaded.options {
                    let per_second = settings.tls_handshakes_per_second();
                    installed = Some(self.tls.install(self, config, per_second));
                }
                Ok(())
            });
            match installed {
                Some(Ok(())) => {
                    return tracing::info!("TLS: certificates and keys were read again");
                }
                Some(Err(error)) => return tracing::error!("TLS: {error}"),
                None => {} // Other files are wanted by now.
            }
        }
    }
}

/// The listening sockets, as what follows changes of settings.
pub(crate) struct FollowedBy(pub(crate) Arc<Listening>);

impl FollowSettings for FollowedBy {
    fn reading(&self, next: &Settings, changed: &[&'static str]) -> Option<ReadFiles> {
        let reloads = changed.iter().any(|name| tls::is_of_config(name));
        (reloads && next.has_tls()).then(|| {
            let options = tls::options(next);
            Box::new(move || Box::new(tls::Loaded::now(options)) as ReadAhead) as Box<_>
        })
    }

    fn follow(
        &self,
        next: &Settings,
        changed: &[&'static str],
        read: Option<ReadAhead>,
    ) -> Result<(), (&'static str, String)> {
        self.0.follow(next, changed, read)
    }
}

/// Settings that say where to listen.
const REBINDING: [&str; 9] = [
    "resp",
    "iproto",
    "memcached",
    "http",
    "bind",
    "tls-port",
    "iproto-tls",
    "memcached-tls",
    "http-tls",
];

/// Settings that connections of HTTP follow.
const HTTP_RULES: [&str; 2] = ["http-cors-origins", "http-max-body"];

fn http_rules(settings: &Settings) -> Rules {
    Rules {
        sites: Sites::parse(&settings.http_cors_origins()),
        body_bytes_max: settings.http_max_body(),
    }
}

fn refusal_of_tls(error: &TlsError, changed: &[&'static str]) -> (&'static str, String) {
    tracing::warn!("cannot use TLS as CONFIG SET asks: {error}");
    let named = match error {
        TlsError::Setting { name, .. } => changed.iter().find(|changed| *changed == name),
        TlsError::File { .. } | TlsError::Tls(_) => None,
    };
    let name = named.or_else(|| changed.iter().find(|name| tls::is_of_config(name)));
    let reason = format!("Unable to update TLS configuration. {error}");
    (name.copied().unwrap_or("tls-port"), reason)
}

fn refusal(error: &RunError, changed: &[&'static str]) -> (&'static str, String) {
    tracing::warn!("cannot listen as CONFIG SET asks: {error}");
    if changed.contains(&"tls-port") {
        ("tls-port", "Unable to listen on this port. Check server logs.".to_owned())
    } else if changed.contains(&"port") {
        ("port", "Unable to listen on this port. Check server logs.".to_owned())
    } else if changed.contains(&"bind") {
        ("bind", "Failed to bind to specified addresses.".to_owned())
    } else {
        let own = ["iproto-tls", "iproto", "memcached", "memcached-tls", "http", "http-tls"];
        let name = own.into_iter().find(|name| changed.contains(name)).unwrap_or("resp");
        (name, error.to_string())
    }
}

fn keepalive(settings: &Settings) -> Option<Duration> {
    let seconds = settings.tcp_keepalive();
    (seconds != 0).then(|| Duration::from_secs(u64::from(seconds)))
}

/// Binds the addresses of the settings, at start. A server with a program need not listen.
pub(crate) fn bind(settings: &Settings, has_program: bool) -> Result<Vec<Listener>, RunError> {
    let listeners = bind_all(settings, &[], ListenOptions::default().in_use_patience)?;
    if listeners.is_empty() && !has_program {
        use ladon_settings::Id;
        let address = [
            Id::resp,
            Id::iproto,
            Id::memcached,
            Id::http,
            Id::bind,
            Id::iproto_tls,
            Id::memcached_tls,
            Id::http_tls,
        ]
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
    for kind in ListenerKind::ALL {
        let index = kind.listener_index();
        for endpoint in endpoints_of(settings, kind)? {
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

fn endpoints_of(settings: &Settings, kind: ListenerKind) -> Result<Vec<Endpoint>, RunError> {
    let endpoints = match (kind.protocol, kind.tls) {
        (Protocol::Resp, false) => settings.resp(),
        (Protocol::Iproto, false) => settings.iproto(),
        (Protocol::Resp, true) => settings.resp_tls(),
        (Protocol::Iproto, true) => settings.iproto_tls(),
        (Protocol::Memcached, false) => settings.memcached(),
        (Protocol::Memcached, true) => settings.memcached_tls(),
        (Protocol::Http, false) => settings.http(),
        (Protocol::Http, true) => settings.http_tls(),
    };
    let is_resp_tls = kind.tls && kind.protocol == Protocol::Resp;
    if is_resp_tls && settings.tls_port() != 0 && endpoints.is_empty() {
        let reason = "bind has no address for it".to_owned();
        return Err(RunError::Address { address: "tls-port".to_owned(), reason });
    }
    Ok(endpoints)
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
