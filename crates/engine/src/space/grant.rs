//! Whether a tuple of `_priv` may come or go: who grants, to whom, and what.
//!
//! Source: `priv_def_check` of Tarantool's `alter.cc`.

use super::definition::Effect;
use super::error::{
    no_such_function, no_such_role, no_such_sequence, no_such_space, no_such_user, role_loop,
    wrong_grant,
};
use super::function::FunctionDef;
use super::permission::key_of_number;
use super::rights::{DefinitionRights, ObjectKind, Privilege, RightsObject, access_denied};
use super::transaction::SpaceTx;
use super::users::{ADMIN, ALL_PRIVILEGES, Grant, PUBLIC, UserDef};
use ladon_space::{BoxError, SpaceDef, Tuple};
use ladon_system_spaces as system;
use std::collections::BTreeSet;

impl Effect<'_> {
    /// Checks a change of `_priv`; the spaces that it looks at are held.
    pub(super) fn check_grant(
        &self,
        tx: &mut SpaceTx<'_>,
        rights: &dyn DefinitionRights,
    ) -> Result<(), BoxError> {
        let privilege = if self.new.is_some() { Privilege::GRANT } else { Privilege::REVOKE };
        let Some(tuple) = self.new.or(self.old) else { return Ok(()) };
        let grant = Grant::from_tuple(tuple.bytes())?;
        let grantor = user(tx, grant.grantor)?.ok_or_else(|| no_such_user(grant.grantor))?;
        let grantee = user(tx, grant.grantee)?.ok_or_else(|| no_such_user(grant.grantee))?;
        let object = Granted::of(tx, &grant)?;
        let asked = RightsObject {
            kind: grant.kind,
            id: grant.object,
            name: &object.name,
            owner: grantor.id,
        };
        rights.check_definition(&asked, privilege)?;
        object.check_kind(&grant)?;
        let is_public = object.role.is_some_and(|role| role == PUBLIC)
            && grant.privileges == Privilege::EXECUTE.0;
        // Nobody owns the universe, or all objects of a kind.
        let is_owner = object.owner == Some(grantor.id);
        if !is_owner && grantor.id != ADMIN && !is_public {
            return Err(access_denied(privilege, grant.kind, &object.name, &grantor.name));
        }
        if object.role.is_some_and(|role| leads_to(tx, role, grantee.id)) {
            return Err(role_loop(&object.name, &grantee.name));
        }
        if grant.privileges == 0 {
            return Err(wrong_grant("the grant tuple has no privileges"));
        }
        let is_of_admin = grant.grantee == ADMIN && grant.kind == ObjectKind::Universe;
        let takes_some = self.new.is_none() || grant.privileges != ALL_PRIVILEGES;
        if is_of_admin && takes_some {
            return Err(wrong_grant("can't revoke universe from the admin user"));
        }
        Ok(())
    }
}

/// The object of a grant.
struct Granted {
    name: String,
    owner: Option<u32>,
    /// It is a role or a user, and which of them.
    is_role: bool,
    /// The role that is granted.
    role: Option<u32>,
}

impl Granted {
    fn of(tx: &mut SpaceTx<'_>, grant: &Grant) -> Result<Granted, BoxError> {
        let owned = |name, owner| Granted { name, owner: Some(owner), is_role: false, role: None };
        let nobodys = Granted { name: String::new(), owner: None, is_role: false, role: None };
        let Some(id) = grant.object else { return Ok(nobodys) };
        Ok(match grant.kind {
            ObjectKind::Universe => nobodys,
            ObjectKind::Space => {
                let tuple = tuple(tx, system::SPACE, id)?.ok_or_else(|| no_such_space(id))?;
                let def = SpaceDef::from_tuple(tuple.bytes())?;
                owned(def.name, def.owner)
            }
            ObjectKind::Function => {
                let tuple = tuple(tx, system::FUNC, id)?.ok_or_else(|| no_such_function(id))?;
                let def = FunctionDef::of_checked(tuple.bytes())?;
                owned(def.name, def.owner)
            }
            ObjectKind::Sequence => {
                let def = tx.catalog().sequence(id).ok_or_else(|| no_such_sequence(id))?;
                owned(def.name.clone(), def.owner)
            }
            ObjectKind::Role => {
                let def = user(tx, id)?.ok_or_else(|| no_such_role(id))?;
                let is_role = def.is_role;
                Granted { is_role, role: Some(id), ..owned(def.name, def.owner) }
            }
            ObjectKind::User => {
                let def = user(tx, id)?.ok_or_else(|| no_such_user(id))?;
                Granted { is_role: def.is_role, ..owned(def.name, def.owner) }
            }
        })
    }

    /// Roles and users have numbers of one row.
    fn check_kind(&self, grant: &Grant) -> Result<(), BoxError> {
        match grant.kind {
            ObjectKind::Role if grant.object.is_some() && !self.is_role => {
                Err(no_such_role(&self.name))
            }
            ObjectKind::User if grant.object.is_some() && self.is_role => {
                Err(no_such_user(&self.name))
            }
            _ => Ok(()),
        }
    }
}

fn tuple(tx: &mut SpaceTx<'_>, space: u32, id: u32) -> Result<Option<Tuple>, BoxError> {
    tx.space(space).get(0, &key_of_number(id))
}

fn user(tx: &mut SpaceTx<'_>, id: u32) -> Result<Option<UserDef>, BoxError> {
    tuple(tx, system::USER, id)?.map(|tuple| UserDef::from_tuple(tuple.bytes())).transpose()
}

/// Whether a role is the grantee, or has it among its roles, theirs included: who has the grantee
/// would come to have itself.
fn leads_to(tx: &mut SpaceTx<'_>, role: u32, grantee: u32) -> bool {
    let space = tx.space(system::PRIV);
    let Some(grants) = space.index(0) else { return false };
    let grants: Vec<Grant> =
        grants.tuples().filter_map(|tuple| Grant::from_tuple(tuple.bytes()).ok()).collect();
    let (mut seen, mut rest) = (BTreeSet::new(), vec![role]);
    while let Some(role) = rest.pop() {
        if role == grantee {
            return true;
        }
        if seen.insert(role) {
            let of_role = grants.iter().filter(|grant| grant.grantee == role);
            rest.extend(of_role.filter_map(Grant::role));
        }
    }
    false
}
