//! Scores, places and distances against redis-server 7.0.15, and searches against all points.

use super::*;
use proptest::prelude::*;

/// Longitude, latitude, and what `ZSCORE`, `GEOPOS` and `GEOHASH` answered.
const PLACES: [(f64, f64, u64, &str, &str); 19] = [
    (-63.42, -18.0, 951695070247471, "-63.41999799013137817 -17.99999913609774893", "6sfcsg4yqu0"),
    (-154.0, -23.0, 340384385651391, "-153.99999886751174927 -23.00000023389439718", "2efmpsux7c0"),
    (
        147.49,
        -78.6257380649,
        2968813540519441,
        "147.48999863862991333 -78.62573864449430516",
        "p60bsnwgy50",
    ),
    (
        -29.46,
        -69.5787877315,
        732210556221783,
        "-29.46000248193740845 -69.5787865353701136",
        "57eh1tefhn0",
    ),
    (-159.0, 76.0, 1507206206823326, "-159.00000125169754028 76.00000071776581478", "bmwbmg7sp60"),
    (
        27.7570615023,
        -76.57,
        2293227632985946,
        "27.75706261396408081 -76.57000120791448694",
        "hd7srsu56m0",
    ),
    (
        -163.23,
        -35.77,
        295677599864268,
        "-163.23000043630599976 -35.76999894155765247",
        "23eut8789k0",
    ),
    (
        14.646919,
        10.24,
        3392903041962426,
        "14.64691847562789917 10.24000100120473888",
        "s3f6m21s3f0",
    ),
    (-142.9, -22.0, 349403114077218, "-142.89999872446060181 -21.99999950739083587", "2u46u5p2sw0"),
    (
        23.17,
        -0.6095358307,
        2662272945810451,
        "23.17000240087509155 -0.60953580343145575",
        "kxbkx1pchn0",
    ),
    (
        99.8023589931,
        14.5455167963,
        3962227203941093,
        "99.80236083269119263 14.54551638327526319",
        "w4wfxpcvg80",
    ),
    (-49.83, 50.04, 2021285250514280, "-49.83000129461288452 50.04000000633683953", "fbusdjdbhu0"),
    (
        -150.532196,
        4.283406,
        1164709000881328,
        "-150.53219765424728394 4.28340627675819263",
        "88ubqecb9s0",
    ),
    (82.600304, 19.0, 3586111901981489, "82.60030299425125122 18.99999986260130669", "tg6spdgen80"),
    (-180.0, -85.05112878, 0, "-179.99999731779098511 -85.05112751263942528", "00bh0hbj200"),
    (180.0, 85.05112878, 13510798882111488, "180 85.0511287799999991", "bp05b5048p0"),
    (0.0, 0.0, 3377699720527872, "0.00000268220901489 0.00000126736058093", "s0000000000"),
    (
        13.361389,
        38.115556,
        3479099956230698,
        "13.36138933897018433 38.11555639549629859",
        "sqc8b49rny0",
    ),
    (
        15.087269,
        37.502669,
        3479447370796909,
        "15.08726745843887329 37.50266842333162032",
        "sqdtr74hyu0",
    ),
];

