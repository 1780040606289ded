//! Sets: what the commands answer, and that the log gives back what they left.

use crate::common::{TestNode, check, check_on};

#[test]
fn members_come_and_go() {
    check(
        r#"
        SADD s a b c a          => :3
        SADD s c d              => :1
        SCARD s                 => :4
        SISMEMBER s a           => :1
        SISMEMBER s z           => :0
        SISMEMBER missing a     => :0
        SMISMEMBER s a z d      => [:1 :0 :1]
        SMISMEMBER missing a b  => [:0 :0]
        SREM s a a z            => :1
        SMEMBERS s              =>> ["b" "c" "d"]
        SREM s b c d x          => :3
        SCARD s                 => :0
        DEL s                   => :0
        SREM missing a          => :0
        SMEMBERS missing        => []
        SADD i 5 -1 3 5         => :3
        SMEMBERS i              => ["-1" "3" "5"]
        SADD i 9223372036854775807 -9223372036854775808 70000 => :3
        SMEMBERS i              => ["-9223372036854775808" "-1" "3" "5" "70000" "9223372036854775807"]
        SISMEMBER i 05          => :0
        SADD i 9223372036854775808 => :1
        SISMEMBER i 9223372036854775808 => :1
        SADD e ""               => :1
        SMEMBERS e              => [""]
        @resp3
        SMEMBERS e              => ~[""]
        SMEMBERS missing        => ~[]
        SMISMEMBER e ""         => [:1]
        SISMEMBER e ""          => :1
        "#,
    );
}

#[test]
fn other_types_and_wrong_arguments_are_refused() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET str x => +OK\nSADD s a => :1\n".to_owned();
    for line in [
        "SADD str a",
        "SREM str a",
        "SISMEMBER str a",
        "SMISMEMBER str a b",
        "SCARD str",
        "SMEMBERS str",
        "SPOP str",
        "SPOP str 2",
        "SRANDMEMBER str",
        "SRANDMEMBER str 2",
        "SRANDMEMBER str -2",
        "SSCAN str 0",
        "SMOVE str s a",
        "SMOVE s str a",
        "SMOVE s str z",
        "SINTER s str",
        "SINTER missing str",
        "SUNION s str",
        "SDIFF s str",
        "SDIFF str s",
        "SINTERCARD 2 s str",
        "SINTERSTORE d s str",
        "SUNIONSTORE d s str",
        "SDIFFSTORE d missing str",
    ] {
        script += &format!("{line} => {WRONG}\n");
    }
    script += r#"
        SMOVE missing str a     => :0
        GET s                   => -WRONGTYPE Operation against a key holding the wrong kind of value
        SADD s                  => -ERR wrong number of arguments for 'sadd' command
        SPOP s 1 2              => -ERR syntax error
        SPOP s -1               => -ERR value is out of range, must be positive
        SPOP s x                => -ERR value is out of range, must be positive
        SRANDMEMBER s x         => -ERR value is not an integer or out of range
        SRANDMEMBER s 1 2       => -ERR syntax error
        SRANDMEMBER s -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        SRANDMEMBER s 9223372036854775808 => -ERR value is not an integer or out of range
        SINTERCARD 0 s          => -ERR numkeys should be greater than 0
        SINTERCARD -1 s         => -ERR numkeys should be greater than 0
        SINTERCARD x s          => -ERR numkeys should be greater than 0
        SINTERCARD 2 s          => -ERR Number of keys can't be greater than number of args
        SINTERCARD 1 s s        => -ERR syntax error
        SINTERCARD 1 s LIMIT    => -ERR syntax error
        SINTERCARD 1 s LIMIT -1 => -ERR LIMIT can't be negative
        SINTERCARD 1 s LIMIT x  => -ERR LIMIT can't be negative
        SINTERCARD 1 s FOO 1    => -ERR syntax error
        SSCAN s x               => -ERR invalid cursor
        SSCAN s -x              => -ERR invalid cursor
        SSCAN s 0 COUNT         => -ERR syntax error
        SSCAN s 0 COUNT 0       => -ERR syntax error
        SSCAN s 0 COUNT x       => -ERR value is not an integer or out of range
        SSCAN s 0 TYPE set      => -ERR syntax error
        SSCAN missing 0 FOO     => ["0" []]
        SMEMBERS s              => ["a"]
    "#;
    check(&script);
}

