//! `SENTINEL`: a cluster's node answers what clients ask a sentinel of Redis for, so that they find
//! the leader and follow it. There is one master, with the name of `sentinel-master-name`; every
//! member is one of its sentinels, under the address where clients reach it.
//!
//! While this node does not know who leads, it knows no master: clients ask the next one.

use super::cluster::give_order;
use crate::shared::help::HELP;
use ladon_kernel::cluster::{Cluster, MemberView, Order, View};
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::replication::{Place, Replica, Replication};
use ladon_resp::Reply;
use std::sync::Arc;
use std::time::Duration;

const NO_SUCH: CommandError = CommandError::text("ERR No such master with that name");
const NO_QUORUM: CommandError =
    CommandError::text("NOQUORUM this node does not hear a leader of its cluster");

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "sentinel",
    &[
        Code::with_locks("ckquorum", LockNeed::None, ckquorum),
        Code::with_locks("failover", LockNeed::None, failover),
        Code::with_locks("get-master-addr-by-name", LockNeed::None, address),
        HELP,
        Code::with_locks("master", LockNeed::None, master),
        Code::with_locks("masters", LockNeed::None, masters),
        Code::with_locks("myid", LockNeed::None, myid),
        Code::with_locks("replicas", LockNeed::None, replicas),
        Code::with_locks("sentinels", LockNeed::None, sentinels),
        Code::with_locks("slaves", LockNeed::None, replicas),
    ],
)];

