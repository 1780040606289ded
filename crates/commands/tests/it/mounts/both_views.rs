//! Random requests of both protocols on the same tuples, and a plain map: both views show what the
//! map has, and the log gives it back.

use super::{USERS, array, int, nil, node, run, text};
use crate::common::{TestClient, TestNode};
use ladon_msgpack::write;
use ladon_space::{Statement, as_text, fields};
use ladon_testkit::Random;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct User {
    name: String,
    mail: Option<String>,
    age: Option<u64>,
}

type Model = BTreeMap<u64, User>;

const USERS_MAX: u64 = 8;
const STEPS: usize = 4_000;

fn tuple(id: u64, user: &User) -> Vec<u8> {
    let mail = user.mail.as_deref().map_or_else(nil, text);
    array(&[int(id), text(&user.name), mail, user.age.map_or_else(nil, int)])
}

fn is_taken(model: &Model, id: u64, mail: &Option<String>) -> bool {
    mail.is_some() && model.iter().any(|(other, user)| *other != id && user.mail == *mail)
}

/// A request over RESP: changes the model as it has to, and returns the reply that it has to get.
fn by_resp(rng: &mut Random, model: &mut Model) -> (String, Option<String>) {
    let id = rng.below(USERS_MAX);
    let mail = (rng.below(2) == 0).then(|| format!("m{}", rng.below(4)));
    let age = rng.below(100);
    let before = model.get(&id).cloned();
    match rng.below(6) {
        0 | 1 => {
            let mut user = before.clone().unwrap_or_default();
            let (mut words, mut added) = (format!("HSET user:{id} age {age}"), 0);
            added += i32::from(user.age.is_none());
            user.age = Some(age);
            if rng.below(2) == 0 || before.is_none() {
                user.name = format!("n{age}");
                words += &format!(" name n{age}");
                added += i32::from(before.is_none());
            }
            if let Some(mail) = mail {
                words += &format!(" mail {mail}");
                added += i32::from(user.mail.is_none());
                user.mail = Some(mail);
            }
            if is_taken(model, id, &user.mail) {
                return (words, None);
            }
            model.insert(id, user);
            (words, Some(format!(":{added}")))
        }
        2 => {
            let found = model.remove(&id).is_some();
            (format!("DEL user:{id}"), Some(format!(":{}", i32::from(found))))
        }
        3 => {
            let Some(user) = model.get_mut(&id) else {
                return (format!("HINCRBY user:{id} age 1"), None);
            };
            let sum = user.age.unwrap_or(0) + 1;
            user.age = Some(sum);
            (format!("HINCRBY user:{id} age 1"), Some(format!(":{sum}")))
        }
        4 => {
            let user = model.get_mut(&id);
            let removed = user.map_or(0, |user| {
                i32::from(user.age.take().is_some()) + i32::from(user.mail.take().is_some())
            });
            (format!("HDEL user:{id} age mail"), Some(format!(":{removed}")))
        }
        _ => {
            let is_new = before.as_ref().is_none_or(|user| user.mail.is_none());
            let mail = mail.unwrap_or_else(|| "m0".to_owned());
            let words = format!("HSETNX user:{id} mail {mail}");
            if before.is_none() {
                return (words, None);
            }
            let mail = Some(mail);
            if !is_new {
                return (words, Some(":0".to_owned()));
            }
            if is_taken(model, id, &mail) {
                return (words, None);
            }
            if let Some(user) = model.get_mut(&id) {
                user.mail = mail;
            }
            (words, Some(":1".to_owned()))
        }
    }
}

