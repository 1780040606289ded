//! Layers, lines and refusals.

use super::*;
use crate::{Endpoint, Id, SavePoint};
use ladon_record::Gate;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

fn write(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn conf(text: &str) -> Result<(Settings, Vec<Note>), LoadError> {
    let directory = TempDir::new().unwrap();
    let path = write(&directory, "redis.conf", text);
    let mut loader = Loader::new();
    loader.redis_conf(&path);
    loader.finish()
}

/// The line numbers of a result's problems or warnings.
fn lines(notes: &[Note]) -> Vec<usize> {
    let line = |note: &Note| match note.origin {
        Origin::RedisConf { line, .. } | Origin::File { line, .. } => line,
        _ => 0,
    };
    notes.iter().map(line).collect()
}

#[test]
fn later_layers_win_and_every_value_knows_its_origin() {
    let directory = TempDir::new().unwrap();
    let toml = write(
        &directory,
        "ladon.toml",
        "# mine\nmaxmemory = \"1gb\"\ntimeout = 5\nlatency-tracking = false\n\
         save = [[900, 1], [60, 10000]]\nresp = [\"[::1]:7000\", \"unix:/s\"]\n",
    );
    let conf = write(&directory, "redis.conf", "timeout 6\nmaxclients 7\n");
    let mut loader = Loader::new();
    loader.toml_file(&toml);
    loader.redis_conf(&conf);
    loader.flag("maxclients", "8");
    let (settings, warnings) = loader.finish().unwrap();
    assert_eq!(warnings, []);
    assert_eq!((settings.maxmemory(), settings.timeout(), settings.maxclients()), (1 << 30, 6, 8));
    assert!(!settings.latency_tracking());
    let point = |seconds, changes| SavePoint { after: Duration::from_secs(seconds), changes };
    assert_eq!(settings.save(), [point(900, 1), point(60, 10000)]);
    assert_eq!(settings.port(), 7000);
    assert_eq!(settings.resp()[1], Endpoint::Unix("/s".into()));
    assert_eq!(settings.origin("maxmemory"), Some(Origin::File { path: toml.clone(), line: 2 }));
    assert_eq!(settings.origin("unixsocket"), Some(Origin::File { path: toml, line: 6 }));
    assert_eq!(settings.origin("timeout"), Some(Origin::RedisConf { path: conf, line: 1 }));
    assert_eq!(settings.origin("maxclients").unwrap().to_string(), "--maxclients");
}

#[test]
fn all_problems_of_a_toml_file_are_named_with_their_lines() {
    let directory = TempDir::new().unwrap();
    let text = "gate = \"sometimes\"\nnosuch = 1\ntimeout = 1979-05-27\n[section]\n";
    let path = write(&directory, "ladon.toml", text);
    let mut loader = Loader::new();
    loader.toml_file(&path);
    loader.toml_file(&write(&directory, "bad.toml", "\n= 3"));
    loader.toml_file(Path::new("/nonexistent/ladon.toml"));
    let error = loader.finish().unwrap_err();
    assert_eq!(lines(&error.problems), [1, 2, 3, 4, 2, 0]);
    assert!(error.to_string().contains("there is no setting 'nosuch'"), "{error}");
}

#[test]
fn redis_conf_lines_apply() {
    let (settings, warnings) = conf(
        "# comment\n\nbind 127.0.0.1 -::1\nport 7001\nsave 900 1\nSAVE 300 10 60 10000\n\
         appendonly yes\nappendfsync always\nclient-output-buffer-limit normal 1mb 2mb 3\n\
         requirepass \"two words\"\nmaxmemory 100mb\nunixsocketperm 700\ncluster-enabled no\n\
         replicaof no one\nlatency-tracking-info-percentiles 50 99\n",
    )
    .unwrap();
    assert_eq!(warnings, []);
    assert_eq!(settings.gate(), Gate::Fsync);
    assert_eq!(settings.value(Id::save), "900 1 300 10 60 10000");
    assert_eq!(settings.value(Id::resp), "127.0.0.1:7001 -[::1]:7001");
    assert_eq!(*settings.requirepass(), "two words");
    assert_eq!(settings.unixsocketperm(), 0o700);
    assert_eq!(settings.client_output_buffer_limit()[0].soft_bytes, 2 << 20);
    assert_eq!(settings.client_output_buffer_limit()[1].hard_bytes, 256 << 20);
}

#[test]
fn save_lines_add_up_and_the_empty_one_forgets() {
    let save = |text| conf(text).unwrap().0.value(Id::save);
    assert_eq!(save("save 900 1\nsave \"\"\n"), "");
    assert_eq!(save("save \"\"\nsave 900 1\n"), "900 1");
    assert!(conf("save 900\n").is_err());
}

#[test]
fn appendonly_no_is_said_aloud() {
    let (settings, warnings) = conf("appendfsync always\nappendonly no\n").unwrap();
    assert_eq!(settings.gate(), Gate::None);
    assert_eq!(lines(&warnings), [2]);
}

#[test]
fn harmless_lines_warn_and_broken_promises_stop_the_start() {
    let (_, warnings) = conf(
        "daemonize yes\npidfile /x\nlist-max-ziplist-entries 512\nlazyfree-lazy-expire no\n\
         tls-port 0\ndynamic-hz yes\ntls-dh-params-file /x\n",
    )
    .unwrap();
    assert_eq!(lines(&warnings), [1, 2, 3, 4, 6, 7]);
    assert_eq!(lines_for_log(&warnings).len(), 1, "all in one line");

    let promises = [
        "replica-read-only no",
        "rename-command FLUSHALL \"\"",
        "loadmodule /x.so",
        "tls-auth-clients maybe",
        "maxmemory-policy allkeys-fifo",
        "notify-keyspace-events KEy",
        "sentinel monitor m 10.0.0.1 6379 2",
        "aof-load-truncated no",
        "nosuch 1",
        "maxmemory lots",
        "port",
        "requirepass \"x",
    ];
    // A promise that is kept is accepted, even if it refuses every write.
    let (settings, _) = conf("min-replicas-to-write 1\n").unwrap();
    assert_eq!(settings.min_replicas_to_write(), 1);
    let error = conf(&promises.join("\n")).unwrap_err();
    assert_eq!(lines(&error.problems), Vec::from_iter(1..=promises.len()));
}

#[test]
fn whom_a_replica_follows_is_a_host_and_a_port() {
    let (settings, _) = conf("replicaof 10.0.0.1 6379\nmasterauth word\n").unwrap();
    assert_eq!(
        (settings.replicaof().as_str(), settings.masterauth().as_str()),
        ("10.0.0.1 6379", "word")
    );
    settings.note(Id::replicaof, "").unwrap();
    assert_eq!(settings.value(Id::replicaof), "");
    assert!(conf("replicaof 10.0.0.1\n").is_err());
    assert!(conf("slaveof a 1\ncluster-enabled yes\n").is_err());
}

#[test]
fn users_are_kept_with_their_lines() {
    let (settings, _) = conf("aclfile /x.acl\nuser bob on \"~a b\" +@all\n\nUSER alice\n").unwrap();
    assert_eq!(settings.aclfile(), "/x.acl");
    let lines = settings.user_lines().iter().map(|line| line.words.join("|"));
    assert_eq!(lines.collect::<Vec<_>>(), ["bob|on|~a b|+@all", "alice"]);
    assert!(settings.user_lines()[1].origin.to_string().ends_with(":4"));
    assert_eq!(lines_of_error("user\n"), [1]);
}

fn lines_of_error(text: &str) -> Vec<usize> {
    lines(&conf(text).unwrap_err().problems)
}

#[test]
fn the_file_that_debian_ships_is_accepted_with_warnings() {
    let text = include_str!("../../tests/debian_redis_7.0.15.conf");
    let (settings, warnings) = conf(text).unwrap();
    assert_eq!(settings.value(Id::resp), "127.0.0.1:6379 -[::1]:6379");
    assert_eq!(settings.data(), "/var/lib/redis");
    assert_eq!(settings.gate(), Gate::None);
    // Every line is either applied or named: here are the applied ones.
    let named = lines(&warnings);
    let applied: Vec<&str> = text
        .lines()
        .enumerate()
        .filter(|(index, _)| !named.contains(&(index + 1)))
        .filter_map(|(_, line)| line.split(' ').next().filter(|name| *name != "#"))
        .collect();
    assert_eq!(
        applied.join(" "),
        "bind protected-mode port tcp-backlog timeout tcp-keepalive loglevel databases dir \
         replica-serve-stale-data replica-read-only acllog-max-len appendfsync no-appendfsync-on-rewrite auto-aof-rewrite-percentage \
         auto-aof-rewrite-min-size aof-load-truncated slowlog-log-slower-than slowlog-max-len \
         latency-monitor-threshold notify-keyspace-events hash-max-listpack-entries \
         hash-max-listpack-value list-max-listpack-size list-compress-depth \
         set-max-intset-entries zset-max-listpack-entries \
         zset-max-listpack-value hll-sparse-max-bytes stream-node-max-bytes \
         stream-node-max-entries \
         client-output-buffer-limit client-output-buffer-limit client-output-buffer-limit hz"
    );
}

#[test]
fn includes_are_followed_in_order_and_not_forever() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    write(&directory, "b.inc", "timeout 2\n");
    write(&directory, "a.inc", "timeout 1\nmaxclients 5\n");
    let main = write(&directory, "main.conf", &format!("include {}\nport 9\n", at("*.inc")));
    let mut loader = Loader::new();
    loader.redis_conf(&main);
    let (settings, _) = loader.finish().unwrap();
    assert_eq!((settings.timeout(), settings.maxclients(), settings.port()), (2, 5, 9));
    assert!(settings.origin("timeout").unwrap().to_string().ends_with("b.inc:1"));

    let own = write(&directory, "own.conf", &format!("include {}\n", at("own.conf")));
    let mut loader = Loader::new();
    loader.redis_conf(&own);
    assert_eq!(lines(&loader.finish().unwrap_err().problems), [1]);
}

