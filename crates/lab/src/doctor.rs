//! `ladon-lab doctor`: what can be measured here, what is missing and how to get it, and what will
//! disturb the figures on this machine.
//!
//! **Invariant:** it changes nothing, except that it builds helpers to see whether they can be
//! built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use nix::sys::resource::{Resource, getrlimit};

use crate::measure::cores;
use crate::measure::machine::Machine;
use crate::run::load_tool::Tool;
use crate::systems::program_paths::ProgramPaths;
use crate::systems::registry;

/// Options of `ladon-lab doctor`.
#[derive(Args, Debug, Default)]
pub struct DoctorArguments {
    /// Ladon's binary, if it is not in the same folder as this program.
    #[arg(long, value_name = "PROGRAM")]
    pub ladon: Option<PathBuf>,
    /// The tree that `scripts/install-peers.sh` made.
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// Where servers' directories would be made.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    pub data_root: PathBuf,
}

/// The connections that the works of many users make on both sides.
const OPEN_FILES_WANTED: u64 = 20_000;

/// Looks, prints, and succeeds if Ladon and one other system can be measured.
#[must_use]
pub fn run(arguments: &DoctorArguments) -> ExitCode {
    let places = ProgramPaths {
        ladon: arguments.ladon.clone(),
        peers: arguments.peers.clone(),
        ..ProgramPaths::default()
    };
    let (text, enough) = report(&places, &arguments.data_root);
    print!("{text}");
    if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The report, and whether there is enough to compare.
#[must_use]
pub fn report(places: &ProgramPaths, data_root: &Path) -> (String, bool) {
    let mut text = String::new();
    let enough = systems(places, &mut text);
    tools(&mut text);
    rights(data_root, &mut text);
    let machine = Machine::inspect(data_root);
    text += &format!(
        "\nMachine: {}, {} cores, {:.1} GiB, {}, {}\n",
        machine.cpu_model,
        machine.cores,
        machine.memory_bytes as f64 / f64::from(1 << 30),
        machine.kernel,
        machine.data_filesystem
    );
    let disturbances = disturbances(&machine, &Surroundings::look());
    if disturbances.is_empty() {
        text += "Nothing found that would disturb the figures.\n";
    } else {
        text += "What will disturb the figures:\n";
        for line in disturbances {
            let _ = writeln!(text, "  ! {line}");
        }
    }
    (text, enough)
}

fn systems(places: &ProgramPaths, text: &mut String) -> bool {
    let (found, missing) = registry::everything(places);
    *text += "Systems:\n";
    for one in &found {
        let _ = writeln!(text, "  + {:<15} {}", one.program.system, one.program.version);
    }
    for one in &missing {
        let _ = writeln!(text, "  - {:<15} {}", one.system, one.reason);
        let _ = writeln!(text, "    {:<15} install: {}", "", one.install);
    }
    for (name, reason) in registry::NOT_DRIVEN {
        let _ = writeln!(text, "  - {name:<15} {reason}");
    }
    let has_ladon = found.iter().any(|one| one.program.system == "ladon");
    if !has_ladon || found.len() < 2 {
        *text += "  Not enough to compare: Ladon and one other system at least.\n";
    }
    has_ladon && found.len() > 1
}

fn tools(text: &mut String) {
    *text += "\nLoad tools, for --tool:\n";
    for tool in Tool::ALL {
        let name = tool.program();
        let _ = match tool.find() {
            None => writeln!(text, "  - {name:<18} install: {}", tool.install()),
            Some(path) => {
                let version = tool.version().unwrap_or_default();
                writeln!(text, "  + {name:<18} {} {version}", path.display())
            }
        };
    }
}

fn rights(data_root: &Path, text: &mut String) {
    *text += "\nRights:\n";
    let mut line = |good: bool, what: String| {
        let _ = writeln!(text, "  {} {what}", if good { '+' } else { '-' });
    };
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= OPEN_FILES_WANTED => line(true, format!("{hard} open files")),
        Ok((_, hard)) => line(
            false,
            format!("{hard} open files, so no work of more users than that; raise it: ulimit -Hn"),
        ),
        Err(error) => line(false, format!("open files: {error}")),
    }
    match cores::allowed() {
        Ok(allowed) => {
            line(allowed.len() > 1, format!("{} cores to pin to: {allowed:?}", allowed.len()))
        }
        Err(error) => line(false, format!("cores: {error}")),
    }
    match tempfile::tempdir_in(data_root) {
        Ok(_) => line(true, format!("directories below {}", data_root.display())),
        Err(error) => line(
            false,
            format!("no directories below {}: {error}; give --data-root", data_root.display()),
        ),
    }
}

/// Properties of the machine that affect figures, in addition to what every result records.
#[derive(Clone, Debug, Default)]
struct Surroundings {
    /// Frequency governors of all cores.
    governors: Vec<String>,
    /// Bytes of swap in use.
    swap_used: u64,
    /// Whether there is swap at all.
    swap: bool,
    /// CPU time that the host gave to others, as a share of all since the start.
    stolen: f64,
    /// Whether one core's hardware threads are seen as several.
    hardware_threads: bool,
    /// Bytes of memory that are free to take.
    available: u64,
}

