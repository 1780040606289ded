//! A cluster, or a server with read replicas, in the words of Redis' replication: a master and its
//! replicas.

use crate::cluster::{MemberView, View};
use crate::node::Node;
pub use crate::place::Place;
use crate::role::Role;
use crate::upstream::{LinkState, ReplicaView, UpstreamView};
use ladon_record::Lsn;
use std::time::Duration;

/// A member that was silent for longer is gone, unless `failover-timeout` is longer.
const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// The runs of a server's log: the identity of the one that is written now, and that of the one before,
/// with its end.
pub type LogRuns = (String, Option<(String, Lsn)>);

/// What clients see of the cluster at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// The cluster.
    pub view: View,
    /// Whether this node is the master for clients: it leads, or led and was not replaced so far.
    pub is_master: bool,
    /// Where clients reach the node that leads, if somebody is known to lead and is heard.
    pub master: Option<Place>,
    /// The end of this node's log: what the replicas of a master can reach.
    pub offset: Lsn,
    /// How long ago a replica heard its master.
    pub heard: Option<Duration>,
    /// A member that was silent for longer is gone.
    pub heard_within: Duration,
    /// The other members, at a master, unless they are silent. Without a cluster, the read replicas,
    /// also those of a replica.
    pub replicas: Vec<Replica>,
    /// Without a cluster: the link to the server that this one follows.
    pub link: Option<UpstreamView>,
    /// Without a cluster: what the log is.
    pub runs: Option<LogRuns>,
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

impl Replica {
    /// How a member that does not lead looks.
    pub fn of(member: &MemberView) -> Replica {
        let place = Place::of(&member.client);
        Replica { id: member.id, place, has: member.has, silent: member.silent }
    }

    fn read_replica((number, replica): (usize, ReplicaView)) -> Replica {
        let ReplicaView { place, durable, silent } = replica;
        Replica { id: number as u64, place, has: durable, silent: Some(silent) }
    }
}

