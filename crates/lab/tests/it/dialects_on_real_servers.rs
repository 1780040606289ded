//! Every dialect against the real server: whatever is asked, the answers are those of a plain
//! model, errors keep the server's words, and many requests on one connection find their answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::common::start;
use crate::plain_store::{Model, any_bytes, operation};
use ladon_lab::dialects::http::Http;
use ladon_lab::dialects::iproto::Iproto;
use ladon_lab::dialects::iproto::msgpack::Value;
use ladon_lab::dialects::iproto::request::{Iterator as Walk, Request};
use ladon_lab::dialects::memcached::Memcached;
use ladon_lab::dialects::resp::Resp;
use ladon_lab::dialects::{Dialect, Framed};
use ladon_lab::load::random::Random;
use ladon_lab::operation::{Answer, Operation};
use ladon_lab::systems::instance::Instance;
use ladon_lab::systems::iproto_control::IprotoControl;

/// One connection, requests and replies by hand.
struct Client<D> {
    dialect: D,
    stream: TcpStream,
    received: Vec<u8>,
}

impl<D: Dialect> Client<D> {
    fn connect(address: SocketAddr, mut dialect: D) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut greeting = vec![0; dialect.greeting_bytes()];
        stream.read_exact(&mut greeting).unwrap();
        let mut out = Vec::new();
        let replies = dialect.hello(&greeting, &mut out).unwrap();
        stream.write_all(&out).unwrap();
        let mut client = Self { dialect, stream, received: Vec::new() };
        for number in 0..replies {
            let (frame, _) = client.frame(None);
            client.dialect.check_hello(number, &frame).unwrap();
        }
        client
    }

    fn frame(&mut self, expecting: Option<&Operation>) -> (Vec<u8>, Option<u64>) {
        loop {
            if !self.received.is_empty() {
                let framed = self.dialect.frame(expecting, &self.received).unwrap();
                if let Framed::Frame { length, tag } = framed {
                    return (self.received.drain(..length).collect(), tag);
                }
            }
            let mut piece = [0; 4096];
            let read = self.stream.read(&mut piece).unwrap();
            assert!(read > 0, "closed");
            self.received.extend_from_slice(&piece[..read]);
        }
    }

    /// All requests at once, then all answers, brought into order by their tags.
    fn ask_all(&mut self, operations: &[Operation]) -> Vec<Answer> {
        let mut out = Vec::new();
        for (tag, operation) in operations.iter().enumerate() {
            self.dialect.encode(tag as u64, operation, &mut out);
        }
        self.stream.write_all(&out).unwrap();
        let mut answers = vec![None; operations.len()];
        for next in 0..operations.len() {
            let (frame, tag) = self.frame(Some(&operations[next]));
            let which = tag.map_or(next, |tag| usize::try_from(tag).unwrap());
            let operation = &operations[which];
            let answer = self.dialect.answer(operation, &frame).unwrap();
            assert!(self.dialect.is_right(operation, &answer, &frame), "{operation:?}");
            assert!(answers[which].replace(answer).is_none(), "two answers to {which}");
        }
        assert!(self.received.is_empty());
        answers.into_iter().flatten().collect()
    }
}

fn agrees_with_the_model<D: Dialect>(
    instance: &Instance,
    dialect: D,
    bytes: &dyn Fn(&mut Random) -> Vec<u8>,
) {
    let can = |kind| instance.system.can_do(kind);
    let mut client = Client::connect(instance.address(), dialect);
    let mut model = Model::default();
    let mut random = Random::new(7);
    let mut number = 0;
    while number < 4000 {
        // One at a time, or many together where a connection's requests are run in their order.
        let many = random.below(3) == 0 && instance.system.can_pipeline().is_ok();
        let together = if many { 20 } else { 1 };
        let mut operations = Vec::new();
        while operations.len() < together {
            number += 1;
            let operation = operation(&mut random, number, bytes);
            if can(operation.kind()).is_ok() && client.dialect.can(operation.kind()).is_ok() {
                operations.push(operation);
            }
        }
        let answers = client.ask_all(&operations);
        for (operation, answer) in operations.iter().zip(&answers) {
            let expected = model.answer(operation);
            assert!(
                answer.means_the_same(&expected, operation),
                "{operation:?}: {answer:?} instead of {expected:?}"
            );
        }
    }
}

#[test]
fn resp_on_redis_and_its_kin() {
    for name in ["redis", "redis8", "valkey", "ladon"] {
        let Some((_, instance)) = start(name) else { continue };
        agrees_with_the_model(&instance, Resp::new(), &any_bytes);
    }
}

#[test]
fn resp_with_a_search_module() {
    let Some((_, instance)) = start("redisearch") else { return };
    agrees_with_the_model(&instance, Resp::with_search(), &any_bytes);
}

