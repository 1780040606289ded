//! Users, roles and their rights, as the system spaces `_user`, `_priv` and `_func` have them.
//!
//! The table is made from the spaces' tuples when they have changed since, and is shared by all
//! sessions. A user has what was granted to it and to its roles, on the universe, on all objects of
//! a kind, or on one object. Who owns an object may do everything with it but create it. Whoever
//! does anything needs `usage` of the universe besides.
//!
//! Source: Tarantool's `access_check_*` functions, and the filters of its `sysview.c`.

use crate::error;
use ladon_engine::{
    ADMIN, Catalog, DefinitionRights, GUEST, Grant, ObjectKind, PUBLIC, Privilege, RightsObject,
    SUPER, Scratch, UserDef, access_denied,
};
use ladon_iproto::auth::{StoredPassword, StoredPasswordError};
use ladon_kernel::node::Node;
use ladon_kernel::persistent::Persistent;
use ladon_kernel::program::Kind;
use ladon_msgpack::{read_array, read_map, read_str, read_uint, take};
use ladon_record::{Lsn, SpaceId};
use ladon_space::{BoxError, ErrorCode, fields};
use ladon_system_spaces as system;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

/// `ER_GUEST_USER_PASSWORD`.
const GUEST_USER_PASSWORD: ErrorCode = ErrorCode(96);

/// A user or a role.
pub(crate) struct User {
    pub(crate) id: u32,
    pub(crate) name: String,
    is_role: bool,
    /// What is kept of its password, by method.
    pub(crate) passwords: Vec<StoredPassword>,
}

/// A function of `_func`.
#[derive(Debug)]
struct Function {
    id: u32,
    owner: u32,
    /// It runs by its owner's rights.
    is_setuid: bool,
    /// What runs where the request is, if it has a text.
    persistent: Option<Arc<Persistent>>,
}

/// Everybody's rights.
#[derive(Default)]
pub(crate) struct Access {
    /// The LSN of the last change of users and rights: replies depend on it.
    pub(crate) changed: Lsn,
    users: HashMap<u32, User>,
    by_name: HashMap<String, u32>,
    grants: HashMap<u32, Vec<Grant>>,
    functions: Arc<HashMap<String, Function>>,
}

/// A user's rights, its roles' included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rights {
    /// As [`Access::changed`].
    pub(crate) changed: Lsn,
    /// The user's number, and its name; none if it is gone.
    id: u32,
    user: Option<String>,
    universe: u32,
    // Few: looked up faster than by a hash.
    of_kind: BTreeMap<ObjectKind, u32>,
    of_object: BTreeMap<(ObjectKind, u32), u32>,
    functions: Arc<HashMap<String, Function>>,
}

impl Access {
    /// The rights as they are now.
    pub(crate) fn of(node: &Node, scratch: &mut Scratch) -> Result<Arc<Access>, BoxError> {
        let version = node.keyspace.spaces.access_version();
        if let Some(access) = node.keyspace.spaces.cached(version) {
            return Ok(access);
        }
        let catalog = node.keyspace.spaces.catalog();
        let ids = [system::FUNC, system::USER, system::PRIV];
        let mut tx = node.keyspace.begin_on_spaces(&catalog, &ids, scratch)?;
        let mut access = Access::default();
        let functions = tx.space(system::FUNC).require_index(0)?.tuples();
        let functions = functions.filter_map(|tuple| function_of(tuple.bytes()));
        access.functions = Arc::new(functions.collect());
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

    /// A tuple of `_user`. One that cannot be read has no rights.
    fn add_user(&mut self, tuple: &[u8]) {
        if let Some(user) = user_of(tuple) {
            self.by_name.insert(user.name.clone(), user.id);
            self.users.insert(user.id, user);
        }
    }

    /// A tuple of `_priv`. One that cannot be read grants nothing.
    fn add_grant(&mut self, tuple: &[u8]) {
        if let Ok(grant) = Grant::from_tuple(tuple) {
            self.grants.entry(grant.grantee).or_default().push(grant);
        }
    }

    /// A user, not a role, by name.
    pub(crate) fn user_named(&self, name: &str) -> Option<&User> {
        self.by_name.get(name).and_then(|id| self.users.get(id)).filter(|user| !user.is_role)
    }

    /// All rights of a user; none, if that user is gone and another one has its number.
    pub(crate) fn rights(&self, id: u32, is_gone: bool) -> Rights {
        let mut rights = Rights {
            changed: self.changed,
            id,
            functions: Arc::clone(&self.functions),
            ..Rights::default()
        };
        let Some(user) = self.users.get(&id).filter(|_| !is_gone) else { return rights };
        rights.user = Some(user.name.clone());
        if user.id == ADMIN {
            rights.universe = u32::MAX;
        }
        let mut seen = BTreeSet::new();
        let mut rest = vec![user.id];
        while let Some(grantee) = rest.pop() {
            if !seen.insert(grantee) {
                continue;
            }
            if grantee == SUPER {
                rights.universe = u32::MAX;
            }
            for grant in self.grants.get(&grantee).into_iter().flatten() {
                match grant.role() {
                    Some(role) => rest.push(role),
                    None => rights.add(grant),
                }
            }
        }
        rights
    }
}

impl Rights {
    fn add(&mut self, grant: &Grant) {
        let more = grant.privileges;
        match (grant.kind, grant.object) {
            (ObjectKind::Universe, _) => self.universe |= more,
            // As Tarantool has it: with `execute` among others, it is neither the role nor a right.
            (ObjectKind::Role, Some(_)) if more & Privilege::EXECUTE.0 != 0 => {}
            (kind, Some(object)) => *self.of_object.entry((kind, object)).or_default() |= more,
            (kind, None) => *self.of_kind.entry(kind).or_default() |= more,
        }
    }

