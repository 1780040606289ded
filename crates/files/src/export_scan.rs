//! An export of a running server key by key: it needs no memory here and no disk beside the file, and
//! each key is as of its own moment.

use crate::export_target::{ExportError, ExportProgress, Exported, Target};
use crate::import::shown;
use ladon_peers::{Client, ClientError, Reply, ServerOptions};
use ladon_rdb::{Fault, KeyFacts, Version};
use std::path::Path;

/// Exports a running Ladon over Redis' protocol, key by key.
///
/// # Errors
/// See [`ExportError`].
pub fn export_scan(
    path: &Path,
    version: Version,
    options: &ServerOptions,
    progress: &mut (dyn FnMut(ExportProgress) + Send),
) -> Result<Exported, ExportError> {
    let told = |error: ClientError| ExportError::Server {
        address: options.address.clone(),
        why: error.to_string(),
    };
    let mut client = Client::connect(options).map_err(told)?;
    let info = text_of(client.ask(&[b"INFO", b"server"]).map_err(told)?);
    if !info.contains("ladon_version:") {
        // The SCAN of another may show a key twice, and no server loads a file with that.
        return Err(ExportError::Server {
            address: options.address.clone(),
            why: "it is no Ladon: it can save a file of RDB by itself".to_owned(),
        });
    }
    let keyspace = text_of(client.ask(&[b"INFO", b"keyspace"]).map_err(told)?);
    let mut target = Target::create(path, version, progress)?;
    for code in libraries(&mut client).map_err(told)? {
        target.function(&code)?;
    }
    let name = |line: &str| line.strip_prefix("db")?.split_once(':')?.0.parse::<u64>().ok();
    for db in keyspace.lines().filter_map(name) {
        client.ask(&[b"SELECT", db.to_string().as_bytes()]).map_err(told)?;
        let mut cursor = b"0".to_vec();
        loop {
            let (next, keys) = scan(&mut client, &cursor).map_err(told)?;
            for key in &keys {
                let sent = client.send(&[b"DUMP", key]);
                sent.and_then(|()| client.send(&[b"PEXPIRETIME", key]))
                    .map_err(|error| told(error.into()))?;
            }
            for key in &keys {
                let (payload, at) = (client.reply().map_err(told)?, client.reply().map_err(told)?);
                let facts = KeyFacts { expires_at_ms: time_of(&at), ..KeyFacts::default() };
                match payload {
                    // It is gone meanwhile.
                    Reply::Bulk(None) => {}
                    _ if at == Reply::Integer(-2) => {}
                    Reply::Bulk(Some(payload)) => {
                        target.key(db, key, |writer| writer.payload_key(key, &facts, &payload))?
                    }
                    Reply::Error(error) => {
                        return Err(ExportError::Key {
                            key: shown(key),
                            db,
                            fault: Fault::Unsupported(error),
                        });
                    }
                    _ => return Err(told(ClientError::Malformed)),
                }
            }
            cursor = next;
            if cursor == b"0" {
                break;
            }
        }
    }
    target.finish()
}

fn text_of(reply: Reply) -> String {
    match reply {
        Reply::Bulk(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    }
}

fn time_of(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(at) => Some(*at).filter(|&at| at > 0),
        _ => None,
    }
}

/// A step of the walk over a database.
fn scan(client: &mut Client, cursor: &[u8]) -> Result<(Vec<u8>, Vec<Vec<u8>>), ClientError> {
    let reply = client.ask(&[b"SCAN", cursor, b"COUNT", b"128"])?;
    let Reply::Array(mut parts) = reply else { return Err(ClientError::Malformed) };
    let (Some(Reply::Array(keys)), Some(Reply::Bulk(Some(next)))) = (parts.pop(), parts.pop())
    else {
        return Err(ClientError::Malformed);
    };
    let key = |reply| match reply {
        Reply::Bulk(Some(key)) => Ok(key),
        _ => Err(ClientError::Malformed),
    };
    Ok((next, keys.into_iter().map(key).collect::<Result<_, _>>()?))
}

fn libraries(client: &mut Client) -> Result<Vec<Vec<u8>>, ClientError> {
    let Reply::Array(libraries) = client.ask(&[b"FUNCTION", b"LIST", b"WITHCODE"])? else {
        return Err(ClientError::Malformed);
    };
    let mut codes = Vec::new();
    for library in libraries {
        let Reply::Array(parts) = library else { return Err(ClientError::Malformed) };
        let at = parts.iter().position(|part| *part == Reply::Bulk(Some(b"library_code".to_vec())));
        match at.and_then(|at| parts.into_iter().nth(at + 1)) {
            Some(Reply::Bulk(Some(code))) => codes.push(code),
            _ => return Err(ClientError::Malformed),
        }
    }
    Ok(codes)
}
