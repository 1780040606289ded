//! What others cost: places, bytes and time.

use crate::common::{
    ECHO, LONG, NEVER, Node, PATIENCE, identity, mesh, mesh_of, node, node_with, run, secret,
};
use crate::raw::{GIVEN_UP, Raw, frame};
use crate::tls::Authority;
use ladon_mesh::{ANSWER, BODY_BYTES_MAX, FAILURE, Limits, MORE, Security};
use socket2::{Domain, SockAddr, Socket, Type};
use std::collections::VecDeque;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

/// Waits until it is so.
async fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "it never becomes so");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Connects from 127.0.0.`last`.
fn connect_from(last: u8, address: &str) -> std::net::TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SockAddr::from(SocketAddr::from(([127, 0, 0, last], 0)))).expect("an address");
    let address: SocketAddr = address.parse().expect("an address");
    socket.connect(&address.into()).expect("it accepts");
    socket.set_nonblocking(true).expect("a socket");
    socket.into()
}

fn small_limits() -> Limits {
    Limits {
        message_bytes_max: 1 << 20,
        link_bytes_max: 2 << 20,
        questions_max: 4,
        strangers_max: 8,
        silence_max: Duration::from_millis(400),
        alive_interval: Duration::from_millis(50),
        ..Limits::default()
    }
}

/// A node with small limits, which does not find others silent soon.
fn bounded() -> Node {
    let limits = Limits { silence_max: PATIENCE, ..small_limits() };
    node_with(identity(1), secret(), limits)
}

#[test]
fn strangers_do_not_keep_nodes_out() {
    run(async {
        let limits = Limits { strangers_max: 8, hello_time: PATIENCE, ..Limits::default() };
        let node = node_with(identity(1), secret(), limits);
        // From another address, and from the same one.
        for last in [9, 1] {
            let before = node.mesh.counts().evicted;
            let mut flood = Vec::new();
            for _ in 0..50 {
                flood.push(connect_from(last, &node.address));
            }
            until(|| node.mesh.counts().evicted >= before + 42).await;
            assert_eq!(node.mesh.counts().strangers, 8);
            let member = mesh(identity(2));
            let answer = member.ask(&node.address, None, ECHO, 0, b"x".to_vec(), PATIENCE).await;
            assert_eq!(answer.expect("an answer"), "x");
            drop(flood);
            until(|| node.mesh.counts().strangers == 0).await;
        }
    });
}

/// Connects from 127.0.0.`last` until it is stopped, and says what is no hello.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Flood {
    fn start(last: u8, address: &str, words: &'static [u8]) -> Flood {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, address) = (stop.clone(), address.to_owned());
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            let mut open = VecDeque::new();
            while !stopped.load(Relaxed) {
                let mut stream = connect_from(last, &address);
                // It may be closed already.
                let _ = stream.write_all(words);
                open.push_back(stream);
                if open.len() > 100 {
                    open.pop_front();
                }
                count += 1;
            }
            count
        });
        Flood { stop, thread }
    }

    /// Ends it; how many strangers there were.
    async fn end(self) -> u64 {
        self.stop.store(true, Relaxed);
        // The last one may wait until it is accepted.
        until(|| self.thread.is_finished()).await;
        self.thread.join().expect("it can connect")
    }
}

#[test]
fn strangers_that_never_end_do_not_keep_nodes_out() {
    run(async {
        // Some say what no node says, others begin to say what one does; from other addresses than
        // the node, and from the same one.
        for (last, words) in [(9, &b"GET / HTTP/1.1\r\n\r\n"[..]), (1, b"GET /"), (1, b"\x2c\0\0")]
        {
            let node = node_with(identity(1), secret(), Limits::default());
            let flood = Flood::start(last, &node.address, words);
            until(|| {
                let counts = node.mesh.counts();
                counts.not_let_in + counts.evicted >= 200
            })
            .await;
            let member = mesh(identity(2));
            for _ in 0..5 {
                let asked = member.ask(&node.address, None, ECHO, 0, b"x".to_vec(), PATIENCE).await;
                assert_eq!(asked.expect("an answer"), "x");
            }
            let counts = node.mesh.counts();
            println!("{} strangers: {counts:?}", flood.end().await);
            assert!(counts.strangers <= Limits::default().strangers_max);
        }
    });
}

