//! `ladon cluster status`: one screen.

use super::node::{Facts, Status};
use std::fmt::Write as _;

/// A member that was not heard of for longer is named.
const SILENT_MS: u64 = 3_000;

/// What the leader says, or a node that knows none.
pub fn text(status: &Status) -> String {
    let (own, mut out) = (&status.own, String::new());
    if own.text("cluster").is_empty() {
        let _ = writeln!(out, "{} belongs to no cluster", own.text("client"));
        return out;
    }
    let leader = status.leader().filter(|_| status.leads());
    let leads = match leader {
        Some(leader) => format!("member {} at {}", leader.text("member"), leader.text("client")),
        None => "nobody, as far as this node knows".to_owned(),
    };
    let _ = writeln!(out, "cluster {}, term {}", own.text("cluster"), own.text("term"));
    let _ = writeln!(out, "leads: {leads}");
    let _ = writeln!(out);
    let heads = ["member", "clients", "role", "log to LSN", "behind", "silent"];
    let rows: Vec<[String; 6]> = status.members.iter().map(|member| row(member, leader)).collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].len());
        cells.chain([heads[at].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut line = |cells: [&str; 6]| {
        let mut text = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let _ = write!(text, "  {cell:<width$}");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(heads);
    rows.iter().for_each(|row| line(row.each_ref().map(String::as_str)));
    let wrong = what_is_wrong(status);
    if !wrong.is_empty() {
        let _ = writeln!(out);
    }
    for text in wrong {
        let _ = writeln!(out, "! {text}");
    }
    out
}

/// Whether the member keeps the log alone. A node of an older version says nothing of it.
pub fn is_witness(member: &Facts) -> bool {
    member.text("data") == "no"
}

fn row(member: &Facts, leader: Option<&Facts>) -> [String; 6] {
    let is_leader = leader.is_some_and(|leader| leader.text("member") == member.text("member"));
    let role = match member.text("votes") {
        // Until another member has its log.
        "yes" if is_leader && is_witness(member) => "witness, leads",
        _ if is_leader => "leader",
        "yes" if is_witness(member) => "witness",
        "yes" => "follower",
        "never" => "replica",
        _ => "learns",
    };
    let behind = match (leader.and_then(|leader| leader.number("has")), member.number("has")) {
        (Some(all), Some(has)) => format!("{} B", all.saturating_sub(has)),
        _ => String::new(),
    };
    let silent = member.number("silent-ms").map_or(String::new(), |ms| format!("{ms} ms"));
    [
        member.text("member").to_owned(),
        member.text("client").to_owned(),
        role.to_owned(),
        member.text("has").to_owned(),
        behind,
        silent,
    ]
}

/// What an operator should do something about.
fn what_is_wrong(status: &Status) -> Vec<String> {
    let (own, mut wrong) = (&status.own, Vec::new());
    let this = own.text("client");
    match own.text("role") {
        _ if status.leader().is_some_and(is_witness) => wrong.push(
            "a witness leads, which has what the other members lack: clients are served once one of \
             them that has the data has it too; start the member that led before"
                .to_owned(),
        ),
        "cut-off" => wrong.push(format!("{this} leads and does not hear most members")),
        _ if status.leader().is_none() => wrong.push(format!("{this} knows no leader")),
        _ => {}
    }
    for member in status.members.iter().filter(|_| status.leads()) {
        let name = format!("member {} at {}", member.text("member"), member.text("client"));
        match member.number("silent-ms") {
            Some(ms) if ms <= SILENT_MS => {}
            Some(ms) => wrong.push(format!("{name} was not heard of for {} s", ms / 1000)),
            None => wrong.push(format!("{name} was not heard of by this leader")),
        }
    }
    let voters = status.members.iter().filter(|member| member.text("votes") == "yes").count();
    if voters == 2 {
        wrong.push("two members vote: the loss of either stops the cluster; add one".to_owned());
    }
    if own.number("rewinds").is_some_and(|rewinds| rewinds > 0) {
        wrong.push(format!(
            "{this} has taken back {} bytes of log that were not committed when it lost its lead, \
             in {} parts",
            own.text("taken-back-bytes"),
            own.text("rewinds")
        ));
    }
    if !own.text("stopped").is_empty() {
        wrong.push(format!("{this} takes part no more: {}", own.text("stopped")));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::node::facts;

    fn status(role: &str, silent_ms: &str) -> Status {
        let own = facts(&[
            ("cluster", "00ff"),
            ("member", "1"),
            ("client", "a:1"),
            ("role", role),
            ("term", "4"),
            ("leader", "1"),
            ("rewinds", "0"),
        ]);
        let member = |number: &str, votes: &str, has: &str, silent: &str| {
            let client = format!("a:{number}");
            facts(&[
                ("member", number),
                ("client", &client),
                ("votes", votes),
                ("has", has),
                ("silent-ms", silent),
            ])
        };
        let members = vec![
            member("1", "yes", "1000", "0"),
            member("2", "yes", "1000", "12"),
            member("9", "no", "400", silent_ms),
        ];
        Status { own, members }
    }

    #[test]
    fn a_leader_shows_who_is_behind_and_silent() {
        let shown = text(&status("leader", "7100"));
        let expected = "\
cluster 00ff, term 4
leads: member 1 at a:1

  member  clients  role      log to LSN  behind  silent
  1       a:1      leader    1000        0 B     0 ms
  2       a:2      follower  1000        0 B     12 ms
  9       a:9      learns    400         600 B   7100 ms

! member 9 at a:9 was not heard of for 7 s
! two members vote: the loss of either stops the cluster; add one
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_witness_is_named() {
        let mut shown = status("leader", "5");
        let (own, votes) = (shown.own.clone(), [("member", "9"), ("votes", "yes"), ("data", "no")]);
        shown.members[2] = facts(&votes);
        assert!(text(&shown).contains("  9                witness"), "{}", text(&shown));
        shown.own = own.with("leader", "9").with("role", "follower");
        let shown = text(&shown);
        assert!(shown.contains("leads: nobody, as far as this node knows"), "{shown}");
        assert!(shown.contains("! a witness leads, which has what the other"), "{shown}");
    }

    #[test]
    fn a_node_that_is_cut_off_says_so() {
        let shown = text(&status("cut-off", "5"));
        assert!(shown.contains("leads: nobody, as far as this node knows"), "{shown}");
        assert!(shown.contains("! a:1 leads and does not hear most members"), "{shown}");
        let outside = Status { own: facts(&[("client", "b:2")]), members: Vec::new() };
        assert_eq!(text(&outside), "b:2 belongs to no cluster\n");
    }
}
