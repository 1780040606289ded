//! Geospatial commands, on sorted sets whose scores are geohashes of 52 bits.

mod add;
mod kernel;
mod options;
mod position;
mod search;

use ladon_kernel::command::spec::{Code, KeyPositions, Part};

const STORES: KeyPositions = KeyPositions::FirstAndOption(options::target_position);

pub(crate) const COMMANDS: &[Code] = &[
    Code::on_keys("geoadd", add::geoadd),
    Code::on_keys("geopos", position::geopos).at(Part::Element(2)),
    Code::on_keys("geodist", position::geodist).at(Part::Element(2)),
    Code::on_keys("geohash", position::geohash).at(Part::Element(2)),
    Code::on_keys("geosearch", search::geosearch),
    Code::on_keys("geosearchstore", search::geosearchstore),
    Code::on_keys("georadius", search::georadius).with_keys(STORES),
    Code::on_keys("georadius_ro", search::georadius_ro),
    Code::on_keys("georadiusbymember", search::georadiusbymember).with_keys(STORES),
    Code::on_keys("georadiusbymember_ro", search::georadiusbymember_ro),
];
