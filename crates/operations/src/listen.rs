//! The port's sockets, bound before anything else starts: an address that is in use stops the start.

use ladon_settings::{Endpoint, Settings};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// Why the port cannot be opened.
#[derive(Debug, Error)]
#[error("cannot listen for HTTP on {address}: {error}; give another address with --http-admin")]
pub struct PortError {
    /// The address as written in the settings.
    pub address: String,
    /// The system's answer.
    pub error: io::Error,
}

/// The port's sockets.
#[derive(Debug, Default)]
pub struct Listeners {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) unix: Vec<(UnixListener, SocketFile)>,
}

/// The file of a unix socket, removed at the end.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The directory may be gone; the file is of no use to anybody.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listeners {
    /// The addresses, with the ports that the kernel chose.
    pub fn addresses(&self) -> Vec<String> {
        let tcp = self.tcp.iter().filter_map(|listener| listener.local_addr().ok());
        let unix = self.unix.iter().map(|(_, file)| format!("unix:{}", file.0.display()));
        tcp.map(|address| address.to_string()).chain(unix).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.unix.is_empty()
    }

    /// Whether other machines can reach it.
    pub(crate) fn is_open_to_others(&self) -> bool {
        let mut addresses = self.tcp.iter().filter_map(|listener| listener.local_addr().ok());
        addresses.any(|address| !address.ip().to_canonical().is_loopback())
    }
}

/// Binds what `http-admin` names.
///
/// # Errors
/// The first address that cannot be bound.
pub fn bind(settings: &Settings) -> Result<Listeners, PortError> {
    let mut listeners = Listeners::default();
    for endpoint in settings.http_admin() {
        let failed = |error| PortError { address: endpoint.to_string(), error };
        match &endpoint {
            Endpoint::Unix(path) => {
                listeners.unix.push(bind_unix(path).map_err(failed)?);
            }
            Endpoint::Tcp { host, port, optional } => {
                for address in resolve(host, *port).map_err(failed)? {
                    match bind_tcp(address) {
                        Ok(listener) => listeners.tcp.push(listener),
                        Err(error)
                            if *optional && error.kind() == io::ErrorKind::AddrNotAvailable => {}
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
        }
    }
    Ok(listeners)
}

fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let any = match host {
        "*" => Some(IpAddr::from([0; 4])),
        "::*" => Some(IpAddr::from([0; 16])),
        _ => None,
    };
    match any {
        Some(any) => Ok(vec![SocketAddr::new(any, port)]),
        None => Ok((host, port).to_socket_addrs()?.collect()),
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // So that it can stand next to `0.0.0.0`.
        socket.set_only_v6(true)?;
    }
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A socket that no process listens on any more is replaced.
fn bind_unix(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let is_socket = std::fs::metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok((listener, SocketFile(path.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_bound_or_refused() {
        let bind = |address: &str| {
            let settings = Settings::new();
            settings.set_many_with(&[("http-admin", address)], |_, _| Ok(())).map(drop)
        };
        // It is for the start only.
        assert!(bind("127.0.0.1:1").is_err());
        assert!(super::bind(&Settings::new()).expect("nothing to bind").is_empty());
        let first = bind_tcp(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let address = first.local_addr().expect("an address");
        assert_eq!(bind_tcp(address).map_err(|it| it.kind()).err(), Some(io::ErrorKind::AddrInUse));
        assert_eq!(resolve("*", 7).expect("any"), [SocketAddr::from(([0, 0, 0, 0], 7))]);
    }

    #[test]
    fn the_file_of_a_killed_server_is_replaced_and_no_other() {
        let folder = std::env::temp_dir().join(format!("ladon-http-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("http.sock");
        let (listener, file) = bind_unix(&path).expect("a socket");
        assert!(bind_unix(&path).is_err(), "somebody listens on it");
        drop(listener);
        std::mem::forget(file);
        let (_listener, file) = bind_unix(&path).expect("the file is replaced");
        drop(file);
        assert!(!path.exists());
        std::fs::write(&path, "mine").expect("a file");
        assert!(bind_unix(&path).is_err());
        assert_eq!(std::fs::read(&path).expect("it is still there"), b"mine");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
