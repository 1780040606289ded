//! Who connects to this node: strangers first, then nodes whose questions are answered.

use crate::accepted::Accepted;
use crate::answering::answer;
use crate::hello::HelloError;
use crate::identity::Peer;
use crate::inbox::Side;
use crate::mesh::{Inner, Service};
use crate::pump::Ended;
use crate::secure::{Connection, meet};
use crate::strangers::{Source, Strangers};
use ladon_platform::{Clock as _, Seldom, SystemClock};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections that are accepted in a turn; between turns is [`TURN`]. That is 16,000 a second, and
/// a sixth of the thread.
const ACCEPTED_IN_A_TURN: usize = 16;
const TURN: Duration = Duration::from_millis(1);
/// How long the listener rests if the process has no descriptor left, or the like.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Anybody can cause these lines.
static NOT_LET_IN: Seldom = Seldom::new(1, Duration::from_secs(1));
static CANNOT_ACCEPT: Seldom = Seldom::new(1, Duration::from_secs(10));

/// What everybody meets who connects.
struct Reception<V> {
    mesh: Arc<Inner>,
    strangers: Strangers,
    accepted: Accepted,
    service: Arc<V>,
}

/// Serves everybody who connects.
pub(crate) async fn listen<V: Service>(
    mesh: Arc<Inner>,
    listener: TcpListener,
    service: Arc<V>,
) -> io::Result<()> {
    let (strangers, accepted) = {
        let limits = &mesh.limits;
        let strangers =
            Strangers::new(limits.strangers_max, limits.hellos_per_second, mesh.counters.clone());
        (strangers, Accepted::new(limits.links_max))
    };
    let reception = Arc::new(Reception { mesh, strangers, accepted, service });
    // Aborts all of them when the future is dropped.
    let mut tasks = JoinSet::new();
    let mut in_a_row = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => reception.begin(stream, address, &mut tasks),
                Err(error) => {
                    if CANNOT_ACCEPT.may_say(SystemClock.unix_ms()).is_some() {
                        tracing::warn!("cannot accept a connection of another node: {error}");
                    }
                    sleep(AFTER_FAILURE).await;
                }
            },
            Some(_) = tasks.join_next() => continue,
            () = reception.strangers.give_turn() => continue,
        }
        in_a_row += 1;
        if in_a_row == ACCEPTED_IN_A_TURN {
            in_a_row = 0;
            sleep(TURN).await;
        }
    }
}

impl<V: Service> Reception<V> {
    fn begin(self: &Arc<Self>, stream: TcpStream, address: SocketAddr, tasks: &mut JoinSet<()>) {
        let id = self.strangers.admit(Source::of(address.ip()));
        let task = tasks.spawn(self.clone().receive(stream, address, id));
        self.strangers.set_task(id, task);
    }

    /// From the connection to its end.
    async fn receive(self: Arc<Self>, stream: TcpStream, address: SocketAddr, id: u64) {
        match self.meet(stream, id).await {
            Ok((stream, peer)) => {
                let ended = self.serve(stream, peer).await;
                tracing::debug!("the link of {address} ended: {ended}");
            }
            Err(error) => {
                self.mesh.counters.not_let_in.fetch_add(1, Relaxed);
                if let Some(left_out) = NOT_LET_IN.may_say(SystemClock.unix_ms()) {
                    tracing::warn!("{address} is not let in, nor {left_out} others: {error}");
                }
            }
        }
    }

    /// Finds out who it is, and gives back the place among the strangers.
    async fn meet(
        &self,
        stream: TcpStream,
        id: u64,
    ) -> Result<(Box<dyn Connection>, Peer), HelloError> {
        let place = self.strangers.place(id);
        let met = async {
            // Who connects says something first. Until then it costs no turn.
            stream.readable().await?;
            let (identity, security) = self.mesh.now();
            if security.tls().is_some() {
                place.turn().await;
            }
            meet(stream, Side::Answers, &identity, &security).await
        };
        let met = timeout(self.mesh.limits.hello_time, met).await;
        drop(place);
        met.unwrap_or(Err(HelloError::Late))
    }

    async fn serve(&self, stream: Box<dyn Connection>, peer: Peer) -> Ended {
        let mut membership = self.accepted.admit(&peer.identity);
        self.mesh.counters.answering.store(self.accepted.count(), Relaxed);
        let ended = answer(stream, peer, &self.mesh, &self.service, async {
            match &mut membership {
                Ok(membership) => (&mut membership.ends).await.unwrap_or_default(),
                Err(text) => std::mem::take(text),
            }
        });
        let ended = ended.await;
        drop(membership);
        self.mesh.counters.answering.store(self.accepted.count(), Relaxed);
        ended
    }
}
