//! SQL on the real binary: durable, atomic, with rights, and nobody's burden.

use super::Node;
use super::client::{Iproto, Refusal, array, best_of_rounds, int, text};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Delete, Execute, IndexRef, Put, SpaceRef, Statement};
use std::thread;

/// `ER_ACCESS_DENIED`.
const ACCESS_DENIED: u32 = 42;
/// `ER_SQL_EXECUTE`.
const SQL_EXECUTE: u32 = 159;
/// The first space that a user makes.
const FIRST: u32 = 512;

fn request(text: &str) -> Request<'_> {
    Request::Execute(Execute { statement: Statement::Text(text.as_bytes()), bind: None })
}

fn execute(client: &mut Iproto, text: &str) -> Result<Vec<Vec<u8>>, Refusal> {
    client.ask(&request(text))
}

fn must(client: &mut Iproto, text: &str) -> Vec<Vec<u8>> {
    execute(client, text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// Rows numbered from 1, with their number twice.
fn fill(client: &mut Iproto, table: &str, rows: u64) {
    must(client, &format!("CREATE TABLE {table} (id INT PRIMARY KEY, n INT)"));
    let numbers = format!(
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {rows}) \
         INSERT INTO {table} SELECT i, i FROM r"
    );
    must(client, &numbers);
    assert_eq!(must(client, &format!("SELECT count(*) FROM {table}")), [array(&[int(rows)])]);
}

#[test]
fn tables_and_rows_are_there_after_kill() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    must(&mut admin, "CREATE TABLE t (id INT PRIMARY KEY AUTOINCREMENT, name STRING UNIQUE)");
    must(&mut admin, "INSERT INTO t (name) VALUES ('ada'), ('bob'), ('eve')");
    must(&mut admin, "UPDATE t SET name = 'dan' WHERE name = 'bob'");
    must(&mut admin, "DELETE FROM t WHERE id = 3");
    must(&mut admin, "CREATE VIEW v AS SELECT name FROM t WHERE id > 1");
    // Others see the same tuples.
    let row = |id, name| array(&[int(id), text(name)]);
    assert_eq!(admin.select(FIRST, 0, &[0x90]), [row(1, "ada"), row(2, "dan")]);
    admin.insert(FIRST, &row(9, "fay"));
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    let all = must(&mut admin, "SELECT * FROM t");
    assert_eq!(all, [row(1, "ada"), row(2, "dan"), row(9, "fay")]);
    assert_eq!(must(&mut admin, "SELECT * FROM v LIMIT 1"), [array(&[text("dan")])]);
    must(&mut admin, "INSERT INTO t (name) VALUES ('gil')");
    assert_eq!(must(&mut admin, "SELECT id FROM t WHERE name = 'gil'"), [array(&[int(10)])]);
    must(&mut admin, "DROP VIEW v");
    must(&mut admin, "DROP TABLE t");
    server.kill().expect("killed");
    let mut server = node.start();
    assert!(execute(&mut node.admin(), "SELECT * FROM t").is_err());
    server.kill().expect("killed");
}

#[test]
fn a_statement_is_done_whole_or_not() {
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 10);
    let refused = execute(&mut admin, "INSERT INTO t VALUES (11, 1), (12, 1), (5, 1)");
    assert_eq!(refused.expect_err("5 is there").0, 3);
    assert_eq!(must(&mut admin, "SELECT count(*) FROM t"), [array(&[int(10)])]);
    // In a transaction as well: what it did before stays.
    admin.stream_id = 1;
    admin.ask(&Request::Begin(Begin::default())).expect("begins");
    must(&mut admin, "INSERT INTO t VALUES (20, 1)");
    let refused = execute(&mut admin, "INSERT INTO t VALUES (21, 1), (5, 1)");
    assert_eq!(refused.expect_err("5 is there").0, 3);
    assert_eq!(must(&mut admin, "SELECT count(*) FROM t"), [array(&[int(11)])]);
    must(&mut admin, "COMMIT");
    assert_eq!(execute(&mut admin, "COMMIT").expect_err("it is over").0, SQL_EXECUTE);
    admin.stream_id = 0;
    assert_eq!(must(&mut admin, "SELECT max(id) FROM t"), [array(&[int(20)])]);
    server.kill().expect("killed");
}