/// Pairs of names and values.
type Fields = Vec<(&'static str, String)>;

/// A master and where it is.
struct Master {
    replication: Replication,
    place: Place,
}

fn address(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let known = if is_name(ctx, args[2]) { known(ctx)? } else { None };
    let Some(Master { place: Place { host, port }, .. }) = known else {
        ctx.reply.null_array();
        return Ok(());
    };
    ctx.reply.array(2);
    ctx.reply.bulk(host);
    ctx.reply.bulk(port.to_string());
    Ok(())
}

fn masters(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let known = known(ctx)?.map(|master| master_fields(ctx, &master));
    write_all(&mut ctx.reply, known.into_iter());
    Ok(())
}

fn master(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let fields = master_fields(ctx, &named(ctx, args[2])?);
    write(&mut ctx.reply, &fields);
    Ok(())
}

fn replicas(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let master = named(ctx, args[2])?;
    let Replication { view, .. } = &master.replication;
    let followers = followers(view);
    write_all(&mut ctx.reply, followers.map(|member| replica_fields(&master, member)));
    Ok(())
}

/// The members that have the data, but for the leader: clients may read there.
fn followers(view: &View) -> impl Iterator<Item = &MemberView> {
    view.members.iter().filter(|member| Some(member.id) != view.leader && member.has_data())
}

fn sentinels(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let Master { replication, .. } = named(ctx, args[2])?;
    let others = replication.view.members.iter().filter(|it| it.id != replication.view.member);
    let of = |member: &MemberView| {
        let mut fields = instance(&replication, member.id, &Place::of(&member.client));
        fields.push(("flags", flags("sentinel", is_gone(&replication, member))));
        fields.push(("voted-leader", "?".to_owned()));
        fields.push(("voted-leader-epoch", "0".to_owned()));
        fields
    };
    write_all(&mut ctx.reply, others.map(of));
    Ok(())
}

fn myid(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let replication = replication(ctx)?;
    ctx.reply.bulk(replication.run_id(replication.view.member));
    Ok(())
}

fn ckquorum(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    if !is_name(ctx, args[2]) {
        return Err(NO_SUCH);
    }
    let Some(Master { replication, .. }) = known(ctx)? else { return Err(NO_QUORUM) };
    let voters = replication.view.members.iter().filter(|member| member.votes);
    let usable = voters.clone().filter(|member| !is_gone(&replication, member)).count();
    // Only the leader knows of each; who follows one knows that most votes are there.
    let enough = voters.count() / 2 + 1;
    if replication.is_master && usable < enough {
        ctx.reply.error(format!("NOQUORUM {usable} usable Sentinels"));
        return Ok(());
    }
    let count = if replication.is_master { usable } else { enough };
    let text = "usable Sentinels. Quorum and failover authorization can be reached";
    ctx.reply.simple(&format!("OK {count} {text}"));
    Ok(())
}

/// Lets the member lead that has most of the log.
fn failover(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    cluster(ctx)?;
    if !is_name(ctx, args[2]) {
        return Err(NO_SUCH);
    }
    give_order(ctx, Order::Lead { member: None }, |_, reply| reply.ok())
}

fn master_fields(ctx: &Ctx<'_>, Master { replication, place }: &Master) -> Fields {
    let view = &replication.view;
    let failover_ms = ctx.node.settings.failover_timeout().to_string();
    let voters = view.members.iter().filter(|member| member.votes).count();
    let mut fields = instance(replication, view.leader.unwrap_or(0), place);
    fields[0].1 = ctx.node.settings.sentinel_master_name().to_string();
    let silent = replication.heard.map_or(0, |heard| heard.as_millis());
    fields.extend([
        ("flags", "master".to_owned()),
        ("last-ok-ping-reply", silent.to_string()),
        ("last-ping-reply", silent.to_string()),
        ("down-after-milliseconds", failover_ms.clone()),
        ("role-reported", "master".to_owned()),
        ("config-epoch", view.term.to_string()),
        ("num-slaves", followers(view).count().to_string()),
        ("num-other-sentinels", view.members.len().saturating_sub(1).to_string()),
        ("quorum", (voters / 2 + 1).to_string()),
        ("failover-timeout", failover_ms),
        ("parallel-syncs", followers(view).count().to_string()),
    ]);
    fields
}

fn replica_fields(Master { replication, place }: &Master, member: &MemberView) -> Fields {
    let Replica { id, place: own, has, .. } = Replica::of(member);
    let is_gone = is_gone(replication, member);
    let mut fields = instance(replication, id, &own);
    let own_log = (id == replication.view.member).then_some(replication.offset);
    let silent = member.silent.unwrap_or_default().as_millis();
    fields.extend([
        ("flags", flags("slave", is_gone)),
        ("last-ok-ping-reply", silent.to_string()),
        ("last-ping-reply", silent.to_string()),
        ("role-reported", "slave".to_owned()),
        ("master-link-down-time", if is_gone { silent } else { 0 }.to_string()),
        ("master-link-status", if is_gone { "err" } else { "ok" }.to_owned()),
        ("master-host", place.host.clone()),
        ("master-port", place.port.to_string()),
        ("slave-priority", if member.votes { "100" } else { "0" }.to_owned()),
        ("slave-repl-offset", has.or(own_log).unwrap_or_default().to_string()),
        ("replica-announced", "1".to_owned()),
    ]);
    fields
}

/// What is told of every node.
fn instance(replication: &Replication, id: u64, place: &Place) -> Fields {
    vec![
        ("name", format!("{}:{}", place.host, place.port)),
        ("ip", place.host.clone()),
        ("port", place.port.to_string()),
        ("runid", replication.run_id(id)),
    ]
}

fn flags(kind: &str, is_gone: bool) -> String {
    if is_gone { format!("s_down,{kind},disconnected") } else { kind.to_owned() }
}

/// Whether the leader has not heard of the member lately; the others do not know.
fn is_gone(replication: &Replication, member: &MemberView) -> bool {
    let is_heard = |silent: Duration| silent <= replication.heard_within;
    let is_own = member.id == replication.view.member;
    replication.is_master && !is_own && !member.silent.is_some_and(is_heard)
}

fn write_all(reply: &mut Reply<'_>, all: impl Iterator<Item = Fields>) {
    let all: Vec<Fields> = all.collect();
    reply.array(all.len());
    all.iter().for_each(|fields| write(reply, fields));
}

fn write(reply: &mut Reply<'_>, fields: &Fields) {
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name);
        reply.bulk(value);
    }
}

fn is_name(ctx: &Ctx<'_>, name: &[u8]) -> bool {
    ctx.node.settings.sentinel_master_name().as_bytes() == name
}

fn named(ctx: &Ctx<'_>, name: &[u8]) -> Result<Master, CommandError> {
    let known = if is_name(ctx, name) { known(ctx)? } else { None };
    known.ok_or(NO_SUCH)
}

fn known(ctx: &Ctx<'_>) -> Result<Option<Master>, CommandError> {
    let replication = replication(ctx)?;
    let place = replication.master.clone();
    Ok(place.map(|place| Master { replication, place }))
}

fn replication(ctx: &Ctx<'_>) -> Result<Replication, CommandError> {
    let of_cluster = ctx.node.replication().filter(|_| ctx.node.cluster.is_some());
    of_cluster.ok_or(crate::admin::cluster::NO_CLUSTER)
}

fn cluster(ctx: &Ctx<'_>) -> Result<Arc<dyn Cluster>, CommandError> {
    ctx.node.cluster.clone().ok_or(crate::admin::cluster::NO_CLUSTER)
}
