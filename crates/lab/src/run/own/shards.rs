//! One server on all cores against as many servers on one core each.

use std::time::Duration;

use crate::load::driver::Driver;
use crate::load::stream::{Stream, Target};
use crate::run::cell::CellError;
use crate::run::stage::{BULK_DEPTH, BULK_USERS, Stage};
use crate::run::subject::Subject;
use crate::run::watch::watch;
use crate::systems::cleanup;
use crate::systems::instance::{Instance, Want};
use crate::traffic::keyed::Deed;
use crate::traffic::several::Several;
use crate::traffic::speaking::Speaking;
use crate::traffic::{Asked, World};
use crate::work::Phase;
use crate::works::pipeline::{SHARD_DEPTHS, SHARDS};

const VALUE_BYTES: usize = 64;
const SPACE: &str = "shard";

/// Servers that load nothing are up soon.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the servers and measures each of [`SHARDS`] at each depth.
pub(super) fn run(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    let Subject::Found(found) = stage.subject else {
        return Err(CellError::Cannot("attached: the lab cannot start shards of it".to_owned()));
    };
    let Some(own) = &stage.instance else {
        return Err(CellError::Broken("not started".to_owned()));
    };
    let (bench, setting) = (stage.bench, own.want.setting);
    let cores = &bench.cores.server;
    // As many as there are cores where one would use one of them; else one on all.
    let places: Vec<Vec<usize>> = if found.system.commands_on_one_core() {
        cores.iter().map(|&core| vec![core]).collect()
    } else {
        vec![cores.clone()]
    };
    let start = |cores: &Vec<usize>| {
        let want = Want { io_threads: cores.len(), ..Want::new(setting) };
        Instance::start(found, &want, &bench.data_root, cores, PATIENCE)
    };
    let servers = places.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let pids: Vec<u32> = servers.iter().flat_map(Instance::pids).collect();
    let mut stores =
        Stores { stage, servers: &servers, worlds: World::shared_by(servers.len(), bench.seed) };
    let keys = bench.scale.keys_or(1_000_000);
    let fill = Asked::Fill { space: SPACE, keys, value_bytes: VALUE_BYTES };
    let mut driver = stores.driver(&fill, BULK_USERS.max(servers.len()), BULK_DEPTH)?;
    driver.run_while(Duration::from_secs(86_400), cleanup::go_on())?;
    drop(driver);
    let users = bench.scale.clients_or(&[50]).first().copied().unwrap_or(50).max(servers.len());
    let distribution = bench.scale.distribution.unwrap_or_default();
    for (name, deed) in SHARDS.into_iter().zip([Deed::Write, Deed::Read]) {
        for depth in SHARD_DEPTHS {
            let asked = Asked::Keyed { space: SPACE, mix: vec![(100, deed)], distribution };
            let phase = Phase::new(name, users, asked).depth(depth);
            let driver = stores.driver(&phase.asked, users, depth)?;
            let mut round = watch(bench, bench.warm_up(), &pids, 1, driver)?;
            round.extra.insert("shards".to_owned(), servers.len() as f64);
            stores.stage.put(name, Some(depth as f64), round);
        }
    }
    Ok(())
}

/// The servers, and what each was told.
struct Stores<'a, 'b> {
    stage: &'a mut Stage<'b>,
    servers: &'a [Instance],
    worlds: Vec<World>,
}

impl Stores<'_, '_> {
    /// `users` users in all, each of one server: whose keys are where is known to the client, as
    /// with client-side sharding, and every batch is one server's.
    fn driver(
        &mut self,
        asked: &Asked,
        users: usize,
        depth: usize,
    ) -> Result<Driver<Several<'_>>, CellError> {
        let count = self.servers.len();
        let each = users.div_ceil(count);
        let mut streams = Vec::new();
        for number in 0..users {
            let target = Target::plain(self.servers[number % count].address());
            let mut dialect = self.stage.dialect_for(asked)?;
            streams.push(Stream::open(&target, dialect.as_mut())?);
        }
        let mut stores = Vec::new();
        for world in &mut self.worlds {
            let dialect = self.stage.dialect_for(asked)?;
            stores.push(Speaking::new(dialect, world.traffic(asked, each, depth), each, depth));
        }
        let waiting = self.stage.bench.waiting;
        Ok(Driver::over(streams, users, waiting, Several::new(stores))?)
    }
}
