//! Renders `plotters`' drawing as SVG elements whose colours the style sheet decides.
//!
//! `plotters` passes a backend only colours, so a colour here is a code: red is the kind of
//! element, green and blue its number. Only [`Paint`] knows the code.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::style::RGBColor;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

/// What is drawn, whatever colour the page gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Letters, axes, whiskers.
    Ink,
    /// Letters of less weight.
    Muted,
    /// Lines of the grid.
    Grid,
    /// The page behind the chart.
    Page,
    /// A system's colour and pattern (see [`super::palette`]).
    System(u8, u8),
}

impl Paint {
    /// As `plotters` takes it.
    #[must_use]
    pub const fn code(self) -> RGBColor {
        match self {
            Self::Ink => RGBColor(0, 0, 0),
            Self::Muted => RGBColor(1, 0, 0),
            Self::Grid => RGBColor(2, 0, 0),
            Self::Page => RGBColor(3, 0, 0),
            Self::System(colour, pattern) => RGBColor(4, colour, pattern),
        }
    }

    const fn of(color: BackendColor) -> Self {
        match color.rgb {
            (1, ..) => Self::Muted,
            (2, ..) => Self::Grid,
            (3, ..) => Self::Page,
            (4, colour, pattern) => Self::System(colour, pattern),
            _ => Self::Ink,
        }
    }

    /// The class that gives the colour, as `color`.
    fn class(self) -> String {
        match self {
            Self::Ink => "ink".to_owned(),
            Self::Muted => "muted".to_owned(),
            Self::Grid => "grid".to_owned(),
            Self::Page => "page".to_owned(),
            Self::System(colour, _) => format!("s{colour}"),
        }
    }

    /// Attributes of a filled shape. A pattern is defined once in the page, per colour.
    fn fill(self) -> String {
        match self {
            Self::System(colour, pattern) if pattern > 0 => {
                format!("class=\"s{colour} edge\" fill=\"url(#hatch-{colour})\"")
            }
            Self::System(..) => format!("class=\"{} edge\" fill=\"currentColor\"", self.class()),
            _ => format!("class=\"{}\" fill=\"currentColor\"", self.class()),
        }
    }

    /// Attributes of a line.
    fn stroke(self, width: u32) -> String {
        let dash = match self {
            Self::System(_, pattern) if pattern > 0 => " stroke-dasharray=\"6 4\"",
            _ => "",
        };
        format!(
            "class=\"{}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"{width}\"{dash}",
            self.class()
        )
    }
}

/// Begins an SVG element of this size; the caller closes it.
pub(super) fn open(svg: &mut String, (width, height): (u32, u32), class: &str, label: &str) {
    let _ = write!(
        svg,
        "<svg class=\"chart {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(label)
    );
}

/// Text as it may stand in an element or an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Control characters are not XML.
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Writes elements to the end of a string.
#[derive(Debug)]
pub struct SvgBackend<'a> {
    svg: &'a mut String,
    size: (u32, u32),
}

impl<'a> SvgBackend<'a> {
    /// A backend of this size.
    pub const fn new(svg: &'a mut String, size: (u32, u32)) -> Self {
        Self { svg, size }
    }

    fn element(&mut self, element: &str) {
        self.svg.push_str(element);
    }
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// Points as SVG lists them.
fn points(points: impl IntoIterator<Item = BackendCoord>) -> String {
    points.into_iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<String>>().join(" ")
}

impl DrawingBackend for SvgBackend<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        let fill = Paint::of(color).fill();
        self.element(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"1\" height=\"1\" {fill}/>"));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        (x1, y1): BackendCoord,
        (x2, y2): BackendCoord,
        style: &S,
    ) -> Drawn {
        let stroke = Paint::of(style.color()).stroke(style.stroke_width());
        self.element(&format!("<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {stroke}/>"));
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let paint = Paint::of(style.color());
        let attributes = if fill { paint.fill() } else { paint.stroke(style.stroke_width()) };
        self.element(&format!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" {attributes}/>",
            (right - left).max(0),
            (bottom - top).max(0)
        ));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let stroke = Paint::of(style.color()).stroke(style.stroke_width());
        self.element(&format!(
            "<polyline points=\"{}\" stroke-linejoin=\"round\" {stroke}/>",
            points(path)
        ));
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let paint = Paint::of(style.color());
        let attributes = if fill { paint.fill() } else { paint.stroke(style.stroke_width()) };
        self.element(&format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\" {attributes}/>"));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vertices: I,
        style: &S,
    ) -> Drawn {
        let fill = Paint::of(style.color()).fill();
        self.element(&format!("<polygon points=\"{}\" {fill}/>", points(vertices)));
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, y): BackendCoord,
    ) -> Drawn {
        if text.is_empty() {
            return Ok(());
        }
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        // From the anchor to the letters' baseline, as shares of their size.
        let down = match style.anchor().v_pos {
            VPos::Top => 0.8,
            VPos::Center => 0.35,
            VPos::Bottom => -0.2,
        };
        let size = style.size();
        let y = f64::from(y) + down * size;
        self.element(&format!(
            "<text x=\"{x}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" class=\"{}\" \
             fill=\"currentColor\">{}</text>",
            Paint::of(style.color()).class(),
            escaped(text)
        ));
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        // The mean letter of a sans-serif face is a little over half as wide as it is high.
        let width = 0.56 * style.size() * text.chars().count() as f64;
        Ok((width.ceil() as u32, style.size().ceil() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paint_survives_plotters() {
        for paint in [Paint::Ink, Paint::Muted, Paint::Grid, Paint::Page, Paint::System(7, 1)] {
            let RGBColor(red, green, blue) = paint.code();
            assert_eq!(Paint::of(BackendColor { alpha: 1.0, rgb: (red, green, blue) }), paint);
        }
    }

    #[test]
    fn what_a_server_calls_itself_cannot_leave_its_element() {
        assert_eq!(escaped("</text><script>\"&\u{7}"), "&lt;/text&gt;&lt;script&gt;&quot;&amp; ");
    }
}
