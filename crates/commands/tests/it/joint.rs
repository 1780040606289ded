//! Commands in transactions on spaces: one record, or nothing, and what was shown is true at the commit.

use crate::common::{TestClient, TestNode, show};
use crate::mounts::{self, array, int, nil, text};
use ladon_engine::{Commit, CommitPace, Interactive};
use ladon_kernel::request::joint::Joint;
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::rng::Rng;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_space::{BoxError, Statement};

const USERS: u32 = 512;

/// A transaction, and the thread that it runs on.
struct Open<'a> {
    node: &'a TestNode,
    thread: TestClient,
    transaction: Interactive,
    joint: Joint,
}

impl<'a> Open<'a> {
    fn begin(node: &'a TestNode) -> Open<'a> {
        let (mut thread, other) = (node.client(), node.client());
        // Each call is a rehearsal of its own.
        thread.local.rehearses = false;
        let transaction = Interactive::new(&node.node.keyspace.spaces);
        let joint = Joint::new(b"", other.session, Rng::new(7));
        Open { node, thread, transaction, joint }
    }

    fn with<R>(
        &mut self,
        run: impl FnOnce(&mut Joint, &mut ThreadParts<'_>, &mut Interactive) -> R,
    ) -> R {
        let Open { node, thread, transaction, joint } = self;
        let mut parts = ThreadParts {
            node: &node.node,
            local: &mut thread.local,
            scratch: &mut thread.scratch,
            now_ms: node.node.clock.unix_ms(),
            append: &mut |record| node.log.append(&record.changes()),
            pump: None,
        };
        run(joint, &mut parts, transaction)
    }

    fn try_call(&mut self, line: &str) -> Result<String, BoxError> {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut out = Vec::new();
        let outcome = self.with(|joint, thread, tx| joint.call(thread, tx, &args, &mut out))?;
        assert!(matches!(outcome.flow, Flow::Continue), "{line}: {outcome:?}");
        Ok(show(&out))
    }

    #[track_caller]
    fn call(&mut self, line: &str, reply: &str) {
        assert_eq!(self.try_call(line).as_deref(), Ok(reply), "{line}");
    }

    fn insert(&mut self, id: u64) {
        let tuple = user(id);
        let keyspace = &self.node.node.keyspace;
        self.transaction.write(keyspace, USERS, Statement::Insert(&tuple)).expect("a tuple");
    }

    fn commit(mut self) -> Result<(), BoxError> {
        let pace = CommitPace::of_turn(self.node.node.clock.unix_ms());
        loop {
            match self.with(|joint, thread, tx| joint.commit(thread, tx, pace)).0? {
                Commit::Done => return Ok(()),
                Commit::GoesOn | Commit::Waits => {}
            }
        }
    }

    #[track_caller]
    fn conflicts(self) {
        let error = self.commit().expect_err("a conflict");
        assert_eq!(error, ladon_engine::transaction_conflict());
    }
}

fn user(id: u64) -> Vec<u8> {
    array(&[int(id), text("ada"), nil(), nil(), nil(), nil(), nil(), nil()])
}

fn records(node: &TestNode) -> usize {
    node.log.records().len()
}

#[test]
fn keys_and_tuples_are_one_record() {
    let node = mounts::node();
    let before = records(&node);
    let mut open = Open::begin(&node);
    open.call("SET a 1", "+OK");
    open.insert(1);
    open.call("INCR a", ":2");
    open.call("RPUSH l x y", ":2");
    open.insert(2);
    assert_eq!(records(&node), before, "nothing is logged before the commit");
    let mut other = node.client();
    assert_eq!(node.run(&mut other, "MGET a l"), "[nil nil]");
    open.commit().expect("no conflict");
    assert_eq!(records(&node), before + 1);
    assert_eq!(node.run(&mut other, "GET a"), "\"2\"");
    assert_eq!(node.run(&mut other, "HGET user:2 name"), "\"ada\"");
    assert_eq!(node.dump(), node.replayed());
}

#[test]
fn what_is_rolled_back_leaves_nothing() {
    let node = mounts::node();
    let (before, dump) = (records(&node), node.dump());
    let mut open = Open::begin(&node);
    open.call("SET a 1", "+OK");
    open.call("EVAL return{redis.call('SET','b',1)} 0", "[+OK]");
    open.insert(1);
    drop(open);
    assert_eq!((records(&node), node.dump()), (before, dump));
}

#[test]
fn what_was_shown_is_true_at_the_commit() {
    let node = mounts::node();
    let mut other = node.client();
    let seen = |line: &str, reply: &str, change: &str| {
        let mut other = node.client();
        let mut open = Open::begin(&node);
        open.call(line, reply);
        open.insert(1);
        node.run(&mut other, change);
        open
    };
    seen("GET a", "nil", "SET a 1").conflicts();
    seen("INCR a", ":2", "INCR a").conflicts();
    seen("LLEN l", ":0", "RPUSH l x").conflicts();
    seen("EVAL return(redis.call('GET','a')) 0", "\"2\"", "SET a 3").conflicts();
    seen(
        "LPUSH a x",
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
        "DEL a",
    )
    .conflicts();
    // The reply is the same.
    seen("SET a 4", "+OK", "SET a 5").commit().expect("nobody saw the value");
    assert_eq!(node.run(&mut other, "GET a"), "\"4\"");
    assert_eq!(node.run(&mut other, "HGET user:1 name"), "\"ada\"");
    // A tuple that was read alone.
    let mut open = Open::begin(&node);
    let keyspace = &node.node.keyspace;
    open.transaction.space(keyspace, USERS).expect("the space");
    open.transaction.note_all(USERS);
    open.call("SET a 6", "+OK");
    mounts::run(&node, USERS, Statement::Insert(&user(9))).expect("a tuple");
    open.conflicts();
    assert_eq!(node.run(&mut other, "GET a"), "\"4\"");
    assert_eq!(node.dump(), node.replayed());
}

#[test]
fn a_commit_of_reads_depends_on_the_tuples_as_well() {
    let node = mounts::node();
    node.run(&mut node.client(), "SET a 1");
    let keyspace = &node.node.keyspace;
    mounts::run(&node, USERS, Statement::Insert(&user(9))).expect("a tuple");
    let inserted = node.log.records().last().expect("a record").0;
    let mut open = Open::begin(&node);
    open.transaction.space(keyspace, USERS).expect("the space");
    open.transaction.note_all(USERS);
    open.call("GET a", "\"1\"");
    let pace = CommitPace::of_turn(node.node.clock.unix_ms());
    let (done, depends) = open.with(|joint, thread, tx| joint.commit(thread, tx, pace));
    assert_eq!(done, Ok(Commit::Done));
    assert!(depends >= inserted, "{depends} is before the tuple, {inserted}");
}

#[test]
fn a_later_call_finds_the_conflict_as_well() {
    let node = mounts::node();
    let mut open = Open::begin(&node);
    open.call("GET a", "nil");
    node.run(&mut node.client(), "SET a 1");
    let error = open.try_call("GET b").expect_err("a conflict");
    assert_eq!(error, ladon_engine::transaction_conflict());
    open.conflicts();
}

#[test]
fn going_back_takes_commands_back_that_were_seen() {
    let node = mounts::node();
    let mut other = node.client();
    let go_back = |change: &str| {
        let mut open = Open::begin(&node);
        open.call("SET a 1", "+OK");
        let savepoint = open.transaction.savepoint().expect("a savepoint");
        open.call("INCR b", ":1");
        assert_eq!(open.transaction.go_back(savepoint), Ok(true));
        open.call("GET b", "nil");
        open.call("APPEND a 2", ":2");
        node.run(&mut node.client(), change);
        open
    };
    go_back("SET c 1").commit().expect("nobody looked at it");
    assert_eq!(node.run(&mut other, "MGET a b"), "[\"12\" nil]");
    go_back("SET a 5").commit().expect("nobody saw its value");
    assert_eq!(node.run(&mut other, "MGET a b"), "[\"12\" nil]");
    go_back("INCR b").conflicts();
    assert_eq!(node.dump(), node.replayed());
}

#[test]
fn it_is_bounded_and_refuses_what_cannot_be_taken_back() {
    let node = mounts::node();
    let mut open = Open::begin(&node);
    for (line, why) in [
        ("TIME", "-ERR 'time' cannot be in a transaction of spaces"),
        ("CLIENT SETNAME x", "-ERR 'client|setname' cannot be in a transaction of spaces"),
        ("EXEC", "-ERR 'exec' cannot be in a transaction of spaces"),
        ("NOTHING", "-ERR unknown command 'NOTHING', with args beginning with: "),
    ] {
        open.call(line, why);
    }
    let why = "in a transaction of spaces, tuples of mounted spaces are changed and read by \
               statements, not by commands";
    open.call("HGET user:1 name", &format!("-ERR {why}"));
    open.call("KEYS *", &format!("-ERR {why}"));
    for n in 1..=128 {
        open.call("INCR n", &format!(":{n}"));
    }
    let error = open.try_call("INCR n").expect_err("too many");
    assert!(error.message.contains("128 commands"), "{}", error.message);
    open.commit().expect("what was there before");
    assert_eq!(node.run(&mut node.client(), "GET n"), "\"128\"");
}
