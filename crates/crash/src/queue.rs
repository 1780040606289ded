//! A queue between connections: one pushes, others wait for elements, on any thread.
//!
//! After a crash, every element whose push was acknowledged was delivered to a consumer, is still
//! in the queue, or was popped for a waiting consumer whose reply the crash cut off. No element is
//! delivered twice. The remaining elements are in the order of the pushes, after all delivered
//! ones.

use crate::client::Client;
use ladon_resp::client::Value;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

const KEY: &str = "shared:queue";
/// Short enough to meet with pushes.
const TIMEOUT: &str = "0.05";

/// What the connections know about the queue.
#[derive(Default)]
pub struct SharedQueue(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The last element sent.
    sent: u64,
    /// Elements whose push was acknowledged and that no consumer has received.
    acknowledged: BTreeSet<u64>,
    /// Elements that were given since the last check.
    given: BTreeSet<u64>,
    /// Consumers whose request got no reply because of the crash.
    cut_off: usize,
    /// Elements given in all rounds.
    total: u64,
}

impl SharedQueue {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Elements that consumers have got so far.
    pub fn given(&self) -> u64 {
        self.known().total
    }

    /// Pushes until the connection breaks; the only producer.
    ///
    /// # Errors
    /// A reply that is not a length.
    pub fn produce(&self, client: &mut Client) -> Result<(), String> {
        loop {
            let element = {
                let mut known = self.known();
                known.sent += 1;
                known.sent
            };
            match client.call(&["RPUSH", KEY, &element.to_string()]) {
                Ok(Value::Integer(1..)) => {
                    let mut known = self.known();
                    if !known.given.contains(&element) {
                        known.acknowledged.insert(element);
                    }
                }
                Ok(other) => return Err(format!("RPUSH answered {other:?}")),
                Err(_) => return Ok(()),
            }
        }
    }

    /// Waits for elements until the connection breaks.
    ///
    /// # Errors
    /// An element given twice or never sent, or no element.
    pub fn consume(&self, client: &mut Client) -> Result<(), String> {
        loop {
            match client.call(&["BLPOP", KEY, TIMEOUT]) {
                Ok(Value::NullArray) => {}
                Ok(Value::Array(pair)) => {
                    let element = pair.get(1).and_then(Value::as_bytes);
                    let element = number(element).ok_or(format!("BLPOP answered {pair:?}"))?;
                    let mut known = self.known();
                    if element > known.sent || !known.given.insert(element) {
                        return Err(format!("BLPOP gave {element}, twice or never sent"));
                    }
                    known.acknowledged.remove(&element);
                    known.total += 1;
                }
                Ok(other) => return Err(format!("BLPOP answered {other:?}")),
                Err(_) => {
                    self.known().cut_off += 1;
                    return Ok(());
                }
            }
        }
    }

    /// Compares with the queue of the restarted server.
    ///
    /// # Errors
    /// Elements that were lost, duplicated or reordered.
    pub fn check(&self, client: &mut Client, lossy: bool) -> Result<(), String> {
        let left = client.call(&["LRANGE", KEY, "0", "-1"]).map_err(|error| error.to_string())?;
        let Value::Array(left) = left else { return Err(format!("LRANGE answered {left:?}")) };
        let left: Option<Vec<u64>> = left.iter().map(|value| number(value.as_bytes())).collect();
        let left = left.ok_or(format!("{KEY} holds what was not pushed"))?;
        let mut known = self.known();
        if !left.is_sorted_by(|one, next| one < next) {
            return Err(format!("{KEY} is out of order: {left:?}"));
        }
        if left.last().is_some_and(|&last| last > known.sent) {
            return Err(format!("{KEY} holds {left:?}, and {} was sent last", known.sent));
        }
        if !lossy {
            let back = left.first().zip(known.given.last());
            if let Some((first, given)) = back.filter(|(first, given)| first <= given) {
                return Err(format!("{given} was given, and {first} is still in {KEY}"));
            }
            let missing: Vec<&u64> =
                known.acknowledged.iter().filter(|at| left.binary_search(at).is_err()).collect();
            if missing.len() > known.cut_off {
                return Err(format!(
                    "{KEY}: {missing:?} are gone, and {} consumers waited",
                    known.cut_off
                ));
            }
            if let Some((&&last, first)) =
                missing.last().zip(left.first()).filter(|(l, f)| **l > *f)
            {
                return Err(format!("{KEY}: {last} is gone, and {first} before it is not"));
            }
        }
        known.acknowledged = left.into_iter().collect();
        known.given.clear();
        known.cut_off = 0;
        Ok(())
    }
}

fn number(bytes: Option<&[u8]>) -> Option<u64> {
    std::str::from_utf8(bytes?).ok()?.parse().ok()
}
