//! `ladon cluster`: makes a cluster of running nodes, and changes who belongs to it.
//!
//! All of it asks nodes with `LADON.CLUSTER`; what is decided is decided there. Each command says what
//! it waits for, and can be given again.

mod node;
mod recover;
mod screen;

use crate::exit::Exit;
use crate::{cli, output, running_server};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use node::{Facts, NoAnswer, Node, Status};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// How often a node is asked again.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// In a node's refusal of what only a leader does.
const LEADS_NOT: &str = "does not lead its cluster";

/// In a node's answer to an order that goes on.
const GOES_ON: &str = "and may still be";

/// In a leader's answer to an order to remove who is no member, any more.
const IS_GONE: &str = "there is no member";

/// In a leader's refusal to hand over to whom it cannot.
const CANNOT_LEAD: &str = "no such voting member";

/// The command line.
pub fn command() -> Command {
    let nodes = || Arg::new("node").value_name("HOST:PORT").required(true);
    let any = || nodes().help("Any member of the cluster");
    let new =
        || Arg::new("new").value_name("NEW").required(true).help("The node that is to belong");
    let who = |help| Arg::new("who").value_name("NUMBER|HOST:PORT").required(true).help(help);
    Command::new("cluster")
        .about("Make a cluster of running nodes, look at it, and change who belongs to it")
        .subcommand_required(true)
        .subcommand(with_login(
            Command::new("create")
                .about(
                    "Make a cluster of nodes that belong to none; the first one may have data, and \
                     the last one has none if the replicas do not need it: it is a witness",
                )
                .arg(nodes().num_args(1..).help("The nodes, at their ports for clients"))
                .arg(count("shards", "Parts of the data; one for now"))
                .arg(count(
                    "replicas",
                    "Other nodes that have each part; all of them by default. With one node more than \
                     that, it is a witness",
                )),
        ))
        .subcommand(with_login(
            Command::new("status").about("Show a cluster on one screen").arg(any()),
        ))
        .subcommand(with_login(
            Command::new("add-node").about("Add a node").arg(any()).arg(new()).arg(
                Arg::new("replica")
                    .long("replica")
                    .action(ArgAction::SetTrue)
                    .help("It has the data and never votes: it does not count for a majority"),
            )
            .arg(
                Arg::new("witness")
                    .long("witness")
                    .action(ArgAction::SetTrue)
                    .conflicts_with("replica")
                    .help("It votes and keeps the log, and has no data"),
            ),
        ))
        .subcommand(with_login(
            Command::new("remove-node").about("Remove a member").arg(any()).arg(who("The member")),
        ))
        .subcommand(with_login(
            Command::new("replace-node")
                .about("Add a node, and remove a member once the new one votes")
                .arg(any())
                .arg(who("The member that goes"))
                .arg(new()),
        ))
        .subcommand(with_login(
            Command::new("failover")
                .about("Let another member lead; no acknowledged write is lost")
                .arg(any())
                .arg(
                    who("The member that is to lead; otherwise one with the whole log")
                        .required(false),
                ),
        ))
        .subcommand(recover_command())
}

fn recover_command() -> Command {
    Command::new("recover")
        .about("Go on with one member's directory, when most members are lost for good")
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The data directory of a member that does not run"),
        )
        .arg(
            Arg::new("accept-loss-after")
                .long("accept-loss-after")
                .value_name("LSN")
                .value_parser(value_parser!(u64))
                .help("Where its log ends: what others had behind it is lost"),
        )
}

fn count(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("N").value_parser(value_parser!(usize)).help(help)
}

/// Whether so many nodes can be a cluster in which so many have the data.
fn check_count(nodes: usize, with_data: usize) -> Result<(), Failure> {
    let witnesses = nodes.checked_sub(with_data);
    match witnesses {
        _ if nodes == 2 || with_data == 2 && nodes < 3 => Err(wrong(
            "two nodes stop as soon as either does, because one is no majority: take a third one, \
             with --replicas 1 as a witness that has no data, or one and add others later",
        )),
        Some(0) => Ok(()),
        // With an odd number that have the data, one more vote makes no majority smaller.
        Some(1) if with_data.is_multiple_of(2) => Ok(()),
        Some(1) => Err(wrong(format!(
            "{with_data} nodes with data need no witness: it would have to agree, and help nobody"
        ))),
        _ => Err(wrong(format!(
            "one shard and its replicas are {with_data} nodes (one more with a witness), not {nodes}"
        ))),
    }
}

