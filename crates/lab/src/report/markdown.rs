//! The measured sections of a document, made from results and from nothing else: `report
//! --markdown`.
//!
//! What stands between `<!-- measured:begin -->` and `<!-- measured:end -->` is replaced by
//! figures, what stands between `<!-- winners:begin -->` and `<!-- winners:end -->` by who is first
//! in which work. A figure is the median of its rounds; in brackets stands ours through it, the
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
use crate::systems::bare_loop;

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
        let mut own = run.clone();
        own.works.retain(|work| longest(runs, &work.work) == Some(number));
        let tables = tables(&own);
        (!tables.is_empty()).then(|| heading(run) + &tables)
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The run that has measured a work longest: full stores before those that a budget made smaller,
/// then by the seconds of all rounds.
fn longest(runs: &[Results], work: &str) -> Option<usize> {
    let has = |run: &Results| run.works.iter().any(|other| other.work == work);
    let weight = |run: &Results| (run.budget.is_none(), f64::from(run.rounds) * run.seconds);
    let mut best: Option<(usize, (bool, f64))> = None;
    for (number, run) in runs.iter().enumerate().filter(|(_, run)| has(run)) {
        if best.is_none_or(|(_, most)| weight(run) > most) {
            best = Some((number, weight(run)));
        }
    }
    best.map(|(number, _)| number)
}

fn tables(run: &Results) -> String {
    let table = |run, title, key, columns| against(OURS, run, title, key, columns);
    let mut text = table(
        run,
        "Server CPU of single keys, microseconds per operation; 50 users, keys of 16 bytes, \
                         values of 64 bytes (`pipeline`)",
        "cpu_us",
        &KEYS,
    );
    text += &against(
        bare_loop::NAME,
        run,
        "Server CPU of PING, likewise; in brackets here: through the bare loop's, which is Ladon's loop \
         without a store behind it, so what the kernel and the sockets cost (`pipeline`)",
        "cpu_us",
        &PING,
    );
    text +=
        &table(run, "The other types, likewise, 16 requests at once (`types`)", "cpu_us", &TYPES);
    text += &table(
        run,
        "Server CPU of a script of three lines, one of which is a command, microseconds (`scripts`)",
        "cpu_us",
        &SCRIPTS,
    );
    text += &table(
        run,
        "Server CPU of PUBLISH for each message delivered, likewise (`publish`)",
        "cpu_us",
        &MESSAGES,
    );
    text += &table(
        run,
        "Server CPU of SET, 16 at once, with keyspace events: likewise (`publish`)",
        "cpu_us",
        &EVENTS,
    );
    text += &table(run, "Resident memory, bytes (`memory`)", "bytes_each", &MEMORY);
    text += &table(
        run,
        "What a small read waits at most in 99.9 % of cases, while (`stall`)",
        "p999_us",
        &STALL,
    );
    text += &table(
        run,
        "What a polite client waits at most in 99.9 % of cases, while (`fairness`)",
        "p999_us",
        &FAIRNESS,
    );
    text += &table(
        run,
        "The server's most resident memory meanwhile (`fairness`)",
        "peak_bytes",
        &FAIRNESS,
    );
    text += &table(
        run,
        "From a push to the client that waits for it (`handover`)",
        "p50_us",
        &HANDOVER,
    );
    text += &table(run, "Restart from a snapshot (`memory`)", "restart_ms", &RESTART);
    text
}

