//! One figure of several lines as horizontal bars from 0, with intervals as whiskers.
//!
//! The label is above its bar and the value after it, so that the longest name fits on a phone.

use plotters::prelude::{ChartBuilder, EmptyElement, PathElement, Rectangle, Text};
use plotters::style::Color;
use plotters_backend::text_anchor::{HPos, Pos, VPos};

use super::backend::Paint;
use super::{Area, ChartError, TEXT_SIZE, in_both_widths, words};

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Above it.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// Ends of the whisker.
    pub interval: Option<(f64, f64)>,
    /// Behind it.
    pub text: String,
    /// Whose colour it has.
    pub paint: Paint,
}

/// Bars under a heading; the heading may be empty.
#[derive(Clone, Debug)]
pub struct Group {
    /// Above the bars.
    pub heading: String,
    /// From the top down.
    pub bars: Vec<Bar>,
}

/// Pixels of a bar with its label, of a heading, and below the last bar.
const ROW: u32 = 42;
const HEADING: u32 = 30;
const BOTTOM: u32 = 4;
/// Pixels right of the longest whisker, for the value.
const VALUE: u32 = 92;

/// Draws the groups from the top down.
///
/// # Errors
/// What `plotters` says.
pub fn bars(label: &str, groups: &[Group]) -> Result<String, ChartError> {
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let headings = groups.iter().filter(|group| !group.heading.is_empty()).count();
    let height = rows as u32 * ROW + headings as u32 * HEADING + BOTTOM;
    in_both_widths(label, |_| height, |area, width| draw(area, width, groups))
}

fn draw(area: &Area<'_>, width: u32, groups: &[Group]) -> Result<(), ChartError> {
    let all = || groups.iter().flat_map(|group| &group.bars);
    let longest = all().map(|bar| bar.value).fold(0.0, f64::max);
    // Whiskers of two or three rounds can reach far; what leaves the chart is cut, the table has
    // it.
    let reach =
        all().map(|bar| bar.interval.map_or(bar.value, |(_, high)| high)).fold(0.0, f64::max);
    let end = reach.min(longest * 1.35).max(f64::MIN_POSITIVE);
    let (_, height) = area.dim_in_pixel();
    let chart = ChartBuilder::on(area)
        .margin_right(VALUE.min(width / 3))
        .build_cartesian_2d(0.0..end, f64::from(height)..0.0)
        .map_err(ChartError::new)?;
    let text = |paint: Paint, vertical: VPos| words(paint).pos(Pos::new(HPos::Left, vertical));
    let area_of = chart.plotting_area();
    let mut top = 0.0;
    for group in groups {
        if !group.heading.is_empty() {
            let style = text(Paint::Muted, VPos::Top);
            area_of
                .draw(
                    &(EmptyElement::at((0.0, top))
                        + Text::new(fitting(&group.heading, width), (0, 9), style)),
                )
                .map_err(ChartError::new)?;
            top += f64::from(HEADING);
        }
        for bar in &group.bars {
            let (upper, lower) = (top + 20.0, top + 36.0);
            let style = text(Paint::Ink, VPos::Top);
            let label =
                EmptyElement::at((0.0, top)) + Text::new(fitting(&bar.label, width), (0, 4), style);
            area_of.draw(&label).map_err(ChartError::new)?;
            let shape =
                Rectangle::new([(0.0, upper), (bar.value, lower)], bar.paint.code().filled());
            area_of.draw(&shape).map_err(ChartError::new)?;
            let mut right = bar.value;
            if let Some((low, high)) = bar.interval {
                let (low, high) = (low.max(0.0), high.min(end));
                right = right.max(high);
                whisker(&chart, low, high, (upper, lower))?;
            }
            let style = text(Paint::Ink, VPos::Center);
            let value = EmptyElement::at((right, f64::midpoint(upper, lower)))
                + Text::new(bar.text.clone(), (7, 0), style);
            area_of.draw(&value).map_err(ChartError::new)?;
            top += f64::from(ROW);
        }
    }
    Ok(())
}

/// As much of `text` as fits into a chart of this width; the table has all of it.
fn fitting(text: &str, width: u32) -> String {
    // Wide faces take 0.6 of their height for a letter.
    let letters = (f64::from(width) / (0.6 * f64::from(TEXT_SIZE))) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

type Chart<'a, 'b> = plotters::chart::ChartContext<
    'a,
    super::backend::SvgBackend<'b>,
    plotters::prelude::Cartesian2d<
        plotters::coord::types::RangedCoordf64,
        plotters::coord::types::RangedCoordf64,
    >,
>;

/// The line over a light one of the page's colour, so that it shows on any bar.
fn whisker(
    chart: &Chart<'_, '_>,
    low: f64,
    high: f64,
    (upper, lower): (f64, f64),
) -> Result<(), ChartError> {
    let middle = f64::midpoint(upper, lower);
    let (top, bottom) = (upper + 4.0, lower - 4.0);
    for (paint, width) in [(Paint::Page, 4), (Paint::Ink, 2)] {
        let style = paint.code().stroke_width(width);
        for path in [
            vec![(low, middle), (high, middle)],
            vec![(low, top), (low, bottom)],
            vec![(high, top), (high, bottom)],
        ] {
            chart.plotting_area().draw(&PathElement::new(path, style)).map_err(ChartError::new)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(value: f64, interval: Option<(f64, f64)>) -> Bar {
        Bar {
            label: format!("bar of {value}"),
            value,
            interval,
            text: "v".to_owned(),
            paint: Paint::System(5, 0),
        }
    }

    fn widths_of_bars(svg: &str) -> Vec<f64> {
        let rects = svg.split("<rect ").skip(1).filter(|rect| rect.contains("s5"));
        rects
            .map(|rect| {
                rect.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            })
            .collect()
    }

    #[test]
    fn lengths_are_in_proportion_and_start_at_zero() {
        let group = Group { heading: String::new(), bars: vec![bar(50.0, None), bar(100.0, None)] };
        let svg = bars("label", &[group]).unwrap();
        let widths = widths_of_bars(&svg);
        assert_eq!(widths.len(), 4, "two bars in two widths");
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.02, "{widths:?}");
        assert!((widths[3] / widths[2] - 2.0).abs() < 0.02, "{widths:?}");
    }

    #[test]
    fn an_endless_whisker_does_not_crush_the_bars() {
        let wild = Group { heading: "h".to_owned(), bars: vec![bar(100.0, Some((1.0, 1e9)))] };
        let widths = widths_of_bars(&bars("label", &[wild]).unwrap());
        assert!(widths[0] > 300.0, "{widths:?}");
    }

    #[test]
    fn long_names_end_where_the_chart_does() {
        assert_eq!(fitting("short", 340), "short");
        let cut = fitting(&"x".repeat(200), 340);
        assert!(cut.ends_with('…') && cut.chars().count() < 45, "{cut}");
    }

    #[test]
    fn zeros_can_be_drawn() {
        let group = Group { heading: String::new(), bars: vec![bar(0.0, Some((0.0, 0.0)))] };
        assert_eq!(widths_of_bars(&bars("label", &[group]).unwrap()), [0.0, 0.0]);
    }
}
