//! What has to be counted rather than read: keys by database, tuples by space, clients by state.
//!
//! Each partition and each space is locked for a moment, one after the other. What somebody holds
//! for long keeps the figures of the census before.

use ladon_engine::{Locks, MOUNTS_DATABASE, PARTITIONS, Scratch};
use ladon_kernel::client::clients::ClientInfo;
use ladon_kernel::node::Node;
use ladon_system_spaces::is_system;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Spaces with metrics of their own; what is beyond is only part of the sums.
const SPACES_MAX: usize = 1000;

/// The keys of one database.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Keys {
    pub(crate) keys: u64,
    pub(crate) expiring: u64,
    /// Sum of the mean remaining times, each times its number of keys.
    ttl_ms: f64,
}

impl Keys {
    /// Mean remaining time of keys that expire.
    pub(crate) fn mean_ttl_seconds(&self) -> f64 {
        if self.expiring == 0 { 0.0 } else { self.ttl_ms / self.expiring as f64 / 1000.0 }
    }

    fn add(&mut self, other: Keys) {
        self.keys += other.keys;
        self.expiring += other.expiring;
        self.ttl_ms += other.ttl_ms;
    }
}

/// A space of a user.
#[derive(Clone, Debug)]
pub(crate) struct SpaceSize {
    pub(crate) name: String,
    pub(crate) tuples: u64,
    pub(crate) bytes: u64,
    is_mounted: bool,
}

/// Numbers of clients.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientCounts {
    pub(crate) connected: u64,
    pub(crate) blocked: u64,
    pub(crate) subscribed: u64,
    pub(crate) watching: u64,
    pub(crate) output_bytes_max: u64,
    pub(crate) query_bytes_max: u64,
}

/// What was counted.
pub(crate) struct Census {
    /// By partition, then by database.
    partitions: Vec<Vec<Keys>>,
    spaces: BTreeMap<u32, SpaceSize>,
    pub(crate) clients: ClientCounts,
    /// Keeps the data's identity: a census of other data says nothing about this.
    keyspace: Arc<ladon_engine::Keyspace>,
}

impl Census {
    /// Counts; `before` has the figures of what cannot be looked at now.
    pub(crate) fn take(node: &Node, before: Option<&Census>) -> Census {
        Census {
            partitions: count_keys(node, before),
            spaces: measure_spaces(node, before),
            clients: count_clients(&node.clients.list()),
            keyspace: Arc::clone(&node.keyspace),
        }
    }

    /// Whether it is about this node's data.
    pub(crate) fn is_of(&self, node: &Node) -> bool {
        Arc::ptr_eq(&self.keyspace, &node.keyspace)
    }

    /// Databases that have keys, with their numbers.
    pub(crate) fn databases(&self) -> Vec<(usize, Keys)> {
        let count = self.partitions.iter().map(Vec::len).max().unwrap_or(0);
        let mut sums = vec![Keys::default(); count];
        for partition in &self.partitions {
            partition.iter().zip(&mut sums).for_each(|(keys, sum)| sum.add(*keys));
        }
        let mounted = self.spaces.values().filter(|space| space.is_mounted);
        let tuples: u64 = mounted.map(|space| space.tuples).sum();
        if let Some(sum) = sums.get_mut(usize::from(MOUNTS_DATABASE)) {
            sum.keys += tuples;
        }
        sums.into_iter().enumerate().filter(|(_, keys)| keys.keys > 0).collect()
    }

    /// The first thousand spaces of users.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = (u32, &SpaceSize)> {
        self.spaces.iter().map(|(id, space)| (*id, space))
    }
}

fn count_keys(node: &Node, before: Option<&Census>) -> Vec<Vec<Keys>> {
    let mut scratch = Scratch::default();
    let databases = node.keyspace.databases();
    let now_ms = node.clock.unix_ms();
    let count = |partition: usize| {
        let locks = Locks::Partition(partition);
        // A long script may hold it.
        let Some(mut tx) = node.begin_or_busy(locks, &mut scratch, now_ms) else {
            let before = before.and_then(|before| before.partitions.get(partition));
            return before.cloned().unwrap_or_default();
        };
        let of = |number| {
            let db = node.keyspace.select(number);
            let (keys, expiring, ttl_ms) = tx.summary(db);
            let ttl_ms = ttl_ms as f64 * expiring as f64;
            Keys { keys: keys as u64, expiring: expiring as u64, ttl_ms }
        };
        (0..databases).map(of).collect()
    };
    (0..PARTITIONS).map(count).collect()
}

fn measure_spaces(node: &Node, before: Option<&Census>) -> BTreeMap<u32, SpaceSize> {
    let catalog = node.keyspace.spaces.catalog_to_keep();
    let mut sizes = BTreeMap::new();
    let users = catalog.cells().filter(|cell| !is_system(cell.id()));
    for cell in users.take(SPACES_MAX) {
        let id = cell.id();
        if cell.is_locked() {
            if let Some(size) = before.and_then(|before| before.spaces.get(&id)) {
                sizes.insert(id, size.clone());
            }
            continue;
        }
        let is_mounted = catalog.mounts().iter().any(|mount| mount.space == id);
        let (size, _) = catalog.read(id, |space| {
            let (name, bytes) = (space.def().name.clone(), space.bytes() as u64);
            Ok(SpaceSize { name, tuples: space.len(), bytes, is_mounted })
        });
        // It may have been dropped since.
        sizes.extend(size.ok().map(|size| (id, size)));
    }
    sizes
}

fn count_clients(clients: &[Arc<ClientInfo>]) -> ClientCounts {
    let count = |is: fn(&ClientInfo) -> bool| clients.iter().filter(|it| is(it)).count() as u64;
    let most = |of: fn(&ClientInfo) -> usize| clients.iter().map(|it| of(it)).max().unwrap_or(0);
    ClientCounts {
        connected: clients.len() as u64,
        blocked: count(|client| client.blocked.load(Relaxed)),
        subscribed: count(ClientInfo::is_subscribed),
        watching: count(|client| client.watched.load(Relaxed) > 0),
        output_bytes_max: most(|client| client.output_bytes.load(Relaxed)) as u64,
        query_bytes_max: most(|client| client.query_capacity.load(Relaxed)) as u64,
    }
}
