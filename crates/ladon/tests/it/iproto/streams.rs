//! Interactive transactions over streams: nobody sees a part of one, and `kill -9` leaves none.

use super::client::{Iproto, Refusal, array, int, text};
use super::{Node, make_space, row};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Put, SpaceRef};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// `ER_TRANSACTION_CONFLICT`.
const CONFLICT: u32 = 97;

impl Iproto {
    /// The same connection, on a stream.
    fn on(&mut self, stream_id: u64) -> &mut Iproto {
        self.stream_id = stream_id;
        self
    }

    fn begin(&mut self) -> Result<Vec<Vec<u8>>, Refusal> {
        self.ask(&Request::Begin(Begin::default()))
    }

    fn commit(&mut self) -> Result<Vec<Vec<u8>>, Refusal> {
        self.ask(&Request::Commit(None))
    }

    fn all(&mut self) -> Vec<Vec<u8>> {
        self.select(512, 0, &array(&[]))
    }

    fn add(&mut self, id: u64, operator: &str, amount: u64) -> Vec<Vec<u8>> {
        let operation = array(&[text(operator), int(1), int(amount)]);
        self.update(512, &array(&[int(id)]), &array(&[operation]))
    }
}

fn nothing() -> Vec<Vec<u8>> {
    Vec::new()
}

/// A space of numbered accounts, with an index over what is in them.
fn make_accounts(admin: &mut Iproto) {
    use super::client::map;
    let fields = array(&[]);
    let space = [int(512), int(1), text("accounts"), text("memtx"), int(0), map(&[]), fields];
    admin.insert(280, &array(&space));
    let parts = |field: u64| array(&[array(&[int(field), text("unsigned")])]);
    let index = |number: u64, name, field| {
        let options = map(&[(text("unique"), vec![if number == 0 { 0xc3 } else { 0xc2 }])]);
        array(&[int(512), int(number), text(name), text("tree"), options, parts(field)])
    };
    admin.insert(288, &index(0, "pk", 0));
    admin.insert(288, &index(1, "by_amount", 1));
}

fn account(id: u64, amount: u64) -> Vec<u8> {
    array(&[int(id), int(amount)])
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let node = Node::new("write");
    let mut server = node.start();
    let (mut admin, mut other) = (node.admin(), node.admin());
    make_space(&mut admin, 512, "users");
    admin.insert(512, &row(1, "ada"));
    assert_eq!(admin.on(7).begin(), Ok(nothing()));
    admin.on(7).insert(512, &row(2, "bob"));
    admin.on(7).delete(512, &array(&[int(1)]));
    assert_eq!(admin.on(7).all(), [row(2, "bob")], "its own changes");
    assert_eq!(admin.on(7).call("box.space.users:len", &array(&[])), Ok(vec![int(1)]));
    for (who, client) in [("another", &mut other), ("no stream", admin.on(0))] {
        assert_eq!(client.all(), [row(1, "ada")], "{who}");
    }
    assert_eq!(admin.on(9).all(), [row(1, "ada")], "another stream");
    // A statement that fails ends only itself.
    let again = Request::Insert(Put { space: SpaceRef::Id(512), tuple: &row(2, "eve") });
    assert_eq!(admin.on(7).ask(&again).expect_err("it is there").0, 3);
    assert_eq!(admin.on(7).commit(), Ok(nothing()));
    assert_eq!(other.all(), [row(2, "bob")]);
    // Taken back, by request and by the connection's end.
    assert_eq!(admin.on(7).begin(), Ok(nothing()));
    admin.on(7).insert(512, &row(3, "eve"));
    assert_eq!(admin.on(7).ask(&Request::Rollback), Ok(nothing()));
    assert_eq!(admin.on(7).all(), [row(2, "bob")]);
    assert_eq!(admin.on(8).begin(), Ok(nothing()));
    admin.on(8).insert(512, &row(4, "dan"));
    drop(admin);
    assert_eq!(other.all(), [row(2, "bob")]);
    server.kill().expect("killed");
}

