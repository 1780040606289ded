//! What all probes share: where systems are, which cores they get, where results go, and the record
//! that lets somebody repeat a run.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::WorkError;
use crate::load::data::Data;
use crate::load::driver::{Driver, LoadError, Waiting};
use crate::load::question::{Asking, Question};
use crate::load::workload::{Mix, Strings};
use crate::measure::cores::{Cores, pin_this_thread};
use crate::measure::machine::Machine;
use crate::report::file;
use crate::systems::arguments::Setup;
use crate::systems::find::{self, Places, Program};
use crate::systems::server::Server;
use crate::systems::{Kind, Persistence};

/// Options of every work.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Common {
    /// Systems to measure, in order: ladon, redis, valkey, redis8, or NAME@PROGRAM for a certain
    /// program. A name may come twice, to see the noise. Default: all that are found.
    #[arg(long, value_delimiter = ',')]
    pub systems: Vec<String>,
    /// Ladon's binary. Default: the one built beside this program.
    #[arg(long, value_name = "PATH")]
    pub ladon: Option<PathBuf>,
    /// A further argument for Ladon's command line; may be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub ladon_argument: Vec<String>,
    /// The tree that scripts/install-peers.sh made.
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// Cores of the server. Default: the first that this process may use.
    #[arg(long, value_delimiter = ',', value_name = "CORES")]
    pub server_cores: Vec<usize>,
    /// Cores of the load generator. Default: the one after the server's.
    #[arg(long, value_delimiter = ',', value_name = "CORES")]
    pub load_cores: Vec<usize>,
    /// Directory for the servers' data directories; its file system matters to fsync figures.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    pub data_root: PathBuf,
    /// Directory for the results.
    #[arg(long, value_name = "DIR", default_value = "target/lab")]
    pub out: PathBuf,
    /// File for the JSON, instead of one in the results' directory.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A work's surroundings, made from [`Common`].
#[derive(Debug)]
pub struct Bench {
    /// The systems to measure.
    pub programs: Vec<Program>,
    /// Who runs where.
    pub cores: Cores,
    /// How the load generator waits.
    pub waiting: Waiting,
    /// The machine.
    pub machine: Machine,
    common: Common,
}

/// The part of a work's JSON that makes it repeatable.
#[derive(Debug, Serialize)]
pub struct Record<'a, A, R> {
    work: &'static str,
    lab_version: &'static str,
    unix_seconds: u64,
    command_line: Vec<String>,
    machine: &'a Machine,
    cores: &'a Cores,
    cores_shared: bool,
    load_waiting: Waiting,
    systems: &'a [Program],
    arguments: &'a A,
    results: R,
}

/// Connections to load and read all: as many, and as deep, as fill a server's time.
pub const CLIENTS: usize = 16;
/// Pipeline of the same.
const DEPTH: usize = 64;

/// The same where a request carries many elements.
const REQUESTS_DEPTH: usize = 16;

/// Servers that recover a data set or wait for a slow disk need long.
pub const PATIENCE: Duration = Duration::from_secs(300);

impl Bench {
    /// Finds the systems and pins the calling thread, which will be the load generator.
    /// `server_cores` is how many cores a server gets where the user does not say which.
    ///
    /// # Errors
    /// When a system that was asked for is missing, none is found, or pinning is refused.
    pub fn prepare(common: &Common, server_cores: usize) -> Result<Self, WorkError> {
        let places = Places {
            ladon: common.ladon.clone(),
            peers: common.peers.clone(),
            ..Places::default()
        };
        let programs = if common.systems.is_empty() {
            let (found, missing) = find::all(&places);
            for error in missing {
                eprintln!("left out: {error}");
            }
            found
        } else {
            find::named(&common.systems, &places)?
        };
        if programs.is_empty() {
            return Err(WorkError::Argument("no system to measure was found".into()));
        }
        let mut cores = Cores::with_server_cores(server_cores)?;
        if !common.server_cores.is_empty() {
            cores.server.clone_from(&common.server_cores);
        }
        if !common.load_cores.is_empty() {
            cores.load.clone_from(&common.load_cores);
        }
        let machine = Machine::inspect(&common.data_root);
        pin_this_thread(&cores.load)?;
        let waiting = if cores.shared() { Waiting::Sleep } else { Waiting::Spin };
        Ok(Self { programs, cores, waiting, machine, common: common.clone() })
    }

