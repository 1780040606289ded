//! Hazelcast: one member of a grid or two, in Java, loaded through its own Java client. Of two, each owns
//! half of the keys and has a copy of the others, which is made before a write is answered; the client
//! asks the owner.
//!
//! The member has the client's classes ([`HAZELCAST`]) too, as an entry processor runs where the
//! data lies.
//!
//! What is asked of what: keys and values of an `IMap` (batches by `putAll`), counters by an entry
//! processor on an `IMap` (`IAtomicLong` is of the licensed edition), sets of a `MultiMap`, rows of
//! an `IMap` with a hash index that a predicate finds by.
//!
use std::collections::BTreeMap;
use std::io;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::helpers::HAZELCAST;
use super::java;
use super::program_paths::ProgramPaths;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Role, Setting, System,
};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// Hazelcast.
#[derive(Clone, Copy, Debug)]
pub struct Hazelcast;

/// What Maven fetches.
const JARS: &str = include_str!("../../helpers/hazelcast/pom.xml");

/// Two members find each other within this time.
const JOINS_WITHIN: Duration = Duration::from_secs(60);

/// What the modules of Java must open to it, by its documentation ("Running in Modular Java").
const OPENED: [&str; 7] = [
    "--add-modules=java.se",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.management/sun.management=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
    "-Djava.net.preferIPv4Stack=true",
];

/// How the client is used, for the report.
const ASKED: [(&str, &str); 6] = [
    ("connections", "one client for all users: it has one connection to the member"),
    ("keys", "IMap.setAsync, getAsync, deleteAsync"),
    ("batches", "IMap.putAllAsync: a message for each partition, which is not one change"),
    ("counters", "IMap.submitToKey with an entry processor; IAtomicLong needs a license"),
    ("sets", "MultiMap.put, get (calls that block: a thread for each user)"),
    ("rows", "IMap.setAsync; entrySet by a predicate on a hash index (blocks)"),
];

