//! SQL on the real binary: durable, atomic, with rights, and nobody's burden.

use super::Node;
use super::client::{Iproto, Refusal, array, best_of_rounds, int, text};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Execute, Statement};
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
