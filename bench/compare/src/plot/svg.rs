//! SVG as text: the few shapes that plots are made of. A white ground is part of the picture, so that
//! it reads the same on a light and a dark page.

use std::fmt::Write;

use super::series::{Marker, Style};

/// A place, from the left and from the top.
pub(super) type Point = (f64, f64);

/// Which part of a text stands at its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// A picture being drawn.
pub(super) struct Svg(String);

impl Svg {
    /// An empty picture with a name for those who do not see it.
    pub(super) fn new(width: f64, height: f64, name: &str) -> Self {
        let name = escaped(name);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{name}\" \
             font-family=\"system-ui, sans-serif\">\n<title>{name}</title>\n"
        );
        text.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        Self(text)
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: Point, to: Point, color: &str, width: f64) {
        self.path(&[from, to], color, width);
    }

    /// A line through points.
    pub(super) fn path(&mut self, points: &[Point], color: &str, width: f64) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.0,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width:.1}\"/>",
            points.join(" ")
        );
    }

    /// The mark of a style.
    pub(super) fn marker(&mut self, (x, y): Point, style: Style) {
        let corners: &[Point] = match style.marker {
            Marker::Circle => {
                let color = style.color;
                let _ = writeln!(
                    self.0,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{color}\"/>"
                );
                return;
            }
            Marker::Square => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
            Marker::Up => &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)],
            Marker::Down => &[(0.0, 5.0), (5.0, -4.0), (-5.0, -4.0)],
            Marker::Diamond => &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)],
        };
        let corner = |(dx, dy): &Point| format!("{:.1},{:.1}", x + dx, y + dy);
        let points: Vec<String> = corners.iter().map(corner).collect();
        let _ =
            writeln!(self.0, "<polygon points=\"{}\" fill=\"{}\"/>", points.join(" "), style.color);
    }

    /// A text of a size in pixels.
    pub(super) fn text(&mut self, (x, y): Point, anchor: Anchor, size: u8, text: &str) {
        self.turned_text((x, y), anchor, size, text, 0);
    }

    /// A text that is turned around its place.
    pub(super) fn turned_text(
        &mut self,
        (x, y): Point,
        anchor: Anchor,
        size: u8,
        text: &str,
        degrees: i16,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = match degrees {
            0 => String::new(),
            _ => format!(" transform=\"rotate({degrees} {x:.1} {y:.1})\""),
        };
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"#1f2328\" \
             text-anchor=\"{anchor}\"{turn}>{}</text>",
            escaped(text)
        );
    }

    /// The whole picture.
    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// A text without what means something in XML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}
