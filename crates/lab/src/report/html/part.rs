//! A part of a work: what is to be said of it, its charts, its table.

use maud::{Markup, PreEscaped, html};

use super::legend::legend;
use super::summary::dagger;
use crate::report::chart::ChartError;
use crate::report::chart::bars::{Bar, Group, bars};
use crate::report::chart::latency::{Distribution, latency};
use crate::report::chart::lines::{Curve, Look, Point, lines as line_chart};
use crate::report::chart::palette::{Mark, paint};
use crate::report::view::line::{Line, depends_on_load, latency_curve, load_limited, places};
use crate::report::view::number::{money, per_billion, plain, with_unit};
use crate::report::view::standing::standings;
use crate::report::view::verdict::{promise, words};
use crate::results::{Axis, Figure, Outcome, PartResult, Results};

/// The part, with `id` as its anchor.
pub(super) fn part(run: &Results, part: &PartResult, id: &str) -> Result<Markup, ChartError> {
    let lines = Line::all(run, part);
    let standings = standings(part, &lines, run.seed);
    // Best first, promise by promise; what was not measured is for the table.
    let order: Vec<(String, Vec<usize>)> = standings
        .iter()
        .map(|standing| {
            (standing.promise.clone(), standing.ranks.iter().map(|rank| rank.line).collect())
        })
        .collect();
    let charts = charts(part, &lines, &order)?;
    Ok(html! {
        article id=(id) {
            h3 { (part.title) }
            @for standing in &standings {
                @let words = words(part, &lines, standing);
                p.result.(words.tag) {
                    span.tag { (words.tag) } " "
                    @if standings.len() > 1 { (promise(&standing.promise)) ": " }
                    strong { (words.who) } ": " (words.how) "."
                }
            }
            @for line in &lines {
                @if let Some((x, reason)) = line.breaks_off() {
                    p.muted { (line.name()) " breaks off at " (plain(x)) ": " (reason) "." }
                }
            }
            div.charts { @for chart in &charts { (chart) } }
            @if let Some(axis) = &part.axis {
                @for figure in part.figures.iter().take(2) { (table_along(part, &lines, figure, axis)) }
                @let others = part.figures.get(2..).unwrap_or_default();
                @if !others.is_empty() {
                    details {
                        summary { "Over " (axis.name) ": " (titles(others)) }
                        @for figure in others { (table_along(part, &lines, figure, axis)) }
                    }
                }
            } @else {
                (table(run, part, &lines, &order))
            }
        }
    })
}

fn titles(figures: &[Figure]) -> String {
    figures.iter().map(|figure| figure.title.as_str()).collect::<Vec<_>>().join("; ")
}

/// A chart with its caption.
fn figure(caption: &str, chart: &str, below: &Markup) -> Markup {
    html! {
        figure {
            figcaption { (caption) }
            (PreEscaped(chart))
            (below)
        }
    }
}

