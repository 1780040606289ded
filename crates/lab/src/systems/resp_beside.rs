//! Where a `ladon` that is asked in another protocol listens for RESP, which tells the settings and
//! makes snapshots.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// The port of RESP beside each other port.
static PORTS: Mutex<BTreeMap<u16, u16>> = Mutex::new(BTreeMap::new());

/// Notes that the server at `port` listens for RESP at `resp`.
pub fn note(port: u16, resp: u16) {
    PORTS.lock().unwrap_or_else(PoisonError::into_inner).insert(port, resp);
}

/// Where the server at this address listens for RESP.
///
/// # Errors
/// It was not noted.
pub fn of(address: SocketAddr) -> io::Result<SocketAddr> {
    let ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let port = ports.get(&address.port());
    let port = port.ok_or_else(|| io::Error::other(format!("no RESP beside {address}")))?;
    Ok(SocketAddr::new(address.ip(), *port))
}
