//! Ports of 127.0.0.1 for the servers that the lab, the crash rounds and the tests start.
//!
//! A port that the operating system returns as free may be used for an outgoing connection before a
//! slow server (a Java virtual machine takes seconds) listens on it, or while a killed one is away.
//! An attempt to connect to it can even get the very port that it calls, and be connected with
//! itself. So these ports come from below the range of outgoing connections and port 0 (Linux:
//! `ip_local_port_range`), and a locked file keeps each from other users of this module.
//!
//! **Invariant:** no two live [`Ports`] of one user have a number in common.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

/// Above the well-known servers' ports.
const LOWEST: u16 = 20_000;
/// Where Linux' default range of ports for outgoing connections begins.
const DEFAULT_END: u16 = 32_768;

/// Ports that nobody listened on when they were taken, and that [`Ports::take`] gives to nobody
/// else until this is dropped.
#[derive(Debug)]
pub struct Ports {
    numbers: Vec<u16>,
    _locks: Vec<File>,
}

impl Ports {
    /// Takes `count` of them.
    ///
    /// # Errors
    /// When the locks' folder cannot be written, or there are not that many.
    pub fn take(count: usize) -> io::Result<Self> {
        Self::take_from(count, RandomState::new().hash_one(std::process::id()))
    }

    /// As [`Self::take`], looking from the port number `start` of the range on.
    fn take_from(count: usize, start: u64) -> io::Result<Self> {
        let folder = folder()?;
        let (first, end) = range();
        let room = end - first;
        let (mut numbers, mut locks) = (Vec::new(), Vec::new());
        let short = || {
            let text = format!("fewer than {count} ports of {first} to {} are free", end - 1);
            io::Error::new(io::ErrorKind::AddrInUse, text)
        };
        if count > usize::from(room) {
            return Err(short());
        }
        for step in 0..room {
            if numbers.len() == count {
                break;
            }
            let offset = (start % u64::from(room) + u64::from(step)) % u64::from(room);
            let number = first + u16::try_from(offset).expect("below a number of 16 bits");
            let lock = File::create(folder.join(number.to_string()))?;
            match lock.try_lock() {
                Ok(()) => (),
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                numbers.push(number);
                locks.push(lock);
            }
        }
        if numbers.len() < count {
            return Err(short());
        }
        Ok(Self { numbers, _locks: locks })
    }

    /// The first one's number.
    ///
    /// # Panics
    /// If none was asked for.
    #[must_use]
    pub fn first(&self) -> u16 {
        self.numbers[0]
    }

    /// Their numbers, all different.
    #[must_use]
    pub fn numbers(&self) -> &[u16] {
        &self.numbers
    }
}

/// Where the locks are: this user's own folder, as another's cannot be written.
fn folder() -> io::Result<PathBuf> {
    let name = format!("ladon-ports-{}", nix::unistd::geteuid());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The first port and the one after the last.
fn range() -> (u16, u16) {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = text.split_whitespace().next().and_then(|first| first.parse().ok());
    let end = end.unwrap_or(DEFAULT_END);
    // A machine whose outgoing connections may have nearly all ports leaves no other place.
    if end >= LOWEST + 1_000 { (LOWEST, end) } else { (LOWEST, DEFAULT_END) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_a_port_that_is_held_or_listened_on() {
        let start = 77_777;
        let first = Ports::take_from(5, start).unwrap();
        let other = Ports::take_from(5, start).unwrap();
        assert!(!first.numbers().iter().any(|number| other.numbers().contains(number)));
        let freed = first.numbers().to_vec();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, freed[2])).unwrap();
        drop(first);
        let third = Ports::take_from(5, start).unwrap();
        assert_eq!(third.numbers()[..4], [freed[0], freed[1], freed[3], freed[4]]);
        assert!(!other.numbers().contains(&third.numbers()[4]));
        drop(listener);
    }

    #[test]
    fn outgoing_connections_and_port_0_come_from_elsewhere() {
        let (from, end) = range();
        for _ in 0..50 {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let number = listener.local_addr().unwrap().port();
            assert!(!(from..end).contains(&number), "{number}");
        }
    }

    #[test]
    fn more_than_there_are_is_an_error() {
        let Err(error) = Ports::take(70_000) else { panic!("70,000 ports of 65,536") };
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
