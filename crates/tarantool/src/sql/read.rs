//! SELECT.

use super::binds::Values;
use super::reply;
use super::state::Plan;
use crate::statements::{Ended, Running, Seen, check_read};
use ladon_kernel::thread_parts::ThreadParts;
use ladon_space::{BoxError, IndexDef, IteratorType, Space};
use ladon_sql::{Budget, Prepared, Session, Spaces, Value, is_interrupted};
use ladon_system_spaces as system;
use std::sync::Arc;

/// Steps that a statement may take while it holds a lock: some ten microseconds.
pub(super) const LOCKED_STEPS_MAX: u64 = 256;
/// Steps that a statement may take on the thread that serves clients: some hundred microseconds.
pub(super) const QUICK_STEPS_MAX: u64 = 2_000;
/// Memory of sorters, groups, hashes and results.
pub(super) const BYTES_MAX: usize = 64 << 20;
/// Rows of a reply, in bytes.
const REPLY_BYTES_MAX: usize = 256 << 20;

/// Rows as MessagePack, and their number.
type Rows = (Vec<u8>, u32);

pub(super) fn budget(steps: u64) -> Budget {
    Budget::new(steps, BYTES_MAX, Box::new(|| None))
}

/// Appends rows, and returns their number.
fn rows<'r>(
    prepared: &Prepared,
    spaces: &Spaces<'r>,
    values: &'r [Value],
    session: Session,
    (budget, out): (&'r Budget, &mut Vec<u8>),
) -> Result<u32, BoxError> {
    let before = out.len();
    let count = prepared.write_rows((spaces, values), session, budget, out)?;
    if out.len() - before > REPLY_BYTES_MAX {
        return Err(crate::error::illegal("a reply of SQL is limited to 256 MiB"));
    }
    Ok(count)
}

impl Running<'_, '_> {
    pub(super) fn sql_session(&mut self) -> Session {
        let [random, random_too] = [(); 2].map(|()| self.thread.local.rng.next_u64());
        let now_ms = self.thread.now_ms;
        let runs_triggers_once = self.session.runs_triggers_once();
        Session {
            row_count: self.session.sql.row_count,
            random,
            random_too,
            now_ms,
            runs_triggers_once,
        }
    }

    /// A query.
    pub(super) fn select_sql(
        &mut self,
        plan: &Plan,
        values: Values,
        out: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let to = (self.sync, self.schema_version);
        let reply = match &plan.metadata {
            Some(metadata) if !self.session.has_full_metadata() => {
                reply::Rows::begin(out, to, metadata)
            }
            _ => reply::Rows::begin(out, to, &self.sql_metadata(&plan.prepared, &values)),
        };
        let count = match self.session.sql_aside.take() {
            Some(aside) => {
                let (bytes, count): Rows = self.made_aside(aside)?;
                out.extend_from_slice(&bytes);
                count
            }
            None => self.rows_at_once(&plan.prepared, values, (reply.begin_of_rows(), out))?,
        };
        self.session.sql.row_count = 0;
        Ok(reply.finish(out, count)?)
    }

    fn sql_metadata(&mut self, prepared: &Prepared, values: &[Value]) -> Vec<u8> {
        let mut metadata = Vec::with_capacity(prepared.columns().len() * 24 + 8);
        let name = |id: u32| self.collation_name(id);
        let name: reply::CollationName<'_> = &name;
        let full = self.session.has_full_metadata().then_some(name);
        reply::metadata(&mut metadata, prepared.columns(), values, full);
        metadata
    }

