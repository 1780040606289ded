//! Session tickets: a client that returns brings its session along, encrypted with a key that only
//! this process knows.

use rustls::crypto::GetRandomFailed;
use rustls::crypto::ring::Ticketer;
use rustls::server::ProducesTickets;
use rustls::ticketer::TicketRotator;
use std::sync::Arc;

/// Tickets under keys that are replaced every `seconds`; one is accepted for that long, and twice
/// that long at most.
pub(crate) fn ticketer(seconds: u32) -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    Ok(Arc::new(TicketRotator::new(seconds, || Ok(Box::new(Key::new()?)))?))
}

/// rustls' ticketer, whose own rotation, in hours, does no harm.
#[derive(Debug)]
struct Key(Arc<dyn ProducesTickets>);

impl Key {
    fn new() -> Result<Key, GetRandomFailed> {
        Ok(Key(Ticketer::new().map_err(|_| GetRandomFailed)?))
    }
}

impl ProducesTickets for Key {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(cipher)
    }
}
