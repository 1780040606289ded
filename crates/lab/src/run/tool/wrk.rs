//! wrk with a script (`helpers/tools/wrk.lua`) of what the published test of Go with LevelDB
//! against Tarantool asked: write a key and read it back, or read one, over connections that stay
//! open.

use super::figures::{ToolFigures, latency};
use super::keys_of_users::{Job, Prepared};
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::traffic::iterations::Deed;
use crate::work::Phase;

const SCRIPT: &str = include_str!("../../../helpers/tools/wrk.lua");

/// Keys that are read in turn.
const KEYS_READ: usize = 1000;

/// The value that the script has for a key: the key, again and again.
fn value_of(key: &str, bytes: usize) -> String {
    key.chars().chain(['/']).cycle().take(bytes).collect()
}

/// Fills in what is read; the script and how to start it.
///
/// # Errors
/// [`CellError::Cannot`] for deletes; see [`super::keys_of_users::fill`].
pub fn prepare(stage: &Stage<'_>, phase: &Phase, job: &Job) -> Result<Prepared, CellError> {
    let (deed, keys) = match job.deed {
        Deed::Set => ("set", 0),
        Deed::Get => ("get", KEYS_READ),
        Deed::Delete => {
            let text = "the tool cannot do that: the published script deletes nothing";
            return Err(CellError::Cannot(text.to_owned()));
        }
    };
    let pairs = (0..keys).map(|number| {
        let key = format!("wrk:{number}");
        let value = value_of(&key, job.value_bytes);
        (key, value)
    });
    super::keys_of_users::fill(stage, pairs)?;
    // It knows whole seconds only.
    let seconds = stage.bench.measured().as_secs_f64().ceil().max(1.0);
    let before = ["-t1".to_owned(), format!("-c{}", phase.users), format!("-d{seconds}s")];
    let url = format!("http://{}", stage.target.address);
    let after = [&url, "--", deed, &keys.max(1).to_string(), &job.value_bytes.to_string()];
    Ok(Prepared {
        script: ("wrk.lua", SCRIPT),
        before: [before.to_vec(), vec!["-s".to_owned()]].concat(),
        after: after.map(str::to_owned).into(),
        environment: Vec::new(),
    })
}

/// What the script says last.
pub fn parsed(text: &str) -> Option<ToolFigures> {
    let line = text.lines().find_map(|line| line.strip_prefix("lab "))?;
    let json: serde_json::Value = serde_json::from_str(line).ok()?;
    let us = |place: usize| json["latency_us"][place].as_f64().unwrap_or(f64::NAN);
    Some(ToolFigures {
        operations: json["requests"].as_u64()?,
        seconds: json["microseconds"].as_f64()? / 1e6,
        latency_us: latency(us(0), us(1), us(2), us(3), us(4), us(5)),
        wrong: json["wrong"].as_u64()?,
        failed: json["failed"].as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_last_line_is_read() {
        let text = "Running 1s test\nlab {\"requests\":10,\"microseconds\":2000000,\"failed\":0,\
                    \"wrong\":3,\"latency_us\":[1,2,3,4,5,6]}\n";
        let told = parsed(text).unwrap();
        assert_eq!((told.operations, told.wrong), (10, 3));
        assert!((told.seconds - 2.0).abs() < 1e-9 && (told.latency_us.p99 - 3.0).abs() < 1e-9);
        assert!(super::parsed("Running").is_none());
    }

    #[test]
    fn a_value_follows_from_its_key() {
        assert_eq!(value_of("wrk:1", 14), "wrk:1/wrk:1/wr");
    }
}
