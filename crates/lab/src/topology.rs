//! How the nodes of a system stand to each other.

use serde::Serialize;

/// How several nodes stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// One node.
    Single,
    /// A master and a replica that copies it.
    Replica,
    /// Two nodes that both take writes and copy each other.
    MasterMaster,
    /// Shards with replicas each.
    Cluster {
        /// How many parts the keys are dealt to.
        shards: usize,
        /// Copies of each part beside its master.
        replicas: usize,
    },
}

impl Topology {
    /// How many nodes it has.
    #[must_use]
    pub const fn nodes(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Replica | Self::MasterMaster => 2,
            Self::Cluster { shards, replicas } => shards * (1 + replicas),
        }
    }
}