#[test]
fn smove_moves() {
    check(
        r#"
        SADD a 1 2              => :2
        SADD b x                => :1
        SMOVE a b 1             => :1
        SMOVE a b 1             => :0
        SMOVE a a 2             => :1
        SMOVE a a 9             => :0
        SMEMBERS a              => ["2"]
        SMOVE a c 2             => :1
        DEL a                   => :0
        SMEMBERS c              => ["2"]
        SISMEMBER b 1           => :1
        SADD d 2                => :1
        SMOVE c d 2             => :1
        DEL c                   => :0
        SMOVE missing b x       => :0
        "#,
    );
}

#[test]
fn sets_combine() {
    check(
        r#"
        SADD a 1 2 3 4          => :4
        SADD b 3 4 5            => :3
        SADD c 4 6 8            => :3
        SINTER a b              => ["3" "4"]
        SINTER a                => ["1" "2" "3" "4"]
        SINTER a b c            => ["4"]
        SINTER a missing        => []
        SINTER a a b            => ["3" "4"]
        SUNION a b              => ["1" "2" "3" "4" "5"]
        SUNION missing b        => ["3" "4" "5"]
        SUNION missing          => []
        SDIFF a b               => ["1" "2"]
        SDIFF a b missing c     => ["1" "2"]
        SDIFF a a               => []
        SDIFF missing a         => []
        SDIFF a                 => ["1" "2" "3" "4"]
        SDIFF b c               => ["3" "5"]
        SINTERCARD 2 a b        => :2
        SINTERCARD 2 a b LIMIT 0 => :2
        SINTERCARD 2 a b LIMIT 1 => :1
        SINTERCARD 2 a b LIMIT 9 => :2
        SINTERCARD 2 a b LIMIT 9 limit 1 => :1
        SINTERCARD 2 a missing  => :0
        SINTERSTORE d a b       => :2
        SMEMBERS d              => ["3" "4"]
        SUNIONSTORE d a b       => :5
        SMEMBERS d              => ["1" "2" "3" "4" "5"]
        SDIFFSTORE d d c        => :4
        SMEMBERS d              => ["1" "2" "3" "5"]
        SET str x               => +OK
        SDIFFSTORE str a b      => :2
        SMEMBERS str            => ["1" "2"]
        SINTERSTORE str a missing => :0
        DEL str                 => :0
        SUNIONSTORE a a b       => :5
        SDIFFSTORE a a a        => :0
        DEL a                   => :0
        @resp3
        SINTER b c              => ~["4"]
        SUNION b                => ~["3" "4" "5"]
        SDIFF b missing         => ~["3" "4" "5"]
        SINTER b missing        => ~[]
        "#,
    );
}

#[test]
fn spop_and_srandmember_of_little() {
    check(
        r#"
        SADD s a                => :1
        SRANDMEMBER s           => "a"
        SRANDMEMBER s 5         => ["a"]
        SRANDMEMBER s -3        => ["a" "a" "a"]
        SRANDMEMBER s 0         => []
        SRANDMEMBER missing     => nil
        SRANDMEMBER missing 5   => []
        SRANDMEMBER missing -5  => []
        SPOP s 0                => []
        SPOP s                  => "a"
        DEL s                   => :0
        SPOP s                  => nil
        SPOP s 3                => []
        SADD s 1 2 3            => :3
        SPOP s 5                => ["1" "2" "3"]
        DEL s                   => :0
        @resp3
        SADD s 7                => :1
        SRANDMEMBER s 2         => ["7"]
        SPOP s 0                => ~[]
        SPOP s 3                => ~["7"]
        SPOP s 3                => ~[]
        SPOP s                  => nil
        SRANDMEMBER s           => nil
        "#,
    );
}

#[test]
fn small_sets_scan_in_one_go() {
    check(
        r#"
        SADD s foo bar foobar   => :3
        SSCAN s 0               =>> ["0" ["foo" "bar" "foobar"]]
        SSCAN s 0 COUNT 1       =>> ["0" ["foo" "bar" "foobar"]]
        SSCAN s 0 MATCH foo* COUNT 5 => ["0" ["foo" "foobar"]]
        SSCAN s 0 match *       =>> ["0" ["foo" "bar" "foobar"]]
        SSCAN s 0 MATCH z       => ["0" []]
        SSCAN missing 0         => ["0" []]
        "#,
    );
}

/// The members of a reply that [`common::show`] has written.
fn members(shown: &str) -> Vec<String> {
    let inner = &shown[shown.find('[').unwrap() + 1..shown.rfind(']').unwrap()];
    inner.split_whitespace().map(|member| member.trim_matches('"').to_owned()).collect()
}

