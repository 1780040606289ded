//! The statements of `sql/`, one a line, sent to Ladon and to a real `tarantool`: metadata, rows,
//! numbers of changed rows and errors are the same.

use ladon_conformance::iproto::request::{key, kind};
use ladon_conformance::iproto::{Client, Reply, Request, Value};
use ladon_conformance::{Server, locate};
use std::path::Path;

const PASSWORD: &str = ladon_conformance::server::ADMIN_PASSWORD;

/// A client of each server, logged in as `admin`.
fn clients() -> ([Server; 2], [Client; 2]) {
    let tarantool = locate::must("tarantool", locate::program("tarantool", "tarantool"));
    let ladon = locate::must("ladon", locate::ladon());
    let servers = [
        locate::must("tarantool", Server::tarantool(&tarantool)),
        locate::must("ladon", Server::ladon_with_iproto(&ladon, &[])),
    ];
    let clients = servers.each_ref().map(|server| {
        let address = server.iproto.expect("it speaks IPROTO");
        let mut client = locate::must("a client", Client::connect(address));
        locate::must("a login", client.log_in("admin", PASSWORD));
        client
    });
    (servers, clients)
}

/// A request with a text and the values of its parameters.
fn request(request_type: u8, text: &str, values: &[Value]) -> Request {
    let body =
        vec![(key::SQL_TEXT, Value::text(text)), (key::SQL_BIND, Value::Array(values.to_vec()))];
    Request::new(request_type, body)
}

fn ask(clients: &mut [Client; 2], request: &Request) -> [Reply; 2] {
    clients.each_mut().map(|client| client.ask(std::slice::from_ref(request)).remove(0))
}

#[test]
fn statements_are_answered_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut files: Vec<_> = locate::must("the folder", std::fs::read_dir(&folder))
        .map(|entry| locate::must("a file", entry).path())
        .collect();
    files.sort();
    let (_servers, mut clients) = clients();
    let (mut statements, mut differences) = (0, Vec::new());
    for file in files {
        let text = locate::must("the text", std::fs::read_to_string(&file));
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
            let [wanted, got] = ask(&mut clients, &request(kind::EXECUTE, line, &[]));
            statements += 1;
            if wanted != got {
                differences.push(format!("{line}\n  {}\n  {}", wanted.show(), got.show()));
            }
        }
    }
    assert!(statements > 200, "only {statements} statements");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn parameters_are_taken_alike() {
    let (_servers, mut clients) = clients();
    let named = |name: &str, value: Value| Value::Map(vec![(Value::text(name), value)]);
    let double = Value::Double(1.5f64.to_bits());
    let cases: &[(&str, &[Value])] = &[
        ("SELECT ?", &[Value::int(1)]),
        ("SELECT ?", &[Value::int(-1)]),
        ("SELECT ?", &[Value::text("a")]),
        ("SELECT ?", std::slice::from_ref(&double)),
        ("SELECT ?", &[Value::Nil]),
        ("SELECT ?", &[Value::Bool(true)]),
        ("SELECT ? + 1", &[Value::int(1)]),
        ("SELECT ?", &[]),
        ("SELECT ?", &[Value::int(1), Value::int(2)]),
        ("SELECT $2, $1", &[Value::int(1), Value::int(2)]),
        ("SELECT :a", &[named(":a", Value::int(7))]),
        ("SELECT @a", &[named("@a", Value::text("x"))]),
        ("SELECT :a", &[named(":b", Value::int(1))]),
        ("SELECT :a, ?", &[Value::int(5), named(":a", Value::int(1))]),
        ("SELECT ?", &[Value::Array(vec![Value::int(1)])]),
        ("SELECT ?", &[Value::Map(Vec::new())]),
    ];
    for (text, values) in cases {
        for request in [request(kind::EXECUTE, text, values), request(kind::PREPARE, text, &[])] {
            let [wanted, got] = ask(&mut clients, &request);
            assert_eq!(wanted.show(), got.show(), "{text} {values:?}");
        }
    }
}