impl Surroundings {
    fn look() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = read("/proc/meminfo");
        let kib = |name: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(name));
            let digits = line.and_then(|line| line.split_whitespace().next());
            digits.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0) * 1024
        };
        let total = kib("SwapTotal:");
        let mut governors: Vec<String> = cores::allowed()
            .unwrap_or_default()
            .iter()
            .map(|core| {
                read(&format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor"))
            })
            .map(|governor| governor.trim().to_owned())
            .filter(|governor| !governor.is_empty())
            .collect();
        governors.sort();
        governors.dedup();
        Self {
            governors,
            swap: total > 0,
            swap_used: total - kib("SwapFree:").min(total),
            stolen: stolen(&read("/proc/stat")),
            hardware_threads: read("/sys/devices/system/cpu/smt/active").trim() == "1",
            available: kib("MemAvailable:"),
        }
    }
}

/// The eighth figure of the first line of `/proc/stat` (proc_stat(5)), as a share of all.
fn stolen(stat: &str) -> f64 {
    let first = stat.lines().next().unwrap_or_default();
    let times: Vec<f64> =
        first.split_whitespace().skip(1).take(8).filter_map(|time| time.parse().ok()).collect();
    let all: f64 = times.iter().sum();
    times.get(7).map_or(0.0, |stolen| if all > 0.0 { stolen / all } else { 0.0 })
}

/// Each in words, with what can be done.
fn disturbances(machine: &Machine, around: &Surroundings) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |text: String| all.push(text);
    if machine.cores < 2 {
        say("one core: server and load share it, so throughput says little; trust CPU per operation"
            .to_owned());
    } else if machine.cores < 4 {
        say(format!(
            "{} cores: one for the server, one for the load; the works of many cores, replicas and \
             clusters share them",
            machine.cores
        ));
    }
    for governor in around.governors.iter().filter(|governor| *governor != "performance") {
        say(format!(
            "frequency governor `{governor}`: cpupower frequency-set --governor performance"
        ));
    }
    if around.swap_used > 0 {
        say(format!("{} MiB of swap in use: swapoff -a", around.swap_used >> 20));
    } else if around.swap {
        say("swap is on, so memory under pressure goes there: swapoff -a".to_owned());
    }
    if machine.load_average > 0.5 {
        say(format!(
            "load average {:.1}: something else runs; wait, or end it",
            machine.load_average
        ));
    }
    if machine.huge_pages == "always" {
        say("transparent huge pages `always`: makers of Redis advise against it; echo madvise \
             >/sys/kernel/mm/transparent_hugepage/enabled"
            .to_owned());
    }
    if machine.virtual_machine {
        say("a virtual machine: neighbours on the host are not seen; trust ratios of one run"
            .to_owned());
    }
    if around.stolen > 0.005 {
        say(format!("the host has given {:.1} % of the time to others", around.stolen * 100.0));
    }
    if around.hardware_threads {
        say("two hardware threads to a core: pin server and load to different cores".to_owned());
    }
    if around.available < 4 << 30 {
        say(format!(
            "{} MiB of memory to take: the work `memory` may not fit",
            around.available >> 20
        ));
    }
    if machine.data_filesystem.starts_with("tmpfs") || machine.data_filesystem.starts_with("ramfs")
    {
        say(
            "servers' directories lie in memory, so a sync to disk costs nothing: give --data-root"
                .to_owned(),
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calm() -> (Machine, Surroundings) {
        let mut machine = Machine::inspect(&std::env::temp_dir());
        machine.cores = 8;
        machine.load_average = 0.0;
        machine.huge_pages = "madvise".to_owned();
        machine.virtual_machine = false;
        machine.data_filesystem = "ext4 on /dev/x".to_owned();
        let around = Surroundings {
            governors: vec!["performance".to_owned()],
            available: 16 << 30,
            ..Surroundings::default()
        };
        (machine, around)
    }

    #[test]
    fn a_calm_machine_is_left_alone() {
        let (machine, around) = calm();
        assert_eq!(disturbances(&machine, &around), [""; 0]);
    }

    #[test]
    fn everything_that_disturbs_is_said_with_what_helps() {
        let (mut machine, mut around) = calm();
        machine.cores = 2;
        machine.load_average = 3.0;
        machine.huge_pages = "always".to_owned();
        machine.virtual_machine = true;
        machine.data_filesystem = "tmpfs on tmpfs".to_owned();
        around.governors = vec!["powersave".to_owned()];
        (around.swap, around.swap_used) = (true, 5 << 20);
        (around.stolen, around.hardware_threads, around.available) = (0.02, true, 1 << 30);
        let all = disturbances(&machine, &around).join("\n");
        for word in [
            "2 cores",
            "load average 3.0",
            "huge pages",
            "virtual",
            "tmpfs",
            "powersave",
            "5 MiB of swap",
            "2.0 %",
            "hardware threads",
            "1024 MiB",
        ] {
            // The file system is said in words.
            let word = if word == "tmpfs" { "lie in memory" } else { word };
            assert!(all.contains(word), "{word} is not in\n{all}");
        }
    }

    #[test]
    fn stolen_time_is_a_share() {
        let share = stolen("cpu  10 0 10 70 0 0 0 10 0 0\ncpu0 1 1 1 1\n");
        assert!((share - 0.1).abs() < 1e-9);
        assert_eq!(stolen(""), 0.0);
    }

    #[test]
    fn what_is_missing_comes_with_the_command_that_installs_it() {
        let places = ProgramPaths {
            ladon: Some("/nowhere/ladon".into()),
            peers: Some("/nowhere".into()),
            ..ProgramPaths::default()
        };
        let mut text = String::new();
        assert!(!systems(&places, &mut text));
        for line in [
            "- ladon",
            "install: cargo build --release",
            "- redis8",
            "install-systems.sh",
            "(the lab was never run against a real one)",
            "- aerospike       no driver",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(text.contains("Not enough to compare"));
    }
}
