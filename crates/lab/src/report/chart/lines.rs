//! A figure over an axis: a line each, marks at the measured places, intervals as whiskers.

use plotters::chart::ChartContext;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::{
    BindKeyPoints, Cartesian2d, ChartBuilder, Circle, EmptyElement, IntoLogRange, LineSeries,
    PathElement, Polygon,
};
use plotters::style::Color;

use super::backend::{Paint, SvgBackend};
use super::palette::Mark;
use super::{Area, ChartError, in_both_widths, words};

/// One line.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its points, x ascending.
    pub points: Vec<Point>,
    /// Whose colour it has.
    pub paint: Paint,
    /// Its mark; `None` draws the line alone.
    pub mark: Option<Mark>,
}

/// A measured place of a line.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Along the axis.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// Ends of the whisker.
    pub interval: Option<(f64, f64)>,
}

/// How the chart is laid out.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Words under a place of the axis.
    pub x_words: &'a dyn Fn(f64) -> String,
    /// Words beside a height.
    pub y_words: &'a dyn Fn(f64) -> String,
    /// Whether heights grow by factors.
    pub y_logarithmic: bool,
    /// Whether places grow evenly whatever they span; otherwise far places grow by factors.
    pub x_even: bool,
    /// How many places get words, at most.
    pub x_labels: usize,
}

const HEIGHT: u32 = 300;

/// Axes that span more than this grow by factors.
const LOGARITHMIC_FROM: f64 = 20.0;

/// Draws the curves over each other, the first on top.
///
/// # Errors
/// What `plotters` says.
pub fn lines(label: &str, curves: &[Curve], look: Look<'_>) -> Result<String, ChartError> {
    in_both_widths(label, |_| HEIGHT, |area, _| draw(area, curves, look))
}

fn draw(area: &Area<'_>, curves: &[Curve], look: Look<'_>) -> Result<(), ChartError> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (low, high) = ends(points().map(|point| point.x));
    let (least, most) = ends(points().map(|point| point.y));
    let mut builder = ChartBuilder::on(area);
    // Half of the longest word under the axis may stand right of it, and `1.50 M/s` left of it.
    builder.margin_top(10).margin_right(32).x_label_area_size(26).y_label_area_size(74);
    let by_factors = !look.x_even && low > 0.0 && high / low > LOGARITHMIC_FROM;
    // A line through one place only still needs an axis with a length.
    let (low, high) = if low < high { (low, high) } else { (low * 0.5, low * 1.5 + 1.0) };
    let top = if most > 0.0 { most * 1.08 } else { 1.0 };
    // `plotters` marks powers of ten only, of which a latency chart may have one: marks of our own.
    let mut measured: Vec<f64> = points().map(|point| point.x).collect();
    measured.sort_by(f64::total_cmp);
    measured.dedup();
    let x = || (low..high).log_scale().with_key_points(spread(&measured, look.x_labels));
    let bounds = (least * 0.8, most * 1.25);
    let y = || (bounds.0..bounds.1).log_scale().with_key_points(spread(&steps(bounds), 6));
    match (by_factors, look.y_logarithmic && least > 0.0) {
        (false, false) => {
            let chart = builder.build_cartesian_2d(low..high, 0.0..top);
            finish(chart.map_err(ChartError::new)?, curves, look, (0.0, top))
        }
        (true, false) => {
            let chart = builder.build_cartesian_2d(x(), 0.0..top);
            finish(chart.map_err(ChartError::new)?, curves, look, (0.0, top))
        }
        (false, true) => {
            let chart = builder.build_cartesian_2d(low..high, y());
            finish(chart.map_err(ChartError::new)?, curves, look, bounds)
        }
        (true, true) => {
            let chart = builder.build_cartesian_2d(x(), y());
            finish(chart.map_err(ChartError::new)?, curves, look, bounds)
        }
    }
}

/// The numbers 1, 2 and 5 times a power of ten within the bounds.
fn steps((low, high): (f64, f64)) -> Vec<f64> {
    let from = low.log10().floor() as i32;
    let to = high.log10().ceil() as i32;
    let all = (from..=to).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)));
    all.filter(|step| (low..=high).contains(step)).collect()
}

/// At most `count` of the marks, evenly far apart in their order, the last one among them.
fn spread(marks: &[f64], count: usize) -> Vec<f64> {
    let stride = marks.len().div_ceil(count.max(1)).max(1);
    let mut kept: Vec<f64> = marks.iter().rev().step_by(stride).copied().collect();
    kept.reverse();
    kept
}

/// Smallest and largest.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

fn finish<'a, X, Y>(
    mut chart: ChartContext<'a, SvgBackend<'a>, Cartesian2d<X, Y>>,
    curves: &[Curve],
    look: Look<'_>,
    bounds: (f64, f64),
) -> Result<(), ChartError>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let words = words(Paint::Muted);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(Paint::Page.code().stroke_width(0))
        .bold_line_style(Paint::Grid.code().stroke_width(1))
        .axis_style(Paint::Grid.code().stroke_width(1))
        .max_light_lines(0)
        .x_labels(look.x_labels)
        .y_labels(6)
        .x_label_formatter(&|x| (look.x_words)(*x))
        .y_label_formatter(&|y| (look.y_words)(*y))
        .x_label_style(words.clone())
        .y_label_style(words)
        .draw()
        .map_err(ChartError::new)?;
    for curve in curves.iter().rev() {
        let style = curve.paint.code().stroke_width(2);
        let path = curve.points.iter().map(|point| (point.x, point.y));
        chart.draw_series(LineSeries::new(path, style)).map_err(ChartError::new)?;
        for point in &curve.points {
            let Some(mark) = curve.mark else { continue };
            if let Some((low, high)) = point.interval {
                let ends = [low, high].map(|end| (point.x, end.clamp(bounds.0, bounds.1)));
                let thin = Paint::Ink.code().stroke_width(1);
                let whisker = PathElement::new(ends.to_vec(), thin);
                chart.plotting_area().draw(&whisker).map_err(ChartError::new)?;
            }
            let filled = curve.paint.code().filled();
            let at = EmptyElement::at((point.x, point.y));
            if mark == Mark::Circle {
                chart.plotting_area().draw(&(at + Circle::new((0, 0), 4, filled)))
            } else {
                chart.plotting_area().draw(&(at + Polygon::new(mark.corners().to_vec(), filled)))
            }
            .map_err(ChartError::new)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_numbers_and_not_too_many() {
        assert_eq!(steps((0.8, 12.0)), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(spread(&[1.0, 10.0, 50.0, 100.0], 6), [1.0, 10.0, 50.0, 100.0]);
        assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0], 3), [1.0, 3.0, 5.0]);
        assert!(spread(&[], 3).is_empty());
    }

    #[test]
    fn one_place_is_a_chart_too() {
        let point = Point { x: 8.0, y: 5.0, interval: Some((4.0, 9.0)) };
        let curve =
            Curve { points: vec![point], paint: Paint::System(1, 0), mark: Some(Mark::Circle) };
        let look = Look {
            x_words: &|x| x.to_string(),
            y_words: &|y| y.to_string(),
            y_logarithmic: false,
            x_even: false,
            x_labels: 4,
        };
        assert_eq!(lines("one", &[curve], look).unwrap().matches("<circle").count(), 2);
    }
}
