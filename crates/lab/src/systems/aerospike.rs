//! Aerospike: `asd`, loaded through its own Java client.
//!
//! **Not yet run against a real server**: none is in a package registry, so this file and its client follow
//! the documentation of server and client, and what they say they are says so. The client is compiled
//! against the real one.
//!
//! What is asked of what: keys, counters, sets (a record with a map) and rows are records; a batch is a batch
//! of writes, and not one change; rows are found by a secondary index. A connection has one request under
//! way: the client opens as many as it needs.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::helpers::AEROSPIKE;
use super::java;
use super::places::{Places, on_path};
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// Aerospike.
#[derive(Clone, Copy, Debug)]
pub struct Aerospike;

const JARS: &str = include_str!("../../helpers/aerospike/pom.xml");

const INSTALL: &str = "install the server from https://aerospike.com/download (asd must be on the PATH), and \
                       apt-get install --no-install-recommends default-jdk-headless maven for its \
                       client; the lab was not yet run against a real server";

impl System for Aerospike {
    fn name(&self) -> &'static str {
        "aerospike"
    }

    fn title(&self) -> &'static str {
        "Aerospike"
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let mut candidates = on_path("asd");
        candidates.push("/usr/bin/asd".into());
        candidates.dedup();
        let mut program = places.program(self.name(), candidates, &["--version"], INSTALL)?;
        let missing =
            |reason: String| Missing { system: self.name(), reason, install: INSTALL.to_owned() };
        let java = on_path("java").into_iter().find(|path| path.is_file());
        let java = java.ok_or_else(|| missing("no java to run its client with".to_owned()))?;
        let jars =
            java::all_in(&java::jars(places, "aerospike-client-jars", JARS).map_err(missing)?);
        let client = java::client(places, "aerospike-client", AEROSPIKE, &jars).map_err(missing)?;
        program.version += " (the lab was not yet run against a real server)";
        // For `helper`, which knows no places.
        program.command.push(java.display().to_string());
        program.command.push(format!("{jars}:{}", client.display()));
        Ok(program)
    }

    fn settings(&self) -> Vec<Setting> {
        vec![
            Setting { name: "storage-engine memory", promise: Promise::None },
            Setting {
                name: "storage-engine device, flush-max-ms 1000",
                promise: Promise::Everysec,
            },
        ]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Helper
    }

    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::ScanFrom => {
                Err("records have no order: their keys are known by their hashes only".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn can_pipeline(&self) -> Result<(), String> {
        Err("a connection has one request under way at a time".to_owned())
    }

    /// Clients, the other nodes' heartbeats, and data between nodes.
    fn ports(&self) -> usize {
        3
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let Some(server) = program.command.len().checked_sub(2) else {
            return Err(format!("no way to start a server: {:?}", program.command));
        };
        let configuration = launch.directory.join("aerospike.conf");
        let mut command_line = program.command[..server].to_vec();
        command_line.extend(["--foreground".to_owned(), "--config-file".to_owned()]);
        command_line.push(configuration.display().to_string());
        command_line.extend(launch.extra.iter().cloned());
        Ok(vec![Process {
            command_line,
            files: vec![(configuration, file(launch)?)],
            ..Process::default()
        }])
    }

    fn helper(&self, program: &Program, address: SocketAddr, seed: u64) -> Result<Process, String> {
        let [.., java, class_path] = &program.command[..] else {
            return Err(format!("no way to start a client: {:?}", program.command));
        };
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        let words = [java, "-cp", class_path, "Main", &host, &port, &seed.to_string()];
        Ok(Process { command_line: words.map(str::to_owned).into(), ..Process::default() })
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        let status = info(address, "status")?;
        if status == "ok" { Ok(()) } else { Err(io::Error::new(io::ErrorKind::WouldBlock, status)) }
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for (context, question) in [
            ("service", "get-config:context=service"),
            ("namespace", "get-config:context=namespace;id=lab"),
        ] {
            for pair in info(address, question)?.split(';') {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                all.insert(format!("{context}.{name}"), value.to_owned());
            }
        }
        Ok(all)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            Capability::Nodes(_) => Err("several nodes are not set up by the lab".to_owned()),
            Capability::Snapshot => {
                Err("it has no snapshots: asbackup reads all records".to_owned())
            }
            Capability::Restart => {
                Err("a restart from its device was not yet tried with a real server".to_owned())
            }
        }
    }
}

