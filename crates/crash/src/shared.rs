//! Counters that all connections share: a value that any client saw must survive a crash.

use crate::client::Client;
use crate::voices::Counting;
use ladon_resp::client::Value;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

const KEY: &str = "shared:count";

/// What the connections know about the counter.
#[derive(Default)]
pub struct SharedCounter {
    /// The highest value that a reply showed.
    seen: AtomicI64,
    /// INCRs sent.
    sent: AtomicU64,
    /// Values that INCRs answered since the last check: each must be new.
    given: Mutex<BTreeSet<i64>>,
}

impl SharedCounter {
    /// Adds one, over and over, until the connection breaks. `answered` counts how often.
    ///
    /// # Errors
    /// A value given twice, or no number.
    pub fn count(&self, client: &mut impl Counting, answered: &AtomicU64) -> Result<(), String> {
        loop {
            self.sent.fetch_add(1, SeqCst);
            let Ok(value) = client.add_one(KEY) else { return Ok(()) };
            let value = value?;
            self.seen.fetch_max(value, SeqCst);
            let mut given = self.given.lock().unwrap_or_else(|e| e.into_inner());
            if !given.insert(value) {
                return Err(format!("{value} was given twice"));
            }
            answered.fetch_add(1, SeqCst);
        }
    }

    /// Reads until the connection breaks.
    ///
    /// # Errors
    /// A value that decreases.
    pub fn watch(&self, client: &mut Client) -> Result<(), String> {
        let mut last = 0;
        loop {
            match client.call(&["GET", KEY]) {
                Ok(value) => {
                    let value = number(&value)?;
                    if value < last {
                        return Err(format!("{KEY} went back from {last} to {value}"));
                    }
                    last = value;
                    self.seen.fetch_max(value, SeqCst);
                }
                Err(_) => return Ok(()),
            }
        }
    }

    /// Compares with the counter of the restarted server.
    ///
    /// # Errors
    /// A counter that decreased, or that counts what was never sent.
    pub fn check(&self, client: &mut Client, lossy: bool) -> Result<(), String> {
        let found = client.call(&["GET", KEY]).map_err(|error| format!("{KEY}: {error}"))?;
        let found = number(&found)?;
        let (seen, sent) = (self.seen.load(SeqCst), self.sent.load(SeqCst));
        if found < seen && !lossy {
            return Err(format!("{KEY} went back: {seen} was seen, {found} is left"));
        }
        if found as u64 > sent {
            return Err(format!("{KEY} is {found}, and only {sent} INCRs were sent"));
        }
        self.seen.store(found, SeqCst);
        self.given.lock().unwrap_or_else(|e| e.into_inner()).clear();
        Ok(())
    }
}

fn number(value: &Value) -> Result<i64, String> {
    match value {
        Value::Null => Ok(0),
        Value::Bulk(text) => {
            let text = String::from_utf8_lossy(text);
            text.parse().map_err(|_| format!("{KEY} holds '{text}'"))
        }
        other => Err(format!("GET {KEY} answered {other:?}")),
    }
}
