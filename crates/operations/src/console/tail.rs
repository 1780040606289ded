//! Messages of channels, as events: a connection of its own that is subscribed to them.

use super::api::Caller;
use super::call::{Connection, REPLY_BYTES_MAX};
use super::live::streaming;
use super::sessions::Watching;
use super::{Console, Refusal, refusal, wire};
use crate::access::Peer;
use crate::body::Answer;
use crate::streams::{Events, Sent};
use hyper::StatusCode;
use ladon_resp::client::{Value, write_request};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Names that one tail listens to.
const NAMES_MAX: usize = 64;

/// Bytes of a message that are shown.
const SHOWN_BYTES_MAX: usize = 4 << 10;

/// Messages shown in a second; others are counted.
const SHOWN_MAX: u32 = 200;

/// Messages taken in a second. What is beyond waits in the server, up to the limit of
/// `client-output-buffer-limit`.
const TAKEN_MAX: u32 = 20_000;

/// How often a silent tail says that it is there, and looks whether its session is.
const BEAT_EVERY: Duration = Duration::from_secs(5);

/// What a tail listens to.
#[derive(Debug, Default, PartialEq)]
struct Names {
    channels: Vec<Vec<u8>>,
    patterns: Vec<Vec<u8>>,
}

impl Names {
    /// Of a query such as `channel=news&pattern=user.*`.
    fn of(query: &str) -> Result<Names, &'static str> {
        let mut names = Names::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (kind, name) = pair.split_once('=').ok_or("a name has a value")?;
            let name = decode(name).ok_or("a name is not encoded as in a URL")?;
            match kind {
                "channel" => names.channels.push(name),
                "pattern" => names.patterns.push(name),
                _ => return Err("only channel and pattern are known"),
            }
        }
        match names.channels.len() + names.patterns.len() {
            0 => Err("a channel or a pattern is needed"),
            count if count > NAMES_MAX => Err("too many channels and patterns"),
            _ => Ok(names),
        }
    }

    /// The commands, and the number of their replies.
    fn requests(&self) -> (Vec<u8>, usize) {
        let mut request = Vec::new();
        for (command, names) in [("SUBSCRIBE", &self.channels), ("PSUBSCRIBE", &self.patterns)] {
            if !names.is_empty() {
                let words = std::iter::once(command.as_bytes());
                let words: Vec<&[u8]> = words.chain(names.iter().map(Vec::as_slice)).collect();
                write_request(&mut request, &words);
            }
        }
        (request, self.channels.len() + self.patterns.len())
    }
}

/// Undoes the encoding of a query's value.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            byte => byte,
        });
    }
    Some(decoded)
}

impl Console {
    /// Subscribes, and passes on what comes.
    pub(super) async fn tail(
        self: &Arc<Self>,
        caller: &Caller,
        peer: &Peer,
        query: &str,
    ) -> Result<Answer, Refusal> {
        let names = Names::of(query).map_err(|text| refusal(StatusCode::BAD_REQUEST, text))?;
        let user = Some(Arc::clone(&caller.user));
        let opened = Connection::open(&*self.door, peer, user, &[]).await;
        let unavailable = |text: String| refusal(StatusCode::SERVICE_UNAVAILABLE, text);
        let (mut connection, greeting) = opened.map_err(|error| unavailable(error.to_string()))?;
        if let Value::Error(error) = greeting {
            return Err(unavailable(String::from_utf8_lossy(&error).into_owned()));
        }
        let (request, replies) = names.requests();
        let sent = connection.send(&request).await;
        sent.map_err(|error| unavailable(error.to_string()))?;
        for _ in 0..replies {
            match connection.next().await {
                Ok(Value::Error(error)) => {
                    let text = String::from_utf8_lossy(&error);
                    return Err(refusal(StatusCode::FORBIDDEN, text));
                }
                Ok(_) => {}
                Err(error) => return Err(unavailable(error.to_string())),
            }
        }
        let (events, receiver) = self.streams.begin();
        let answer = streaming(&events, receiver);
        let (console, watching) = (Arc::clone(self), Watching::begin(&caller.session));
        tokio::spawn(Tail { console, watching, connection, events }.run());
        Ok(answer)
    }
}

struct Tail {
    console: Arc<Console>,
    watching: Watching,
    connection: Connection,
    events: Events,
}

/// What a tail has done in this second.
struct Second {
    began: Instant,
    shown: u32,
    taken: u32,
    left_out: u64,
}

impl Second {
    fn begin() -> Second {
        Second { began: Instant::now(), shown: 0, taken: 0, left_out: 0 }
    }

    fn end(&self) -> Instant {
        self.began + Duration::from_secs(1)
    }
}

