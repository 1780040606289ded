//! WATCH, UNWATCH and WATCH_ONCE: values that connectors want to hear of.
//!
//! A WATCH has no reply: the value comes as an event, at once. Who watches the same key again has
//! taken note of the value, and is sent the next one. Of the keys of the server itself (`box.`), only
//! `box.schema` does change here; others are set by a program's `box.broadcast`.

use crate::error;
use crate::server_info;
use crate::statements::Running;
use ladon_engine::Keyspace;
use ladon_iproto::reply;
use ladon_kernel::node::Node;
use ladon_kernel::shared::Shared;
use ladon_msgpack::write;
use ladon_record::Lsn;
use ladon_space::BoxError;
use std::sync::Arc;

/// The key whose value is the version of the definitions.
const SCHEMA: &[u8] = b"box.schema";
/// Keys that a connection may watch.
const KEYS_MAX: usize = 1_000;
/// Length of a key.
const KEY_BYTES_MAX: usize = 1_024;
/// Length of a value that is broadcast: each client that watches it may leave one unread.
const VALUE_BYTES_MAX: usize = 64 << 10;

impl Running<'_, '_> {
    /// WATCH.
    pub(crate) fn watch(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<(), BoxError> {
        let node = self.thread.node;
        let is_new = !self.session.watched.contains(key);
        if key.len() > KEY_BYTES_MAX || is_new && self.session.watched.len() >= KEYS_MAX {
            let limits = "a connection may watch 1000 keys of 1024 bytes";
            return Err(error::illegal(limits));
        }
        if is_new {
            self.session.watched.insert(key.into());
        }
        let value = if key == SCHEMA {
            let version = || node.keyspace.spaces.catalog().version;
            let client = self.session.client();
            let Some((version, depends)) = node.schema_watchers.watch(client, self.sync, version)
            else {
                return Ok(());
            };
            self.depends = self.depends.max(depends);
            Some(schema_value(version))
        } else if is_of_server(key) {
            if !is_new {
                // It will not change.
                return Ok(());
            }
            value_of(node, key, self.session.instance_uuid(node))
        } else {
            let client = (self.session.client(), is_new);
            let Some((value, depends)) = node.events.watch(key, client, self.sync) else {
                return Ok(());
            };
            self.depends = self.depends.max(depends);
            value.map(|value| value.to_vec())
        };
        let event = reply::event(out, self.sync, key, value.as_deref());
        event.map_err(|long| error::illegal(&long.to_string()))
    }

    /// UNWATCH.
    pub(crate) fn unwatch(&mut self, key: &[u8]) {
        let (client, ..) = self.session.client();
        if self.session.watched.remove(key) {
            unwatch(self.thread.node, key, client);
        }
    }

    /// WATCH_ONCE: replies with the value, or with nothing.
    pub(crate) fn watch_once(&mut self, key: &[u8], out: &mut Vec<u8>) -> Result<(), BoxError> {
        let node = self.thread.node;
        let value = if key == SCHEMA {
            self.depends = self.depends.max(node.schema_watchers.changed());
            Some(schema_value(node.keyspace.spaces.catalog().version))
        } else if is_of_server(key) {
            value_of(node, key, self.session.instance_uuid(node))
        } else {
            let found = node.events.value(key);
            self.depends = self.depends.max(found.as_ref().map_or(Lsn::ZERO, |it| it.1));
            found.map(|(value, _)| value.to_vec())
        };
        let data = reply::begin_data(out, self.sync, self.schema_version);
        out.extend_from_slice(value.as_deref().unwrap_or_default());
        let count = u32::from(value.is_some());
        data.finish(out, count).map_err(|long| error::illegal(&long.to_string()))
    }
}

/// A client watches a key no longer.
pub(crate) fn unwatch(node: &Node, key: &[u8], client: u64) {
    if key == SCHEMA {
        node.schema_watchers.unwatch(client);
    } else if !is_of_server(key) {
        node.events.unwatch(key, client);
    }
}

/// Whether the server itself sets the values of a key.
fn is_of_server(key: &[u8]) -> bool {
    key.starts_with(b"box.")
}

/// Sets the value (MessagePack) of a key for all who watch it; they are told once the log has come as
/// far as `depends`.
///
/// # Errors
/// The key is the server's, or too long, or there are too many.
pub fn broadcast(shared: &Shared, key: &[u8], value: &[u8], depends: Lsn) -> Result<(), BoxError> {
    if is_of_server(key) {
        return Err(error::illegal("keys that begin with 'box.' are the server's"));
    }
    if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
        return Err(error::illegal("a key has 1024 bytes, and a value 64 KiB, at most"));
    }
    let event = |value: &[u8], sync| -> Arc<[u8]> {
        let mut bytes = Vec::new();
        let written = reply::event(&mut bytes, sync, key, Some(value));
        written.expect("it is short");
        bytes.into()
    };
    if shared.events.broadcast(&shared.threads, (key, value), depends, event) {
        return Ok(());
    }
    Err(error::illegal("too many keys are broadcast"))
}

/// Tells who watches the definitions that they have changed, in the log at `depends`.
pub fn schema_changed(shared: &Shared, keyspace: &Keyspace, depends: Lsn) {
    let version = || keyspace.spaces.catalog().version;
    let event = |version, sync| -> Arc<[u8]> {
        let mut bytes = Vec::new();
        let written = reply::event(&mut bytes, sync, SCHEMA, Some(&schema_value(version)));
        written.expect("it is short");
        bytes.into()
    };
    shared.schema_watchers.tell(&shared.threads, depends, version, event);
}

fn schema_value(version: u64) -> Vec<u8> {
    let mut value = Vec::new();
    write::map(&mut value, 1);
    write::str(&mut value, b"version");
    write::uint(&mut value, version);
    value
}

/// The value of a key of the server's; `None` for those that nobody has set.
fn value_of(node: &Node, key: &[u8], instance_uuid: String) -> Option<Vec<u8>> {
    let cluster = node.replication().filter(|it| it.view.member != 0);
    let mut value = Vec::new();
    let out = &mut value;
    match key {
        b"box.id" => {
            write::map(out, 3);
            write::str(out, b"id");
            write::uint(out, cluster.as_ref().map_or(1, |it| it.view.member));
            write::str(out, b"instance_uuid");
            write::str(out, instance_uuid.as_bytes());
            write::str(out, b"replicaset_uuid");
            write::str(out, server_info::replicaset_uuid(node).as_bytes());
        }
        b"box.status" => {
            write::map(out, 4);
            write::str(out, b"status");
            write::str(out, b"running");
            write::str(out, b"is_ro");
            write::bool(out, server_info::is_read_only(node));
            write::str(out, b"is_ro_cfg");
            write::bool(out, false);
            write::str(out, b"dd_version");
            write::str(out, b"2.11.0");
        }
        b"box.election" => {
            write::map(out, 4);
            write::str(out, b"term");
            write::uint(out, cluster.as_ref().map_or(1, |it| it.view.term));
            write::str(out, b"role");
            write::str(out, server_info::election_state(node, cluster.as_ref()).as_bytes());
            write::str(out, b"is_ro");
            write::bool(out, server_info::is_read_only(node));
            write::str(out, b"leader");
            write::uint(out, cluster.as_ref().and_then(|it| it.view.leader).unwrap_or(0));
        }
        _ => return None,
    }
    Some(value)
}
