//! `docs/compat/resp.md`: what of Redis 7.2's commands works, made from the command table.

mod names;
mod notes;

use crate::families;
use names::REDIS_7_2;
use notes::NOTES;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Redis' commands in Ladon

<!-- Made from the command table; `./fix` brings it up to date. -->

Every command and subcommand of Redis 7.2, with what Ladon makes of it: **works** as in Redis,
**partly** (with what is missing), or absent. An absent command, and an option that is not
supported, is answered with an error, never with an OK that means nothing.

";

/// What stands in the table of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Works,
    Partly,
    Absent,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Works => "works",
            Status::Partly => "partly",
            Status::Absent => "absent",
        }
    }
}

/// The whole document.
pub fn document() -> String {
    let table = families::table();
    let mut text = INTRODUCTION.to_owned();
    let all = || REDIS_7_2.iter().flat_map(|(_, names)| names.iter());
    let count = |wanted| all().filter(|name| status_of(name) == wanted).count();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "Of {} commands and subcommands, {} work, {} work partly and {} are absent.\n",
        all().count(),
        count(Status::Works),
        count(Status::Partly),
        count(Status::Absent)
    );
    for (group, names) in REDIS_7_2 {
        if names.iter().all(|name| status_of(name) == Status::Absent) {
            continue;
        }
        heading(&mut text, group);
        for name in *names {
            row(&mut text, name, status_of(name).word());
        }
    }
    heading(&mut text, "Ladon's own");
    for (_, entry) in table.iter() {
        if !all().any(|name| *name == entry.full_name) {
            row(&mut text, &entry.full_name, Status::Works.word());
        }
    }
    text += "\n## Absent families\n\nLadon does not have these yet; their commands are unknown to it.\n\n";
    for (group, names) in REDIS_7_2 {
        if names.iter().all(|name| status_of(name) == Status::Absent) {
            let names: Vec<String> = names.iter().map(|name| shown(name)).collect();
            let _ = writeln!(text, "- **{}**: {}", title(group), names.join(", "));
        }
    }
    text
}

fn status_of(name: &str) -> Status {
    if families::table().find_full(name.as_bytes()).is_none() {
        return Status::Absent;
    }
    let is_noted = NOTES.iter().any(|note| note.name == name && note.partly);
    if is_noted || lacks_subcommands(name) { Status::Partly } else { Status::Works }
}

fn lacks_subcommands(name: &str) -> bool {
    let mut all = REDIS_7_2.iter().flat_map(|(_, names)| names.iter());
    all.any(|other| {
        other.split_once('|').is_some_and(|(container, _)| container == name)
            && status_of(other) == Status::Absent
    })
}

fn heading(text: &mut String, group: &str) {
    let gap = if text.ends_with("\n\n") { "" } else { "\n" };
    let _ = writeln!(text, "{gap}## {}\n\n| Command | | |\n|---|---|---|", title(group));
}

fn row(text: &mut String, name: &str, status: &str) {
    let note = NOTES.iter().find(|note| note.name == name);
    let note = note.map_or("", |note| note.text).replace('|', "\\|");
    let _ = writeln!(text, "| {} | {status} | {note} |", shown(name));
}

/// `CLIENT KILL`, as code.
fn shown(name: &str) -> String {
    format!("`{}`", name.to_uppercase().replace('|', " "))
}

fn title(group: &str) -> String {
    let mut letters = group.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_about_a_command_that_is_there() {
        for note in NOTES {
            let found = families::table().find_full(note.name.as_bytes());
            assert!(found.is_some(), "{}", note.name);
            assert!(note.text.ends_with('.'), "{}", note.name);
        }
    }

    #[test]
    fn names_are_there_once() {
        let mut seen = std::collections::HashSet::new();
        for name in REDIS_7_2.iter().flat_map(|(_, names)| names.iter()) {
            assert!(seen.insert(name), "{name} twice");
        }
        assert_eq!(status_of("get"), Status::Works);
        assert_eq!(status_of("xadd"), Status::Absent);
        assert_eq!(status_of("debug"), Status::Partly);
    }
}
