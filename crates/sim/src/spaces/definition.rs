//! Changes of definitions: what clients ask, as data and as packets, and what the oracle makes of
//! them.

use crate::plan::Redefine;
use crate::spaces::contents::{
    HASHED, PLAIN, Primary, Rows, SPACES, State, Table, USERS, code, right,
};
use crate::spaces::journal::Reply;
use crate::spaces::request::{Habits, index, space};
use ladon_iproto::request::{Delete, IndexRef, Put, Request as Packet, SpaceRef, Update};
use ladon_msgpack::write;
use ladon_system_spaces as system;
use ladon_testkit::Random;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// The index of text of `plain`.
    CreateIndex,
    DropIndex,
    Truncate(usize),
    Format {
        space: usize,
        is_strict: bool,
        /// By an UPDATE of `_space`, not a REPLACE.
        is_update: bool,
    },
    /// Of `plain` or `hashed`.
    Primary(usize, Primary),
    /// Of these rights, and no others, to one of `USERS`.
    Grant {
        user: usize,
        space: usize,
        rights: u8,
    },
}

impl Definition {
    pub(crate) fn some(random: &mut Random, habits: Habits) -> Definition {
        let which = match habits.redefine {
            None => random.below(3),
            Some(Redefine::All) => random.below(9),
            Some(Redefine::Formats) => 3,
            Some(Redefine::PrimaryKeys) => 6,
        };
        match which {
            0 => Definition::CreateIndex,
            1 => Definition::DropIndex,
            2 => Definition::Truncate(random.below(3) as usize),
            3..6 => Definition::Format {
                space: random.below(3) as usize,
                is_strict: random.chance(1, 2),
                is_update: random.chance(1, 3),
            },
            _ if random.chance(2, 3) => {
                Definition::Primary(PLAIN, random.pick(&[Primary::Ids, Primary::Groups]))
            }
            _ => Definition::Primary(HASHED, random.pick(&[Primary::Ids, Primary::HashedIds])),
        }
    }

    /// A user gets some rights to a space, or loses them.
    pub(crate) fn some_grant(random: &mut Random, habits: Habits) -> Definition {
        let spaces = if habits.binds { 4 } else { 3 };
        Definition::Grant {
            user: random.below(USERS.len() as u64) as usize,
            space: random.below(spaces) as usize,
            rights: random.pick(&[
                0,
                right::READ,
                right::WRITE,
                ALL_RIGHTS,
                ALL_RIGHTS,
                ALL_RIGHTS,
            ]),
        }
    }

    /// Whether it is a change of the schema's version if it is done.
    pub(crate) fn is_of_schema(self) -> bool {
        !matches!(self, Definition::Truncate(_) | Definition::Grant { .. })
    }

    /// What it makes of the contents, and its reply. Nothing has changed unless that is
    /// `Reply::Other`.
    pub(crate) fn apply(self, state: &mut State) -> Reply {
        if let Definition::Grant { user, space, rights } = self {
            let had = std::mem::replace(&mut state.rights[user][space], rights);
            // Nothing is revoked from nobody.
            return if had | rights == 0 { Reply::Rows(Rows::new()) } else { Reply::Other };
        }
        let table = |space: usize| Table::clone(&state.tables[space]);
        let (space, table) = match self {
            Definition::CreateIndex => {
                let plain = table(PLAIN);
                if plain.has_text_index {
                    return Reply::Error(code::TUPLE_FOUND);
                }
                (PLAIN, Table { has_text_index: true, ..plain })
            }
            Definition::DropIndex => {
                let plain = table(PLAIN);
                if !plain.has_text_index {
                    return Reply::Rows(Rows::new());
                }
                (PLAIN, Table { has_text_index: false, ..plain })
            }
            Definition::Truncate(space) => (space, Table { rows: BTreeMap::new(), ..table(space) }),
            Definition::Format { space, is_strict, .. } => {
                (space, Table { is_strict, ..table(space) })
            }
            Definition::Primary(space, primary) => {
                let mut table = Table { primary, ..table(space) };
                let count = table.rows.len();
                let rows = std::mem::take(&mut table.rows).into_values();
                table.rows = rows.map(|row| (table.key(&row), row)).collect();
                if table.rows.len() < count {
                    return Reply::Error(code::TUPLE_FOUND);
                }
                (space, table)
            }
            Definition::Grant { .. } => unreachable!("it is none of a space's"),
        };
        let demands_more = matches!(self, Definition::CreateIndex | Definition::Format { .. });
        if demands_more && table.rows.values().any(|row| table.check_text(row).is_err()) {
            return Reply::Error(code::FIELD_TYPE);
        }
        state.tables[space] = Rc::new(table);
        Reply::Other
    }

