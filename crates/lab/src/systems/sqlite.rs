//! SQLite in memory, behind a small server of the lab's own: `ladon-lab sqlite PORT`.
//!
//! SQLite is a library, so a program has to be around it, and this one answers IPROTO's EXECUTE and
//! PREPARE on one thread. Queries over many rows cost what SQLite costs; statements about one row
//! cost mostly that program and the kernel, which a program with SQLite in it would save.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use super::iproto_control::IprotoControl;
use super::program_paths::ProgramPaths;
use super::system::{
    Capability, DriverKind, Launch, Missing, Process, Program, Promise, Setting, System,
};
use crate::dialects::iproto::request::Request;
use crate::dialects::sql::iproto::IprotoSql;
use crate::dialects::sql::{Answers, Cell, Said, SqlKind, SqlProtocol, ask};
use crate::operation::OperationKind;
use crate::topology::Topology;

/// SQLite.
#[derive(Clone, Copy, Debug)]
pub struct Sqlite;

/// The subcommand of the lab's program.
pub const COMMAND: &str = "sqlite";

impl System for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn title(&self) -> &'static str {
        "SQLite in memory"
    }

    fn find(&self, places: &ProgramPaths) -> Result<Program, Missing> {
        let install = "cargo build --release -p ladon-lab";
        let path = places.first(self.name(), candidates(), install)?;
        Ok(Program {
            system: self.name(),
            label: self.name().to_owned(),
            command: vec![path.display().to_string(), COMMAND.to_owned()],
            version: format!("SQLite {}", rusqlite::version()),
            behind: None,
        })
    }

    fn settings(&self) -> Vec<Setting> {
        vec![Setting { name: ":memory:", promise: Promise::None }]
    }

    fn driver(&self) -> DriverKind {
        DriverKind::Sql
    }

    fn sql(&self) -> Option<SqlKind> {
        Some(SqlKind::Iproto)
    }

    fn can_do(&self, _: OperationKind) -> Result<(), String> {
        Err("asked in SQL only".to_owned())
    }

    fn only_in(&self) -> Option<&'static str> {
        Some("sql")
    }

    fn launch(&self, program: &Program, launch: &Launch<'_>) -> Result<Vec<Process>, String> {
        let port = vec![launch.ports[0].to_string()];
        Ok(vec![Process::new(program, port, launch.extra)])
    }

    fn ready(&self, address: SocketAddr) -> io::Result<()> {
        IprotoControl::connect(address)?.request(&Request::Ping).map(|_| ())
    }

    /// What it was compiled with.
    fn effective_settings(&self, address: SocketAddr) -> io::Result<BTreeMap<String, String>> {
        let mut socket = TcpStream::connect(address)?;
        IprotoSql.login(&mut socket)?;
        let mut request = Vec::new();
        IprotoSql.text(0, "PRAGMA compile_options", &mut request);
        ask(&IprotoSql, &mut socket, Answers::Text, &request, |said| {
            let Said::Rows { cells, .. } = said else {
                return Err(io::Error::other(format!("PRAGMA answered {said:?}")));
            };
            let option = |cell: &Cell<'_>| match cell {
                Cell::Text(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    let (name, value) = text.split_once('=').unwrap_or((&text, "yes"));
                    Some((name.to_owned(), value.to_owned()))
                }
                _ => None,
            };
            Ok(cells.iter().filter_map(option).collect())
        })?
    }

    fn can(&self, capability: Capability) -> Result<(), String> {
        match capability {
            Capability::Nodes(Topology::Single) => Ok(()),
            _ => Err("a database in memory is gone with the process".to_owned()),
        }
    }
}

/// This program; in a test, the one that lies beside the test's folder.
fn candidates() -> Vec<PathBuf> {
    let Ok(this) = std::env::current_exe() else { return Vec::new() };
    let name = "ladon-lab";
    if this.file_stem().is_some_and(|stem| stem == name) {
        return vec![this];
    }
    this.ancestors().skip(1).take(2).map(|folder| folder.join(name)).collect()
}