fn charts(
    part: &PartResult,
    lines: &[Line<'_>],
    order: &[(String, Vec<usize>)],
) -> Result<Vec<Markup>, ChartError> {
    let mut charts = Vec::new();
    if order.is_empty() {
        return Ok(charts);
    }
    if let Some(axis) = &part.axis {
        for figure in part.figures.iter().take(2) {
            charts.extend(along(part, lines, order, figure, axis)?);
        }
        return Ok(charts);
    }
    // The first figure always; what it costs the server too, unless that fills the page.
    let mut shown: Vec<&Figure> = part.figures.iter().take(1).collect();
    if order.len() == 1 {
        shown.extend(part.figures.iter().skip(1).find(|figure| figure.key == "cpu_us"));
    }
    for shown in shown {
        charts.extend(upright(lines, order, shown)?);
    }
    for (name, members) in order {
        let suffix = if order.len() > 1 { format!(", {}", promise(name)) } else { String::new() };
        charts.extend(tail(lines, members, &suffix)?);
    }
    Ok(charts)
}

/// Bars of one figure.
fn upright(
    lines: &[Line<'_>],
    order: &[(String, Vec<usize>)],
    shown: &Figure,
) -> Result<Option<Markup>, ChartError> {
    let groups: Vec<Group> = order
        .iter()
        .map(|(name, members)| Group {
            heading: if order.len() > 1 { promise(name).to_owned() } else { String::new() },
            bars: members.iter().filter_map(|&index| bar(&lines[index], shown)).collect(),
        })
        .filter(|group| !group.bars.is_empty())
        .collect();
    if groups.is_empty() {
        return Ok(None);
    }
    let caption = caption(shown);
    let best = &groups[0].bars[0];
    let label = format!(
        "Bars: {caption}. First: {}, {}. All values are in the table.",
        best.label, best.text
    );
    Ok(Some(figure(&caption, &bars(&label, &groups)?, &html! {})))
}

fn bar(line: &Line<'_>, shown: &Figure) -> Option<Bar> {
    let estimate = line.estimate(&shown.key, None)?;
    let limited = depends_on_load(shown) && line.at(None).is_some_and(load_limited);
    Some(Bar {
        label: line.name(),
        value: estimate.median,
        interval: estimate.interval,
        text: with_unit(estimate.median, &shown.unit) + if limited { " †" } else { "" },
        paint: paint(line.system),
    })
}

/// A figure over the axis.
fn along(
    part: &PartResult,
    lines: &[Line<'_>],
    order: &[(String, Vec<usize>)],
    shown: &Figure,
    axis: &Axis,
) -> Result<Option<Markup>, ChartError> {
    let members: Vec<usize> = order.iter().flat_map(|(_, members)| members.clone()).collect();
    let mut curves = Vec::new();
    let mut entries = Vec::new();
    for (index, line) in members.iter().map(|&index| &lines[index]).enumerate() {
        let points: Vec<Point> = places(part)
            .into_iter()
            .filter_map(|place| {
                let estimate = line.estimate(&shown.key, place)?;
                Some(Point { x: place?, y: estimate.median, interval: estimate.interval })
            })
            .collect();
        if !points.is_empty() {
            curves.push(Curve { points, paint: paint(line.system), mark: Some(Mark::of(index)) });
            entries.push((line.name(), paint(line.system), Mark::of(index)));
        }
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let heights = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.y));
    let (low, high) = heights()
        .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), y| (low.min(y), high.max(y)));
    let look = Look {
        x_words: &plain,
        y_words: &|y| with_unit(y, &shown.unit),
        // Latencies span decades; rates are read from zero.
        y_logarithmic: shown.key.ends_with("_us") && low > 0.0 && high / low > 20.0,
        x_even: false,
        x_labels: 6,
    };
    let caption = format!("{}, over {}", caption(shown), axis.name);
    let label = format!("Lines: {caption}. All values are in the table.");
    Ok(Some(figure(&caption, &line_chart(&label, &curves, look)?, &legend(&entries))))
}

