//! Rounds about rights: users, roles, grants and logins, and what each user may do then.
//!
//! All goes over one connection, which logs in as one user after the other. What 2.6 dies of, or
//! does otherwise on purpose, is left out: rights to all objects of a kind come from admin only, and
//! rights to a user that is never dropped.

use super::generate::Round;
use super::request::{Request, key, kind};
use super::setup::{delete, put};
use super::value::Value;
use crate::random::rng::Rng;
use crate::server::ADMIN_PASSWORD;

const SPACE: u64 = 280;
const SEQUENCE: u64 = 284;
const SEQUENCE_DATA: u64 = 285;
const INDEX: u64 = 288;
const FUNC: u64 = 296;
const USER: u64 = 304;
const PRIV: u64 = 312;
const TRUNCATE: u64 = 330;
const SPACE_SEQUENCE: u64 = 340;
/// Those that somebody may be given rights to.
const MANAGED: [u64; 8] = [SPACE, SEQUENCE, INDEX, FUNC, USER, PRIV, TRUNCATE, SPACE_SEQUENCE];
const VIEWS: [u64; 7] = [281, 286, 289, 297, 305, 313, 341];

const ADMIN: u64 = 1;
const USERS: [u64; 5] = [50, 51, 52, 53, 54];
/// Users are given rights to this one, which stays.
const LASTING: u64 = 55;
const ROLES: [u64; 4] = [60, 61, 62, 63];
const SPACES: [u64; 3] = [600, 601, 602];
const SEQUENCES: [u64; 2] = [20, 21];
const FUNCTIONS: [u64; 2] = [200, 201];
/// What is kept of the password of all users, which is `p`.
const STORED: &str = "e56+7SaqUu0QwPVJ+oY/E8OeAgk=";
const PASSWORD: &str = "p";

/// The round of this seed with about so many requests.
pub fn rights_round(seed: u64, length: usize) -> Round {
    let mut rng = Rng::new(seed);
    let mut requests = vec![user(LASTING, ADMIN, false)];
    for id in USERS.into_iter().filter(|_| rng.percent(60)).collect::<Vec<_>>() {
        requests.push(user(id, ADMIN, false));
        requests.push(grant(kind::REPLACE, [ADMIN, id], "universe", Value::int(0), 24));
        requests.extend(some_rights(&mut rng, id));
    }
    let mut me = ADMIN;
    while requests.len() < length {
        if rng.percent(12) {
            me = if rng.percent(35) { ADMIN } else { *rng.pick(&USERS) };
            requests.push(login(me));
            // It may not be there, or may not log in: it is whoever it was.
            continue;
        }
        requests.push(attempt(&mut rng, me));
    }
    Round { spaces: Vec::new(), requests, clean: clean(), reads: reads() }
}

/// A login, with the password in place of the scramble.
fn login(id: u64) -> Request {
    let (name, password) = match id {
        ADMIN => ("admin".to_owned(), ADMIN_PASSWORD),
        _ => (format!("u{id}"), PASSWORD),
    };
    Request::login(&name, password)
}

/// Rights that make a user worth a try.
fn some_rights(rng: &mut Rng, id: u64) -> Vec<Request> {
    let grant = |object: &str, number: Value, rights| {
        grant(kind::REPLACE, [ADMIN, id], object, number, rights)
    };
    let mut grants = Vec::new();
    if rng.percent(25) {
        let rights = 24 | rng.below(256) as u64;
        grants.push(grant("universe", Value::int(0), rights));
    }
    for space in MANAGED {
        if rng.percent(60) {
            grants.push(grant("space", Value::int(space), 3));
        }
    }
    for object in ["space", "sequence", "function", "user", "role"] {
        if rng.percent(25) {
            let rights = [32, 64, 128, 224, 1, 3][rng.below(6)];
            grants.push(grant(object, Value::text(""), rights));
        }
    }
    grants
}

