//! What the user may say on the command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::attach::Attached;
use super::error::RunError;
use super::load_tool::Tool;
use super::subject::Subject;
use crate::systems::program_paths::ProgramPaths;
use crate::systems::registry;
use crate::systems::system::{Missing, Promise};
use crate::traffic::pick::Distribution;
use crate::traffic::value::VALUE_BYTES_MIN;
use crate::work::{Scale, Work};
use crate::works::{self, BY_NAME_ONLY, QUICK};

/// Options of `ladon-lab run`.
#[derive(Args, Clone, Debug)]
pub struct RunArguments {
    /// `all` for every work but spaces, stall-more, growth, eviction and churn.
    #[arg(value_name = "all", value_parser = ["all"])]
    pub all: Option<String>,
    /// kv, counter, sets and durability within five minutes.
    #[arg(long, conflicts_with = "all")]
    pub quick: bool,
    /// Works to do, in order.
    #[arg(long, value_delimiter = ',', value_name = "WORKS", conflicts_with = "all")]
    pub work: Vec<String>,
    /// Systems to measure, in order: names as `ladon-lab doctor` lists them, or NAME@PROGRAM for a
    /// certain program. A name may come twice, to see the noise. Default: all that are found.
    #[arg(long, value_delimiter = ',')]
    pub systems: Vec<String>,
    /// A server that runs already: NAME=HOST:PORT or NAME=SCHEME://USER:PASSWORD@HOST:PORT, scheme
    /// redis, rediss (TLS), tarantool, memcached, http or https. May be repeated.
    #[arg(long, value_name = "NAME=ADDRESS")]
    pub attach: Vec<String>,
    /// A file of certificates to trust for rediss and https, instead of the system's.
    #[arg(long, value_name = "PEM")]
    pub attach_ca: Option<PathBuf>,
    /// Only what --attach names.
    #[arg(long, requires = "attach", conflicts_with = "systems")]
    pub only_attached: bool,
    /// Users, instead of each work's own numbers.
    #[arg(long, value_delimiter = ',', value_name = "NUMBERS")]
    pub clients: Vec<usize>,
    /// Minutes that the whole run may take: rounds and the seconds of each measurement follow from
    /// it if they are not given, and stores are filled with a tenth of the keys. The plan, which is
    /// printed first, and the results show the outcome. --quick: 4.2.
    #[arg(long, value_name = "MINUTES")]
    pub budget: Option<f64>,
    /// Seconds of each measurement. Default: what decides each work, or what --budget allows.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Interleaved rounds. Default: what decides each work, or what --budget allows.
    #[arg(long)]
    pub rounds: Option<u32>,
    /// Requests that each user sends at once.
    #[arg(long, value_delimiter = ',', value_name = "DEPTHS")]
    pub pipeline: Vec<usize>,
    /// Bytes of each value, at least 16.
    #[arg(long, value_delimiter = ',', value_name = "BYTES")]
    pub value_size: Vec<usize>,
    /// Keys that a store is filled with first.
    #[arg(long)]
    pub keys: Option<u32>,
    /// Which keys are asked for.
    #[arg(long, value_enum)]
    pub dist: Option<Distribution>,
    /// Requests per second of all users together, sent when they are due whatever the server does;
    /// latency counts from then. Default: each user asks again when it is answered.
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// What an acknowledged write must be worth where a work does not go through all settings:
    /// none, os, everysec or fsync. Default: each system's weakest.
    #[arg(long, value_parser = promise)]
    pub promise: Option<Promise>,
    /// What an hour of this machine costs, for the report's cost of a billion requests.
    #[arg(long, value_name = "MONEY")]
    pub price_per_hour: Option<f64>,
    /// Measure with this program instead of the lab's own driver, in the works that it can do.
    #[arg(long, value_enum)]
    pub tool: Option<Tool>,
    /// Directory for results.json and report.html.
    #[arg(long, value_name = "DIR", default_value = "target/lab/run")]
    pub out: PathBuf,
    /// Where all chance comes from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Cores of the servers. Default: the first that this process may use.
    #[arg(long, value_delimiter = ',', value_name = "CORES")]
    pub server_cores: Vec<usize>,
    /// Cores of the load generator. Default: the next one that is not the servers'.
    #[arg(long, value_delimiter = ',', value_name = "CORES")]
    pub load_cores: Vec<usize>,
    /// Threads of the load generator, each with its part of the users and of the keys. Default: as
    /// many as it has cores. One connection that all users share is one thread's in any case, and
    /// so are kills, scans, clusters, and works of one protocol.
    #[arg(long, value_name = "NUMBER")]
    pub load_threads: Option<usize>,
    /// Directory for the servers' data; its file system matters to what is synced.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    pub data_root: PathBuf,
    /// Ladon's binary. Default: the one built beside this program.
    #[arg(long, value_name = "PATH")]
    pub ladon: Option<PathBuf>,
    /// The tree that scripts/install-peers.sh made.
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
}

/// Five, with something in reserve: who finds more systems than we have, or slower ones, keeps to
/// five, too.
const QUICK_MINUTES: f64 = 4.2;

fn promise(name: &str) -> Result<Promise, String> {
    [Promise::None, Promise::Os, Promise::Everysec, Promise::Fsync]
        .into_iter()
        .find(|promise| promise.name() == name)
        .ok_or_else(|| "none, os, everysec or fsync".to_owned())
}

impl RunArguments {
    /// Where programs are looked for.
    #[must_use]
    pub fn places(&self) -> ProgramPaths {
        ProgramPaths {
            ladon: self.ladon.clone(),
            peers: self.peers.clone(),
            ..ProgramPaths::default()
        }
    }

