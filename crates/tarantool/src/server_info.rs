//! `CALL "box.info"`: what clients ask of a server, and of its cluster. It has what is known here, and
//! nothing else.
//!
//! A read replica and who is followed by some know each other under `replication` as well.
//!
//! A cluster's log has one position, whoever wrote: it stands under 1 in every `vclock`.

use crate::session::VERSION;
use crate::statements::Running;
use ladon_kernel::cluster::MemberView;
use ladon_kernel::node::Node;
use ladon_kernel::replication::{Replica, Replication};
use ladon_kernel::role::Role;
use ladon_kernel::upstream::{LinkState, UpstreamView};
use ladon_msgpack::write;
use ladon_record::Lsn;
use ladon_settings::Endpoint;

/// A value of Lua.
enum Fact {
    Text(String),
    Number(u64),
    Real(f64),
    Switch(bool),
    Named(Vec<(&'static str, Fact)>),
    Numbered(Vec<(u64, Fact)>),
}

impl Fact {
    fn text(text: &str) -> Fact {
        Fact::Text(text.to_owned())
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Fact::Text(text) => write::str(out, text.as_bytes()),
            Fact::Number(number) => write::uint(out, *number),
            Fact::Real(number) => write::double(out, *number),
            Fact::Switch(is_on) => write::bool(out, *is_on),
            Fact::Named(facts) => {
                write::map(out, facts.len() as u32);
                for (name, fact) in facts {
                    write::str(out, name.as_bytes());
                    fact.write(out);
                }
            }
            Fact::Numbered(facts) => {
                write::map(out, facts.len() as u32);
                for (number, fact) in facts {
                    write::uint(out, *number);
                    fact.write(out);
                }
            }
        }
    }
}

impl Running<'_, '_> {
    /// The facts as a map, if the function is this one.
    pub(crate) fn server_info(&self, function: &str) -> Option<Vec<u8>> {
        let node = self.thread.node;
        match function {
            "box.info" => {}
            "box.info.gc" => {
                let mut out = Vec::new();
                kept(node).write(&mut out);
                return Some(out);
            }
            _ => return None,
        }
        let uptime = self.thread.now_ms.saturating_sub(node.started_ms) / 1000;
        let replication = node.replication();
        let cluster = replication.as_ref().filter(|it| it.view.member != 0);
        let alone = replication.as_ref().filter(|it| it.view.member == 0);
        let link = alone.and_then(|it| it.link.as_ref());
        let position = match &cluster {
            Some(it) if it.is_master => it.view.end,
            Some(it) => it.view.applied,
            None => link.map_or_else(|| node.durability.reserved(), |link| link.applied),
        };
        // Whom a read replica follows has the first number.
        let alone_id = if link.is_some() { 2 } else { 1 };
        let own = cluster.map_or(alone_id, |it| it.view.member);
        let role = node.role.get();
        let mut facts = vec![
            ("version", Fact::text(VERSION)),
            ("package", Fact::text("Ladon")),
            ("id", Fact::Number(own)),
            ("ro", Fact::Switch(is_read_only(node))),
            ("uuid", Fact::Text(instance_uuid(node))),
            ("lsn", Fact::Number(position.0)),
            ("signature", Fact::Number(position.0)),
            ("vclock", vclock(position)),
            ("status", Fact::text(if role == Role::Outside { "orphan" } else { "running" })),
            ("uptime", Fact::Number(uptime)),
            ("pid", Fact::Number(node.process.facts().process_id.into())),
            ("cluster", Fact::Named(vec![("uuid", Fact::Text(replicaset_uuid(node)))])),
            ("replication_anon", Fact::Named(vec![("count", Fact::Number(0))])),
            ("election", election(node, cluster)),
        ];
        if let Some(reason) = read_only_reason(node) {
            facts.push(("ro_reason", Fact::text(reason)));
        }
        if let Some(cluster) = cluster {
            let members = cluster.view.members.iter();
            let members = members.map(|it| (it.id, member(cluster, it, position))).collect();
            facts.push(("replication", Fact::Numbered(members)));
            facts.push(("synchro", synchro(cluster)));
        } else {
            let own = Fact::Named(vec![
                ("id", Fact::Number(own)),
                ("uuid", Fact::Text(instance_uuid(node))),
                ("lsn", Fact::Number(position.0)),
            ]);
            facts.push(("replication", servers(alone, own)));
        }
        if let Some(address) = resp_address(node) {
            facts.push(("resp", Fact::Text(address)));
        }
        let mut out = Vec::new();
        Fact::Named(facts).write(&mut out);
        Some(out)
    }
}

/// Whether statements that write are refused.
pub(crate) fn is_read_only(node: &Node) -> bool {
    !node.may_change()
}

/// Identifies the node: a member as long as it is one, another server for a run.
pub(crate) fn instance_uuid(node: &Node) -> String {
    let view = node.cluster.as_ref().map(|cluster| cluster.view());
    match view.filter(|view| view.member != 0) {
        Some(view) => member_uuid(&view.cluster, view.member),
        None => crate::session::uuid_of(&node.run_id.lock()),
    }
}

/// Identifies the history of the data, which all members share.
pub(crate) fn replicaset_uuid(node: &Node) -> String {
    let view = node.cluster.as_ref().map(|cluster| cluster.view());
    match view.filter(|view| view.member != 0) {
        Some(view) => crate::session::uuid_of(&view.cluster),
        None => crate::session::uuid_of(&node.replication_id.lock()),
    }
}

fn member_uuid(cluster: &str, member: u64) -> String {
    let cluster = cluster.get(..24).unwrap_or_default();
    crate::session::uuid_of(&format!("{cluster:0<24}{:08x}", member as u32))
}

/// Whether a checkpoint is being made, and what is kept: the newest one, and the log behind it.
fn kept(node: &Node) -> Fact {
    let position = node.durability.reserved();
    let is_made = node.durability.status().checkpoint_in_progress;
    Fact::Named(vec![
        ("checkpoint_is_in_progress", Fact::Switch(is_made)),
        ("signature", Fact::Number(position.0)),
        ("vclock", vclock(position)),
    ])
}

fn vclock(position: Lsn) -> Fact {
    Fact::Numbered(vec![(1, Fact::Number(position.0))])
}

fn read_only_reason(node: &Node) -> Option<&'static str> {
    match node.role.get() {
        Role::Alone | Role::Leads => node.settings.read_only().then_some("config"),
        Role::Follows if node.cluster.is_none() => Some("config"),
        Role::Follows => Some("election"),
        Role::CutOff => Some("synchro"),
        Role::Outside | Role::Stale | Role::Witness => Some("orphan"),
    }
}

