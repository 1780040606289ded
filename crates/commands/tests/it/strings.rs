//! What the string commands answer.

use crate::common::check;

#[test]
fn set_and_get() {
    check(
        r#"
        GET a                            => nil
        SET a 1                          => +OK
        GET a                            => "1"
        SET a ""                         => +OK
        GET a                            => ""
        SET a x NX                       => nil
        SET a x XX                       => +OK
        SET b x XX                       => nil
        SET b x nx                       => +OK
        SET b y GET                      => "x"
        SET c y GET                      => nil
        SET c z NX GET                   => "y"
        SET d z XX GET                   => nil
        EXISTS d                         => :0
        SET c z XX GET                   => "y"
        GET c                            => "z"
        SET a b NX XX                    => -ERR syntax error
        SET a b XX NX                    => -ERR syntax error
        SET a b NX NX GET GET            => "x"
        SET a b c                        => -ERR syntax error
        SET a                            => -ERR wrong number of arguments for 'set' command
        SADD s m                         => *
        SET s x GET                      => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s                            => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET s x                          => +OK
        @resp3
        GET missing                      => nil
        SET missing x XX                 => nil
        "#,
    );
}

#[test]
fn set_with_an_expiry() {
    check(
        r#"
        SET a 1 EX 100                   => +OK
        TTL a                            => :100
        SET a 2 KEEPTTL                  => +OK
        TTL a                            => :100
        SET a 3                          => +OK
        TTL a                            => :-1
        SET a 3 PX 100000                => +OK
        TTL a                            => :100
        SET a 3 EXAT 33177117420         => +OK
        EXPIRETIME a                     => :33177117420
        SET a 3 PXAT 33177117420123 GET  => "3"
        PEXPIRETIME a                    => :33177117420123
        SET a 3 EX 1 EX 100              => +OK
        TTL a                            => :100
        SET b 3 KEEPTTL                  => +OK
        TTL b                            => :-1
        SET a 1 EX 10 PX 10              => -ERR syntax error
        SET a 1 EX 10 KEEPTTL            => -ERR syntax error
        SET a 1 KEEPTTL EX 10            => -ERR syntax error
        SET a 1 KEEPTTL KEEPTTL          => +OK
        SET a 1 PERSIST                  => -ERR syntax error
        SET a 1 EX                       => -ERR syntax error
        SET a 1 EX 0                     => -ERR invalid expire time in 'set' command
        SET a 1 EX -1                    => -ERR invalid expire time in 'set' command
        SET a 1 PXAT 0                   => -ERR invalid expire time in 'set' command
        SET a 1 EX x                     => -ERR value is not an integer or out of range
        SET a 1 EX 9223372036854775807   => -ERR invalid expire time in 'set' command
        SET a 1 PX 9223372036854775807   => -ERR invalid expire time in 'set' command
        SET a 1 EXAT 9223372036854775807 => -ERR invalid expire time in 'set' command
        SET a 1 EXAT 1                   => +OK
        GET a                            => nil
        SET a 1 PX 30                    => +OK
        @advance 31
        GET a                            => nil
        EXISTS a                         => :0
        "#,
    );
}

#[test]
fn set_if_equal() {
    // Redis has it since 8.4, Valkey since 8.1.
    check(
        r#"
        SET a x IFEQ y           =>> nil
        EXISTS a                 =>> :0
        SET a x                  =>> +OK
        SET a y IFEQ z           =>> nil
        SET a y IFEQ x           =>> +OK
        GET a                    =>> "y"
        SET a z IFEQ y GET       =>> "y"
        SET a w IFEQ y GET       =>> "z"
        SET b w IFEQ y GET       =>> nil
        GET a                    =>> "z"
        SET n 10                 =>> +OK
        SET n 11 IFEQ 10 EX 100  =>> +OK
        TTL n                    =>> :100
        SET a z IFEQ             =>> -ERR syntax error
        SET a z IFEQ z NX        =>> -ERR syntax error
        SET a z XX IFEQ z        =>> -ERR syntax error
        "#,
    );
}