#[test]
fn what_was_shown_must_still_be_true() {
    let node = Node::new("write");
    let mut server = node.start();
    let (mut one, mut two) = (node.admin(), node.admin());
    make_accounts(&mut one);
    for id in 1..=3 {
        one.insert(512, &account(id, 10));
    }
    let conflict = Err((CONFLICT, "Transaction has been aborted by conflict".to_owned()));
    // Both read what the other one writes.
    for client in [&mut one, &mut two] {
        client.on(1).begin().expect("begins");
        assert_eq!(client.on(1).all().len(), 3);
    }
    one.on(1).add(1, "+", 5);
    two.on(1).add(2, "+", 5);
    assert_eq!(one.on(1).commit(), Ok(nothing()));
    assert_eq!(two.on(1).commit(), conflict);
    assert_eq!(two.on(0).all(), [account(1, 15), account(2, 10), account(3, 10)]);
    assert_eq!(two.on(1).commit(), Ok(nothing()), "it is over");
    // What neither has seen is no conflict.
    for (client, id) in [(&mut one, 1), (&mut two, 2)] {
        client.on(1).begin().expect("begins");
        client.on(1).add(id, "-", 5);
    }
    assert_eq!((one.on(1).commit(), two.on(1).commit()), (Ok(nothing()), Ok(nothing())));
    assert_eq!(two.on(0).all(), [account(1, 10), account(2, 5), account(3, 10)]);
    // A range in which something appears.
    one.on(1).begin().expect("begins");
    assert_eq!(one.on(1).select(512, 1, &array(&[int(10)])).len(), 2);
    one.on(1).add(3, "+", 1);
    two.on(0).insert(512, &account(4, 10));
    assert_eq!(one.on(1).commit(), conflict);
    server.kill().expect("killed");
}

#[test]
fn streams_are_refused_in_tarantools_words() {
    let node = Node::new("write");
    let mut server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "users");
    let refused = |code: u32, message: &str| Err((code, message.to_owned()));
    let outside = "Unable to process BEGIN request out of stream";
    assert_eq!(admin.on(0).begin(), refused(230, outside));
    let inside = "Unable to process WATCH request in stream";
    assert_eq!(admin.on(1).ask(&Request::Watch(b"key")), refused(229, inside));
    assert_eq!(admin.on(1).ask(&Request::Ping), Ok(nothing()));
    assert_eq!(admin.on(1).begin(), Ok(nothing()));
    let active = "Operation is not permitted when there is an active transaction ";
    assert_eq!(admin.on(1).begin(), refused(79, active));
    let space = array(&[int(600), int(1), text("x"), text("memtx"), int(0)]);
    let define = Request::Insert(Put { space: SpaceRef::Id(280), tuple: &space });
    assert_eq!(admin.on(1).ask(&define).expect_err("a definition").0, 5);
    assert_eq!(admin.on(1).ask(&Request::Rollback), Ok(nothing()));
    assert_eq!(admin.on(1).ask(&Request::Rollback), Ok(nothing()), "nothing to take back");
    let level = Begin { isolation: 5, ..Begin::default() };
    assert_eq!(admin.on(1).ask(&Request::Begin(level)).expect_err("no level").0, 1);
    let without_end = Begin { timeout_seconds: Some(0.0), ..Begin::default() };
    assert_eq!(admin.on(1).ask(&Request::Begin(without_end)), Ok(nothing()));
    assert_eq!(admin.on(1).commit(), Ok(nothing()));
    let never = Begin { timeout_seconds: Some(-1.0), ..Begin::default() };
    assert_eq!(admin.on(1).ask(&Request::Begin(never)).expect_err("no time").0, 1);
    // Too late.
    let short = Begin { timeout_seconds: Some(0.05), ..Begin::default() };
    assert_eq!(admin.on(1).ask(&Request::Begin(short)), Ok(nothing()));
    admin.on(1).insert(512, &row(1, "ada"));
    thread::sleep(Duration::from_millis(100));
    let timeout = refused(231, "Transaction has been aborted by timeout");
    let insert = Request::Insert(Put { space: SpaceRef::Id(512), tuple: &row(2, "bob") });
    assert_eq!(admin.on(1).ask(&insert), timeout);
    assert_eq!(admin.on(1).commit(), timeout);
    assert_eq!(admin.on(1).all(), nothing());
    // So many, and no more.
    for stream in 1..=1000 {
        assert_eq!(admin.on(stream).begin(), Ok(nothing()));
    }
    assert_eq!(admin.on(1001).begin().expect_err("too many").0, 1);
    server.kill().expect("killed");
}