/// What somebody may try.
fn attempt(rng: &mut Rng, me: u64) -> Request {
    let owner = if rng.percent(50) { me } else { *rng.pick(&[ADMIN, 50, 51, 52]) };
    let change = *rng.pick(&[kind::INSERT, kind::INSERT, kind::REPLACE]);
    match rng.below(16) {
        0 => users(rng, me, owner),
        1..=4 => grants(rng, me),
        5 => spaces(rng, owner),
        6 => indexes(rng),
        7 => sequences(rng, owner, change),
        8 => functions(rng, owner, change),
        9 => put(kind::REPLACE, TRUNCATE, vec![Value::int(any_space(rng)), Value::int(1)]),
        10 => fillers(rng, change),
        11 => read(*rng.pick(&VIEWS), Some(any_number(rng))),
        12 => read(*rng.pick(&MANAGED), Some(any_number(rng))),
        13 => call(rng),
        14 => read(*rng.pick(&SPACES), None),
        _ => put(change, *rng.pick(&SPACES), vec![Value::int(rng.below(4) as u64)]),
    }
}

fn any_space(rng: &mut Rng) -> u64 {
    if rng.percent(10) { *rng.pick(&MANAGED) } else { *rng.pick(&SPACES) }
}

fn any_number(rng: &mut Rng) -> u64 {
    let of = [&USERS[..], &ROLES, &SPACES, &SEQUENCES, &FUNCTIONS, &[0, 1, 2, 31]];
    let among = *rng.pick(&of);
    *rng.pick(among)
}

fn user(id: u64, owner: u64, is_role: bool) -> Request {
    let auth = if is_role {
        Value::Map(Vec::new())
    } else {
        Value::named(&[("chap-sha1", Value::text(STORED))])
    };
    let name = Value::text(&format!("u{id}"));
    let what = Value::text(if is_role { "role" } else { "user" });
    let none = Value::Array(Vec::new());
    let row = vec![Value::int(id), Value::int(owner), name, what, auth, none, Value::int(0)];
    put(kind::INSERT, USER, row)
}

fn users(rng: &mut Rng, me: u64, owner: u64) -> Request {
    let is_role = rng.percent(50);
    let id = if is_role { *rng.pick(&ROLES) } else { *rng.pick(&USERS) };
    let of = Value::int(if rng.percent(10) { *rng.pick(&[0, 1, 2, 31]) } else { id });
    match rng.below(4) {
        // Nobody drops itself: 2.6 gives its place to the next user that there is.
        0 if id != me => delete(USER, vec![of]),
        1 => update(USER, vec![Value::int(id)], 6, rng.below(9) as u64),
        _ => user(id, owner, is_role),
    }
}

fn grant(change: u8, by_and_to: [u64; 2], object: &str, id: Value, rights: u64) -> Request {
    let [grantor, grantee] = by_and_to.map(Value::int);
    put(change, PRIV, vec![grantor, grantee, Value::text(object), id, Value::int(rights)])
}

fn grants(rng: &mut Rng, me: u64) -> Request {
    let grantor = if rng.percent(75) { me } else { *rng.pick(&[ADMIN, 50, 51]) };
    let grantee = match rng.below(3) {
        0 => *rng.pick(&ROLES),
        _ => *rng.pick(&USERS),
    };
    let (object, id) = match rng.below(9) {
        0 => ("universe", 0),
        1 | 2 => ("space", any_space(rng)),
        3 => ("sequence", *rng.pick(&SEQUENCES)),
        4 => ("function", *rng.pick(&FUNCTIONS)),
        5 => ("user", LASTING),
        6 if rng.percent(10) => ("role", *rng.pick(&[2, 31])),
        _ => ("role", *rng.pick(&ROLES)),
    };
    let is_of_all = object != "universe" && (me, grantor) == (ADMIN, ADMIN) && rng.percent(15);
    let id = if is_of_all { Value::text("") } else { Value::int(id) };
    if rng.percent(25) {
        return delete(PRIV, vec![Value::int(grantee), Value::text(object), id]);
    }
    let rights = match object {
        "role" if !is_of_all => 4,
        "universe" => 24 | rng.below(256) as u64,
        _ => *rng.pick(&[1, 2, 3, 4, 7, 32, 64, 128, 224, 0]),
    };
    let change = *rng.pick(&[kind::INSERT, kind::REPLACE]);
    grant(change, [grantor, grantee], object, id, rights)
}