#[test]
fn old_ways_to_set() {
    check(
        r#"
        SETEX a 100 x                    => +OK
        TTL a                            => :100
        PSETEX a 100000 y                => +OK
        TTL a                            => :100
        GET a                            => "y"
        SETEX a 0 x                      => -ERR invalid expire time in 'setex' command
        PSETEX a -5 x                    => -ERR invalid expire time in 'psetex' command
        SETEX a x x                      => -ERR value is not an integer or out of range
        SETNX a z                        => :0
        SETNX b z                        => :1
        GET b                            => "z"
        GETSET a w                       => "y"
        TTL a                            => :-1
        GETSET c w                       => nil
        SADD s m                         => *
        GETSET s x                       => -WRONGTYPE Operation against a key holding the wrong kind of value
        TYPE s                           => *
        "#,
    );
}

#[test]
fn get_and_change() {
    check(
        r#"
        SET a x EX 100                   => +OK
        GETDEL a                         => "x"
        GETDEL a                         => nil
        EXISTS a                         => :0
        SET a x                          => +OK
        GETEX a                          => "x"
        TTL a                            => :-1
        GETEX a EX 100                   => "x"
        TTL a                            => :100
        GETEX a                          => "x"
        TTL a                            => :100
        GETEX a PERSIST                  => "x"
        TTL a                            => :-1
        GETEX a PXAT 33177117420123      => "x"
        PEXPIRETIME a                    => :33177117420123
        GETEX a PERSIST EX 5             => -ERR syntax error
        GETEX a EX 5 PERSIST             => -ERR syntax error
        GETEX a EX 5 PX 5                => -ERR syntax error
        GETEX a KEEPTTL                  => -ERR syntax error
        GETEX a NX                       => -ERR syntax error
        GETEX a EX 0                     => -ERR invalid expire time in 'getex' command
        GETEX missing EX 0               => nil
        GETEX missing PERSIST            => nil
        GETEX a EXAT 1                   => "x"
        EXISTS a                         => :0
        SADD s m                         => *
        GETEX s EX 0                     => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETDEL s                         => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn several_at_once() {
    check(
        r#"
        MSET a 1 b two                   => +OK
        SADD s m                         => *
        MGET a b missing s a             => ["1" "two" nil nil "1"]
        MSET a                           => -ERR wrong number of arguments for 'mset' command
        MSET a 1 b                       => -ERR wrong number of arguments for 'mset' command
        MSETNX a 1 b                     => -ERR wrong number of arguments for 'msetnx' command
        EXPIRE a 100                     => :1
        MSET a x a y                     => +OK
        GET a                            => "y"
        TTL a                            => :-1
        MSETNX new 1 b 2                 => :0
        EXISTS new                       => :0
        MSETNX new 1 newer 2             => :1
        MSETNX n 1 n 2                   => :1
        GET n                            => "2"
        @resp3
        MGET a missing                   => ["y" nil]
        "#,
    );
}

#[test]
fn counters() {
    check(
        r#"
        INCR n                           => :1
        INCRBY n 41                      => :42
        DECR n                           => :41
        DECRBY n 50                      => :-9
        OBJECT ENCODING n                => "int"
        EXPIRE n 100                     => :1
        INCR n                           => :-8
        TTL n                            => :100
        SET n 9223372036854775807        => +OK
        INCR n                           => -ERR increment or decrement would overflow
        GET n                            => "9223372036854775807"
        DECRBY n -1                      => -ERR increment or decrement would overflow
        SET n -9223372036854775808       => +OK
        DECR n                           => -ERR increment or decrement would overflow
        DECRBY n -9223372036854775808    => -ERR decrement would overflow
        INCRBY n x                       => -ERR value is not an integer or out of range
        INCRBY n 1.5                     => -ERR value is not an integer or out of range
        SET n x                          => +OK
        INCR n                           => -ERR value is not an integer or out of range
        SET n " 1"                       => +OK
        INCR n                           => -ERR value is not an integer or out of range
        SET n 01                         => +OK
        INCR n                           => -ERR value is not an integer or out of range
        APPEND m 1                       => :1
        APPEND m 2                       => :2
        OBJECT ENCODING m                => "raw"
        INCR m                           => :13
        OBJECT ENCODING m                => "int"
        SADD s m                         => *
        INCR s                           => -WRONGTYPE Operation against a key holding the wrong kind of value
        INCRBY s x                       => -ERR value is not an integer or out of range
        DEL n                            => :1
        DECR n                           => :-1
        "#,
    );
}

#[test]
fn floats() {
    check(
        r#"
        INCRBYFLOAT f 1.5                => "1.5"
        INCRBYFLOAT f 1.5                => "3"
        OBJECT ENCODING f                => "embstr"
        INCR f                           => :4
        OBJECT ENCODING f                => "int"
        INCRBYFLOAT f 1e2                => "104"
        INCRBYFLOAT f -0.1               => "103.9"
        EXPIRE f 100                     => :1
        INCRBYFLOAT f 0.1                => "104"
        TTL f                            => :100
        INCRBYFLOAT f x                  => -ERR value is not a valid float
        INCRBYFLOAT f " 1"               => -ERR value is not a valid float
        INCRBYFLOAT f inf                => -ERR increment would produce NaN or Infinity
        INCRBYFLOAT f nan                => -ERR value is not a valid float
        SET f x                          => +OK
        INCRBYFLOAT f 1                  => -ERR value is not a valid float
        SADD s m                         => *
        INCRBYFLOAT s x                  => -WRONGTYPE Operation against a key holding the wrong kind of value
        SET f 3.0e3                      => +OK
        INCRBYFLOAT f 200                => "3200"
        @resp3
        INCRBYFLOAT f 0.5                => "3200.5"
        "#,
    );
}

#[test]
fn parts_of_a_string() {
    check(
        r#"
        APPEND a 12                      => :2
        OBJECT ENCODING a                => "int"
        APPEND a ""                      => :2
        OBJECT ENCODING a                => "raw"
        APPEND a 34                      => :4
        GET a                            => "1234"
        EXPIRE a 100                     => :1
        APPEND a x                       => :5
        SETRANGE a 0 y                   => :5
        TTL a                            => :100
        GET a                            => "y234x"
        SETRANGE a 7 z                   => :8
        GET a                            => "y234x\x00\x00z"
        SETRANGE a 100 ""                => :8
        SETRANGE missing 3 ""            => :0
        EXISTS missing                   => :0
        SETRANGE new 2 x                 => :3
        OBJECT ENCODING new              => "raw"
        GET new                          => "\x00\x00x"
        SETRANGE a -1 x                  => -ERR offset is out of range
        SETRANGE a x x                   => -ERR value is not an integer or out of range
        SETRANGE a 536870912 x           => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE a 9223372036854775807 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE none 536870912 x        => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        STRLEN a                         => :8
        STRLEN missing                   => :0
        SET n -12345                     => +OK
        STRLEN n                         => :6
        GETRANGE n 0 1                   => "-1"
        GETRANGE n -3 -1                 => "345"
        GETRANGE n 0 -100                => "-"
        GETRANGE n 5 1                   => ""
        SUBSTR n 1 1000                  => "12345"
        GETRANGE missing 0 -1            => ""
        GETRANGE n a 1                   => -ERR value is not an integer or out of range
        GETRANGE n 1 a                   => -ERR value is not an integer or out of range
        SETRANGE n 1 9                   => :6
        GET n                            => "-92345"
        SADD s m                         => *
        APPEND s x                       => -WRONGTYPE Operation against a key holding the wrong kind of value
        SETRANGE s 0 x                   => -WRONGTYPE Operation against a key holding the wrong kind of value
        SETRANGE s 0 ""                  => -WRONGTYPE Operation against a key holding the wrong kind of value
        STRLEN s                         => -WRONGTYPE Operation against a key holding the wrong kind of value
        GETRANGE s 0 1                   => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn a_long_string_grows() {
    let long = "x".repeat(3000);
    check(&format!(
        "SET a {long}            => +OK
         APPEND a yz             => :3002
         SETRANGE a 3001 abc     => :3004
         GETRANGE a 2999 -1      => \"xyabc\"
         OBJECT ENCODING a       => \"raw\"
         SET b 7                 => +OK
         APPEND b {long}         => :3001
         GETRANGE b 0 1          => \"7x\"
         SET b {long} EX 100     => +OK
         RENAME b a              => +OK
         COPY a c                => :1
         APPEND c !              => :3001
         STRLEN a                => :3000
         SET a short             => +OK
         TTL c                   => :100
        "
    ));
}

#[test]
fn longest_common_subsequence() {
    check(
        r#"
        MSET a ohmytext b mynewtext n 12 => +OK
        LCS a b                          => "mytext"
        LCS a b LEN                      => :6
        LCS a b IDX                      => ["matches" [[[:4 :7] [:5 :8]] [[:2 :3] [:0 :1]]] "len" :6]
        LCS a b IDX MINMATCHLEN 4        => ["matches" [[[:4 :7] [:5 :8]]] "len" :6]
        LCS a b IDX WITHMATCHLEN         => ["matches" [[[:4 :7] [:5 :8] :4] [[:2 :3] [:0 :1] :2]] "len" :6]
        LCS a b idx minmatchlen -3 withmatchlen => ["matches" [[[:4 :7] [:5 :8] :4] [[:2 :3] [:0 :1] :2]] "len" :6]
        LCS a b IDX LEN                  => -ERR If you want both the length and indexes, please just use IDX.
        LCS a b FOO                      => -ERR syntax error
        LCS a b MINMATCHLEN              => -ERR syntax error
        LCS a b MINMATCHLEN x            => -ERR value is not an integer or out of range
        LCS a missing                    => ""
        LCS a missing LEN                => :0
        LCS a missing IDX                => ["matches" [] "len" :0]
        LCS n n                          => "12"
        SADD s m                         => *
        LCS a s FOO                      => -ERR The specified keys must contain string values
        MSET x abcabba y cbabac          => +OK
        LCS x y                          => "cbba"
        LCS x y IDX                      => ["matches" [[[:5 :6] [:3 :4]] [[:4 :4] [:1 :1]] [[:2 :2] [:0 :0]]] "len" :4]
        @resp3
        LCS a b IDX MINMATCHLEN 4        => {"matches": [[[:4 :7] [:5 :8]]], "len": :6}
        "#,
    );
}

#[test]
fn set_and_delete_by_comparison() {
    // Redis has these since 8.4, DELIFEQ is Valkey's.
    check(
        r#"
        SET a x IFNE y                     =>> +OK
        SET a y IFNE x                     =>> nil
        SET a y IFNE z GET                 =>> "x"
        GET a                              =>> "y"
        SET new x IFEQ x                   =>> nil
        SET a v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd =>> +OK
        DIGEST a                           =>> "00006c38adf31777"
        DIGEST none                        =>> nil
        SET empty ""                       =>> +OK
        DIGEST empty                       =>> "2d06800538d394c2"
        SET empty x IFDEQ 2D06800538d394c2 =>> +OK
        SET empty y IFDEQ 2d06800538d394c2 =>> nil
        SET empty y IFDNE 2d06800538d394c2 =>> +OK
        SET made y IFDNE 2d06800538d394c2  =>> +OK
        SET made y IFDEQ 2d0               =>> -ERR must be exactly 16 hexadecimal characters
        SET made y IFDEQ 2d06800538d394cx  =>> nil
        SET made y IFDNE 2d06800538d394cx  =>> +OK
        SET made y IFDEQ                   =>> -ERR syntax error
        SET made y IFNE a IFEQ b           =>> -ERR syntax error
        SET made y NX IFNE a               =>> -ERR syntax error
        DELEX made IFEQ x                  =>> :0
        DELEX made IFNE y                  =>> :0
        DELEX made IFEQ y                  =>> :1
        DELEX made IFEQ y                  =>> :0
        DELEX made IFNE y                  =>> :0
        SET n 12                           =>> +OK
        DELEX n IFNE 13                    =>> :1
        SET n ""                           =>> +OK
        DELEX n IFDNE 2d06800538d394c2     =>> :0
        DELEX n IFDEQ 2d06800538d394cx     =>> :0
        DELEX n IFDEQ 2d06                 =>> -ERR must be exactly 16 hexadecimal characters
        DELEX n IFXX 1                     =>> -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
        DELEX n IFDEQ 2d06800538d394c2     =>> :1
        DELEX n IFXX 1                     =>> :0
        DELEX n IFEQ                       =>> -ERR wrong number of arguments for 'delex' command
        DELEX n IFEQ a b                   =>> -ERR wrong number of arguments for 'delex' command
        SADD s a                           =>> :1
        DIGEST s                           =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        SET s x IFNE y                     =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        DELEX s IFEQ x                     =>> -ERR Key should be of string type if conditions are specified
        DELEX s IFXX x                     =>> -ERR Key should be of string type if conditions are specified
        DELIFEQ s x                        =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        DELEX s                            =>> :1
        DELEX s                            =>> :0
        SET n 12                           =>> +OK
        DELIFEQ n 13                       =>> :0
        DELIFEQ n 12                       =>> :1
        DELIFEQ n 12                       =>> :0
        "#,
    );
}

#[test]
fn several_strings_with_a_condition() {
    // As Valkey 9.1 answers.
    check(
        r#"
        MSETEX 2 a 1 b 2                   =>> :1
        MGET a b                           =>> ["1" "2"]
        MSETEX 2 a 3 c 3 NX                =>> :0
        EXISTS c                           =>> :0
        MSETEX 2 a 3 c 3 XX                =>> :0
        MSETEX 2 a 3 b 4 XX EX 100         =>> :1
        TTL a                              =>> :100
        TTL b                              =>> :100
        MSETEX 2 a 5 c 5 KEEPTTL           =>> :1
        TTL a                              =>> :100
        TTL c                              =>> :-1
        MSETEX 1 a 6                       =>> :1
        TTL a                              =>> :-1
        MSETEX 2 d 1 d 2 PX 5000 NX        =>> :1
        GET d                              =>> "2"
        MSETEX 0 a 1                       =>> -ERR invalid numkeys value or out of range
        MSETEX x a 1                       =>> -ERR invalid numkeys value or out of range
        MSETEX 99999999999 a 1             =>> -ERR invalid numkeys value or out of range
        MSETEX 2 a 1                       =>> -ERR syntax error
        MSETEX 1 a 1 NX XX                 =>> -ERR syntax error
        MSETEX 1 a 1 EX                    =>> -ERR syntax error
        MSETEX 1 a 1 EX 0                  =>> -ERR invalid expire time in 'msetex' command
        MSETEX 1 a 1 EX 10 KEEPTTL         =>> -ERR syntax error
        MSETEX 1 a 1 foo                   =>> -ERR syntax error
        COMMAND GETKEYS MSETEX 2 a 1 b 2 NX =>> ["a" "b"]
        "#,
    );
}

/// By the documentation and the tests of Redis 8.8.
#[test]
fn counters_have_bounds() {
    check(
        r#"
        INCREX n                                    =>> [:1 :1]
        INCREX n BYINT 99                           =>> [:100 :99]
        OBJECT ENCODING n                           =>> "int"
        INCREX n BYINT -10                          =>> [:90 :-10]
        INCREX n byint 20 ubound 100                =>> [:90 :0]
        INCREX n BYINT 20 UBOUND 100 SATURATE       =>> [:100 :10]
        INCREX n BYINT -200 LBOUND 0                =>> [:100 :0]
        INCREX n LBOUND 0 BYINT -200 SATURATE UBOUND 100 =>> [:0 :-100]
        INCREX n BYINT 100 UBOUND 100 LBOUND 0      =>> [:100 :100]
        INCREX n BYINT 5 UBOUND 30                  =>> [:100 :0]
        INCREX n BYINT -75 UBOUND 30                =>> [:25 :-75]
        INCREX none BYINT 5 LBOUND 10               =>> [:0 :0]
        EXISTS none                                 => :0
        INCREX none BYINT 0 LBOUND 5 SATURATE       =>> [:5 :5]
        SET max 9223372036854775800                 => +OK
        INCREX max BYINT 9223372036854775800        =>> [:9223372036854775800 :0]
        INCREX max BYINT 9223372036854775800 SATURATE =>> [:9223372036854775807 :7]
        INCREX max BYINT 1 UBOUND -9223372036854775808 SATURATE =>> -ERR applied increment would overflow
        SET min -9223372036854775800                => +OK
        INCREX min BYINT -9223372036854775800       =>> [:-9223372036854775800 :0]
        INCREX min BYINT -9223372036854775800 SATURATE =>> [:-9223372036854775808 :-8]
        INCREX f BYFLOAT 1.5                        =>> ["1.5" "1.5"]
        INCREX f BYFLOAT 0.25 UBOUND 10             =>> ["1.75" "0.25"]
        INCREX f BYFLOAT 100 UBOUND 2.5             =>> ["1.75" "0"]
        INCREX f BYFLOAT 100 UBOUND 2.5 SATURATE    =>> ["2.5" "0.75"]
        INCREX f BYFLOAT -100 LBOUND -0.5 SATURATE  =>> ["-0.5" "-3"]
        INCREX f BYFLOAT 0.5 UBOUND inf LBOUND -inf =>> ["0" "0.5"]
        OBJECT ENCODING f                           =>> "embstr"
        INCREX f                                    =>> [:1 :1]
        SET huge 1e4932                             => +OK
        INCREX huge BYFLOAT 1e4932                  =>> *
        GET huge                                    => "1e4932"
        INCREX n NX                                 =>> [:25 :0]
        INCREX absent XX                            =>> [:0 :0]
        INCREX absent XX BYFLOAT 1                  =>> ["0" "0"]
        EXISTS absent                               => :0
        INCREX absent NX BYINT 3                    =>> [:3 :3]
        @resp3
        INCREX f BYFLOAT 0.5                        =>> [,1.5 ,0.5]
        INCREX f BYFLOAT 0.5 UBOUND 1               =>> [,1.5 ,0]
        INCREX n                                    =>> [:26 :1]
        "#,
    );
}

#[test]
fn bounded_counters_expire() {
    check(
        r#"
        INCREX n EX 100                             =>> [:1 :1]
        TTL n                                       =>> :100
        INCREX n EX 50 ENX                          =>> [:2 :1]
        TTL n                                       =>> :100
        INCREX n BYINT 9 UBOUND 5 EX 500            =>> [:2 :0]
        TTL n                                       =>> :100
        INCREX n BYINT 9 UBOUND 5 PX 500000 SATURATE =>> [:5 :3]
        TTL n                                       =>> :500
        INCREX n EXAT 1 ENX                         =>> [:6 :1]
        TTL n                                       =>> :500
        INCREX n                                    =>> [:7 :1]
        TTL n                                       =>> :500
        INCREX n PERSIST                            =>> [:8 :1]
        TTL n                                       =>> :-1
        INCREX n EX 100 ENX                         =>> [:9 :1]
        TTL n                                       =>> :100
        INCREX n PXAT 1                             =>> [:10 :1]
        EXISTS n                                    => :0
        INCREX n EXAT 1                             =>> [:1 :1]
        EXISTS n                                    => :0
        "#,
    );
}

#[test]
fn bounded_counters_refuse_what_redis_refuses() {
    let mut script = String::new();
    for options in [
        "FOO",
        "BYINT",
        "BYINT 1 FOO",
        "BYINT 1 BYFLOAT 1.5",
        "BYFLOAT 1.5 BYINT 1",
        "EX 10 PX 5000",
        "EX 10 EX 10",
        "EX 10 PERSIST",
        "PERSIST EX 10",
        "PERSIST ENX",
        "ENX PERSIST",
        "BYINT 1 BYINT 2",
        "LBOUND 0 LBOUND 0",
        "UBOUND 9 UBOUND 9",
        "LBOUND",
        "SATURATE SATURATE",
        "SAT LBOUND 0",
        "ENX ENX EX 10",
        "PERSIST PERSIST",
        "NX XX",
        "EX",
    ] {
        script += &format!("INCREX k {options} =>> -ERR syntax error\n");
    }
    script += r#"
        INCREX                          =>> -ERR wrong number of arguments for 'increx' command
        INCREX k ENX                    =>> -ERR ENX flag requires an expiration
        INCREX k BYINT abc              =>> -ERR Increment is not an integer or out of range
        INCREX k BYINT 1.5              =>> -ERR Increment is not an integer or out of range
        INCREX k BYFLOAT abc            =>> -ERR Increment is not a valid float
        INCREX k BYFLOAT nan            =>> -ERR Increment is not a valid float
        INCREX k BYFLOAT -inf           =>> -ERR BYFLOAT increment cannot be Infinity
        INCREX k LBOUND 1.5             =>> -ERR LBOUND is not an integer or out of range
        INCREX k UBOUND x               =>> -ERR UBOUND is not an integer or out of range
        INCREX k BYFLOAT 1 UBOUND x     =>> -ERR UBOUND is not a valid float
        INCREX k BYFLOAT 1 LBOUND x     =>> -ERR LBOUND is not a valid float
        INCREX k LBOUND 2 UBOUND 1      =>> -ERR LBOUND can't be greater than UBOUND
        INCREX k BYFLOAT 1 LBOUND inf   =>> -ERR LBOUND can't be greater than UBOUND
        INCREX k EX 0                   =>> -ERR invalid expire time in 'increx' command
        INCREX k PX -1                  =>> -ERR invalid expire time in 'increx' command
        INCREX k EX x                   =>> -ERR value is not an integer or out of range
        EXISTS k                        => :0
        RPUSH l a                       => :1
        INCREX l EXAT 1                 =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        INCREX l BYFLOAT 1              =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        SET text hello                  => +OK
        INCREX text                     =>> -ERR value is not an integer or out of range
        INCREX text BYFLOAT 1 EXAT 1    =>> -ERR value is not a valid float
        SET text -inf                   => +OK
        INCREX text BYFLOAT 0 LBOUND -9 =>> -ERR value cannot be Infinity
    "#;
    check(&script);
}
