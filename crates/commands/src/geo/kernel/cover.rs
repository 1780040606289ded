//! The cells that cover an area: the one of its center and its neighbours.

use super::{Area, Cell, Extent};
use smallvec::SmallVec;

/// Half of the equator in the Mercator projection, meters.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
const STEP_MAX: u32 = 26;

/// East and north, in the order in which the cells are searched.
const NEIGHBOURS: [(i32, i32); 9] =
    [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// The cells to search, in order; none twice. None at all if the center is no valid point, which
/// only a score that no GEOADD has made can lead to.
pub(crate) fn cover(area: &Area) -> SmallVec<[Cell; 9]> {
    let (radius_m, longitudes, latitudes) = area.bounds();
    let mut center = area.center;
    // The middle of a polygon around a pole is nearer to the pole than any valid point.
    if matches!(area.shape, super::Shape::Polygon(_)) {
        center.latitude = center.latitude.clamp(super::LATITUDES.min, super::LATITUDES.max);
    }
    let mut step = estimated_step(radius_m, center.latitude);
    let Some(mut cell) = Cell::of(center, step) else { return SmallVec::new() };
    if step > 1 && falls_short(cell, longitudes, latitudes) {
        step -= 1;
        let Some(larger) = Cell::of(center, step) else { return SmallVec::new() };
        cell = larger;
    }
    let (own_longitudes, own_latitudes) = cell.extents();
    let is_useless = |east: i32, north: i32| {
        // At the first step, a neighbour is on both sides.
        step >= 2
            && (north < 0 && own_latitudes.min < latitudes.min
                || north > 0 && own_latitudes.max > latitudes.max
                || east < 0 && own_longitudes.min < longitudes.min
                || east > 0 && own_longitudes.max > longitudes.max)
    };
    let mut cells: SmallVec<[Cell; 9]> = SmallVec::new();
    for (east, north) in NEIGHBOURS {
        let neighbour = cell.moved(east, north);
        if !is_useless(east, north) && !cells.contains(&neighbour) {
            cells.push(neighbour);
        }
    }
    cells
}

/// Whether some of the area is beyond the neighbours of a cell.
fn falls_short(cell: Cell, longitudes: Extent, latitudes: Extent) -> bool {
    let extents = |east, north| cell.moved(east, north).extents();
    extents(0, 1).1.max < latitudes.max
        || extents(0, -1).1.min > latitudes.min
        || extents(1, 0).0.max < longitudes.max
        || extents(-1, 0).0.min > longitudes.min
}

/// The step whose cells are about as large as the area.
fn estimated_step(radius_m: f64, latitude: f64) -> u32 {
    if radius_m == 0.0 {
        return STEP_MAX;
    }
    let (mut step, mut reach_m) = (1i32, radius_m);
    while reach_m < MERCATOR_MAX_M {
        reach_m *= 2.0;
        step += 1;
    }
    // Most areas are then within the neighbours.
    step -= 2;
    // Degrees of longitude are shorter towards the poles.
    if latitude.abs() > 66.0 {
        step -= 1 + i32::from(latitude.abs() > 80.0);
    }
    step.clamp(1, STEP_MAX as i32) as u32
}
