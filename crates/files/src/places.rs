//! Keys of a file into a keyspace that nobody uses yet. Several threads may do it at once.

use crate::import::{Elements, Taken, TargetError};
use ladon_engine::{FilledFacts, FilledValue, Filling, Keyspace};
use ladon_rdb::{Encoding, Key};
use ladon_record::DbId;
use ladon_transfer::{Builder, Built};

/// So many values are put together: while one is put, the memory that the others need is fetched.
const BATCH_KEYS: usize = 32;
/// A longer value is not kept until others come.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Where keys go.
#[derive(Clone, Copy)]
pub(crate) struct Places<'r> {
    pub(crate) keyspace: &'r Keyspace,
    pub(crate) now_ms: u64,
}

/// One thread's way there.
pub(crate) struct Placer<'r> {
    places: Places<'r>,
    filling: Filling<'r>,
    built: Vec<Ready>,
}

/// A value that is built.
struct Ready {
    db: DbId,
    name: Vec<u8>,
    encoding: Encoding,
    value: Built,
    facts: FilledFacts,
}

/// A key that cannot be put, of those that were given before.
pub(crate) struct NotPut {
    pub(crate) name: Vec<u8>,
    pub(crate) encoding: Encoding,
    pub(crate) error: TargetError,
}

impl<'r> Places<'r> {
    pub(crate) fn placer(self) -> Placer<'r> {
        let filling = Filling::new(self.keyspace, self.now_ms);
        Placer { places: self, filling, built: Vec::with_capacity(BATCH_KEYS) }
    }

    /// The database of this number.
    pub(crate) fn database(&self, db: u64) -> Result<DbId, TargetError> {
        let databases = self.keyspace.databases();
        match u16::try_from(db).ok().filter(|&number| number < databases) {
            Some(number) => Ok(self.keyspace.select(number)),
            None => {
                let why = format!("there are {databases} databases: raise 'databases'");
                Err(TargetError::This(why))
            }
        }
    }
}

impl Placer<'_> {
    /// Builds a key's value, which is put now or soon.
    pub(crate) fn key(
        &mut self,
        db: u64,
        key: &Key,
        elements: Elements<'_>,
    ) -> Result<Taken, NotPut> {
        let not_put = |error| NotPut { name: key.name.clone(), encoding: key.encoding, error };
        let db = self.places.database(db).map_err(not_put)?;
        let expire_at = match key.expires_at_ms {
            None => 0,
            // Redis does not load such a key either.
            Some(at) if at <= self.places.now_ms.cast_signed() => return Ok(Taken::NoKey),
            Some(at) => at.cast_unsigned(),
        };
        let (encoding, mut bytes) = (key.encoding, 0);
        let mut builder = Builder::new(encoding, self.places.keyspace.env());
        for element in elements {
            let element = element.map_err(not_put)?;
            bytes += crate::events::bytes_of(&element);
            builder.push(element).map_err(|refused| not_put(refused.into()))?;
        }
        let built = builder.finish().map_err(|refused| not_put(refused.into()))?;
        let Some(value) = built else { return Ok(Taken::NoKey) };
        let facts = FilledFacts { expire_at, idle_s: key.idle_s, frequency: key.frequency };
        self.filling.prefetch(db, &key.name);
        self.built.push(Ready { db, name: key.name.clone(), encoding, value, facts });
        if self.built.len() == BATCH_KEYS || bytes > KEPT_BYTES_MAX {
            self.put_all()?;
        }
        Ok(Taken::Here)
    }

    /// Puts what has not been put.
    pub(crate) fn put_all(&mut self) -> Result<(), NotPut> {
        for Ready { db, name, encoding, value, facts } in self.built.drain(..) {
            let value = match &value {
                Built::String(bytes) if bytes.len() <= KEPT_BYTES_MAX => FilledValue::String(bytes),
                // Without a copy.
                _ => FilledValue::Object(value.into_object()),
            };
            if !self.filling.put(db, &name, value, facts) {
                let error = TargetError::This("the key is there twice".to_owned());
                return Err(NotPut { name, encoding, error });
            }
        }
        Ok(())
    }
}