#[test]
fn popping_takes_every_member_once_whatever_the_count() {
    for (kind, size) in [("", 500), ("", 2000), ("m", 100), ("m", 2000)] {
        for count in [1, 7, size / 4, size / 2, size * 8 / 10, size * 9 / 10, size - 1, size] {
            let node = TestNode::new();
            let mut client = node.client();
            let all: Vec<String> = (0..size).map(|n| format!("{kind}{n}")).collect();
            node.run(&mut client, &format!("SADD s {}", all.join(" ")));
            let mut popped = Vec::new();
            while popped.len() < size {
                let page = members(&node.run(&mut client, &format!("SPOP s {count}")));
                assert_eq!(page.len(), count.min(size - popped.len()));
                popped.extend(page);
                let left = node.run(&mut client, "SCARD s");
                assert_eq!(left, format!(":{}", size - popped.len()));
                if count > size / 10 {
                    assert_eq!(node.replayed(), node.dump());
                }
            }
            assert_eq!(node.replayed(), node.dump());
            let (mut all, mut popped) = (all, popped);
            all.sort();
            popped.sort();
            assert_eq!(popped, all, "{count} of {size}");
        }
    }
}

#[test]
fn srandmember_draws_evenly_and_without_repeats_where_it_must() {
    for (kind, size) in [("", 20), ("m", 20), ("m", 200)] {
        let node = TestNode::new();
        let mut client = node.client();
        let all: Vec<String> = (0..size).map(|n| format!("{kind}{n}")).collect();
        node.run(&mut client, &format!("SADD s {}", all.join(" ")));
        for count in [1, size / 3, size / 2, size] {
            let mut counts = std::collections::BTreeMap::new();
            let rounds = 150 * size / count;
            for _ in 0..rounds {
                let mut page = members(&node.run(&mut client, &format!("SRANDMEMBER s {count}")));
                for member in &page {
                    *counts.entry(member.clone()).or_insert(0) += 1;
                }
                page.sort();
                page.dedup();
                assert_eq!(page.len(), count);
            }
            assert_eq!(counts.len(), size);
            let (low, high) = (counts.values().min().unwrap(), counts.values().max().unwrap());
            assert!(*low >= 80 && *high <= 230, "150 of each expected, {low} to {high} drawn");
        }
        let many = members(&node.run(&mut client, &format!("SRANDMEMBER s -{}", size * 100)));
        assert_eq!(many.len(), size * 100);
        let distinct: std::collections::BTreeSet<_> = many.into_iter().collect();
        assert_eq!(distinct.len(), size);
        assert_eq!(node.run(&mut client, "SCARD s"), format!(":{size}"));
    }
}

#[test]
fn a_scan_sees_every_member_of_a_large_set() {
    let node = TestNode::new();
    let mut client = node.client();
    let all: Vec<String> = (0..3000).map(|n| format!("member:{n}")).collect();
    node.run(&mut client, &format!("SADD s {}", all.join(" ")));
    let (mut cursor, mut seen, mut pages) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let shown = node.run(&mut client, &format!("SSCAN s {cursor} COUNT 100"));
        let (next, page) = shown[1..].split_once(' ').unwrap();
        seen.extend(members(page.strip_suffix(']').unwrap()));
        cursor = next.trim_matches('"').to_owned();
        pages += 1;
        if cursor == "0" {
            break;
        }
    }
    assert!((20..=30).contains(&pages), "{pages} pages");
    seen.sort();
    let mut all = all;
    all.sort();
    assert_eq!(seen, all);
}

#[test]
fn a_store_forgets_the_expiry_and_a_change_keeps_it() {
    check(
        r#"
        SADD a 1 2              => :2
        SADD s x y z            => :3
        EXPIRE s 100            => :1
        SADD s w                => :1
        SPOP s                  => *
        SREM s w                => *
        TTL s                   => :100
        SUNIONSTORE s a         => :2
        TTL s                   => :-1
        "#,
    );
}

#[test]
fn an_expired_set_is_gone_for_every_command() {
    check_on(
        &TestNode::new(),
        r#"
        SADD a 1 2 3            => :3
        SADD b 2 3              => :2
        PEXPIRE a 10            => :1
        @advance 11
        SINTER b a              => []
        SADD a 9                => :1
        SMEMBERS a              => ["9"]
        PEXPIRE a 10            => :1
        @advance 11
        SREM a 9                => :0
        SMOVE a b 9             => :0
        SUNIONSTORE a a b       => :2
        "#,
    );
}

/// `SADD key` with the integers of a range, or with these as names.
fn sadd(key: &str, kind: &str, range: std::ops::Range<i64>) -> String {
    let members: Vec<String> = range.map(|n| format!("{kind}{n}")).collect();
    format!("SADD {key} {} => :{}\n", members.join(" "), members.len())
}

