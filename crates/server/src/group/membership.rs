//! From the settings to the thread that sits in the group, for as long as the server runs.

use super::handle::{Asked, Handle};
use super::planted::Planted;
use super::sitting::{Ended, stand};
use super::standing::Standing;
use super::thread;
use crate::dropper::Dropper;
use crate::recovery::Recovered;
use crate::run_error::{RunError, starting};
use crate::tls;
use ladon_kernel::cluster::{Cluster, Order};
use ladon_kernel::message::ThreadHandle;
use ladon_kernel::role::Role;
use ladon_kernel::shared::Shared;
use ladon_mesh::Security;
use ladon_platform::SystemDisk;
use ladon_settings::{Endpoint, Settings};
use openraft_rt_tokio::TokioRuntime;
use std::io;
use std::net::{TcpListener, ToSocketAddrs as _};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// What is added to the clients' port where `cluster-port` says nothing, as in Redis.
const PORT_BEYOND: u16 = 10_000;

/// The server's side of its cluster.
pub(crate) struct Membership {
    pub(crate) handle: Arc<Handle<TokioRuntime>>,
    security: Security,
    listener: Arc<TcpListener>,
    /// Here while no thread sits in the group.
    orders: Option<UnboundedReceiver<Asked>>,
    thread: Option<JoinHandle<UnboundedReceiver<Asked>>>,
}

impl Membership {
    /// Listens for other members, if the server is to be a node of a cluster.
    ///
    /// # Errors
    /// The settings do not say enough, or the address cannot be listened on.
    pub(crate) fn of(
        settings: &Settings,
        threads: Arc<[ThreadHandle]>,
    ) -> Result<Option<Membership>, RunError> {
        if !settings.cluster_enabled() {
            return Ok(None);
        }
        let secret = settings.cluster_secret();
        let wrong = |text: &str| {
            starting("the node of a cluster")(io::Error::new(io::ErrorKind::InvalidInput, text))
        };
        let security = match (settings.tls_cluster(), secret.is_empty()) {
            (true, true) => Security::Tls(tls::options(settings).load_nodes()?),
            (true, false) => {
                let nodes = tls::options(settings).load_nodes()?;
                Security::SecretOnTls(secret.as_bytes().to_vec(), nodes)
            }
            (false, false) => Security::Secret(secret.as_bytes().to_vec()),
            (false, true) => {
                let text = "cluster-enabled needs a cluster-secret, the same at all nodes, or \
                            tls-cluster";
                return Err(wrong(text));
            }
        };
        let endpoints = settings.resp();
        let first = endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port, .. } => Some((host.clone(), *port)),
            Endpoint::Unix(_) => None,
        });
        let (host, port) = first.ok_or_else(|| wrong("a node of a cluster needs a TCP port"))?;
        let mesh_port = match settings.cluster_port() {
            0 => port.checked_add(PORT_BEYOND).ok_or_else(|| {
                wrong("the clients' port plus 10000 is no port: set cluster-port")
            })?,
            port => port,
        };
        let is_every = matches!(&host[..], "*" | "::*" | "0.0.0.0" | "::");
        let announced = settings.cluster_announce_ip();
        let known = if announced.is_empty() { host.clone() } else { announced };
        if is_every && known == host {
            return Err(wrong(
                "this server listens on all addresses: cluster-announce-ip has to say under which \
                 the others reach it",
            ));
        }
        let shown = |port: u16| match known.contains(':') {
            true => format!("[{known}]:{port}"),
            false => format!("{known}:{port}"),
        };
        let host = match &host[..] {
            "*" => "0.0.0.0",
            "::*" => "::",
            host => host,
        };
        let listener = listen(host, mesh_port)?;
        let (sender, orders) = unbounded_channel();
        let handle = Handle::new((shown(mesh_port), shown(port)), sender, threads);
        let listener = Arc::new(listener);
        Ok(Some(Membership { handle, security, listener, orders: Some(orders), thread: None }))
    }

    /// Lets the node take part, with this data. `then` is called, on the thread, when it ends by
    /// itself.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn begin(
        &mut self,
        shared: &Arc<Shared>,
        recovered: &mut Recovered,
        dropper: Dropper,
        then: impl FnOnce(io::Result<Ended>) + Send + 'static,
    ) -> Result<Arc<Standing>, RunError> {
        let disk = Arc::new(SystemDisk);
        let rest = Box::new(std::thread::sleep);
        let place = stand(shared, recovered, disk, (Some(dropper), rest), Planted::Nothing);
        let standing = Arc::clone(&place.standing);
        let security = self.security.clone();
        let (handle, listener) = (Arc::clone(&self.handle), Arc::clone(&self.listener));
        let mut orders = match self.orders.take() {
            Some(orders) => orders,
            None => unreachable!("one thread sits in the group at a time"),
        };
        let sits = std::thread::Builder::new().name("ladon-raft".into()).spawn(move || {
            let ended = thread::run(place, &handle, (&listener, security), &mut orders);
            if let Err(error) = &ended {
                handle.has_stopped(&error.to_string());
            }
            then(ended);
            orders
        });
        self.thread = Some(sits.map_err(starting("the thread of the cluster"))?);
        Ok(standing)
    }

    /// Lets another member lead, if this one does, before the server stops.
    pub(crate) fn hand_over(&self, shared: &Shared) {
        if shared.role.get() == Role::Leads && self.handle.view().members.len() > 1 {
            match self.handle.order(Order::Lead { member: None }) {
                Ok(told) => tracing::info!("handed over: {told}"),
                Err(error) => tracing::warn!("not handed over: {error}"),
            }
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // A panic ends the process before this line.
            self.orders = thread.join().ok();
            // It may have ended before it was told to, and the next one is not to hear of that.
            while let Some(Ok(_)) = self.orders.as_mut().map(UnboundedReceiver::try_recv) {}
        }
    }
}

fn listen(host: &str, port: u16) -> Result<TcpListener, RunError> {
    let failed = |error: io::Error| RunError::Address {
        address: format!("{host}:{port}"),
        reason: error.to_string(),
    };
    let mut addresses = (host, port).to_socket_addrs().map_err(failed)?;
    let none = || failed(io::Error::other("it has no address"));
    let address = addresses.next().ok_or_else(none)?;
    TcpListener::bind(address).map_err(failed)
}
