//! Puts rounds into the cells of `results.json`.

use std::path::{Path, PathBuf};

use super::attach::without_passwords;
use super::bench::Bench;
use super::cell::CellOutcome;
use super::options::RunArguments;
use super::subject::{Subject, SubjectSetting};
use crate::results;
use crate::results::file::unix_seconds;
use crate::results::schema::{
    Budget, Cell, FORMAT, MissingRecord, Outcome, PartResult, Results, SettingRecord, SystemRecord,
    WorkResult,
};
use crate::systems::registry;
use crate::systems::system::Missing;
use crate::work::Work;
use crate::works::figures;

/// See the module.
pub struct Record {
    results: Results,
}

impl Record {
    /// Everything but figures.
    #[must_use]
    pub fn begin(
        arguments: &RunArguments,
        bench: &Bench,
        works: &[&Work],
        subjects: &[Subject],
        missing: &[Missing],
    ) -> Self {
        let mut systems: Vec<SystemRecord> = subjects.iter().map(system_record).collect();
        systems.extend(missing.iter().map(missing_record));
        let results = Results {
            format: FORMAT,
            lab_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix: unix_seconds(),
            finished_unix: 0,
            partial: true,
            command_line: without_passwords(std::env::args()),
            seed: bench.seed,
            rounds: 0,
            seconds: 0.0,
            seconds_max: 0.0,
            budget: bench
                .budget
                .map(|seconds| Budget { minutes: seconds / 60.0, ..Budget::default() }),
            load: arguments.load(),
            machine: bench.machine.clone(),
            cores: bench.cores.clone(),
            price_per_hour: arguments.price_per_hour,
            systems,
            works: works.iter().map(|work| empty_work(work, bench)).collect(),
        };
        Self { results }
    }

    /// What there is so far.
    #[must_use]
    pub const fn results(&self) -> &Results {
        &self.results
    }

    /// Whether anything at all was measured.
    #[must_use]
    pub fn has_figures(&self) -> bool {
        let parts = self.results.works.iter().flat_map(|work| &work.parts);
        parts.flat_map(|part| &part.cells).any(|cell| !cell.rounds().is_empty())
    }

    /// A work had its round number `rounds`, with measurements of `seconds`.
    pub fn had_round(&mut self, rounds: u32, seconds: f64) {
        self.results.rounds = self.results.rounds.max(rounds);
        let least = if self.results.seconds > 0.0 { self.results.seconds } else { seconds };
        self.results.seconds = least.min(seconds);
        self.results.seconds_max = self.results.seconds_max.max(seconds);
        if let Some(budget) = &mut self.results.budget {
            budget.seconds_max = budget.seconds_max.max(seconds);
        }
    }

    /// A work is over after `rounds` rounds.
    pub fn had_work(&mut self, rounds: u32) {
        if let Some(budget) = &mut self.results.budget {
            budget.rounds_min =
                if budget.rounds_min == 0 { rounds } else { budget.rounds_min.min(rounds) };
        }
    }

    /// Adds what a stage brought. A cell that failed once stays empty: its other rounds could not
    /// be compared round by round with those of the others.
    pub fn add(
        &mut self,
        work: &Work,
        subject: &Subject,
        setting: &SubjectSetting,
        outcomes: Vec<CellOutcome>,
    ) {
        let label = subject.label();
        let Some(of_work) = self.results.works.iter_mut().find(|other| other.work == work.name)
        else {
            return;
        };
        for (part, x, outcome) in outcomes {
            let Some(part) = of_work.parts.iter_mut().find(|other| other.part == part) else {
                continue;
            };
            let cell = cell_of(part, &label, &setting.name(), x);
            match (outcome, &mut cell.outcome) {
                (Ok(round), Outcome::Measured { rounds }) => rounds.push(*round),
                (Err(reason), outcome) => *outcome = Outcome::Empty { reason },
                (Ok(_), Outcome::Empty { .. }) => {}
            }
        }
    }

