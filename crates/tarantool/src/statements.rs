//! Statements on spaces: what requests and calls have in common.

use crate::access::{Access, Rights};
use crate::error;
use crate::long_select::{BYTES_MAX, LongSelect, Shape, TUPLES_MAX};
use crate::session::Session;
use crate::session_settings;
use crate::watch::schema_changed;
use ladon_engine::{ADMIN, Catalog, DefinitionRights, GUEST, NewDefinition, Privilege, SpaceTx};
use ladon_iproto::auth::{Credentials, NO_CREDENTIALS, StoredPassword};
use ladon_iproto::reply;
use ladon_iproto::request::{Auth, IndexRef, Select, SpaceRef};
use ladon_kernel::long::long_reply::LongReply;
use ladon_kernel::memory::eviction::make_room;
use ladon_kernel::request::admission::{self, Refusal};
use ladon_kernel::request::outcome::Flow;
use ladon_kernel::thread_parts::ThreadParts;
use ladon_record::{Lsn, SpaceId};
use ladon_space::{
    BoxError, IteratorType, Looked, Selected, SequenceDef, Space, SpaceDef, SpaceSequence,
    Statement, Written,
};
use ladon_system_spaces as system;
use std::borrow::Cow;

/// What a reply shows of a space that was read.
#[derive(Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// The indexes, which Lua shows to everybody: no right is asked for.
    Schema,
    /// Definitions, and no tuple.
    Definition,
    /// Selected tuples.
    Tuples(&'a Selected),
    /// Anything.
    All,
}

impl Seen<'_> {
    /// Checks that a user may see it.
    pub(crate) fn check(self, rights: &Rights, id: SpaceId, space: &Space) -> Result<(), BoxError> {
        match self {
            Seen::Schema => Ok(()),
            _ => check_read(rights, id, space),
        }
    }
}

/// A request being run, with what it needs of its thread.
pub(crate) struct Running<'a, 'thread> {
    pub(crate) thread: &'a mut ThreadParts<'thread>,
    pub(crate) session: &'a mut Session,
    /// The spaces when the request came.
    pub(crate) catalog: &'a Catalog,
    /// The request's number.
    pub(crate) sync: u64,
    /// The stream it belongs to; 0 for none.
    pub(crate) stream: u64,
    /// The version of the definitions when the request came.
    pub(crate) schema_version: u64,
    /// What the reply depends on.
    pub(crate) depends: Lsn,
    /// The reply, if it goes on after the request.
    pub(crate) long: Option<LongReply>,
}

impl Running<'_, '_> {
    /// The user's rights.
    pub(crate) fn rights(&mut self) -> Result<&Rights, BoxError> {
        self.session.rights(self.thread.node, self.thread.scratch)
    }

    /// Logs a user in.
    pub(crate) fn log_in(&mut self, auth: &Auth<'_>) -> Result<(), BoxError> {
        let node = self.thread.node;
        let refused = |error| error::of_request(&error);
        let credentials = Credentials::decode(auth.tuple).map_err(refused)?;
        // Before the users are read: who is dropped then has gone since.
        let version = node.keyspace.spaces.access_version();
        let access = Access::of(node, self.thread.scratch)?;
        self.depends = self.depends.max(access.changed);
        let name = String::from_utf8_lossy(auth.user_name);
        let user = access.user_named(&name).ok_or_else(error::bad_credentials)?;
        let Some(credentials) = credentials else {
            if user.id != GUEST {
                return Err(error::of_request(&NO_CREDENTIALS));
            }
            self.session.log_in(GUEST, version);
            return Ok(());
        };
        let setting = node.settings.iproto_admin_password();
        let of_setting = (user.id == ADMIN && !setting.is_empty())
            .then(|| [StoredPassword::chap_sha1(setting.as_bytes())]);
        let stored = of_setting.as_ref().map_or(&user.passwords[..], |one| &one[..]);
        let salt = self.session.salt();
        if !stored.iter().any(|stored| stored.accepts(&credentials, salt)) {
            return Err(error::bad_credentials());
        }
        access.rights(user.id, false).check_session()?;
        self.session.log_in(user.id, version);
        Ok(())
    }