const ACCOUNTS: u64 = 20;

/// Four clients move money at gate `fsync` while a fifth one adds it up; then `kill -9`.
#[test]
fn money_is_moved_whole_through_kills() {
    let node = Node::new("fsync");
    let moved = AtomicU64::new(0);
    for round in 0..4 {
        let mut server = node.start();
        let mut admin = node.admin();
        if round == 0 {
            make_accounts(&mut admin);
            (0..ACCOUNTS).for_each(|id| drop(admin.insert(512, &account(id, 100))));
        }
        let before = moved.load(SeqCst);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 0..4 {
                let (node, moved) = (&node, &moved);
                scope.spawn(move || move_money(node, moved, round * 4 + seed));
            }
            let (node, over) = (&node, &over);
            scope.spawn(move || {
                let mut reader = node.admin();
                while !over.load(SeqCst) {
                    match reader.try_ask(&all()) {
                        Some(all) => assert_eq!(sum(&all.expect("selects")), ACCOUNTS * 100),
                        None => return,
                    }
                }
            });
            thread::sleep(Duration::from_millis(250));
            if round % 2 == 1 {
                crate::live::call(&mut server.connect().expect("connects"), &["SAVE"]);
            }
            server.kill().expect("killed");
            over.store(true, SeqCst);
        });
        assert!(moved.load(SeqCst) > before, "round {round}: nobody moved anything");
        let mut server = node.start();
        let mut admin = node.admin();
        let all = admin.all();
        assert_eq!(sum(&all), ACCOUNTS * 100, "round {round}: {all:?}");
        let by_amount = admin.select(512, 1, &array(&[]));
        assert_eq!((sum(&by_amount), by_amount.len()), (ACCOUNTS * 100, all.len()));
        server.kill().expect("killed");
    }
}

fn all() -> Request<'static> {
    use ladon_iproto::request::{IndexRef, Select};
    Request::Select(Select {
        space: SpaceRef::Id(512),
        index: IndexRef::Id(0),
        iterator: 2,
        offset: 0,
        limit: 1_000,
        key: &[0x90],
        fetch_position: false,
        after_position: None,
        after_tuple: None,
    })
}

/// Moves 1 between two accounts, until the server is gone.
fn move_money(node: &Node, moved: &AtomicU64, seed: u64) {
    let mut random = ladon_testkit::Random::new(seed);
    let mut client = node.admin();
    client.stream_id = 1;
    loop {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        match move_one(&mut client, from, to) {
            Some(Ok(_)) => drop(moved.fetch_add(1, SeqCst)),
            Some(Err((CONFLICT, _))) => {}
            Some(Err(other)) => panic!("{other:?}"),
            None => return,
        }
    }
}

fn move_one(client: &mut Iproto, from: u64, to: u64) -> Option<Result<Vec<Vec<u8>>, Refusal>> {
    use ladon_iproto::request::{IndexRef, Update};
    client.try_ask(&Request::Begin(Begin::default()))?.expect("begins");
    for (id, operator) in [(from, "-"), (to, "+")] {
        let operations = array(&[array(&[text(operator), int(1), int(1)])]);
        let (space, index) = (SpaceRef::Id(512), IndexRef::Id(0));
        let key = array(&[int(id)]);
        let update = Update { space, index, index_base: 0, key: &key, operations: &operations };
        client.try_ask(&Request::Update(update))?.expect("updates");
    }
    client.try_ask(&Request::Commit(None))
}

fn sum(accounts: &[Vec<u8>]) -> u64 {
    let amount = |mut account: &[u8]| {
        ladon_msgpack::read_array(&mut account).expect("a tuple");
        ladon_msgpack::skip(&mut account).expect("a number");
        ladon_msgpack::read_uint(&mut account).expect("an amount")
    };
    accounts.iter().map(|account| amount(account)).sum()
}
