//! The measured sections of a document, made from results and from nothing else: `report
//! --markdown`.
//!
//! The text between `<!-- measured:begin -->` and `<!-- measured:end -->` is replaced by
//! figures, the text between `<!-- winners:begin -->` and `<!-- winners:end -->` by who is first
//! in which work. A figure is the median of its rounds; in brackets is ours through it, the
//! median of the rounds' ratios, with a question mark where its interval does not exclude 1. Where
//! several runs have measured a work, its figures are those of the run that has measured it
//! longest.
//!
//! **Invariant:** the same results make the same text, so a test can say whether a document is what
//! its results give.

use super::view::answer::OURS;
use super::view::lasting::lasting;
use super::view::line::{Line, load_limited, samples};
use super::view::number::{moment, plain, with_unit};
use super::view::standing::{Verdict, standings};
use super::view::verdict::promise;
use crate::results::statistics::{Level, paired_ratio};
use crate::results::{PartResult, Results, WorkResult};
use crate::systems::{bare_loop, ladon_iproto, ladon_speaking};

/// What comes before and after.
pub const BEGIN: &str = "<!-- measured:begin -->";
/// See [`BEGIN`].
pub const END: &str = "<!-- measured:end -->";
/// The same, around who is first.
pub const WINNERS_BEGIN: &str = "<!-- winners:begin -->";
/// See [`WINNERS_BEGIN`].
pub const WINNERS_END: &str = "<!-- winners:end -->";

/// `document` with its measured sections regenerated; `None` if it has no marks.
#[must_use]
pub fn replaced(document: &str, runs: &[Results]) -> Option<String> {
    let figures = between(document, (BEGIN, END), || section(runs));
    let document = figures.as_deref().unwrap_or(document);
    let winners = between(document, (WINNERS_BEGIN, WINNERS_END), || {
        runs.iter().map(|run| heading(run) + &winners(run)).collect::<Vec<_>>().join("\n")
    });
    winners.or(figures)
}

fn between(
    document: &str,
    (begin, end): (&str, &str),
    text: impl FnOnce() -> String,
) -> Option<String> {
    let (before, rest) = document.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{}{end}{after}", text()))
}

