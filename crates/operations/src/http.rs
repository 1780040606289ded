//! The port itself: accepts, bounds, and lets hyper parse.
//!
//! A connection carries one request. All of it, from the first byte to the last, has to be done in
//! [`LIFETIME_MAX`], except a stream of events (`streams.rs`). When there are too many connections, the oldest one has to leave: whoever opens
//! them by the thousand and sends nothing pushes out its own.

use crate::access::{self, Peer};
use crate::console;
use crate::door::Door;
use crate::listen::Listeners;
use crate::respond::{Port as Responder, State};
use crate::streams::{Ending, Lasting, STREAMS_MAX};
use crate::texts::Texts;
use hyper::Request;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::{AbortHandle, LocalSet, spawn_local};

/// Connections at a time.
pub(crate) const CONNECTIONS_MAX: usize = 64;

/// Open files of the port, besides one for each address: its connections, those of the console, its
/// poll, and what wakes it.
pub const FILES: usize = CONNECTIONS_MAX + STREAMS_MAX + console::FILES + 4;

/// How long a connection may take, whatever it does.
const LIFETIME_MAX: Duration = Duration::from_secs(10);

/// How long a request's head may take.
const HEAD_TIME_MAX: Duration = Duration::from_secs(5);

/// Bytes of a request's head, the least that hyper allows.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// How long to wait when the system has no file descriptor for another connection.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(100);

/// How often the IO threads are looked at, so that a probe knows when they last turned.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The running port. Dropping it closes it.
pub struct Port {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Port {
    /// Starts to answer.
    ///
    /// # Errors
    /// When the system has no thread to give, or no poll.
    pub fn start(listeners: Listeners, state: State, door: Arc<dyn Door>) -> io::Result<Port> {
        let (stop, stopped) = watch::channel(false);
        let settings = Arc::clone(&state.0.node().settings);
        let users = state.0.node().accounts.users();
        if listeners.is_open_to_others() && access::is_protected(&settings, &users) {
            tracing::warn!(
                "http-admin listens on {} without a password: protected mode refuses other \
                 machines; set http-admin-password or requirepass",
                listeners.addresses().join(", ")
            );
        } else if listeners.is_open_to_others() {
            tracing::info!("http-admin: other machines can reach it, and it is not encrypted");
        }
        let responder = Responder::new(state.clone(), Texts::start(state.clone())?, door);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("ladon-http".into());
        let thread = thread.spawn(move || {
            ladon_platform::priority::give_way();
            let all = LocalSet::new();
            let served = serve(listeners, Rc::new(responder), state, stopped);
            all.block_on(&runtime, served);
        })?;
        Ok(Port { stop, thread: Some(thread) })
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

/// Whether a connection has become a stream, and how that ends.
type Place = OnceCell<Arc<Ending>>;

/// A connection under way.
struct Handle {
    abort: AbortHandle,
    place: Rc<Place>,
}

/// The connections under way, oldest first.
#[derive(Default)]
struct Connections {
    handles: RefCell<BTreeMap<u64, Handle>>,
    next: RefCell<u64>,
}

impl Connections {
    /// Serves another one; the oldest leaves if there are too many. Streams are bounded by
    /// themselves.
    fn add<I>(self: &Rc<Self>, io: I, responder: &Rc<Responder>, peer: Peer)
    where
        I: Read + Write + Unpin + 'static,
    {
        let id = self.next.replace_with(|next| *next + 1);
        let (connections, responder) = (Rc::clone(self), Rc::clone(responder));
        let place = Rc::<Place>::default();
        let its = Rc::clone(&place);
        let task = spawn_local(async move {
            serve_at(io, &responder, &peer, &its).await;
            connections.handles.borrow_mut().remove(&id);
        });
        let mut handles = self.handles.borrow_mut();
        handles.insert(id, Handle { abort: task.abort_handle(), place });
        let is_short = |handle: &Handle| handle.place.get().is_none();
        if handles.values().filter(|handle| is_short(handle)).count() > CONNECTIONS_MAX {
            let oldest = handles.iter().find(|(_, handle)| is_short(handle)).map(|(id, _)| *id);
            if let Some(oldest) = oldest.and_then(|id| handles.remove(&id)) {
                oldest.abort.abort();
            }
        }
    }
}

async fn serve(
    listeners: Listeners,
    responder: Rc<Responder>,
    state: State,
    mut stopped: watch::Receiver<bool>,
) {
    let connections = Rc::new(Connections::default());
    let Listeners { tcp, unix } = listeners;
    for listener in tcp {
        // It was made non-blocking when it was bound.
        let listener = TcpListener::from_std(listener);
        let (connections, responder) = (Rc::clone(&connections), Rc::clone(&responder));
        spawn_local(async move {
            let Ok(listener) = listener else { return };
            loop {
                match listener.accept().await {
                    Ok((socket, peer)) => {
                        connections.add(TokioIo::new(socket), &responder, Peer::Tcp(peer.ip()));
                    }
                    Err(_) => tokio::time::sleep(AFTER_FAILED_ACCEPT).await,
                }
            }
        });
    }
    for (listener, file) in unix {
        let listener = UnixListener::from_std(listener);
        let (connections, responder) = (Rc::clone(&connections), Rc::clone(&responder));
        spawn_local(async move {
            let _file = file;
            let Ok(listener) = listener else { return };
            loop {
                match listener.accept().await {
                    Ok((socket, _)) => {
                        connections.add(TokioIo::new(socket), &responder, Peer::Unix);
                    }
                    Err(_) => tokio::time::sleep(AFTER_FAILED_ACCEPT).await,
                }
            }
        });
    }
    loop {
        state.0.look();
        // An error means that the other end is gone, which also stops the port.
        if let Ok(changed) = tokio::time::timeout(LOOK_EVERY, stopped.changed()).await
            && (changed.is_err() || *stopped.borrow())
        {
            return;
        }
    }
}

/// Serves one connection, whatever its bytes are.
pub async fn serve_stream<I>(io: I, responder: &Responder, peer: &Peer)
where
    I: Read + Write + Unpin,
{
    serve_at(io, responder, peer, &Place::new()).await;
}

async fn serve_at<I>(io: I, responder: &Responder, peer: &Peer, place: &Place)
where
    I: Read + Write + Unpin,
{
    let service = service_fn(|request: Request<hyper::body::Incoming>| async {
        let (parts, body) = request.into_parts();
        let mut answer = responder.answer(&parts, body, peer).await;
        if let Some(Lasting(ending)) = answer.extensions_mut().remove() {
            let _ = place.set(ending);
        }
        Ok::<_, Infallible>(answer)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        // `printf 'GET ...' | nc -N` gets its answer, too.
        .half_close(true)
        .keep_alive(false);
    let too_long = async {
        tokio::time::sleep(LIFETIME_MAX).await;
        if let Some(ending) = place.get() {
            ending.wait().await;
        }
    };
    tokio::select! {
        // What goes wrong is the client's own affair.
        _ = http.serve_connection(io, service) => {}
        () = too_long => {}
    }
}