#[test]
fn text_on_memcached() {
    let Some((_, instance)) = start("memcached") else { return };
    agrees_with_the_model(&instance, Memcached, &any_bytes);
}

/// Values of HTTP are JSON strings, hence text.
fn any_text(random: &mut Random) -> Vec<u8> {
    let letters = ["a", "\"", "\\", "\n", "\u{1}", "ä", "龍", "<&>"];
    let length = [0, 1, 64, 5000][random.below(4) as usize];
    let text: String = (0..length).map(|_| letters[random.below(8) as usize]).collect();
    text.into_bytes()
}

#[test]
fn http_on_web_programs() {
    for name in ["go-leveldb", "go-redis", "go-ladon", "go-tarantool", "tarantool-http"] {
        let Some((_, instance)) = start(name) else { continue };
        agrees_with_the_model(&instance, Http, &any_text);
    }
}

#[test]
fn iproto_on_tarantool_and_ladon() {
    for name in ["tarantool", "tarantool-hash", "ladon-iproto", "ladon-iproto-hash"] {
        let Some((_, instance)) = start(name) else { continue };
        agrees_with_the_model(&instance, Iproto::new(), &any_bytes);
    }
}

#[test]
fn iproto_logs_in_by_chap_sha1() {
    let Some((_, instance)) = start("tarantool") else { return };
    let mut control = IprotoControl::connect(instance.address()).unwrap();
    control.eval("box.session.su('admin', function() box.schema.user.create('user', {password = 'secret'}) box.schema.user.grant('user', 'read,write,execute', 'universe') end)").unwrap();
    control.auth("user", "secret").unwrap();
    let name = control.eval("return box.session.user()").unwrap();
    assert_eq!(name, [Value::text("user")]);
    let mut control = IprotoControl::connect(instance.address()).unwrap();
    let refused = control.auth("user", "wrong").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied, "{refused}");
    let dialect = Iproto::with_login("user".into(), "secret".into());
    let mut client = Client::connect(instance.address(), dialect);
    let answers = client.ask_all(&[Operation::Get { key: b"none".to_vec() }]);
    assert_eq!(answers, [Answer::Value(None)]);
}

#[test]
fn iproto_has_every_request() {
    let Some((_, instance)) = start("tarantool") else { return };
    let mut control = IprotoControl::connect(instance.address()).unwrap();
    let row = |key: &str, value: u64| [Value::text(key), Value::Unsigned(value)];
    let space = ladon_lab::dialects::iproto::spaces::COUNTERS;
    assert_eq!(control.request(&Request::Ping).unwrap(), []);
    let insert = Request::Insert { space, tuple: &row("a", 1) };
    assert_eq!(control.request(&insert).unwrap(), [Value::Array(row("a", 1).to_vec())]);
    let again = control.request(&insert).unwrap_err().to_string();
    assert!(again.contains("error 3: Duplicate key"), "{again}");
    let replace = Request::Replace { space, tuple: &row("a", 2) };
    assert_eq!(control.request(&replace).unwrap(), [Value::Array(row("a", 2).to_vec())]);
    let plus_five = [Value::Array(vec![Value::text("+"), Value::Unsigned(1), Value::Unsigned(5)])];
    let key = [Value::text("a")];
    let update = Request::Update { space, key: &key, operations: &plus_five };
    assert_eq!(control.request(&update).unwrap(), [Value::Array(row("a", 7).to_vec())]);
    for name in ["a", "b"] {
        let upsert = Request::Upsert { space, tuple: &row(name, 1), operations: &plus_five };
        assert_eq!(control.request(&upsert).unwrap(), []);
    }
    let select =
        Request::Select { space, index: 0, iterator: Walk::GreaterOrEqual, limit: 10, key: &[] };
    let all = [Value::Array(row("a", 12).to_vec()), Value::Array(row("b", 1).to_vec())];
    assert_eq!(control.request(&select).unwrap(), all);
    assert_eq!(
        control.request(&Request::Delete { space, key: &key }).unwrap(),
        [Value::Array(row("a", 12).to_vec())]
    );
    let call = Request::Call { function: "box.space.counters:get", arguments: &[Value::text("b")] };
    assert_eq!(control.request(&call).unwrap(), [Value::Array(row("b", 1).to_vec())]);
    let arguments = [Value::Negative(-5), Value::Nil, Value::Bool(true), Value::Float(1.5)];
    let eval = Request::Eval { expression: "return ...", arguments: &arguments };
    assert_eq!(control.request(&eval).unwrap(), arguments);
    let unknown = Request::Call { function: "no_such", arguments: &[] };
    let refused = control.request(&unknown).unwrap_err().to_string();
    assert!(refused.contains("no_such"), "{refused}");
}