#[test]
fn updates_of_many_clients_are_not_lost() {
    const CLIENTS: u64 = 4;
    const EACH: u64 = 100;
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 600);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = node.admin();
                for round in 0..EACH {
                    // Every tenth one changes too many rows to hold locks meanwhile.
                    let filter = if round % 10 == 0 { "n >= 0" } else { "id = 7" };
                    must(&mut client, &format!("UPDATE t SET n = n + 1 WHERE {filter}"));
                }
            });
        }
    });
    let counted = must(&mut admin, "SELECT n FROM t WHERE id = 7");
    assert_eq!(counted, [array(&[int(7 + CLIENTS * EACH)])]);
    server.kill().expect("killed");
}

#[test]
fn who_may_not_read_or_write_a_space_may_not_by_sql() {
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 3);
    must(&mut admin, "CREATE VIEW v AS SELECT id FROM t");
    let mut guest = node.guest();
    for statement in [
        "SELECT * FROM t",
        "SELECT * FROM v",
        "SELECT (SELECT max(id) FROM t)",
        "INSERT INTO t VALUES (9, 9)",
        "UPDATE t SET n = 1",
        "DELETE FROM t",
        "DROP TABLE t",
        "TRUNCATE TABLE t",
        "CREATE TABLE u (id INT PRIMARY KEY)",
    ] {
        let refused = execute(&mut guest, statement).expect_err(statement);
        assert_eq!(refused.0, ACCESS_DENIED, "{statement}: {refused:?}");
    }
    assert_eq!(must(&mut guest, "SELECT 1"), [array(&[int(1)])]);
    assert_eq!(must(&mut admin, "SELECT count(*) FROM t"), [array(&[int(3)])]);
    server.kill().expect("killed");
}

#[test]
fn a_long_query_lets_others_pass_and_ends_with_its_client() {
    let mut node = Node::new("none");
    node.io_threads = 1;
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 1_500);
    let mut other = node.admin();
    let long = "SELECT count(*) FROM t AS a, t AS b WHERE a.n + b.n = 7";
    let asked = best_of_rounds(20, |_| {
        admin.tell(&request(long));
        let steps =
            admin.steps_meanwhile(|_| drop(must(&mut other, "SELECT n FROM t WHERE id = 3")));
        let found = admin.receive().expect("the server answers").expect("it counts");
        assert_eq!(found, [array(&[int(6)])]);
        steps
    });
    assert!(asked >= 20, "{asked} other statements meanwhile");
    let endless =
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT max(i) FROM r";
    let refused = execute(&mut admin, endless).expect_err("it needs more memory");
    assert!(refused.1.contains("64 MiB"), "{refused:?}");
    // More of them than there are threads, whose clients leave: their threads end.
    for _ in 0..20 {
        let mut client = node.admin();
        client.tell(&request(
            "SELECT count(*) FROM t AS a, t AS b, t AS c WHERE a.n + b.n + c.n = 7",
        ));
    }
    let found = must(&mut admin, long);
    assert_eq!(found, [array(&[int(6)])]);
    server.kill().expect("killed");
}

/// Copies a stopped node's files, with the log cut to a length.
fn cut_copy(node: &Node, length: u64) -> Node {
    let copy = Node::new("everysec");
    let folder = copy.dir.path().join("data");
    std::fs::create_dir(&folder).expect("a folder");
    for entry in std::fs::read_dir(node.dir.path().join("data")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        std::fs::copy(&path, folder.join(name)).expect("copied");
    }
    let log = std::fs::OpenOptions::new().write(true).open(log_of(&copy)).expect("the log");
    log.set_len(length).expect("cut");
    copy
}

fn log_of(node: &Node) -> std::path::PathBuf {
    node.dir.path().join("data/00000000000000000000.log")
}