#[test]
fn the_data_of_a_redis_is_not_ignored_silently() {
    let directory = TempDir::new().unwrap();
    write(&directory, "dump.rdb", "REDIS0011");
    let (_, warnings) = conf(&format!("dir {}\n", directory.path().display())).unwrap();
    assert_eq!(lines(&warnings), [1]);
    assert!(warnings[0].text.contains("dump.rdb"));
}

#[test]
fn secrets_are_not_repeated_in_messages() {
    let error = conf("requirepass hunter2 hunter2\n").unwrap_err();
    assert!(!error.to_string().contains("hunter2"));
    assert!(!format!("{:?}", conf("requirepass hunter2\n").unwrap().0).contains("hunter2"));
}

#[test]
fn rewriting_keeps_a_redis_conf_and_updates_its_lines() {
    let directory = TempDir::new().unwrap();
    let text = "# mine\nmaxmemory 1gb\nsave 900 1\n# between\nsave 300 10\npidfile /x\n\
                appendonly no\nlazyfree-lazy-expire no\n";
    let path = write(&directory, "redis.conf", text);
    let load = |path: &Path| {
        let mut loader = Loader::new();
        loader.redis_conf(path);
        loader.finish().unwrap().0
    };
    let settings = load(&path);
    settings
        .set_many(&[
            ("maxmemory", "2gb"),
            ("save", "60 1 30 2"),
            ("appendonly", "yes"),
            ("appendfsync", "always"),
            ("requirepass", "a b"),
            ("client-output-buffer-limit", "normal 1 2 3"),
            ("slowlog-max-len", "5"),
        ])
        .unwrap();
    settings.rewrite(&[]).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "# mine\nmaxmemory 2gb\nsave 60 1\nsave 30 2\n# between\npidfile /x\n\
         appendonly yes\nlazyfree-lazy-expire no\n# Generated by CONFIG REWRITE\n\
         requirepass \"a b\"\nclient-output-buffer-limit normal 1 2 3\n\
         client-output-buffer-limit slave 268435456 67108864 60\n\
         client-output-buffer-limit pubsub 33554432 8388608 60\nappendfsync always\n\
         slowlog-max-len 5\n"
    );
    let again = load(&path);
    assert_eq!(again.get(&["*"]), settings.get(&["*"]));
    let before = fs::read_to_string(&path).unwrap();
    again.rewrite(&[]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn rewriting_keeps_a_toml_file_and_updates_its_keys() {
    let directory = TempDir::new().unwrap();
    let text = "# mine\ntimeout = 5 # seconds\n\n# the gate\ngate = \"write\"\n";
    let path = write(&directory, "ladon.toml", text);
    let mut loader = Loader::new();
    loader.toml_file(&path);
    loader.flag("port", "7");
    let settings = loader.finish().unwrap().0;
    let pairs = [("gate", "fsync"), ("timeout", "6"), ("maxmemory", "2gb"), ("save", "60 1")];
    settings.set_many(&pairs).unwrap();
    settings.rewrite(&[]).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "# mine\ntimeout = 6 # seconds\n\n# the gate\ngate = \"fsync\"\n\
         resp = [\"127.0.0.1:7\"]\nsave = \"60 1\"\nmaxmemory = \"2gb\"\n"
    );
    let mut loader = Loader::new();
    loader.toml_file(&path);
    assert_eq!(loader.finish().unwrap().0.get(&["*"]), settings.get(&["*"]));
}

#[test]
fn rewriting_without_a_file_fails_in_redis_words() {
    let error = Settings::new().rewrite(&[]).unwrap_err();
    assert_eq!(error.to_string(), "The server is running without a config file");
    let directory = TempDir::new().unwrap();
    let path = write(&directory, "redis.conf", "");
    let mut loader = Loader::new();
    loader.redis_conf(&path);
    let settings = loader.finish().unwrap().0;
    drop(directory);
    let error = settings.rewrite(&[]).unwrap_err().to_string();
    assert!(error.starts_with("Rewriting config file: "), "{error}");
}
