//! CREATE TRIGGER and DROP TRIGGER: an option of the space in its tuple of `_space`.

use crate::ast::{CreateTrigger, Timing};
use crate::catalog::{Table, Trigger};
use crate::definition::{Definition, Definitions, Schema, existing, with_option};
use crate::error::{self, Error};
use ladon_msgpack::write;
use ladon_system_spaces::SPACE;

/// The option: a map of names and texts.
const OPTION: &str = "sql_triggers";

pub(crate) fn create(
    trigger: &CreateTrigger,
    schema: &mut dyn Schema,
) -> Result<Definitions, Error> {
    let CreateTrigger { name, timing, .. } = trigger;
    let table = existing(schema, &trigger.table)?;
    if schema.trigger_table(name)?.is_some() {
        if trigger.if_not_exists {
            return Ok(Definitions::default());
        }
        let message = format!("Trigger '{name}' already exists");
        return Err(error::make(error::TRIGGER_EXISTS, message));
    }
    let (is_view, is_instead) = (table.view.is_some(), *timing == Timing::InsteadOf);
    if is_view != is_instead {
        let what = match timing {
            Timing::Before => "BEFORE trigger on view",
            Timing::After => "AFTER trigger on view",
            Timing::InsteadOf => "INSTEAD OF trigger on space",
        };
        return Err(error::execute(&format!("cannot create {what}: {}", table.name)));
    }
    let mut triggers = table.triggers.clone();
    triggers.push(Trigger { name: name.clone(), text: trigger.text.clone() });
    Ok(with_triggers(&table, &triggers))
}

pub(crate) fn drop(
    name: &str,
    if_exists: bool,
    schema: &mut dyn Schema,
) -> Result<Definitions, Error> {
    let Some(table) = schema.trigger_table(name)? else {
        if if_exists {
            return Ok(Definitions::default());
        }
        let message = format!("Trigger '{name}' doesn't exist");
        return Err(error::make(error::NO_SUCH_TRIGGER, message));
    };
    let table = existing(schema, &table)?;
    let mut triggers = table.triggers.clone();
    triggers.retain(|trigger| trigger.name != name);
    Ok(with_triggers(&table, &triggers))
}

fn with_triggers(table: &Table, triggers: &[Trigger]) -> Definitions {
    let mut value = Vec::new();
    write::map(&mut value, triggers.len() as u32);
    for trigger in triggers {
        write::str(&mut value, trigger.name.as_bytes());
        write::str(&mut value, trigger.text.as_bytes());
    }
    let value = (!triggers.is_empty()).then_some(&value[..]);
    let tuple = with_option(&table.definition, OPTION, value);
    let steps = vec![Definition::Replace { space: SPACE, tuple }];
    Definitions { steps, count: 1 }
}