#[test]
fn a_table_is_created_whole_or_not_at_all() {
    const CUTS: u64 = 8;
    let node = Node::new("everysec");
    let mut server = node.start();
    let mut admin = node.admin();
    must(&mut admin, "CREATE TABLE before (id INT PRIMARY KEY)");
    let length = || std::fs::metadata(log_of(&node)).expect("the log").len();
    let before = length();
    must(
        &mut admin,
        "CREATE TABLE t (id INT PRIMARY KEY AUTOINCREMENT, name STRING UNIQUE, CHECK (id < 9))",
    );
    let after = length();
    server.kill().expect("killed");
    assert!(after - before > CUTS, "{before} to {after}");
    for part in 0..=CUTS {
        let copy = cut_copy(&node, before + (after - before) * part / CUTS);
        let mut server = copy.start();
        let mut admin = copy.admin();
        // The number of its tuples in each system space.
        let mut count = |of: &str| {
            let rows = must(&mut admin, &format!("SELECT count(*) FROM {of}"));
            rows[0][1]
        };
        let found = [
            count("\"_space\" WHERE \"name\" = 'T'"),
            count("\"_index\" WHERE \"name\" LIKE '%unnamed_T_%'"),
            count("\"_sequence\""),
            count("\"_space_sequence\""),
        ];
        let expected = if part == CUTS { [1, 2, 1, 1] } else { [0; 4] };
        assert_eq!(found, expected, "{part} of {CUTS} parts of the record");
        if part == CUTS {
            must(&mut admin, "INSERT INTO t (name) VALUES ('a')");
            assert_eq!(execute(&mut admin, "INSERT INTO t VALUES (9, 'b')").expect_err("9").0, 196);
        }
        server.kill().expect("killed");
    }
}

#[test]
fn a_table_is_dropped_whole_or_not_at_all() {
    const CUTS: u64 = 8;
    let node = Node::new("everysec");
    let mut server = node.start();
    let mut admin = node.admin();
    must(&mut admin, "CREATE TABLE t (id INT PRIMARY KEY AUTOINCREMENT, name STRING UNIQUE)");
    must(&mut admin, "INSERT INTO t (name) VALUES ('a')");
    must(&mut admin, "TRUNCATE TABLE t");
    must(&mut admin, "INSERT INTO t (name) VALUES ('b')");
    let length = || std::fs::metadata(log_of(&node)).expect("the log").len();
    let before = length();
    must(&mut admin, "DROP TABLE t");
    let after = length();
    server.kill().expect("killed");
    assert!(after - before > CUTS, "{before} to {after}");
    for part in 0..=CUTS {
        let copy = cut_copy(&node, before + (after - before) * part / CUTS);
        let mut server = copy.start();
        let mut admin = copy.admin();
        if part < CUTS {
            assert_eq!(must(&mut admin, "SELECT name FROM t"), [array(&[text("b")])], "{part}");
            must(&mut admin, "INSERT INTO t (name) VALUES ('c')");
            must(&mut admin, "DROP TABLE t");
        }
        must(&mut admin, "CREATE TABLE t (id INT PRIMARY KEY AUTOINCREMENT, name STRING)");
        must(&mut admin, "INSERT INTO t (name) VALUES ('d')");
        assert_eq!(must(&mut admin, "SELECT id FROM t"), [array(&[int(1)])]);
        server.kill().expect("killed");
    }
}

#[test]
fn actions_of_foreign_keys_hold_for_every_writer() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    must(&mut admin, "CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE)");
    must(
        &mut admin,
        "CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p ON DELETE CASCADE, \
         u INT REFERENCES p (u) ON DELETE SET NULL ON UPDATE CASCADE)",
    );
    must(&mut admin, "CREATE TABLE g (id INT PRIMARY KEY, c INT REFERENCES c)");
    must(&mut admin, "INSERT INTO p VALUES (1, 10), (2, 20), (3, 30)");
    must(&mut admin, "INSERT INTO c VALUES (1, 1, 20), (2, 1, NULL), (3, 2, 30), (4, NULL, 30)");
    must(&mut admin, "INSERT INTO g VALUES (1, 3)");
    let delete = |id| {
        let key = array(&[int(id)]);
        let (space, index) = (SpaceRef::Id(FIRST), IndexRef::Id(0));
        move |client: &mut Iproto| client.ask(&Request::Delete(Delete { space, index, key: &key }))
    };
    let rows = |client: &mut Iproto| must(client, "SELECT id, p, u FROM c");
    let nil = vec![0xc0];
    let row = |id, p: Option<u64>, u: Option<u64>| {
        let shown = |value: Option<u64>| value.map_or_else(|| nil.clone(), int);
        array(&[int(id), shown(p), shown(u)])
    };
    delete(1)(&mut admin).expect("its children go with it");
    assert_eq!(rows(&mut admin), [row(3, Some(2), Some(30)), row(4, None, Some(30))]);
    // A grandchild keeps a child, and that its parent; nothing is half done.
    let refused = delete(2)(&mut admin).expect_err("a row of g names a row of c");
    assert_eq!(refused.0, 238);
    assert_eq!(rows(&mut admin), [row(3, Some(2), Some(30)), row(4, None, Some(30))]);
    must(&mut admin, "UPDATE p SET u = 31 WHERE id = 3");
    assert_eq!(rows(&mut admin), [row(3, Some(2), Some(31)), row(4, None, Some(31))]);
    // The same in a transaction that others do not see before it is committed.
    admin.stream_id = 1;
    must(&mut admin, "START TRANSACTION");
    delete(3)(&mut admin).expect("its children name nothing any more");
    assert_eq!(execute(&mut admin, "DELETE FROM p").expect_err("g").0, SQL_EXECUTE);
    must(&mut admin, "DELETE FROM g");
    must(&mut admin, "DELETE FROM p");
    assert_eq!(rows(&mut admin), [row(4, None, None)]);
    let mut other = node.admin();
    assert_eq!(rows(&mut other).len(), 2);
    must(&mut admin, "COMMIT");
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    assert_eq!(rows(&mut admin), [row(4, None, None)]);
    assert_eq!(must(&mut admin, "SELECT count(*) FROM g"), [array(&[int(0)])]);
    server.kill().expect("killed");
}

