//! What `box.cfg` says, as settings of the server
//! (<https://www.tarantool.io/en/doc/latest/reference/configuration/>).

use ladon_app::Setting;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder, in Tarantool's own, that has the log and the checkpoints.
const FOLDER: &str = "ladon";

/// Options that mean nothing here, and are named in the log when they are set.
const WITHOUT_MEANING: &[&str] = &[
    "checkpoint_count",
    "checkpoint_wal_threshold",
    "coredump",
    "custom_proc_title",
    "feedback_crashinfo",
    "feedback_enabled",
    "feedback_host",
    "feedback_interval",
    "feedback_send_metrics",
    "force_recovery",
    "hot_standby",
    "instance_uuid",
    "io_collect_interval",
    "iproto_threads",
    "log_format",
    "log_nonblock",
    "memtx_allocator",
    "memtx_max_tuple_size",
    "memtx_min_tuple_size",
    "memtx_use_mvcc_engine",
    "net_msg_max",
    "readahead",
    "replicaset_uuid",
    "rows_per_wal",
    "slab_alloc_factor",
    "snap_io_rate_limit",
    "sql_cache_size",
    "strip_core",
    "too_long_threshold",
    "username",
    "wal_cleanup_delay",
    "wal_dir_rescan_delay",
    "wal_max_size",
    "worker_pool_threads",
];

/// What options come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The server's settings.
    pub(super) settings: Vec<(String, String)>,
    /// The folder that the program works in.
    pub(super) work_dir: Option<PathBuf>,
    /// Folders that have to be there.
    pub(super) folders: Vec<PathBuf>,
    /// The file that gets the process' number.
    pub(super) pid_file: Option<PathBuf>,
    /// The server to follow, as `HOST PORT`; empty for none.
    pub(super) follows: Option<String>,
    /// How long the first `box.cfg` waits for what it follows.
    pub(super) connect_timeout: Option<Duration>,
    /// Options that mean nothing here.
    pub(super) without_meaning: Vec<String>,
}

/// Translates options.
///
/// # Errors
/// The option that cannot be had, and why.
pub(super) fn translate(options: &[(String, Setting)]) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    let mut folder = None;
    for (name, value) in options {
        let set = |wanted: &mut Wanted, to: &str, value: String| {
            wanted.settings.push((to.to_owned(), value));
        };
        match name.as_str() {
            "listen" => set(&mut wanted, "iproto", address(value)),
            "work_dir" => wanted.work_dir = Some(text(value).into()),
            "memtx_dir" | "wal_dir" => {
                let text = text(value);
                wanted.folders.push(text.clone().into());
                folder = Some(text);
            }
            "vinyl_dir" => {}
            "pid_file" => wanted.pid_file = Some(text(value).into()),
            "wal_mode" => set(&mut wanted, "gate", gate(value)?.to_owned()),
            "memtx_memory" => set(&mut wanted, "maxmemory", whole(value)),
            "checkpoint_interval" => set(&mut wanted, "checkpoint-interval", interval(value)),
            "log" => set(&mut wanted, "logfile", log_file(value)?),
            "log_level" => set(&mut wanted, "loglevel", log_level(value)?.to_owned()),
            "background" if *value == Setting::Switch(true) => {
                return Err(refused(name, "a supervisor (systemd) runs it in the background"));
            }
            "background" => {}
            "replication" => wanted.follows = Some(text(value)),
            "replication_connect_timeout" => wanted.connect_timeout = seconds(value),
            "read_only" => {
                let is_on = *value == Setting::Switch(true);
                set(&mut wanted, "read-only", if is_on { "yes" } else { "no" }.to_owned());
            }
            _ if WITHOUT_MEANING.contains(&name.as_str()) || is_of_others(name) => {
                wanted.without_meaning.push(name.clone());
            }
            _ => return Err(refused(name, "unexpected option")),
        }
    }
    if let Some(folder) = folder {
        wanted.settings.push(("data".to_owned(), in_folder(Path::new(&folder))));
    }
    Ok(wanted)
}

/// The data's folder inside of one of Tarantool's.
pub(super) fn in_folder(folder: &Path) -> String {
    folder.join(FOLDER).to_string_lossy().into_owned()
}

/// Options of vinyl, which is kept in memory here, and of replication, which a cluster has settings
/// of its own for.
fn is_of_others(name: &str) -> bool {
    ["vinyl_", "replication_", "election_"].iter().any(|of| name.starts_with(of))
}

pub(super) fn refused(name: &str, why: &str) -> String {
    format!("Incorrect value for option '{name}': {why}")
}

fn text(value: &Setting) -> String {
    match value {
        Setting::Text(text) => text.clone(),
        Setting::Number(number) if number.fract() == 0.0 => format!("{number:.0}"),
        Setting::Number(number) => number.to_string(),
        Setting::Switch(is_on) => is_on.to_string(),
    }
}

