//! What the clients saw.

use crate::oracle_commands::{Call, State, apply};
use crate::{scripts, streams, subscriber, waits};
use ladon_record::Gate;
use ladon_resp::client::Value;

/// One step for the oracle: a request, a whole MULTI ... EXEC, or an action of the node itself.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) calls: Vec<Call>,
    /// More than one call in one transaction.
    pub(crate) atomic: bool,
    /// When it was sent, in steps of the simulation.
    pub(crate) begin: u64,
    /// When its reply came, and the reply; for a transaction, `EXEC`'s.
    pub(crate) end: Option<(u64, Value)>,
    /// An action of the node itself, which it reported in this step: no client waits for a reply, a
    /// crash may take it back, and it did not happen later.
    pub(crate) by_itself: Option<u64>,
    /// What determined the gate at which its reply may leave.
    pub(crate) gate: AskedGate,
    /// When it was sent and answered, Unix microseconds.
    pub(crate) sent_us: u64,
    pub(crate) end_us: u64,
    /// The step in which the node said to have run it.
    pub(crate) ran: Option<u64>,
    /// A later reply to its client said that it is on the disk.
    pub(crate) is_durable: bool,
    /// A subscriber has got its message, at a gate that no crash takes back.
    pub(crate) is_shown: bool,
    /// Its script has run and changed nothing: the script's commands may have been refused.
    pub(crate) script_is_idle: bool,
    /// The crash may have taken back what its reply shows.
    pub(crate) may_be_lost: bool,
}

/// At which gate a reply may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedGate {
    /// The connection has asked for it.
    Own(Gate),
    /// The laxest of the defaults between request and reply.
    Default(Gate),
}

impl AskedGate {
    pub(crate) fn gate(self) -> Gate {
        match self {
            AskedGate::Own(gate) | AskedGate::Default(gate) => gate,
        }
    }
}

/// Bytes as text, without the middle if there are many.
pub(crate) fn shortened(bytes: &[u8]) -> String {
    const END: usize = 40;
    match bytes.len() {
        0..=100 => bytes.escape_ascii().to_string(),
        length => {
            let (begin, end) = (&bytes[..END], &bytes[length - END..]);
            format!("{} ... {}", begin.escape_ascii(), end.escape_ascii())
        }
    }
}

/// A reply as somebody who looks for a bug wants to see it.
fn readable(value: &Value) -> String {
    let text = |bytes: &[u8]| shortened(bytes);
    match value {
        Value::Simple(bytes) => text(bytes),
        Value::Error(bytes) => format!("-{}", text(bytes)),
        Value::Bulk(bytes) => format!("\"{}\"", text(bytes)),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(readable).collect();
            format!("[{}]", values.join(", "))
        }
        value => format!("{value:?}"),
    }
}

fn is_refusal(reply: &Value) -> bool {
    const REFUSALS: [&[u8]; 3] = [b"MISCONF", b"EXECABORT", b"OOM"];
    matches!(reply, Value::Error(text) if REFUSALS.iter().any(|it| text.starts_with(it)))
}

fn in_order(call: &Call, reply: Value) -> Value {
    if waits::says_durable(&reply).is_some() && call[0] == b"WAITAOF" {
        return waits::waited();
    }
    if subscriber::publication(call).is_some() && matches!(reply, Value::Integer(0..)) {
        return subscriber::published();
    }
    let reply = streams::in_order(call, reply);
    let together = match call[0].as_slice() {
        b"SMEMBERS" | b"SUNION" | b"SINTER" | b"SDIFF" => 1,
        b"HGETALL" => 2,
        _ => return reply,
    };
    let Value::Array(values) = reply else { return reply };
    let mut elements: Vec<&[Value]> = values.chunks(together).collect();
    elements.sort_by_key(|element| element[0].as_bytes().unwrap_or_default());
    Value::Array(elements.concat())
}

impl Operation {
    /// The node has evicted a key.
    pub(crate) fn eviction(key: &[u8], step: u64) -> Operation {
        let calls = vec![vec![b"EVICT".to_vec(), key.to_vec()]];
        Operation { by_itself: Some(step), ..Operation::new(calls, step) }
    }

    /// One that was sent at a gate that loses nothing.
    pub(crate) fn new(calls: Vec<Call>, begin: u64) -> Operation {
        Operation {
            calls,
            atomic: false,
            begin,
            end: None,
            by_itself: None,
            gate: AskedGate::Own(Gate::Fsync),
            sent_us: 0,
            end_us: 0,
            ran: None,
            is_durable: false,
            is_shown: false,
            script_is_idle: false,
            may_be_lost: false,
        }
    }

