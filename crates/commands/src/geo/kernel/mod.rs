//! Coordinates, cells of the geohash grid, distances and shapes.
//!
//! Every formula is computed in the order in which Redis computes it, so that replies agree to the
//! last digit.

mod cell;
mod cover;
mod distance;
mod shape;

#[cfg(test)]
mod tests;

pub(super) use cell::{Cell, point_of_score, standard_geohash};
pub(super) use cover::cover;
pub(super) use distance::{distance, write_distance};
pub(super) use shape::{Area, Shape};

/// Degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) longitude: f64,
    pub(super) latitude: f64,
}

/// A range of one coordinate, degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Extent {
    fn contains(self, degrees: f64) -> bool {
        (self.min..=self.max).contains(&degrees)
    }

    fn length(self) -> f64 {
        self.max - self.min
    }
}

const LONGITUDES: Extent = Extent { min: -180.0, max: 180.0 };
/// The Mercator projection is a square up to here; nothing nearer to the poles can be added.
const LATITUDES: Extent = Extent { min: -85.05112878, max: 85.05112878 };

impl Point {
    /// Whether the point can be added.
    pub(super) fn is_valid(self) -> bool {
        LONGITUDES.contains(self.longitude) && LATITUDES.contains(self.latitude)
    }
}
