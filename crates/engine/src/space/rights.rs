//! What the user of a statement may do to definitions. Who the user is, and what was granted to it,
//! is known above: here is what has to be asked, and when.

use ladon_record::SpaceId;
use ladon_space::{BoxError, ErrorCode};

/// `ER_ACCESS_DENIED`.
const ACCESS_DENIED: ErrorCode = ErrorCode(42);

/// What rights are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// Everything.
    Universe,
    /// A space, and its indexes.
    Space,
    /// A function.
    Function,
    /// A user.
    User,
    /// A role.
    Role,
    /// A sequence.
    Sequence,
}

impl ObjectKind {
    /// The kind that `_priv` calls so.
    pub fn named(name: &[u8]) -> Option<ObjectKind> {
        use ObjectKind::{Function, Role, Sequence, Space, Universe, User};
        let all = [Universe, Space, Function, User, Role, Sequence];
        all.into_iter().find(|kind| kind.name().as_bytes() == name)
    }

    /// As `_priv` and messages call it.
    pub const fn name(self) -> &'static str {
        match self {
            ObjectKind::Universe => "universe",
            ObjectKind::Space => "space",
            ObjectKind::Function => "function",
            ObjectKind::User => "user",
            ObjectKind::Role => "role",
            ObjectKind::Sequence => "sequence",
        }
    }
}

/// Privileges: a set of bits, as `_priv` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privilege(pub u32);

#[allow(missing_docs, reason = "the names are Tarantool's")]
impl Privilege {
    pub const READ: Privilege = Privilege(1);
    pub const WRITE: Privilege = Privilege(2);
    pub const EXECUTE: Privilege = Privilege(4);
    pub const SESSION: Privilege = Privilege(8);
    pub const USAGE: Privilege = Privilege(16);
    pub const CREATE: Privilege = Privilege(32);
    pub const DROP: Privilege = Privilege(64);
    pub const ALTER: Privilege = Privilege(128);
    /// Never granted alone: to give rights away.
    pub const GRANT: Privilege = Privilege(8_192);
    /// Never granted alone: to take rights away.
    pub const REVOKE: Privilege = Privilege(16_384);
}

impl Privilege {
    /// The name of the first of them.
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; 15] = [
            "Read",
            "Write",
            "Execute",
            "Session",
            "Usage",
            "Create",
            "Drop",
            "Alter",
            "Reference",
            "Trigger",
            "Insert",
            "Update",
            "Delete",
            "Grant",
            "Revoke",
        ];
        let first = self.0.trailing_zeros() as usize;
        if first < NAMES.len() { NAMES[first] } else { "Any" }
    }
}

/// An object that a right is asked for.
#[derive(Clone, Copy, Debug)]
pub struct RightsObject<'a> {
    /// What it is.
    pub kind: ObjectKind,
    /// Its number; `None`: all of the kind.
    pub id: Option<u32>,
    /// Its name, for messages.
    pub name: &'a str,
    /// The user that owns it.
    pub owner: u32,
}

impl<'a> RightsObject<'a> {
    /// A space.
    pub fn space(id: SpaceId, name: &'a str, owner: u32) -> RightsObject<'a> {
        RightsObject { kind: ObjectKind::Space, id: Some(id), name, owner }
    }
}

/// What a user may do to definitions.
pub trait DefinitionRights {
    /// Whether the user may create, alter, drop or grant the object.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    fn check_definition(
        &self,
        object: &RightsObject<'_>,
        privilege: Privilege,
    ) -> Result<(), BoxError>;

    /// Whether the user may write the space.
    ///
    /// # Errors
    /// `ER_ACCESS_DENIED`.
    fn check_write(&self, space: &RightsObject<'_>) -> Result<(), BoxError>;

    /// Whether a method that a user's tuple in `_user` names is one to log in by.
    ///
    /// # Errors
    /// Tarantool's, if nobody could log in by the method's value.
    fn check_password(&self, user: u32, method: &[u8], value: &[u8]) -> Result<bool, BoxError>;
}

/// Of who may do everything.
pub struct AllRights;

impl DefinitionRights for AllRights {
    fn check_definition(&self, _: &RightsObject<'_>, _: Privilege) -> Result<(), BoxError> {
        Ok(())
    }

    fn check_write(&self, _: &RightsObject<'_>) -> Result<(), BoxError> {
        Ok(())
    }

    fn check_password(&self, _: u32, _: &[u8], _: &[u8]) -> Result<bool, BoxError> {
        Ok(true)
    }
}

/// The error of who has no right.
pub fn access_denied(right: Privilege, kind: ObjectKind, name: &str, user: &str) -> BoxError {
    let (right, kind) = (right.name(), kind.name());
    let message = format!("{right} access to {kind} '{name}' is denied for user '{user}'");
    BoxError::new(ACCESS_DENIED, message)
}
