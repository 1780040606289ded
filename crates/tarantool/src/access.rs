//! Users, roles and their rights, as the system spaces `_user` and `_priv` have them.
//!
//! The table is made from the spaces' tuples when they have changed since, and is shared by all
//! sessions. A user has what was granted to it and to its roles, on the universe, on all objects of
//! a type, or on one object. Who owns an object may do everything with it.

use crate::error;
use ladon_engine::Scratch;
use ladon_iproto::auth::StoredPassword;
use ladon_kernel::node::Node;
use ladon_msgpack::{Value, read, read_array, read_map, read_str, read_uint, skip, take};
use ladon_record::Lsn;
use ladon_space::BoxError;
use ladon_system_spaces as system;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The user of a connection that has not logged in.
pub(crate) const GUEST: u32 = 0;
/// The user that may do everything.
pub(crate) const ADMIN: u32 = 1;
/// The role that has every right.
const SUPER: u32 = 31;

/// Rights, as `_priv` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Right(u32);

impl Right {
    pub(crate) const READ: Right = Right(1);
    pub(crate) const WRITE: Right = Right(2);
    pub(crate) const EXECUTE: Right = Right(4);
    pub(crate) const SESSION: Right = Right(8);
    pub(crate) const USAGE: Right = Right(16);

    fn name(self) -> &'static str {
        match self {
            Right::READ => "Read",
            Right::WRITE => "Write",
            Right::EXECUTE => "Execute",
            Right::SESSION => "Session",
            _ => "Usage",
        }
    }
}

/// What a right is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Universe,
    Space,
    Function,
    Sequence,
    Role,
    User,
}

impl Kind {
    fn of(name: &[u8]) -> Option<Kind> {
        Some(match name {
            b"universe" => Kind::Universe,
            b"space" => Kind::Space,
            b"function" => Kind::Function,
            b"sequence" => Kind::Sequence,
            b"role" => Kind::Role,
            b"user" => Kind::User,
            _ => return None,
        })
    }
}

/// A user or a role.
pub(crate) struct User {
    pub(crate) id: u32,
    pub(crate) name: String,
    is_role: bool,
    /// What is kept of its password, by method.
    pub(crate) passwords: Vec<StoredPassword>,
}

/// Everybody's rights.
#[derive(Default)]
pub(crate) struct Access {
    /// The LSN of the last change of users and rights: replies depend on it.
    pub(crate) changed: Lsn,
    users: HashMap<u32, User>,
    by_name: HashMap<String, u32>,
    /// By grantee: on what, which object of it (`None`: all), which rights.
    grants: HashMap<u32, Vec<Grant>>,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    kind: Kind,
    object: Option<u32>,
    rights: u32,
}

/// A user's rights, its roles' included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    /// As [`Access::changed`].
    pub(crate) changed: Lsn,
    user: String,
    id: u32,
    universe: u32,
    of_kind: HashMap<Kind, u32>,
    of_object: HashMap<(Kind, u32), u32>,
}

impl Access {
    /// The rights as they are now.
    pub(crate) fn of(node: &Node, scratch: &mut Scratch) -> Result<Arc<Access>, BoxError> {
        let version = node.keyspace.spaces.access_version();
        if let Some(access) = node.keyspace.spaces.cached(version) {
            return Ok(access);
        }
        let catalog = node.keyspace.spaces.catalog();
        let ids = [system::USER, system::PRIV];
        let mut tx = node.keyspace.begin_on_spaces(&catalog, &ids, scratch)?;
        let mut access = Access::default();
        for tuple in tx.space(system::USER).require_index(0)?.tuples() {
            access.add_user(tuple.bytes());
        }
        for tuple in tx.space(system::PRIV).require_index(0)?.tuples() {
            access.add_grant(tuple.bytes());
        }
        access.changed = tx.commit(|_| Lsn::ZERO);
        let access = Arc::new(access);
        node.keyspace.spaces.cache(version, Arc::clone(&access));
        Ok(access)
    }

