//! All systems that the lab knows, in the order in which they are listed.

use super::program_paths::ProgramPaths;
use super::system::{Missing, Program, System};
use super::web::Web;
use super::{
    bare_loop, hazelcast, ladon, ladon_iproto, ladon_speaking, mariadb, memcached, redis, sqlite,
    tarantool, untried, voltdb,
};

/// All of them.
pub static ALL: &[&dyn System] = &[
    &ladon::Ladon,
    &ladon_iproto::TREE,
    &ladon_iproto::HASH,
    &ladon_speaking::MEMCACHED,
    &redis::REDIS,
    &redis::REDIS_8,
    &redis::VALKEY,
    &redis::REDISEARCH,
    &untried::KEYDB,
    &untried::DRAGONFLY,
    &untried::POGOCACHE,
    &tarantool::TARANTOOL,
    &tarantool::TARANTOOL_HASH,
    &memcached::Memcached,
    &hazelcast::Hazelcast,
    &ladon_speaking::HTTP,
    &Web::GoLevelDb,
    &Web::GoTarantool,
    &Web::GoLadon,
    &Web::GoRedis,
    &Web::TarantoolHttp,
    &voltdb::VoltDb,
    &sqlite::Sqlite,
    &mariadb::MariaDb,
    &bare_loop::BareLoop,
];

/// Systems that the lab has no driver for, and why.
pub const NOT_DRIVEN: [(&str, &str); 1] = [(
    "aerospike",
    "no driver: it speaks none of the lab's protocols, and what was written around its own client was never \
     run against a server, as none is in a package registry",
)];

/// A system and its program here.
#[derive(Clone)]
pub struct Found {
    /// The system.
    pub system: &'static dyn System,
    /// Its program.
    pub program: Program,
}

/// Why a list of names is no list of systems.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// Not in [`ALL`].
    #[error("unknown system `{name}`; known: {}, each also as NAME@PROGRAM", known())]
    Unknown {
        /// What was asked for.
        name: String,
    },
}

fn known() -> String {
    ALL.iter().map(|system| system.name()).collect::<Vec<_>>().join(", ")
}

/// The system of this name.
///
/// # Errors
/// [`NameError::Unknown`].
pub fn by_name(name: &str) -> Result<&'static dyn System, NameError> {
    let found = ALL.iter().copied().find(|system| system.name() == name);
    found.ok_or_else(|| NameError::Unknown { name: name.to_owned() })
}

/// Searches the named systems (`redis`, or `ladon@PATH` for a certain program), in that order;
/// returns what was found, and what is missing. A system named several times is numbered: `ladon`,
/// `ladon#2`.
///
/// # Errors
/// The first unknown name.
pub fn named(
    names: &[String],
    places: &ProgramPaths,
) -> Result<(Vec<Found>, Vec<Missing>), NameError> {
    let mut found: Vec<Found> = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let (name, path) = match name.split_once('@') {
            Some((name, path)) => (name, Some(path.into())),
            None => (name.as_str(), None),
        };
        let system = by_name(name)?;
        match system.find(&ProgramPaths { program: path, ..places.clone() }) {
            Ok(mut program) => {
                let before = found.iter().filter(|other| other.program.system == name).count();
                if before > 0 {
                    program.label = format!("{name}#{}", before + 1);
                }
                found.push(Found { system, program });
            }
            Err(reason) => missing.push(reason),
        }
    }
    Ok((found, missing))
}

/// Looks for all of them, but those that must be named.
#[must_use]
pub fn everything(places: &ProgramPaths) -> (Vec<Found>, Vec<Missing>) {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for system in ALL.iter().copied().filter(|system| !system.by_name_only()) {
        match system.find(places) {
            Ok(program) => found.push(Found { system, program }),
            Err(reason) => missing.push(reason),
        }
    }
    (found, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_settings_go_from_weak_to_strong() {
        for (index, system) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name() != system.name()));
            let settings = system.settings();
            assert!(!settings.is_empty(), "{}", system.name());
            assert!(settings.is_sorted_by_key(|setting| setting.promise), "{}", system.name());
        }
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let error = named(&["rediss".to_owned()], &ProgramPaths::default()).err().unwrap();
        assert!(error.to_string().contains("known: ladon, ladon-iproto"), "{error}");
    }

    #[test]
    fn other_forms_of_a_system_are_measured_where_they_are_named() {
        let (found, missing) = everything(&ProgramPaths::default());
        let names = found.iter().map(|one| one.program.system);
        let names: Vec<&str> = names.chain(missing.iter().map(|one| one.system)).collect();
        assert!(names.contains(&"ladon") && names.contains(&"tarantool"), "{names:?}");
        for form in ["ladon-iproto", "ladon-iproto-hash", "tarantool-hash"] {
            assert!(by_name(form).is_ok() && !names.contains(&form), "{names:?}");
        }
    }

    #[test]
    fn several_of_a_system_are_numbered() {
        let names: Vec<String> = ["redis@/bin/true", "redis@/bin/true"].map(str::to_owned).into();
        let (found, missing) = named(&names, &ProgramPaths::default()).unwrap();
        assert!(missing.is_empty(), "{missing:?}");
        let labels: Vec<&str> = found.iter().map(|one| one.program.label.as_str()).collect();
        assert_eq!(labels, ["redis", "redis#2"]);
    }
}
