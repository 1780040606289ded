//! `ladon space`: lists, creates, alters and drops spaces and indexes of a running server, by the
//! tuples of its system spaces, as a connector would.

pub mod client;
mod definition;

use crate::exit::Exit;
use crate::output;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use client::{Client, ClientError};
use definition::{Field, IndexOptions, Part, SpaceRow};
use std::path::PathBuf;

/// The user's password, if no other place has it.
const PASSWORD_VARIABLE: &str = "LADON_IPROTO_PASSWORD";

/// The command line.
pub fn command() -> Command {
    let fields = || {
        Arg::new("field")
            .long("field")
            .value_name("NAME:TYPE")
            .action(ArgAction::Append)
            .value_parser(Field::parse)
            .help("A field of the format, in order; a `?` at the end lets it be nil")
    };
    Command::new("space")
        .about("List, create, alter, mount and drop spaces of a running server")
        .subcommand_required(true)
        .arg(
            Arg::new("iproto")
                .long("iproto")
                .value_name("HOST:PORT")
                .default_value("127.0.0.1:3301")
                .help("Where the server listens for IPROTO"),
        )
        .args(login_arguments())
        .subcommand(Command::new("list").about("Print every space with its format and indexes"))
        .subcommand(
            Command::new("create")
                .about("Create a space, without indexes")
                .arg(name("name", "The space's name"))
                .arg(fields()),
        )
        .subcommand(index_command())
        .subcommand(
            Command::new("alter")
                .about("Rename a space, or give it another format")
                .arg(name("space", "The space's name"))
                .arg(Arg::new("name").long("name").value_name("NAME").help("The new name"))
                .arg(fields()),
        )
        .subcommand(
            Command::new("mount")
                .about("Make a space's tuples hashes under keys with a prefix, in database 0")
                .arg(name("space", "The space's name"))
                .arg(name("prefix", "What the keys begin with, as in user:")),
        )
        .subcommand(
            Command::new("unmount")
                .about("Take a space's tuples out of the keys; they stay in the space")
                .arg(name("space", "The space's name")),
        )
        .subcommand(
            Command::new("drop")
                .about("Remove a space with its indexes and tuples")
                .arg(name("space", "The space's name")),
        )
}

/// Who logs in, and the password.
pub fn login_arguments() -> [Arg; 2] {
    let user = Arg::new("user").long("user").default_value("admin").help("Who to log in as");
    let password = Arg::new("password-file")
        .long("password-file")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("The file with the password; otherwise LADON_IPROTO_PASSWORD has it");
    [user, password]
}

/// Connects to a server, and logs in as [`login_arguments`] say.
///
/// # Errors
/// Why there is no connection.
pub fn log_in(matches: &ArgMatches, address: &str) -> Result<Client, ClientError> {
    log_in_over(matches, || Client::connect(address))
}

/// As [`log_in`], over a connection that this opens.
///
/// # Errors
/// Why there is none, or the login is refused.
pub fn log_in_over(
    matches: &ArgMatches,
    connect: impl FnOnce() -> Result<Client, ClientError>,
) -> Result<Client, ClientError> {
    let password = match matches.get_one::<PathBuf>("password-file") {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| ClientError::Password(path.display().to_string(), error))?
            .trim_end_matches(['\r', '\n'])
            .to_owned(),
        None => std::env::var(PASSWORD_VARIABLE).unwrap_or_default(),
    };
    let mut client = connect()?;
    let user = matches.get_one::<String>("user").cloned().unwrap_or_default();
    if user != "guest" || !password.is_empty() {
        client.log_in(&user, &password)?;
    }
    Ok(client)
}

fn name(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id).required(true).help(help)
}