#[test]
fn an_added_column_is_null_in_rows_of_before_and_there_after_a_start() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    must(&mut admin, "CREATE TABLE t (id INT PRIMARY KEY)");
    must(&mut admin, "INSERT INTO t VALUES (1)");
    must(&mut admin, "ALTER TABLE t ADD COLUMN x INT");
    must(&mut admin, "INSERT INTO t VALUES (2, 7)");
    let rows = [array(&[int(1), vec![0xc0]]), array(&[int(2), int(7)])];
    assert_eq!(must(&mut admin, "SELECT id, x FROM t"), rows);
    assert!(execute(&mut admin, "ALTER TABLE t ADD x INT").is_err(), "there is one already");
    server.kill().expect("killed");
    let mut server = node.start();
    assert_eq!(must(&mut node.admin(), "SELECT id, x FROM t"), rows);
    server.kill().expect("killed");
}

#[test]
fn a_failed_statement_of_a_transaction_leaves_nothing() {
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 3);
    fill(&mut admin, "s", 1);
    admin.stream_id = 1;
    must(&mut admin, "START TRANSACTION");
    must(&mut admin, "INSERT INTO t VALUES (4, 4)");
    must(&mut admin, "SAVEPOINT a");
    // The first row of each is taken back; `s` is touched behind the savepoint.
    for table in ["t", "s"] {
        let insert = format!("INSERT INTO {table} VALUES (9, 9), (1, 1)");
        assert_eq!(execute(&mut admin, &insert).expect_err("1 is there").0, 3);
        assert_eq!(must(&mut admin, &format!("SELECT * FROM {table} WHERE id = 9")).len(), 0);
        must(&mut admin, &format!("INSERT INTO {table} VALUES (8, 8), (7, 7)"));
    }
    must(&mut admin, "ROLLBACK TO a");
    let count = |client: &mut Iproto, of: &str| must(client, &format!("SELECT count(*) FROM {of}"));
    assert_eq!(count(&mut admin, "t"), [array(&[int(4)])]);
    assert_eq!(count(&mut admin, "s"), [array(&[int(1)])]);
    must(&mut admin, "INSERT INTO s VALUES (5, 5), (6, 6)");
    must(&mut admin, "COMMIT");
    admin.stream_id = 0;
    assert_eq!(count(&mut admin, "t"), [array(&[int(4)])]);
    assert_eq!(count(&mut admin, "s"), [array(&[int(3)])]);
    server.kill().expect("killed");
}