fn with_login(command: Command) -> Command {
    let timeout = Arg::new("timeout")
        .long("timeout")
        .value_name("SECONDS")
        .value_parser(value_parser!(u64).range(1..))
        .default_value("60")
        .help("How long to wait for the cluster; a new node's data may take longer");
    cli::with_login(command).arg(timeout)
}

/// What a member is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Voter,
    Replica,
    Witness,
}

impl Kind {
    /// The word for it in orders, if there is one.
    fn word(self) -> Option<&'static str> {
        match self {
            Kind::Voter => None,
            Kind::Replica => Some("REPLICA"),
            Kind::Witness => Some("WITNESS"),
        }
    }
}

/// A replica that lacks no more is there.
const NEAR_BYTES: u64 = 1 << 20;

/// What a command works with.
struct Work {
    /// The node that was named, or the first one.
    node: Node,
    deadline: Instant,
}

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Exit {
    let Some((name, matches)) = matches.subcommand() else { return Exit::Usage };
    match done(name, matches) {
        Ok(()) => Exit::Ok,
        Err((exit, error)) => {
            eprintln!("ladon cluster {name}: {error}");
            exit
        }
    }
}

type Failure = (Exit, String);

fn refused(error: String) -> Failure {
    (Exit::Refused, error)
}

fn unanswered(error: NoAnswer) -> Failure {
    refused(error.text())
}

fn wrong(error: impl Into<String>) -> Failure {
    (Exit::Usage, error.into())
}

fn done(name: &str, matches: &ArgMatches) -> Result<(), Failure> {
    if name == "recover" {
        return recover::run(matches);
    }
    let word = |name: &str| matches.get_one::<String>(name).cloned();
    let nodes: Vec<String> =
        matches.get_many::<String>("node").into_iter().flatten().cloned().collect();
    let first = nodes.first().ok_or_else(|| wrong("a node is missing"))?;
    let options = running_server::at(matches, first).map_err(wrong)?;
    let seconds = matches.get_one::<u64>("timeout").copied().unwrap_or(60);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let work = Work { node: Node::new(options), deadline };
    match name {
        "create" => work.create(&nodes, matches)?,
        "add-node" => {
            let kind = match (matches.get_flag("replica"), matches.get_flag("witness")) {
                (true, _) => Kind::Replica,
                (false, true) => Kind::Witness,
                (false, false) => Kind::Voter,
            };
            work.add(&word("new").unwrap_or_default(), kind)?;
        }
        "remove-node" => work.remove(&word("who").unwrap_or_default())?,
        "replace-node" => {
            let (old, new) = (word("who").unwrap_or_default(), word("new").unwrap_or_default());
            // Before anything changes.
            let cluster = work.leader()?.1;
            let number = work.number_of(&cluster, &old)?;
            let is_witness = cluster.member(number).is_some_and(screen::is_witness);
            work.add(&new, if is_witness { Kind::Witness } else { Kind::Voter })?;
            work.remove(&old)?;
        }
        "failover" => work.fail_over(word("who").as_deref())?,
        _ => {}
    }
    work.show()
}

