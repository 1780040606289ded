//! What several tests of real servers need.

use std::time::Duration;

use ladon_lab::measure::cores;
use ladon_lab::systems::instance::{Instance, Want};
use ladon_lab::systems::program_paths::ProgramPaths;
use ladon_lab::systems::registry::{self, Found};

/// Starts the system with its weakest setting, or says that it is not here.
pub fn start(name: &str) -> Option<(Found, Instance)> {
    let system = registry::by_name(name).unwrap();
    let program = match system.find(&ProgramPaths::default()) {
        Ok(program) => program,
        Err(missing) => {
            eprintln!("SKIPPED: {missing}");
            return None;
        }
    };
    let want = Want::new(system.settings()[0]);
    let cores = cores::allowed().unwrap();
    let patience = Duration::from_secs(60);
    let found = Found { system, program };
    let instance = Instance::start(&found, &want, &std::env::temp_dir(), &cores, patience).unwrap();
    Some((found, instance))
}
