//! `kill -9` under load, a restart, and a count of what is missing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{BULK_DEPTH, BULK_USERS, CellError, Stage};
use crate::dialects::Dialect;
use crate::load::driver::{Driver, LoadError};
use crate::load::stream::{Stream, Target};
use crate::results::schema::Round;
use crate::systems::system::Capability;
use crate::traffic::keyed::Survivors;
use crate::traffic::speaking::Speaking;
use crate::traffic::{Asked, World};

/// How long a server that is to be killed under load is waited for.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long new keys are written before the kill.
const BEFORE_KILL: Duration = Duration::from_millis(400);

impl Stage<'_> {
    /// Fills a server of its own with `keys` keys, writes new ones until a `kill -9`, starts it
    /// again, and counts the acknowledged keys that it lost.
    ///
    /// # Errors
    /// See [`CellError`].
    pub fn crash(
        &mut self,
        users: usize,
        keys: u32,
        value_bytes: usize,
    ) -> Result<Round, CellError> {
        const SPACE: &str = "crash";
        if let Some(instance) = &self.instance {
            instance.system.can(Capability::Restart).map_err(CellError::Cannot)?;
        }
        let asked = Asked::Insert { space: SPACE, value_bytes };
        // The stage's own server stays in use: its data must not be lost.
        let mut dialect = self.dialect_for(&asked)?;
        let mut victim = self
            .another()?
            .ok_or_else(|| CellError::Cannot("attached: not ours to kill".to_owned()))?;
        let target = Target::plain(victim.address());
        let waiting = self.bench.waiting;
        let mut world = World::new(self.next_seed());
        let fill = Asked::Fill { space: SPACE, keys, value_bytes };
        self.fill_victim(&target, &mut world, &fill)?;
        let streams = open_streams(&target, users, dialect.as_mut())?;
        let began = Instant::now();
        {
            let traffic = world.traffic(&asked, users, 1);
            let speaking = Speaking::new(dialect, traffic, users, 1);
            let mut driver = Driver::over(streams, users, waiting, speaking)?;
            let alive = AtomicBool::new(true);
            let ended = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(BEFORE_KILL);
                    victim.kill();
                    alive.store(false, Ordering::Relaxed);
                });
                driver.run_while(SILENCE_MAX, &alive)
            });
            match ended {
                // That the connections break is what was wanted.
                Ok(_) | Err(LoadError::Closed(_) | LoadError::Io(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        let restart = victim.restart()?;
        let Some(ledger) = world.ledger(SPACE) else {
            return Err(CellError::Broken("nothing was written before the kill".to_owned()));
        };
        let acknowledged = ledger.acknowledged_keys();
        let mut survivors = Survivors::new(ledger, BULK_USERS * BULK_DEPTH);
        self.look_for_survivors(&target, &mut survivors)?;
        let extra = [
            ("missing", survivors.missing as f64),
            ("acknowledged", acknowledged as f64),
            ("restart_ms", restart.as_secs_f64() * 1e3),
        ];
        let written = acknowledged.saturating_sub(u64::from(keys));
        let round = Round::new(seconds, acknowledged).with_extra(extra);
        Ok(Round { per_second: written as f64 / seconds, ..round })
    }

    fn fill_victim(
        &mut self,
        target: &Target,
        world: &mut World,
        fill: &Asked,
    ) -> Result<(), CellError> {
        let depth = if self.subject.can_pipeline().is_ok() { BULK_DEPTH } else { 1 };
        let mut dialect = self.dialect_for(fill)?;
        let streams = open_streams(target, BULK_USERS, dialect.as_mut())?;
        let traffic = world.traffic(fill, BULK_USERS, depth);
        let speaking = Speaking::new(dialect, traffic, BULK_USERS, depth);
        Driver::over(streams, BULK_USERS, self.bench.waiting, speaking)?.run_to_end()?;
        Ok(())
    }

    fn look_for_survivors(
        &mut self,
        target: &Target,
        survivors: &mut Survivors<'_>,
    ) -> Result<(), CellError> {
        let mut dialect = self.subject.dialect().map_err(CellError::Cannot)?;
        let streams = open_streams(target, BULK_USERS, dialect.as_mut())?;
        let speaking = Speaking::new(dialect, Box::new(survivors), BULK_USERS, BULK_DEPTH);
        Driver::over(streams, BULK_USERS, self.bench.waiting, speaking)?.run_to_end()?;
        Ok(())
    }
}

fn open_streams(
    target: &Target,
    count: usize,
    dialect: &mut dyn Dialect,
) -> Result<Vec<Stream>, CellError> {
    (0..count).map(|_| Stream::open(target, dialect).map_err(CellError::from)).collect()
}
