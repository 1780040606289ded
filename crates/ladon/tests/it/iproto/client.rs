//! A client of IPROTO for tests, and MessagePack by hand.

use ladon_iproto::auth::{self, Credentials};
use ladon_iproto::client::{Reply, write_request};
use ladon_iproto::greeting::{self, GREETING_BYTES, SALT_BYTES};
use ladon_iproto::request::{Auth, Call, Delete, IndexRef, Put, Select, SpaceRef, Update};
use ladon_iproto::request_type::CHUNK;
use ladon_iproto::{Progress, Request, frame};
use ladon_msgpack::{Value, read, write};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// An error's code and message.
pub type Refusal = (u32, String);

pub struct Iproto {
    stream: TcpStream,
    salt: [u8; SALT_BYTES],
    sync: u64,
    /// The stream that requests belong to; 0 for none.
    pub stream_id: u64,
    unread: Vec<u8>,
    /// Replies that came before the one that was awaited, by sync.
    early: BTreeMap<u64, Vec<u8>>,
    /// The syncs of all replies, in the order in which they came.
    pub came: Vec<u64>,
    /// Of the last reply.
    position: Option<Vec<u8>>,
    /// Values that were sent ahead of answers.
    pub pushed: u64,
    /// Class, line and message of the last reply's error, and of what it came of.
    pub raised: Vec<(String, u64, String)>,
    /// Of the last reply: the schema's version.
    pub schema_version: u64,
}

/// The most of what rounds return, until one returns enough. A busy machine may give a test's
/// thread no time in a round, however many turns the server left to others.
pub fn best_of_rounds(enough: u64, mut round: impl FnMut(u64) -> u64) -> u64 {
    // Many, since on a busy machine the other client may have no turn of the processor in most of them.
    const ROUNDS: u64 = 500;
    let mut best = 0;
    for number in 0..ROUNDS {
        best = best.max(round(number));
        if best >= enough {
            break;
        }
    }
    best
}

impl Iproto {
    pub fn connect(port: u16) -> Iproto {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        let mut bytes = [0; GREETING_BYTES];
        stream.read_exact(&mut bytes).expect("a greeting");
        let salt = greeting::read(&bytes).expect("a greeting").salt;
        Iproto {
            stream,
            salt,
            sync: 0,
            stream_id: 0,
            unread: Vec::new(),
            early: BTreeMap::new(),
            came: Vec::new(),
            position: None,
            pushed: 0,
            raised: Vec::new(),
            schema_version: 0,
        }
    }

    /// How often another client's `step` is done before the reply to what was told is here.
    pub fn steps_meanwhile(&mut self, mut step: impl FnMut(u64)) -> u64 {
        let mut steps = 0;
        while !self.has_reply() {
            step(steps);
            steps += 1;
        }
        steps
    }

    /// How often `ask` asks something on this connection, and gets the reply, before the one to
    /// what was told.
    pub fn asked_meanwhile(&mut self, mut ask: impl FnMut(&mut Iproto, u64)) -> u64 {
        let told = self.sync;
        let mut asked = 0;
        loop {
            ask(self, asked);
            if self.early.contains_key(&told) {
                return asked;
            }
            asked += 1;
        }
    }

    /// The number of the last request.
    pub fn last_sync(&self) -> u64 {
        self.sync
    }

    /// Sends as much of it as the kernel takes within a time; the rest is nobody's.
    pub fn send_some(&mut self, requests: &[Request<'_>], time: Duration) {
        let mut bytes = Vec::new();
        for request in requests {
            self.sync += 1;
            write_request(&mut bytes, self.sync, self.stream_id, request);
        }
        self.stream.set_write_timeout(Some(time)).expect("a timeout");
        let _ = self.stream.write_all(&bytes);
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sends");
    }

    /// Whether the server closes the connection in this time.
    pub fn closed_within(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("a timeout");
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).is_ok()
    }

    /// The data of a reply, or its error; `None` if the server is gone.
    pub fn try_ask(&mut self, request: &Request<'_>) -> Option<Result<Vec<Vec<u8>>, Refusal>> {
        self.write(request)?;
        self.receive()
    }

