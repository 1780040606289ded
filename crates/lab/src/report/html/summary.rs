//! The first screen: where Ladon is first and where not. Folded below it: which system wins what
//! and by how much, every system compared with the best, and costs.

use maud::{Markup, html};

use crate::report::view::answer::Answer;
use crate::report::view::line::{Line, load_limited};
use crate::report::view::number::{money, per_billion, plain, times};
use crate::report::view::standing::{Rank, Standing, Verdict, standings};
use crate::report::view::verdict::{promise, words};
use crate::results::{PartResult, Results, WorkResult};

/// One comparison: a part of a work, at one promise.
struct Comparison<'a> {
    work: &'a WorkResult,
    part: &'a PartResult,
    lines: Vec<Line<'a>>,
    standing: Standing,
    /// Whether the part has comparisons at other promises too.
    one_of_several: bool,
}

impl Comparison<'_> {
    fn title(&self) -> String {
        if self.one_of_several {
            format!("{}: {}", self.part.title, promise(&self.standing.promise))
        } else {
            self.part.title.clone()
        }
    }

    const fn is_alone(&self) -> bool {
        matches!(self.standing.verdict, Verdict::Alone)
    }

    /// Counts that can be zero have none.
    const fn has_ratios(&self) -> bool {
        !matches!(self.standing.verdict, Verdict::Counted { .. })
    }

    /// The best line of a system, with its index among the ranks.
    fn rank(&self, system: &str) -> Option<(usize, &Rank)> {
        let mut ranks = self.standing.ranks.iter().enumerate();
        ranks.find(|(_, rank)| self.lines[rank.line].system == system)
    }
}

/// The visible sentences, and what is folded below the contents.
pub(super) struct Summary {
    pub(super) answer: Markup,
    pub(super) rest: Markup,
}

/// Both.
pub(super) fn summary(run: &Results, id: &impl Fn(&str) -> String) -> Summary {
    let comparisons = comparisons(run);
    Summary { answer: answer(&comparisons, id), rest: rest(run, &comparisons, id) }
}