/// As [`text`]; of a number, such as 0.1 * 1024^3, what is whole.
fn whole(value: &Setting) -> String {
    match value {
        Setting::Number(number) => format!("{:.0}", number.trunc()),
        value => text(value),
    }
}

fn seconds(value: &Setting) -> Option<Duration> {
    match value {
        Setting::Number(number) => Duration::try_from_secs_f64(*number).ok(),
        Setting::Text(_) | Setting::Switch(_) => None,
    }
}

/// Seconds; none at all for less than 0.
fn interval(value: &Setting) -> String {
    match value {
        Setting::Number(number) => format!("{:.0}", number.max(0.0).trunc()),
        value => text(value),
    }
}

/// An address: a port, `host:port`, `unix/:/path`, or a path.
fn address(value: &Setting) -> String {
    let text = text(value);
    if let Some(path) = text.strip_prefix("unix/:") {
        return format!("unix:{path}");
    }
    if text.starts_with('/') || text.starts_with("./") {
        return format!("unix:{text}");
    }
    match text.parse::<u16>() {
        Ok(port) => format!("0.0.0.0:{port}"),
        Err(_) => text.replace("*:", "0.0.0.0:"),
    }
}

fn gate(value: &Setting) -> Result<&'static str, String> {
    match text(value).as_str() {
        "none" => Ok("none"),
        "write" => Ok("write"),
        "fsync" | "fsync_delay" => Ok("fsync"),
        other => Err(refused("wal_mode", other)),
    }
}

fn log_file(value: &Setting) -> Result<String, String> {
    let text = text(value);
    if text.starts_with('|') || text.starts_with("pipe:") || text.starts_with("syslog:") {
        return Err(refused("log", "a file, or nothing for the standard error output"));
    }
    Ok(text.strip_prefix("file:").unwrap_or(&text).to_owned())
}

fn log_level(value: &Setting) -> Result<&'static str, String> {
    let text = match value {
        Setting::Number(number) => format!("{:.0}", number.trunc().clamp(0.0, 7.0)),
        value => text(value),
    };
    Ok(match text.as_str() {
        "0" | "1" | "2" | "3" | "4" | "fatal" | "syserror" | "error" | "crit" | "warn" => "warning",
        "5" | "info" => "notice",
        "6" | "verbose" => "verbose",
        "7" | "debug" => "debug",
        other => return Err(refused("log_level", other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &[(&str, Setting)]) -> Result<Vec<(String, String)>, String> {
        let options: Vec<_> =
            options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        translate(&options).map(|wanted| wanted.settings)
    }

    #[test]
    fn addresses_are_those_of_tarantool() {
        for (given, listens) in [
            (Setting::Number(3301.0), "0.0.0.0:3301"),
            (Setting::Text("3301".into()), "0.0.0.0:3301"),
            (Setting::Text("127.0.0.1:3301".into()), "127.0.0.1:3301"),
            (Setting::Text("*:3301".into()), "0.0.0.0:3301"),
            (Setting::Text("unix/:/tmp/a.sock".into()), "unix:/tmp/a.sock"),
            (Setting::Text("/tmp/a.sock".into()), "unix:/tmp/a.sock"),
        ] {
            assert_eq!(settings(&[("listen", given)]), Ok(vec![("iproto".into(), listens.into())]));
        }
    }

    #[test]
    fn a_number_of_bytes_need_not_be_whole() {
        let tenth = Setting::Number(0.1 * f64::from(1 << 30));
        let wanted = settings(&[("memtx_memory", tenth)]);
        assert_eq!(wanted, Ok(vec![("maxmemory".into(), "107374182".into())]));
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_name() {
        for (name, value) in [
            ("background", Setting::Switch(true)),
            ("wal_mode", Setting::Text("later".into())),
            ("log", Setting::Text("|cronolog".into())),
            ("nosuch", Setting::Number(1.0)),
        ] {
            let refused = settings(&[(name, value)]).expect_err(name);
            assert!(refused.contains(name), "{refused}");
        }
        assert_eq!(settings(&[("background", Setting::Switch(false))]), Ok(vec![]));
        let followed = Setting::Text("127.0.0.1 6379".into());
        let options = [
            ("replication".to_owned(), followed),
            ("replication_connect_timeout".to_owned(), Setting::Number(0.5)),
        ];
        let wanted = translate(&options).expect("options");
        assert_eq!(wanted.follows.as_deref(), Some("127.0.0.1 6379"));
        assert_eq!(wanted.connect_timeout, Some(Duration::from_millis(500)));
        for (given, set) in [(true, "yes"), (false, "no")] {
            let wanted = settings(&[("read_only", Setting::Switch(given))]);
            assert_eq!(wanted, Ok(vec![("read-only".into(), set.into())]));
        }
    }
}