fn encoded(key: &str, encoding: &str) -> String {
    format!("OBJECT ENCODING {key} =>> \"{encoding}\"\n")
}

#[test]
fn encodings_are_those_of_redis_7_2() {
    let long = "x".repeat(65);
    let mut script = String::new();
    for (key, made, encoding) in [
        ("ints", sadd("ints", "", 0..512), "intset"),
        ("mints", sadd("mints", "", 0..513), "hashtable"),
        ("names", sadd("names", "m", 0..128), "listpack"),
        ("mnames", sadd("mnames", "m", 0..129), "hashtable"),
        ("long", format!("SADD long {long} => :1\n"), "hashtable"),
        ("some", sadd("some", "", 0..100), "intset"),
        ("few", sadd("few", "", 600..605), "intset"),
    ] {
        script += &made;
        script += &encoded(key, encoding);
    }
    // One by one, over each edge.
    script += "SADD ints 512 => :1\n";
    script += &encoded("ints", "hashtable");
    script += "SADD names m128 => :1\n";
    script += &encoded("names", "hashtable");
    script += "SREM names m128 => :1\n";
    script += &encoded("names", "hashtable");
    script += "SADD some x => :1\n";
    script += &encoded("some", "listpack");
    script += &format!("SADD some {long} => :1\n");
    script += &encoded("some", "hashtable");
    // As many arguments as a table is made for, whether they are new or not.
    script += &format!("SADD few {} => :0\n", "600 ".repeat(513));
    script += &encoded("few", "hashtable");
    // Results of the STORE forms.
    for (line, count, encoding) in [
        ("SINTERSTORE d mnames names", 128, "listpack"),
        ("SINTERSTORE d mints ints", 513, "hashtable"),
        ("SINTERSTORE d few mints", 0, "none"),
        ("SINTERSTORE d ints few mints", 0, "none"),
        ("SUNIONSTORE d few", 5, "intset"),
        ("SUNIONSTORE d few names", 133, "hashtable"),
        ("SINTERSTORE d d few", 5, "intset"),
        ("SUNIONSTORE d mnames", 129, "hashtable"),
        ("SDIFFSTORE d few names", 5, "intset"),
        ("SDIFFSTORE d mnames names", 1, "listpack"),
        // By taking out of a copy, which stays the table that it was.
        ("SDIFFSTORE d mnames few few few few names", 1, "hashtable"),
    ] {
        script += &format!("{line} => :{count}\n");
        if count > 0 {
            script += &encoded("d", encoding);
        }
    }
    // Popping nearly everything leaves a new set.
    script += "SPOP mnames 120 => *\n";
    script += &encoded("mnames", "listpack");
    check(&script);
}

#[test]
fn sizes_of_unions_and_differences() {
    // Redis has these since 8.10.
    check(
        r#"
        SADD a 1 2 3 x              =>> :4
        SADD b 3 4 y                =>> :3
        SUNIONCARD 2 a b            =>> :6
        SUNIONCARD 3 a b none       =>> :6
        SUNIONCARD 2 a b LIMIT 3    =>> :3
        SUNIONCARD 2 a b LIMIT 5    =>> :5
        SUNIONCARD 2 a b LIMIT 0    =>> :6
        SUNIONCARD 1 none           =>> :0
        SUNIONCARD 2 a b APPROX     =>> :6
        SUNIONCARD 2 a b APPROX LIMIT 3 =>> :3
        SUNIONCARD 2 a b LIMIT 9 approx =>> :6
        SUNIONCARD 1 none APPROX    =>> :0
        SUNIONCARD 2 a b LIMIT APPROX =>> -ERR LIMIT can't be negative
        SUNIONCARD 1 a LIMIT 2      =>> :2
        SDIFFCARD 2 a b             =>> :3
        SDIFFCARD 2 b a             =>> :2
        SDIFFCARD 2 a a             =>> :0
        SDIFFCARD 2 none a          =>> :0
        SDIFFCARD 2 a none LIMIT 2  =>> :2
        SDIFFCARD 2 a b LIMIT 9     =>> :3
        SUNIONCARD 0 a              =>> -ERR numkeys should be greater than 0
        SUNIONCARD 3 a b            =>> -ERR Number of keys can't be greater than number of args
        SUNIONCARD 2 a b LIMIT -1   =>> -ERR LIMIT can't be negative
        SDIFFCARD 2 a b LIMIT       =>> -ERR syntax error
        SDIFFCARD 2 a b APPROX      =>> -ERR syntax error
        SET s x                     =>> +OK
        SUNIONCARD 2 a s APPROX     =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        SUNIONCARD 2 a s            =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}