impl Work {
    /// Tries until it is there, or the time is over; says what it waits for.
    fn wait<T>(
        &self,
        what: &str,
        mut look: impl FnMut() -> Result<Option<T>, String>,
    ) -> Result<T, Failure> {
        let mut is_told = false;
        loop {
            let found = look();
            if let Ok(Some(found)) = found {
                return Ok(found);
            }
            if Instant::now() >= self.deadline {
                let why = found.err().map_or(String::new(), |error| format!("; {error}"));
                return Err(refused(format!("gave up waiting for {what}{why}")));
            }
            if !is_told {
                eprintln!("waiting for {what}");
                is_told = true;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The member that leads, and what it says. Any member that answers may know it.
    fn leader(&self) -> Result<(Node, Status), Failure> {
        self.wait("a leader", || {
            let (mut known, mut last) = (vec![self.node.address().to_owned()], None);
            let mut asked = 0;
            while let Some(address) = known.get(asked).cloned() {
                asked += 1;
                let node = self.node.at(&address);
                match node.status() {
                    Ok(status) if status.leads() => return Ok(Some((node, status))),
                    Ok(status) if status.own.text("cluster").is_empty() => {
                        last = Some(format!("{address} belongs to no cluster"));
                    }
                    Ok(status) => {
                        let others = status.members.iter().map(|it| it.text("client").to_owned());
                        let new: Vec<_> = others.filter(|other| !known.contains(other)).collect();
                        known.extend(new);
                    }
                    Err(error) => last = Some(error),
                }
            }
            last.map_or(Ok(None), Err)
        })
    }

    /// Has the leader do something, whoever that is by then. An order that has happened is not given
    /// again. For a new member, what the leader had before the cluster has to be in a checkpoint first.
    fn order_leader(
        &self,
        words: &[&str],
        has_happened: impl Fn(&Status) -> bool,
    ) -> Result<(), Failure> {
        let mut has_asked = false;
        self.wait("the leader to take the order", || {
            let (leader, cluster) = self.leader().map_err(|(_, error)| error)?;
            if has_happened(&cluster) {
                return Ok(Some(Ok(())));
            }
            match leader.order(words) {
                // It has happened, or another one may, or the same one after a moment.
                Err(NoAnswer::Silent(error)) => Err(error),
                Err(NoAnswer::Refused(error))
                    if [LEADS_NOT, GOES_ON, IS_GONE].iter().any(|it| error.contains(it)) =>
                {
                    Err(error)
                }
                Err(NoAnswer::Refused(error)) if error.contains("BGSAVE") => {
                    // One may be under way, and another one is needed if it is too old.
                    has_asked = has_asked || leader.save().is_ok();
                    Err(error)
                }
                Err(error) => Ok(Some(Err(refused(error.text())))),
                Ok(_) => Ok(Some(Ok(()))),
            }
        })?
    }

    fn show(&self) -> Result<(), Failure> {
        // A busy machine is asked again; that nobody listens is told at once.
        let asked = self.node.status().or_else(|_| self.node.status()).map_err(refused)?;
        let leading = asked.leader().map(|leader| self.node.at(leader.text("client")));
        let by_leader = leading.and_then(|leader| leader.status().ok());
        let shown = by_leader.filter(Status::leads).unwrap_or(asked);
        let text = screen::text(&shown);
        match output::with_stdout(|out| out.write_all(text.as_bytes())) {
            Ok(()) => Ok(()),
            Err(exit) => Err((exit, "its output is closed".to_owned())),
        }
    }

    fn create(&self, nodes: &[String], matches: &ArgMatches) -> Result<(), Failure> {
        let number = |name: &str| matches.get_one::<usize>(name).copied();
        if number("shards").unwrap_or(1) != 1 {
            return Err(wrong("--shards: a cluster has one shard for now"));
        }
        let with_data = number("replicas").map_or(nodes.len(), |replicas| replicas + 1);
        check_count(nodes.len(), with_data)?;
        let mut addresses = BTreeSet::new();
        for address in nodes {
            let status = self.node.at(address).status().map_err(refused)?;
            let cluster = status.own.text("cluster");
            if !cluster.is_empty() {
                return Err(refused(format!(
                    "{address} belongs to cluster {cluster} already; 'ladon cluster add-node \
                     {address} NEW' adds the others"
                )));
            }
            if !addresses.insert(status.own.text("address").to_owned()) {
                return Err(wrong(format!("{address} is there twice")));
            }
        }
        let id = format!("{:016x}{:016x}", ladon_server::random_u64(), ladon_server::random_u64());
        self.node.order(&["CREATE", &id]).map_err(unanswered)?;
        eprintln!("{} is the first member of cluster {id}", self.node.address());
        // Alone it has to elect itself; who gave the order may write as soon as this ends.
        self.leader()?;
        let kinds = (1..).map(|at| if at < with_data { Kind::Voter } else { Kind::Witness });
        nodes.iter().skip(1).zip(kinds).try_for_each(|(address, kind)| self.add(address, kind))
    }

    /// Adds a node, and waits until it votes, or nearly has the log if it never will.
    fn add(&self, address: &str, kind: Kind) -> Result<(), Failure> {
        let (leader, cluster) = self.leader()?;
        let id = cluster.own.text("cluster");
        let new = self.node.at(address);
        let told = new.status().map_err(refused)?;
        let member = match (told.own.text("cluster"), told.own.number("member")) {
            ("", _) => {
                let number = leader.order(&["NUMBER"]).map_err(unanswered)?;
                let words = ["JOIN", id, &number, "WITNESS"];
                let count = if kind == Kind::Witness { 4 } else { 3 };
                new.order(&words[..count]).map_err(unanswered)?;
                number
            }
            // It joined, and was perhaps not added.
            (same, Some(member)) if same == id => member.to_string(),
            (other, _) => {
                return Err(refused(format!("{address} belongs to cluster {other} already")));
            }
        };
        let number: u64 = member.parse().map_err(|_| refused(format!("no number: {member}")))?;
        if cluster.member(number).is_none() {
            let (mesh, clients) = (told.own.text("address"), told.own.text("client"));
            let order = ["ADD", &member, mesh, clients].into_iter().chain(kind.word());
            let words: Vec<&str> = order.collect();
            let is_there = |cluster: &Status| cluster.member(number).is_some();
            self.order_leader(&words, is_there)?;
        }
        let is_there = || {
            // Another one may lead by now.
            let status = self.leader().map_err(|(_, error)| error)?.1;
            let added = status.member(number);
            let all = status.leader().and_then(|leader| leader.number("has")).unwrap_or(u64::MAX);
            let is_near = |added: &Facts| {
                added.number("has").is_some_and(|has| all.saturating_sub(has) <= NEAR_BYTES)
            };
            let is_there = |added: &&Facts| match kind {
                Kind::Voter | Kind::Witness => added.text("votes") == "yes",
                Kind::Replica => is_near(added),
            };
            Ok(added.filter(is_there).map(drop))
        };
        let votes = if kind == Kind::Replica { "" } else { " and vote" };
        self.wait(&format!("member {member} at {address} to have the log{votes}"), is_there)?;
        let votes = match kind {
            Kind::Voter => "and votes",
            Kind::Replica => "a replica",
            Kind::Witness => "a witness: it votes and has no data",
        };
        eprintln!("{address} is member {member}, {votes}");
        Ok(())
    }

    /// The number of a member that is named by it, or by its clients' address.
    fn number_of(&self, cluster: &Status, who: &str) -> Result<u64, Failure> {
        let is_meant = |number: Option<u64>, client: &str| {
            who.parse().ok().is_some_and(|who: u64| Some(who) == number) || client == who
        };
        let found = cluster
            .members
            .iter()
            .find(|member| is_meant(member.number("member"), member.text("client")));
        let number = found.and_then(|member| member.number("member"));
        number.ok_or_else(|| wrong(format!("the cluster has no member {who}")))
    }

    fn remove(&self, who: &str) -> Result<(), Failure> {
        let cluster = self.leader()?.1;
        let number = self.number_of(&cluster, who)?;
        if cluster.own.number("member") == Some(number) {
            eprintln!("member {number} leads; another one takes over first");
            self.fail_over(None)?;
        }
        let is_gone = |cluster: &Status| cluster.member(number).is_none();
        self.order_leader(&["REMOVE", &number.to_string()], is_gone)?;
        eprintln!(
            "member {number} belongs to the cluster no more; stop it, and remove its directory"
        );
        Ok(())
    }

    /// Another member leads afterwards. Whatever happens to an order meanwhile, what counts is who leads.
    fn fail_over(&self, to: Option<&str>) -> Result<(), Failure> {
        let cluster = self.leader()?.1;
        let before = cluster.own.number("member");
        let to = to.map(|who| self.number_of(&cluster, who)).transpose()?;
        if to.is_some() && before == to {
            eprintln!("member {} leads already", before.unwrap_or_default());
            return Ok(());
        }
        let words: Vec<String> =
            ["LEAD".to_owned()].into_iter().chain(to.map(|to| to.to_string())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let new = self.wait("another member to lead", || {
            let (leader, cluster) = self.leader().map_err(|(_, error)| error)?;
            let leads = cluster.own.number("member");
            if to.map_or(leads != before, |to| leads == Some(to)) {
                return Ok(Some(Ok(leads.unwrap_or_default())));
            }
            match leader.order(&words) {
                Err(NoAnswer::Refused(error)) if error.contains(CANNOT_LEAD) => {
                    Ok(Some(Err(refused(error))))
                }
                Err(error) => Err(error.text()),
                // It is seen the next time.
                Ok(_) => Ok(None),
            }
        })?;
        eprintln!("member {} leads", new?);
        Ok(())
    }
}
