//! Charts as SVG inside the page, laid out by `plotters` and drawn by a backend of our own.
//!
//! `plotters` computes scales, ticks and positions; its own SVG backend writes fixed colours, which
//! a page that is read by day, by night and on paper cannot use. [`backend`] writes roles instead,
//! and the page's style sheet gives them colours. Each chart comes in two widths, so that its
//! letters keep their size on a phone, and the style sheet shows the one that fits.
//!
//! **Invariant:** no system is told by colour alone: bars are labelled, lines have marks and
//! dashes.

pub mod backend;
pub mod bars;
pub mod latency;
pub mod lines;
pub mod palette;

use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea, IntoFont};
use plotters::style::{Color, TextStyle};

use backend::SvgBackend;

/// Height of all text in a chart, in pixels of its own width.
const TEXT_SIZE: u32 = 13;

/// Widths of a chart in pixels: half a desktop's page, and a phone.
const WIDTHS: [(u32, &str); 2] = [(560, "wide"), (340, "narrow")];

/// Why a chart could not be drawn: `plotters` said so.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw a chart: {0}")]
pub struct ChartError(String);

impl ChartError {
    pub(super) fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// How words in this paint are written.
pub(super) fn words(paint: backend::Paint) -> TextStyle<'static> {
    let mut style = TextStyle::from(("sans-serif", TEXT_SIZE).into_font());
    style.color = paint.code().to_backend_color();
    style
}

/// A part of `plotters`' canvas.
pub(super) type Area<'a> = DrawingArea<SvgBackend<'a>, Shift>;

/// Draws in both widths. `height` and `draw` are told the width; `label` is read out instead.
///
/// # Errors
/// What `plotters` says.
pub(super) fn in_both_widths(
    label: &str,
    height: impl Fn(u32) -> u32,
    draw: impl Fn(&Area<'_>, u32) -> Result<(), ChartError>,
) -> Result<String, ChartError> {
    let mut svg = String::new();
    for (width, class) in WIDTHS {
        let size = (width, height(width));
        backend::open(&mut svg, size, class, label);
        {
            let area = SvgBackend::new(&mut svg, size).into_drawing_area();
            draw(&area, width)?;
            area.present().map_err(ChartError::new)?;
        }
        svg.push_str("</svg>");
    }
    Ok(svg)
}