/// The state of the election, in the words of Tarantool.
pub(crate) fn election_state(node: &Node, cluster: Option<&Replication>) -> &'static str {
    match (node.role.get(), cluster.and_then(|it| it.view.leader)) {
        (Role::Leads | Role::CutOff, Some(_)) => "leader",
        (Role::Follows, None) if node.cluster.is_some() => "candidate",
        _ => "follower",
    }
}

fn election(node: &Node, cluster: Option<&Replication>) -> Fact {
    let leader = cluster.and_then(|it| it.view.leader).unwrap_or(0);
    Fact::Named(vec![
        ("state", Fact::text(election_state(node, cluster))),
        ("term", Fact::Number(cluster.map_or(1, |it| it.view.term))),
        ("leader", Fact::Number(leader)),
        ("vote", Fact::Number(leader)),
    ])
}

fn synchro(cluster: &Replication) -> Fact {
    let voters = cluster.view.members.iter().filter(|it| it.votes).count() as u64;
    let queue = vec![
        ("owner", Fact::Number(cluster.view.leader.unwrap_or(0))),
        ("term", Fact::Number(cluster.view.term)),
    ];
    Fact::Named(vec![("quorum", Fact::Number(voters / 2 + 1)), ("queue", Fact::Named(queue))])
}

/// Without a cluster: the server that this one follows, this one, and those that follow it, numbered in this
/// order.
fn servers(of: Option<&Replication>, own: Fact) -> Fact {
    let link = of.and_then(|it| it.link.as_ref());
    let mut all: Vec<Fact> = link.map(followed).into_iter().collect();
    all.push(own);
    if let Some(it) = of {
        let first = all.len() as u64 + 1;
        let replicas = it.replicas.iter().zip(first..);
        all.extend(replicas.map(|(one, id)| read_replica(it, one, id)));
    }
    Fact::Numbered((1..).zip(all).collect())
}

