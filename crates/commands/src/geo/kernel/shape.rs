//! The areas that are searched.

use super::distance::{EARTH_RADIUS_M, degrees, distance, latitude_distance, radians};
use super::{Extent, LATITUDES, LONGITUDES, Point};

/// A shape, in a unit of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Circle {
        radius: f64,
    },
    Box {
        width: f64,
        height: f64,
    },
    /// At least three points, degrees.
    Polygon(Vec<Point>),
}

/// A shape around a point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) center: Point,
    pub(crate) shape: Shape,
    /// Meters.
    pub(crate) unit: f64,
}

/// How much nearer a latitude has to be for a point to be excluded without its exact distance:
/// more than any rounding.
const CERTAINLY_FARTHER: f64 = 1.000_001;

impl Area {
    /// A polygon around the middle of its vertices.
    pub(crate) fn of_polygon(vertices: Vec<Point>) -> Area {
        let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
        for vertex in &vertices {
            let (longitude, latitude) = (radians(vertex.longitude), radians(vertex.latitude));
            x += EARTH_RADIUS_M * latitude.cos() * longitude.cos();
            y += EARTH_RADIUS_M * latitude.cos() * longitude.sin();
            z += EARTH_RADIUS_M * latitude.sin();
        }
        let count = vertices.len() as f64;
        (x, y, z) = (x / count, y / count, z / count);
        let latitude = degrees(z.atan2((x * x + y * y).sqrt()));
        let center = Point { longitude: degrees(y.atan2(x)), latitude };
        Area { center, shape: Shape::Polygon(vertices), unit: 1.0 }
    }

    /// The distance from the center in meters, if the point is inside.
    #[inline]
    pub(crate) fn distance_inside(&self, point: Point) -> Option<f64> {
        let center = self.center;
        match &self.shape {
            Shape::Circle { radius } => {
                let radius = radius * self.unit;
                let at_least = latitude_distance(point.latitude, center.latitude);
                if at_least > radius * CERTAINLY_FARTHER {
                    return None;
                }
                let distance = distance(center, point);
                // Opposite points may have no distance, by a rounding; Redis finds those too.
                if distance > radius { None } else { Some(distance) }
            }
            Shape::Box { width, height } => {
                let (width, height) = (width * self.unit, height * self.unit);
                if latitude_distance(point.latitude, center.latitude) > height / 2.0 {
                    return None;
                }
                let level = Point { latitude: point.latitude, ..center };
                if distance(point, level) > width / 2.0 {
                    return None;
                }
                Some(distance(center, point))
            }
            Shape::Polygon(vertices) => contains(vertices, point).then(|| distance(center, point)),
        }
    }

    /// A radius in meters within which the shape is, and the longitudes and latitudes around it.
    pub(super) fn bounds(&self) -> (f64, Extent, Extent) {
        let (width, height, radius) = match &self.shape {
            Shape::Circle { radius } => (self.unit * radius, self.unit * radius, *radius),
            Shape::Box { width, height } => {
                let (width, height) = (width / 2.0, height / 2.0);
                (self.unit * width, self.unit * height, (width * width + height * height).sqrt())
            }
            Shape::Polygon(vertices) => return self.polygon_bounds(vertices),
        };
        let Point { longitude, latitude } = self.center;
        let latitude_delta = degrees(height / EARTH_RADIUS_M);
        // The side that is nearer to a pole spans more degrees.
        let widest =
            if latitude < 0.0 { latitude - latitude_delta } else { latitude + latitude_delta };
        let longitude_delta = degrees(width / EARTH_RADIUS_M / radians(widest).cos());
        let around = |middle: f64, delta: f64| Extent { min: middle - delta, max: middle + delta };
        (radius * self.unit, around(longitude, longitude_delta), around(latitude, latitude_delta))
    }

    fn polygon_bounds(&self, vertices: &[Point]) -> (f64, Extent, Extent) {
        let none = |all: Extent| Extent { min: all.max, max: all.min };
        let mut longitudes = none(LONGITUDES);
        let mut latitudes = none(LATITUDES);
        for vertex in vertices {
            let grow = |extent: &mut Extent, degrees: f64| {
                extent.min = extent.min.min(degrees);
                extent.max = extent.max.max(degrees);
            };
            grow(&mut longitudes, vertex.longitude);
            grow(&mut latitudes, vertex.latitude);
        }
        let mut radius = 0.0f64;
        for longitude in [longitudes.min, longitudes.max] {
            for latitude in [latitudes.min, latitudes.max] {
                radius = radius.max(distance(self.center, Point { longitude, latitude }));
            }
        }
        (radius, longitudes, latitudes)
    }
}

/// Whether a ray from the point crosses the polygon's sides an odd number of times. W. Randolph
/// Franklin's PNPOLY: <https://wrfranklin.org/Research/Short_Notes/pnpoly.html>
fn contains(vertices: &[Point], point: Point) -> bool {
    let mut inside = false;
    let mut before = vertices.last();
    for vertex in vertices {
        if let Some(b) = before.replace(vertex) {
            let a = vertex;
            let crosses = (a.latitude > point.latitude) != (b.latitude > point.latitude)
                && point.longitude
                    < (b.longitude - a.longitude) * (point.latitude - a.latitude)
                        / (b.latitude - a.latitude)
                        + a.longitude;
            inside ^= crosses;
        }
    }
    inside
}