    /// What a reader needs to know before the figures.
    #[must_use]
    pub fn heading(&self) -> String {
        let machine = &self.machine;
        let mut text = format!(
            "{} ({} cores{}), {} GiB, {}\ndata on {}, huge pages {}\n",
            machine.cpu_model,
            machine.cores,
            if machine.virtual_machine { ", virtual" } else { "" },
            machine.memory_bytes.div_ceil(1 << 30),
            machine.kernel,
            machine.data_filesystem,
            machine.huge_pages,
        );
        text +=
            &format!("server on core {:?}, load on core {:?}", self.cores.server, self.cores.load);
        if self.cores.shared() {
            text += ": THEY SHARE A CORE, so latency and throughput are those of both together";
        }
        text.push('\n');
        if machine.load_average > 0.5 {
            text += &format!(
                "the machine was not idle (load average {:.1}): trust ratios, not figures\n",
                machine.load_average
            );
        }
        for program in &self.programs {
            text += &format!("{}: {}\n", program.label, program.version);
        }
        text
    }

    /// Starts a server of `program` with one IO thread per core of the server's.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start(&self, program: &Program, setup: &Setup) -> Result<Server, WorkError> {
        let mut setup = setup.clone();
        if program.kind == Kind::Ladon {
            setup.extra.extend(self.common.ladon_argument.iter().cloned());
        }
        Ok(Server::start(program, &setup, &self.common.data_root, &self.cores.server, PATIENCE)?)
    }

    /// Gives `server` all of `data`, and checks that it says that it has it.
    ///
    /// # Errors
    /// A wrong answer, or another number of keys afterwards.
    pub fn load(&self, server: &Server, data: &mut Data) -> Result<(), WorkError> {
        self.load_until(server, data, data.keys())
    }

    /// The same with only the first `until` keys.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_until(
        &self,
        server: &Server,
        data: &mut Data,
        until: u32,
    ) -> Result<(), WorkError> {
        let keys = i64::from(until);
        let failed = |source| WorkError::Load { system: server.label.clone(), source };
        let load = Strings::new(data, Mix::Load { until }, DEPTH, 0);
        let mut driver =
            Driver::connect(server.address, CLIENTS, self.waiting, load).map_err(failed)?;
        driver.run_to_end().map_err(failed)?;
        let size = server.control()?.integer(&["DBSIZE"])?;
        if size != keys {
            let what = format!("holds {size} keys after {keys} were set");
            return Err(WorkError::Unexpected { system: server.label.clone(), what });
        }
        Ok(())
    }

    /// Reads every key once, so that a server that lost one does not get a figure.
    ///
    /// # Errors
    /// A wrong answer.
    pub fn read_all(&self, server: &Server, data: &mut Data) -> Result<(), WorkError> {
        let failed = failed_on(server);
        let gets = Strings::new(data, Mix::ReadAll, DEPTH, 0);
        let mut driver =
            Driver::connect(server.address, CLIENTS, self.waiting, gets).map_err(&failed)?;
        driver.run_to_end().map_err(&failed)?;
        Ok(())
    }

    /// Asks `question` about everything that it can be about, once, in order, over `clients`
    /// connections.
    ///
    /// # Errors
    /// A wrong answer.
    pub fn ask_all(
        &self,
        server: &Server,
        clients: usize,
        question: impl Question,
    ) -> Result<(), WorkError> {
        let failed = failed_on(server);
        let asking = Asking::all_in_order(question, REQUESTS_DEPTH);
        let mut driver =
            Driver::connect(server.address, clients, self.waiting, asking).map_err(&failed)?;
        driver.run_to_end().map_err(&failed)?;
        Ok(())
    }

    /// Prints `text` and writes it and the JSON.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn finish<A: Serialize, R: Serialize>(
        &self,
        work: &'static str,
        arguments: &A,
        results: R,
        text: &str,
    ) -> Result<(), WorkError> {
        let text = format!("{}\n{text}", self.heading());
        print!("{text}");
        let record = Record {
            work,
            lab_version: env!("CARGO_PKG_VERSION"),
            unix_seconds: file::unix_seconds(),
            command_line: std::env::args().collect(),
            machine: &self.machine,
            cores: &self.cores,
            cores_shared: self.cores.shared(),
            load_waiting: self.waiting,
            systems: &self.programs,
            arguments,
            results,
        };
        let path =
            file::write(work, &self.common.out, self.common.json.as_deref(), &record, &text)?;
        println!("\nwritten: {}", path.display());
        Ok(())
    }
}

/// A load's failure with the server's name.
pub fn failed_on(server: &Server) -> impl Fn(LoadError) -> WorkError + '_ {
    |source| WorkError::Load { system: server.label.clone(), source }
}

/// The persistences to go through, by default only the first.
#[must_use]
pub fn persistences(asked: &[Persistence]) -> Vec<Persistence> {
    if asked.is_empty() { vec![Persistence::None] } else { asked.to_vec() }
}
