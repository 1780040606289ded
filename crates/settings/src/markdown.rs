//! `docs/settings.md`, made from the tables.

use crate::directives::DIRECTIVES;
use crate::kind::{Kind, Unlike};
use crate::setting::{Setting, When};
use crate::table::{CORES, TABLE};

const INTRODUCTION: &str = "\
# Settings

<!-- Made by `ladon config --markdown`; `./fix` brings it up to date. -->

Every setting is a flag (`--maxmemory 2gb`), a key of Ladon's TOML file (`--config FILE`), a line
of an existing redis.conf (`--redis-conf FILE`), a variable of the environment
(`LADON_MAXMEMORY=2gb`) and a name for `CONFIG GET` and `CONFIG SET`. Later ones of these win over
earlier ones: default, TOML file, redis.conf, environment, flag, `CONFIG SET`. A variable that ends
in `_FILE` names a file with the value: `LADON_REQUIREPASS_FILE=/run/secrets/password`.
`ladon config` prints what is in force and where each value came from.

Sizes are bytes, or take a unit as in Redis: `k`, `m`, `g` are powers of 1000, `kb`, `mb`, `gb`
powers of 1024. Truth is `yes` or `no` (in TOML also `true` and `false`).

```toml
resp = [\"127.0.0.1:6379\", \"unix:/run/ladon/ladon.sock\"]
data = \"/var/lib/ladon\"
gate = \"fsync\"
maxmemory = \"2gb\"
save = [[900, 1], [60, 10000]]
```

";

const AFTER_TABLES: &str = "\
## appendonly, appendfsync and the gate

Ladon has one setting for how safe a reply is, the gate. Redis' two are other words for it, in
both directions, in files as well as on the running server:

| `appendonly` | `appendfsync` | `gate` | a reply leaves when the changes that it shows are |
|---|---|---|---|
| `no` | any | `none` | in memory; the log is still written, in the background |
| `yes` | `no` | `write` | handed to the system |
| `yes` | `everysec` | `everysec` | handed to the system; on the disk within about a second |
| `yes` | `always` | `fsync` | on the disk |

`appendonly no` in a redis.conf is therefore the gate `none`: what Redis promises there, snapshots
from time to time, is kept and more, but it is laxer than what Ladon does without a file, so the
start says so. While `appendonly` is `no`, `appendfsync` only says what `appendonly yes` will mean.

## redis.conf

`include` is followed. What is a setting above is applied. Other directives of Redis 7.2 are named
with their line at the start: a warning where nobody is worse off, an error that stops the start
where somebody may rely on what Ladon does not do. Unknown directives and values that cannot be
read stop it too. A server's log names all lines without effect at once; `ladon config --redis-conf
FILE` says of each why.

| directive | without effect | otherwise | because |
|---|---|---|---|
";

/// The whole document.
pub fn document() -> String {
    let mut out = INTRODUCTION.to_owned();
    let mut section = "";
    for setting in TABLE {
        if setting.section != section {
            section = setting.section;
            out.push_str(&format!("## {section}\n\n"));
            out.push_str("| setting | is | default | changes | meaning |\n|---|---|---|---|---|\n");
        }
        out.push_str(&row(setting));
        let next = TABLE.get(setting.id as usize + 1);
        if next.is_none_or(|next| next.section != section) {
            out.push('\n');
        }
    }
    out.push_str(AFTER_TABLES);
    for directive in DIRECTIVES {
        let names: Vec<String> = directive.names.iter().map(|name| code(name)).collect();
        let nothing = directive.nothing.map_or(String::new(), code);
        let otherwise = match directive.unlike {
            Unlike::Harmless => "warning",
            Unlike::Promise => "error",
        };
        let reason = directive.reason;
        out.push_str(&format!("| {} | {nothing} | {otherwise} | {reason} |\n", names.join(", ")));
    }
    out
}

fn row(setting: &Setting) -> String {
    let names: Vec<String> = setting.names().map(code).collect();
    let kind = match setting.kind {
        Kind::Choice(choices) => {
            choices.iter().map(|word| code(word)).collect::<Vec<_>>().join(", ")
        }
        kind => kind.describe(),
    };
    let default = match setting.default {
        CORES => "one per core that the process may use".to_owned(),
        default => code(default),
    };
    let when = match setting.when {
        _ if matches!(setting.kind, Kind::Fixed { .. }) => "never",
        When::Live | When::Apply => "live",
        When::Start | When::Restart => "at start",
    };
    let mut meaning = setting.doc.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    if let Kind::Fixed { unlike, reason } = setting.kind {
        let conf = match unlike {
            Unlike::Harmless => "a warning",
            Unlike::Promise => "an error",
        };
        meaning
            .push_str(&format!(" No choice: {reason}. Anything else in a redis.conf is {conf}."));
    }
    format!("| {} | {kind} | {default} | {when} | {meaning} |\n", names.join(", "))
}

fn code(text: &str) -> String {
    match text {
        "" => "empty".to_owned(),
        text => format!("`{text}`"),
    }
}