/// Latency by percentile.
fn tail(lines: &[Line<'_>], members: &[usize], suffix: &str) -> Result<Option<Markup>, ChartError> {
    let mut distributions = Vec::new();
    let mut entries = Vec::new();
    for (index, line) in members.iter().map(|&index| &lines[index]).enumerate() {
        let curve = line.at(None).map(latency_curve).unwrap_or_default();
        if curve.len() > 1 {
            let (paint, mark) = (paint(line.system), Mark::of(index));
            distributions.push(Distribution { curve, paint, mark });
            entries.push((line.name(), paint, mark));
        }
    }
    if distributions.is_empty() {
        return Ok(None);
    }
    let caption = format!("Latency by percentile{suffix}");
    let label = format!("Lines: {caption}. The usual percentiles are in the table.");
    Ok(Some(figure(&caption, &latency(&label, &distributions)?, &legend(&entries))))
}

fn caption(figure: &Figure) -> String {
    let mut title = figure.title.clone();
    if let Some(first) = title.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    let better = match figure.better {
        crate::results::Better::Higher => "more is better",
        crate::results::Better::Lower => "less is better",
    };
    format!("{title}, {better}")
}

/// Lines down, figures across.
fn table(
    run: &Results,
    part: &PartResult,
    lines: &[Line<'_>],
    order: &[(String, Vec<usize>)],
) -> Markup {
    let price =
        run.price_per_hour.filter(|_| part.figures.iter().any(|figure| figure.key == "per_second"));
    let columns = part.figures.len() + usize::from(price.is_some());
    let measured = order.iter().flat_map(|(_, members)| members.iter().copied());
    let empty = (0..lines.len()).filter(|&index| !lines[index].measured());
    let rows: Vec<usize> = measured.chain(empty).collect();
    let limited = rows.iter().any(|&index| lines[index].at(None).is_some_and(load_limited));
    html! {
        div.scroll tabindex="0" role="region" aria-label=(part.title) {
            table {
                caption.unseen { (part.title) }
                thead {
                    tr {
                        th scope="col" { "System" }
                        @for figure in &part.figures { th scope="col" { (figure.title) } }
                        @if price.is_some() { th scope="col" { "cost of 10⁹" } }
                    }
                }
                tbody {
                    @for line in rows.iter().map(|&index| &lines[index]) {
                        tr {
                            (head(line))
                            @if let Some(reason) = line.reason() {
                                td.empty colspan=(columns) { (reason) }
                            } @else {
                                @for figure in &part.figures { (value(line, figure, None)) }
                                @if let Some(price) = price {
                                    td { (line.estimate("per_second", None).and_then(|rate| per_billion(price, rate.median)).map(money).unwrap_or_default()) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @if limited { (footnote()) }
    }
}

/// Lines down, the axis across.
fn table_along(part: &PartResult, lines: &[Line<'_>], figure: &Figure, axis: &Axis) -> Markup {
    let places = places(part);
    let limited = depends_on_load(figure)
        && lines.iter().any(|line| line.cells.iter().any(|cell| load_limited(cell)));
    html! {
        div.scroll tabindex="0" role="region" aria-label={ (part.title) ", " (figure.title) } {
            table {
                caption { (caption(figure)) }
                thead {
                    tr {
                        th scope="col" { (axis.name) }
                        @for place in &places { th scope="col" { (place.map(plain).unwrap_or_default()) } }
                    }
                }
                tbody {
                    @for line in lines {
                        tr {
                            (head(line))
                            @if let Some(reason) = line.reason() {
                                td.empty colspan=(places.len()) { (reason) }
                            } @else {
                                @for &place in &places { (value(line, figure, place)) }
                            }
                        }
                    }
                }
            }
        }
        @if limited { (footnote()) }
    }
}

fn head(line: &Line<'_>) -> Markup {
    html! {
        th scope="row" {
            (line.label)
            @if !line.setting.is_empty() { br; span.muted { (line.setting) } }
        }
    }
}

fn value(line: &Line<'_>, figure: &Figure, place: Option<f64>) -> Markup {
    let Some(cell) = line.at(place) else {
        return html! { td.none { span aria-label="not measured" { "–" } } };
    };
    if let Outcome::Empty { reason } = &cell.outcome {
        return html! { td.empty { (reason) } };
    }
    let Some(estimate) = line.estimate(&figure.key, place) else {
        return html! { td.none { span aria-label="not measured" { "–" } } };
    };
    html! {
        td {
            (with_unit(estimate.median, &figure.unit))
            @if depends_on_load(figure) && load_limited(cell) { (dagger()) }
            @if let Some(ends) = estimate.interval {
                br;
                span.interval { (interval(ends, estimate.median, &figure.unit)) }
            }
        }
    }
}

/// Both ends; those of two rounds that differ are so far out that their digits would say nothing.
fn interval((low, high): (f64, f64), median: f64, unit: &str) -> String {
    if median > 0.0 && (low < median / 100.0 || high > median * 100.0) {
        return "too wide to say".to_owned();
    }
    format!("{} to {}", with_unit(low, unit), with_unit(high, unit))
}

fn footnote() -> Markup {
    html! { p.muted { "† the load generator was the limit: the system can do more than is shown." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_end_is_not_shown_as_digits() {
        assert_eq!(interval((900.0, 1100.0), 1000.0, "1/s"), "900/s to 1.10 k/s");
        assert_eq!(interval((0.001, 9e12), 1000.0, "us"), "too wide to say");
        assert_eq!(interval((-1.0, 3.0), 0.0, ""), "-1 to 3");
    }
}
