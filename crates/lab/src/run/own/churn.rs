//! Resident memory of a server whose data change.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::eviction::{limit, number};
use crate::load::random::Random;
use crate::operation::OperationKind;
use crate::results::schema::Round;
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::systems::cleanup;
use crate::systems::control::{Control, Reply};
use crate::works::churn::{Change, ROWS, Sizes, sizes};

/// Requests that go out together.
const BATCH: usize = 50;
/// Lengths of values, one after the other.
const SHIFTING: [usize; 6] = [100, 700, 3000, 8000, 300, 1500];
/// The shortest value of a random length, and the longest.
const VALUE_BYTES: (usize, usize) = (20, 8000);
const UNREAD_BYTES: usize = 100_000;

/// Before the first change.
const EMPTY: Duration = Duration::from_millis(500);
/// From the last change to the first look.
const SOON: Duration = Duration::from_millis(1500);
/// From there to the last look: so many measurements' lengths.
const SETTLING: u32 = 3;

/// Measures the row `part` on a server of its own.
pub(super) fn run(stage: &mut Stage<'_>, part: &str) -> Result<(), CellError> {
    stage.can_do(OperationKind::Set)?;
    let row = ROWS.iter().find(|(name, ..)| name[0] == part);
    let &(_, change, _) = row.ok_or_else(|| CellError::Broken(format!("no row {part}")))?;
    let round = stage.on_another(|stage| changed(stage, change))?;
    stage.put(part, None, round);
    Ok(())
}

fn changed(stage: &mut Stage<'_>, change: Change) -> Result<Round, CellError> {
    let gone = || CellError::Broken("its processes are not seen".to_owned());
    let mut changes = Changes {
        control: Control::connect(stage.target.address)?,
        random: Random::new(stage.bench.seed),
        sizes: sizes(&stage.bench.scale),
    };
    std::thread::sleep(EMPTY);
    let empty = stage.usage().ok_or_else(gone)?.resident_bytes;
    let began = Instant::now();
    let done = match change {
        Change::Tenth => changes.tenth()?,
        Change::Shifting => changes.shifting()?,
        Change::Random => changes.random()?,
        Change::Huge => changes.huge()?,
        Change::Flooder => changes.flood(stage)?,
    };
    let seconds = began.elapsed().as_secs_f64();
    let peak = stage.usage().ok_or_else(gone)?.resident_peak_bytes;
    std::thread::sleep(SOON);
    let soon = stage.usage().ok_or_else(gone)?.resident_bytes;
    std::thread::sleep(stage.bench.measured() * SETTLING);
    let settled = stage.usage().ok_or_else(gone)?.resident_bytes;
    let Changes { control, sizes, .. } = &mut changes;
    let extra = [
        ("settled_bytes", settled as f64),
        ("peak_bytes", peak as f64),
        ("soon_bytes", soon as f64),
        ("used_bytes", number(control, "memory", "used_memory")?),
        ("empty_bytes", empty as f64),
        ("reported_ratio", number(control, "memory", "mem_fragmentation_ratio")?),
        ("peak_of_limit", peak as f64 / sizes.maxmemory as f64),
        ("keys_held", control.integer(&["DBSIZE"])? as f64),
    ];
    let round = Round { rss_bytes: Some(settled), ..Round::new(seconds, done) };
    Ok(round.with_extra(extra))
}

struct Changes {
    control: Control,
    random: Random,
    sizes: Sizes,
}

/// Each returns how many requests it made.
impl Changes {
    fn tenth(&mut self) -> Result<u64, CellError> {
        let keys = self.sizes.keys;
        self.set_random(keys)?;
        let mut gone: Vec<u32> = (0..keys).filter(|_| self.random.below(10) != 0).collect();
        for at in (1..gone.len()).rev() {
            gone.swap(at, self.random.below(at as u32 + 1) as usize);
        }
        for some in gone.chunks(BATCH) {
            let names: Vec<String> = some.iter().map(|&key| name(key)).collect();
            let deletions: Vec<Vec<&str>> = names.iter().map(|name| vec!["DEL", name]).collect();
            self.all(&deletions, &Reply::Integer(1))?;
        }
        Ok(u64::from(keys) + gone.len() as u64)
    }

    fn shifting(&mut self) -> Result<u64, CellError> {
        limit(&mut self.control, self.sizes.maxmemory, "allkeys-lru")?;
        let value = "v".repeat(VALUE_BYTES.1);
        let mut next = 0;
        for size in SHIFTING {
            // So many that everything of the size before has left.
            let sets = (self.sizes.maxmemory as usize * 3 / 2 / (size + 40)) as u32;
            self.set(next..next + sets, |_| &value[..size])?;
            next += sets;
        }
        Ok(next.into())
    }

    fn random(&mut self) -> Result<u64, CellError> {
        limit(&mut self.control, self.sizes.maxmemory, "allkeys-lru")?;
        let sets = 3 * self.sizes.keys;
        self.set_random(sets)?;
        Ok(sets.into())
    }

    fn huge(&mut self) -> Result<u64, CellError> {
        let bytes = self.sizes.huge_bytes;
        let (last, length) = ((bytes - 1).to_string(), Reply::Integer(bytes as i64));
        self.one(&["SETRANGE", "huge", &last, "v"], &length)?;
        // Every page of it is touched.
        self.one(&["BITOP", "NOT", "huge", "huge"], &length)?;
        self.one(&["DEL", "huge"], &Reply::Integer(1))?;
        Ok(3)
    }

    fn flood(&mut self, stage: &Stage<'_>) -> Result<u64, CellError> {
        let value = "v".repeat(UNREAD_BYTES);
        self.one(&["SET", "asked", &value], &Reply::Simple("OK".to_owned()))?;
        let mut flooder = TcpStream::connect(stage.target.address)?;
        let asked = "GET asked\r\n".repeat(self.sizes.unread);
        flooder.write_all(asked.as_bytes())?;
        std::thread::sleep(Duration::from_secs(2));
        Ok(self.sizes.unread as u64)
    }

    /// Keys with values of random lengths.
    fn set_random(&mut self, keys: u32) -> Result<(), CellError> {
        let (min, max) = VALUE_BYTES;
        let value = "v".repeat(max);
        self.set(0..keys, |random| &value[..min + random.below((max - min + 1) as u32) as usize])
    }

    fn set<'v>(
        &mut self,
        keys: std::ops::Range<u32>,
        mut value: impl FnMut(&mut Random) -> &'v str,
    ) -> Result<(), CellError> {
        let names: Vec<String> = keys.map(name).collect();
        for some in names.chunks(BATCH) {
            let random = &mut self.random;
            let sets: Vec<Vec<&str>> =
                some.iter().map(|key| vec!["SET", key, value(random)]).collect();
            self.all(&sets, &Reply::Simple("OK".to_owned()))?;
        }
        Ok(())
    }

    fn one(&mut self, words: &[&str], right: &Reply) -> Result<(), CellError> {
        self.all(&[words.to_vec()], right)
    }

    fn all(&mut self, commands: &[Vec<&str>], right: &Reply) -> Result<(), CellError> {
        if cleanup::is_ending() {
            return Err(CellError::Interrupted);
        }
        let replies = self.control.calls(commands)?;
        match replies.into_iter().find(|reply| reply != right) {
            Some(wrong) => {
                Err(CellError::Wrong(format!("answered {wrong:?} where {right:?} is right")))
            }
            None => Ok(()),
        }
    }
}

fn name(key: u32) -> String {
    format!("key:{key:08}")
}
