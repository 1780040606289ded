//! What SORT answers, and that it is atomic when it reaches for keys that it does not name.

use crate::common::{TestNode, check};
use ladon_commands::families;
use ladon_kernel::command::spec::LockNeed;
use ladon_testkit::Random;

#[test]
fn sorting() {
    check(
        r#"
        RPUSH l 3 1 2 10               => :4
        SORT l                         => ["1" "2" "3" "10"]
        SORT l DESC LIMIT 1 2          => ["3" "2"]
        SORT l ALPHA                   => ["1" "10" "2" "3"]
        MSET w_1 3 w_2 2 w_3 1 x_1 a x_2 b => +OK
        SORT l BY w_* GET # GET x_*    => ["10" nil "3" nil "2" "b" "1" "a"]
        HSET h_1 f 5                   => :1
        HSET h_2 f 6                   => :1
        SORT l BY h_*->f GET h_*->f DESC LIMIT 0 2 => ["6" "5"]
        SORT l BY nosort DESC          => ["10" "2" "1" "3"]
        SORT l BY w_* GET x_* STORE d  => :4
        LRANGE d 0 -1                  => ["" "" "b" "a"]
        SORT nosuch STORE d            => :0
        EXISTS d                       => :0
        RPUSH bad a                    => :1
        SORT bad                       => -ERR One or more scores can't be converted into double
        SORT w_1                       => -WRONGTYPE Operation against a key holding the wrong kind of value
        SORT_RO l STORE d              => -ERR syntax error
        SADD s c a b                   => :3
        SORT s BY nosort STORE d       => :3
        LRANGE d 0 -1                  => ["a" "b" "c"]
        MULTI                          => +OK
        SORT l BY w_* STORE d          => +QUEUED
        SORT l                         => +QUEUED
        EXEC                           => [:4 ["1" "2" "3" "10"]]
        ZADD z 3 x 1 z 2 y             => :3
        SORT z BY nosort               => ["z" "y" "x"]
        SORT z BY nosort DESC LIMIT 0 2 => ["x" "y"]
        SORT z ALPHA                   => ["x" "y" "z"]
        COMMAND GETKEYS SORT l BY w_* STORE d => ["l" "d"]
        "#,
    );
}

#[test]
fn what_expires_while_sorting_counts_as_gone() {
    check(
        r#"
        RPUSH l 1 2 3            => :3
        SET w_2 0 PX 20          => +OK
        SET w_1 5                => +OK
        SET w_3 4                => +OK
        SORT l BY w_*            => ["2" "3" "1"]
        @advance 30
        SORT l BY w_* GET w_*    => [nil "4" "5"]
        "#,
    );
}

#[test]
fn only_patterns_take_every_lock() {
    let table = families::table();
    let LockNeed::KeysUnless(reaches_further) = table.spec(table.find(b"sort").unwrap()).locks
    else {
        panic!("SORT tells by its arguments")
    };
    for (line, expected) in [
        ("sort l", false),
        ("sort l by nosort get # store d limit 0 1", false),
        ("sort l get plain", false),
        ("sort l by w_*", true),
        ("sort l get x_*->f", true),
        ("sort l get # get a*", true),
    ] {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        assert_eq!(reaches_further(&args), expected, "{line}");
    }
}

/// Any list, against sorting with the standard library.
#[test]
fn orders_are_those_of_the_standard_library() {
    let node = TestNode::new();
    let mut client = node.client();
    let mut numbers = Random::new(1);
    let mut random = |bound: u64| numbers.below(bound);
    for round in 0..200 {
        let mut elements: Vec<i64> = (0..1 + random(60)).map(|_| random(100) as i64 - 50).collect();
        let words: Vec<String> = elements.iter().map(i64::to_string).collect();
        node.run(&mut client, "DEL l");
        node.run(&mut client, &format!("RPUSH l {}", words.join(" ")));
        let descending = random(2) == 0;
        let (offset, count) = (random(40) as usize, random(40) as usize);
        elements.sort();
        if descending {
            elements.reverse();
        }
        let wanted: Vec<String> = elements
            .iter()
            .skip(offset)
            .take(count)
            .map(|element| format!("\"{element}\""))
            .collect();
        let order = if descending { "DESC" } else { "ASC" };
        let line = format!("SORT l {order} LIMIT {offset} {count}");
        assert_eq!(node.run(&mut client, &line), format!("[{}]", wanted.join(" ")), "{round}");
    }
}

#[test]
fn a_long_result_is_a_list_of_several_pieces() {
    let numbers: Vec<String> = (0..6000).map(|number| number.to_string()).collect();
    check(&format!(
        r#"
        CONFIG SET list-max-listpack-size -1 => +OK
        RPUSH l {}              => :6000
        SORT l STORE sorted     => :6000
        OBJECT ENCODING sorted  => "quicklist"
        SORT l LIMIT 0 100 STORE sorted => :100
        OBJECT ENCODING sorted  => "listpack"
        "#,
        numbers.join(" ")
    ));
}
