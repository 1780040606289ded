//! `examples/shop`, a program for Tarantool with tests of its own: they pass here, and under
//! Tarantool where that is installed; and what it has answered is there after `kill -9`.

use crate::iproto::client::{Iproto, array, int, map, text};
use crate::program::has_tarantool;
use ladon_testkit::Ports;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LADON: &str = env!("CARGO_BIN_EXE_ladon");

fn shop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop")
}

/// Runs all its tests, and returns what they print.
fn run_tests(command: &[&str]) -> String {
    let tests = Command::new("sh").arg("test/run.sh").args(command).current_dir(shop()).output();
    let tests = tests.expect("runs");
    let printed = String::from_utf8_lossy(&tests.stdout).into_owned();
    let told = String::from_utf8_lossy(&tests.stderr);
    assert!(tests.status.success(), "{printed}{told}");
    assert!(!printed.contains("not ok"), "{printed}");
    printed
}

fn passed(printed: &str) -> usize {
    printed.lines().filter(|line| line.trim_start().starts_with("ok - ")).count()
}

#[test]
fn its_tests_pass() {
    let printed = run_tests(&[LADON, "tarantool"]);
    assert!(!printed.contains("SKIP"), "http.server is there: {printed}");
    assert!(passed(&printed) > 100, "{printed}");
}

#[test]
fn its_tests_pass_under_tarantool() {
    if has_tarantool() {
        let printed = run_tests(&["tarantool"]);
        assert!(passed(&printed) > 90, "{printed}");
    }
}

/// It with its data in a folder; killed when dropped.
struct Running {
    process: Child,
    ports: Ports,
}

impl Running {
    fn start(dir: &Path) -> Running {
        let ports = Ports::take(2).expect("ports");
        let mut command = Command::new(LADON);
        command.arg("tarantool").arg(shop().join("init.lua")).stdin(Stdio::null());
        command.env("SHOP_DIR", dir).env("SHOP_HTTP", (ports.first() + 1).to_string());
        command.env("SHOP_LISTEN", format!("127.0.0.1:{}", ports.first()));
        Running { process: command.spawn().expect("starts"), ports }
    }

    /// A client, once the shop is open.
    fn client(&self) -> Iproto {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < Duration::from_secs(30), "it does not open");
            std::thread::sleep(Duration::from_millis(20));
            let http = TcpStream::connect(("127.0.0.1", self.ports.first() + 1));
            if http.is_err() {
                continue;
            }
            let mut client = Iproto::connect(self.ports.first());
            if client.log_in("web", "web").is_ok() {
                return client;
            }
        }
    }

    /// The body of what the HTTP server answers.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let address = ("127.0.0.1", self.ports.first() + 1);
        let mut stream = TcpStream::connect(address).expect("connects");
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("sends");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_it_has_answered_survives() {
    let dir = tempfile::tempdir().expect("a directory");
    let shop = Running::start(dir.path());
    let mut client = shop.client();
    let product = shop.ask("PUT", "/products/fig", r#"{"name": "A fig", "price": 25, "stock": 7}"#);
    assert!(product.contains("\"stock\":7"), "{product}");
    let customer = shop.ask("POST", "/customers", r#"{"email": "a@b.example", "name": "A"}"#);
    assert!(customer.contains("\"id\":1000"), "{customer}");
    let line = map(&[(text("sku"), text("fig")), (text("count"), int(2))]);
    let order = array(&[int(1000), array(&[line])]);
    let placed = client.call("shop.place", &order).expect("an order");
    assert_eq!(placed, [int(1), int(50)]);
    assert!(client.call("box.space.orders:delete", &array(&[array(&[int(1)])])).is_err());
    drop(shop);

    let again = Running::start(dir.path());
    let mut client = again.client();
    assert_eq!(client.call("shop.pay", &array(&[int(1)])).expect("is paid"), [text("paid")]);
    let shown = again.ask("GET", "/orders/1", "");
    assert!(shown.contains(r#""history":["placed","paid"]"#), "{shown}");
    let products = again.ask("GET", "/products", "");
    assert!(products.contains("\"stock\":5"), "{products}");
}