#[test]
fn or_fail_keeps_what_came_before_and_or_rollback_ends_the_transaction() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 3);
    let kept = |client: &mut Iproto| {
        let rows = must(client, "SELECT id FROM t WHERE id > 9");
        must(client, "DELETE FROM t WHERE id > 9");
        rows
    };
    let fail = |client: &mut Iproto, how: &str| {
        let insert = format!("INSERT OR {how} INTO t VALUES (10, 1), (1, 1), (11, 1)");
        execute(client, &insert).expect_err("1 is there").0
    };
    assert_eq!(fail(&mut admin, "FAIL"), 3);
    assert_eq!(kept(&mut admin), [array(&[int(10)])]);
    assert_eq!(fail(&mut admin, "ABORT"), 3);
    assert_eq!(kept(&mut admin).len(), 0);
    admin.stream_id = 1;
    must(&mut admin, "START TRANSACTION");
    assert_eq!(fail(&mut admin, "FAIL"), 3);
    assert_eq!(kept(&mut admin), [array(&[int(10)])]);
    must(&mut admin, "DELETE FROM t WHERE id = 2");
    assert_eq!(fail(&mut admin, "ROLLBACK"), 3);
    assert!(execute(&mut admin, "COMMIT").is_err(), "no transaction is left");
    admin.stream_id = 0;
    assert_eq!(must(&mut admin, "SELECT count(*) FROM t"), [array(&[int(3)])]);
    // Row by row, in a transaction of its own; it is there after a start.
    must(
        &mut admin,
        "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW BEGIN UPDATE t SET n = 5 WHERE id = new.id; END",
    );
    assert_eq!(fail(&mut admin, "FAIL"), 3);
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    assert_eq!(must(&mut admin, "SELECT * FROM t WHERE id > 9"), [array(&[int(10), int(5)])]);
    server.kill().expect("killed");
}

fn replace(tuple: &[u8]) -> Request<'_> {
    Request::Replace(Put { space: SpaceRef::Id(FIRST), tuple })
}

#[test]
fn checks_hold_for_every_writer_and_after_a_start() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    must(&mut admin, "CREATE TABLE t (id INT PRIMARY KEY, n INT, CONSTRAINT small CHECK (n < 10))");
    let row = |id, n| array(&[int(id), int(n)]);
    admin.insert(FIRST, &row(1, 9));
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    let refused = admin.ask(&replace(&row(1, 10))).expect_err("10 is too much");
    assert_eq!(refused, (196, "Check constraint failed 'SMALL': n < 10".to_owned()));
    admin.ask(&replace(&row(1, 8))).expect("8 is not");
    must(&mut admin, "ALTER TABLE t DROP CONSTRAINT small");
    admin.ask(&replace(&row(1, 10))).expect("nothing forbids it");
    // One that came later is there after a start as well.
    must(&mut admin, "DELETE FROM t");
    must(&mut admin, "ALTER TABLE t ADD CONSTRAINT tiny CHECK (n < 5)");
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    assert_eq!(admin.ask(&replace(&row(1, 5))).expect_err("5 is too much").0, 196);
    admin.ask(&replace(&row(1, 4))).expect("4 is not");
    server.kill().expect("killed");
}

#[test]
fn savepoints_take_back_what_came_after_them() {
    let node = Node::new("none");
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 3);
    admin.stream_id = 1;
    assert_eq!(execute(&mut admin, "SAVEPOINT a").expect_err("no transaction").0, 114);
    must(&mut admin, "START TRANSACTION");
    must(&mut admin, "UPDATE t SET n = 7 WHERE id = 1");
    must(&mut admin, "SAVEPOINT a");
    must(&mut admin, "DELETE FROM t WHERE id = 2");
    must(&mut admin, "SAVEPOINT b");
    must(&mut admin, "INSERT INTO t VALUES (4, 4)");
    must(&mut admin, "UPDATE t SET n = 8 WHERE id = 1");
    must(&mut admin, "ROLLBACK TO a");
    assert_eq!(execute(&mut admin, "RELEASE b").expect_err("it has ended").0, 61);
    let rows = |pairs: &[(u64, u64)]| -> Vec<Vec<u8>> {
        pairs.iter().map(|(id, n)| array(&[int(*id), int(*n)])).collect()
    };
    assert_eq!(must(&mut admin, "SELECT * FROM t"), rows(&[(1, 7), (2, 2), (3, 3)]));
    must(&mut admin, "DELETE FROM t WHERE id = 3");
    must(&mut admin, "RELEASE a");
    must(&mut admin, "COMMIT");
    admin.stream_id = 0;
    assert_eq!(must(&mut admin, "SELECT * FROM t"), rows(&[(1, 7), (2, 2)]));
    server.kill().expect("killed");
}