/// A column: its head, the work, the part, and the place on its axis.
struct Column(&'static str, &'static str, &'static str, Option<f64>);

const KEYS: [Column; 6] = [
    Column("SET", "pipeline", "set-64", Some(1.0)),
    Column("GET", "pipeline", "get-64", Some(1.0)),
    Column("SET, 16 at once", "pipeline", "set-64", Some(16.0)),
    Column("GET, 16", "pipeline", "get-64", Some(16.0)),
    Column("SET, 64", "pipeline", "set-64", Some(64.0)),
    Column("GET, 64", "pipeline", "get-64", Some(64.0)),
];

const PING: [Column; 3] = [
    Column("PING", "pipeline", "ping", Some(1.0)),
    Column("PING, 16 at once", "pipeline", "ping", Some(16.0)),
    Column("PING, 64", "pipeline", "ping", Some(64.0)),
];

const TYPES: [Column; 20] = [
    Column("HSET", "types", "hset", None),
    Column("HGET", "types", "hget", None),
    Column("HGETALL 20", "types", "hgetall", None),
    Column("LPUSH, RPOP", "types", "lpush-rpop", None),
    Column("LRANGE 100", "types", "lrange", None),
    Column("ZADD", "types", "zadd", None),
    Column("ZSCORE", "types", "zscore", None),
    Column("ZRANK", "types", "zrank", None),
    Column("ZRANGE 100", "types", "zrange", None),
    Column("ZINCRBY", "types", "zincrby", None),
    Column("SADD", "types", "sadd", None),
    Column("SADD, SREM", "types", "sadd-srem", None),
    Column("SISMEMBER", "types", "sismember", None),
    Column("SETBIT", "types", "setbit", None),
    Column("BITCOUNT", "types", "bitcount", None),
    Column("INCR", "types", "incr", None),
    Column("XADD", "types", "xadd", None),
    Column("XADD, XREADGROUP, XACK", "types", "xadd-xreadgroup", None),
    Column("PFADD", "types", "pfadd", None),
    Column("GEOSEARCH 41", "types", "geosearch", None),
];

const SCRIPTS: [Column; 4] = [
    Column("EVALSHA", "scripts", "evalsha", Some(1.0)),
    Column("16 at once", "scripts", "evalsha", Some(16.0)),
    Column("EVALSHA, key not declared", "scripts", "undeclared", Some(1.0)),
    Column("16 at once, key not declared", "scripts", "undeclared", Some(16.0)),
];

const MESSAGES: [Column; 3] = [
    Column("one subscriber", "publish", "deliveries", Some(1.0)),
    Column("100", "publish", "deliveries", Some(100.0)),
    Column("10,000", "publish", "deliveries", Some(10_000.0)),
];

const EVENTS: [Column; 3] = [
    Column("no events", "publish", "set-silent", None),
    Column("nobody subscribes to them", "publish", "set-events", None),
    Column("one client reads them", "publish", "set-heard", None),
];

const MEMORY: [Column; 7] = [
    Column("key of 11, value of 8", "memory", "key-11-8", None),
    Column("key of 16, value of 64", "memory", "key-16-64", None),
    Column("key of 20, value of 1,000", "memory", "key-20-1000", None),
    Column("member of a set", "memory", "set-member", None),
    Column("of a sorted set", "memory", "zset-member", None),
    Column("hash of 20 fields", "memory", "hash", None),
    Column("list of 100", "memory", "list", None),
];

const STALL: [Column; 5] = [
    Column("nothing else goes on", "stall", "nothing", None),
    Column("a hash is read whole", "stall", "hgetall", None),
    Column("a list is read whole", "stall", "lrange", None),
    Column("two sets are united", "stall", "sunionstore", None),
    Column("a sorted set is deleted", "stall", "del", None),
];

const FAIRNESS: [Column; 10] = [
    Column("nothing else goes on", "fairness", "nothing", None),
    Column("a connection pipelines SETs without end", "fairness", "pipeline", None),
    Column("the same, replies left unread", "fairness", "pipeline-unread", None),
    Column("keys are loaded in bulk", "fairness", "bulk", None),
    Column("a connection pipelines slow commands", "fairness", "slow", None),
    Column("the same, on Ladon's other thread", "fairness", "slow-apart", None),
    Column("1,000 connections read nothing", "fairness", "unread", None),
    Column("10,000 keys a second expire", "fairness", "expiry", None),
    Column("keys are deleted in a pipeline", "fairness", "delete", None),
    Column("a snapshot is made", "fairness", "snapshot", None),
];

const HANDOVER: [Column; 1] = [Column("median", "handover", "handover", None)];
const RESTART: [Column; 1] = [Column("until it answers", "memory", "snapshot", None)];

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
/// measured. A ratio is Ladon's divided by the other's, or if `base` is not a competitor, each
/// system's divided by the base's.
fn against(base: &str, run: &Results, title: &str, key: &str, columns: &[Column]) -> String {
    let parts: Vec<Option<(&PartResult, Vec<Line<'_>>)>> = columns
        .iter()
        .map(|Column(_, work, part, _)| {
            let work = run.works.iter().find(|other| other.work == *work)?;
            let part = work.parts.iter().find(|other| other.part == *part)?;
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
    // In the order in which the run lists them, whoever was measured first in a round.
    let place = |name: &str| run.systems.iter().position(|system| system.name == name);
    systems.sort_by_key(|(name, _)| place(name));
    let line_of = |number: usize, system: &str| {
        let (_, lines) = parts[number].as_ref()?;
        lines.iter().find(|line| line.system == system && line.measured())
    };
    let value = |number: usize, system: &str| {
        let line = line_of(number, system)?;
        let place = columns[number].3;
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
        let place = columns[number].3;
        let (above, below) = if base == OURS { (OURS, system) } else { (system, base) };
        let (above, below) =
            (line_of(number, above)?.at(place)?, line_of(number, below)?.at(place)?);
        let ratio = paired_ratio(&samples(above, key), &samples(below, key), Level::P95, run.seed)?;
        let told = ratio.surely_above(1.0) || ratio.surely_below(1.0);
        Some(format!("{:.2}{}", ratio.median, if told { "" } else { "?" }))
    };
    systems.sort_by_key(|(name, _)| *name != OURS);
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