fn spaces(rng: &mut Rng, owner: u64) -> Request {
    let id = *rng.pick(&SPACES);
    let empty = || Value::Map(Vec::new());
    match rng.below(4) {
        0 => delete(SPACE, vec![Value::int(id)]),
        1 => update(SPACE, vec![Value::int(id)], 4, 0),
        _ => {
            let name = Value::text(&format!("s{id}"));
            let mut row = vec![Value::int(id), Value::int(owner), name, Value::text("memtx")];
            row.extend([Value::int(0), empty(), Value::Array(Vec::new())]);
            put(kind::INSERT, SPACE, row)
        }
    }
}

fn indexes(rng: &mut Rng) -> Request {
    let (space, index) = (*rng.pick(&SPACES), rng.below(2) as u64);
    if rng.percent(30) {
        return delete(INDEX, vec![Value::int(space), Value::int(index)]);
    }
    let part = Value::Array(vec![Value::int(0), Value::text("unsigned")]);
    let name = Value::text(&format!("i{index}"));
    let mut row = vec![Value::int(space), Value::int(index), name, Value::text("tree")];
    row.extend([Value::named(&[("unique", Value::Bool(true))]), Value::Array(vec![part])]);
    put(kind::INSERT, INDEX, row)
}

fn sequences(rng: &mut Rng, owner: u64, change: u8) -> Request {
    let id = *rng.pick(&SEQUENCES);
    match rng.below(5) {
        0 => delete(SEQUENCE, vec![Value::int(id)]),
        1 => update(SEQUENCE, vec![Value::int(id)], 3, 1 + rng.below(3) as u64),
        2 => delete(SEQUENCE_DATA, vec![Value::int(id)]),
        _ => {
            let name = Value::text(&format!("q{id}"));
            let mut row = vec![Value::int(id), Value::int(owner), name];
            row.extend([1, 1, 1000, 1, 0].map(|number: u64| Value::int(number)));
            row.push(Value::Bool(false));
            // The owner of one that there is stays.
            put(if change == kind::REPLACE { kind::INSERT } else { change }, SEQUENCE, row)
        }
    }
}

fn functions(rng: &mut Rng, owner: u64, change: u8) -> Request {
    let id = *rng.pick(&FUNCTIONS);
    if rng.percent(30) {
        return delete(FUNC, vec![Value::int(id)]);
    }
    let text = Value::text;
    let array = || Value::Array(Vec::new());
    let name = text(&format!("f{id}"));
    let mut row = vec![Value::int(id), Value::int(owner), name, Value::int(0), text("LUA")];
    row.extend([text(""), text("function"), array(), text("any"), text("none"), text("none")]);
    row.extend([Value::Bool(false), Value::Bool(false), Value::Bool(true)]);
    row.extend([Value::Array(vec![text("LUA")]), Value::Map(Vec::new())]);
    row.extend([text(""), text(""), text("")]);
    put(change, FUNC, row)
}

fn fillers(rng: &mut Rng, change: u8) -> Request {
    let (space, sequence) = (*rng.pick(&SPACES), *rng.pick(&SEQUENCES));
    if rng.percent(30) {
        return delete(SPACE_SEQUENCE, vec![Value::int(space)]);
    }
    let mut row = vec![Value::int(space), Value::int(sequence), Value::Bool(rng.percent(30))];
    row.extend([Value::int(0), Value::text("")]);
    put(change, SPACE_SEQUENCE, row)
}

fn update(space: u64, id: Vec<Value>, field: u64, value: u64) -> Request {
    let set = Value::Array(vec![Value::text("="), Value::int(field), Value::int(value)]);
    let body = vec![
        (key::SPACE_ID, Value::int(space)),
        (key::KEY, Value::Array(id)),
        (key::TUPLE, Value::Array(vec![set])),
    ];
    Request::new(kind::UPDATE, body)
}

