//! Errors' texts, with script and line.

use crate::host::{check, eval};

#[test]
fn an_error_names_the_script_and_the_line() {
    check(
        &[
            ("error('x')", "-ERR user_script:1: x script: SHA, on @user_script:1.|"),
            ("\n\nerror('x')", "-ERR user_script:3: x script: SHA, on @user_script:3.|"),
            ("error({err = 'MY own'})", "-MY own script: SHA, on @user_script:1.|"),
            (
                "return redis.call('nothing')",
                "-ERR unknown command script: SHA, on @user_script:1.|",
            ),
            (
                "\nreturn redis.call()",
                "-ERR Please specify at least one argument for this redis lib call script: SHA, \
                 on @user_script:2.|",
            ),
            (
                "return foo",
                "-ERR user_script:1: Script attempted to access nonexistent global variable \
                 'foo' script: SHA, on @user_script:1.|",
            ),
            (
                "local x = nil + 1",
                "-ERR user_script:1: attempt to perform arithmetic on a nil value script: SHA, \
                 on @user_script:1.|",
            ),
            ("#!lua\nerror('x')", "-ERR user_script:2: x script: SHA, on @user_script:2.|"),
        ],
        eval,
    );
}

#[test]
fn an_error_can_be_caught_and_read() {
    check(
        &[
            ("return redis.pcall('nothing')", "-ERR unknown command|"),
            ("return redis.pcall('nothing').err", "$19|ERR unknown command|"),
            (
                "local ok, e = pcall(redis.call, 'nothing') return {tostring(ok), e}",
                "*2|$5|false|$19|ERR unknown command|",
            ),
            ("local ok, e = pcall(error, {err=5, x=1}) return e", ":5|"),
            ("local ok, e = pcall(error, {err={}}) return type(e)", "$5|table|"),
            ("local t = {err='x'} return select(2, pcall(function() return t end)) == t", ":1|"),
            ("return {pcall(function() return false, {err='x'}, 3 end)}", "*4|:1|$-1|-x|:3|"),
            ("return select('#', pcall(function() return nil, nil end))", ":3|"),
            (
                "pcall()",
                "-ERR user_script:1: bad argument #1 to 'pcall' (value expected) script: SHA, on @user_script:1.|",
            ),
            ("local ok, e = pcall(error, 'x') return e", "$1|x|"),
            ("local ok, e = pcall(error, {1, 2}) return e", "*2|:1|:2|"),
        ],
        eval,
    );
}

#[test]
fn a_script_that_does_not_compile_says_where() {
    let text = eval("\nreturn (");
    assert!(
        text.starts_with("-ERR Error compiling script (new function): user_script:2: "),
        "{text}"
    );
    assert!(eval("\x1bLJ\x02").contains("bytecode is not accepted"));
    let text = eval("#\nreturn 1");
    assert!(text.contains("user_script:1: unexpected symbol near '#'"), "{text}");
}