fn index_command() -> Command {
    Command::new("index")
        .about("Create an index; a space's first one is its primary key")
        .arg(name("space", "The space's name"))
        .arg(name("name", "The index's name"))
        .arg(
            Arg::new("part")
                .long("part")
                .value_name("FIELD:TYPE")
                .action(ArgAction::Append)
                .required(true)
                .value_parser(Part::parse)
                .help(
                    "A part of the key: a field's name or its number from 1 on, and its type, with \
                     ? behind it if it may be nil. A path may follow the field, as in \
                     tags[*]:string",
                ),
        )
        .arg(
            Arg::new("kind")
                .long("kind")
                .value_name("KIND")
                .default_value("tree")
                .help("tree, hash, bitset or rtree; the last two are not unique"),
        )
        .arg(
            Arg::new("dimension")
                .long("dimension")
                .value_name("NUMBER")
                .value_parser(value_parser!(u64))
                .help("How many dimensions an rtree index has, 1 to 20"),
        )
        .arg(
            Arg::new("distance")
                .long("distance")
                .value_name("DISTANCE")
                .help("Which distance an rtree index orders neighbors by: euclid or manhattan"),
        )
        .arg(
            Arg::new("not-unique")
                .long("not-unique")
                .action(ArgAction::SetTrue)
                .help("Several tuples may have the same key"),
        )
}

/// Runs `ladon space`.
pub fn run(matches: &ArgMatches) -> Exit {
    match work(matches) {
        Ok(lines) => {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            output::with_stdout(|out| out.write_all(text.as_bytes())).err().unwrap_or(Exit::Ok)
        }
        Err(error) => {
            eprintln!("ladon: {error}");
            Exit::Refused
        }
    }
}

fn work(matches: &ArgMatches) -> Result<Vec<String>, ClientError> {
    let text = |of: &ArgMatches, id: &str| of.get_one::<String>(id).cloned().unwrap_or_default();
    let mut client = log_in(matches, &text(matches, "iproto"))?;
    let (action, its) = matches.subcommand().unwrap_or(("list", matches));
    match action {
        "create" => {
            let id = client.next_space_id()?;
            let fields = its.get_many::<Field>("field").into_iter().flatten();
            let name = text(its, "name");
            client.create_space(id, &name, &fields.cloned().collect::<Vec<_>>())?;
            Ok(vec![format!("created space {id} '{name}'")])
        }
        "index" => {
            let space = client.space_named(&text(its, "space"))?;
            let parts: Vec<Part> = its.get_many("part").into_iter().flatten().cloned().collect();
            let kind = text(its, "kind");
            let is_ordered = !matches!(&kind.to_ascii_lowercase()[..], "bitset" | "rtree");
            let options = IndexOptions {
                is_unique: is_ordered && !its.get_flag("not-unique"),
                kind,
                dimension: its.get_one("dimension").copied(),
                distance: its.get_one("distance").cloned(),
            };
            let id = client.next_index_id(&space)?;
            let name = text(its, "name");
            client.create_index(&space, id, &name, &options, &parts)?;
            Ok(vec![format!("created index {id} '{name}' of space '{}'", space.name)])
        }
        "alter" => {
            let space = client.space_named(&text(its, "space"))?;
            let fields: Option<Vec<Field>> =
                its.get_many("field").map(|fields| fields.cloned().collect());
            client.alter_space(&space, its.get_one::<String>("name"), fields.as_deref())?;
            Ok(vec![format!("altered space '{}'", space.name)])
        }
        "mount" => {
            let space = client.space_named(&text(its, "space"))?;
            let prefix = text(its, "prefix");
            client.mount(&space, Some(&prefix))?;
            Ok(vec![format!("mounted space '{}' under '{prefix}'", space.name)])
        }
        "unmount" => {
            let space = client.space_named(&text(its, "space"))?;
            let Some(prefix) = space.prefix() else {
                return Err(ClientError::NotMounted(space.name));
            };
            client.mount(&space, None)?;
            Ok(vec![format!("space '{}' is no longer mounted under '{prefix}'", space.name)])
        }
        "drop" => {
            let space = client.space_named(&text(its, "space"))?;
            client.drop_space(&space)?;
            Ok(vec![format!("dropped space '{}'", space.name)])
        }
        _ => list(&mut client),
    }
}

fn list(client: &mut Client) -> Result<Vec<String>, ClientError> {
    let mut lines = Vec::new();
    for space in client.spaces()? {
        let SpaceRow { id, name, engine, fields, .. } = &space;
        lines.push(format!("{id} {name} ({engine}) {}", fields.join(", ")));
        if let Some(prefix) = space.prefix() {
            lines.push(format!("    mounted under '{prefix}'"));
        }
        for index in client.indexes_of(&space)? {
            lines.push(format!("    {index}"));
        }
    }
    if lines.is_empty() {
        lines.push("no spaces; `ladon space create NAME` makes one".to_owned());
    }
    Ok(lines)
}
