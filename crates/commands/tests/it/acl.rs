//! Users and rights, as commands see them.

use crate::common::check;

#[test]
fn a_user_may_do_what_its_rules_say() {
    check(
        r#"
        ACL SETUSER bob on >pw ~cart:* %R~ro:* %W~wo:* &news:* +@read +@write +@connection -del => +OK
        SET ro:1 one            => +OK
        AUTH bob wrong          => -WRONGPASS invalid username-password pair or user is disabled.
        AUTH bob pw             => +OK
        ACL WHOAMI              => -NOPERM User bob has no permissions to run the 'acl|whoami' command
        GET cart:1              => nil
        SET cart:1 1            => +OK
        GET other               => -NOPERM No permissions to access a key
        DEL cart:1              => -NOPERM User bob has no permissions to run the 'del' command
        GET ro:1                => "one"
        SET ro:1 two            => -NOPERM No permissions to access a key
        SET wo:1 1              => +OK
        SET wo:1 1 GET          => -NOPERM No permissions to access a key
        COPY ro:1 wo:2          => :1
        COPY wo:2 cart:2        => -NOPERM No permissions to access a key
        COPY ro:1 ro:2          => -NOPERM No permissions to access a key
        BITFIELD ro:1 GET u8 0  => [:111]
        BITFIELD ro:1 SET u8 0 1 => -NOPERM No permissions to access a key
        MGET cart:1 ro:1 wo:1   => -NOPERM No permissions to access a key
        RENAME cart:1 wo:3      => +OK
        PUBLISH news:1 hello    => -NOPERM User bob has no permissions to run the 'publish' command
        "#,
    );
}

#[test]
fn keys_that_options_name_are_asked_for() {
    check(
        r#"
        ACL SETUSER bob on nopass ~in:* %W~out:* +@all => +OK
        RPUSH in:list 2 1       => :2
        AUTH bob x              => +OK
        SORT in:list STORE out:1 => :2
        SORT in:list STORE other => -NOPERM No permissions to access a key
        SORT in:list STORE out:1 STORE other => -NOPERM No permissions to access a key
        SORT in:list GET in:*   => -ERR GET option of SORT denied due to insufficient ACL permissions.
        SORT in:list BY w_*     => -ERR BY option of SORT denied due to insufficient ACL permissions.
        SORT in:list BY nosort  => ["2" "1"]
        GEOADD in:geo 1 1 a     => :1
        GEORADIUS in:geo 1 1 10 km STORE out:2 => :1
        GEORADIUS in:geo 1 1 10 km STORE other => -NOPERM No permissions to access a key
        GEORADIUS in:geo 1 1 10 km STOREDIST other => -NOPERM No permissions to access a key
        GEOSEARCHSTORE other in:geo FROMMEMBER a BYRADIUS 1 km => -NOPERM No permissions to access a key
        BITOP AND out:3 in:a in:b => :0
        BITOP AND out:3 in:a other => -NOPERM No permissions to access a key
        BITOP AND other in:a in:b => -NOPERM No permissions to access a key
        ZUNIONSTORE out:4 2 in:a in:b => :0
        ZUNIONSTORE out:4 2 in:a other => -NOPERM No permissions to access a key
        ZUNIONSTORE out:4 2 in:a out:4 => -NOPERM No permissions to access a key
        SINTERSTORE other in:a  => -NOPERM No permissions to access a key
        XADD in:s 1-1 f v       => "1-1"
        XGROUP CREATE in:s g 0  => +OK
        XGROUP CREATE other g 0 MKSTREAM => -NOPERM No permissions to access a key
        XREADGROUP GROUP g c STREAMS other > => -NOPERM No permissions to access a key
        XREAD STREAMS in:s other 0 0 => -NOPERM No permissions to access a key
        LMPOP 2 in:a other LEFT => -NOPERM No permissions to access a key
        EVAL "return 1" 1 other => -NOPERM No permissions to access a key
        OBJECT ENCODING other   => -NOPERM No permissions to access a key
        "#,
    );
}

#[test]
fn scripts_and_transactions_run_with_the_users_rights() {
    check(
        r#"
        ACL SETUSER bob on nopass ~in:* +@all -incr -config => +OK
        AUTH bob x              => +OK
        EVAL "return redis.call('get', 'in:1')" 0 => nil
        EVAL "return redis.call('get', 'other')" 0 => -ERR ACL failure in script: No permissions to access a key script: 51c16fd9e83aad88324dbcdf6b1984449c17ff29, on @user_script:1.
        EVAL "return redis.pcall('incr', 'in:1')['err']" 0 => "ERR ACL failure in script: User bob has no permissions to run the \'incr\' command"
        EVAL "return redis.acl_check_cmd('get', 'in:1')" 0 => :1
        EVAL "return redis.acl_check_cmd('get', 'other')" 0 => nil
        EVAL "return redis.acl_check_cmd('incr', 'in:1')" 0 => nil
        EVAL "return redis.acl_check_cmd('config', 'get', 'x')" 0 => nil
        MULTI                   => +OK
        SET in:1 1              => +QUEUED
        SET other 1             => -NOPERM No permissions to access a key
        EXEC                    => -EXECABORT Transaction discarded because of previous errors.
        MULTI                   => +OK
        SET in:1 1              => +QUEUED
        ACL SETUSER bob resetkeys => +QUEUED
        EXEC                    => [+OK +OK]
        SET in:1 1              => -NOPERM No permissions to access a key
        "#,
    );
}

