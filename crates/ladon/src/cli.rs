//! The command line, made from the table of settings.

use crate::exit;
use clap::builder::NonEmptyStringValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use ladon_settings::kind::Kind;
use ladon_settings::{LoadError, Loader, Note, Setting, Settings, TABLE};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The whole command line.
pub fn command() -> Command {
    let command = Command::new("ladon")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A durable, multi-core in-memory database that speaks Redis' protocol")
        .after_help(exit::HELP)
        .args_conflicts_with_subcommands(true);
    with_settings(command)
        .subcommand(with_settings(
            Command::new("serve").about("Run the server (what `ladon` alone does, too)"),
        ))
        .subcommand(
            with_settings(
                Command::new("config").about("Print the effective settings and their origins"),
            )
            .arg(switch("json", "As one JSON object").conflicts_with("markdown"))
            .arg(switch("markdown", "The documentation of every setting instead")),
        )
        .subcommand(
            Command::new("check").about("Verify a data directory without a server").arg(dir()),
        )
        .subcommand(
            Command::new("dump")
                .about("Print the checkpoints and the log of a data directory")
                .arg(dir())
                .arg(switch("json", "As JSON lines, with values in full")),
        )
        .subcommand(backup_command())
        .subcommand(restore_command())
        .subcommand(import_command())
        .subcommand(export_command())
        .subcommand(ping_command())
        .subcommand(crate::cluster::command())
        .subcommand(crate::space::command())
        .subcommand(crate::sql::command())
        .subcommand(crate::console::command())
        .subcommand(with_settings(crate::program::command()))
        .subcommand(crate::cli_files::completions_command())
        .subcommand(crate::cli_files::man_command())
        .subcommand(Command::new("version").about("Print the version"))
}

fn dir() -> Arg {
    let path = value_parser!(PathBuf);
    Arg::new("dir").value_name("DIR").required(true).value_parser(path).help("The data directory")
}

fn backup_command() -> Command {
    let about = "Copy all data of a running server, the one that these settings describe or another, \
                 to a folder, while it serves";
    let path = value_parser!(PathBuf);
    let dir = Arg::new("dir").value_name("DIR").required(true).value_parser(path);
    let command = Command::new("backup").about(about).arg(dir.help("The new folder"));
    let help = "The server, if it is not the one that the settings describe";
    with_settings(with_server(command, "from", help)).arg(switch(
        "checkpoint",
        "Make a checkpoint first, so that there is less log to copy and to replay",
    ))
}

fn restore_command() -> Command {
    let path = value_parser!(PathBuf);
    let dir = Arg::new("dir").value_name("DIR").required(true).value_parser(path.clone());
    let to = Arg::new("to").long("to").value_name("DIR").required(true).value_parser(path);
    Command::new("restore")
        .about("Make a data directory out of a backup, after a check of every byte")
        .arg(dir.help("The backup"))
        .arg(to.help("The new data directory"))
}

fn import_command() -> Command {
    let help = "A file of RDB, a file of commands, or a folder as Redis' appendonlydir";
    let about = "Fill a fresh data directory, or a running server, from the files of a Redis or \
                 Valkey server";
    let command = with_server(Command::new("import").about(about).arg(file(help)), "into", INSTEAD);
    with_settings(login_requires(command, "into"))
        .arg(switch("replace", "Replace what the running server has already").requires("into"))
}

fn export_command() -> Command {
    let about = "Write a data directory that no server uses, or the data of a running server, to a \
                 file of RDB";
    let version = Arg::new("rdb-version")
        .long("rdb-version")
        .value_name("N")
        .value_parser(["9", "10", "11", "12", "80"])
        .default_value("10")
        .help(
            "The file's version: 9 for Redis 5, 10 for 7.0, 11 for 7.2, 12 for 7.4, and newer \
             ones of each; 80 for Valkey 9",
        );
    let online = Arg::new("online")
        .long("online")
        .value_name("HOW")
        .value_parser(["snapshot", "scan"])
        .requires("from")
        .help(
            "How a running server is read. snapshot (the default): as of one moment; its files are \
             fetched and loaded here, which takes the memory of its data and the disk of a backup. \
             scan: key by key, each as of its own moment, without either",
        );
    let command = Command::new("export").about(about).arg(file("The new file")).arg(version);
    let command = command.arg(online);
    with_settings(login_requires(with_server(command, "from", INSTEAD), "from"))
}

