//! Reads the whole keyspace with ordinary commands.

use super::generate::Request;
use super::judge::Check;
use crate::reply::Reply;

/// Asks both servers.
pub type Ask<'a> = dyn FnMut(&[Request]) -> Vec<(Reply, Reply)> + 'a;
/// What to compare next; it may ask first what there is.
pub type Step = Box<dyn Fn(&mut Ask<'_>) -> Vec<Request>>;

/// The databases that the grammar's requests use.
const DATABASES: u8 = 3;

/// All of it: for each database its keys, then everything about each of them. With `reload` once
/// more, after both servers have written and read it.
pub fn steps(reload: bool) -> Vec<Step> {
    let mut steps: Vec<Step> = vec![Box::new(|ask| {
        // An open transaction would queue what follows, a watched key make it fail.
        ask(&[Request::new(Check::Kind, &[b"DISCARD"])]);
        vec![Request::new(Check::Exact, &[b"UNWATCH"])]
    })];
    databases(&mut steps, true);
    if reload {
        steps.push(Box::new(|_| vec![Request::new(Check::Exact, &[b"DEBUG", b"RELOAD"])]));
        // Ladon packs what it reads according to its content, Redis according to its history.
        databases(&mut steps, false);
    }
    steps
}

fn databases(steps: &mut Vec<Step>, encodings: bool) {
    for db in 0..DATABASES {
        steps.push(Box::new(move |_| {
            let index = db.to_string();
            vec![
                Request::new(Check::Exact, &[b"SELECT", index.as_bytes()]),
                Request::new(Check::Exact, &[b"DBSIZE"]),
                Request::new(Check::Unordered, &[b"KEYS", b"*"]),
            ]
        }));
        steps.push(Box::new(move |ask| keys(ask, encodings)));
    }
}

fn keys(ask: &mut Ask<'_>, encodings: bool) -> Vec<Request> {
    let keys = ask(&[Request::new(Check::Unordered, &[b"KEYS", b"*"])]);
    let Some((Reply::Array(keys), _)) = keys.first() else { return Vec::new() };
    let mut requests = Vec::new();
    for key in keys {
        let Reply::Bulk(key) = key else { continue };
        let kind = ask(&[Request::new(Check::Exact, &[b"TYPE", key])]);
        requests.push(Request::new(Check::Exact, &[b"TYPE", key]));
        if encodings {
            requests.push(Request::new(Check::Exact, &[b"OBJECT", b"ENCODING", key]));
        }
        requests.push(Request::new(Check::About, &[b"PEXPIRETIME", key]));
        let Some((Reply::Simple(kind), _)) = kind.first() else { continue };
        requests.extend(content(kind, key));
        if kind == "stream" {
            requests.push(Request::new(Check::Times, &[b"XINFO", b"STREAM", key]));
            requests.push(Request::new(Check::Exact, &[b"XINFO", b"GROUPS", key]));
            let full = [b"XINFO", &b"STREAM"[..], key, b"FULL", b"COUNT", b"0"];
            requests.push(Request::new(Check::Times, &full));
            for group in [b"g1", b"g2"] {
                let pending = [b"XPENDING", &key[..], group, b"-", b"+", b"10000"];
                requests.push(Request::new(Check::Times, &pending));
            }
        }
        if kind == "hash" {
            let fields = ask(&[Request::new(Check::Exact, &[b"HKEYS", key])]);
            let Some((reply, _)) = fields.first() else { continue };
            let names: Vec<Vec<u8>> = reply.elements().iter().filter_map(bytes).collect();
            let count = names.len().to_string();
            let mut request =
                Request::new(Check::About, &[b"HPEXPIRETIME", key, b"FIELDS", count.as_bytes()]);
            request.words.extend(names);
            requests.push(request);
        }
    }
    requests
}

fn bytes(reply: &Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes.clone()),
        _ => None,
    }
}

fn content(kind: &str, key: &[u8]) -> Option<Request> {
    Some(match kind {
        "string" => Request::new(Check::Exact, &[b"GET", key]),
        "hash" => Request::new(Check::Pairs, &[b"HGETALL", key]),
        "list" => Request::new(Check::Exact, &[b"LRANGE", key, b"0", b"-1"]),
        "set" => Request::new(Check::Unordered, &[b"SMEMBERS", key]),
        "stream" => Request::new(Check::Exact, &[b"XRANGE", key, b"-", b"+"]),
        "zset" => Request::new(Check::Scores, &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]),
        _ => return None,
    })
}
