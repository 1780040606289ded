//! Which mark and colour is whose.

use maud::{Markup, PreEscaped, html};

use crate::report::chart::backend::Paint;
use crate::report::chart::palette::Mark;

/// A list of names with their swatches.
pub(super) fn legend(entries: &[(String, Paint, Mark)]) -> Markup {
    html! {
        ul.legend {
            @for (name, paint, mark) in entries { li { (swatch(*paint, *mark)) (name) } }
        }
    }
}

fn swatch(paint: Paint, mark: Mark) -> Markup {
    let Paint::System(colour, pattern) = paint else {
        return html! {};
    };
    let dash = if pattern > 0 { " stroke-dasharray=\"6 4\"" } else { "" };
    let fill =
        if pattern > 0 { format!("url(#hatch-{colour})") } else { "currentColor".to_owned() };
    let shape = if mark == Mark::Circle {
        format!("<circle cx=\"15\" cy=\"8\" r=\"4\" class=\"edge\" fill=\"{fill}\"/>")
    } else {
        let corners = mark.corners().iter().map(|(x, y)| format!("{},{}", x + 15, y + 8));
        let corners = corners.collect::<Vec<_>>().join(" ");
        format!("<polygon points=\"{corners}\" class=\"edge\" fill=\"{fill}\"/>")
    };
    PreEscaped(format!(
        "<svg class=\"swatch s{colour}\" width=\"30\" height=\"16\" aria-hidden=\"true\">\
         <line x1=\"0\" y1=\"8\" x2=\"30\" y2=\"8\" stroke=\"currentColor\" stroke-width=\"2\"{dash}/>{shape}</svg>"
    ))
}
