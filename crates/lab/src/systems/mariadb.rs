//! MariaDB with its MEMORY engine, which keeps tables in memory alone and locks whole tables.
//!
//! Its tables have trees as primary keys, as the others' have; its own default is a hash, which has
//! no ranges. InnoDB, the binary log and the performance schema are off: nothing of them is asked.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use super::program_paths::{ProgramPaths, on_path};
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};
use crate::dialects::sql::mysql::{self, DATABASE, MySql};
use crate::dialects::sql::{Answers, Cell, Said, SqlKind, SqlProtocol, ask};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// MariaDB.
#[derive(Clone, Copy, Debug)]
pub struct MariaDb;

const INSTALL: &str = "RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-server";

/// What no work here reaches.
const TABLE_BYTES_MAX: &str = "4G";
const CONNECTIONS_MAX: &str = "10000";

impl System for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn title(&self) -> &'static str {
        "MariaDB MEMORY"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let mut candidates = on_path("mariadbd");
        candidates.push(PathBuf::from("/usr/sbin/mariadbd"));
        places.program(self.name(), candidates, &["--version"], INSTALL)
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: "MEMORY engine", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Sql
    }

    fn sql(&self) -> Option<SqlKind> {
        Some(SqlKind::MySql)
    }

    fn can_do(&self, _: OperationKind) -> Result<(), String> {
        Err("asked in SQL only".to_owned())
    }

    fn can_pipeline(&self) -> Result<(), String> {
        Err("its protocol has one statement of a connection under way".to_owned())
    }

    fn only_in(&self) -> Option<&'static str> {
        Some("sql")
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let directory = launch.directory.display();
        let mut arguments: Vec<String> = [
            "--no-defaults",
            "--skip-grant-tables",
            "--bind-address=127.0.0.1",
            "--default-storage-engine=MEMORY",
            "--skip-innodb",
            "--skip-log-bin",
            "--performance-schema=OFF",
            "--query-cache-type=0",
        ]
        .map(str::to_owned)
        .into();
        arguments.extend([
            format!("--port={}", launch.ports[0]),
            format!("--datadir={directory}"),
            format!("--socket={directory}/socket"),
            format!("--pid-file={directory}/pid"),
            format!("--max-heap-table-size={TABLE_BYTES_MAX}"),
            format!("--max-connections={CONNECTIONS_MAX}"),
        ]);
        if nix::unistd::geteuid().is_root() {
            // Else it does not start.
            arguments.push("--user=root".to_owned());
        }
        Ok(vec![Process::new(program, arguments, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        open(address).map(|_| ())
    }

    fn join(&self, nodes: &[SocketAddr], topology: Topology) -> Result<(), String> {
        self.can(Capability::Nodes(topology))?;
        let make = format!("CREATE DATABASE IF NOT EXISTS {DATABASE}");
        let made = query(nodes[0], &make, |said| match said {
            Said::Changed(_) => Ok(()),
            other => Err(format!("{make}: {other:?}")),
        });
        made.map_err(|error| format!("{make}: {error}"))?
    }

    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        query(address, "SHOW GLOBAL VARIABLES", |said| {
            let Said::Rows { columns: 2, cells } = said else {
                return Err(io::Error::other(format!("SHOW VARIABLES answered {said:?}")));
            };
            let text = |cell: &Cell<'_>| match cell {
                Cell::Text(text) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            };
            Ok(cells.chunks(2).map(|row| (text(&row[0]), text(&row[1]))).collect())
        })?
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            _ => Err("tables of the MEMORY engine are gone with the process".to_owned()),
        }
    }
}

fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    mysql::enter(&mut socket)?;
    Ok(socket)
}

fn query<T>(address: SocketAddr, text: &str, see: impl FnOnce(&Said<'_>) -> T) -> io::Result<T> {
    let mut request = Vec::new();
    MySql.text(0, text, &mut request);
    ask(&MySql, &mut open(address)?, Answers::Text, &request, see)
}