/// Over TLS a stranger costs more than a connection.
#[test]
fn strangers_have_their_turns_for_tls() {
    run(async {
        let authority = Authority::new("ours");
        let limits = Limits { hellos_per_second: 50, strangers_max: 32, ..Limits::default() };
        let node = node_with(identity(1), Security::Tls(authority.node("one", &authority)), limits);
        let flood = Flood::start(9, &node.address, b"GET / HTTP/1.1\r\n\r\n");
        until(|| node.mesh.counts().not_let_in >= 20).await;
        for number in 0..5 {
            let security = Security::Tls(authority.node("two", &authority));
            let member = mesh_of(identity(2 + number), security, Limits::default());
            let answer = member.ask(&node.address, None, ECHO, 0, b"x".to_vec(), PATIENCE).await;
            assert_eq!(answer.expect("an answer"), "x");
        }
        let counts = node.mesh.counts();
        println!("{} strangers: {counts:?}", flood.end().await);
        assert!(counts.evicted > counts.not_let_in, "most had no turn");
    });
}

#[test]
fn there_are_so_many_links_and_no_more() {
    run(async {
        let limits = Limits { links_max: 2, ..Limits::default() };
        let node = node_with(identity(1), secret(), limits);
        let ask = async |mesh: &ladon_mesh::Mesh| {
            let answer = mesh.ask(&node.address, None, ECHO, 0, vec![], PATIENCE).await;
            answer.map(drop).map_err(|error| error.to_string())
        };
        let (second, third) = (mesh(identity(2)), mesh(identity(3)));
        assert_eq!((ask(&second).await, ask(&third).await), (Ok(()), Ok(())));
        let text = "the other side ends the link: 2 other links are open here";
        let expected = Err(format!("{}: {text}", node.address));
        assert_eq!(ask(&mesh(identity(4))).await, expected);
        drop(third);
        until(|| node.mesh.counts().answering == 1).await;
        assert_eq!(ask(&mesh(identity(4))).await, Ok(()));
    });
}

#[test]
fn who_asks_waits_for_a_place_and_frees_it_when_it_gives_up() {
    run(async {
        let node = bounded();
        let other = mesh_of(identity(2), secret(), small_limits());
        let limit = Duration::from_millis(200);
        let ask = || other.ask(&node.address, None, NEVER, 0, vec![], limit);
        let (a, b, c, d, e, f) = tokio::join!(ask(), ask(), ask(), ask(), ask(), ask());
        for answer in [a, b, c, d, e, f] {
            assert_eq!(answer.expect_err("it never answers").kind(), ErrorKind::TimedOut);
        }
        let seen = node.service.seen.lock().len();
        assert!((4..=6).contains(&seen), "two may have had the places of others: {seen}");
        // All have given up: their places are free here and there.
        let answer = other.ask(&node.address, None, ECHO, 0, b"x".to_vec(), PATIENCE).await;
        assert_eq!(answer.expect("an answer"), "x");
    });
}

#[test]
fn a_node_that_asks_too_much_is_not_read() {
    run(async {
        let node = bounded();
        let mut raw = Raw::link(&node.address).await;
        for id in 0..100 {
            raw.send(&frame(NEVER, 0, id, &[])).await;
        }
        raw.send(&frame(ECHO, 0, 200, b"late")).await;
        until(|| node.service.seen.lock().len() == 4).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(node.service.seen.lock().len(), 4, "no more than questions_max");
    });
}

#[test]
fn a_question_that_is_given_up_frees_its_place() {
    run(async {
        let node = bounded();
        let mut raw = Raw::link(&node.address).await;
        for id in 0..20 {
            raw.send(&frame(NEVER, 0, id, &[])).await;
            raw.send(&frame(GIVEN_UP, 0, id, &[])).await;
        }
        raw.send(&frame(ECHO, 0, 200, b"last")).await;
        let (head, body) = raw.receive().await.expect("an answer");
        assert_eq!((head.kind, head.flags, head.id, &body[..]), (ECHO, ANSWER, 200, &b"last"[..]));
    });
}