    fn of_kind(&self, kind: ObjectKind) -> u32 {
        self.of_kind.get(&kind).copied().unwrap_or(0)
    }

    fn of_object(&self, kind: ObjectKind, id: Option<u32>) -> u32 {
        id.and_then(|id| self.of_object.get(&(kind, id))).copied().unwrap_or(0)
    }

    fn owns(&self, owner: u32) -> bool {
        self.user.is_some() && self.id == owner
    }

    /// Whether the user may do this with the space: number, name and owner.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    #[inline]
    pub(crate) fn check_space(
        &self,
        (id, name, owner): (SpaceId, &str, u32),
        right: Privilege,
    ) -> Result<(), BoxError> {
        let wanted = right.0 | Privilege::USAGE.0;
        if self.universe & wanted == wanted {
            return Ok(());
        }
        self.check_object(&RightsObject::space(id, name, owner), right)
    }

    /// Whether the user may take numbers of the sequence: number, name and owner.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub(crate) fn check_sequence(
        &self,
        (id, name, owner): (u32, &str, u32),
    ) -> Result<(), BoxError> {
        let (kind, id) = (ObjectKind::Sequence, Some(id));
        self.check_object(&RightsObject { kind, id, name, owner }, Privilege::WRITE)
    }

    /// Whether the user may use an object.
    fn check_object(&self, object: &RightsObject<'_>, right: Privilege) -> Result<(), BoxError> {
        let wanted = right.0 | Privilege::USAGE.0;
        let missing = wanted & !self.universe & !self.of_kind(object.kind);
        if missing & Privilege::USAGE.0 == 0
            && (self.owns(object.owner) || missing & !self.of_object(object.kind, object.id) == 0)
        {
            return Ok(());
        }
        if self.universe & Privilege::USAGE.0 == 0 {
            return Err(self.denied(Privilege::USAGE, ObjectKind::Universe, ""));
        }
        Err(self.denied(right, object.kind, object.name))
    }