impl System for Hazelcast {
    fn name(&self) -> &'static str {
        "hazelcast"
    }

    fn title(&self) -> &'static str {
        "Hazelcast"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let (java, missing) = java::found(self.name(), places)?;
        let jars = java::all_in(&java::jars(places, "hazelcast", JARS).map_err(missing)?);
        let classes = java::client(places, "hazelcast-client", HAZELCAST, &jars);
        let mut command = java.command;
        command.extend(OPENED.map(str::to_owned));
        command.push("-cp".to_owned());
        command.push(format!("{jars}:{}", classes.map_err(missing)?.display()));
        let version = format!("Hazelcast {}, {}", java::release(JARS, "hazelcast"), java.version);
        Ok(Program { command, version, ..java })
    }

    fn settings(&self) -> Vec<Setting> {
        java::memory_only()
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Helper
    }

    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        use OperationKind as Kind;
        match kind {
            Kind::Set | Kind::Get | Kind::Delete | Kind::SetMany => Ok(()),
            Kind::Add | Kind::AddMember | Kind::Members => Ok(()),
            Kind::InsertRow | Kind::FindByGroup => Ok(()),
            Kind::ScanFrom => {
                Err("a map has no order of keys; a paging predicate sorts every key \
                                   that is left, on each request"
                    .to_owned())
            }
            Kind::Ping | Kind::GetByCall | Kind::InsertTuple => {
                Err("asked only in IPROTO".to_owned())
            }
        }
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let configuration = launch.directory.join("hazelcast.xml");
        let mut process = Process::new(program, Vec::new(), &[]);
        let class_path = process.command_line.len() - 2;
        // Options of Java go before the class path, the class and its arguments behind it.
        let mut options = vec![
            format!("-Dhazelcast.config={}", configuration.display()),
            format!("-Dhazelcast.io.input.thread.count={}", launch.io_threads),
            format!("-Dhazelcast.io.output.thread.count={}", launch.io_threads),
        ];
        options.extend(launch.extra.iter().cloned());
        process.command_line.splice(class_path..class_path, options);
        process.command_line.push("com.hazelcast.core.server.HazelcastMemberStarter".to_owned());
        let own = launch.ports[0];
        let first = match launch.role {
            Role::Replica { of } => of.port(),
            _ => own,
        };
        process.files = vec![(configuration, xml(own, first))];
        Ok(vec![process])
    }

    fn helper(&self, program: &Program, address: SocketAddr, seed: u64) -> Result<Process, String> {
        let (cluster, seed) = (cluster(), seed.to_string());
        let arguments = vec!["Main".to_owned(), address.to_string(), cluster, seed];
        Ok(Process::new(program, arguments, &[]))
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        let health = health(address)?;
        if health.contains("\"nodeState\":\"ACTIVE\"") {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, health))
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        self.can(Capability::Nodes(topology))?;
        let wanted = format!("\"clusterSize\":{}", nodes.len());
        let is_one = |node: &SocketAddr| {
            let health = health(*node).map_err(|error| error.to_string())?;
            // A copy of each key has been made when nothing is on its way to another member.
            let is_whole = health.contains("\"migrationQueueSize\":0");
            if health.contains(&wanted) && is_whole { Ok(()) } else { Err(health) }
        };
        let began = Instant::now();
        loop {
            match nodes.iter().try_for_each(is_one) {
                Ok(()) => return Ok(()),
                Err(told) if began.elapsed() > JOINS_WITHIN => {
                    return Err(format!("the members are not one grid: {told}"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// It tells none to a client; the configuration is this file's, Java's options stand in the
    /// command line, and the rest is what the lab's program asks of it.
    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let mut all: BTreeMap<String, String> =
            ASKED.map(|(what, how)| (format!("client: {what}"), how.to_owned())).into();
        all.insert("hazelcast.xml".to_owned(), xml(address.port(), address.port()));
        Ok(all)
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single | Topology::Replica) => Ok(()),
            Capability::Nodes(Topology::MasterMaster) => {
                Err("no master-master replication in the open edition (WAN replication)".to_owned())
            }
            Capability::Nodes(Topology::Cluster { .. }) => {
                Err("more than two members are not set up by the lab".to_owned())
            }
            Capability::Snapshot => Err("no snapshots in the open edition".to_owned()),
            Capability::Restart => {
                Err("nothing is kept over a restart in the open edition".to_owned())
            }
        }
    }
}

/// Members and clients of one name belong together: no other run's of this machine. Members of this run
/// know each other by their addresses alone.
fn cluster() -> String {
    format!("lab-{}", std::process::id())
}

/// What its health check over HTTP says, which is there to ask whether a member is up.
fn health(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(stream, "GET /hazelcast/health HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")?;
    let mut reply = Vec::new();
    let mut piece = [0; 4096];
    // Some versions keep the connection: the whole answer is short and ends with its object.
    while !reply.ends_with(b"}") {
        match stream.read(&mut piece)? {
            0 => break,
            count => reply.extend_from_slice(&piece[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

/// A member that joins the one at the port `first`, or nobody if that is itself.
fn xml(port: u16, first: u16) -> String {
    let cluster = cluster();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<hazelcast xmlns="http://www.hazelcast.com/schema/config">
  <cluster-name>{cluster}</cluster-name>
  <properties><property name="hazelcast.phone.home.enabled">false</property></properties>
  <network>
    <port auto-increment="false">{port}</port>
    <join>
      <auto-detection enabled="false"/><multicast enabled="false"/>
      <tcp-ip enabled="true"><member>127.0.0.1:{first}</member></tcp-ip>
    </join>
    <interfaces enabled="true"><interface>127.0.0.1</interface></interfaces>
    <rest-api enabled="true"><endpoint-group name="HEALTH_CHECK" enabled="true"/></rest-api>
  </network>
  <map name="rows">
    <indexes>
      <index type="HASH"><attributes><attribute>group</attribute></attributes></index>
    </indexes>
  </map>
  <multimap name="sets"><value-collection-type>SET</value-collection-type></multimap>
  <serialization>
    <data-serializable-factories>
      <data-serializable-factory factory-id="1">Add$Factory</data-serializable-factory>
    </data-serializable-factories>
  </serialization>
</hazelcast>
"#
    )
}