/// A statement over IPROTO; whether it has to succeed.
fn by_iproto(rng: &mut Random, node: &TestNode, model: &mut Model) {
    let id = rng.below(USERS_MAX);
    let age = rng.below(100);
    let mail = (rng.below(2) == 0).then(|| format!("m{}", rng.below(4)));
    let user = User { name: format!("i{age}"), mail, age: Some(age) };
    let key = array(&[int(id)]);
    let (done, may) = match rng.below(4) {
        0 => {
            let may = !is_taken(model, id, &user.mail);
            (run(node, USERS, Statement::Replace(&tuple(id, &user))), may)
        }
        1 => {
            let may = !is_taken(model, id, &user.mail) && !model.contains_key(&id);
            (run(node, USERS, Statement::Insert(&tuple(id, &user))), may)
        }
        2 => {
            model.remove(&id);
            let delete = Statement::Delete { index: 0, key: &key };
            run(node, USERS, delete).expect("deleted");
            return;
        }
        _ => {
            if let Some(user) = model.get_mut(&id) {
                user.age = Some(7);
            }
            let mut operation = Vec::new();
            write::array(&mut operation, 1);
            operation.extend_from_slice(&array(&[text("="), int(3), int(7)]));
            let operations = &operation;
            let update = Statement::Update { index: 0, key: &key, operations, index_base: 0 };
            run(node, USERS, update).expect("updated");
            return;
        }
    };
    assert_eq!(done.is_ok(), may, "{done:?}");
    if may {
        model.insert(id, user);
    }
}

/// What both protocols show of a user.
fn check_views(node: &TestNode, client: &mut TestClient, id: u64, user: Option<&User>) {
    let mut expected = Vec::new();
    if let Some(user) = user {
        expected = vec![("id", id.to_string()), ("name", user.name.clone())];
        expected.extend(user.mail.iter().map(|mail| ("mail", mail.clone())));
        expected.extend(user.age.iter().map(|age| ("age", age.to_string())));
    }
    let words: Vec<String> =
        expected.iter().map(|(name, value)| format!("\"{name}\" \"{value}\"")).collect();
    let reply = node.run(client, &format!("HGETALL user:{id}"));
    assert_eq!(reply, format!("[{}]", words.join(" ")));
    let catalog = node.node.keyspace.spaces.catalog();
    let spaces = &[USERS];
    let begun = node.node.keyspace.begin_on_spaces(&catalog, spaces, &mut client.scratch);
    let mut tx = begun.expect("the space");
    let space = tx.space(USERS);
    let found = space.get(0, &array(&[int(id)])).expect("a key");
    let texts: Vec<Option<String>> = found.iter().flat_map(|tuple| texts(tuple.bytes())).collect();
    let values: Vec<Option<String>> = user.map_or_else(Vec::new, |user| {
        let age = user.age.map(|age| age.to_string());
        vec![Some(id.to_string()), Some(user.name.clone()), user.mail.clone(), age]
    });
    let padded = texts.iter().cloned().chain(std::iter::repeat(None)).take(values.len());
    assert_eq!(padded.collect::<Vec<_>>(), values);
    // The secondary index as well.
    if let Some(mail) = user.and_then(|user| user.mail.as_deref()) {
        let by_mail = space.get(1, &array(&[text(mail)])).expect("a key");
        assert_eq!(
            by_mail.map(|tuple| tuple.bytes().to_vec()),
            found.map(|it| it.bytes().to_vec())
        );
    }
    tx.commit(|_| unreachable!("it was only read"));
}

fn texts(tuple: &[u8]) -> Vec<Option<String>> {
    let text = |value| {
        let mut out = Vec::new();
        as_text::write_value(value, &mut out).then(|| String::from_utf8_lossy(&out).into_owned())
    };
    fields::Fields::of(tuple).map(text).collect()
}

#[test]
fn both_protocols_show_what_a_plain_map_has() {
    let seed = std::env::var("LADON_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(12);
    eprintln!("seed {seed}");
    let mut rng = Random::new(seed);
    let node = node();
    let mut client = node.client();
    let mut model = Model::new();
    for step in 0..STEPS {
        if rng.below(2) == 0 {
            let (request, expected) = by_resp(&mut rng, &mut model);
            let reply = node.run(&mut client, &request);
            match expected {
                Some(expected) => assert_eq!(reply, expected, "step {step}: {request}"),
                None => assert!(reply.starts_with("-ERR "), "step {step}: {request}: {reply}"),
            }
        } else {
            by_iproto(&mut rng, &node, &mut model);
        }
        let id = rng.below(USERS_MAX);
        check_views(&node, &mut client, id, model.get(&id));
        if step % 100 == 0 {
            let keys: Vec<String> = model.keys().map(|id| format!("\"user:{id}\"")).collect();
            assert_eq!(node.run(&mut client, "KEYS *"), format!("[{}]", keys.join(" ")));
            (0..USERS_MAX).for_each(|id| check_views(&node, &mut client, id, model.get(&id)));
        }
    }
}
