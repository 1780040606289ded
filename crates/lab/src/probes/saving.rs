//! Asking a server to save and seeing when it has: BGSAVE, which all of them know.

use std::time::{Duration, Instant};

use super::WorkError;
use crate::systems::control::Control;
use crate::systems::server::Server;

/// How often a save in progress is asked about: rarely enough not to disturb.
pub const POLL: Duration = Duration::from_millis(20);

/// Starts a save.
///
/// # Errors
/// When the server refuses.
pub fn start(server: &Server, control: &mut Control) -> Result<(), WorkError> {
    let answer = control.text(&["BGSAVE"])?;
    if answer.to_ascii_lowercase().contains("started") {
        return Ok(());
    }
    Err(WorkError::Unexpected {
        system: server.label.clone(),
        what: format!("answered BGSAVE with `{answer}`"),
    })
}

/// Whether the save that was started is done.
///
/// # Errors
/// When it failed, or INFO says nothing about it.
pub fn is_done(server: &Server, control: &mut Control) -> Result<bool, WorkError> {
    if control.info("persistence", "rdb_bgsave_in_progress")? != "0" {
        return Ok(false);
    }
    let status = control.info("persistence", "rdb_last_bgsave_status")?;
    if status == "ok" {
        return Ok(true);
    }
    Err(WorkError::Unexpected {
        system: server.label.clone(),
        what: format!("says of its last save: {status}"),
    })
}

/// Saves and waits; returns how long it took.
///
/// # Errors
/// As [`start`] and [`is_done`].
pub fn save(server: &Server) -> Result<Duration, WorkError> {
    let mut control = server.control()?;
    let began = Instant::now();
    start(server, &mut control)?;
    while !is_done(server, &mut control)? {
        std::thread::sleep(POLL);
    }
    Ok(began.elapsed())
}
