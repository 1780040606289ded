//! Listening sockets: TCP over IPv4 and IPv6, and unix sockets.

use crate::{PeerAddr, set_keepalive};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port; port zero lets the kernel choose one. `[::]` takes IPv6 only, so
    /// that it can stand next to `0.0.0.0`.
    Tcp(SocketAddr),
    /// A file to be created.
    Unix(PathBuf),
}

/// How to listen.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted; the kernel caps it (`net.core.somaxconn`).
    pub backlog: i32,
    /// Several listeners share the address, and the kernel spreads connections over them by a
    /// hash of both ends.
    pub reuse_port: bool,
    /// Time without traffic before the first keepalive probe; `None`: no probes.
    pub keepalive: Option<Duration>,
    /// Permissions of the unix socket's file; `None`: what the process's umask leaves.
    pub unix_mode: Option<u32>,
    /// How long to retry if an address is in use. The kernel destroys an io_uring in the
    /// background, so the listener of a killed server can outlive its process: for some
    /// milliseconds, on a busy machine for more than half a second. A restart must not fail because
    /// of that.
    pub in_use_patience: Duration,
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: 511,
            reuse_port: false,
            keepalive: None,
            unix_mode: None,
            in_use_patience: Duration::from_secs(3),
        }
    }
}

/// Why it is not possible to listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens on this address.
    #[error("{0} is in use by another process")]
    InUse(PeerAddr),
    /// A file that is not a socket has the unix socket's name; it is left alone.
    #[error("{} exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// Everything else: no permission, no such address, a path that is too long.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// The address asked for.
        address: PeerAddr,
        /// The system's answer.
        source: io::Error,
    },
}

/// A bound, listening socket. Connections it accepts have `TCP_NODELAY` and the keepalive
/// setting. Dropping the last clone stops listening and removes a unix socket's file. Equal to its
/// clones and to nothing else.
#[derive(Clone, Debug)]
pub struct Listener(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    socket: Socket,
    asked: ListenAddress,
    local: PeerAddr,
    index: usize,
    _file: Option<SocketFile>,
}

impl PartialEq for Listener {
    fn eq(&self, other: &Listener) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Listener {
    /// Binds and listens; `index` is reported in [`ConnInfo::listener`](crate::ConnInfo).
    ///
    /// A unix socket that no process listens on any more is replaced.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn bind(
        address: &ListenAddress,
        options: &ListenOptions,
        index: usize,
    ) -> Result<Listener, ListenError> {
        match address {
            ListenAddress::Tcp(address) => bind_tcp(*address, options, index).map_err(|source| {
                if source.kind() == io::ErrorKind::AddrInUse {
                    ListenError::InUse(PeerAddr::Tcp(*address))
                } else {
                    ListenError::Io { address: PeerAddr::Tcp(*address), source }
                }
            }),
            ListenAddress::Unix(path) => {
                make_way(path)?;
                bind_unix(path, options, index).map_err(|source| ListenError::Io {
                    address: PeerAddr::Unix(path.as_path().into()),
                    source,
                })
            }
        }
    }

    /// The address that it was asked to bind to.
    pub fn asked(&self) -> &ListenAddress {
        &self.0.asked
    }

    /// The address that it is bound to, with the port that the kernel chose.
    pub fn local(&self) -> &PeerAddr {
        &self.0.local
    }

    /// Stops listening at once, even if other clones exist; the address becomes free.
    pub fn shut_down(&self) {
        // Linux releases a listening socket's address here. Other systems refuse, and release it
        // when the last clone is dropped.
        let _ = self.0.socket.shutdown(Shutdown::Both);
    }

    /// The index that it was given.
    pub fn index(&self) -> usize {
        self.0.index
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.0.socket
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.0.socket.as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.socket.as_fd()
    }
}

fn bind_tcp(address: SocketAddr, options: &ListenOptions, index: usize) -> io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // A restart must not wait for the old connections' TIME_WAIT.
    socket.set_reuse_address(true)?;
    if options.reuse_port {
        socket.set_reuse_port(true)?;
    }
    // Accepted sockets inherit both, which saves the calls for each of them.
    socket.set_tcp_nodelay(true)?;
    set_keepalive(&socket, options.keepalive)?;
    bind_patiently(&socket, address, options.in_use_patience)?;
    socket.listen(options.backlog)?;
    let local = socket.local_addr()?.as_socket().unwrap_or(address);
    let (asked, local) = (ListenAddress::Tcp(address), PeerAddr::Tcp(local));
    Ok(Listener(Arc::new(Inner { socket, asked, local, index, _file: None })))
}

fn bind_patiently(socket: &Socket, address: SocketAddr, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        match socket.bind(&address.into()) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < until => {
                thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn bind_unix(path: &Path, options: &ListenOptions, index: usize) -> io::Result<Listener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let metadata = fs::symlink_metadata(path)?;
    let file =
        SocketFile { path: path.to_path_buf(), device: metadata.dev(), inode: metadata.ino() };
    // No client can connect before `listen`, so none can use the wider permissions.
    if let Some(mode) = options.unix_mode {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    socket.listen(options.backlog)?;
    let (asked, local) = (ListenAddress::Unix(path.into()), PeerAddr::Unix(path.into()));
    Ok(Listener(Arc::new(Inner { socket, asked, local, index, _file: Some(file) })))
}

/// Removes a socket that a killed server left behind, or an empty file that keeps its place, and
/// nothing else.
fn make_way(path: &Path) -> Result<(), ListenError> {
    let address = || PeerAddr::Unix(path.into());
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(ListenError::Io { address: address(), source }),
    };
    if metadata.is_file() && metadata.len() == 0 {
        return fs::remove_file(path)
            .map_err(|source| ListenError::Io { address: address(), source });
    }
    if !metadata.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.to_path_buf()));
    }
    match try_connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|source| ListenError::Io { address: address(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            Err(ListenError::Io { address: address(), source })
        }
        // Also if its backlog is full: a process listens.
        Ok(()) | Err(_) => Err(ListenError::InUse(address())),
    }
}

/// Does not block when the other side's backlog is full.
fn try_connect(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
}

/// Removes its file when dropped, unless the file was replaced meanwhile.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Ok(metadata) = fs::symlink_metadata(&self.path)
            && metadata.dev() == self.device
            && metadata.ino() == self.inode
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}
