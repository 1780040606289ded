//! A cluster in the words of Redis' replication: a master and its replicas.

use crate::cluster::{MemberView, View};
use crate::node::Node;
use crate::role::Role;
use ladon_record::Lsn;
use std::time::Duration;

/// A member that was silent for longer is gone, unless `failover-timeout` is longer.
const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// What clients see of the cluster at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// The cluster.
    pub view: View,
    /// Whether this node is the master for clients: it leads, or led and was not replaced so far.
    pub is_master: bool,
    /// Where clients reach the node that leads, if somebody is known to lead and is heard.
    pub master: Option<Place>,
    /// The end of the log of this node: what the replicas of a master can reach.
    pub offset: Lsn,
    /// How long ago a replica heard its master.
    pub heard: Option<Duration>,
    /// A member that was silent for longer is gone.
    pub heard_within: Duration,
    /// The other members, at a master, unless they are silent.
    pub replicas: Vec<Replica>,
}

/// Where clients reach a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A member that follows, as another one sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its number.
    pub id: u64,
    /// Where clients reach it.
    pub place: Place,
    /// Up to where it has the log on its disk; `None`: not known.
    pub has: Option<Lsn>,
    /// How long it was silent; `None`: not known.
    pub silent: Option<Duration>,
}

impl Place {
    /// That of `HOST:PORT`; an IPv6 address is in brackets there.
    pub fn of(address: &str) -> Place {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Place { host: bare.unwrap_or(host).to_owned(), port: port.parse().unwrap_or(0) }
    }
}

impl Replica {
    /// How a member that does not lead looks.
    pub fn of(member: &MemberView) -> Replica {
        let place = Place::of(&member.client);
        Replica { id: member.id, place, has: member.has, silent: member.silent }
    }
}

impl Replication {
    /// The replication's id, as long as one node leads: all members have the same.
    pub fn id(&self) -> String {
        format!("{:0>32}{:08x}", self.view.cluster, self.view.term as u32)
    }

    /// What distinguishes a member from all others, as long as the id of a run of Redis.
    pub fn run_id(&self, member: u64) -> String {
        format!("{:0>32}{:08x}", self.view.cluster, member as u32)
    }

    /// Whether this node's vote counts.
    pub fn votes(&self) -> bool {
        self.view.members.iter().any(|it| it.id == self.view.member && it.votes)
    }
}

impl Node {
    /// How the node takes part in replication; `None` without a cluster.
    pub fn replication(&self) -> Option<Replication> {
        let view = self.cluster.as_ref()?.view();
        let role = self.role.get();
        let within = HEARD_WITHIN.max(Duration::from_millis(self.settings.failover_timeout()));
        Some(Replication::of(view, role, within, self.durability.reserved()))
    }
}

impl Replication {
    fn of(view: View, role: Role, heard_within: Duration, offset: Lsn) -> Replication {
        let is_master = !role.is_replica();
        let heard = if is_master { None } else { view.heard_leader };
        let is_up = match role {
            Role::Leads => true,
            Role::Follows => {
                // Elected just now, it may not answer for the group yet.
                let is_other = view.leader != Some(view.member);
                is_other && heard.is_some_and(|heard| heard <= heard_within)
            }
            Role::Alone | Role::CutOff | Role::Outside => false,
        };
        let leading = view.leading().filter(|_| is_up);
        let master = leading.map(|leading| Place::of(&leading.client));
        let is_heard = |it: &MemberView| it.silent.is_some_and(|silent| silent <= heard_within);
        let follows =
            |member: &&MemberView| is_master && member.id != view.member && is_heard(member);
        let replicas = view.members.iter().filter(follows).map(Replica::of).collect();
        Replication { is_master, master, offset, heard, heard_within, replicas, view }
    }
}
