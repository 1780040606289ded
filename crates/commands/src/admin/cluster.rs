//! `LADON.CLUSTER`: what `ladon cluster` asks of a node.
//!
//! ```text
//! LADON.CLUSTER STATUS                              how the node sees its cluster
//! LADON.CLUSTER CREATE cluster                      be the first member
//! LADON.CLUSTER NUMBER                              the number for another one; at the leader
//! LADON.CLUSTER JOIN cluster number [WITNESS]       at the node that is to be a member
//! LADON.CLUSTER ADD number address client-address [REPLICA | WITNESS]   at the leader
//! LADON.CLUSTER REMOVE number                       at the leader
//! LADON.CLUSTER LEAD [number]                       at the leader: another one takes over
//! ```
//!
//! A cluster's id is 32 hexadecimal digits. All but `STATUS` may wait for other nodes, each on a thread of
//! its own.

use crate::shared::help::HELP;
use ladon_kernel::cluster::{Cluster, ClusterId, MemberKind, MemberView, Order, View};
use ladon_kernel::command::args::integer_in;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::command::spec::{Code, LockNeed};
use ladon_kernel::ctx::Ctx;
use ladon_kernel::long::large::Large;
use ladon_kernel::long::slices::Headed;
use ladon_kernel::request::outcome::JobKind;
use ladon_resp::Reply;
use std::sync::Arc;

/// A name of DNS, a colon and a port.
const ADDRESS_BYTES_MAX: usize = 260;

pub(super) const NO_CLUSTER: CommandError =
    CommandError::text("ERR this server is no node of a cluster (cluster-enabled)");
const TOO_MANY: CommandError =
    CommandError::text("ERR this node has too many orders under way: wait for their answers");
const BAD_ID: CommandError = CommandError::text("ERR a cluster's id is 32 hexadecimal digits");
const BAD_ADDRESS: CommandError = CommandError::text("ERR an address is HOST:PORT");

pub(crate) const COMMANDS: &[Code] = &[Code::container(
    "ladon.cluster",
    &[
        Code::with_locks("status", LockNeed::None, status),
        Code::with_locks("create", LockNeed::None, create),
        Code::with_locks("number", LockNeed::None, number),
        Code::with_locks("join", LockNeed::None, join),
        Code::with_locks("add", LockNeed::None, add),
        Code::with_locks("remove", LockNeed::None, remove),
        Code::with_locks("lead", LockNeed::None, lead),
        HELP,
    ],
)];

fn status(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    let view = cluster(ctx)?.view();
    let role = ctx.node.role.get();
    let reply = &mut ctx.reply;
    reply.map(13);
    let mut field = |name: &str, value: &str| {
        reply.bulk(name);
        reply.bulk(value);
    };
    field("cluster", &view.cluster);
    field("member", &view.member.to_string());
    field("address", &view.address);
    field("client", &view.client);
    field("role", role.name());
    field("term", &view.term.to_string());
    field("leader", &view.leader.map_or(String::new(), |leader| leader.to_string()));
    field("committed", &view.committed.to_string());
    field("applied", &view.applied.to_string());
    field("rewinds", &view.rewinds.to_string());
    field("taken-back-bytes", &view.taken_back_bytes.to_string());
    field("stopped", view.stopped.as_deref().unwrap_or(""));
    write_members(reply, &view);
    Ok(())
}

fn write_members(reply: &mut Reply<'_>, view: &View) {
    reply.bulk("members");
    reply.array(view.members.len());
    for MemberView { id, address, client, votes, kind, has, silent } in &view.members {
        let votes = match (votes, kind) {
            (true, _) => "yes",
            (false, MemberKind::Voter | MemberKind::Witness) => "no",
            (false, MemberKind::Replica) => "never",
        };
        let data = if *kind == MemberKind::Witness { "no" } else { "yes" };
        let has = has.map_or(String::new(), |has| has.to_string());
        let silent = silent.map_or(String::new(), |silent| silent.as_millis().to_string());
        reply.map(7);
        for (name, value) in [
            ("member", &id.to_string()),
            ("address", address),
            ("client", client),
            ("votes", &votes.to_owned()),
            ("data", &data.to_owned()),
            ("has", &has),
            ("silent-ms", &silent),
        ] {
            reply.bulk(name);
            reply.bulk(value);
        }
    }
}

fn create(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    order(ctx, Order::Create { cluster: id(args[2])? })
}

fn number(ctx: &mut Ctx<'_>, _args: &[&[u8]]) -> CommandResult {
    order(ctx, Order::Number)
}

fn join(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let is_witness = match args[4..] {
        [] => false,
        [word] if word.eq_ignore_ascii_case(b"witness") => true,
        _ => return Err(CommandError::Syntax),
    };
    order(ctx, Order::Join { cluster: id(args[2])?, member: member(args[3])?, is_witness })
}

fn add(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (address, client) = (address(args[3])?, address(args[4])?);
    let kind = match args[5..] {
        [] => MemberKind::Voter,
        [word] if word.eq_ignore_ascii_case(b"replica") => MemberKind::Replica,
        [word] if word.eq_ignore_ascii_case(b"witness") => MemberKind::Witness,
        _ => return Err(CommandError::Syntax),
    };
    order(ctx, Order::Add { member: member(args[2])?, address, client, kind })
}

fn remove(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    order(ctx, Order::Remove { member: member(args[2])? })
}

fn lead(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let member = match args[2..] {
        [] => None,
        [word] => Some(member(word)?),
        _ => return Err(CommandError::Syntax),
    };
    order(ctx, Order::Lead { member })
}

fn order(ctx: &mut Ctx<'_>, order: Order) -> CommandResult {
    give_order(ctx, order, |text, reply| reply.bulk(text))
}

/// Has an order obeyed on a thread of its own, and answers what it says, as `write` writes it.
pub(super) fn give_order(
    ctx: &mut Ctx<'_>,
    order: Order,
    write: fn(String, &mut Reply<'_>),
) -> CommandResult {
    let cluster = cluster(ctx)?;
    if ctx.large_aside() == Large::NEVER {
        return Err(CommandError::text("ERR not inside a transaction"));
    }
    let under_way = cluster.orders().begin().ok_or(TOO_MANY)?;
    ctx.reply_later(JobKind::Errand, move |_| {
        let told = cluster.order(order);
        drop(under_way);
        let answer = move |reply: &mut Reply<'_>| match told {
            Ok(text) => write(text, reply),
            Err(text) => reply.error(format!("ERR {text}").replace(['\r', '\n'], " ")),
        };
        Box::new(Headed::new(answer, ()))
    });
    Ok(())
}

fn cluster(ctx: &Ctx<'_>) -> Result<Arc<dyn Cluster>, CommandError> {
    ctx.node.cluster.clone().ok_or(NO_CLUSTER)
}

fn member(word: &[u8]) -> Result<u64, CommandError> {
    Ok(integer_in(word, 1, i64::MAX)? as u64)
}

fn id(word: &[u8]) -> Result<ClusterId, CommandError> {
    let text = str::from_utf8(word).ok().filter(|text| text.len() == 32).ok_or(BAD_ID)?;
    let number = u128::from_str_radix(text, 16).ok().filter(|&number| number != 0);
    number.map(u128::to_be_bytes).ok_or(BAD_ID)
}

fn address(word: &[u8]) -> Result<String, CommandError> {
    let text = str::from_utf8(word).map_err(|_| BAD_ADDRESS)?;
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if port.is_none_or(|port| port == 0) || !is_plain || text.len() > ADDRESS_BYTES_MAX {
        return Err(BAD_ADDRESS);
    }
    Ok(text.to_owned())
}