    pub(crate) fn send(self, mut send: impl FnMut(Packet<'_>)) {
        let mut body = Vec::new();
        match self {
            Definition::CreateIndex => {
                index(&mut body, PLAIN, (2, "text", "tree"), false, (2, "string"));
                send(Packet::Insert(Put { space: SpaceRef::Id(system::INDEX), tuple: &body }));
            }
            Definition::DropIndex => {
                write::array(&mut body, 2);
                write::uint(&mut body, SPACES[PLAIN].into());
                write::uint(&mut body, 2);
                let (space, index) = (SpaceRef::Id(system::INDEX), IndexRef::Id(0));
                send(Packet::Delete(Delete { space, index, key: &body }));
            }
            Definition::Truncate(space) => {
                write::array(&mut body, 2);
                write::uint(&mut body, SPACES[space].into());
                write::uint(&mut body, 1);
                send(Packet::Replace(Put { space: SpaceRef::Id(system::TRUNCATE), tuple: &body }));
            }
            Definition::Format { space: at, is_strict, is_update: false } => {
                space(&mut body, at);
                format(&mut body, is_strict);
                send(Packet::Replace(Put { space: SpaceRef::Id(system::SPACE), tuple: &body }));
            }
            Definition::Format { space, is_strict, is_update: true } => {
                /// Where the format is in a tuple of `_space`.
                const FORMAT: u64 = 6;
                let mut key = Vec::new();
                write::array(&mut key, 1);
                write::uint(&mut key, SPACES[space].into());
                write::array(&mut body, 1);
                write::array(&mut body, 3);
                write::str(&mut body, b"=");
                write::uint(&mut body, FORMAT);
                format(&mut body, is_strict);
                let (space, index) = (SpaceRef::Id(system::SPACE), IndexRef::Id(0));
                let (key, operations, index_base) = (&key[..], &body[..], 0);
                send(Packet::Update(Update { space, index, index_base, key, operations }));
            }
            Definition::Primary(space, primary) => {
                let (kind, field) = match primary {
                    Primary::Ids => ("tree", 0),
                    Primary::Groups => ("tree", 1),
                    Primary::HashedIds => ("hash", 0),
                };
                index(&mut body, space, (0, "primary", kind), true, (field, "unsigned"));
                send(Packet::Replace(Put { space: SpaceRef::Id(system::INDEX), tuple: &body }));
            }
            Definition::Grant { user, space, rights: 0 } => {
                grant_key(&mut body, user, space);
                let (space, index) = (SpaceRef::Id(system::PRIV), IndexRef::Id(0));
                send(Packet::Delete(Delete { space, index, key: &body }));
            }
            Definition::Grant { user, space, rights } => {
                grant(&mut body, (USERS[user].0, "space", SPACES[space]), rights);
                send(Packet::Replace(Put { space: SpaceRef::Id(system::PRIV), tuple: &body }));
            }
        }
    }
}

pub(crate) const ALL_RIGHTS: u8 = right::READ | right::WRITE;

/// Appends the primary key of what a user was granted of a space.
pub(crate) fn grant_key(out: &mut Vec<u8>, user: usize, space: usize) {
    write::array(out, 3);
    write::uint(out, USERS[user].0.into());
    write::str(out, b"space");
    write::uint(out, SPACES[space].into());
}

/// Appends a tuple of `_priv`: what admin grants a user of an object.
pub(crate) fn grant(out: &mut Vec<u8>, (user, kind, object): (u32, &str, u32), rights: u8) {
    const ADMIN: u64 = 1;
    write::array(out, 5);
    write::uint(out, ADMIN);
    write::uint(out, user.into());
    write::str(out, kind.as_bytes());
    write::uint(out, object.into());
    write::uint(out, rights.into());
}

/// Appends a format: one that demands a text, or nothing but what there is anyhow.
pub(crate) fn format(out: &mut Vec<u8>, is_strict: bool) {
    let text = if is_strict { "string" } else { "any" };
    let fields = [("id", "unsigned"), ("group", "unsigned"), ("text", text)];
    write::array(out, fields.len() as u32);
    for (name, field_type) in fields {
        write::map(out, 2);
        write::str(out, b"name");
        write::str(out, name.as_bytes());
        write::str(out, b"type");
        write::str(out, field_type.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spaces::contents::Row;
    use crate::spaces::request::{Request, Who};

    fn plain(rows: &[(u64, u64)]) -> State {
        let mut state = State::default();
        let row = |&(id, group)| (id, Rc::new(Row { id, group, text: Vec::new() }));
        state.tables[PLAIN] =
            Rc::new(Table { rows: rows.iter().map(row).collect(), ..Table::default() });
        state
    }

    #[test]
    fn another_primary_key_is_refused_if_two_tuples_have_it() {
        let mut state = plain(&[(1, 7), (2, 5)]);
        let by = |primary, state: &mut State| Definition::Primary(PLAIN, primary).apply(state);
        assert_eq!(by(Primary::Groups, &mut state), Reply::Other);
        assert_eq!(state.tables[PLAIN].rows.keys().copied().collect::<Vec<_>>(), [5, 7]);
        assert_eq!(by(Primary::Ids, &mut state), Reply::Other);
        assert_eq!(by(Primary::Groups, &mut plain(&[(1, 7), (2, 7)])), Reply::Error(3));
    }

    #[test]
    fn a_user_may_do_what_it_was_granted() {
        let mut state = State::default();
        let mut grant =
            |space, rights| Definition::Grant { user: 1, space, rights }.apply(&mut state);
        assert_eq!(grant(PLAIN, 0), Reply::Rows(Rows::new()));
        assert_eq!(grant(PLAIN, right::READ), Reply::Other);
        assert_eq!(grant(HASHED, right::WRITE), Reply::Other);
        let denied = |who, request: Request| state.denies(who, &request);
        let truncate = |space| Request::Define(Definition::Truncate(space));
        let user = Who::User(1);
        assert!(!denied(user, Request::Count(PLAIN)) && denied(user, Request::Count(HASHED)));
        assert!(denied(user, truncate(PLAIN)) && !denied(user, truncate(HASHED)));
        assert!(denied(user, Request::Define(Definition::DropIndex)));
        assert!(denied(Who::User(0), Request::Count(PLAIN)));
        assert!(
            !denied(Who::Guest, Request::Count(HASHED)) && !denied(Who::Admin, truncate(PLAIN))
        );
    }

    #[test]
    fn a_strict_format_demands_a_text() {
        let define = Definition::Format { space: PLAIN, is_strict: true, is_update: false };
        assert_eq!(define.apply(&mut plain(&[])), Reply::Other);
        assert_eq!(define.apply(&mut plain(&[(1, 7)])), Reply::Error(23));
    }
}