    fn write(&mut self, request: &Request<'_>) -> Option<()> {
        self.sync += 1;
        let mut bytes = Vec::new();
        write_request(&mut bytes, self.sync, self.stream_id, request);
        self.stream.write_all(&bytes).ok()
    }

    /// Asks for all of a space, and does not wait for it.
    pub fn send_select(&mut self, space: u32) {
        self.write(&all_of(space, u32::MAX, None)).expect("sends");
    }

    /// A page of a space, and the position after it if there may be more.
    pub fn page(
        &mut self,
        space: u32,
        limit: u32,
        after: Option<&[u8]>,
    ) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
        let page = self.ask(&all_of(space, limit, after)).expect("a page");
        (page, self.position.take())
    }

    /// Sends a request that has no reply.
    pub fn tell(&mut self, request: &Request<'_>) {
        self.write(request).expect("sends");
    }

    /// The next event that comes within a time: its key, and its value if it has one.
    pub fn event_within(&mut self, time: Duration) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        self.stream.set_read_timeout(Some(time)).expect("a timeout");
        let end = self.next_packet();
        self.stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let (start, end) = end?;
        let reply = Reply::decode(&self.unread[start..end]).expect("a packet");
        let key = reply.event_key.expect("an event").to_vec();
        let value = reply.event_data.map(|value| normal(value.to_vec()));
        self.unread.drain(..end);
        Some((key, value))
    }

    /// Where the next packet is; `None` if none comes.
    fn next_packet(&mut self) -> Option<(usize, usize)> {
        loop {
            if let Progress::Complete { start, end } = frame::next(&self.unread, u64::MAX) {
                return Some((start, end));
            }
            let mut part = [0; 64 << 10];
            match self.stream.read(&mut part) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.unread.extend_from_slice(&part[..count]),
            }
        }
    }

    /// Sends many requests at once, and returns their replies.
    pub fn ask_all(&mut self, requests: &[Request<'_>]) -> Vec<Result<Vec<Vec<u8>>, Refusal>> {
        let (mut bytes, before) = (Vec::new(), self.sync);
        for (request, sync) in requests.iter().zip(before + 1..) {
            write_request(&mut bytes, sync, self.stream_id, request);
        }
        let mut writer = self.stream.try_clone().expect("a socket");
        let sender = std::thread::spawn(move || writer.write_all(&bytes).expect("sends"));
        self.sync += requests.len() as u64;
        let replies = (before + 1..=self.sync)
            .map(|sync| self.receive_of(sync).expect("the server answers"))
            .collect();
        sender.join().expect("sent all");
        replies
    }

    /// Whether a reply, or a part of one, has come.
    pub fn has_reply(&mut self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let has = !self.unread.is_empty() || self.stream.peek(&mut [0]).is_ok();
        self.stream.set_nonblocking(false).expect("a socket");
        has
    }

    /// Whether a reply, or a part of one, comes in this time.
    pub fn has_reply_within(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).expect("a timeout");
        let has = !self.unread.is_empty() || self.stream.peek(&mut [0]).is_ok();
        self.stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        has
    }

    /// The reply to the last request.
    pub fn receive(&mut self) -> Option<Result<Vec<Vec<u8>>, Refusal>> {
        self.receive_of(self.sync)
    }

    /// The reply to the request that was sent so many requests before the last one.
    pub fn receive_earlier(&mut self, before: u64) -> Option<Result<Vec<Vec<u8>>, Refusal>> {
        self.receive_of(self.sync - before)
    }

    /// The reply to the request with this number.
    pub fn receive_of(&mut self, sync: u64) -> Option<Result<Vec<Vec<u8>>, Refusal>> {
        let packet = loop {
            if let Some(packet) = self.early.remove(&sync) {
                break packet;
            }
            let (start, end) = self.next_packet()?;
            let packet = self.unread[start..end].to_vec();
            self.unread.drain(..end);
            let header = Reply::decode(&packet).expect("a reply").header;
            if header.request_type == CHUNK {
                self.pushed += 1;
                continue;
            }
            let came = header.sync;
            assert!(came <= self.sync, "a reply to what was asked");
            self.came.push(came);
            assert!(self.early.insert(came, packet).is_none(), "one reply to each request");
        };
        let reply = Reply::decode(&packet).expect("a reply");
        self.position = reply.position.map(<[u8]>::to_vec);
        self.schema_version = reply.header.schema_version;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let raised = reply.stack.iter();
        self.raised = raised.map(|it| (text(it.class), it.line, text(it.message))).collect();
        let result = match (reply.error_code(), reply.error) {
            (Some(code), Some(text)) => Err((code, String::from_utf8_lossy(text).into())),
            _ => Ok(reply.tuples().into_iter().map(|it| normal(it.to_vec())).collect()),
        };
        Some(result)
    }

    pub fn ask(&mut self, request: &Request<'_>) -> Result<Vec<Vec<u8>>, Refusal> {
        self.try_ask(request).expect("the server answers")
    }

    pub fn log_in(&mut self, user: &str, password: &str) -> Result<(), Refusal> {
        let mut tuple = Vec::new();
        Credentials::ChapSha1(auth::scramble(password.as_bytes(), &self.salt)).write(&mut tuple);
        let request = Request::Auth(Auth { user_name: user.as_bytes(), tuple: &tuple });
        self.ask(&request).map(drop)
    }

    pub fn insert(&mut self, space: u32, tuple: &[u8]) -> Vec<Vec<u8>> {
        let put = Put { space: SpaceRef::Id(space), tuple };
        self.ask(&Request::Insert(put)).unwrap_or_else(|error| panic!("{space}: {error:?}"))
    }

    pub fn select(&mut self, space: u32, index: u32, key: &[u8]) -> Vec<Vec<u8>> {
        let select = Select {
            space: SpaceRef::Id(space),
            index: IndexRef::Id(index),
            iterator: if key == [0x90] { 2 } else { 0 },
            offset: 0,
            limit: u32::MAX,
            key,
            fetch_position: false,
            after_position: None,
            after_tuple: None,
        };
        self.ask(&Request::Select(select)).expect("selects")
    }

    pub fn update(&mut self, space: u32, key: &[u8], operations: &[u8]) -> Vec<Vec<u8>> {
        let (space, index) = (SpaceRef::Id(space), IndexRef::Id(0));
        let update = Update { space, index, index_base: 0, key, operations };
        self.ask(&Request::Update(update)).expect("updates")
    }

    pub fn delete(&mut self, space: u32, key: &[u8]) -> Vec<Vec<u8>> {
        let delete = Delete { space: SpaceRef::Id(space), index: IndexRef::Id(0), key };
        self.ask(&Request::Delete(delete)).expect("deletes")
    }

    pub fn call(&mut self, name: &str, arguments: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
        self.ask(&Request::Call(Call { name: name.as_bytes(), arguments }))
    }
}