const INSTEAD: &str = "A running server, in place of a data directory";

/// Where there is no server without this argument.
fn login_requires(command: Command, name: &'static str) -> Command {
    ["user", "password-file"]
        .iter()
        .chain(&crate::cli_tls::NAMES)
        .fold(command, |command, login| command.mut_arg(login, |argument| argument.requires(name)))
}

fn ping_command() -> Command {
    let about = "Ask the server that these settings describe whether it answers: a health check";
    let command = Command::new("ping").about(about).after_help(
        "A server that listens with TLS only is asked with TLS, even without --tls. Without --cacert \
         it has to show the certificate of its settings (tls-cert-file), or one of their \
         authorities, for whatever name.",
    );
    with_settings(crate::cli_tls::with_tls(command))
}

fn file(help: &'static str) -> Arg {
    let path = value_parser!(PathBuf);
    Arg::new("file").value_name("FILE").required(true).value_parser(path).help(help)
}

/// Adds how a running server is reached.
fn with_server(command: Command, name: &'static str, help: &'static str) -> Command {
    let server = Arg::new(name).long(name).value_name("HOST:PORT|unix:PATH").help(help);
    with_login(command.arg(server))
}

/// Adds who to log in as at a running server, and how TLS is spoken.
pub fn with_login(command: Command) -> Command {
    let password = "The file with the password; otherwise LADON_PASSWORD has it";
    crate::cli_tls::with_tls(command)
        .arg(Arg::new("user").long("user").value_name("NAME").help("Who to log in as"))
        .arg(
            Arg::new("password-file")
                .long("password-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help(password),
        )
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Adds the files and a flag for every setting.
fn with_settings(command: Command) -> Command {
    let file = |name: &'static str, help: &'static str| {
        let path = value_parser!(PathBuf);
        Arg::new(name).long(name).value_name("FILE").value_parser(path).help(help)
    };
    command
        .arg(file("config", "Settings in TOML; flags win over it"))
        .arg(file("redis-conf", "An existing redis.conf; wins over --config, flags win over it"))
        .args(TABLE.iter().map(flag))
}

fn flag(setting: &'static Setting) -> Arg {
    let default = match setting.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let choices = match setting.kind {
        Kind::Text => String::new(),
        kind => format!(" ({})", kind.describe()),
    };
    let doc = setting.doc.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let flag = Arg::new(setting.name)
        .long(setting.name)
        .visible_aliases(setting.aliases.iter().copied())
        .value_name("VALUE")
        .allow_hyphen_values(true)
        .help(format!("{doc}{choices}{default}"))
        .help_heading(setting.section)
        // A flag that could only repeat a fixed value would clutter the help.
        .hide(matches!(setting.kind, Kind::Fixed { .. }) || setting.part_of.is_some());
    match setting.kind {
        // `--resp A --resp B` is the same as `--resp A,B`.
        Kind::Endpoints => {
            flag.action(ArgAction::Append).value_parser(NonEmptyStringValueParser::new())
        }
        // As in Redis: said twice, the last one counts.
        _ => flag.overrides_with(setting.name),
    }
}

/// What somebody wanted who gave the program a file, as other servers take it.
pub fn hint(error: &clap::Error) -> Option<String> {
    let given = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let given = given.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(given)) => Some(given),
        _ => None,
    })?;
    if given.starts_with('-') {
        return None;
    }
    match Path::new(given).extension().and_then(OsStr::to_str) {
        Some("lua") => {
            Some(format!("for a Lua program written for Tarantool: ladon tarantool {given}"))
        }
        Some("toml") => Some(format!("settings in TOML: ladon serve --config {given}")),
        Some("conf") => Some(format!("for a redis.conf: ladon serve --redis-conf {given}")),
        _ if Path::new(given).is_dir() => {
            Some(format!("for a data directory: ladon serve --data {given}"))
        }
        _ if Path::new(given).is_file() => Some(format!(
            "for a redis.conf: ladon serve --redis-conf {given}; for settings in TOML: ladon serve \
             --config {given}"
        )),
        _ => None,
    }
}

