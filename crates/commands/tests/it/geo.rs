//! What the geo commands answer, where they differ from what the recorded scripts say of Redis 7.0.

use crate::common::{TestNode, check};

#[test]
fn polygons() {
    // As Valkey 9 answers.
    check(
        r#"
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.5 41.9 Rome => :3
        GEOSEARCH g BYPOLYGON 3 12 37 16 37 14 39 ASC                       =>> ["Palermo" "Catania"]
        GEOSEARCH g BYPOLYGON 4 12 41 12 43 14 43 14 41                     =>> ["Rome"]
        GEOSEARCH g BYPOLYGON 2 12 41 12 43                                 =>> -ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
        GEOSEARCH g BYPOLYGON 4 12 41 12 43 14 43                           =>> -ERR GEOSEARCH BYPOLYGON must have at least 3 vertices
        GEOSEARCH g BYPOLYGON x 12 41 12 43 14 43                           =>> -ERR invalid number of vertices
        GEOSEARCH g BYPOLYGON 99999999999 12 41 12 43 14 43                 =>> -ERR invalid number of vertices
        GEOSEARCH g BYPOLYGON 3 12 41 12 93 14 43                           =>> -ERR invalid longitude,latitude pair 12.000000,93.000000
        GEOSEARCH g BYPOLYGON 3 12 41 12 43 14 43 FROMMEMBER Rome           =>> -ERR syntax error
        GEOSEARCH g FROMMEMBER Rome BYPOLYGON 3 12 41 12 43 14 43           =>> -ERR syntax error
        GEOSEARCH g BYPOLYGON 3 12 41 12 43 14 43 BYRADIUS 1 m              =>> -ERR syntax error
        GEOSEARCHSTORE d g BYPOLYGON 3 12 37 16 37 14 39 COUNT 1            =>> :1
        GEOSEARCH none BYPOLYGON 3 12 37 16 37 14 39                        =>> []
        "#,
    );
}

/// A member is a few bytes of log, and the log gives back what was stored.
#[test]
fn the_log_gives_members_back() {
    let node = TestNode::new();
    let mut client = node.client();
    for number in 0..500 {
        let (longitude, latitude) = (number % 170, number % 80);
        node.run(&mut client, &format!("GEOADD g {longitude}.5 {latitude}.25 m{number}"));
    }
    let before: usize = node.log.records().iter().map(|(_, changes)| changes.len()).sum();
    node.run(&mut client, "GEOADD g 1 1 m7");
    let after: usize = node.log.records().iter().map(|(_, changes)| changes.len()).sum();
    assert!(after - before < 40);
    node.run(&mut client, "GEOADD g NX 2 2 m7 3 3 new");
    node.run(&mut client, "GEOSEARCHSTORE near g FROMLONLAT 40 40 BYRADIUS 2000 km");
    node.run(&mut client, "GEORADIUS g 40 40 2000 km STOREDIST far");
    assert_eq!(node.replayed(), node.dump());
}

/// Counting off the nearest gives what sorting all of them gives.
#[test]
fn a_count_takes_the_nearest() {
    let node = TestNode::new();
    let mut client = node.client();
    for number in 0..20_000u32 {
        let (longitude, latitude) =
            (number.wrapping_mul(7919) % 3600, number.wrapping_mul(104_729) % 1600);
        let (longitude, latitude) =
            (f64::from(longitude) / 10.0 - 180.0, f64::from(latitude) / 10.0 - 80.0);
        node.run(&mut client, &format!("GEOADD g {longitude} {latitude} m{number}"));
    }
    for (order, count) in [("ASC", 1), ("ASC", 10), ("DESC", 10), ("ASC", 5000), ("DESC", 19_999)] {
        let search = format!("GEOSEARCH g FROMLONLAT 10 10 BYRADIUS 30000 km {order}");
        let all = node.run(&mut client, &search);
        let some = node.run(&mut client, &format!("{search} COUNT {count}"));
        let all = all.trim_start_matches('[').trim_end_matches(']');
        let expected: Vec<&str> = all.split(' ').take(count).collect();
        assert_eq!(some, format!("[{}]", expected.join(" ")), "{order} {count}");
    }
}