    /// The cells of a subject that are empty and stay so: part and place on its axis.
    #[must_use]
    pub fn empty_cells(
        &self,
        work: &Work,
        subject: &Subject,
        setting: &SubjectSetting,
    ) -> Vec<(String, Option<f64>)> {
        let (label, setting) = (subject.label(), setting.name());
        let of_work = self.results.works.iter().filter(|other| other.work == work.name);
        let parts = of_work.flat_map(|work| &work.parts);
        let cells = parts.flat_map(|part| part.cells.iter().map(move |cell| (part, cell)));
        let empty = cells.filter(|(_, cell)| {
            cell.system == label
                && cell.setting == setting
                && matches!(cell.outcome, Outcome::Empty { .. })
        });
        empty.map(|(part, cell)| (part.part.clone(), cell.x)).collect()
    }

    /// Notes how a system was started at a setting, the first time.
    pub fn note_setting(
        &mut self,
        subject: &Subject,
        setting: &SubjectSetting,
        started: &StartedRecord,
    ) {
        let label = subject.label();
        let Some(system) = self.results.systems.iter_mut().find(|system| system.name == label)
        else {
            return;
        };
        if system.settings.iter().any(|known| known.name == setting.name()) {
            return;
        }
        system.settings.push(SettingRecord {
            name: setting.name(),
            promise: subject.promise(setting).to_owned(),
            command_line: started.command_line.clone(),
            values: started.values.clone(),
        });
    }

    /// The run is over; `whole` if nothing was left out.
    pub fn finish(&mut self, whole: bool) {
        self.results.finished_unix = unix_seconds();
        self.results.partial = !whole;
    }

    /// Writes `results.json`; its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<PathBuf> {
        results::file::write(folder, &self.results)
    }
}

/// How a system was started, for the report.
#[derive(Clone, Debug, Default)]
pub struct StartedRecord {
    /// Program and arguments of its first process.
    pub command_line: Vec<String>,
    /// Effective settings.
    pub values: std::collections::BTreeMap<String, String>,
}

fn cell_of<'a>(
    part: &'a mut PartResult,
    system: &str,
    setting: &str,
    x: Option<f64>,
) -> &'a mut Cell {
    let same = |cell: &Cell| cell.system == system && cell.setting == setting && cell.x == x;
    if let Some(place) = part.cells.iter().position(same) {
        return &mut part.cells[place];
    }
    part.cells.push(Cell {
        system: system.to_owned(),
        setting: setting.to_owned(),
        x,
        outcome: Outcome::Measured { rounds: Vec::new() },
    });
    let last = part.cells.len() - 1;
    &mut part.cells[last]
}

fn system_record(subject: &Subject) -> SystemRecord {
    match subject {
        Subject::Found(found) => {
            let (name, label) = (&found.program.label, found.system.title());
            let number = name.split_once('#').map(|(_, number)| format!(" #{number}"));
            SystemRecord {
                name: name.clone(),
                label: format!("{label}{}", number.unwrap_or_default()),
                version: Some(found.program.version.clone()),
                ..SystemRecord::default()
            }
        }
        Subject::Attached(attached) => SystemRecord {
            name: attached.name.clone(),
            label: attached.name.clone(),
            version: attached.told().version.clone(),
            ..SystemRecord::default()
        },
    }
}

fn missing_record(missing: &Missing) -> SystemRecord {
    let title = registry::by_name(missing.system).map_or(missing.system, |system| system.title());
    SystemRecord {
        name: missing.system.to_owned(),
        label: title.to_owned(),
        missing: Some(MissingRecord {
            reason: missing.reason.clone(),
            install: missing.install.clone(),
        }),
        ..SystemRecord::default()
    }
}

fn empty_work(work: &Work, bench: &Bench) -> WorkResult {
    let parts = (work.plan)(&bench.scale).parts.into_iter().map(|part| PartResult {
        part: part.name,
        title: part.title,
        axis: part.axis,
        figures: match bench.rate {
            Some(_) => figures::at_a_rate(part.figures),
            None => part.figures,
        },
        cells: Vec::new(),
    });
    WorkResult {
        work: work.name.to_owned(),
        title: work.title.to_owned(),
        repeats: work.repeats.to_owned(),
        what: work.what.to_owned(),
        parts: parts.collect(),
    }
}