/// The figures of some runs, each with its tables.
#[must_use]
pub fn section(runs: &[Results]) -> String {
    let texts = runs.iter().enumerate().filter_map(|(number, run)| {
        let own = TABLES.iter().filter(|table| longest(runs, table) == Some(number));
        let tables: String = own.map(|table| against(run, table)).collect();
        (!tables.is_empty()).then(|| heading(run) + &tables)
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The run that has measured a table's work and base longest: full stores before those that a budget made smaller,
/// then by the seconds of all rounds.
fn longest(runs: &[Results], table: &Table) -> Option<usize> {
    let has = |run: &Results| {
        let knows = run.systems.iter().any(|system| system.name == table.base);
        knows && run.works.iter().any(|other| other.work == table.work)
    };
    let weight = |run: &Results| (run.budget.is_none(), f64::from(run.rounds) * run.seconds);
    let mut best: Option<(usize, (bool, f64))> = None;
    for (number, run) in runs.iter().enumerate().filter(|(_, run)| has(run)) {
        if best.is_none_or(|(_, most)| weight(run) > most) {
            best = Some((number, weight(run)));
        }
    }
    best.map(|(number, _)| number)
}

/// A table of one figure of a work.
struct Table {
    title: &'static str,
    work: &'static str,
    key: &'static str,
    /// What ratios are made with: see [`against`].
    base: &'static str,
    columns: &'static [Column],
}

/// A column: its head, the part, and the place on its axis.
type Column = (&'static str, &'static str, Option<f64>);

const MEMCACHED: &str = ladon_speaking::MEMCACHED.name;
const HTTP: &str = ladon_speaking::HTTP.name;
const IPROTO: &str = ladon_iproto::TREE_NAME;

const TABLES: &[Table] = &[
    Table {
        title: "Server CPU of single keys, microseconds per operation; 50 users, keys of 16 bytes, \
                values of 64 bytes (`pipeline`)",
        work: "pipeline",
        key: "cpu_us",
        base: OURS,
        columns: SINGLE_KEYS,
    },
    Table {
        title: "Server CPU of PING, likewise; in brackets here: through the bare loop's, which is \
                Ladon's loop without a store behind it, so what the kernel and the sockets cost \
                (`pipeline`)",
        work: "pipeline",
        key: "cpu_us",
        base: bare_loop::NAME,
        columns: &[
            ("PING", "ping", Some(1.0)),
            ("PING, 16 at once", "ping", Some(16.0)),
            ("PING, 64", "ping", Some(64.0)),
        ],
    },
    Table {
        title: "The other types, likewise, 16 requests at once (`types`)",
        work: "types",
        key: "cpu_us",
        base: OURS,
        columns: &[
            ("HSET", "hset", None),
            ("HGET", "hget", None),
            ("HGETALL 20", "hgetall", None),
            ("LPUSH, RPOP", "lpush-rpop", None),
            ("LRANGE 100", "lrange", None),
            ("ZADD", "zadd", None),
            ("ZSCORE", "zscore", None),
            ("ZRANK", "zrank", None),
            ("ZRANGE 100", "zrange", None),
            ("ZINCRBY", "zincrby", None),
            ("SADD", "sadd", None),
            ("SADD, SREM", "sadd-srem", None),
            ("SISMEMBER", "sismember", None),
            ("SETBIT", "setbit", None),
            ("BITCOUNT", "bitcount", None),
            ("INCR", "incr", None),
            ("XADD", "xadd", None),
            ("XADD, XREADGROUP, XACK", "xadd-xreadgroup", None),
            ("PFADD", "pfadd", None),
            ("GEOSEARCH 41", "geosearch", None),
        ],
    },
    Table {
        title: "Server CPU of a script of three lines, one of which is a command, microseconds \
                (`scripts`)",
        work: "scripts",
        key: "cpu_us",
        base: OURS,
        columns: &[
            ("EVALSHA", "evalsha", Some(1.0)),
            ("16 at once", "evalsha", Some(16.0)),
            ("EVALSHA, key not declared", "undeclared", Some(1.0)),
            ("16 at once, key not declared", "undeclared", Some(16.0)),
        ],
    },
    Table {
        title: "Server CPU of PUBLISH for each message delivered, likewise (`publish`)",
        work: "publish",
        key: "cpu_us",
        base: OURS,
        columns: &[
            ("one subscriber", "deliveries", Some(1.0)),
            ("100", "deliveries", Some(100.0)),
            ("10,000", "deliveries", Some(10_000.0)),
        ],
    },
    Table {
        title: "Server CPU of SET, 16 at once, with keyspace events: likewise (`publish`)",
        work: "publish",
        key: "cpu_us",
        base: OURS,
        columns: &[
            ("no events", "set-silent", None),
            ("nobody subscribes to them", "set-events", None),
            ("one client reads them", "set-heard", None),
        ],
    },
    Table {
        title: "Resident memory, bytes (`memory`)",
        work: "memory",
        key: "bytes_each",
        base: OURS,
        columns: &[
            ("key of 11, value of 8", "key-11-8", None),
            ("key of 16, value of 64", "key-16-64", None),
            ("key of 20, value of 1,000", "key-20-1000", None),
            ("member of a set", "set-member", None),
            ("of a sorted set", "zset-member", None),
            ("hash of 20 fields", "hash", None),
            ("list of 100", "list", None),
        ],
    },
    Table {
        title: "What a small read waits at most in 99.9 % of cases, while (`stall`)",
        work: "stall",
        key: "p999_us",
        base: OURS,
        columns: &[
            ("nothing else goes on", "nothing", None),
            ("a hash is read whole", "hgetall", None),
            ("a list is read whole", "lrange", None),
            ("two sets are united", "sunionstore", None),
            ("a sorted set is deleted", "del", None),
        ],
    },
    Table {
        title: "What a polite client waits at most in 99.9 % of cases, while (`fairness`)",
        work: "fairness",
        key: "p999_us",
        base: OURS,
        columns: FAIRNESS,
    },
    Table {
        title: "The server's most resident memory meanwhile (`fairness`)",
        work: "fairness",
        key: "peak_bytes",
        base: OURS,
        columns: FAIRNESS,
    },
    Table {
        title: "From a push to the client that waits for it (`handover`)",
        work: "handover",
        key: "p50_us",
        base: OURS,
        columns: &[("median", "handover", None)],
    },
    Table {
        title: "Restart from a snapshot (`memory`)",
        work: "memory",
        key: "restart_ms",
        base: OURS,
        columns: &[("until it answers", "snapshot", None)],
    },
    Table {
        title: "Server CPU of a statement of SQL, microseconds; 1,000,000 rows, 50 users for single rows (`sql`)",
        work: "sql",
        key: "cpu_us",
        base: IPROTO,
        columns: STATEMENTS,
    },
    Table {
        title: "Statements a second, likewise",
        work: "sql",
        key: "per_second",
        base: IPROTO,
        columns: STATEMENTS,
    },
    Table {
        title: "The same through memcached's protocol (`pipeline`)",
        work: "pipeline",
        key: "cpu_us",
        base: MEMCACHED,
        columns: SINGLE_KEYS,
    },
    Table {
        title: "Pages a second: over HTTP, a request writes a key, reads it back and answers in JSON (`web`)",
        work: "web",
        key: "per_second",
        base: HTTP,
        columns: PAGES,
    },
    Table {
        title: "What 99 % of them wait at most",
        work: "web",
        key: "p99_us",
        base: HTTP,
        columns: PAGES,
    },
];

const SINGLE_KEYS: &[Column] = &[
    ("SET", "set-64", Some(1.0)),
    ("GET", "get-64", Some(1.0)),
    ("SET, 16 at once", "set-64", Some(16.0)),
    ("GET, 16", "get-64", Some(16.0)),
    ("SET, 64", "set-64", Some(64.0)),
    ("GET, 64", "get-64", Some(64.0)),
];

const STATEMENTS: &[Column] = &[
    ("a row by its key, prepared", "prepared", Some(1.0)),
    ("16 at once", "prepared", Some(16.0)),
    ("the same, by text", "text", Some(1.0)),
    ("by text, 16 at once", "text", Some(16.0)),
    ("100 rows in order", "range", Some(1.0)),
    ("100 rows, 16 at once", "range", Some(16.0)),
    ("INSERT of a row", "insert", Some(1.0)),
    ("INSERT, 16 at once", "insert", Some(16.0)),
    ("UPDATE of a row", "update", Some(1.0)),
    ("UPDATE, 16 at once", "update", Some(16.0)),
    ("join of 1,000 by 1,000 by a key", "join-key", None),
    ("the same without an index", "join", None),
    ("SUM over all rows", "sum", None),
    ("COUNT and SUM of 100 groups", "group-by", None),
];

const PAGES: &[Column] = &[
    ("write and read back, 10 connections", "write-10", None),
    ("the same, 100", "write-100", None),
    ("read, 10", "read-10", None),
    ("read, 100", "read-100", None),
];

const FAIRNESS: &[Column] = &[
    ("nothing else goes on", "nothing", None),
    ("a connection pipelines SETs without end", "pipeline", None),
    ("the same, replies left unread", "pipeline-unread", None),
    ("keys are loaded in bulk", "bulk", None),
    ("a connection pipelines slow commands", "slow", None),
    ("the same, on Ladon's other thread", "slow-apart", None),
    ("1,000 connections read nothing", "unread", None),
    ("10,000 keys a second expire", "expiry", None),
    ("keys are deleted in a pipeline", "delete", None),
    ("a snapshot is made", "snapshot", None),
];

/// Where and how it was measured.
fn heading(run: &Results) -> String {
    let machine = &run.machine;
    let memory = machine.memory_bytes as f64 / f64::from(1u32 << 30);
    // Where it was written to says nothing of the figures.
    let mut words = run.command_line.iter().skip(1).map(String::as_str);
    let mut command = Vec::new();
    while let Some(word) = words.next() {
        if word == "--out" {
            words.next();
        } else {
            command.push(word);
        }
    }
    // Runs that were added up say it in their commands.
    let lasting = if run.command_line.iter().any(|word| word == "+") {
        "rounds interleaved".to_owned()
    } else {
        lasting(run)
    };
    let partial = if run.partial { " The run was ended early." } else { "" };
    format!(
        "{}, {} cores ({} for the servers, {} for the load), {memory:.0} GiB, {}, on {}: \
         `ladon-lab {}`; {lasting}.{partial} Medians; in brackets Ladon's \
         through it, the median of the rounds' ratios, with `?` where its 95 % interval does not exclude 1; `†` \
         marks a figure that the load generator limited. Every figure, its interval, every setting, and what was not measured and why: \
         `lab/results`.\n\n",
        machine.cpu_model,
        machine.cores,
        run.cores.server.len(),
        run.cores.load.len(),
        machine.kernel,
        moment(run.started_unix).split(' ').next().unwrap_or_default(),
        command.join(" "),
    )
}

/// A table of one figure: Ladon's, the others', and their ratios. Empty if nothing of it was
/// measured. A ratio is that of `base`, which is Ladon in one of its dialects, divided by the
/// other's; if `base` is the bare loop, each system's divided by that.
fn against(run: &Results, table: &Table) -> String {
    let Table { title, work, key, base, columns } = *table;
    let work = run.works.iter().find(|other| other.work == work);
    let parts: Vec<Option<(&PartResult, Vec<Line<'_>>)>> = columns
        .iter()
        .map(|(_, part, _)| {
            let part = work?.parts.iter().find(|other| other.part == *part)?;
            Some((part, Line::all(run, part)))
        })
        .collect();
    let mut systems: Vec<(&str, String)> = Vec::new();
    for line in parts.iter().flatten().flat_map(|(_, lines)| lines) {
        let known = systems.iter().any(|(name, _)| *name == line.system);
        if line.measured() && !known {
            systems.push((line.system, line.label.clone()));
        }
    }
    // In the order in which the run lists them, not that of the rounds.
    let place = |name: &str| run.systems.iter().position(|system| system.name == name);
    systems.sort_by_key(|(name, _)| place(name));
    let line_of = |number: usize, system: &str| {
        let (_, lines) = parts[number].as_ref()?;
        lines.iter().find(|line| line.system == system && line.measured())
    };
    let value = |number: usize, system: &str| {
        let line = line_of(number, system)?;
        let place = columns[number].2;
        let unit = parts[number].as_ref()?.0.figures.iter().find(|figure| figure.key == key)?;
        let median = line.estimate(key, place)?.median;
        let limited = key.ends_with("_us") && key != "cpu_us";
        let limited = limited && line.at(place).is_some_and(load_limited);
        let text = match unit.unit.as_str() {
            "us" if key == "cpu_us" => format!("{median:.2}"),
            "bytes" if key == "bytes_each" => format!("{median:.1}"),
            unit => with_unit(median, unit),
        };
        Some(text + if limited { "†" } else { "" })
    };
    let ratio = |number: usize, system: &str| {
        let place = columns[number].2;
        let (above, below) = if base == bare_loop::NAME { (system, base) } else { (base, system) };
        let (above, below) =
            (line_of(number, above)?.at(place)?, line_of(number, below)?.at(place)?);
        let ratio = paired_ratio(&samples(above, key), &samples(below, key), Level::P95, run.seed)?;
        let told = ratio.surely_above(1.0) || ratio.surely_below(1.0);
        Some(format!("{:.2}{}", ratio.median, if told { "" } else { "?" }))
    };
    let first = if base == bare_loop::NAME { OURS } else { base };
    systems.sort_by_key(|(name, _)| *name != first);
    let mut rows = String::new();
    for (number, column) in columns.iter().enumerate() {
        let cell = |system: &str| {
            let value = value(number, system)?;
            let ratio = if system == base { None } else { ratio(number, system) };
            Some(ratio.map_or_else(|| value.clone(), |ratio| format!("{value} ({ratio})")))
        };
        let cells: Vec<String> =
            systems.iter().map(|(system, _)| cell(system).unwrap_or_default()).collect();
        if !cells.iter().all(String::is_empty) {
            rows += &format!("| {} | {} |\n", column.0, cells.join(" | "));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let heads: Vec<&str> = systems.iter().map(|(_, label)| label.as_str()).collect();
    let line = "|---".repeat(heads.len());
    format!("{title}:\n\n| | {} |\n|---{line}|\n{rows}\n", heads.join(" | "))
}

/// Who wins which work, at which promise: a row each.
fn winners(run: &Results) -> String {
    let mut rows = String::new();
    for work in &run.works {
        let mut promises: Vec<String> = Vec::new();
        for part in &work.parts {
            for standing in standings(part, &Line::all(run, part), run.seed) {
                if !promises.contains(&standing.promise) {
                    promises.push(standing.promise);
                }
            }
        }
        for promise in &promises {
            rows += &of_promise(run, work, promise, promises.len() > 1);
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "Who is first by the first figure of each part, mostly throughput, and by how much over the next \
         system; parts that only one system can do are left out:\n\n| work | first |\n|---|---|\n{rows}"
    )
}

fn of_promise(run: &Results, work: &WorkResult, wanted: &str, several: bool) -> String {
    // Each winner, with the parts that it wins; then ties and what is undecided.
    let mut firsts: Vec<(String, Vec<String>)> = Vec::new();
    let mut say =
        |who: String, what: String| match firsts.iter_mut().find(|(known, _)| *known == who) {
            Some((_, parts)) => parts.push(what),
            None => firsts.push((who, vec![what])),
        };
    for part in &work.parts {
        let lines = Line::all(run, part);
        let all = standings(part, &lines, run.seed);
        let Some(standing) = all.iter().find(|standing| standing.promise == wanted) else {
            continue;
        };
        let label = |rank: usize| lines[standing.ranks[rank].line].label.clone();
        let name = &part.part;
        match &standing.verdict {
            Verdict::Alone => {}
            Verdict::Wins { ratio, at_least, .. } => {
                let sign = if *at_least { "≥ " } else { "" };
                say(format!("**{}**", label(0)), format!("{name} {sign}{:.2}", ratio.median));
            }
            Verdict::Ties { with, .. } => {
                let names: Vec<String> =
                    std::iter::once(0).chain(with.iter().copied()).map(label).collect();
                say("level".to_owned(), format!("{name} ({})", names.join(", ")));
            }
            Verdict::Open { with, ratio } => {
                let names: Vec<String> = with.iter().map(|&rank| label(rank)).collect();
                let (who, ratio) = (label(0), ratio.median);
                let what = format!("{name} ({who} {ratio:.2}; {})", names.join(", "));
                say("not told apart".to_owned(), what);
            }
            Verdict::LoadLimited => {
                say("not told, the load was the limit".to_owned(), name.clone())
            }
            Verdict::Unproven { ratio } => {
                let what = format!("{name} ({} {:.2})", label(0), ratio);
                say("one round".to_owned(), what);
            }
            Verdict::Counted { level, best, worst } => {
                let names: Vec<String> = (0..*level).map(label).collect();
                let rest = if *level < standing.ranks.len() {
                    format!(", the worst {}", plain(*worst))
                } else {
                    String::new()
                };
                let what = format!("{name} {} ({}){rest}", plain(*best), names.join(", "));
                say("counted".to_owned(), what);
            }
        }
    }
    if firsts.is_empty() {
        return String::new();
    }
    let title = if several {
        format!("`{}`, {}", work.work, promise(wanted))
    } else {
        format!("`{}`", work.work)
    };
    let firsts = firsts.into_iter().map(|(who, parts)| format!("{who}: {}", parts.join(", ")));
    format!("| {title} | {} |\n", firsts.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::Budget;
    use crate::results::{Better, Cell, Figure, Outcome, Round, SettingRecord, SystemRecord};

    fn run(theirs: f64) -> Results {
        let figure = |key: &str, unit: &str, better| Figure {
            key: key.to_owned(),
            title: key.to_owned(),
            unit: unit.to_owned(),
            better,
        };
        let setting = SettingRecord { promise: "none".to_owned(), ..SettingRecord::default() };
        let system = |name: &str, label: &str| SystemRecord {
            name: name.to_owned(),
            label: label.to_owned(),
            settings: vec![setting.clone()],
            ..SystemRecord::default()
        };
        let cell = |system: &str, cpu: f64| {
            let round = |noise: f64| Round {
                seconds: 1.0,
                per_second: 1e6 / cpu,
                cpu_user_us: Some(cpu * noise),
                cpu_system_us: Some(0.0),
                ..Round::default()
            };
            Cell {
                system: system.to_owned(),
                setting: String::new(),
                x: None,
                outcome: Outcome::Measured {
                    rounds: [1.0, 1.01, 0.99, 1.0, 1.0].map(round).into(),
                },
            }
        };
        let part = PartResult {
            part: "hget".to_owned(),
            title: "HGET".to_owned(),
            axis: None,
            figures: vec![
                figure("per_second", "1/s", Better::Higher),
                figure("cpu_us", "us", Better::Lower),
            ],
            // The peer was measured first in this round.
            cells: vec![cell("redis", theirs), cell("ladon", 1.0)],
        };
        let work = WorkResult { work: "types".to_owned(), parts: vec![part], ..Default::default() };
        Results {
            systems: vec![system("ladon", "Ladon"), system("redis", "Redis")],
            works: vec![work],
            rounds: 5,
            seconds: 1.0,
            seed: 1,
            ..Results::default()
        }
    }

    #[test]
    fn figures_ratios_and_winners_are_those_of_the_results() {
        let text = section(&[run(2.0)]);
        assert!(text.contains("| | Ladon | Redis |\n"), "{text}");
        assert!(text.contains("| HGET | 1.00 | 2.00 (0.50) |\n"), "{text}");
        assert!(!text.contains("memory"), "nothing of it was measured: {text}");
        let document = format!("{BEGIN}{END}\n{WINNERS_BEGIN}{WINNERS_END}");
        let both = replaced(&document, &[run(2.0)]).unwrap();
        assert!(both.contains(&text), "{both}");
        let (_, winners) = both.split_once(WINNERS_BEGIN).unwrap();
        assert!(winners.contains("| `types` | **Ladon**: hget 2.00 |"), "{winners}");
    }

    #[test]
    fn figures_are_those_of_the_run_that_measured_longest() {
        let mut short = run(3.0);
        short.seconds = 0.5;
        let mut full = run(2.0);
        full.rounds = 3;
        let mut small = run(4.0);
        (small.rounds, small.budget) = (100, Some(Budget::default()));
        let text = section(&[short, full.clone(), small]);
        assert_eq!(text, section(&[full]));
    }

    #[test]
    fn a_ratio_that_is_not_told_from_one_says_so() {
        let text = section(&[run(1.0)]);
        assert!(text.contains("1.00 (1.00?) |"), "{text}");
    }

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let document = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = replaced(&document, &[run(2.0)]).unwrap();
        assert!(new.starts_with(&format!("a\n{BEGIN}\n")) && new.ends_with(&format!("{END}\nb\n")));
        assert!(!new.contains("old"));
        assert_eq!(replaced(&new, &[run(2.0)]).unwrap(), new, "made anew it is the same");
        assert_eq!(replaced("no marks", &[run(2.0)]), None);
    }
}
