//! Users, roles and what is granted, as tuples of `_user` and `_priv` describe them.
//!
//! Source: the checks of Tarantool's `alter.cc`.

use super::error::{cannot_create_role, cannot_create_user, unknown_object_kind};
use super::rights::{ObjectKind, Privilege};
use ladon_msgpack::{Value, read, read_map, take};
use ladon_space::fields::{Fields, field};
use ladon_space::{BoxError, ErrorCode, check_identifier};

/// Every privilege that there is: Tarantool has room for so many.
pub(super) const ALL_PRIVILEGES: u32 = 0xffff;

/// The user of a connection that has not logged in.
pub const GUEST: u32 = 0;
/// The user that may do everything.
pub const ADMIN: u32 = 1;
/// The role that every user has.
pub const PUBLIC: u32 = 2;
/// The role that has every right.
pub const SUPER: u32 = 31;

/// A user or a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDef {
    /// Its number.
    pub id: u32,
    /// The number of the user that owns it.
    pub owner: u32,
    /// Its name.
    pub name: String,
    /// It is no user.
    pub is_role: bool,
}

/// A tuple of `_priv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who gave it.
    pub grantor: u32,
    /// Who has it.
    pub grantee: u32,
    /// On what.
    pub kind: ObjectKind,
    /// The number of the object; `None`: all of the kind.
    pub object: Option<u32>,
    /// What is granted.
    pub privileges: u32,
}

impl UserDef {
    /// Reads a tuple that fits the format of `_user`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn from_tuple(tuple: &[u8]) -> Result<UserDef, BoxError> {
        let (id, owner) = (number(tuple, 0)?, number(tuple, 1)?);
        let (name, kind) = (text(tuple, 2), text(tuple, 3));
        let is_role = match &*kind {
            "user" => false,
            "role" => true,
            _ => return Err(cannot_create_user(&name, "unknown user type")),
        };
        check_identifier(&name)?;
        Ok(UserDef { id, owner, name, is_role })
    }

    /// The kind of object that it is.
    pub fn kind(&self) -> ObjectKind {
        if self.is_role { ObjectKind::Role } else { ObjectKind::User }
    }

    /// Checks how the user of this tuple may log in: `check` gets the methods and their values, up
    /// to the first one that it says it knows.
    ///
    /// # Errors
    /// Tarantool's.
    pub(super) fn check_passwords(
        &self,
        tuple: &[u8],
        check: impl Fn(&[u8], &[u8]) -> Result<bool, BoxError>,
    ) -> Result<(), BoxError> {
        const AUTH: u32 = 4;
        let Some(mut auth) = field(tuple, AUTH) else { return Ok(()) };
        let Ok(count) = read_map(&mut auth) else { return Ok(()) };
        if count > 0 && self.is_role {
            let why = "authentication data can not be set for a role";
            return Err(cannot_create_role(&self.name, why));
        }
        for _ in 0..count {
            let method = read(&mut auth)?;
            let value = take(&mut auth)?;
            if let Value::Str(method) = method
                && check(method, value)?
            {
                break;
            }
        }
        Ok(())
    }
}

impl Grant {
    /// Reads a tuple that fits the format of `_priv`.
    ///
    /// # Errors
    /// Tarantool's.
    pub fn from_tuple(tuple: &[u8]) -> Result<Grant, BoxError> {
        let (grantor, grantee) = (number(tuple, 0)?, number(tuple, 1)?);
        let name = text(tuple, 2);
        let kind = ObjectKind::named(name.as_bytes());
        let is_of_all = field(tuple, 3) == Some(&[0xa0]);
        let object = if is_of_all { None } else { Some(number(tuple, 3)?) };
        let kind = kind.filter(|kind| *kind != ObjectKind::Universe || !is_of_all);
        let kind = kind.ok_or_else(|| unknown_object_kind(&name))?;
        let privileges = number(tuple, 4)? & ALL_PRIVILEGES;
        Ok(Grant { grantor, grantee, kind, object, privileges })
    }

    /// The role that the grantee gets, if that is what is granted.
    pub fn role(&self) -> Option<u32> {
        let is_role = self.kind == ObjectKind::Role && self.privileges == Privilege::EXECUTE.0;
        self.object.filter(|_| is_role)
    }
}

/// A field that is a number of 32 bits.
pub(super) fn number(tuple: &[u8], at: u32) -> Result<u32, BoxError> {
    let refused = |expected: &str, got: &str| {
        let message = format!(
            "Tuple field {} type does not match one required by operation: expected {expected}, got {got}",
            at + 1
        );
        Err(BoxError::new(ErrorCode::FIELD_TYPE, message))
    };
    match field(tuple, at).and_then(|mut bytes| read(&mut bytes).ok()) {
        Some(Value::Uint(number)) => match u32::try_from(number) {
            Ok(number) => Ok(number),
            Err(_) => refused("uint32_t", "uint64_t"),
        },
        Some(other) => refused("unsigned", other.kind().name()),
        None => {
            let message = format!("Field {} was not found in the tuple", at + 1);
            Err(BoxError::new(ErrorCode::NO_SUCH_FIELD_NO, message))
        }
    }
}

/// A field that the format demands to be a string.
pub(super) fn text(tuple: &[u8], at: usize) -> String {
    let bytes = Fields::of(tuple).nth(at).and_then(|mut bytes| match read(&mut bytes) {
        Ok(Value::Str(bytes)) => Some(bytes),
        _ => None,
    });
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ladon_msgpack::write;

    fn grant(
        kind: &str,
        object: impl Fn(&mut Vec<u8>),
        privileges: u64,
    ) -> Result<Grant, BoxError> {
        let mut tuple = Vec::new();
        write::array(&mut tuple, 5);
        write::uint(&mut tuple, 1);
        write::uint(&mut tuple, 32);
        write::str(&mut tuple, kind.as_bytes());
        object(&mut tuple);
        write::uint(&mut tuple, privileges);
        Grant::from_tuple(&tuple)
    }

    #[test]
    fn a_grant_is_of_a_known_kind_and_number() {
        let one = |out: &mut Vec<u8>| write::uint(out, 31);
        let all = |out: &mut Vec<u8>| write::str(out, b"");
        let word = |out: &mut Vec<u8>| write::str(out, b"x");
        assert_eq!(grant("role", one, 4).unwrap().role(), Some(31));
        assert_eq!(grant("role", one, 4 | 64).unwrap().role(), None);
        assert_eq!(grant("space", all, 1).unwrap().object, None);
        for (kind, message) in [
            (grant("spoon", one, 1), "Unknown object type 'spoon'"),
            (grant("universe", all, 1), "Unknown object type 'universe'"),
            (
                grant("space", word, 1),
                "Tuple field 4 type does not match one required by operation: expected unsigned, got string",
            ),
            (
                grant("space", one, 1 << 40),
                "Tuple field 5 type does not match one required by operation: expected uint32_t, got uint64_t",
            ),
        ] {
            assert_eq!(kind.unwrap_err().message, message);
        }
    }
}
