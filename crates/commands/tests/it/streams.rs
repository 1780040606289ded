//! Streams: what the commands answer, and that the log gives back what they left.

use crate::common::{TestNode, check, check_on};

#[test]
fn entries_in_order() {
    check(
        r#"
        XADD s 1-1 a 1              => "1-1"
        XADD s 1-* a 2              => "1-2"
        XADD s 2 b x c 33333        => "2-0"
        XADD s 2-0 a 1              => -ERR The ID specified in XADD is equal or smaller than the target stream top item
        XADD s 1-* a 1              => -ERR The ID specified in XADD is equal or smaller than the target stream top item
        XADD s 0-0 a 1              => -ERR The ID specified in XADD must be greater than 0-0
        XADD new 0-0 a 1            => -ERR The ID specified in XADD must be greater than 0-0
        XADD new NOMKSTREAM 1-1 a 1 => nil
        EXISTS new                  => :0
        XADD s x a 1                => -ERR Invalid stream ID specified as stream command argument
        XADD s 5-1 a                => -ERR wrong number of arguments for 'xadd' command
        XADD s *                    => -ERR wrong number of arguments for 'xadd' command
        XADD s * a 1 b              => -ERR wrong number of arguments for 'xadd' command
        XADD s MAXLEN 5 NOMKSTREAM  => -ERR wrong number of arguments for 'xadd' command
        XLEN s                      => :3
        XLEN new                    => :0
        TYPE s                      => +stream
        OBJECT ENCODING s           => "stream"
        XRANGE s - +                => [["1-1" ["a" "1"]] ["1-2" ["a" "2"]] ["2-0" ["b" "x" "c" "33333"]]]
        XREVRANGE s + -             => [["2-0" ["b" "x" "c" "33333"]] ["1-2" ["a" "2"]] ["1-1" ["a" "1"]]]
        XRANGE s 1 1                => [["1-1" ["a" "1"]] ["1-2" ["a" "2"]]]
        XRANGE s (1-1 (2-0          => [["1-2" ["a" "2"]]]
        XRANGE s - + COUNT 1        => [["1-1" ["a" "1"]]]
        XREVRANGE s + - COUNT 1     => [["2-0" ["b" "x" "c" "33333"]]]
        XRANGE s - + COUNT 0        => nil-array
        XRANGE s - + COUNT -5       => nil-array
        XRANGE new - + COUNT 0      => []
        XRANGE s - + COUNT          => -ERR syntax error
        XRANGE s - + COUNT x        => -ERR value is not an integer or out of range
        XRANGE s 2-1 +              => []
        XRANGE s + -                => []
        XRANGE s (- +               => -ERR Invalid stream ID specified as stream command argument
        XRANGE s (18446744073709551615-18446744073709551615 + => -ERR invalid start ID for the interval
        XRANGE s - (0-0             => -ERR invalid end ID for the interval
        SET string x                => +OK
        XADD string 1-1 a 1         => -WRONGTYPE Operation against a key holding the wrong kind of value
        XLEN string                 => -WRONGTYPE Operation against a key holding the wrong kind of value
        XRANGE string - +           => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s                       => -WRONGTYPE Operation against a key holding the wrong kind of value
        XADD end 18446744073709551615-18446744073709551615 a 1 => "18446744073709551615-18446744073709551615"
        XADD end * a 1              => -ERR The stream has exhausted the last possible ID, unable to add more items
        XADD ms 5-18446744073709551615 a 1 => "5-18446744073709551615"
        XADD ms 5-* a 1             => -ERR The ID specified in XADD is equal or smaller than the target stream top item
        XADD zero 0-* a 1           => "0-1"
        "#,
    );
}

#[test]
fn removing_and_trimming() {
    check(
        r#"
        XADD s 1-0 a 1              => "1-0"
        XADD s 2-0 a 2              => "2-0"
        XADD s 3-0 a 3              => "3-0"
        XADD s 4-0 a 4              => "4-0"
        XDEL s 2 2-0 9-9            => :1
        XDEL missing 2              => :0
        XDEL missing x              => :0
        XDEL s 1-0 x                => -ERR Invalid stream ID specified as stream command argument
        XLEN s                      => :3
        XTRIM s MAXLEN 2            => :1
        XRANGE s - +                => [["3-0" ["a" "3"]] ["4-0" ["a" "4"]]]
        XTRIM s MINID 4             => :1
        XTRIM s MINID = 4           => :0
        XTRIM s MAXLEN ~ 0 LIMIT 5  => :1
        XLEN s                      => :0
        EXISTS s                    => :1
        XADD s MAXLEN 1 5-0 a 5     => "5-0"
        XADD s MAXLEN 1 6-0 a 6     => "6-0"
        XADD s MINID 6-0 7-0 a 7    => "7-0"
        XRANGE s - +                => [["6-0" ["a" "6"]] ["7-0" ["a" "7"]]]
        XADD s MAXLEN 0 8-0 a 8     => "8-0"
        XLEN s                      => :0
        XADD s 8-0 a 8              => -ERR The ID specified in XADD is equal or smaller than the target stream top item
        XADD fresh MAXLEN 0 8-0 a 8 => "8-0"
        XLEN fresh                  => :0
        EXISTS fresh                => :1
        XTRIM missing MAXLEN 1      => :0
        XTRIM s MAXLEN -1           => -ERR The MAXLEN argument must be >= 0.
        XTRIM s MAXLEN x            => -ERR value is not an integer or out of range
        XTRIM s MAXLEN 1 LIMIT 1    => -ERR syntax error, LIMIT cannot be used without the special ~ option
        XTRIM s MAXLEN ~ 1 LIMIT -1 => -ERR The LIMIT argument must be >= 0.
        XTRIM s LIMIT 1 LIMIT 2     => -ERR syntax error, LIMIT cannot be used without specifying a trimming strategy
        XTRIM s LIMIT 0 LIMIT 0     => -ERR syntax error, XTRIM must be called with a trimming strategy
        XTRIM s MAXLEN 1 MINID 1    => -ERR syntax error, MAXLEN and MINID options at the same time are not compatible
        XTRIM s MINID x             => -ERR Invalid stream ID specified as stream command argument
        XTRIM s SOMETHING 1         => -ERR syntax error
        XADD s LIMIT 0 9-0 a 1      => -ERR syntax error, LIMIT cannot be used without the special ~ option
        "#,
    );
}

#[test]
fn ids_and_counters_are_set() {
    check(
        r#"
        XSETID missing 1-1          => -ERR no such key
        XADD s 5-0 a 1              => "5-0"
        XADD s 6-0 a 1              => "6-0"
        XDEL s 5-0                  => :1
        XSETID s 4-0                => -ERR The ID specified in XSETID is smaller than current max_deleted_entry_id
        XSETID s 5-5                => -ERR The ID specified in XSETID is smaller than the target stream top item
        XSETID s 7-0 ENTRIESADDED 0 MAXDELETEDID 5-1 => -ERR The entries_added specified in XSETID is smaller than the target stream length
        XSETID s 7-0 ENTRIESADDED -1 MAXDELETEDID 5-1 => -ERR entries_added must be positive
        XSETID s 7-0 ENTRIESADDED 9 MAXDELETEDID 8-1 => -ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id
        XSETID s x                  => -ERR Invalid stream ID specified as stream command argument
        XSETID s 7-0 ENTRIESADDED   => -ERR syntax error
        XSETID s 7-0 ENTRIESADDED 9 MAXDELETEDID 6-1 => +OK
        XINFO STREAM s              => ["length" :1 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "7-0" "max-deleted-entry-id" "6-1" "entries-added" :9 "recorded-first-entry-id" "6-0" "groups" :0 "first-entry" ["6-0" ["a" "1"]] "last-entry" ["6-0" ["a" "1"]]]
        XADD s 7-* a 1              => "7-1"
        XINFO STREAM missing        => -ERR no such key
        "#,
    );
}

#[test]
fn reading_several_streams_and_waiting() {
    check(
        r#"
        XADD a 1-0 f 1              => "1-0"
        XADD b 2-0 f 2              => "2-0"
        XADD b 3-0 f 3              => "3-0"
        XREAD STREAMS a b missing 0 2-0 0 => [["a" [["1-0" ["f" "1"]]]] ["b" [["3-0" ["f" "3"]]]]]
        XREAD COUNT 1 STREAMS b 0   => [["b" [["2-0" ["f" "2"]]]]]
        XREAD COUNT 0 STREAMS b 2   => [["b" [["3-0" ["f" "3"]]]]]
        XREAD STREAMS a 1-0         => nil-array
        XREAD STREAMS a $           => nil-array
        XREAD STREAMS b +           =>> [["b" [["3-0" ["f" "3"]]]]]
        XREAD STREAMS a b 0         => -ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.
        XREAD STREAMS               => -ERR wrong number of arguments for 'xread' command
        XREAD STREAMS a >           => -ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.
        XREAD BLOCK x STREAMS a 0   => -ERR timeout is not an integer or out of range
        XREAD BLOCK -1 STREAMS a 0  => -ERR timeout is negative
        XREAD NOACK STREAMS a 0     => -ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.
        XREAD GROUP g c STREAMS a 0 => -ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.
        XREAD COUNT 1 a 0           => -ERR syntax error
        SET string x                => +OK
        XREAD STREAMS a string 0 0  => -WRONGTYPE Operation against a key holding the wrong kind of value
        MULTI                       => +OK
        XREAD BLOCK 0 STREAMS a $   => +QUEUED
        EXEC                        => [nil-array]
        COMMAND GETKEYS XREAD COUNT 1 STREAMS a b 0 0 => ["a" "b"]
        COMMAND GETKEYS XREADGROUP GROUP streams x NOACK STREAMS a 0 => ["a"]
        COMMAND GETKEYS XREAD STREAMS a b 0 => ["a"]
        @resp3
        XREAD STREAMS a b missing 0 2-0 0 => {"a": [["1-0" ["f" "1"]]], "b": [["3-0" ["f" "3"]]]}
        XREAD STREAMS a 1-0         => nil
        "#,
    );
}

#[test]
fn groups_deliver_each_entry_once() {
    check_on(
        &TestNode::new(),
        r#"
        XGROUP CREATE s g 0         => -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
        XGROUP CREATE s g $ MKSTREAM => +OK
        XGROUP CREATE s g $         => -BUSYGROUP Consumer Group name already exists
        XLEN s                      => :0
        XADD s 1-0 f 1              => "1-0"
        XADD s 2-0 f 2              => "2-0"
        XADD s 3-0 f 3              => "3-0"
        XREADGROUP GROUP g c1 COUNT 2 STREAMS s > => [["s" [["1-0" ["f" "1"]] ["2-0" ["f" "2"]]]]]
        XREADGROUP GROUP g c2 STREAMS s > => [["s" [["3-0" ["f" "3"]]]]]
        XREADGROUP GROUP g c2 STREAMS s > => nil-array
        XREADGROUP GROUP g c1 STREAMS s 0 => [["s" [["1-0" ["f" "1"]] ["2-0" ["f" "2"]]]]]
        XREADGROUP GROUP g c1 STREAMS s 1-0 => [["s" [["2-0" ["f" "2"]]]]]
        XREADGROUP GROUP g c3 STREAMS s 0 => [["s" []]]
        XPENDING s g                => [:3 "1-0" "3-0" [["c1" "2"] ["c2" "1"]]]
        XPENDING s g - + 10         => [["1-0" "c1" :0 :2] ["2-0" "c1" :0 :3] ["3-0" "c2" :0 :1]]
        XPENDING s g (1-0 + 1 c1    => [["2-0" "c1" :0 :3]]
        XPENDING s g IDLE 1 - + 10  => []
        XPENDING s g - + 10 nobody  => []
        XPENDING s g - +            => -ERR syntax error
        XPENDING s nogroup          => -NOGROUP No such key 's' or consumer group 'nogroup'
        XPENDING s nogroup - + x    => -ERR value is not an integer or out of range
        XACK s g 1-0 1-0 9-9        => :1
        XACK s g x                  => -ERR Invalid stream ID specified as stream command argument
        XACK s nogroup x            => :0
        XACK missing g x            => :0
        XDEL s 2-0                  => :1
        XREADGROUP GROUP g c1 STREAMS s 0 => [["s" [["2-0" nil-array]]]]
        XINFO GROUPS s              => [["name" "g" "consumers" :3 "pending" :2 "last-delivered-id" "3-0" "entries-read" :3 "lag" :0]]
        XGROUP DELCONSUMER s g c2   => :1
        XGROUP DELCONSUMER s g c2   => :0
        XGROUP CREATECONSUMER s g c2 => :1
        XGROUP CREATECONSUMER s g c2 => :0
        XINFO CONSUMERS s g         => [["name" "c1" "pending" :1 "idle" :0 "inactive" :0] ["name" "c2" "pending" :0 "idle" :0 "inactive" :-1] ["name" "c3" "pending" :0 "idle" :0 "inactive" :-1]]
        XGROUP SETID s g 0          => +OK
        XREADGROUP GROUP g c2 NOACK STREAMS s > => [["s" [["1-0" ["f" "1"]] ["3-0" ["f" "3"]]]]]
        XPENDING s g                => [:1 "2-0" "2-0" [["c1" "1"]]]
        XGROUP SETID s g -          => +OK
        XGROUP SETID s g $ ENTRIESREAD 2 => +OK
        XGROUP SETID s g $ ENTRIESREAD -2 => -ERR value for ENTRIESREAD must be positive or -1
        XGROUP SETID s g $ MKSTREAM => -ERR unknown subcommand or wrong number of arguments for 'SETID'. Try XGROUP HELP.
        XGROUP SETID s no $         => -NOGROUP No such consumer group 'no' for key name 's'
        XGROUP DESTROY s g          => :1
        XGROUP DESTROY s g          => :0
        XREADGROUP GROUP g c1 STREAMS s > => -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
        XINFO CONSUMERS s g         => -NOGROUP No such consumer group 'g' for key name 's'
        XREADGROUP GROUP g c1 STREAMS s => -ERR wrong number of arguments for 'xreadgroup' command
        XREADGROUP COUNT 1 COUNT 2 STREAMS s > => -ERR Missing GROUP option for XREADGROUP
        "#,
    );
}

#[test]
fn pending_entries_change_hands() {
    check_on(
        &TestNode::new(),
        r#"
        XADD s 1-0 f 1              => "1-0"
        XADD s 2-0 f 2              => "2-0"
        XADD s 3-0 f 3              => "3-0"
        XGROUP CREATE s g 0         => +OK
        XREADGROUP GROUP g a COUNT 2 STREAMS s > => *
        @advance 50
        XCLAIM s g b 60 1-0         => []
        XCLAIM s g b 50 1-0 9-9     => [["1-0" ["f" "1"]]]
        XCLAIM s g b 0 2-0 JUSTID   => ["2-0"]
        XCLAIM s g b 0 3-0          => []
        XCLAIM s g b 0 3-0 FORCE JUSTID RETRYCOUNT 7 => ["3-0"]
        XPENDING s g - + 10         => [["1-0" "b" :0 :2] ["2-0" "b" :0 :1] ["3-0" "b" :0 :7]]
        XCLAIM s g a 0 1-0 IDLE 20  => [["1-0" ["f" "1"]]]
        XCLAIM s g a 0 2-0 IDLE 99999999999999 LASTID 9-0 => [["2-0" ["f" "2"]]]
        XPENDING s g - + 10         => [["1-0" "a" :20 :3] ["2-0" "a" :0 :2] ["3-0" "b" :0 :7]]
        XDEL s 1-0                  => :1
        XCLAIM s g b 0 1-0          => []
        XPENDING s g                => [:2 "2-0" "3-0" [["a" "1"] ["b" "1"]]]
        XCLAIM s g b x 1-0          => -ERR Invalid min-idle-time argument for XCLAIM
        XCLAIM s g b 0 1-0 WHAT     => -ERR Unrecognized XCLAIM option 'WHAT'
        XCLAIM s g b 0 1-0 IDLE x   => -ERR Invalid IDLE option argument for XCLAIM
        XCLAIM s g b 0 1-0 IDLE     => -ERR Unrecognized XCLAIM option 'IDLE'
        XCLAIM s no b 0 1-0         => -NOGROUP No such key 's' or consumer group 'no'
        XAUTOCLAIM s g c 0 0 COUNT 1 => ["3-0" [["2-0" ["f" "2"]]] []]
        XAUTOCLAIM s g c 0 3-0 JUSTID => ["0-0" ["3-0"] []]
        XAUTOCLAIM s g c 10 - COUNT 1 => ["0-0" [] []]
        XDEL s 2-0                  => :1
        XAUTOCLAIM s g d 0 -        => ["0-0" [["3-0" ["f" "3"]]] ["2-0"]]
        XAUTOCLAIM s g d 0 - COUNT 0 => -ERR COUNT must be > 0
        XAUTOCLAIM s g d 0 - NO     => -ERR syntax error
        XAUTOCLAIM s g d x -        => -ERR Invalid min-idle-time argument for XAUTOCLAIM
        XAUTOCLAIM no g d 0 -       => -NOGROUP No such key 'no' or consumer group 'g'
        XINFO GROUPS s              => [["name" "g" "consumers" :4 "pending" :1 "last-delivered-id" "9-0" "entries-read" :2 "lag" :1]]
        "#,
    );
}

/// Redis 8.10; the replies' lengths that MAXSIZE counts are those of the entries.
#[test]
fn several_streams_share_what_may_be_read() {
    check_on(
        &TestNode::new(),
        r#"
        XADD s 1-0 f a                  => "1-0"
        XADD s 2-0 f b                  => "2-0"
        XADD s 3-0 f c                  => "3-0"
        XADD t 1-0 f d                  => "1-0"
        XADD t 2-0 f e                  => "2-0"
        XREAD COUNT 2 MAXCOUNT 3 STREAMS s t 0 0 => [["s" [["1-0" ["f" "a"]] ["2-0" ["f" "b"]]]] ["t" [["1-0" ["f" "d"]]]]]
        XREAD MAXCOUNT 2 STREAMS s t 0 0 => [["s" [["1-0" ["f" "a"]] ["2-0" ["f" "b"]]]]]
        XREAD MAXCOUNT 5 STREAMS s t 1 1 => [["s" [["2-0" ["f" "b"]] ["3-0" ["f" "c"]]]] ["t" [["2-0" ["f" "e"]]]]]
        XREAD MAXSIZE 1 STREAMS s t 0 0 => [["s" [["1-0" ["f" "a"]]]]]
        XREAD MAXSIZE 61 STREAMS s t 0 0 => [["s" [["1-0" ["f" "a"]]]]]
        XREAD MAXSIZE 62 STREAMS s t 0 0 => [["s" [["1-0" ["f" "a"]] ["2-0" ["f" "b"]]]]]
        XREAD MAXSIZE 93 MAXCOUNT 2 STREAMS t s 0 2 => [["t" [["1-0" ["f" "d"]] ["2-0" ["f" "e"]]]]]
        XREAD MAXSIZE 93 STREAMS t s 0 2 => [["t" [["1-0" ["f" "d"]] ["2-0" ["f" "e"]]]] ["s" [["3-0" ["f" "c"]]]]]
        XREAD MAXCOUNT 0 STREAMS s 0    => -ERR value is out of range, must be positive
        XREAD MAXSIZE x STREAMS s 0     => -ERR value is out of range, must be positive
        XREAD MAXCOUNT STREAMS s 0      => -ERR value is out of range, must be positive
        COMMAND GETKEYS XREAD MAXCOUNT 3 MAXSIZE 4 STREAMS s t 0 0 => ["s" "t"]
        XGROUP CREATE s g 0             => +OK
        XGROUP CREATE t g 0             => +OK
        XREADGROUP GROUP g me COUNT 2 MAXCOUNT 3 STREAMS s t > > => [["s" [["1-0" ["f" "a"]] ["2-0" ["f" "b"]]]] ["t" [["1-0" ["f" "d"]]]]]
        XPENDING t g                    => [:1 "1-0" "1-0" [["me" "1"]]]
        # What was left over is delivered next, and no more than fits.
        XREADGROUP GROUP g me MAXSIZE 40 STREAMS s t > > => [["s" [["3-0" ["f" "c"]]]]]
        XREADGROUP GROUP g me MAXSIZE 40 STREAMS s t > > => [["t" [["2-0" ["f" "e"]]]]]
        XREADGROUP GROUP g me MAXSIZE 40 STREAMS s t > > => nil-array
        # What is pending: an empty list would mean that nothing is.
        XREADGROUP GROUP g me MAXCOUNT 3 STREAMS s t 0 0 => [["s" [["1-0" ["f" "a"]] ["2-0" ["f" "b"]] ["3-0" ["f" "c"]]]]]
        XREADGROUP GROUP g me MAXSIZE 40 STREAMS t s 1 0 => [["t" [["2-0" ["f" "e"]]]]]
        XREADGROUP GROUP g me MAXCOUNT 9 STREAMS s t 3 0 => [["s" []] ["t" [["1-0" ["f" "d"]] ["2-0" ["f" "e"]]]]]
        XPENDING s g - + 9 me           => [["1-0" "me" :0 :2] ["2-0" "me" :0 :2] ["3-0" "me" :0 :2]]
        XPENDING t g - + 9 me           => [["1-0" "me" :0 :2] ["2-0" "me" :0 :3]]
        @advance 50
        XREADGROUP GROUP g you MAXCOUNT 2 CLAIM 50 STREAMS s t > > => [["s" [["1-0" ["f" "a"] :50 :2] ["2-0" ["f" "b"] :50 :2]]]]
        XPENDING s g                    => [:3 "1-0" "3-0" [["me" "1"] ["you" "2"]]]
        XREADGROUP GROUP g you MAXSIZE 1 CLAIM 50 STREAMS s t > > => [["s" [["3-0" ["f" "c"] :50 :2]]]]
        "#,
    );
}

#[test]
fn entries_leave_with_their_references_or_stay_for_them() {
    check_on(
        &TestNode::new(),
        r#"
        XDELEX missing IDS 2 1-1 2-2 => [:-1 :-1]
        XACKDEL missing g IDS 1 1-1 => [:-1]
        XADD s 1-0 f 1              => "1-0"
        XADD s 2-0 f 2              => "2-0"
        XADD s 3-0 f 3              => "3-0"
        XADD s 4-0 f 4              => "4-0"
        XDELEX s ACKED IDS 1 1-0    => [:2]
        XACKDEL s g IDS 1 1-0       => [:-1]
        XGROUP CREATE s g 0         => +OK
        XGROUP CREATE s h 0         => +OK
        XREADGROUP GROUP g c COUNT 3 STREAMS s > => *
        XREADGROUP GROUP h c COUNT 2 STREAMS s > => *
        # Acknowledged by one group, pending in another or not yet delivered to it.
        XACK s g 1-0 3-0            => :2
        XDELEX s ACKED IDS 5 1-0 2-0 3-0 4-0 9-0 => [:2 :2 :2 :2 :-1]
        XACKDEL s h ACKED IDS 2 1-0 2-0 => [:1 :2]
        XACKDEL s h ACKED IDS 1 2-0 => [:-1]
        XRANGE s - +                => [["2-0" ["f" "2"]] ["3-0" ["f" "3"]] ["4-0" ["f" "4"]]]
        XACKDEL s g acked IDS 1 2-0 => [:1]
        # References that stay, and that go later.
        XREADGROUP GROUP h c STREAMS s > => *
        XREADGROUP GROUP g c STREAMS s > => *
        XDELEX s IDS 2 3-0 3-0 KEEPREF => [:1 :-1]
        XPENDING s h                => [:2 "3-0" "4-0" [["c" "2"]]]
        XDELEX s DELREF IDS 1 3-0   => [:-1]
        XPENDING s h                => [:1 "4-0" "4-0" [["c" "1"]]]
        XACKDEL s g DELREF IDS 1 4-0 => [:1]
        XPENDING s h                => [:0 nil nil nil-array]
        XPENDING s g                => [:0 nil nil nil-array]
        XLEN s                      => :0
        # One group acknowledges what another one removed.
        XADD s 5-0 f 5              => "5-0"
        XREADGROUP GROUP g c STREAMS s > => *
        XREADGROUP GROUP h c STREAMS s > => *
        XACKDEL s g KEEPREF IDS 1 5-0 => [:1]
        XPENDING s h                => [:1 "5-0" "5-0" [["c" "1"]]]
        XACKDEL s h IDS 1 5-0       => [:1]
        XPENDING s h                => [:0 nil nil nil-array]
        XINFO STREAM s              => ["length" :0 "radix-tree-keys" :0 "radix-tree-nodes" :1 "last-generated-id" "5-0" "max-deleted-entry-id" "5-0" "entries-added" :5 "recorded-first-entry-id" "0-0" "groups" :2 "first-entry" nil "last-entry" nil]
        "#,
    );
    check(
        r#"
        XDELEX s IDS 1              => -ERR wrong number of arguments for 'xdelex' command
        XDELEX s KEEPREF DELREF IDS 1 1-1 => -ERR syntax error
        XDELEX s IDS x 1-1          => -ERR Number of IDs must be a positive integer
        XDELEX s IDS 0 1-1          => -ERR Number of IDs must be a positive integer
        XDELEX s IDS -5 1-1         => -ERR Number of IDs must be a positive integer
        XDELEX s IDS 3 1-1 2-2      => -ERR The `numids` parameter must match the number of arguments
        XDELEX s IDS 1 1-1 2-2      => -ERR syntax error
        XDELEX s WHAT IDS 1 1-1     => -ERR syntax error
        XDELEX s IDS 2 1-1 x        => -ERR Invalid stream ID specified as stream command argument
        XACKDEL s g ACKED ACKED IDS 1 1-1 => -ERR syntax error
        XACKDEL s KEEPREF DELREF ACKED IDS => -ERR syntax error
        XACKDEL s g IDS 1 x         => -ERR Invalid stream ID specified as stream command argument
        SET string x                => +OK
        XDELEX string IDS 1 1-1     => -WRONGTYPE Operation against a key holding the wrong kind of value
        XACKDEL string g IDS 1 1-1  => -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn a_trim_spares_what_groups_need_or_removes_their_references() {
    check_on(
        &TestNode::new(),
        r#"
        XADD s 1-0 f 1              => "1-0"
        XADD s 2-0 f 2              => "2-0"
        XADD s 3-0 f 3              => "3-0"
        XADD s ACKED MAXLEN 3 4-0 f 4 => "4-0"
        XLEN s                      => :3
        XGROUP CREATE s g 0         => +OK
        XADD s MAXLEN = 1 ACKED 5-0 f 5 => "5-0"
        XLEN s                      => :4
        XREADGROUP GROUP g c COUNT 3 STREAMS s > => *
        XTRIM s MAXLEN 1 ACKED      => :0
        XACK s g 3-0                => :1
        XTRIM s MAXLEN 0 ACKED      => :1
        XRANGE s - + COUNT 2        => [["2-0" ["f" "2"]] ["4-0" ["f" "4"]]]
        XACK s g 2-0                => :1
        XTRIM s ACKED MINID 2       => :0
        XTRIM s ACKED MINID 9       => :1
        XRANGE s - +                => [["4-0" ["f" "4"]] ["5-0" ["f" "5"]]]
        XTRIM s MAXLEN 0 KEEPREF    => :2
        XPENDING s g                => [:1 "4-0" "4-0" [["c" "1"]]]
        XADD s 6-0 f 6              => "6-0"
        XADD s 7-0 f 7              => "7-0"
        XREADGROUP GROUP g c STREAMS s > => *
        XADD s DELREF MAXLEN 1 8-0 f 8 => "8-0"
        # What had gone before keeps its reference.
        XPENDING s g                => [:1 "4-0" "4-0" [["c" "1"]]]
        XLEN s                      => :1
        XTRIM s MAXLEN 0 DELREF KEEPREF => -ERR syntax error
        XADD s ACKED KEEPREF 9-0 f 9 => -ERR Invalid stream ID specified as stream command argument
        "#,
    );
}

/// However many entries are pending, a trim that spares them ends.
#[test]
fn a_trim_takes_no_more_than_so_many_looks() {
    const GROUPS: usize = 60;
    const ENTRIES: usize = 20_000;
    let node = TestNode::new();
    let mut script = String::new();
    for at in 0..GROUPS {
        script += &format!("XGROUP CREATE s g{at} 0 MKSTREAM => +OK\n");
    }
    for at in 1..=ENTRIES {
        script += &format!("XADD s {at}-0 f 1 => *\n");
    }
    for at in 0..GROUPS {
        script += &format!("XREADGROUP GROUP g{at} c STREAMS s > => *\n");
    }
    // The last ones are acknowledged, and too far away.
    for at in 0..GROUPS {
        script += &format!("XACK s g{at} {}-0 5-0 => :2\n", ENTRIES - 1);
    }
    check_on(&node, &(script + "XTRIM s MAXLEN 0 ACKED => :1"));
}

/// By the documentation and the tests of Redis 8.4.
#[test]
fn who_reads_claims_what_is_idle() {
    check(
        r#"
        XADD s 1-0 f 1              => "1-0"
        XADD s 2-0 f 2              => "2-0"
        XADD s 3-0 f 3              => "3-0"
        XADD s 4-0 f 4              => "4-0"
        XGROUP CREATE s g 0         => +OK
        XREADGROUP GROUP g a CLAIM 100 COUNT 1 STREAMS s >  =>> [["s" [["1-0" ["f" "1"] :0 :0]]]]
        @advance 60
        XREADGROUP GROUP g a COUNT 1 STREAMS s >            =>> [["s" [["2-0" ["f" "2"]]]]]
        @advance 50
        XREADGROUP GROUP g b CLAIM 100 COUNT 2 STREAMS s >  =>> [["s" [["1-0" ["f" "1"] :110 :1] ["3-0" ["f" "3"] :0 :0]]]]
        XPENDING s g - + 9          =>> [["1-0" "b" :0 :2] ["2-0" "a" :50 :1] ["3-0" "b" :0 :1]]
        XREADGROUP GROUP g c COUNT 9 CLAIM 10 NOACK STREAMS s > =>> [["s" [["2-0" ["f" "2"] :50 :1] ["4-0" ["f" "4"] :0 :0]]]]
        # NOACK is not about what is claimed.
        XPENDING s g - + 9          =>> [["1-0" "b" :0 :2] ["2-0" "c" :0 :2] ["3-0" "b" :0 :1]]
        XREADGROUP GROUP g c CLAIM 10 STREAMS s >           =>> nil-array
        @advance 10
        XCLAIM s g a 0 3-0 IDLE 1000 JUSTID                 =>> ["3-0"]
        # The oldest first, whatever the ids.
        XREADGROUP GROUP g d CLAIM 10 COUNT 2 STREAMS s >   =>> [["s" [["3-0" ["f" "3"] :1000 :1] ["1-0" ["f" "1"] :10 :2]]]]
        XREADGROUP GROUP g d CLAIM 10 STREAMS s >           =>> [["s" [["2-0" ["f" "2"] :10 :2]]]]
        XREADGROUP GROUP g d CLAIM 0 STREAMS s >            =>> [["s" [["1-0" ["f" "1"] :0 :3] ["2-0" ["f" "2"] :0 :3] ["3-0" ["f" "3"] :0 :2]]]]
        # What does not exist is no longer pending.
        XDEL s 1-0 3-0              =>> :2
        @advance 5
        XREADGROUP GROUP g e CLAIM 5 COUNT 1 STREAMS s >    =>> [["s" [["2-0" ["f" "2"] :5 :4]]]]
        XPENDING s g - + 9          =>> [["2-0" "e" :0 :5] ["3-0" "d" :5 :3]]
        # It says nothing where history is read.
        XREADGROUP GROUP g e CLAIM 0 STREAMS s 0            =>> [["s" [["2-0" ["f" "2"]]]]]
        XREADGROUP GROUP g e CLAIM 9223372036854775807 STREAMS s > =>> nil-array
        XREADGROUP CLAIM 0 GROUP g e STREAMS s >            =>> [["s" [["2-0" ["f" "2"] :0 :6]]]]
        XREADGROUP GROUP g e CLAIM -1 STREAMS s >           =>> -ERR min-idle-time must be a positive integer
        XREADGROUP GROUP g e CLAIM x STREAMS s >            =>> -ERR min-idle-time is not an integer
        XREADGROUP GROUP g e CLAIM -0 STREAMS s >           =>> -ERR min-idle-time is not an integer
        XREADGROUP GROUP g e CLAIM STREAMS s >              =>> -ERR min-idle-time is not an integer
        XREADGROUP GROUP none e CLAIM 1 STREAMS s >         =>> -NOGROUP No such key 's' or consumer group 'none' in XREADGROUP with GROUP option
        XREAD CLAIM 1 STREAMS s 0                           =>> -ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.
        COMMAND GETKEYS XREADGROUP GROUP g c CLAIM 5 STREAMS s t > > =>> ["s" "t"]
        "#,
    );
}

/// By the documentation of Redis 8.8.
#[test]
fn who_fails_gives_entries_back() {
    check(
        r#"
        XADD s 1-0 f 1              => "1-0"
        XADD s 2-0 f 2              => "2-0"
        XADD s 3-0 f 3              => "3-0"
        XADD s 4-0 f 4              => "4-0"
        XGROUP CREATE s g 0         => +OK
        XREADGROUP GROUP g a COUNT 3 STREAMS s > => *
        XNACK s g FAIL IDS 2 1-0 9-0            =>> :1
        XNACK s g silent ids 1 2-0              =>> :1
        XNACK s g FATAL IDS 1 3-0               =>> :1
        XPENDING s g - + 9          =>> [["1-0" "" :-1 :1] ["2-0" "" :-1 :0] ["3-0" "" :-1 :9223372036854775807]]
        XPENDING s g                =>> [:3 "1-0" "3-0" []]
        XPENDING s g - + 9 a        =>> []
        XINFO CONSUMERS s g         =>> [["name" "a" "pending" :0 "idle" :0 "inactive" :0]]
        XREADGROUP GROUP g a STREAMS s 0        =>> [["s" []]]
        XNACK s g SILENT IDS 1 2-0              =>> :1
        XNACK s g FAIL IDS 1 1-0 RETRYCOUNT 5   =>> :1
        XNACK s g FAIL IDS 1 4-0                =>> :0
        XNACK s g FAIL IDS 2 4-0 9-0 FORCE      =>> :1
        XPENDING s g - + 9          =>> [["1-0" "" :-1 :5] ["2-0" "" :-1 :0] ["3-0" "" :-1 :9223372036854775807] ["4-0" "" :-1 :0]]
        XINFO STREAM s FULL COUNT 1 =>> ["length" :4 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "4-0" "max-deleted-entry-id" "0-0" "entries-added" :4 "recorded-first-entry-id" "1-0" "entries" [["1-0" ["f" "1"]]] "groups" [["name" "g" "last-delivered-id" "3-0" "entries-read" :3 "lag" :1 "pel-count" :4 "pending" [["1-0" "" :0 :5]] "consumers" [["name" "a" "seen-time" :1700000000000 "active-time" :1700000000000 "pel-count" :0 "pending" []]] "nacked-count" :4]]]
        DEBUG RELOAD                => *
        # At once, however long it should have been idle.
        XREADGROUP GROUP g b CLAIM 1000000 COUNT 1 STREAMS s > =>> [["s" [["1-0" ["f" "1"] :1700000000000 :5]]]]
        XCLAIM s g c 1000000 2-0    =>> [["2-0" ["f" "2"]]]
        XAUTOCLAIM s g d 1000000 0 COUNT 1 JUSTID =>> ["4-0" ["3-0"] []]
        XACK s g 4-0                =>> :1
        XPENDING s g - + 9          =>> [["1-0" "b" :0 :6] ["2-0" "c" :0 :1] ["3-0" "d" :0 :9223372036854775807]]
        XNACK s g FAIL IDS 1 3-0    =>> :1
        XGROUP DELCONSUMER s g d    =>> :0
        XDEL s 3-0                  =>> :1
        XCLAIM s g c 0 3-0          =>> []
        XPENDING s g                =>> [:2 "1-0" "2-0" [["b" "1"] ["c" "1"]]]
        XNACK s none FAIL IDS 1 1-0 =>> -NOGROUP No such key 's' or consumer group 'none'
        XNACK none g FAIL IDS 1 1-0 =>> -NOGROUP No such key 'none' or consumer group 'g'
        XNACK s g LATER IDS 1 1-0   =>> -ERR syntax error
        XNACK s g FAIL 1 1-0 2-0    =>> -ERR syntax error
        XNACK s g FAIL IDS 0 1-0    =>> -ERR Number of IDs must be a positive integer
        XNACK s g FAIL IDS 99999999999 1-0 =>> -ERR The `numids` parameter must match the number of arguments
        XNACK s g FAIL IDS 1 1-0 2-0 =>> -ERR syntax error
        XNACK s g FAIL IDS 1 x      =>> -ERR Invalid stream ID specified as stream command argument
        XNACK s g FAIL IDS 1 1-0 RETRYCOUNT -1 =>> -ERR Invalid RETRYCOUNT option argument for XNACK
        XNACK s g FAIL IDS 1        =>> -ERR wrong number of arguments for 'xnack' command
        SET t x                     => +OK
        XNACK t g FAIL IDS 1 1-0    =>> -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn streams_are_copied_renamed_and_described() {
    check_on(
        &TestNode::new(),
        r#"
        XADD s 1-0 f 1              => "1-0"
        XGROUP CREATE s g 0         => +OK
        XREADGROUP GROUP g a STREAMS s > => *
        COPY s t                    => :1
        RENAME s u                  => +OK
        XTRIM u MAXLEN 0            => :1
        XINFO STREAM t FULL         => ["length" :1 "radix-tree-keys" :1 "radix-tree-nodes" :2 "last-generated-id" "1-0" "max-deleted-entry-id" "0-0" "entries-added" :1 "recorded-first-entry-id" "1-0" "entries" [["1-0" ["f" "1"]]] "groups" [["name" "g" "last-delivered-id" "1-0" "entries-read" :1 "lag" :0 "pel-count" :1 "pending" [["1-0" "a" :1700000000000 :1]] "consumers" [["name" "a" "seen-time" :1700000000000 "active-time" :1700000000000 "pel-count" :1 "pending" [["1-0" :1700000000000 :1]]]]]]]
        COPY u v                    => :1
        XINFO STREAM v              => ["length" :0 "radix-tree-keys" :0 "radix-tree-nodes" :1 "last-generated-id" "1-0" "max-deleted-entry-id" "0-0" "entries-added" :1 "recorded-first-entry-id" "0-0" "groups" :1 "first-entry" nil "last-entry" nil]
        XINFO STREAM v FULL COUNT   => -ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
        SCAN 0 TYPE stream COUNT 100 => *
        EXPIRE u 0                  => :1
        EXISTS u                    => :0
        "#,
    );
}

#[test]
fn what_groups_do_is_no_change_for_those_who_watch() {
    check(
        r#"
        XADD s 1-0 f 1              => "1-0"
        XGROUP CREATE s g 0         => +OK
        WATCH s                     => +OK
        @client 2
        XREADGROUP GROUP g c STREAMS s > => *
        XACK s g 1-0                => :1
        @client 1
        MULTI                       => +OK
        PING                        => +QUEUED
        EXEC                        => [+PONG]
        WATCH s                     => +OK
        @client 2
        XDEL s 1-0                  => :1
        @client 1
        MULTI                       => +OK
        PING                        => +QUEUED
        EXEC                        => nil-array
        "#,
    );
}