/// A whole configuration; releases before 7 call the memory's size otherwise and are refused by it.
fn file(launch: &Launch<'_>) -> Result<String, String> {
    let [client, heartbeat, fabric] = launch.ports else {
        return Err("it needs three ports".to_owned());
    };
    let directory = launch.directory.display();
    let storage = match launch.setting.promise {
        Promise::None => "storage-engine memory {\n    data-size 4G\n  }".to_owned(),
        _ => format!(
            "storage-engine device {{\n    file {directory}/lab.data\n    filesize 8G\n    \
             flush-max-ms 1000\n  }}"
        ),
    };
    let threads = launch.io_threads;
    Ok(format!(
        "service {{
  cluster-name lab-{client}
  service-threads {threads}
  proto-fd-max 15000
  work-directory {directory}
}}
logging {{
  console {{
    context any warning
  }}
}}
network {{
  service {{
    address 127.0.0.1
    port {client}
  }}
  heartbeat {{
    mode mesh
    address 127.0.0.1
    port {heartbeat}
    interval 150
    timeout 10
  }}
  fabric {{
    address 127.0.0.1
    port {fabric}
  }}
}}
namespace lab {{
  replication-factor 1
  {storage}
}}
"
    ))
}

/// More than any answer that the lab asks for.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Asks by the info protocol: version 2, type 1, the length in six bytes, and a line; the answer is the
/// question, a tab and what was asked for.
fn info(address: SocketAddr, question: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let line = format!("{question}\n");
    let header = 2 << 56 | 1 << 48 | line.len() as u64;
    stream.write_all(&[&header.to_be_bytes(), line.as_bytes()].concat())?;
    let mut header = [0; 8];
    stream.read_exact(&mut header)?;
    let length = (u64::from_be_bytes(header) & 0xFFFF_FFFF_FFFF) as usize;
    if header[..2] != [2, 1] || length > ANSWER_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no answer of the info protocol"));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let value = answer.trim_end().strip_prefix(question).and_then(|rest| rest.strip_prefix('\t'));
    let unasked = || io::Error::new(io::ErrorKind::InvalidData, format!("answered {answer:?}"));
    value.map(str::to_owned).ok_or_else(unasked)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};
    use std::path::Path;

    use super::*;
    use crate::systems::system::Role;

    /// Answers every question with `answer` behind it.
    fn scripted(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut header = [0; 8];
                stream.read_exact(&mut header).unwrap();
                let mut question = vec![0; usize::from(header[7])];
                stream.read_exact(&mut question).unwrap();
                let question = String::from_utf8(question).unwrap();
                let line = format!("{}{answer}\n", question.trim_end());
                header[7] = line.len() as u8;
                stream.write_all(&[&header, line.as_bytes()].concat()).unwrap();
            }
        });
        address
    }

    #[test]
    fn it_is_asked_by_the_info_protocol() {
        assert!(Aerospike.ready(scripted("\tok")).is_ok());
        assert!(Aerospike.ready(scripted("\tERROR")).is_err());
        assert!(Aerospike.ready(scripted("?")).is_err());
        let all = Aerospike.effective_settings(scripted("\ta=1;b")).unwrap();
        assert_eq!(all["namespace.a"], "1");
        assert_eq!(all["service.b"], "");
    }

    #[test]
    fn each_setting_has_its_configuration() {
        for setting in Aerospike.settings() {
            let launch = Launch {
                setting,
                directory: Path::new("/data"),
                ports: &[1, 2, 3],
                io_threads: 4,
                role: Role::Single,
                extra: &[],
            };
            let text = file(&launch).unwrap();
            assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
            assert!(text.contains("port 1\n") && text.contains("service-threads 4"), "{text}");
            let on_disk = setting.promise != Promise::None;
            assert_eq!(text.contains("file /data/lab.data"), on_disk, "{text}");
        }
    }

    /// The client is compiled against the real one, also where there is no server.
    #[test]
    fn its_client_compiles() {
        let places = Places::default();
        match java::jars(&places, "aerospike-client-jars", JARS) {
            Err(reason) => eprintln!("SKIPPED: {reason}"),
            Ok(jars) => {
                java::client(&places, "aerospike-client", AEROSPIKE, &java::all_in(&jars)).unwrap();
            }
        }
    }
}