    /// Whether a view shows this tuple of its space to the user: what it owns, what it has some
    /// right to, itself.
    pub(crate) fn sees(&self, catalog: &Catalog, view: SpaceId, tuple: &[u8]) -> bool {
        const ANY: u32 =
            Privilege::READ.0 | Privilege::WRITE.0 | Privilege::DROP.0 | Privilege::ALTER.0;
        let stored = system::view_of(view);
        let reads_stored = self.of_object(ObjectKind::Space, stored) & Privilege::READ.0 != 0;
        if self.universe & ANY != 0 || reads_stored || view == system::VCOLLATION {
            return true;
        }
        // Of most spaces: the object's number, and its owner.
        let Some([first, second]) = first_numbers(tuple) else { return false };
        let has = |kind, any: u32| {
            self.of_kind(kind) & any != 0 || self.of_object(kind, Some(first)) & any != 0
        };
        let executes = ANY | Privilege::EXECUTE.0;
        let runs = self.universe & executes != 0;
        match view {
            system::VSPACE | system::VINDEX | system::VSPACE_SEQUENCE => {
                has(ObjectKind::Space, ANY)
                    || catalog.owner(first).is_some_and(|owner| self.owns(owner))
            }
            system::VFUNC => runs || has(ObjectKind::Function, executes) || self.owns(second),
            system::VSEQUENCE => runs || has(ObjectKind::Sequence, executes) || self.owns(second),
            system::VUSER => first == PUBLIC || self.owns(first) || self.owns(second),
            // The grantor and the grantee.
            system::VPRIV => self.owns(first) || self.owns(second),
            _ => false,
        }
    }

    /// Whether the user may call this: a function of `_func`, or anything else by its name.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub(crate) fn check_call(&self, name: &str) -> Result<(), BoxError> {
        let wanted = Privilege::EXECUTE.0 | Privilege::USAGE.0;
        let missing = wanted & !self.universe;
        if missing == 0 {
            return Ok(());
        }
        let denied = |right| Err(self.denied(right, ObjectKind::Function, name));
        let Some(Function { id, owner, .. }) = self.functions.get(name) else {
            return denied(Privilege(missing));
        };
        let missing = missing & !self.of_kind(ObjectKind::Function);
        let is_granted = missing & !self.of_object(ObjectKind::Function, Some(*id)) == 0;
        if missing & Privilege::USAGE.0 != 0 || !self.owns(*owner) && !is_granted {
            return denied(Privilege::EXECUTE);
        }
        Ok(())
    }

    /// Whose rights what is called has: its owner's, if `_func` says so.
    pub(crate) fn runs_as(&self, name: &str, kind: Kind) -> u32 {
        let is_call = matches!(kind, Kind::Call | Kind::Call16);
        let function = if is_call { self.functions.get(name) } else { None };
        function.filter(|it| it.is_setuid).map_or(self.id, |it| it.owner)
    }

    /// The function of this name, if it has a text and its caller's rights.
    pub(crate) fn persistent(&self, name: &str) -> Option<&Arc<Persistent>> {
        self.functions.get(name)?.persistent.as_ref()
    }

    /// Whether `_func` has a function of this name.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Whether the user may run code of its own.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub(crate) fn check_evaluation(&self) -> Result<(), BoxError> {
        let wanted = Privilege::EXECUTE.0 | Privilege::USAGE.0;
        match wanted & !self.universe {
            0 => Ok(()),
            missing => Err(self.denied(Privilege(missing), ObjectKind::Universe, "")),
        }
    }

    /// Whether the user was given the right to change something, besides what everybody was: of
    /// system spaces, that is little.
    pub(crate) fn may_change(&self) -> bool {
        let of_kind = |kind| self.of_kind.get(&kind).copied().unwrap_or(0);
        let is_own = |kind, id| kind == ObjectKind::Space && id >= system::USER_ID_MIN;
        let writes_own = self
            .of_object
            .iter()
            .any(|(&(kind, id), rights)| is_own(kind, id) && rights & Privilege::WRITE.0 != 0);
        let writes = self.universe | of_kind(ObjectKind::Space);
        let executes = self.universe | of_kind(ObjectKind::Function);
        writes_own || writes & Privilege::WRITE.0 != 0 || executes & Privilege::EXECUTE.0 != 0
    }

    /// Whether the user may log in.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    pub(crate) fn check_session(&self) -> Result<(), BoxError> {
        match self.universe & Privilege::SESSION.0 {
            0 => Err(self.denied(Privilege::SESSION, ObjectKind::Universe, "")),
            _ => Ok(()),
        }
    }

    fn denied(&self, right: Privilege, kind: ObjectKind, name: &str) -> BoxError {
        match &self.user {
            Some(user) => access_denied(right, kind, name, user),
            None => error::user_is_gone(self.id),
        }
    }
}