    /// The number of the space that a request names.
    pub(crate) fn space_id(&self, space: SpaceRef<'_>) -> Result<SpaceId, BoxError> {
        match space {
            SpaceRef::Id(id) => Ok(id),
            SpaceRef::Name(name) => {
                let name = String::from_utf8_lossy(name);
                let found = session_settings::named(&name).or_else(|| self.catalog.named(&name));
                found.ok_or_else(|| error::no_such_space(&name))
            }
        }
    }

    /// Reads a space that is no view.
    pub(crate) fn read<T>(
        &mut self,
        id: SpaceId,
        seen: Seen<'_>,
        read: impl FnOnce(&Space) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        if system::view_of(id).is_some() {
            return Err(error::unsupported("this of a view; `select` and `get` work"));
        }
        self.read_any(id, seen, read)
    }

    /// Reads a space, or the space of a view: the caller sees to what the view shows.
    pub(crate) fn read_any<T>(
        &mut self,
        id: SpaceId,
        seen: Seen<'_>,
        read: impl FnOnce(&Space) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        if id == system::SESSION_SETTINGS {
            return self.read_settings(read);
        }
        if self.is_in_transaction() {
            return self.read_in_transaction(id, seen, read);
        }
        let node = self.thread.node;
        let rights = self.session.rights(node, self.thread.scratch)?;
        let stored = system::view_of(id).unwrap_or(id);
        let (result, lsn) = self.catalog.read(stored, |space| {
            seen.check(rights, id, space)?;
            read(space)
        });
        // An error shows something of the space as well.
        self.depends = self.depends.max(lsn);
        result
    }

    /// The number of the index that a request names.
    pub(crate) fn index_id(&mut self, id: SpaceId, index: IndexRef<'_>) -> Result<u32, BoxError> {
        let name = match index {
            IndexRef::Id(index) => return Ok(index),
            IndexRef::Name(name) => name,
        };
        self.read_any(id, Seen::Definition, |space| {
            let found = space.index_named(name).map(|index| index.def().id);
            let name = String::from_utf8_lossy(name);
            found.ok_or_else(|| error::no_such_index(&name, &space.def().name))
        })
    }