    /// The works that were asked for.
    ///
    /// # Errors
    /// A name that is none, or nothing asked for at all.
    pub fn works(&self) -> Result<Vec<&'static Work>, RunError> {
        if self.value_size.iter().any(|&bytes| bytes < VALUE_BYTES_MIN) {
            let text = format!("--value-size: a value needs {VALUE_BYTES_MIN} bytes for its proof");
            return Err(RunError::Argument(text));
        }
        if self.clients.contains(&0) || self.pipeline.contains(&0) || self.keys == Some(0) {
            return Err(RunError::Argument("--clients, --pipeline, --keys: at least 1".into()));
        }
        if self.load_threads.is_some_and(|threads| !(1..=256).contains(&threads)) {
            return Err(RunError::Argument("--load-threads: from 1 to 256".into()));
        }
        if self.seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds < 86_400.0)) {
            return Err(RunError::Argument("--seconds: above 0 and below a day".into()));
        }
        if self.budget.is_some_and(|minutes| !(minutes > 0.0 && minutes < 10_000.0)) {
            return Err(RunError::Argument("--budget: above 0 and below a week".into()));
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate < 1e9)) || self.rounds == Some(0) {
            return Err(RunError::Argument("--rate and --rounds: above 0".into()));
        }
        if self.price_per_hour.is_some_and(|price| !(price > 0.0 && price.is_finite())) {
            return Err(RunError::Argument("--price-per-hour: above 0".into()));
        }
        if self.all.is_some() {
            let in_all = |work: &&Work| !BY_NAME_ONLY.contains(&work.name);
            return Ok(works::ALL.iter().filter(in_all).collect());
        }
        let names: Vec<&str> = match (&self.work[..], self.quick) {
            ([], true) => QUICK.to_vec(),
            ([], false) => {
                let text = format!(
                    "say --quick, all, or --work with some of {}",
                    works::ALL.iter().map(|work| work.name).collect::<Vec<_>>().join(", ")
                );
                return Err(RunError::Argument(text));
            }
            (names, _) => names.iter().map(String::as_str).collect(),
        };
        let find = |name: &&str| {
            works::by_name(name).ok_or_else(|| {
                let known: Vec<&str> = works::ALL.iter().map(|work| work.name).collect();
                RunError::Argument(format!("unknown work `{name}`; known: {}", known.join(", ")))
            })
        };
        let repeated =
            names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
        if let Some((_, name)) = repeated {
            // Its rounds would go into one work's cells twice.
            return Err(RunError::Argument(format!("--work: {name} is listed twice")));
        }
        names.iter().map(find).collect()
    }

    /// The systems to measure, and those that are not here.
    ///
    /// # Errors
    /// A name or an address that is none.
    pub fn subjects(&self) -> Result<(Vec<Subject>, Vec<Missing>), RunError> {
        let places = self.places();
        let (found, missing) = if self.only_attached {
            (Vec::new(), Vec::new())
        } else if self.systems.is_empty() {
            registry::everything(&places)
        } else {
            registry::named(&self.systems, &places)
                .map_err(|error| RunError::Argument(error.to_string()))?
        };
        let mut subjects: Vec<Subject> =
            found.into_iter().map(|found| Subject::Found(Box::new(found))).collect();
        for text in &self.attach {
            let mut attached = Attached::parse(text, self.attach_ca.as_deref())
                .map_err(|reason| RunError::Argument(format!("--attach {reason}")))?;
            if subjects.iter().any(|subject| subject.label() == attached.name) {
                let text = format!("--attach: {} is another system's name", attached.name);
                return Err(RunError::Argument(text));
            }
            attached.ask();
            subjects.push(Subject::Attached(Box::new(attached)));
        }
        Ok((subjects, missing))
    }

    /// Seconds that the run may take, if there is a limit.
    #[must_use]
    pub fn budget_seconds(&self) -> Option<f64> {
        let minutes = self.budget.or(self.quick.then_some(QUICK_MINUTES));
        minutes.map(|minutes| minutes * 60.0)
    }

    /// What was said of the load, option by option: figures of other loads are not to be mixed with
    /// these.
    #[must_use]
    pub fn load(&self) -> BTreeMap<String, String> {
        let listed = |values: &[usize]| {
            let words: Vec<String> = values.iter().map(ToString::to_string).collect();
            (!words.is_empty()).then(|| words.join(","))
        };
        let value = |name: Option<clap::builder::PossibleValue>| {
            name.map(|value| value.get_name().to_owned())
        };
        let said = [
            ("--clients", listed(&self.clients)),
            ("--pipeline", listed(&self.pipeline)),
            ("--value-size", listed(&self.value_size)),
            ("--keys", self.keys.map(|keys| keys.to_string())),
            ("--dist", value(self.dist.and_then(|dist| dist.to_possible_value()))),
            ("--rate", self.rate.map(|rate| rate.to_string())),
            ("--load-threads", self.load_threads.map(|threads| threads.to_string())),
            // Whose figures these are has a version, too.
            (
                "--tool",
                self.tool.map(|tool| {
                    let version = tool.version().unwrap_or_else(|| "not found".to_owned());
                    format!("{} ({version})", tool.program())
                }),
            ),
        ];
        said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// What was said of sizes.
    #[must_use]
    pub fn scale(&self, connections_max: usize, load_threads: usize, server_cores: usize) -> Scale {
        Scale {
            small: self.budget_seconds().is_some(),
            clients: self.clients.clone(),
            pipeline: self.pipeline.clone(),
            value_bytes: self.value_size.clone(),
            keys: self.keys,
            distribution: self.dist,
            connections_max,
            load_threads,
            server_cores,
        }
    }
}
