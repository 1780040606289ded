//! Hazelcast: one member of a grid, in Java, asked through the memcached protocol that it serves.
//!
//! Its own client is a Java library. The lab does not drive it yet, so what only that client can ask
//! for (multimaps, atomic counters, batches) stays empty with this reason. What is measured, keys and
//! values, goes through its map store like any other request, but for the client's own work.
//!
//! The jar comes from Maven Central, fetched once per user by Maven's own plugin.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::helpers::{self, Step};
use super::memcached;
use super::places::{self, Places, on_path};
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System, Topology,
};
use crate::operation::OperationKind;

/// Hazelcast.
#[derive(Clone, Copy, Debug)]
pub struct Hazelcast;

/// The newest release that Java 11 to 21 run.
const RELEASE: &str = "5.5.0";
/// A certain release of the plugin, so that a build is the same tomorrow.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy";

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

impl System for Hazelcast {
    fn name(&self) -> &'static str {
        "hazelcast"
    }

    fn title(&self) -> &'static str {
        "Hazelcast (memcached protocol)"
    }

    fn find(&self, places: &Places) -> Result<Program, Missing> {
        let install =
            "apt-get install default-jdk-headless maven (the lab fetches the jar by itself)";
        let missing =
            |reason: String| Missing { system: self.name(), reason, install: install.to_owned() };
        let java = places.program(self.name(), on_path("java"), &["-version"], install)?;
        let jar = jar(places).map_err(missing)?;
        let mut command = java.command;
        command.extend(OPENED.map(str::to_owned));
        command.extend(["-cp".to_owned(), jar.display().to_string()]);
        let version = format!("Hazelcast {RELEASE}, {}", java.version);
        Ok(Program { command, version, ..java })
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: "memory only", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::MemcachedText
    }

    fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        match kind {
            OperationKind::Set | OperationKind::Get | OperationKind::Delete => Ok(()),
            other => Err(format!(
                "`{other}` is only for Hazelcast's own Java client, which the lab does not drive yet"
            )),
        }
    }

    /// Its partitions have threads of their own: a get may overtake the set before it.
    fn can_pipeline(&self) -> Result<(), String> {
        Err("requests of one connection overtake one another on its memcached port".to_owned())
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
        process.files = vec![(configuration, xml(launch.ports[0]))];
        Ok(vec![process])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        memcached::ask(address, "version\r\n", "VERSION ").map(|_| ())
    }

    /// It tells none to a client; the configuration is this file's, and Java's options stand in the
    /// command line.
    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        Ok([("hazelcast.xml".to_owned(), xml(address.port()))].into())
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            Capability::Nodes(_) => Err("several members are not set up by the lab yet".to_owned()),
            Capability::Snapshot => Err("no snapshots in the open edition".to_owned()),
            Capability::Restart => {
                Err("nothing is kept over a restart in the open edition".to_owned())
            }
        }
    }
}

fn jar(places: &Places) -> Result<PathBuf, String> {
    let maven = on_path("mvn").into_iter().find(|path| path.is_file());
    let maven = maven.ok_or("no Maven to fetch its jar with")?;
    let step: Step = vec![
        maven.display().to_string(),
        "--batch-mode".to_owned(),
        "--quiet".to_owned(),
        PLUGIN.to_owned(),
        format!("-Dartifact=com.hazelcast:hazelcast:{RELEASE}"),
        "-DoutputDirectory=.".to_owned(),
    ];
    let folder = helpers::built(places, "hazelcast", &[], &[step])?;
    places::first_file(&folder.join(format!("hazelcast-{RELEASE}.jar")))
}

/// One member that joins nobody and serves memcached's protocol.
fn xml(port: u16) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<hazelcast xmlns="http://www.hazelcast.com/schema/config">
  <cluster-name>lab-{port}</cluster-name>
  <properties><property name="hazelcast.phone.home.enabled">false</property></properties>
  <network>
    <port auto-increment="false">{port}</port>
    <join><auto-detection enabled="false"/><multicast enabled="false"/></join>
    <interfaces enabled="true"><interface>127.0.0.1</interface></interfaces>
    <memcache-protocol enabled="true"/>
  </network>
</hazelcast>
"#
    )
}
