//! `ladon config`: the effective settings, each with its origin.

use crate::cli;
use crate::exit::Exit;
use crate::output::with_stdout;
use clap::ArgMatches;
use ladon_settings::{Settings, markdown};
use serde_json::{Map, Value, json};

/// Prints the settings that a server with the same arguments would have.
pub fn run(matches: &ArgMatches) -> Exit {
    let text = if matches.get_flag("markdown") {
        markdown::document()
    } else {
        let settings = match cli::load(matches) {
            Ok((settings, notes)) => {
                notes.iter().for_each(|note| eprintln!("{note}"));
                settings
            }
            Err(error) => {
                eprintln!("{error}");
                return Exit::Usage;
            }
        };
        match matches.get_flag("json") {
            true => format!("{:#}\n", as_json(&settings)),
            false => settings.to_toml(),
        }
    };
    with_stdout(|out| out.write_all(text.as_bytes())).err().unwrap_or(Exit::Ok)
}

/// `{"NAME": {"value": "TEXT", "origin": "TEXT"}, ...}`; a secret's value is null.
fn as_json(settings: &Settings) -> Value {
    let rows = settings.effective().into_iter().map(|setting| {
        let row = json!({ "value": setting.value, "origin": setting.origin.to_string() });
        (setting.name.to_owned(), row)
    });
    Value::Object(rows.collect::<Map<_, _>>())
}