#[test]
fn places_are_those_of_redis() {
    for (longitude, latitude, score, found_at, hash) in PLACES {
        let point = Point { longitude, latitude };
        assert_eq!(Cell::score(point), Some(score as f64), "{point:?}");
        let found = point_of_score(score as f64);
        let shown = |degrees: f64| {
            let text = format!("{degrees:.17}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let shown = format!("{} {}", shown(found.longitude), shown(found.latitude));
        assert_eq!(shown, found_at, "{point:?}");
        assert_eq!(standard_geohash(found), *hash.as_bytes(), "{point:?}");
    }
}

#[test]
fn distances_are_those_of_redis() {
    let point = |index: usize| point_of_score(PLACES[index].2 as f64);
    for (a, b, expected) in [
        (3, 16, "8043196.9367"),
        (13, 5, "11229995.1420"),
        (10, 4, "8738762.5611"),
        (15, 13, "7975885.6371"),
        (1, 2, "6835156.7710"),
        (17, 10, "8712214.8822"),
        (10, 11, "12247444.8430"),
        (15, 14, "18919844.5891"),
        (2, 18, "14972790.9631"),
        (8, 15, "12015109.0592"),
        (9, 14, "10448558.9333"),
        (9, 9, "0.0000"),
    ] {
        assert_eq!(write_distance(distance(point(a), point(b))), expected, "{a} {b}");
    }
    assert_eq!(write_distance(0.00004), "0.0000");
    assert_eq!(write_distance(0.00006), "0.0001");
    // Ties go to the even digit.
    assert_eq!(write_distance(0.03125), "0.0312");
    assert_eq!(write_distance(0.09375), "0.0938");
    assert_eq!(write_distance(12.5), "12.5000");
}

fn points() -> impl Strategy<Value = Point> {
    (-180.0..180.0, -85.0..85.0).prop_map(|(longitude, latitude)| Point { longitude, latitude })
}

fn areas() -> impl Strategy<Value = Area> {
    let size = prop_oneof![0.0..10.0, 0.0..5_000_000.0];
    // Near the poles and the seam of the longitudes, Redis' cells do not reach around.
    let center =
        (-90.0..90.0, -50.0..50.0).prop_map(|(longitude, latitude)| Point { longitude, latitude });
    let shape = prop_oneof![
        size.clone().prop_map(|radius| Shape::Circle { radius }),
        (size.clone(), size).prop_map(|(width, height)| Shape::Box { width, height }),
    ];
    (center, shape).prop_map(|(center, shape)| Area { center, shape, unit: 1.0 })
}

proptest! {
    /// A point that is inside an area is in one of the cells that cover it.
    #[test]
    fn cells_cover_their_area(area in areas(), point in points(), near: bool, offset in (-1.0..1.0, -1.0..1.0)) {
        let offset: (f64, f64) = offset;
        let point = if near {
            Point {
                longitude: area.center.longitude + offset.0,
                latitude: area.center.latitude + offset.1,
            }
        } else {
            point
        };
        let score = Cell::score(point).expect("a valid point");
        let in_cells = cover(&area).iter().any(|cell| {
            let (min, max) = cell.scores();
            (min..max).contains(&score)
        });
        if area.distance_inside(point_of_score(score)).is_some() {
            prop_assert!(in_cells, "{point:?} in {area:?}");
        }
    }

    /// A score means a point in the middle of its cell.
    #[test]
    fn scores_lead_back(point in points()) {
        let found = point_of_score(Cell::score(point).expect("a valid point"));
        prop_assert!((found.longitude - point.longitude).abs() < 6e-6);
        prop_assert!((found.latitude - point.latitude).abs() < 3e-6);
    }

    /// Whatever the score, or the area.
    #[test]
    fn any_score_is_a_point(score: f64, radius: f64, center: f64) {
        let center = point_of_score(center);
        let area = Area { center, shape: Shape::Circle { radius: radius.abs() }, unit: 1609.34 };
        cover(&area);
        let point = point_of_score(score);
        area.distance_inside(point);
        standard_geohash(point);
        write_distance(distance(center, point));
    }

    /// A polygon that is a rectangle holds what is between its sides.
    #[test]
    fn polygons_hold_what_is_inside(a in points(), b in points(), point in points()) {
        let corner = |longitude, latitude| Point { longitude, latitude };
        let corners = vec![
            a,
            corner(b.longitude, a.latitude),
            b,
            corner(a.longitude, b.latitude),
        ];
        let between = |x: f64, y: f64, value: f64| (x.min(y)..x.max(y)).contains(&value);
        let inside = between(a.longitude, b.longitude, point.longitude)
            && between(a.latitude, b.latitude, point.latitude);
        let area = Area::of_polygon(corners);
        prop_assert_eq!(area.distance_inside(point).is_some(), inside);
    }
}