    /// Its reply or its message arrived, and what it shows is permanent.
    pub(crate) fn is_firm(&self) -> bool {
        (self.end.is_some() || self.is_shown) && !self.may_be_lost
    }

    /// Applies it to the data. Returns whether its reply, if it has one, is explained.
    pub(crate) fn apply(&self, state: &mut State) -> bool {
        // Of a script that was answered, the answer says it.
        let is_idle = self.script_is_idle && self.end.is_none();
        let apply = |state: &mut State, call: &Call| match is_idle && scripts::is_run(call) {
            true => Value::Null,
            false => apply(state, call),
        };
        // It has not run.
        let is_left_out = |call: &Call, error: &Value| {
            scripts::is_run(call) && is_refusal(error) || scripts::is_unknown(call, error)
        };
        let reply = if self.atomic {
            let seen = self.answered();
            let each = self.calls.iter().enumerate().map(|(at, call)| match seen.get(at) {
                // The transaction goes on without it.
                Some((_, error)) if is_left_out(call, error) => in_order(call, (*error).clone()),
                _ => apply(state, call),
            });
            Value::Array(each.collect())
        } else if let Some((_, error)) = &self.end
            && is_left_out(&self.calls[0], error)
        {
            return true;
        } else {
            apply(state, &self.calls[0])
        };
        self.end.as_ref().is_none_or(|(_, seen)| self.in_order(seen.clone()) == reply)
    }

    /// The reply with elements in ascending order where a call may give them in any.
    fn in_order(&self, reply: Value) -> Value {
        match reply {
            Value::Array(replies) if self.atomic && replies.len() == self.calls.len() => {
                let each = self.calls.iter().zip(replies);
                Value::Array(each.map(|(call, reply)| in_order(call, reply)).collect())
            }
            reply if self.atomic => reply,
            reply => in_order(&self.calls[0], reply),
        }
    }

    pub(crate) fn runs_script(&self) -> bool {
        self.calls.iter().any(scripts::is_run)
    }

    /// Whether it waits for a key that is empty, or for replicas, which do not exist.
    pub(crate) fn may_wait(&self) -> bool {
        let call = &self.calls[0];
        let waits = matches!(call[0].as_slice(), b"BLPOP" | b"BLMOVE");
        !self.atomic && (waits || streams::may_wait(call) || waits::wants_replicas(call))
    }

    /// Its calls, each with its reply.
    pub(crate) fn answered(&self) -> Vec<(&Call, &Value)> {
        match &self.end {
            Some((_, Value::Array(replies))) if self.atomic => {
                self.calls.iter().zip(replies).collect()
            }
            Some((_, reply)) if !self.atomic => vec![(&self.calls[0], reply)],
            _ => Vec::new(),
        }
    }

    /// Whether it has surely changed data.
    pub(crate) fn surely_wrote(&self) -> bool {
        self.answered().into_iter().any(|(call, reply)| waits::surely_wrote(call, reply))
    }

    /// Whether its reply says that all that its client has written before is on the disk.
    pub(crate) fn says_durable(&self) -> bool {
        let says = |(call, reply): (&Call, &Value)| {
            call[0] == b"WAITAOF" && waits::says_durable(reply) == Some(true)
        };
        self.answered().into_iter().any(says)
    }

    /// What is wrong with the end of a wait at this time, if anything.
    pub(crate) fn wrong_wait(&self, now_us: u64) -> Option<String> {
        let waited_ms = now_us / 1000 - self.sent_us / 1000;
        let is_wrong = |(call, reply): &(&Call, &Value)| {
            waits::is_wait(call) && !waits::may_be_answered(call, reply, waited_ms, self.atomic)
        };
        let answered = self.answered();
        answered
            .iter()
            .any(is_wrong)
            .then(|| format!("a wait ended before its time, after {waited_ms} ms: {}", self.show()))
    }

    /// A refusal (the log takes no writes, or there is no memory) means that nothing happened.
    pub(crate) fn was_refused(&self) -> bool {
        self.end.as_ref().is_some_and(|(_, reply)| is_refusal(reply))
    }

    /// It was refused for want of memory.
    pub(crate) fn found_no_memory(&self) -> bool {
        matches!(&self.end, Some((_, Value::Error(text))) if text.starts_with(b"OOM"))
    }

    pub(crate) fn show(&self) -> String {
        let calls: Vec<String> = self
            .calls
            .iter()
            .map(|call| {
                let words: Vec<String> = call.iter().map(|word| shortened(word)).collect();
                words.join(" ")
            })
            .collect();
        let end = match &self.end {
            Some((at, value)) => format!("{at}: {}", readable(value)),
            None => "never".to_owned(),
        };
        let gate = self.gate;
        format!("[{} .. {end}] {gate:?} {}", self.begin, calls.join("; "))
    }
}