#[test]
fn who_never_reads_is_left() {
    run(async {
        let node = node_with(identity(1), secret(), small_limits());
        let mut raw = Raw::link(&node.address).await;
        let wanted = (1_u32 << 20).to_le_bytes();
        // It says that it is there all the time, and more than fits into all buffers is on its way.
        let asked = async {
            for id in 0.. {
                let bytes = frame(LONG, 0, id, &wanted);
                if raw.stream.write_all(&bytes).await.is_err() {
                    break;
                }
            }
        };
        asked.await;
        until(|| node.mesh.counts().answering == 0).await;
        let asked = node.service.seen.lock().len();
        assert!(asked < 40, "four are under way, and the kernel's buffers are full: {asked}");
    });
}

#[test]
fn who_is_silent_is_left() {
    run(async {
        let node = node_with(identity(1), secret(), small_limits());
        let mut raw = Raw::link(&node.address).await;
        let mut alive = 0;
        while let Some((head, _)) = raw.receive().await {
            assert_eq!(head.kind, 4, "it says that it is there, since nothing else is to say");
            alive += 1;
        }
        assert!(alive >= 1);
        assert_eq!(node.mesh.counts().answering, 0);
        // Two nodes that have nothing to say go on.
        let other = mesh_of(identity(3), secret(), small_limits());
        let ask = async || {
            let answer = other.ask(&node.address, None, ECHO, 0, vec![], PATIENCE).await;
            answer.expect("an answer");
        };
        ask().await;
        tokio::time::sleep(small_limits().silence_max * 3).await;
        ask().await;
        assert_eq!(node.mesh.counts().not_let_in, 0);
    });
}

#[test]
fn a_node_that_falls_silent_fails_its_questions() {
    run(async {
        let limits = Limits { alive_interval: PATIENCE, ..Limits::default() };
        let node = node_with(identity(1), secret(), limits);
        let limits = Limits { questions_max: 256, ..small_limits() };
        let other = mesh_of(identity(2), secret(), limits);
        let answer = other.ask(&node.address, None, NEVER, 0, vec![], PATIENCE).await;
        let expected = format!("{}: the other side was silent for 400 ms", node.address);
        assert_eq!(answer.expect_err("no answer").to_string(), expected);
    });
}

#[test]
fn questions_come_in_any_pieces() {
    run(async {
        let node = node(1);
        let mut raw = Raw::link(&node.address).await;
        let body = vec![7; BODY_BYTES_MAX];
        let bytes = [
            frame(ECHO, 0, 1, b"small"),
            frame(ECHO, MORE, 2, &body),
            frame(ECHO, 0, 3, b"between"),
            frame(ECHO, 0, 2, b"end"),
        ]
        .concat();
        for piece in [bytes[..40].chunks(1), bytes[40..].chunks(10_007)].into_iter().flatten() {
            raw.send(piece).await;
            tokio::task::yield_now().await;
        }
        let mut answers = Vec::new();
        while answers.len() < 4 {
            let (head, body) = raw.receive().await.expect("an answer");
            answers.push((head.id, head.flags, body));
        }
        let expected = [
            (1, ANSWER, b"small".to_vec()),
            (3, ANSWER, b"between".to_vec()),
            (2, ANSWER | MORE, body),
            (2, ANSWER, b"end".to_vec()),
        ];
        assert!(answers == expected);
    });
}

