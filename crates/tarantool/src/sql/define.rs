//! CREATE, ALTER, DROP and TRUNCATE.

use super::catalog::Seen;
use crate::statements::{Ended, Running};
use ladon_msgpack::write;
use ladon_space::Statement;
use ladon_sql::{Definable, Definition, Prepared};
use ladon_system_spaces as system;

/// The tuples of a new table and of all that belongs to it, if the steps are that.
fn new_table(steps: &[Definition]) -> Option<Vec<(u32, &[u8])>> {
    let tuples = steps.iter().map(|step| match step {
        Definition::Insert { space, tuple, .. } => Some((*space, &tuple[..])),
        _ => None,
    });
    let tuples: Option<Vec<(u32, &[u8])>> = tuples.collect();
    tuples.filter(|all| matches!(all[..], [(system::SPACE, _), ..]))
}

/// The keys of a table and of all that belongs to it, if the steps drop that.
fn dropped_table(steps: &[Definition]) -> Option<Vec<(u32, &[u8])>> {
    let keys = steps.iter().map(|step| match step {
        Definition::Delete { space, key } => Some((*space, &key[..])),
        _ => None,
    });
    let keys: Option<Vec<(u32, &[u8])>> = keys.collect();
    keys.filter(|all| matches!(all[..], [.., (system::SPACE, _)]))
}

impl Running<'_, '_> {
    /// Writes the tuples that a statement means, one after the other. If one is refused, those
    /// before it are taken back. Returns the number that its reply shows.
    pub(super) fn define_sql(
        &mut self,
        prepared: &Prepared,
        definable: &Definable<'_>,
    ) -> Result<u64, Ended> {
        let definitions = definable.definitions(prepared, &mut Seen(self))?;
        if let Some(tuples) = new_table(&definitions.steps) {
            self.define_table(&tuples)?;
            return Ok(definitions.count);
        }
        if let Some(keys) = dropped_table(&definitions.steps) {
            return match self.drop_table(&keys) {
                Err(Ended::Error(error)) => Err(ladon_sql::told_of_duplicate(error).into()),
                done => done.map(|()| definitions.count),
            };
        }
        let mut made: Vec<(u32, Vec<u8>)> = Vec::new();
        for step in definitions.steps {
            match self.define_step(step) {
                Ok(Some(back)) => made.push(back),
                Ok(None) => {}
                Err(ended) => {
                    let ended = match ended {
                        Ended::Error(error) => Ended::Error(ladon_sql::told_of_duplicate(error)),
                        ended => ended,
                    };
                    for (space, key) in made.into_iter().rev() {
                        let delete = Statement::Delete { index: 0, key: &key };
                        // What was made a moment ago can be dropped.
                        let _ = self.write(space, delete);
                    }
                    return Err(ended);
                }
            }
        }
        Ok(definitions.count)
    }

    /// Returns how it is taken back, if it made something.
    fn define_step(&mut self, step: Definition) -> Result<Option<(u32, Vec<u8>)>, Ended> {
        match step {
            Definition::Insert { space, tuple, key } => {
                self.write(space, Statement::Insert(&tuple))?;
                Ok(Some((space, key)))
            }
            Definition::Replace { space, tuple } => {
                self.write(space, Statement::Replace(&tuple)).map(|_| None)
            }
            Definition::Delete { space, key } => {
                self.write(space, Statement::Delete { index: 0, key: &key }).map(|_| None)
            }
            Definition::Truncate { system, space } => {
                let mut tuple = vec![0x92];
                write::uint(&mut tuple, space.into());
                write::uint(&mut tuple, 1);
                let operations = [0x91, 0x93, 0xa1, b'+', 0x01, 0x01];
                let upsert =
                    Statement::Upsert { tuple: &tuple, operations: &operations, index_base: 0 };
                self.write(system, upsert).map(|_| None)
            }
        }
    }
}