/// Where clients of Redis' protocol come, and read replicas with them.
fn resp_address(node: &Node) -> Option<String> {
    node.settings.resp().iter().find_map(|endpoint| match endpoint {
        Endpoint::Tcp { host, port, .. } if host.contains(':') => Some(format!("[{host}]:{port}")),
        Endpoint::Tcp { host, port, .. } => Some(format!("{host}:{port}")),
        Endpoint::Unix(_) => None,
    })
}

/// The server that a read replica follows. `lag` is how long ago the replica had all that the other
/// one has told; it is left out while something is still to be applied.
fn followed(link: &UpstreamView) -> Fact {
    let status = match link.state {
        LinkState::Connect => "disconnected",
        LinkState::Connecting => "connecting",
        LinkState::Sync => "sync",
        LinkState::Connected => "follow",
    };
    let place = format!("{}:{}", link.primary.host, link.primary.port);
    let mut upstream = vec![("status", Fact::text(status)), ("peer", Fact::Text(place.clone()))];
    if let Some(heard) = link.heard {
        upstream.push(("idle", Fact::Real(heard.as_secs_f64())));
        if link.received == link.applied {
            upstream.push(("lag", Fact::Real(heard.as_secs_f64())));
        }
    }
    if let Some(error) = &link.error {
        upstream.push(("message", Fact::text(error)));
    }
    Fact::Named(vec![
        ("id", Fact::Number(1)),
        ("name", Fact::Text(place)),
        ("lsn", Fact::Number(link.received.0)),
        ("upstream", Fact::Named(upstream)),
    ])
}

/// A read replica of this server.
fn read_replica(of: &Replication, it: &Replica, id: u64) -> Fact {
    let has = it.has.unwrap_or_default();
    let is_heard = it.silent.is_some_and(|silent| silent <= of.heard_within);
    let status = if it.has.is_some() && is_heard { "follow" } else { "stopped" };
    let mut downstream = vec![("status", Fact::text(status)), ("vclock", vclock(has))];
    if let Some(silent) = it.silent {
        downstream.push(("idle", Fact::Real(silent.as_secs_f64())));
    }
    Fact::Named(vec![
        ("id", Fact::Number(id)),
        ("name", Fact::Text(format!("{}:{}", it.place.host, it.place.port))),
        ("lsn", Fact::Number(has.0)),
        ("downstream", Fact::Named(downstream)),
    ])
}

/// A member, as this node sees it: the one it follows is upstream, those that follow it downstream.
fn member(cluster: &Replication, it: &MemberView, own_position: Lsn) -> Fact {
    let view = &cluster.view;
    let is_own = it.id == view.member;
    let is_near = |ago: Option<_>| ago.is_some_and(|ago| ago <= cluster.heard_within);
    let has = if is_own { own_position } else { it.has.unwrap_or_default() };
    let mut facts = vec![
        ("id", Fact::Number(it.id)),
        ("uuid", Fact::Text(member_uuid(&view.cluster, it.id))),
        ("name", Fact::text(&it.client)),
        ("lsn", Fact::Number(has.0)),
    ];
    if view.leader == Some(it.id) && !is_own {
        let heard = cluster.heard;
        let mut upstream = vec![
            ("status", Fact::text(if is_near(heard) { "follow" } else { "disconnected" })),
            ("peer", Fact::text(&it.client)),
        ];
        if let Some(heard) = heard {
            upstream.push(("idle", Fact::Real(heard.as_secs_f64())));
        }
        facts.push(("upstream", Fact::Named(upstream)));
    }
    if view.leader == Some(view.member) && !is_own {
        let mut downstream = vec![
            ("status", Fact::text(if is_near(it.silent) { "follow" } else { "stopped" })),
            ("vclock", vclock(has)),
        ];
        if let Some(silent) = it.silent {
            downstream.push(("idle", Fact::Real(silent.as_secs_f64())));
        }
        facts.push(("downstream", Fact::Named(downstream)));
    }
    Fact::Named(facts)
}
