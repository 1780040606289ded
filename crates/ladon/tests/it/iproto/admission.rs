//! What admits a request of Redis' protocol admits those of IPROTO as well.

use super::client::array;
use super::{Node, make_space, row};
use ladon_iproto::Request;
use ladon_iproto::request::{Begin, Put, SpaceRef};

/// `ER_READONLY`.
const READONLY: u32 = 7;

#[test]
fn too_few_replicas_refuse_statements_and_commits() {
    let node = Node::new("write");
    let server = node.start();
    let mut admin = node.admin();
    make_space(&mut admin, 512, "s");
    let tuple = row(1, "a");
    let replace = Request::Replace(Put { space: SpaceRef::Id(512), tuple: &tuple });
    admin.stream_id = 1;
    admin.ask(&Request::Begin(Begin::default())).expect("begins");
    admin.ask(&replace).expect("replaces");
    let mut redis = server.connect().expect("connects");
    redis.call(&["CONFIG", "SET", "min-replicas-to-write", "1"]).expect("is set");
    let refused = admin.ask(&Request::Commit(None)).expect_err("no replica would have it");
    assert_eq!(refused.0, READONLY, "{refused:?}");
    admin.stream_id = 0;
    let refused = admin.ask(&replace).expect_err("no replica would have it");
    assert_eq!(refused.0, READONLY, "{refused:?}");
    redis.call(&["CONFIG", "SET", "min-replicas-to-write", "0"]).expect("is set");
    assert_eq!(admin.select(512, 0, &array(&[])), Vec::<Vec<u8>>::new());
    admin.ask(&replace).expect("replaces");
}
