//! Sorted sets: what the commands answer, and that the log gives back what they left.

use crate::common::{TestNode, check, check_on};

#[test]
fn scores_are_set_and_added_to() {
    check(
        r#"
        ZADD z 1 a 2 b 1 c a         => -ERR syntax error
        ZADD z 1 a 2 b 1 c           => :3
        ZADD z 3 a 4 d               => :1
        ZADD z CH 3 a 5 d 6 e        => :2
        ZADD z NX CH 9 a 9 f         => :1
        ZADD z XX CH 8 a 9 g         => :1
        ZADD z GT CH 7 a 9 b         => :1
        ZADD z LT CH 7 a 10 b        => :1
        ZADD z INCR 1 a              => "8"
        ZADD z NX INCR 1 a           => nil
        ZADD z XX INCR 1 nosuch      => nil
        ZINCRBY z -8 a               => "0"
        ZINCRBY z inf b              => "inf"
        ZINCRBY z -inf b             => -ERR resulting score is not a number (NaN)
        ZSCORE z b                   => "inf"
        ZRANGE z 0 -1 WITHSCORES     => ["a" "0" "c" "1" "d" "5" "e" "6" "f" "9" "b" "inf"]
        ZADD z nan a                 => -ERR value is not a valid float
        ZADD nosuch XX 1 a           => :0
        EXISTS nosuch                => :0
        ZADD frac 0.5 a              => :1
        ZINCRBY frac 0.25 a          => "0.75"
        @resp3
        ZSCORE frac a                => ,0.75
        ZADD frac INCR 1 a           => ,1.75
        ZADD frac NX INCR 1 a        => nil
        ZSCORE frac nosuch           => nil
        ZRANGE z 0 1 WITHSCORES      => [["a" ,0] ["c" ,1]]
        ZPOPMIN z                    => ["a" ,0]
        ZPOPMIN z 1                  => [["c" ,1]]
        ZMSCORE z d nosuch           => [,5 nil]
        "#,
    );
}

#[test]
fn other_types_are_refused() {
    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let mut script = "SET str x => +OK\nZADD z 1 a => :1\n".to_owned();
    for line in [
        "ZADD str 1 a",
        "ZADD str XX 1 a",
        "ZINCRBY str 1 a",
        "ZREM str a",
        "ZSCORE str a",
        "ZMSCORE str a",
        "ZCARD str",
        "ZCOUNT str 1 2",
        "ZLEXCOUNT str - +",
        "ZRANK str a",
        "ZREVRANK str a",
        "ZRANGE str 0 1",
        "ZREVRANGE str 0 1",
        "ZRANGEBYSCORE str 0 1",
        "ZREVRANGEBYSCORE str 0 1",
        "ZRANGEBYLEX str - +",
        "ZREVRANGEBYLEX str + -",
        "ZRANGESTORE dst str 0 1",
        "ZREMRANGEBYRANK str 0 1",
        "ZREMRANGEBYSCORE str 0 1",
        "ZREMRANGEBYLEX str - +",
        "ZPOPMIN str",
        "ZPOPMAX str 2",
        "ZMPOP 2 nosuch str MIN",
        "ZRANDMEMBER str",
        "ZRANDMEMBER str 2",
        "ZSCAN str 0",
        "ZUNION 2 z str",
        "ZINTER 2 z str",
        "ZDIFF 2 z str",
        "ZINTERCARD 2 z str",
        "ZUNIONSTORE dst 2 z str",
        "ZINTERSTORE dst 2 z str",
        "ZDIFFSTORE dst 2 z str",
        "GET z",
        "APPEND z x",
        "INCR z",
        "SADD z a",
        "SUNION z",
    ] {
        script += &format!("{line} => {WRONG}\n");
    }
    check(&script);
}

/// Redis 7.2's answers where 7.0 knows no WITHSCORE.
#[test]
fn ranks_come_with_scores() {
    check_on(
        &TestNode::new(),
        r#"
        ZADD z 1 a 2.5 b             => :2
        ZRANK z b WITHSCORE          => [:1 "2.5"]
        ZREVRANK z b withscore       => [:0 "2.5"]
        ZRANK z nosuch WITHSCORE     => nil-array
        ZRANK nosuch a WITHSCORE     => nil-array
        ZRANK z nosuch               => nil
        ZRANK z b WITHSCORES         => -ERR syntax error
        ZRANK z b WITHSCORE x        => -ERR wrong number of arguments for 'zrank' command
        "#,
    );
}