fn call(rng: &mut Rng) -> Request {
    let space = *rng.pick(&SPACES);
    let method = *rng.pick(&["get", "select", "count", "len", "delete", "min", "pairs"]);
    let name = match rng.below(4) {
        0 => "f200".to_owned(),
        1 if method != "min" => format!("box.space.s{space}:{method}"),
        1 | 2 => format!("box.space.s{space}.index.i{}:{method}", rng.below(2)),
        _ => "nothing".to_owned(),
    };
    let arguments = Value::Array(vec![Value::int(1)]);
    let body = vec![(key::FUNCTION_NAME, Value::text(&name)), (key::TUPLE, arguments)];
    Request::new(kind::CALL, body)
}

fn read(space: u64, id: Option<u64>) -> Request {
    let key = id.map(Value::int).into_iter().collect();
    let body = vec![
        (key::SPACE_ID, Value::int(space)),
        (key::LIMIT, Value::int(100u64)),
        (key::KEY, Value::Array(key)),
    ];
    Request::new(kind::SELECT, body)
}

/// Removes whatever a round has left.
fn clean() -> Vec<Request> {
    let mut requests = vec![login(ADMIN)];
    let all = |kind, ids: &[u64]| {
        let ids = ids.iter().map(|id| Value::int(*id)).chain([Value::text("")]);
        ids.map(move |id| (kind, id)).collect::<Vec<_>>()
    };
    let spaces: Vec<u64> = [&SPACES[..], &MANAGED].concat();
    let roles: Vec<u64> = [&ROLES[..], &[2, 31]].concat();
    let objects = [
        all("universe", &[0]),
        all("space", &spaces),
        all("sequence", &SEQUENCES),
        all("function", &FUNCTIONS),
        all("user", &[LASTING]),
        all("role", &roles),
    ];
    for grantee in USERS.into_iter().chain(ROLES).chain([LASTING]) {
        for (kind, id) in objects.iter().flatten() {
            let is_odd = *kind == "universe" && *id == Value::text("");
            let key = vec![Value::int(grantee), Value::text(kind), id.clone()];
            requests.extend((!is_odd).then(|| delete(PRIV, key)));
        }
    }
    let of = |system: u64, ids: &[u64]| -> Vec<Request> {
        ids.iter().map(|id| delete(system, vec![Value::int(*id)])).collect()
    };
    requests.extend(of(SPACE_SEQUENCE, &SPACES));
    requests.extend(of(SEQUENCE_DATA, &SEQUENCES));
    requests.extend(of(SEQUENCE, &SEQUENCES));
    requests.extend(of(FUNC, &FUNCTIONS));
    for space in SPACES {
        for index in [1u64, 0] {
            requests.push(delete(INDEX, vec![Value::int(space), Value::int(index)]));
        }
    }
    requests.extend(of(TRUNCATE, &SPACES));
    requests.extend(of(SPACE, &SPACES));
    requests.extend(of(USER, &USERS));
    requests.extend(of(USER, &ROLES));
    requests.extend(of(USER, &[LASTING]));
    requests
}

/// Reads what a round may have made, as admin.
fn reads() -> Vec<Request> {
    let mut requests = vec![login(ADMIN)];
    for (space, ids) in [
        (SPACE, &SPACES[..]),
        (INDEX, &SPACES),
        (TRUNCATE, &SPACES),
        (SPACE_SEQUENCE, &SPACES),
        (SEQUENCE, &SEQUENCES),
        (SEQUENCE_DATA, &SEQUENCES),
        (FUNC, &FUNCTIONS),
        (USER, &USERS),
        (USER, &ROLES),
        (PRIV, &USERS),
        (PRIV, &ROLES),
    ] {
        requests.extend(ids.iter().map(|id| read(space, Some(*id))));
    }
    requests.extend(SPACES.map(|space| read(space, None)));
    requests
}