    /// A tuple of `_user`: id, owner, name, type, auth. One that cannot be read has no rights.
    fn add_user(&mut self, tuple: &[u8]) {
        if let Some(user) = user_of(tuple) {
            self.by_name.insert(user.name.clone(), user.id);
            self.users.insert(user.id, user);
        }
    }

    /// A tuple of `_priv`: grantor, grantee, object type, object, rights.
    fn add_grant(&mut self, tuple: &[u8]) {
        if let Some((grantee, grant)) = grant_of(tuple) {
            self.grants.entry(grantee).or_default().push(grant);
        }
    }

    /// A user, not a role, by name.
    pub(crate) fn user_named(&self, name: &str) -> Option<&User> {
        self.by_name.get(name).and_then(|id| self.users.get(id)).filter(|user| !user.is_role)
    }

    /// All rights of a user.
    pub(crate) fn rights(&self, user: u32) -> Rights {
        let name = self.users.get(&user).map_or_else(String::new, |user| user.name.clone());
        let mut rights =
            Rights { changed: self.changed, user: name, id: user, ..Rights::default() };
        if user == ADMIN {
            rights.universe = u32::MAX;
        }
        let mut seen = BTreeSet::new();
        let mut rest = vec![user];
        while let Some(grantee) = rest.pop() {
            if !seen.insert(grantee) {
                continue;
            }
            if grantee == SUPER {
                rights.universe = u32::MAX;
            }
            for grant in self.grants.get(&grantee).into_iter().flatten() {
                match (grant.kind, grant.object) {
                    (Kind::Universe, _) => rights.universe |= grant.rights,
                    (Kind::Role, Some(role)) => rest.push(role),
                    (kind, Some(object)) => {
                        *rights.of_object.entry((kind, object)).or_default() |= grant.rights;
                    }
                    (kind, None) => *rights.of_kind.entry(kind).or_default() |= grant.rights,
                }
            }
        }
        rights
    }
}

impl Rights {
    /// Whether the user may do this with the space.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    #[inline]
    pub(crate) fn check_space(
        &self,
        (id, name, owner): (u32, &str, u32),
        right: Right,
    ) -> Result<(), BoxError> {
        if self.universe & right.0 != 0 || owner == self.id && self.id != GUEST {
            return Ok(());
        }
        self.check(Kind::Space, "space", (id, name), right)
    }