impl Replication {
    /// The replication's id, as long as one node leads: all members have the same.
    pub fn id(&self) -> String {
        if let Some((run, _)) = &self.runs {
            return run.clone();
        }
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
    /// How the node takes part in replication; `None` where it cannot.
    pub fn replication(&self) -> Option<Replication> {
        let Some(cluster) = &self.cluster else { return self.read_replication() };
        let view = cluster.view();
        let role = self.role.get();
        let within = HEARD_WITHIN.max(Duration::from_millis(self.settings.failover_timeout()));
        Some(Replication::of(view, role, within))
    }

    /// That of a server without a cluster.
    fn read_replication(&self) -> Option<Replication> {
        let link = self.upstream.as_ref()?.view();
        let replicas = self.durability.replicas();
        let runs = replicas.as_ref().map(|replicas| replicas.runs());
        let list = replicas.map(|replicas| replicas.list()).unwrap_or_default();
        let received = link.as_ref().map(|link| link.received);
        let end = received.unwrap_or_else(|| self.durability.reserved());
        let applied = link.as_ref().map_or(end, |link| link.applied);
        let is_up = |link: &&UpstreamView| link.state == LinkState::Connected;
        Some(Replication {
            view: View { end, applied, ..View::default() },
            is_master: link.is_none(),
            master: link.as_ref().filter(is_up).map(|link| link.primary.clone()),
            offset: end,
            heard: link.as_ref().and_then(|link| link.heard),
            heard_within: Duration::from_secs(self.settings.repl_timeout()),
            replicas: list.into_iter().enumerate().map(Replica::read_replica).collect(),
            link,
            runs: runs.or_else(|| Some((self.replication_id.lock().clone(), None))),
        })
    }
}

impl Replication {
    fn of(view: View, role: Role, heard_within: Duration) -> Replication {
        let offset = view.end;
        let is_master = !role.is_replica();
        let heard = if is_master { None } else { view.heard_leader };
        let is_up = match role {
            Role::Leads => true,
            Role::Follows | Role::Witness => {
                // Elected just now, it may not answer for the group yet.
                let is_other = view.leader != Some(view.member);
                is_other && heard.is_some_and(|heard| heard <= heard_within)
            }
            Role::Alone | Role::CutOff | Role::Outside | Role::Stale => false,
        };
        let leading = view.leading().filter(|_| is_up);
        let master = leading.map(|leading| Place::of(&leading.client));
        let is_heard = |it: &MemberView| it.silent.is_some_and(|silent| silent <= heard_within);
        let follows = |member: &&MemberView| {
            is_master && member.id != view.member && member.has_data() && is_heard(member)
        };
        let replicas = view.members.iter().filter(follows).map(Replica::of).collect();
        let (link, runs) = (None, None);
        Replication { is_master, master, offset, heard, heard_within, replicas, view, link, runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::MemberKind;

    fn member(id: u64, silent: Option<u64>) -> MemberView {
        MemberView {
            id,
            client: format!("10.0.0.{id}:6379"),
            votes: true,
            has: silent.map(|_| Lsn(id * 10)),
            silent: silent.map(Duration::from_secs),
            ..MemberView::default()
        }
    }

    fn view(member_of_node: u64, leader: Option<u64>, members: Vec<MemberView>) -> View {
        let cluster = "c".repeat(32);
        let heard_leader = Some(Duration::from_secs(1));
        let (member, end) = (member_of_node, Lsn(100));
        View { cluster, member, leader, members, end, term: 7, heard_leader, ..View::default() }
    }

    fn of(view: View, role: Role) -> Replication {
        Replication::of(view, role, HEARD_WITHIN)
    }

    #[test]
    fn a_leader_is_a_master_whose_silent_members_are_no_replicas() {
        let members =
            vec![member(1, Some(0)), member(2, Some(1)), member(3, Some(9)), member(4, None)];
        let seen = of(view(1, Some(1), members.clone()), Role::Leads);
        assert!(seen.is_master);
        assert_eq!(seen.master, Some(Place::of("10.0.0.1:6379")));
        assert_eq!(seen.replicas, [Replica::of(&member(2, Some(1)))]);
        assert_eq!(seen.id(), format!("{}00000007", "c".repeat(32)));
        // Nobody is sent to a leader that most others do not hear.
        let seen = of(view(1, Some(1), members), Role::CutOff);
        assert_eq!((seen.is_master, seen.master), (true, None));
    }

    #[test]
    fn a_witness_is_nobodys_master_or_replica() {
        let witness = MemberView { kind: MemberKind::Witness, ..member(3, Some(0)) };
        let members = vec![member(1, Some(0)), member(2, Some(0)), witness];
        let seen = of(view(1, Some(1), members.clone()), Role::Leads);
        assert_eq!(seen.replicas, [Replica::of(&member(2, Some(0)))]);
        assert_eq!(of(view(2, Some(3), members.clone()), Role::Follows).master, None);
        let own = of(view(3, Some(1), members), Role::Witness);
        assert_eq!(own.master, Some(Place::of("10.0.0.1:6379")));
        assert!(!own.is_master);
    }

    #[test]
    fn a_follower_has_a_master_while_it_hears_it() {
        let members = || vec![member(1, None), member(2, None)];
        let seen = of(view(2, Some(1), members()), Role::Follows);
        assert_eq!((seen.is_master, seen.replicas.len()), (false, 0));
        assert_eq!(seen.master.map(|place| place.host), Some("10.0.0.1".to_owned()));
        let late = Some(HEARD_WITHIN * 2);
        let seen = of(View { heard_leader: late, ..view(2, Some(1), members()) }, Role::Follows);
        assert_eq!((seen.master, seen.heard), (None, late));
        assert_eq!(of(view(2, None, members()), Role::Follows).master, None);
        // It was elected, and may not answer for the group yet.
        assert_eq!(of(view(2, Some(2), members()), Role::Follows).master, None);
        assert_eq!(of(View::default(), Role::Outside).master, None);
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (address, host, port) in
            [("a.b:1", "a.b", 1), ("[::1]:65535", "::1", 65535), ("none", "none", 0)]
        {
            assert_eq!(Place::of(address), Place { host: host.to_owned(), port });
        }
    }
}