    /// Runs a statement, in a transaction of its own unless one is open.
    pub(crate) fn write(
        &mut self,
        id: SpaceId,
        statement: Statement<'_>,
    ) -> Result<Written, Ended> {
        if id == system::SESSION_SETTINGS {
            return Ok(self.write_settings(statement)?);
        }
        if self.is_in_transaction() {
            return Ok(self.write_in_transaction(id, statement)?);
        }
        self.check_takes_writes_of(id)?;
        let node = self.thread.node;
        self.check_stillness(id)?;
        if ladon_engine::is_defined_with(id) {
            return self.define(id, statement);
        }
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let rights = self.session.rights(node, scratch)?;
        let checked = |space: &mut Space, statement: Statement<'_>| {
            check_write(rights, space)?;
            statement.run(space)
        };
        let filler = self.catalog.filler(id);
        let (Some(filler), Some(tuple)) = (filler, puts(statement)) else {
            let run = |space: &mut Space| checked(space, statement);
            let (written, lsn) = node.keyspace.write_alone(self.catalog, id, scratch, run, append);
            self.depends = self.depends.max(lsn);
            return Ok(written?);
        };
        let ids = [system::SEQUENCE_DATA, id];
        if let Some(mut tx) = node.keyspace.begin_writing_spaces(self.catalog, &ids, scratch)? {
            let written = fill(&mut tx, id, rights, filler, tuple)
                .and_then(|tuple| tx.write(id, |space| checked(space, with(statement, &tuple))));
            // If it failed, the sequence's number remains, and nothing else.
            self.depends = self.depends.max(tx.commit(append));
            return Ok(written?);
        }
        // With the catalog that there is then.
        Err(Ended::Again(Flow::GoesOn))
    }

    /// Runs a statement on a space whose tuples are definitions, unless there is something to
    /// prepare first.
    fn define(&mut self, id: SpaceId, statement: Statement<'_>) -> Result<Written, Ended> {
        let preparing = self.prepare(id, statement)?;
        let node = self.thread.node;
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let rights = self.session.rights(node, scratch)?;
        let run = |space: &mut Space| {
            check_write(rights, space)?;
            statement.run(space)
        };
        let of = (id, rights as &dyn DefinitionRights);
        let (written, lsn) = match preparing {
            None => node.keyspace.define(of, scratch, run, append),
            Some(mut preparing) => {
                let prepared = preparing.preparation();
                match node.keyspace.define_prepared(of, scratch, run, append, prepared) {
                    (Some(written), lsn) => {
                        self.discard(preparing);
                        (written, lsn)
                    }
                    (None, _) => return Err(self.goes_on_preparing(preparing)),
                }
            }
        };
        self.depends = self.depends.max(lsn);
        if written.as_ref().is_ok_and(|written| *written != Written::default()) {
            self.note_definition(lsn);
        }
        Ok(written?)
    }

    /// Creates a space with all that belongs to it, in one transaction.
    pub(crate) fn define_table(&mut self, tuples: &[NewDefinition<'_>]) -> Result<(), Ended> {
        self.check_defines(tuples)?;
        let node = self.thread.node;
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let rights = self.session.rights(node, scratch)?;
        let insert = |space: &mut Space, tuple: &[u8]| {
            check_write(rights, space)?;
            space.insert(tuple)
        };
        let (done, lsn) = node.keyspace.define_table(tuples, rights, scratch, insert, append);
        self.defined(done, lsn)
    }

    /// Drops a space with all that belongs to it, in one transaction.
    pub(crate) fn drop_table(&mut self, keys: &[NewDefinition<'_>]) -> Result<(), Ended> {
        self.check_defines(keys)?;
        let node = self.thread.node;
        let ThreadParts { scratch, append, .. } = &mut *self.thread;
        let rights = self.session.rights(node, scratch)?;
        let delete = |space: &mut Space, key: &[u8]| {
            check_write(rights, space)?;
            Statement::Delete { index: 0, key }.run(space)
        };
        let (done, lsn) = node.keyspace.drop_table(keys, rights, scratch, delete, append);
        self.defined(done, lsn)
    }

    /// Checks that definitions may change now.
    fn check_defines(&mut self, tuples: &[NewDefinition<'_>]) -> Result<(), Ended> {
        if self.is_in_transaction() {
            let what = "definitions in a transaction of several requests";
            return Err(error::unsupported(what).into());
        }
        self.check_takes_writes()?;
        for (id, _) in tuples {
            self.check_stillness(*id)?;
        }
        Ok(())
    }

    fn defined(&mut self, done: Result<(), BoxError>, lsn: Lsn) -> Result<(), Ended> {
        self.depends = self.depends.max(lsn);
        if done.is_ok() {
            self.note_definition(lsn);
        }
        Ok(done?)
    }

    /// Shows others that definitions have changed, and the reply their version.
    fn note_definition(&mut self, lsn: Lsn) {
        let node = self.thread.node;
        schema_changed(node, &node.keyspace, lsn);
        // The reply shows the version that it made, or a later one.
        let catalog = node.keyspace.spaces.catalog();
        self.schema_version = catalog.version;
        self.depends = self.depends.max(catalog.changed);
    }

    /// Whether a commit has asked the writers of a space to wait.
    pub(crate) fn check_stillness(&mut self, id: SpaceId) -> Result<(), Ended> {
        if self.catalog.get(id).is_some_and(|cell| cell.is_kept_still(self.thread.now_ms)) {
            return Err(Ended::Again(Flow::AwaitsCommit));
        }
        Ok(())
    }

    /// Whether the log takes writes, and there is room for them.
    pub(crate) fn check_takes_writes(&mut self) -> Result<(), BoxError> {
        let admitted = self.admit_write();
        admitted.map_err(|refusal| error::of_refusal(refusal, self.thread.node))
    }

    /// As `check_takes_writes`, of one space: what a read-only server refuses is what would be kept.
    pub(crate) fn check_takes_writes_of(&mut self, id: SpaceId) -> Result<(), BoxError> {
        match self.admit_write() {
            Err(Refusal::ReadOnly) if self.is_own(id) => Ok(()),
            admitted => admitted.map_err(|refusal| error::of_refusal(refusal, self.thread.node)),
        }
    }

    pub(crate) fn admit_write(&mut self) -> Result<(), Refusal> {
        admission::statement(self.thread.node, || make_room(self.thread))
    }

    /// Whether a space is this server's alone: a temporary one, or a local one.
    #[cold]
    fn is_own(&self, id: SpaceId) -> bool {
        let is_own = |def: &SpaceDef| def.is_temporary || def.is_local;
        let (found, _) = self.catalog.read(id, |space| Ok(is_own(space.def())));
        found == Ok(true)
    }

    /// SELECT.
    pub(crate) fn select(&mut self, select: &Select<'_>, out: &mut Vec<u8>) -> Result<(), Ended> {
        let id = self.space_id(select.space)?;
        let index = self.index_id(id, select.index)?;
        // An empty position is the one before all.
        let mut after = select.after_position.map(<[u8]>::to_vec).filter(|after| !after.is_empty());
        if let Some(tuple) = select.after_tuple {
            after =
                Some(self.read(id, Seen::Definition, |space| position_of(space, index, tuple))?);
        }
        let selected = Selected {
            index,
            iterator: IteratorType::of_number(select.iterator.into())?,
            key: select.key.into(),
            offset: select.offset.into(),
            limit: select.limit.into(),
            after,
        };
        self.reply_with(id, selected, false, select.fetch_position, out).map(|_| ())
    }

    /// Makes the reply with the selected tuples, or the beginning of a long one. Returns their
    /// number; 0 of a long one.
    pub(crate) fn reply_with(
        &mut self,
        id: SpaceId,
        selected: Selected,
        is_one_value: bool,
        shows_position: bool,
        out: &mut Vec<u8>,
    ) -> Result<u32, Ended> {
        let (sync, schema_version) = (self.sync, self.schema_version);
        let shape = Shape { sync, schema_version, is_one_value, shows_position };
        let data = reply::begin_data(out, sync, schema_version);
        let head = out.len();
        if is_one_value {
            // The length is filled in below.
            out.extend_from_slice(&[0xdd, 0, 0, 0, 0]);
        }
        let some = if system::view_of(id).is_some() {
            self.select_visible(id, &selected, shows_position, out)?
        } else {
            self.select_some(id, &selected, shows_position, out)?
        };
        let (count, position) = match some {
            Appended::All { count, position } => (count, position),
            Appended::TooMany(space) => {
                data.abandon(out);
                let long = LongSelect::new(*space, selected, shape)?;
                let began_ms = self.thread.now_ms;
                self.long = Some(LongReply::of_another_protocol(Box::new(long), began_ms));
                return Ok(0);
            }
        };
        if is_one_value {
            out[head + 1..head + 5].copy_from_slice(&count.to_be_bytes());
        }
        let values = if is_one_value { 1 } else { count };
        let finished = match position {
            Some(position) => data.finish_with_position(out, values, &position),
            None => data.finish(out, values),
        };
        finished.map_err(|long| error::illegal(&long.to_string()))?;
        Ok(count)
    }

    /// Appends the selected tuples.
    fn select_some(
        &mut self,
        id: SpaceId,
        selected: &Selected,
        shows_position: bool,
        out: &mut Vec<u8>,
    ) -> Result<Appended, Ended> {
        let is_alone = !self.thread.local.replies_later;
        let has_long_reply = self.session.has_long_reply;
        let some = self.read(id, Seen::Tuples(selected), |space| {
            let (start, mut count, mut looked, mut last) = (out.len(), 0, 0, None);
            let mut selection = selected.of(space)?;
            loop {
                let tuple = match selection.look() {
                    Looked::Found((_, tuple)) => Some(tuple),
                    Looked::AtSome => None,
                    Looked::AtAll => break,
                };
                let is_long = looked == TUPLES_MAX || out.len() - start >= BYTES_MAX;
                if !is_alone && is_long {
                    return Ok(
                        (!has_long_reply).then(|| Appended::TooMany(Box::new(space.clone())))
                    );
                }
                looked += 1;
                if let Some(tuple) = tuple {
                    out.extend_from_slice(tuple.bytes());
                    count += 1;
                    last = Some(tuple);
                }
            }
            let index = space.require_index(selected.index)?;
            let position = last.filter(|_| shows_position);
            let hint = selection.hint();
            let position = position.map(|last| index.position_at(last.bytes(), hint));
            Ok(Some(Appended::All { count, position }))
        });
        some?.ok_or(Ended::Again(Flow::AwaitsReply))
    }

    /// As `select_some`, of a view: what of its space the user may see. There are few.
    fn select_visible(
        &mut self,
        view: SpaceId,
        selected: &Selected,
        shows_position: bool,
        out: &mut Vec<u8>,
    ) -> Result<Appended, BoxError> {
        let rights = self.rights()?.clone();
        let catalog = self.catalog;
        self.read_any(view, Seen::All, |space| {
            let Selected { index, iterator, key, offset, limit, after } = selected;
            let all = space.select(*index, *iterator, key, 0, u64::MAX, after.as_deref())?;
            let hint = all.hint();
            let visible = all.filter(|tuple| rights.sees(catalog, view, tuple.bytes()));
            let usize_of = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            let (mut count, mut last) = (0, None);
            for tuple in visible.skip(usize_of(*offset)).take(usize_of(*limit)) {
                out.extend_from_slice(tuple.bytes());
                (count, last) = (count + 1, Some(tuple));
            }
            let index = space.require_index(*index)?;
            let position = last.filter(|_| shows_position);
            let position = position.map(|last| index.position_at(last.bytes(), hint));
            Ok(Appended::All { count, position })
        })
    }
}

/// What came of appending the selected tuples.
enum Appended {
    /// Their number, and the last one's position if it is wanted.
    All { count: u32, position: Option<Vec<u8>> },
    /// There are so many that the reply is to be long: a copy of the space.
    TooMany(Box<Space>),
}

/// What a request comes to that has no reply of its own.
pub(crate) enum Ended {
    /// An error.
    Error(BoxError),
    /// Nothing yet: it runs again.
    Again(Flow),
}

impl From<BoxError> for Ended {
    fn from(error: BoxError) -> Ended {
        Ended::Error(error)
    }
}

impl From<ladon_msgpack::Error> for Ended {
    fn from(error: ladon_msgpack::Error) -> Ended {
        Ended::Error(error.into())
    }
}

/// The position after a tuple in an index.
pub(crate) fn position_of(space: &Space, index: u32, tuple: &[u8]) -> Result<Vec<u8>, BoxError> {
    // It fits the space's rules.
    space.primary_key_of(tuple)?;
    space.require_index(index)?.position_of(tuple)
}

pub(crate) fn check_write(rights: &Rights, space: &Space) -> Result<(), BoxError> {
    let def = space.def();
    rights.check_space((def.id, &def.name, def.owner), Privilege::WRITE)?;
    if system::view_of(def.id).is_some() {
        return Err(error::view_is_read_only(&def.name));
    }
    Ok(())
}

/// Whether the user may read the space `id`, which `space` is, or the space that the view shows.
pub(crate) fn check_read(rights: &Rights, id: SpaceId, space: &Space) -> Result<(), BoxError> {
    let def = space.def();
    if def.id == id {
        return rights.check_space((id, &def.name, def.owner), Privilege::READ);
    }
    let named = system::ALL.iter().find(|(of, _)| *of == id);
    rights.check_space((id, named.map_or("", |(_, name)| name), ADMIN), Privilege::READ)
}

/// The tuple that a statement puts into its space whatever is there, if it is one that does.
pub(crate) fn puts<'a>(statement: Statement<'a>) -> Option<&'a [u8]> {
    match statement {
        Statement::Insert(tuple) | Statement::Replace(tuple) => Some(tuple),
        _ => None,
    }
}

/// The statement with another tuple.
pub(crate) fn with<'a>(statement: Statement<'_>, tuple: &'a [u8]) -> Statement<'a> {
    match statement {
        Statement::Insert(_) => Statement::Insert(tuple),
        _ => Statement::Replace(tuple),
    }
}

/// Fills in a sequence's number, if the user may write the space and use the sequence.
fn fill<'t>(
    tx: &mut SpaceTx<'_>,
    space: SpaceId,
    rights: &Rights,
    filler: (SpaceSequence, &SequenceDef),
    tuple: &'t [u8],
) -> Result<Cow<'t, [u8]>, BoxError> {
    check_write(rights, tx.space(space))?;
    check_filler(rights, &filler)?;
    tx.fill(filler, tuple)
}

/// Who writes a space may use a sequence that was made with its index; others have rights of their
/// own.
pub(crate) fn check_filler(
    rights: &Rights,
    (filler, sequence): &(SpaceSequence, &SequenceDef),
) -> Result<(), BoxError> {
    if filler.is_generated {
        return Ok(());
    }
    rights.check_sequence((sequence.id, &sequence.name, sequence.owner))
}
