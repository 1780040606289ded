//! `ladon sql`: tables, CSV, pipes, and the exit status.

use super::Node;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn shell(node: &Node, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ladon"));
    command
        .arg("sql")
        .arg(format!("127.0.0.1:{}", node.ports.first()))
        .args(arguments)
        .env("LADON_IPROTO_PASSWORD", super::ADMIN_PASSWORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("written");
    drop(stdin);
    child.wait_with_output().expect("ends")
}

fn out(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

#[test]
fn statements_of_a_pipe_and_of_arguments_are_run() {
    let node = Node::new("none");
    let mut server = node.start();
    let made = shell(
        &node,
        &["-c", "CREATE TABLE t (id INT PRIMARY KEY, name TEXT)", "-c", "SELECT 1; SELECT 2"],
        "",
    );
    let expected = "OK, 1 row\n COLUMN_1\n----------\n        1\n(1 row)\n COLUMN_1\n----------\n        2\n(1 row)\n";
    assert_eq!(out(&made), (expected.to_owned(), String::new(), Some(0)));
    let rows = "INSERT INTO t VALUES (1, 'a;b'),\n(2, NULL);\nSELECT *\nFROM t -- ; all\n;\n\\d\n";
    let piped = shell(&node, &["--csv"], rows);
    let expected = "ID,NAME\r\n1,a;b\r\n2,\r\ntable,engine,columns\r\nT,memtx,2\r\n";
    assert_eq!(out(&piped), (expected.to_owned(), String::new(), Some(0)));
    // A transaction goes over several statements.
    let rolled_back = shell(
        &node,
        &["--csv", "-c", "START TRANSACTION; DELETE FROM t; ROLLBACK; SELECT id FROM t"],
        "",
    );
    assert_eq!(out(&rolled_back).0, "ID\r\n1\r\n2\r\n");
    server.kill().expect("killed");
}

#[test]
fn the_first_error_ends_it() {
    let node = Node::new("none");
    let mut server = node.start();
    let failed = shell(&node, &[], "SELECT 1;\nSELECT * FROM nothing;\nSELECT 2;");
    let (printed, why, code) = out(&failed);
    assert_eq!((code, &why[..]), (Some(3), "ladon: Space 'NOTHING' does not exist\n"));
    assert_eq!(printed, " COLUMN_1\n----------\n        1\n(1 row)\n");
    server.kill().expect("killed");
    assert_eq!(out(&shell(&node, &["-c", "SELECT 1"], "")).2, Some(3));
}
