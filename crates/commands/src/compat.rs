//! `docs/compat/resp.md`: which of Redis 7.2's commands work, generated from the command table.

use crate::families;
use ladon_command_docs::CommandDoc;
use std::fmt::Write;

const INTRODUCTION: &str = "\
# Redis' commands in Ladon

<!-- Made from the command table; `./fix` brings it up to date. -->

Every command and subcommand of Redis 7.2, with what Ladon makes of it: **works** as in Redis,
**partly** (with what is missing), or absent. An absent command, and an option that is not
supported, is answered with an error, never with an OK that means nothing.

";

/// What newer versions added to the families that Ladon has.
const NEWER_AND_ABSENT: &str = "
## Newer than Redis 7.2, and absent

Of what Redis up to 8.12 and Valkey up to 9.2 added to the families above, Ladon does not have:

- **Hashes**: `HIMPORT` (Redis 8.10). **Bitmaps**: `BITRANGEINTARRAY` and roaring bitmaps (Redis 8.12).
- **Server**: `BACKUP` and the additional field of `SLOWLOG GET` (Redis 8.10); `CLIENT CAPA`,
  `CLIENT IMPORT-SOURCE`, the additional filters of `CLIENT LIST`, `SCRIPT SHOW`, `BGSAVE CANCEL` and
  `SHUTDOWN SAFE` (Valkey).
";

/// The content of the table of commands.
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

/// A command of Redis 7.2.
struct Row {
    name: &'static str,
    doc: Option<&'static CommandDoc>,
    status: Status,
}

/// A family, with its commands of Redis 7.2.
struct Group {
    name: &'static str,
    rows: Vec<Row>,
}

impl Group {
    fn is_absent(&self) -> bool {
        self.rows.iter().all(|row| row.status == Status::Absent)
    }
}

/// All commands of Redis 7.2, by family.
fn groups() -> Vec<Group> {
    let families = ladon_command_docs::families().iter();
    let group = |family: &'static ladon_command_docs::Family| {
        let commands = || family.commands.iter().map(|(name, doc)| (*name, doc.as_ref()));
        let is_absent = |name: &str| families::table().find_full(name.as_bytes()).is_none();
        let lacks_subcommands = |name: &str| {
            commands().any(|(other, _)| {
                other.split_once('|').is_some_and(|(container, _)| container == name)
                    && is_absent(other)
            })
        };
        let of_redis = commands().filter(|(_, doc)| doc.is_none_or(is_of_redis_7_2));
        let rows = of_redis.map(|(name, doc)| {
            let is_partial = doc.is_some_and(|doc| doc.partly.is_some());
            let status = match is_absent(name) {
                true => Status::Absent,
                false if is_partial || lacks_subcommands(name) => Status::Partly,
                false => Status::Works,
            };
            Row { name, doc, status }
        });
        Group { name: family.name, rows: rows.collect() }
    };
    families.map(group).collect()
}

fn is_of_redis_7_2(doc: &CommandDoc) -> bool {
    let version =
        |text: &str| text.split('.').map(|part| part.parse::<u32>().ok()).collect::<Vec<_>>();
    !doc.own && version(doc.since) <= version("7.2.99")
}

/// The whole document.
pub fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    let groups = groups();
    let all = || groups.iter().flat_map(|group| &group.rows);
    let count = |wanted| all().filter(|row| row.status == wanted).count();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "Of {} commands and subcommands, {} work, {} work partly and {} are absent.\n",
        all().count(),
        count(Status::Works),
        count(Status::Partly),
        count(Status::Absent)
    );
    for group in groups.iter().filter(|group| !group.is_absent()) {
        heading(&mut text, group.name);
        for row in &group.rows {
            write_row(&mut text, row);
        }
    }
    heading(&mut text, "Ladon's own");
    for (_, entry) in families::table().iter() {
        if !is_of_redis_7_2(entry.doc) {
            let (name, doc) = (entry.doc.name, Some(entry.doc));
            write_row(&mut text, &Row { name, doc, status: Status::Works });
        }
    }
    text += "\n## Absent families\n\nLadon does not have these yet; their commands are unknown to it.\n\n";
    for group in groups.iter().filter(|group| group.is_absent()) {
        let names: Vec<String> = group.rows.iter().map(|row| shown(row.name)).collect();
        let _ = writeln!(text, "- **{}**: {}", title(group.name), names.join(", "));
    }
    text += NEWER_AND_ABSENT;
    text
}

fn heading(text: &mut String, group: &str) {
    let gap = if text.ends_with("\n\n") { "" } else { "\n" };
    let _ = writeln!(text, "{gap}## {}\n\n| Command | | |\n|---|---|---|", title(group));
}

fn write_row(text: &mut String, row: &Row) {
    let note = row.doc.and_then(|doc| doc.partly.or(doc.note)).unwrap_or_default();
    let note = note.replace('|', "\\|");
    let _ = writeln!(text, "| {} | {} | {note} |", shown(row.name), row.status.word());
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
    fn every_note_is_a_sentence_about_a_command_that_is_there() {
        for doc in ladon_command_docs::all() {
            let Some(note) = doc.partly.or(doc.note) else { continue };
            assert!(families::table().find_full(doc.name.as_bytes()).is_some(), "{}", doc.name);
            assert!(note.ends_with('.'), "{}", doc.name);
        }
    }

    #[test]
    fn names_are_there_once_each_with_its_status() {
        let groups = groups();
        let mut found = std::collections::HashMap::new();
        for row in groups.iter().flat_map(|group| &group.rows) {
            assert!(found.insert(row.name, row.status).is_none(), "{} twice", row.name);
        }
        assert_eq!(found["get"], Status::Works);
        assert_eq!(found["failover"], Status::Works);
        assert_eq!(found["debug"], Status::Partly);
        assert_eq!(found.get("hexpire"), None, "it is of Redis 7.4");
    }
}