/// A sentence each: where Ladon is first, where another is, where nothing is known yet.
fn answer(comparisons: &[Comparison<'_>], id: &impl Fn(&str) -> String) -> Markup {
    let mut answer = Answer::default();
    for comparison in comparisons {
        let Comparison { work, part, lines, standing, one_of_several } = comparison;
        answer.add(work, part, lines, standing, *one_of_several);
    }
    html! {
        div.answer {
            @for sentence in answer.sentences() {
                p.(sentence.tag) {
                    strong { (sentence.claim) } ": "
                    @for (index, (work, title, what)) in sentence.works.iter().enumerate() {
                        @if index > 0 { "; " }
                        a href={ "#" (id(work)) } { (title) }
                        @if !what.is_empty() { " (" (what) ")" }
                    }
                    "."
                }
            }
            p.tally { (tally(comparisons)) }
        }
    }
}

fn rest(run: &Results, comparisons: &[Comparison<'_>], id: &impl Fn(&str) -> String) -> Markup {
    let unmeasured: Vec<&WorkResult> = run
        .works
        .iter()
        .filter(|work| !comparisons.iter().any(|comparison| std::ptr::eq(comparison.work, *work)))
        .collect();
    html! {
        section id=(id("summary")) {
            div.verdicts {
                @for work in &run.works {
                    @let its: Vec<&Comparison<'_>> = comparisons
                        .iter()
                        .filter(|comparison| std::ptr::eq(comparison.work, work) && !comparison.is_alone())
                        .collect();
                    @if !its.is_empty() { (card(work, &its, id)) }
                }
            }
            @let alone: Vec<&Comparison<'_>> =
                comparisons.iter().filter(|comparison| comparison.is_alone()).collect();
            @if !alone.is_empty() {
                details {
                    summary { "Measured of one system only: " (alone.len()) }
                    ul.notes {
                        @for comparison in &alone {
                            li { (comparison.work.title) ", " (comparison.title()) ": " (comparison.lines[comparison.standing.ranks[0].line].name()) }
                        }
                    }
                }
            }
            @if !unmeasured.is_empty() {
                p.muted {
                    "Nothing was measured of: "
                    @for (index, work) in unmeasured.iter().enumerate() {
                        @if index > 0 { ", " }
                        a href={ "#" (id(&work.work)) } { (work.title) }
                    }
                    "."
                }
            }
            @if !comparisons.is_empty() { (beside_the_best(run, comparisons, id)) }
            @if let Some(price) = run.price_per_hour { (costs(run, comparisons, price, id)) }
        }
    }
}

/// One work: the winner of each of its parts, and the ratio. The whole sentence is a tool tip, and
/// is next to the part's chart.
fn card(work: &WorkResult, its: &[&Comparison<'_>], id: &impl Fn(&str) -> String) -> Markup {
    html! {
        section.verdict {
            h3 { a href={ "#" (id(&work.work)) } { (work.title) } }
            ul {
                @for comparison in its {
                    @let words = words(comparison.part, &comparison.lines, &comparison.standing);
                    li.(words.tag) title={ (words.who) ": " (words.how) } {
                        span.where { (comparison.title()) }
                        span.who { (first(comparison)) }
                        span.tag { (words.tag) }
                    }
                }
            }
        }
    }
}

/// Who is first and by how much, in as few words as can be.
fn first(comparison: &Comparison<'_>) -> Markup {
    let standing = &comparison.standing;
    let label = |rank: usize| comparison.lines[standing.ranks[rank].line].label.as_str();
    match &standing.verdict {
        Verdict::Alone => html! { strong { (label(0)) } },
        Verdict::Wins { ratio, at_least, .. } => html! {
            strong { (label(0)) } " " @if *at_least { "≥ " } (times(ratio.median))
        },
        Verdict::Ties { with, ratio } => html! {
            strong { (label(0)) } @for rank in with { ", " strong { (label(*rank)) } } " within " (times(ratio.median))
        },
        // The systems that it cannot be distinguished from are listed next to the chart: a list of
        // names here would hide that nothing is known.
        Verdict::Open { with, ratio } => html! {
            (label(0)) " " (times(ratio.median)) ", not told from "
            @if let [one] = with[..] { (label(one)) } @else { (with.len()) " others" }
        },
        Verdict::LoadLimited => html! { (label(0)) ", the load was the limit" },
        Verdict::Unproven { ratio } => html! { (label(0)) " " (times(*ratio)) },
        Verdict::Counted { level, best, worst } => html! {
            strong { (plain(*best)) } ": "
            @if *level == standing.ranks.len() { "all " (level) }
            @else { (level) " of " (standing.ranks.len()) "; the worst " (plain(*worst)) }
        },
    }
}

fn comparisons(run: &Results) -> Vec<Comparison<'_>> {
    let mut all = Vec::new();
    for work in &run.works {
        for part in &work.parts {
            let lines = Line::all(run, part);
            let standings = standings(part, &lines, run.seed);
            let one_of_several = standings.len() > 1;
            for standing in standings {
                all.push(Comparison { work, part, lines: lines.clone(), standing, one_of_several });
            }
        }
    }
    all
}

/// `Of 9 comparisons, Ladon 0.1.0 wins 6 and Valkey 9.1.2 wins 1; 1 is a tie, 1 is undecided.`
fn tally(comparisons: &[Comparison<'_>]) -> String {
    let mut wins: Vec<(String, usize)> = Vec::new();
    let (mut ties, mut undecided, mut contested) = (0, 0, 0);
    for comparison in comparisons {
        match comparison.standing.verdict {
            // Counts are said one by one below, and nobody wins by them.
            Verdict::Alone | Verdict::Counted { .. } => continue,
            Verdict::Wins { .. } => {
                let label = &comparison.lines[comparison.standing.ranks[0].line].label;
                match wins.iter_mut().find(|(name, _)| name == label) {
                    Some((_, count)) => *count += 1,
                    None => wins.push((label.clone(), 1)),
                }
            }
            Verdict::Ties { .. } => ties += 1,
            Verdict::Open { .. } | Verdict::LoadLimited | Verdict::Unproven { .. } => {
                undecided += 1
            }
        }
        contested += 1;
    }
    if contested == 0 {
        return "No two systems were compared.".to_owned();
    }
    wins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut said: Vec<String> =
        wins.iter().map(|(name, count)| format!("{name} wins {count}")).collect();
    if ties > 0 {
        said.push(format!("{ties} tied"));
    }
    if undecided > 0 {
        said.push(format!("{undecided} undecided"));
    }
    let word = if contested == 1 { "comparison" } else { "comparisons" };
    format!("{contested} {word}: {}.", said.join(", "))
}

/// Every system's best line as a share of the best of all.
fn beside_the_best(
    run: &Results,
    comparisons: &[Comparison<'_>],
    id: &impl Fn(&str) -> String,
) -> Markup {
    let systems = systems(run, comparisons);
    html! {
        details {
        summary { "Everybody beside the best" }
        p.muted { "1.00 is the best; 0.50 is half as good. ≈ is level with the best, ? is not told from it." }
        div.scroll tabindex="0" role="region" aria-label="Everybody beside the best" {
            table {
                thead { tr { th scope="col" { "Comparison" } @for (_, label) in &systems { th scope="col" { (label) } } } }
                tbody {
                    @for comparison in comparisons.iter().filter(|comparison| comparison.has_ratios() && !comparison.is_alone()) {
                        tr {
                            (row_head(comparison, id))
                            @for (name, _) in &systems { (share(comparison, name)) }
                        }
                    }
                }
            }
        }
        }
    }
}

/// Name and label of the systems that stand in any comparison.
fn systems<'a>(run: &'a Results, comparisons: &[Comparison<'_>]) -> Vec<(&'a str, String)> {
    let label = |name: &str| {
        comparisons.iter().find_map(|comparison| {
            let (_, rank) = comparison.rank(name)?;
            Some(comparison.lines[rank.line].label.clone())
        })
    };
    let names = run.systems.iter().map(|system| system.name.as_str());
    names.filter_map(|name| Some((name, label(name)?))).collect()
}

fn row_head(comparison: &Comparison<'_>, id: &impl Fn(&str) -> String) -> Markup {
    html! {
        th scope="row" {
            a href={ "#" (id(&comparison.work.work)) } { (comparison.work.title) }
            br;
            span.muted { (comparison.title()) }
        }
    }
}

fn share(comparison: &Comparison<'_>, system: &str) -> Markup {
    let Some((index, rank)) = comparison.rank(system) else {
        return html! { td.none { span aria-label="not measured" { "–" } } };
    };
    let verdict = &comparison.standing.verdict;
    let level = matches!(verdict, Verdict::Ties { with, .. } if with.contains(&index));
    let open = match verdict {
        Verdict::Open { with, .. } => with.contains(&index),
        Verdict::Wins { unjudged, .. } => unjudged.contains(&index),
        _ => false,
    };
    let proven = matches!(comparison.standing.verdict, Verdict::Wins { .. } | Verdict::Ties { .. });
    let share = times(1.0 / rank.behind.median);
    html! {
        td.best[index == 0 && proven].level[level] {
            @if level { "≈ " } @else if open { "? " }
            (share.trim_end_matches('×'))
            @if rank.limited { (dagger()) }
        }
    }
}

/// The mark of a figure that the load generator limited.
pub(super) fn dagger() -> Markup {
    html! { abbr title="the load generator was the limit" { "†" } }
}

/// Money per billion requests, of comparisons that are about throughput.
fn costs(
    run: &Results,
    comparisons: &[Comparison<'_>],
    price: f64,
    id: &impl Fn(&str) -> String,
) -> Markup {
    let throughput = |comparison: &&Comparison<'_>| {
        comparison.part.figures.first().is_some_and(|figure| figure.key == "per_second")
    };
    let paid: Vec<&Comparison<'_>> = comparisons.iter().filter(throughput).collect();
    if paid.is_empty() {
        return html! {};
    }
    let systems = systems(run, comparisons);
    html! {
        h3 { "Cost of a billion requests" }
        p.muted {
            "An hour of this machine costs " (money(price)) ", whichever system uses it: its price through its throughput, "
            "of each system's best line, at the far end of the axis. † at most this: the load generator was the limit."
        }
        div.scroll tabindex="0" role="region" aria-label="Cost of a billion requests" {
            table {
                thead { tr { th scope="col" { "Comparison" } @for (_, label) in &systems { th scope="col" { (label) } } } }
                tbody {
                    @for comparison in paid {
                        tr {
                            (row_head(comparison, id))
                            @for (name, _) in &systems { (cost(comparison, name, price)) }
                        }
                    }
                }
            }
        }
    }
}

fn cost(comparison: &Comparison<'_>, system: &str, price: f64) -> Markup {
    let rank = comparison.rank(system);
    let line = rank.map(|(_, rank)| &comparison.lines[rank.line]);
    let place = comparison.standing.compared.last().copied().flatten();
    let rate = line.and_then(|line| line.estimate("per_second", place));
    let Some((line, cost)) = line.zip(rate.and_then(|rate| per_billion(price, rate.median))) else {
        return html! { td.none { span aria-label="not measured" { "–" } } };
    };
    html! { td { (money(cost)) @if line.at(place).is_some_and(load_limited) { (dagger()) } } }
}