#[test]
fn databases_can_be_limited() {
    check(
        r#"
        ACL SETUSER bob on nopass ~* +@all db=0,1 => +OK
        AUTH bob x              => +OK
        SET a 1                 => +OK
        SELECT 2                => -NOPERM No permissions to access database
        SELECT 1                => +OK
        SET a 1                 => +OK
        MOVE a 2                => -NOPERM No permissions to access database
        COPY a b DB 2           => -NOPERM No permissions to access database
        COPY a b DB 0           => :1
        SWAPDB 0 2              => -NOPERM No permissions to access database
        SWAPDB 0 1              => +OK
        FLUSHALL                => -NOPERM No permissions to access database
        DBSIZE                  => :2
        FLUSHDB                 => +OK
        PING                    => +PONG
        ACL GETUSER bob         => ["flags" ["on" "nopass" "sanitize-payload"] "passwords" [] "commands" "+@all" "keys" "~*" "channels" "" "databases" "db=0,1" "selectors" []]
        "#,
    );
}

#[test]
fn users_are_managed() {
    check(
        r#"
        ACL USERS               => ["default"]
        ACL LIST                => ["user default on nopass sanitize-payload ~* &* +@all"]
        ACL SETUSER "a b" on    => -ERR Usernames can't contain spaces or null characters
        ACL SETUSER bob on >x +nosuch => -ERR Error in ACL SETUSER modifier '+nosuch': Unknown command or category name in ACL
        ACL GETUSER bob         => nil
        ACL SETUSER bob on >x ~a (~b +get) => +OK
        ACL LIST                => ["user bob on sanitize-payload #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 ~a resetchannels -@all (~b resetchannels -@all +get)" "user default on nopass sanitize-payload ~* &* +@all"]
        ACL DRYRUN bob get a    => "User bob has no permissions to access the \'a\' key"
        ACL DRYRUN bob get b    => +OK
        ACL DRYRUN bob set b 1  => "User bob has no permissions to run the \'set\' command"
        ACL DRYRUN nobody get b => -ERR User 'nobody' not found
        ACL DRYRUN bob nosuch   => -ERR Command 'nosuch' not found
        ACL DRYRUN bob get      => -ERR wrong number of arguments for 'get' command
        ACL DELUSER default     => -ERR The 'default' user cannot be removed
        ACL DELUSER bob nobody  => :1
        ACL USERS               => ["default"]
        ACL GENPASS x           => -ERR value is not an integer or out of range
        ACL GENPASS 0           => -ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096
        ACL LOAD                => -ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis configuration.
        CLIENT KILL USER nobody => -ERR No such user 'nobody'
        "#,
    );
}

#[test]
fn the_default_user_is_the_one_with_requirepass() {
    check(
        r#"
        AUTH x                  => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
        AUTH default x          => +OK
        CONFIG SET requirepass secret => +OK
        AUTH wrong              => -WRONGPASS invalid username-password pair or user is disabled.
        PING                    => +PONG
        RESET                   => +RESET
        PING                    => -NOAUTH Authentication required.
        AUTH secret             => +OK
        ACL SETUSER default >other => +OK
        AUTH other              => +OK
        ACL SETUSER default off => +OK
        PING                    => +PONG
        AUTH other              => -WRONGPASS invalid username-password pair or user is disabled.
        ACL SETUSER default on nopass => +OK
        RESET                   => +RESET
        PING                    => +PONG
        "#,
    );
}

#[test]
fn broadcasts_of_changed_keys_are_for_those_who_may_read_them() {
    check(
        r#"
        ACL SETUSER bob on nopass ~cart:* %W~wo:* +@all => +OK
        AUTH bob x              => +OK
        HELLO 3 SETNAME b       => {"server": "redis", "version": "7.2.4", "proto": :3, "id": :1, "mode": "standalone", "role": "master", "modules": []}
        CLIENT TRACKING on BCAST => -NOPERM No permissions to access a key
        CLIENT TRACKING on BCAST PREFIX cart => -NOPERM No permissions to access a key
        CLIENT TRACKING on BCAST PREFIX wo:1 => -NOPERM No permissions to access a key
        CLIENT TRACKING on BCAST PREFIX cart:1 => +OK
        "#,
    );
}
