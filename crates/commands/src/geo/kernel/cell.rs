//! Cells of the geohash grid.
//!
//! At step n, the grid divides the longitudes and the latitudes in 2^n parts each. A cell's number
//! interleaves both parts' numbers: the longitude has the odd bits, the latitude the even ones. A
//! member's score is the number of its cell at the last step.

use super::{Extent, LATITUDES, LONGITUDES, Point};

/// Two numbers of 26 bits fit into a double.
const STEP_MAX: u32 = 26;
const EVEN_BITS: u64 = 0x5555_5555_5555_5555;
const ODD_BITS: u64 = !EVEN_BITS;

/// A cell of the grid at a step from 1 to 26.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    bits: u64,
    step: u32,
}

impl Cell {
    /// The cell of a valid point; `None` for another.
    pub(crate) fn of(point: Point, step: u32) -> Option<Cell> {
        Cell::within(point, step, LONGITUDES, LATITUDES)
    }

    fn within(point: Point, step: u32, longitudes: Extent, latitudes: Extent) -> Option<Cell> {
        if !point.is_valid() {
            return None;
        }
        let part = |degrees: f64, extent: Extent| {
            ((degrees - extent.min) / extent.length() * (1u64 << step) as f64) as u32
        };
        let (longitude, latitude) =
            (part(point.longitude, longitudes), part(point.latitude, latitudes));
        Some(Cell { bits: spread(latitude) | spread(longitude) << 1, step })
    }

    /// The score of a member at a valid point.
    pub(crate) fn score(point: Point) -> Option<f64> {
        Cell::of(point, STEP_MAX).map(|cell| cell.bits as f64)
    }

    /// The scores of the members inside: from the first, to before the second.
    pub(crate) fn scores(self) -> (f64, f64) {
        let shift = 2 * (STEP_MAX - self.step);
        ((self.bits << shift) as f64, ((self.bits + 1) << shift) as f64)
    }

    /// The longitudes and the latitudes that it covers.
    pub(crate) fn extents(self) -> (Extent, Extent) {
        // A power of two: the product is what a division would give.
        let part = 1.0 / (1u64 << self.step) as f64;
        let extent = |number: u32, all: Extent| Extent {
            min: all.min + f64::from(number) * part * all.length(),
            max: all.min + f64::from(number.wrapping_add(1)) * part * all.length(),
        };
        let (longitude, latitude) = (gather(self.bits >> 1), gather(self.bits));
        (extent(longitude, LONGITUDES), extent(latitude, LATITUDES))
    }

    /// The cell that is so many cells to the east and to the north, around the world.
    pub(crate) fn moved(self, east: i32, north: i32) -> Cell {
        let bits = step_on(self.bits, ODD_BITS, east, self.step)
            | step_on(self.bits, EVEN_BITS, north, self.step);
        Cell { bits, ..self }
    }
}

/// Adds -1, 0 or 1 to the number whose bits are at `mask`.
fn step_on(bits: u64, mask: u64, by: i32, step: u32) -> u64 {
    let (own, unused) = (bits & mask, !mask >> (64 - 2 * step));
    let moved = match by {
        0 => return own,
        // A carry passes over the bits that are not the number's.
        1.. => own.wrapping_add(unused.wrapping_add(1)),
        _ => (own | unused).wrapping_sub(unused.wrapping_add(1)),
    };
    moved & mask >> (64 - 2 * step)
}

/// The bits of a number, at even places.
fn spread(number: u32) -> u64 {
    let bits = u64::from(number);
    let bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    let bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    let bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & EVEN_BITS
}

/// The number whose bits are at even places.
fn gather(bits: u64) -> u32 {
    let bits = bits & EVEN_BITS;
    let bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    let bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    let bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    let bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}

/// The point in the middle of the cell that a score means, whatever the score.
#[inline]
pub(crate) fn point_of_score(score: f64) -> Point {
    let (longitudes, latitudes) = Cell { bits: to_u64(score), step: STEP_MAX }.extents();
    let middle =
        |extent: Extent, all: Extent| ((extent.min + extent.max) / 2.0).clamp(all.min, all.max);
    Point { longitude: middle(longitudes, LONGITUDES), latitude: middle(latitudes, LATITUDES) }
}

/// A double as an unsigned integer: what C on x86-64 makes of it, out of range too.
#[inline]
fn to_u64(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    let to_i64 = |number: f64| {
        if (-HALF..HALF).contains(&number) { number as i64 as u64 } else { 1 << 63 }
    };
    if number < HALF { to_i64(number) } else { to_i64(number - HALF) ^ 1 << 63 }
}

/// Eleven characters: the geohash that others use too, whose latitudes reach to the poles.
pub(crate) fn standard_geohash(point: Point) -> [u8; 11] {
    const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let latitudes = Extent { min: -90.0, max: 90.0 };
    let cell = Cell::within(point, STEP_MAX, LONGITUDES, latitudes);
    let bits = cell.map_or(0, |cell| cell.bits);
    std::array::from_fn(|at| match 52 - 5 * (at as i32 + 1) {
        // Fifty-two bits are ten characters; the last is always zero.
        ..0 => ALPHABET[0],
        shift => ALPHABET[(bits >> shift & 31) as usize],
    })
}
