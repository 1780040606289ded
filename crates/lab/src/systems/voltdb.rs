//! VoltDB: a server of its community edition, in Java and C++, loaded through its own Java client.
//!
//! Server and client are on Maven Central; the server's jar brings its native libraries (Linux and
//! macOS on x86-64). Its description omits most libraries of its distribution, so the lab's names
//! them (`helpers/voltdb/server.xml`). Three classes that are not on Maven Central and are never
//! called are placeholders.
//!
//! Keys are in a table with default procedures, counters and sets use stored procedures in Java,
//! batches one procedure over all partitions, rows a table with a secondary index.
//!
//! **Invariant:** everything that the server writes, including its unpacked libraries, is in its
//! directory.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::helpers::{self, VOLTDB, VOLTDB_PLACEHOLDERS, VOLTDB_PROCEDURES};
use super::java;
use super::program_paths::{ProgramPaths, on_path};
use super::system::{Capability, DriverKind, Launch, Missing, Process, Program, Setting, System};
use super::voltdb_control::VoltDbControl;
use crate::operation::OperationKind;
use crate::topology::Topology;

/// VoltDB.
#[derive(Clone, Copy, Debug)]
pub struct VoltDb;

const SERVER_JARS: &str = include_str!("../../helpers/voltdb/server.xml");
const CLIENT_JARS: &str = include_str!("../../helpers/voltdb/client.xml");
const SCHEMA: &str = include_str!("../../helpers/voltdb/schema.sql");
const LOG: &str = include_str!("../../helpers/voltdb/log4j.xml");

/// What its start script opens for Java 11 and later, and what later ones closed.
const OPENED: [&str; 5] = [
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
];

/// How the client is used, for the report.
const ASKED: [(&str, &str); 6] = [
    ("connections", "one client for all users: it has one connection to the server"),
    ("keys", "KV.upsert, KV.select, KV.delete: default procedures, in one partition"),
    ("batches", "a Java procedure that is one transaction over all partitions"),
    ("counters", "a Java procedure in one partition"),
    ("sets", "a Java procedure that inserts, a statement that selects; in one partition"),
    ("rows", "upserted in the partition of their number; found by the index in all partitions"),
];

impl System for VoltDb {
    fn name(&self) -> &'static str {
        "voltdb"
    }

    fn title(&self) -> &'static str {
        "VoltDB"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Missing {
                system: self.name(),
                reason: "its jar has native libraries for x86-64 only".to_owned(),
                install: "none elsewhere".to_owned(),
            });
        }
        let (java, missing) = java::found(self.name(), places)?;
        // All is made here, so that what cannot be made is known before a run.
        let parts = parts(places).map_err(missing)?;
        let mut command = java.command;
        command.push("-cp".to_owned());
        command.push(parts.client);
        // For `launch`, which knows no places.
        command.push(parts.server);
        command.push(parts.procedures.display().to_string());
        let (server, client) =
            (java::release(SERVER_JARS, "voltdb"), java::release(CLIENT_JARS, "voltdbclient"));
        let version =
            format!("VoltDB {server} community edition, client {client}, {}", java.version);
        Ok(Program { command, version, ..java })
    }

    fn settings(&self) -> Vec<Setting> {
        // "Command logging is not supported in the community edition of VoltDB", says its start.
        java::memory_only()
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Helper
    }

    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::Ping | OperationKind::GetByCall | OperationKind::InsertTuple => {
                Err("asked only in IPROTO".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn ports(&self) -> usize {
        4
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let [java, _, _, server, procedures] = &program.command[..] else {
            return Err(format!("no way to start a server: {:?}", program.command));
        };
        let [client, admin, internal, coordination] = launch.ports else {
            return Err("it needs four ports".to_owned());
        };
        let file = |name: &str| launch.directory.join(name).display().to_string();
        let mut options = OPENED.map(str::to_owned).to_vec();
        options.extend([
            "-Xmx2048m".to_owned(),
            format!("-Dlog4j.configuration=file:{}", file("log4j.xml")),
            format!("-Djava.io.tmpdir={}", launch.directory.display()),
        ]);
        options.extend(launch.extra.iter().cloned());
        options.extend(["-cp".to_owned(), server.clone(), "org.voltdb.VoltDB".to_owned()]);
        let begin = [
            ["voltdbroot".to_owned(), file("voltdbroot")],
            ["deployment".to_owned(), file("deployment.xml")],
            ["schema".to_owned(), file("schema.sql")],
            ["classes".to_owned(), procedures.clone()],
        ];
        let local = |port: &u16| format!("127.0.0.1:{port}");
        let start = [
            ["voltdbroot".to_owned(), file("voltdbroot")],
            ["hostcount".to_owned(), "1".to_owned()],
            ["mesh".to_owned(), local(internal)],
            ["port".to_owned(), local(client)],
            ["adminport".to_owned(), local(admin)],
            ["internalport".to_owned(), internal.to_string()],
            ["zkport".to_owned(), local(coordination)],
            ["internalinterface".to_owned(), "127.0.0.1".to_owned()],
            ["externalinterface".to_owned(), "127.0.0.1".to_owned()],
        ];
        let words = |what: &str, arguments: &[[String; 2]]| {
            let mut words = vec![quoted(java)];
            words.extend(options.iter().map(|option| quoted(option)));
            words.push(what.to_owned());
            words.extend(arguments.iter().flatten().map(|word| quoted(word)));
            words.join(" ")
        };
        // Two programs, one after the other: a directory is made ready by the one and served by the
        // other.
        let script = format!("{} && exec {}", words("initialize", &begin), words("probe", &start));
        Ok(vec![Process {
            command_line: ["/bin/sh", "-c", &script].map(str::to_owned).into(),
            environment: Vec::new(),
            files: vec![
                (launch.directory.join("deployment.xml"), deployment(launch.io_threads)),
                (launch.directory.join("schema.sql"), SCHEMA.to_owned()),
                (launch.directory.join("log4j.xml"), LOG.to_owned()),
            ],
        }])
    }

    fn helper(&self, program: &Program, address: SocketAddr, seed: u64) -> Result<Process, String> {
        let [java, option, client, ..] = &program.command[..] else {
            return Err(format!("no way to start a client: {:?}", program.command));
        };
        let mut command_line = vec![java.clone(), option.clone(), client.clone()];
        command_line.extend(["Main".to_owned(), address.to_string(), seed.to_string()]);
        Ok(Process { command_line, ..Process::default() })
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        settings(address).map(|_| ())
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let mut all = settings(address)?;
        all.extend(ASKED.map(|(what, how)| (format!("client: {what}"), how.to_owned())));
        Ok(all)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            Capability::Nodes(_) => Err("several servers are not set up by the lab".to_owned()),
            Capability::Snapshot => Err("the lab does not ask for its snapshots".to_owned()),
            Capability::Restart => Err("the community edition has no command log; a snapshot is \
                                        restored by hand"
                .to_owned()),
        }
    }
}