fn all_of(space: u32, limit: u32, after_position: Option<&[u8]>) -> Request<'_> {
    Request::Select(Select {
        space: SpaceRef::Id(space),
        index: IndexRef::Id(0),
        iterator: 2,
        offset: 0,
        limit,
        key: &[0x90],
        fetch_position: true,
        after_position,
        after_tuple: None,
    })
}

/// The same value with every number and length in its shortest format.
pub fn normal(value: Vec<u8>) -> Vec<u8> {
    let (mut rest, mut out) = (&value[..], Vec::new());
    while !rest.is_empty() {
        match read(&mut rest).expect("MessagePack") {
            Value::Array(count) => write::array(&mut out, count),
            Value::Map(count) => write::map(&mut out, count),
            Value::Uint(number) => write::uint(&mut out, number),
            Value::Int(number) => write::int(&mut out, number),
            Value::Str(text) => write::str(&mut out, text),
            Value::Nil => write::nil(&mut out),
            Value::Bool(value) => write::bool(&mut out, value),
            Value::Double(value) => write::double(&mut out, value),
            other => panic!("no test has {other:?}"),
        }
    }
    out
}

pub fn int(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::uint(&mut out, value);
    out
}

pub fn text(value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write::str(&mut out, value.as_bytes());
    out
}

pub fn array(values: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    write::array(&mut out, values.len() as u32);
    out.extend(values.iter().flatten());
    out
}

pub fn map(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    write::map(&mut out, pairs.len() as u32);
    for (key, value) in pairs {
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }
    out
}