/// The settings of a command line with its files, and the notes about them.
pub fn load(matches: &ArgMatches) -> Result<(Settings, Vec<Note>), LoadError> {
    load_with(matches, &[])
}

/// The same, with others that win.
pub fn load_with(
    matches: &ArgMatches,
    others: &[(String, String)],
) -> Result<(Settings, Vec<Note>), LoadError> {
    let mut loader = Loader::new();
    if let Some(path) = matches.get_one::<PathBuf>("config") {
        loader.toml_file(path);
    }
    if let Some(path) = matches.get_one::<PathBuf>("redis-conf") {
        loader.redis_conf(path);
    }
    loader.environment(std::env::vars_os().filter_map(|(name, value)| {
        // What is not UTF-8 is no setting of ours.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    }));
    // In the order of the command line, so that of two that say the same the later wins.
    let mut flags: Vec<(usize, &str, String)> = Vec::new();
    for setting in TABLE {
        let Some(values) = matches.get_many::<String>(setting.name) else { continue };
        let last = matches.indices_of(setting.name).and_then(Iterator::last).unwrap_or(0);
        flags.push((last, setting.name, values.cloned().collect::<Vec<_>>().join(" ")));
    }
    flags.sort_unstable();
    for (_, name, value) in &flags {
        loader.flag(name, value);
    }
    for (name, value) in others {
        loader.flag(name, value);
    }
    loader.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_file_alone_gets_a_hint() {
        let hint = |arguments: &[&str]| {
            let error = command().try_get_matches_from(arguments).expect_err("a bad command line");
            hint(&error)
        };
        let wanted = "for a redis.conf: ladon serve --redis-conf /etc/redis/redis.conf";
        for arguments in [
            &["ladon", "/etc/redis/redis.conf"][..],
            &["ladon", "/etc/redis/redis.conf", "--port", "7000"],
            &["ladon", "serve", "/etc/redis/redis.conf"],
        ] {
            assert_eq!(hint(arguments).as_deref(), Some(wanted), "{arguments:?}");
        }
        assert!(
            hint(&["ladon", "init.lua"]).is_some_and(|it| it.contains("ladon tarantool init.lua"))
        );
        assert!(hint(&["ladon", "my.toml"]).is_some_and(|it| it.contains("--config my.toml")));
        assert_eq!(hint(&["ladon", "--nosuch"]), None);
        assert_eq!(hint(&["ladon", "nosuch"]), None);
    }

    #[track_caller]
    fn check(arguments: &[&str], name: &str, expected: &str) {
        let matches = command().try_get_matches_from(arguments).expect("a good command line");
        let matches = matches.subcommand().map_or(&matches, |(_, matches)| matches);
        let (settings, _) = load(matches).expect("good settings");
        assert_eq!(settings.get(&[name])[0].1, expected);
    }

    #[test]
    fn flags_become_settings() {
        check(&["ladon"], "gate", "everysec");
        check(&["ladon", "--gate", "write"], "gate", "write");
        check(&["ladon", "serve", "--gate", "none"], "gate", "none");
        check(&["ladon", "config", "--gate", "fsync"], "appendfsync", "always");
        check(
            &["ladon", "config", "--resp", "a:1", "--resp", "unix:/s,b:2"],
            "resp",
            "a:1 unix:/s b:2",
        );
        check(&["ladon", "config", "--port", "7"], "resp", "127.0.0.1:7");
        check(&["ladon", "--port", "7", "--port", "8"], "port", "8");
        check(
            &["ladon", "config", "--slowlog-log-slower-than", "-1"],
            "slowlog-log-slower-than",
            "-1",
        );
        check(&["ladon", "config", "--appendonly", "no", "--gate", "write"], "gate", "write");
        check(&["ladon", "config", "--gate", "write", "--appendonly", "no"], "gate", "none");
        check(&["ladon", "config", "--dir", "/x"], "data", "/x");
        check(&["ladon", "config", "--save", ""], "save", "");
    }
}