    /// The name of a collation; none of number 0.
    fn collation_name(&self, id: u32) -> Option<String> {
        let mut key = vec![0x91];
        ladon_msgpack::write::uint(&mut key, id.into());
        let (tuple, _) = self.catalog.read(system::COLLATION, |space| space.get(0, &key));
        let tuple = tuple.ok()?.filter(|_| id != 0)?;
        let name = ladon_msgpack::read_str(&mut tuple.field(1)?).ok()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Appends the rows, and returns their number. Those of a try that takes too long are taken
    /// out again.
    fn rows_at_once(
        &mut self,
        prepared: &Arc<Prepared>,
        values: Values,
        (begin, out): (usize, &mut Vec<u8>),
    ) -> Result<u32, Ended> {
        let session = self.sql_session();
        let is_plain = |id: u32| system::view_of(id).is_none() && id != system::SESSION_SETTINGS;
        if let [id] = *prepared.spaces()
            && is_plain(id)
            && !self.is_in_transaction()
        {
            let found = self.read(id, Seen::Definition, |space| {
                if prepared.reads_all() && space.len() > LOCKED_STEPS_MAX {
                    return Ok(None);
                }
                let budget = budget(LOCKED_STEPS_MAX);
                let to = (&budget, &mut *out);
                match rows(prepared, &Spaces::of([space]), &values, session, to) {
                    Err(error) if is_interrupted(&error) => Ok(None),
                    found => found.map(Some),
                }
            })?;
            if let Some(count) = found {
                return Ok(count);
            }
            out.truncate(begin);
        }
        let copies = self.copies(prepared.spaces())?;
        let to = (&budget(QUICK_STEPS_MAX), &mut *out);
        match rows(prepared, &Spaces::of(&copies), &values, session, to) {
            Err(error) if is_interrupted(&error) => out.truncate(begin),
            found => return Ok(found?),
        }
        let prepared = Arc::clone(prepared);
        let (bytes, count): Rows = self.go_on_aside(move |budget| {
            let mut out = Vec::new();
            let to = (budget, &mut out);
            let count = rows(&prepared, &Spaces::of(&copies), &values, session, to)?;
            Ok((out, count))
        })?;
        out.extend_from_slice(&bytes);
        Ok(count)
    }

    /// Copies of spaces, as they are at one moment; as its transaction sees them, in a stream. The
    /// user may read them.
    pub(super) fn copies(&mut self, ids: &[u32]) -> Result<Vec<Space>, BoxError> {
        let mut copies = Vec::with_capacity(ids.len());
        let mut plain = Vec::new();
        for id in ids {
            if *id == system::SESSION_SETTINGS || system::view_of(*id).is_some() {
                copies.push(self.copy_of_view(*id)?);
            } else if self.is_in_transaction() {
                copies.push(self.read(*id, Seen::All, |space| Ok(space.clone()))?);
            } else {
                plain.push(*id);
            }
        }
        if plain.is_empty() {
            return Ok(copies);
        }
        plain.sort_unstable();
        let node = self.thread.node;
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let rights = self.session.rights(node, scratch)?.clone();
        let mut tx = node.keyspace.begin_on_spaces(self.catalog, &plain, scratch)?;
        let mut refused = None;
        for id in &plain {
            let space = tx.space(*id);
            match check_read(&rights, *id, space) {
                Ok(()) => copies.push(space.clone()),
                Err(error) => refused = Some(error),
            }
        }
        self.depends = self.depends.max(tx.commit(append));
        refused.map_or(Ok(copies), Err)
    }

    /// What the user sees of a view of the system.
    fn copy_of_view(&mut self, id: u32) -> Result<Space, BoxError> {
        let rights = self.rights()?.clone();
        let catalog = self.catalog;
        self.read_any(id, Seen::All, |space| {
            if space.def().id == id {
                return Ok(space.clone());
            }
            let mut def = space.def().clone();
            def.id = id;
            let mut copy = Space::new(def);
            for index in space.indexes() {
                copy.create_index(IndexDef { space_id: id, ..index.def().clone() })?;
            }
            for tuple in space.select(0, IteratorType::All, &[0x90], 0, u64::MAX, None)? {
                if rights.sees(catalog, id, tuple.bytes()) {
                    copy.insert(tuple.bytes())?;
                }
            }
            Ok(copy)
        })
    }
}