#[test]
fn what_breaks_a_rule_ends_the_link_with_a_text() {
    run(async {
        let node = bounded();
        let full = vec![0; BODY_BYTES_MAX];
        let many: Vec<u8> = (0..9).flat_map(|id| frame(ECHO, MORE, id, &full)).collect();
        let long: Vec<u8> = (0..17).flat_map(|_| frame(ECHO, MORE, 1, &full)).collect();
        let much: Vec<u8> = (0..33).flat_map(|at| frame(ECHO, MORE, at % 8, &full)).collect();
        let mixed = [frame(ECHO, MORE, 1, &full), frame(NEVER, 0, 1, b"")].concat();
        let twice = [frame(NEVER, 0, 7, b""), frame(NEVER, 0, 7, b"")].concat();
        let mut announced = frame(ECHO, 0, 1, b"");
        announced[2] = 2;
        for (bytes, expected) in [
            (frame(6, 0, 1, b""), "it got unknown kind 6 of a message"),
            (frame(1, 0, 1, b""), "it got unknown kind 1 of a message"),
            (frame(99, 0, 1, b""), "it got unknown kind 99 of a message"),
            (frame(ECHO, 8, 1, b""), "it got unknown flags 0x8 of a message"),
            (frame(ECHO, FAILURE, 1, b""), "it got unknown flags 0x4 of a message"),
            (frame(4, 1, 1, b""), "it got unknown flags 0x1 of a message"),
            (frame(ECHO, ANSWER, 1, b""), "it got a message of kind 16 in the wrong direction"),
            (frame(4, 0, 1, b"x"), "it got a body in a message of kind 4, which has none"),
            (announced, "it got a frame of 131072 bytes; it may have 65,536"),
            (
                frame(ECHO, MORE, 1, b"x"),
                "it got a frame that is not its message's last one has 1 bytes instead of 65,536",
            ),
            (mixed, "it got frames of different messages under the id 1"),
            (twice, "it got question 7 is asked twice"),
            (many, "it got more than 8 messages at once that have several frames"),
            (long, "it got a message longer than 1048576 bytes"),
            (much, "it got messages of more than 2097152 bytes at once"),
        ] {
            let mut raw = Raw::link(&node.address).await;
            raw.send(&bytes).await;
            assert_eq!(raw.refusal().await, expected);
        }
        until(|| node.mesh.counts().answering == 0).await;
    });
}

#[test]
fn an_address_is_not_tried_too_often() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (counter, counted) = tokio::sync::mpsc::unbounded_channel();
        let closing = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                let _ = counter.send(());
            }
        });
        let limits = Limits { backoff: PATIENCE, ..Limits::default() };
        let mesh = mesh_of(identity(2), secret(), limits);
        let ask = || mesh.ask(&address, None, ECHO, 0, vec![], PATIENCE);
        let first = tokio::join!(ask(), ask(), ask()).0.expect_err("it closes").to_string();
        for _ in 0..100 {
            assert_eq!(ask().await.expect_err("not again").to_string(), first);
        }
        closing.abort();
        assert_eq!(counted.len(), 1);
        // Nobody is there.
        let mesh = crate::common::mesh(identity(2));
        drop(closing.await);
        let refused = mesh.ask(&address, None, ECHO, 0, vec![], PATIENCE).await;
        assert_eq!(refused.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_node_that_comes_back_is_found() {
    run(async {
        let first = node(1);
        let address = first.address.clone();
        let other = mesh(identity(2));
        let ask = || other.ask(&address, Some(1), ECHO, 0, b"x".to_vec(), PATIENCE);
        assert_eq!(ask().await.expect("an answer"), "x");
        drop(first);
        let begin = Instant::now();
        while ask().await.is_ok() {
            assert!(begin.elapsed() < PATIENCE);
        }
        let again = crate::common::node_at(&address, identity(1));
        let mut answer = ask().await;
        while answer.is_err() {
            assert!(begin.elapsed() < PATIENCE, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer = ask().await;
        }
        drop(again);
    });
}

#[test]
fn what_cannot_be_asked_is_refused_here() {
    run(async {
        let mesh = mesh_of(identity(2), secret(), small_limits());
        let ask = |kind, length| mesh.ask("127.0.0.1:1", None, kind, 0, vec![0; length], PATIENCE);
        let own = ask(15, 0).await.expect_err("its own").to_string();
        assert_eq!(own, "kind 15 is one of the mesh's own");
        let node = bounded();
        let wanted = ((1_u32 << 20) + 1).to_le_bytes().to_vec();
        let long = mesh.ask(&node.address, None, LONG, 0, wanted, PATIENCE).await;
        let expected = format!("{}: an answer of 1048577 bytes is too long", node.address);
        assert_eq!(long.expect_err("too long").to_string(), expected);
        let long = ask(16, (1 << 20) + 1).await.expect_err("too long").to_string();
        assert_eq!(long, "127.0.0.1:1: a question of 1048577 bytes is too long");
    });
}
