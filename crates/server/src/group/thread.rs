//! The thread `ladon-raft`: it sits in the group for this node.
//!
//! One thread with a runtime of its own has all connections to other members. What it does there is
//! decided in `sitting.rs`; who leads is decided by openraft, behind the crate `raft`.

use super::answers::Answers;
use super::handle::{Asked, Handle};
use super::orders::join;
use super::sitting::{Ended, Place, QUIET, Sitting};
use super::transport::{ByMesh, FEATURES};
use ladon_kernel::role::Role;
use ladon_mesh::{Identity, Limits, Mesh, Security};
use openraft_rt_tokio::TokioRuntime;
use parking_lot::Mutex;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// This node's part, on the thread's runtime.
type OwnSitting = Sitting<TokioRuntime>;

/// Runs until it is told to end.
pub(crate) fn run(
    place: Place,
    handle: &Arc<Handle<TokioRuntime>>,
    (listener, security): (&TcpListener, Security),
    orders: &mut UnboundedReceiver<Asked>,
) -> io::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = listener.try_clone()?;
    let ended = runtime.block_on(take_part(place, handle, (listener, security), orders));
    runtime.shutdown_background();
    ended
}

async fn take_part(
    mut place: Place,
    handle: &Arc<Handle<TokioRuntime>>,
    (listener, security): (TcpListener, Security),
    orders: &mut UnboundedReceiver<Asked>,
) -> io::Result<Ended> {
    let identity = Arc::new(Mutex::new(Identity {
        cluster: place.state.cluster(),
        node: place.state.member(),
        incarnation: crate::random::random_u64(),
        address: handle.address.clone(),
        version: 1,
        features: FEATURES,
    }));
    let mesh = Mesh::new(Arc::clone(&identity), security, Limits::default());
    let answers = Answers::new(Arc::clone(&handle.heard_leader));
    let service = Arc::clone(&answers);
    let listening = mesh.clone();
    tokio::spawn(async move {
        if let Err(error) = listening.listen(listener, service).await {
            tracing::error!("other members cannot reach this node: {error}");
        }
    });
    if place.state.member() == 0 && !await_membership(&mut place, handle, &identity, orders).await?
    {
        return Ok(Ended::Stopped);
    }
    let failover = Duration::from_millis(place.shared.settings.failover_timeout());
    let patience = failover.max(Duration::from_millis(100));
    let transport = Arc::new(ByMesh { mesh, patience, lacking: Mutex::default() });
    let taken = OwnSitting::take(place, handle, transport, &answers);
    let mut sitting = taken.await?;
    let ended = sit(&mut sitting, handle, orders).await;
    sitting.leave(ended, &answers).await;
    Ok(ended)
}

/// Waits until the node becomes a member; returns false if it stops first.
async fn await_membership(
    place: &mut Place,
    handle: &Arc<Handle<TokioRuntime>>,
    identity: &Mutex<Identity>,
    orders: &mut UnboundedReceiver<Asked>,
) -> io::Result<bool> {
    place.shared.role.set(Role::Outside);
    handle.left();
    while let Some(Asked { order, answer }) = orders.recv().await {
        let Some(order) = order else { return Ok(false) };
        match join(order, &place.log, (&mut place.index, &mut place.state))? {
            Err(text) => answer(Err(text)),
            Ok((cluster, member)) => {
                let mut identity = identity.lock();
                (identity.cluster, identity.node) = (cluster, member);
                answer(Ok("OK".to_owned()));
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Takes turns until the seat has to be left.
async fn sit(
    sitting: &mut OwnSitting,
    handle: &Handle<TokioRuntime>,
    orders: &mut UnboundedReceiver<Asked>,
) -> Ended {
    let wake = handle.wake();
    let mut seat = sitting.seat().clone();
    loop {
        tokio::select! {
            () = wake.notified() => {}
            goes_on = seat.changed() => if !goes_on {
                // Its state says why. Nothing can be proposed or learnt any more.
                tokio::time::sleep(QUIET).await;
            },
            asked = orders.recv() => match asked {
                Some(Asked { order: Some(order), answer }) => sitting.obey(order, answer),
                Some(Asked { order: None, .. }) | None => return Ended::Stopped,
            },
            () = tokio::time::sleep(sitting.pause()) => {}
        }
        if let Some(ended) = sitting.turn().await {
            return ended;
        }
        // The connections and the library run on this thread too.
        tokio::task::yield_now().await;
    }
}