/// The score in full, the shortest way there is, and in scans of large sets with 17 digits.
#[test]
fn fractions_are_written_as_redis_7_2_does() {
    let node = TestNode::new();
    check_on(
        &node,
        r#"
        ZADD z 0.1 a 1e21 b 3 c -0.0 d => :4
        ZSCORE z a                   => "0.1"
        ZRANGE z 0 -1 WITHSCORES     => ["d" "0" "a" "0.1" "c" "3" "b" "1e+21"]
        ZSCAN z 0                    => ["0" ["d" "0" "a" "0.1" "c" "3" "b" "1e+21"]]
        CONFIG SET zset-max-listpack-entries 0 => +OK
        ZADD y 0.1 a                 => :1
        OBJECT ENCODING y            => "skiplist"
        ZSCAN y 0                    => ["0" ["a" "0.10000000000000001"]]
        "#,
    );
    // Only a small set forgets the sign of zero, and so does one that is small after a restart.
    let mut client = node.client();
    node.run(&mut client, "ZADD y -0.0 zero");
    assert_eq!(node.run(&mut client, "ZSCORE y zero"), r#""-0""#);
}

#[test]
fn emptied_sorted_sets_are_gone() {
    let mut script = String::new();
    for line in [
        "ZREM z a b",
        "ZREMRANGEBYRANK z 0 -1",
        "ZREMRANGEBYSCORE z -inf inf",
        "ZPOPMIN z 9",
        "ZPOPMAX z 2",
        "ZMPOP 1 z MAX COUNT 2",
        "ZRANGESTORE z z 5 9",
        "ZINTERSTORE z 2 z nosuch",
        "ZDIFFSTORE z 2 z z",
    ] {
        script += &format!("ZADD z 1 a 2 b => *\n{line} => *\nEXISTS z => :0\nDBSIZE => :0\n");
    }
    check(&script);
}

/// A watched sorted set, and one that expires while it is in use.
#[test]
fn transactions_and_expiry_know_sorted_sets() {
    check(
        r#"
        ZADD z 1 a                   => :1
        WATCH z                      => +OK
        @client 2
        ZADD z 1 a                   => :0
        @client 1
        MULTI                        => +OK
        ZINCRBY z 1 a                => +QUEUED
        ZRANGE z 0 -1 WITHSCORES     => +QUEUED
        EXEC                         => ["2" ["a" "2"]]
        WATCH z                      => +OK
        @client 2
        ZINCRBY z 1 a                => "3"
        @client 1
        MULTI                        => +OK
        ZCARD z                      => +QUEUED
        EXEC                         => nil-array
        "#,
    );
    check_on(
        &TestNode::new(),
        r#"
        ZADD z 1 a                   => :1
        PEXPIRE z 50                 => :1
        ZINCRBY z 1 a                => "2"
        PTTL z                       => :50
        @advance 51
        ZINCRBY z 1 a                => "1"
        PTTL z                       => :-1
        "#,
    );
}

/// What Redis 7.0 writes in seventeen digits stays out of here: this runs beside it.
#[test]
fn a_zero_that_a_weight_made_negative_shows_it_until_it_is_stored() {
    check(
        r#"
        ZADD z 0 a 2 b                              => :2
        ZUNION 1 z WEIGHTS -3 WITHSCORES            => ["b" "-6" "a" "-0"]
        ZINTER 1 z WEIGHTS -3 WITHSCORES            => ["b" "-6" "a" "-0"]
        ZUNIONSTORE y 1 z WEIGHTS -3                => :2
        ZRANGE y 0 -1 WITHSCORES                    => ["b" "-6" "a" "0"]
        "#,
    );
}

#[test]
fn a_range_of_ranks_has_no_offset() {
    check(
        r#"
        ZADD z 0 a 1 b 2 c                  => :3
        ZRANGE z 0 -1 LIMIT 2 -1            => ["a" "b" "c"]
        ZRANGESTORE y z 0 -1 LIMIT 2 -1     => :3
        ZRANGE z 0 -1 LIMIT 2 1             => -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        "#,
    );
}

#[test]
fn sets_are_counted() {
    // Redis has this since 8.8.
    check(
        r#"
        ZADD a 5 x 6 y                                        =>> :2
        ZADD b 7 y 8 z                                        =>> :2
        SADD c y                                              =>> :1
        ZUNIONSTORE d 3 a b c AGGREGATE COUNT                 =>> :3
        ZRANGE d 0 -1 WITHSCORES                              =>> ["x" "1" "z" "1" "y" "3"]
        ZINTER 2 a b AGGREGATE count WITHSCORES               =>> ["y" "2"]
        ZUNION 2 a b WEIGHTS 10 0.5 AGGREGATE COUNT WITHSCORES =>> ["z" "0.5" "x" "10" "y" "10.5"]
        "#,
    );
}