#[test]
fn triggers_are_durable_and_part_of_their_statement() {
    let node = Node::new("fsync");
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 3);
    must(&mut admin, "CREATE TABLE log (id INT PRIMARY KEY)");
    must(
        &mut admin,
        "CREATE TRIGGER a AFTER DELETE ON t FOR EACH ROW BEGIN INSERT INTO log VALUES (old.id); END",
    );
    server.kill().expect("killed");
    let mut server = node.start();
    let mut admin = node.admin();
    must(&mut admin, "DELETE FROM t WHERE id < 3");
    assert_eq!(must(&mut admin, "SELECT count(*) FROM log"), [array(&[int(2)])]);
    // The last row's trigger fails, and takes the statement with it.
    must(&mut admin, "INSERT INTO t VALUES (2, 2), (9, 9)");
    assert_eq!(execute(&mut admin, "DELETE FROM t").expect_err("2 is there").0, 3);
    assert_eq!(must(&mut admin, "SELECT count(*) FROM t"), [array(&[int(3)])]);
    assert_eq!(must(&mut admin, "SELECT count(*) FROM log"), [array(&[int(2)])]);
    // Other requests fire nothing, as in Tarantool.
    admin.delete(FIRST, &array(&[int(9)]));
    assert_eq!(must(&mut admin, "SELECT count(*) FROM log"), [array(&[int(2)])]);
    server.kill().expect("killed");
}

#[test]
fn a_change_of_many_rows_lets_others_pass_and_is_whole() {
    let mut node = Node::new("none");
    node.io_threads = 1;
    let mut server = node.start();
    let mut admin = node.admin();
    fill(&mut admin, "t", 3_000);
    must(&mut admin, "CREATE TABLE log (id INT PRIMARY KEY)");
    let mut other = node.admin();
    let mut others_see = |admin: &mut Iproto, text: &str| {
        admin.tell(&request(text));
        let mut seen = Vec::new();
        let steps = admin.steps_meanwhile(|_| {
            let found = must(&mut other, "SELECT n FROM t WHERE id IN (1, 3000) ORDER BY id");
            seen.push(found);
        });
        // All or nothing of it.
        for found in seen {
            let is_whole = found == [array(&[int(1)]), array(&[int(3_000)])]
                || found == [array(&[int(10_001)]), array(&[int(13_000)])];
            assert!(is_whole, "{found:?}");
        }
        admin.receive().expect("the server answers").map(|_| steps)
    };
    let update = "UPDATE t SET n = id + 10000";
    let plain = best_of_rounds(10, |_| {
        let seen = others_see(&mut admin, update).expect("it is done");
        must(&mut admin, "UPDATE t SET n = id");
        seen
    });
    assert!(plain >= 10, "{plain} others meanwhile");
    must(
        &mut admin,
        "CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW BEGIN INSERT INTO log VALUES (new.n); END",
    );
    let fired = best_of_rounds(10, |_| {
        // What was before; that fires as well.
        must(&mut admin, "UPDATE t SET n = id");
        must(&mut admin, "DELETE FROM log");
        let seen = others_see(&mut admin, update).expect("it is done");
        assert_eq!(must(&mut admin, "SELECT count(*) FROM log"), [array(&[int(3_000)])]);
        seen
    });
    assert!(fired >= 10, "{fired} others meanwhile");
    // The last row's trigger fails, and takes 2,999 with it.
    must(&mut admin, "DELETE FROM log WHERE id <> 13000");
    let refused = others_see(&mut admin, update).expect_err("13000 is there");
    assert_eq!(refused.0, 3);
    assert_eq!(must(&mut admin, "SELECT count(*) FROM log"), [array(&[int(1)])]);
    // A trigger whose query takes long reads on another thread.
    must(&mut admin, "DROP TRIGGER a");
    must(
        &mut admin,
        "CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW BEGIN \
         INSERT INTO log SELECT count(*) FROM t AS a, t AS b WHERE a.n = b.n + new.n; END",
    );
    let read = best_of_rounds(10, |_| {
        must(&mut admin, "DELETE FROM log WHERE id = 0");
        others_see(&mut admin, "UPDATE t SET n = n WHERE id = 1").expect("it is done")
    });
    assert!(read >= 10, "{read} others meanwhile");
    // No n is 10,001 more than another.
    assert_eq!(must(&mut admin, "SELECT id FROM log ORDER BY id LIMIT 1"), [array(&[int(0)])]);
    server.kill().expect("killed");
}
