//! Distances on a sphere, meters.

use super::Point;
use std::f64::consts::PI;

/// Quadratic mean radius of the ellipsoid of WGS-84.
pub(super) const EARTH_RADIUS_M: f64 = 6_372_797.560856;
const RADIANS_PER_DEGREE: f64 = PI / 180.0;

#[inline]
pub(super) fn radians(degrees: f64) -> f64 {
    degrees * RADIANS_PER_DEGREE
}

pub(super) fn degrees(radians: f64) -> f64 {
    radians / RADIANS_PER_DEGREE
}

/// The distance of two latitudes.
#[inline]
pub(super) fn latitude_distance(a: f64, b: f64) -> f64 {
    EARTH_RADIUS_M * (radians(a) - radians(b)).abs()
}

/// The distance of two points, by the haversine formula.
#[inline]
pub(crate) fn distance(a: Point, b: Point) -> f64 {
    let v = ((radians(b.longitude) - radians(a.longitude)) / 2.0).sin();
    if v == 0.0 {
        return latitude_distance(b.latitude, a.latitude);
    }
    let (a_latitude, b_latitude) = (radians(a.latitude), radians(b.latitude));
    let u = ((b_latitude - a_latitude) / 2.0).sin();
    let square = u * u + a_latitude.cos() * b_latitude.cos() * v * v;
    2.0 * EARTH_RADIUS_M * square.sqrt().asin()
}

/// A distance with four decimals.
pub(crate) fn write_distance(distance: f64) -> String {
    let scaled = (distance * 10_000.0).round_ties_even();
    // What has no distance is shown as C's `llrint` converts it.
    let scaled = if scaled.is_finite() { scaled as i64 } else { i64::MIN };
    let (sign, scaled) = (if scaled < 0 { "-" } else { "" }, scaled.unsigned_abs());
    format!("{sign}{}.{:04}", scaled / 10_000, scaled % 10_000)
}
