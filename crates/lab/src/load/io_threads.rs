//! Which IO thread of a server each new connection is on, if the server reports that.
//!
//! Ladon counts in `INFO ladon` the connections that each of its threads ever received; the count
//! that grew is the new connection's. A connection goes to the thread that has the fewest, and
//! earlier ones may still be closing, so reaching a certain thread takes some attempts.

use std::io;
use std::net::SocketAddr;

use crate::systems::control::Control;

/// Connects, and says where.
#[derive(Debug)]
pub struct IoThreads {
    control: Control,
    threads: usize,
}

/// More than one thread can take until another has its turn.
const CONNECTIONS_MAX: usize = 64;

impl IoThreads {
    /// Those of a server with `threads` IO threads; with 1 nothing is asked.
    ///
    /// # Errors
    /// What connecting says.
    pub fn of(address: SocketAddr, threads: usize) -> io::Result<Self> {
        Ok(Self { control: Control::connect(address)?, threads })
    }

    /// Whether a server tells which of its `threads` IO threads each connection is on.
    #[must_use]
    pub fn are_told(address: SocketAddr, threads: usize) -> bool {
        threads > 1 && Self::of(address, threads).is_ok_and(|mut all| all.dealt().is_ok())
    }

    /// Opens a connection by `connect`, which must wait until the server has it, and says on which
    /// thread it is.
    ///
    /// # Errors
    /// What `connect` says, and what asking does.
    pub fn place<T, E: From<io::Error>>(
        &mut self,
        connect: impl FnOnce() -> Result<T, E>,
    ) -> Result<(usize, T), E> {
        let before = self.dealt()?;
        let connection = connect()?;
        let after = self.dealt()?;
        let place = before.iter().zip(&after).position(|(before, after)| after > before);
        Ok((place.unwrap_or(0), connection))
    }

    /// The same on another thread than `taken`, if there is more than one. Unsuitable connections
    /// are held until one succeeds.
    ///
    /// # Errors
    /// As [`Self::place`]; if all connections went to `taken`.
    pub fn place_beside<T, E: From<io::Error>>(
        &mut self,
        taken: usize,
        mut connect: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut others = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            let (thread, connection) = self.place(&mut connect)?;
            if self.threads <= 1 || thread != taken {
                return Ok(connection);
            }
            others.push(connection);
        }
        let what = format!("dealt {CONNECTIONS_MAX} connections to one IO thread");
        Err(io::Error::other(what).into())
    }

    /// Connections that each thread was ever dealt.
    fn dealt(&mut self) -> io::Result<Vec<u64>> {
        if self.threads <= 1 {
            return Ok(vec![0]);
        }
        (0..self.threads).map(|thread| dealt_to(&mut self.control, thread)).collect()
    }
}

fn dealt_to(control: &mut Control, thread: usize) -> io::Result<u64> {
    let line = control.info("ladon", &format!("io_thread{thread}"))?;
    let count = line.split(',').find_map(|part| part.strip_prefix("connections="));
    count.and_then(|count| count.trim().parse().ok()).ok_or_else(|| io::Error::other(line.clone()))
}
