//! `types --memory`: what a sorted set's member, a hash and a list take.
//!
//! Each shape is loaded into a server of its own and read once; what counts is by how much resident
//! memory grew, as an empty server's own memory says nothing about a type.

use serde::Serialize;

use super::TypesArguments;
use crate::load::types::{hash, list, sorted_set};
use crate::probes::WorkError;
use crate::probes::common::{Bench, CLIENTS};
use crate::probes::memory::settled;
use crate::report::table::{Table, number};
use crate::report::target::{Limit, verdict};
use crate::systems::Kind;
use crate::systems::arguments::Setup;
use crate::systems::server::Server;

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    SortedSetMember,
    Hash,
    List,
}

impl Shape {
    const ALL: [Self; 3] = [Self::SortedSetMember, Self::Hash, Self::List];

    fn name(self, arguments: &TypesArguments) -> String {
        match self {
            Self::SortedSetMember => "member of a sorted set".into(),
            Self::Hash => format!("hash of {} fields", arguments.fields_per_hash),
            Self::List => format!("list of {} elements", arguments.list_length),
        }
    }

    /// How many of them are loaded.
    const fn count(self, arguments: &TypesArguments) -> u32 {
        match self {
            Self::SortedSetMember => arguments.memory_members,
            Self::Hash => arguments.memory_hashes,
            Self::List => arguments.memory_lists,
        }
    }

    /// Loads, and reads everything once: some tables grow a step with every request and hold two of
    /// themselves until they are through, and a server that lost something must not get a figure.
    fn load(
        self,
        bench: &Bench,
        server: &Server,
        arguments: &TypesArguments,
    ) -> Result<(), WorkError> {
        let count = self.count(arguments);
        match self {
            Self::SortedSetMember => {
                let set = sorted_set::SortedSet::new(count);
                bench.ask_all(server, CLIENTS, sorted_set::Fill(&set))?;
                bench.ask_all(server, CLIENTS, sorted_set::Zscore::new(&set))
            }
            Self::Hash => {
                let mut hashes =
                    hash::Hashes::new(count, arguments.fields_per_hash, arguments.value_size);
                bench.ask_all(server, CLIENTS, hash::Fill(&mut hashes))?;
                bench.ask_all(server, CLIENTS, hash::Hgetall::new(&hashes))
            }
            Self::List => {
                let length = arguments.list_length as usize;
                let lists = list::Lists::new(count, length, arguments.element_size);
                bench.ask_all(server, CLIENTS, list::FillLists(&lists))?;
                bench.ask_all(server, CLIENTS, list::Lrange::new(&lists))
            }
        }
    }
}

/// What one shape took in one system.
#[derive(Debug, Serialize)]
struct Taken {
    system: usize,
    shape: Shape,
    command_line: Vec<String>,
    /// Resident bytes before the load.
    empty_bytes: u64,
    /// Resident bytes after it, once they no longer changed.
    full_bytes: u64,
    /// Their difference through the number of things.
    bytes_each: f64,
}

pub(super) fn run(bench: &Bench, arguments: &TypesArguments) -> Result<(), WorkError> {
    let mut all = Vec::new();
    for shape in Shape::ALL {
        for (system, program) in bench.programs.iter().enumerate() {
            eprintln!("types: memory of a {}: {}", shape.name(arguments), program.label);
            let server = bench.start(program, &Setup::new(arguments.persistence))?;
            let gone =
                || WorkError::Unexpected { system: server.label.clone(), what: "is gone".into() };
            let empty_bytes = settled(&server).ok_or_else(gone)?;
            shape.load(bench, &server, arguments)?;
            let full_bytes = settled(&server).ok_or_else(gone)?;
            let grown = full_bytes.saturating_sub(empty_bytes);
            all.push(Taken {
                system,
                shape,
                command_line: server.command_line.clone(),
                empty_bytes,
                full_bytes,
                bytes_each: grown as f64 / f64::from(shape.count(arguments)),
            });
        }
    }
    let text = render(bench, arguments, &all);
    bench.finish("types", arguments, all, &text)
}

fn render(bench: &Bench, arguments: &TypesArguments, all: &[Taken]) -> String {
    let mut text = format!(
        "\nresident memory that each took, without the empty server's\nmembers of 10 bytes; fields of 8 bytes with values of {} \
         bytes; elements of {} bytes\n\n",
        arguments.value_size, arguments.element_size
    );
    let mut table = Table::new(&["", "system", "how many", "empty MiB", "full MiB", "bytes each"]);
    let mib = |bytes: u64| number(Some(bytes as f64 / f64::from(1 << 20)), 1);
    for taken in all {
        table.row(vec![
            taken.shape.name(arguments),
            bench.programs[taken.system].label.clone(),
            taken.shape.count(arguments).to_string(),
            mib(taken.empty_bytes),
            mib(taken.full_bytes),
            number(Some(taken.bytes_each), 1),
        ]);
    }
    text += &table.render();
    text.push('\n');
    let of = |shape: Shape, kind: Kind| {
        all.iter()
            .find(|taken| taken.shape == shape && bench.programs[taken.system].kind == kind)
            .map(|taken| taken.bytes_each)
    };
    for shape in Shape::ALL {
        let Some(ladon) = of(shape, Kind::Ladon) else { continue };
        let name = shape.name(arguments);
        text += &if shape == Shape::SortedSetMember {
            verdict(&format!("bytes of a {name}"), Some(ladon), Limit::AtMost(60.0))
        } else {
            let share = of(shape, Kind::Valkey).map(|valkey| ladon / valkey);
            verdict(&format!("bytes of a {name} through valkey's"), share, Limit::AtMost(1.0))
        };
    }
    text
}