    /// Whether the user may take numbers of the sequence.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub(crate) fn check_sequence(
        &self,
        (id, name, owner): (u32, &str, u32),
    ) -> Result<(), BoxError> {
        if self.universe & Right::WRITE.0 != 0 || owner == self.id && self.id != GUEST {
            return Ok(());
        }
        self.check(Kind::Sequence, "sequence", (id, name), Right::WRITE)
    }

    /// Whether a view shows this tuple of its space to the user: what it owns, what it has some
    /// right to, itself.
    pub(crate) fn sees(&self, view: u32, tuple: &[u8]) -> bool {
        if self.universe & Right::READ.0 != 0 || view == system::VCOLLATION {
            return true;
        }
        // Of most spaces: the object's number, and its owner.
        let Some([first, second]) = first_numbers(tuple) else { return false };
        let owns = second == self.id && self.id != GUEST;
        let has = |kind| {
            let of_kind = self.of_kind.get(&kind).copied().unwrap_or(0);
            of_kind | self.of_object.get(&(kind, first)).copied().unwrap_or(0) != 0
        };
        match view {
            system::VSPACE => has(Kind::Space) || owns,
            // The space's number and the index's: who sees the space sees them.
            system::VINDEX | system::VSPACE_SEQUENCE => has(Kind::Space),
            system::VFUNC => has(Kind::Function) || owns,
            system::VSEQUENCE => has(Kind::Sequence) || owns,
            system::VUSER => first == self.id || owns,
            // The grantor and the grantee.
            system::VPRIV => first == self.id || second == self.id,
            _ => false,
        }
    }

    /// Whether the user may call what is no function of the space `_func`.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub(crate) fn check_call(&self, name: &str) -> Result<(), BoxError> {
        if self.universe & Right::EXECUTE.0 != 0 {
            return Ok(());
        }
        self.check(Kind::Function, "function", (u32::MAX, name), Right::EXECUTE)
    }

    /// Whether the user was given the right to change something, besides what everybody was: of
    /// system spaces, that is little.
    pub(crate) fn may_change(&self) -> bool {
        let of_kind = |kind| self.of_kind.get(&kind).copied().unwrap_or(0);
        let is_own = |kind, id| kind == Kind::Space && id >= system::USER_ID_MIN;
        let writes_own = self
            .of_object
            .iter()
            .any(|(&(kind, id), rights)| is_own(kind, id) && rights & Right::WRITE.0 != 0);
        let writes = self.universe | of_kind(Kind::Space);
        let executes = self.universe | of_kind(Kind::Function);
        writes_own || writes & Right::WRITE.0 != 0 || executes & Right::EXECUTE.0 != 0
    }

    /// Whether the user may log in.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub(crate) fn check_session(&self) -> Result<(), BoxError> {
        for right in [Right::SESSION, Right::USAGE] {
            if self.universe & right.0 == 0 {
                return Err(self.denied(right, "universe", ""));
            }
        }
        Ok(())
    }

    fn check(
        &self,
        kind: Kind,
        kind_name: &str,
        (id, name): (u32, &str),
        right: Right,
    ) -> Result<(), BoxError> {
        let of_kind = self.of_kind.get(&kind).copied().unwrap_or(0);
        let of_object = self.of_object.get(&(kind, id)).copied().unwrap_or(0);
        let rights = self.universe | of_kind | of_object;
        if rights & right.0 != 0 && self.universe & Right::USAGE.0 != 0 {
            return Ok(());
        }
        Err(self.denied(right, kind_name, name))
    }

    fn denied(&self, right: Right, kind: &str, name: &str) -> BoxError {
        error::access_denied(right.name(), kind, name, &self.user)
    }
}

fn user_of(tuple: &[u8]) -> Option<User> {
    let mut rest = tuple;
    let count = read_array(&mut rest).ok()?;
    let id = u32::try_from(read_uint(&mut rest).ok()?).ok()?;
    skip(&mut rest).ok()?;
    let name = text(&mut rest)?;
    let is_role = read_str(&mut rest).ok()? == b"role";
    let mut passwords = Vec::new();
    if count > 4
        && let Ok(pairs) = read_map(&mut rest)
    {
        for _ in 0..pairs {
            let method = read_str(&mut rest).ok()?;
            let stored = StoredPassword::read(method, take(&mut rest).ok()?);
            passwords.extend(stored.and_then(Result::ok));
        }
    }
    Some(User { id, name, is_role, passwords })
}

fn grant_of(tuple: &[u8]) -> Option<(u32, Grant)> {
    let mut rest = tuple;
    read_array(&mut rest).ok()?;
    skip(&mut rest).ok()?;
    let grantee = u32::try_from(read_uint(&mut rest).ok()?).ok()?;
    let kind = Kind::of(read_str(&mut rest).ok()?)?;
    let object = match read(&mut rest).ok()? {
        Value::Uint(id) => Some(u32::try_from(id).ok()?),
        // The empty name: all objects of the type.
        _ => None,
    };
    let rights = u32::try_from(read_uint(&mut rest).ok()?).ok()?;
    Some((grantee, Grant { kind, object, rights }))
}

/// The first two fields, if they are numbers.
fn first_numbers(tuple: &[u8]) -> Option<[u32; 2]> {
    let mut rest = tuple;
    read_array(&mut rest).ok()?;
    let mut number = || u32::try_from(read_uint(&mut rest).ok()?).ok();
    Some([number()?, number()?])
}

fn text(rest: &mut &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(read_str(rest).ok()?).into_owned())
}