struct Parts {
    /// Class path of the helper.
    client: String,
    /// Class path of the server.
    server: String,
    /// A jar of what runs within it.
    procedures: PathBuf,
}

fn parts(places: &ProgramPaths) -> Result<Parts, String> {
    let client_jars = java::all_in(&java::jars(places, "voltdb-client-jars", CLIENT_JARS)?);
    let client = java::client(places, "voltdb-client", VOLTDB, &client_jars)?;
    let server_jars = java::all_in(&java::jars(places, "voltdb-server", SERVER_JARS)?);
    let placeholders = java::classes(places, "voltdb-placeholders", VOLTDB_PLACEHOLDERS, ".", "8")?;
    // Its compiler knows the classes of Java 8 to 11.
    let name = "voltdb-procedures";
    let procedures = java::classes(places, name, VOLTDB_PROCEDURES, &server_jars, "8")?;
    Ok(Parts {
        client: format!("{client_jars}:{}", client.display()),
        server: format!("{server_jars}:{}", placeholders.display()),
        procedures: packed(places, name, &procedures)?,
    })
}

/// The classes in `folder` as the jar that a server is given.
fn packed(places: &ProgramPaths, name: &str, folder: &Path) -> Result<PathBuf, String> {
    let jar = on_path("jar").into_iter().find(|path| path.is_file());
    let jar = jar.ok_or("no jar to pack its procedures with")?.display().to_string();
    let folder = folder.display().to_string();
    let mut step = [&jar, "cf", "procedures.jar", "-C", &folder].map(str::to_owned).to_vec();
    step.push(".".to_owned());
    Ok(helpers::built(places, &format!("{name}-jar"), &[], &[step])?.join("procedures.jar"))
}

/// As the shell reads it back.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn settings(address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
    let rows = VoltDbControl::connect(address)?.call("@SystemInformation", &["DEPLOYMENT"])?;
    Ok(rows
        .into_iter()
        .filter_map(|row| <[String; 2]>::try_from(row).ok())
        .map(Into::into)
        .collect())
}

/// One server with as many partitions as it may have threads.
fn deployment(sites: usize) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<deployment>
  <cluster hostcount="1" sitesperhost="{sites}" kfactor="0"/>
  <httpd enabled="false"/>
  <snapshot enabled="false"/>
</deployment>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let word = r"it's $HOME `and` \ more";
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("printf %s {}", quoted(word))])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), word);
    }
}