impl DefinitionRights for Rights {
    fn check_definition(
        &self,
        object: &RightsObject<'_>,
        privilege: Privilege,
    ) -> Result<(), BoxError> {
        let (usage, create) = (Privilege::USAGE.0, Privilege::CREATE.0);
        let mut missing = (usage | privilege.0) & !self.universe & !self.of_kind(object.kind);
        let is_owner = self.owns(object.owner) || self.owns(ADMIN);
        if missing == 0 || is_owner && missing & (usage | create) == 0 {
            return Ok(());
        }
        if missing & usage != 0 {
            return Err(self.denied(Privilege::USAGE, ObjectKind::Universe, ""));
        }
        missing &= !self.of_object(object.kind, object.id);
        match missing {
            0 => Ok(()),
            _ => Err(self.denied(Privilege(missing), object.kind, object.name)),
        }
    }

    fn check_write(&self, space: &RightsObject<'_>) -> Result<(), BoxError> {
        self.check_object(space, Privilege::WRITE)
    }

    fn check_password(&self, user: u32, method: &[u8], value: &[u8]) -> Result<bool, BoxError> {
        let Some(stored) = StoredPassword::read(method, value) else { return Ok(false) };
        let stored = stored.map_err(|error| {
            BoxError::new(ErrorCode(StoredPasswordError::CODE), error.to_string())
        })?;
        if user == GUEST && stored != StoredPassword::chap_sha1(b"") {
            let message = "Setting password for guest user has no effect";
            return Err(BoxError::new(GUEST_USER_PASSWORD, message));
        }
        Ok(true)
    }
}

fn user_of(tuple: &[u8]) -> Option<User> {
    const AUTH: u32 = 4;
    let UserDef { id, name, is_role, .. } = UserDef::from_tuple(tuple).ok()?;
    let mut passwords = Vec::new();
    if let Some(mut auth) = fields::field(tuple, AUTH)
        && let Ok(pairs) = read_map(&mut auth)
    {
        for _ in 0..pairs {
            let method = read_str(&mut auth).ok()?;
            let stored = StoredPassword::read(method, take(&mut auth).ok()?);
            passwords.extend(stored.and_then(Result::ok));
        }
    }
    Some(User { id, name, is_role, passwords })
}

/// A function's name, number and owner.
fn function_of(tuple: &[u8]) -> Option<(String, Function)> {
    let [id, owner] = first_numbers(tuple)?;
    let mut name = fields::field(tuple, 2)?;
    let name = String::from_utf8_lossy(read_str(&mut name).ok()?).into_owned();
    let is_setuid = fields::field(tuple, 3).is_some_and(|mut it| read_uint(&mut it) == Ok(1));
    let persistent = if is_setuid { None } else { persistent_of(tuple, &name) };
    Some((name, Function { id, owner, is_setuid, persistent }))
}

/// The function with the text that a tuple has: the same one as before, as long as somebody knows it.
fn persistent_of(tuple: &[u8], name: &str) -> Option<Arc<Persistent>> {
    const LANGUAGE: u32 = 4;
    const BODY: u32 = 5;
    const SANDBOXED: u32 = 12;
    static KNOWN: Mutex<BTreeMap<(String, String), Weak<Persistent>>> = Mutex::new(BTreeMap::new());
    let text = |field| read_str(&mut fields::field(tuple, field)?).ok();
    let body = String::from_utf8(text(BODY)?.to_vec()).ok().filter(|body| !body.is_empty())?;
    // What a sandbox hides from it, no machine here does.
    let is_sandboxed = fields::field(tuple, SANDBOXED) == Some(&[0xc3]);
    if is_sandboxed || text(LANGUAGE) != Some(b"LUA") {
        return None;
    }
    let mut known = KNOWN.lock();
    known.retain(|_, one| one.strong_count() > 0);
    let of = (name.to_owned(), body);
    if let Some(one) = known.get(&of).and_then(Weak::upgrade) {
        return Some(one);
    }
    let one = Arc::new(Persistent::new(of.0.clone(), of.1.clone()));
    known.insert(of, Arc::downgrade(&one));
    Some(one)
}

/// The first two fields, if they are numbers.
fn first_numbers(tuple: &[u8]) -> Option<[u32; 2]> {
    let mut rest = tuple;
    read_array(&mut rest).ok()?;
    let mut number = || u32::try_from(read_uint(&mut rest).ok()?).ok();
    Some([number()?, number()?])
}