impl Tail {
    async fn run(mut self) {
        self.events.beat();
        let mut second = Second::begin();
        loop {
            let is_quiet = second.taken == 0;
            let until = if is_quiet { Instant::now() + BEAT_EVERY } else { second.end() };
            let value = tokio::select! {
                value = timeout_at(until, self.connection.next()) => value,
                () = self.events.gone() => return,
            };
            if Instant::now() >= second.end() {
                if second.left_out > 0 {
                    let count = second.left_out.to_string();
                    self.events.send("left_out", count.as_bytes());
                }
                second = Second::begin();
            }
            match value {
                Ok(Ok(value)) => self.take(&value, &mut second).await,
                Ok(Err(error)) => return self.end(&error.to_string()),
                Err(_) if self.console.user_of(&self.watching.0).is_none() => {
                    return self.end("the session is over");
                }
                Err(_) if is_quiet && self.events.beat() == Sent::Gone => return,
                Err(_) => {}
            }
        }
    }

    /// Shows a message, unless there were many in this second.
    async fn take(&mut self, value: &Value, second: &mut Second) {
        second.taken += 1;
        if second.shown < SHOWN_MAX && self.show(value) == Sent::Yes {
            second.shown += 1;
        } else {
            second.left_out += 1;
        }
        if second.taken == TAKEN_MAX {
            sleep_until(second.end()).await;
        }
    }

    fn end(&mut self, why: &str) {
        let mut data = Vec::new();
        wire::string(&mut data, why.as_bytes());
        self.events.send("end", &data);
    }

    fn show(&mut self, value: &Value) -> Sent {
        let Some(json) = message(value) else { return Sent::Yes };
        self.events.send("message", &json)
    }
}

/// `["channel", "pattern" or null, "message", its bytes]` of a message.
fn message(value: &Value) -> Option<Vec<u8>> {
    let parts = value.as_slice()?;
    let bytes = |at: usize| parts.get(at).and_then(Value::as_bytes);
    let (channel, pattern, message) = match bytes(0)? {
        b"message" => (bytes(1)?, None, bytes(2)?),
        b"pmessage" => (bytes(2)?, Some(bytes(1)?), bytes(3)?),
        _ => return None,
    };
    let mut json = b"[".to_vec();
    wire::string(&mut json, channel);
    json.push(b',');
    match pattern {
        Some(pattern) => wire::string(&mut json, pattern),
        None => json.extend_from_slice(b"null"),
    }
    json.push(b',');
    wire::string(&mut json, cut(message));
    json.extend_from_slice(format!(",{}]", message.len()).as_bytes());
    Some(json)
}

/// The beginning of a message; a letter is not cut in two.
fn cut(message: &[u8]) -> &[u8] {
    const { assert!(SHOWN_BYTES_MAX < REPLY_BYTES_MAX) }
    if message.len() <= SHOWN_BYTES_MAX {
        return message;
    }
    let is_inside = |at: &usize| message[*at] & 0xc0 == 0x80;
    let end = (SHOWN_BYTES_MAX - 3..=SHOWN_BYTES_MAX).rev().find(|at| !is_inside(at));
    &message[..end.unwrap_or(SHOWN_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_channels_and_patterns() {
        let names = Names::of("channel=a%20b+c&pattern=%2a&channel=%C3%A9").expect("names");
        assert_eq!(names.channels, [b"a b c".to_vec(), "\u{e9}".as_bytes().to_vec()]);
        assert_eq!(names.patterns, [b"*"]);
        assert_eq!(names.requests().1, 3);
        for wrong in ["", "channel", "shard=x", "channel=%", "channel=%4", "channel=%zz"] {
            assert!(Names::of(wrong).is_err(), "{wrong}");
        }
        assert!(Names::of(&"channel=x&".repeat(NAMES_MAX + 1)).is_err());
    }

    #[test]
    fn a_message_is_shown_by_its_beginning() {
        let bulk = |text: &str| Value::Bulk(text.into());
        let of = |parts: &[&str]| {
            let value = Value::Push(parts.iter().map(|part| bulk(part)).collect());
            message(&value).map(|json| String::from_utf8(json).expect("text"))
        };
        assert_eq!(of(&["message", "c", "hi"]).as_deref(), Some(r#"["c",null,"hi",2]"#));
        assert_eq!(of(&["pmessage", "c*", "c1", "hi"]).as_deref(), Some(r#"["c1","c*","hi",2]"#));
        assert_eq!(of(&["subscribe", "c", "1"]), None);
        let long = "\u{e9}".repeat(SHOWN_BYTES_MAX);
        assert_eq!(cut(long.as_bytes()).len(), SHOWN_BYTES_MAX);
        assert_eq!(cut(&long.as_bytes()[1..]).len(), SHOWN_BYTES_MAX - 1);
    }
}
