//! `LADON.SPACE LIST`.

use super::FIRST_OWN;
use super::json::field_name;
use ladon_kernel::command::error::CommandResult;
use ladon_kernel::ctx::Ctx;
use ladon_record::SpaceId;
use ladon_space::{Index, IndexKind, Space};
use serde_json::{Value, json};

pub(super) fn list(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let catalog = ctx.keyspace().spaces.catalog_to_keep();
    let ids: Vec<SpaceId> = catalog.cells().map(|cell| cell.id()).collect();
    let mut all = Vec::new();
    for id in ids.into_iter().filter(|&id| id >= FIRST_OWN) {
        // One that is gone by now is left out.
        if let Ok(Some(described)) = ctx.read_space(id, |space| Ok(described(space))) {
            all.push(described);
        }
    }
    ctx.reply.bulk(Value::Array(all).to_string());
    Ok(())
}

/// A space, unless it is a view.
fn described(space: &Space) -> Option<Value> {
    let def = space.def();
    if def.is_view {
        return None;
    }
    let fields = def.format.fields.iter().map(|field| {
        json!({"name": field.name, "type": field.kind.name(), "is_nullable": field.is_nullable})
    });
    let parts = space.index(0).map(|index| &index.def().parts[..]).unwrap_or_default();
    let primary_key: Vec<String> =
        parts.iter().map(|part| field_name(space, part.field as usize)).collect();
    let mount = def.resp_prefix.as_ref().map(|prefix| String::from_utf8_lossy(prefix).into_owned());
    Some(json!({
        "id": def.id,
        "name": def.name,
        "engine": def.engine,
        "count": space.len(),
        "bytes": space.bytes(),
        "format": fields.collect::<Vec<_>>(),
        "primary_key": primary_key,
        "indexes": space.indexes().map(|index| index_of(space, index)).collect::<Vec<_>>(),
        "mount": mount,
    }))
}

fn index_of(space: &Space, index: &Index) -> Value {
    let def = index.def();
    let kind = match def.kind {
        IndexKind::Tree => "tree",
        IndexKind::Hash => "hash",
        IndexKind::Bitset => "bitset",
        IndexKind::Rtree => "rtree",
    };
    let parts = def.parts.iter().map(
        |part| json!({"field": field_name(space, part.field as usize), "type": part.kind.name()}),
    );
    json!({
        "id": def.id, "name": def.name, "type": kind, "unique": def.is_unique,
        "parts": parts.collect::<Vec<_>>(),
    })
}
