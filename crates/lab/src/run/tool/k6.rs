//! k6 with the published tests' shape of a script (`helpers/tools/k6.js`): 100 or 3,500 virtual
//! users, each setting, reading or deleting keys made of its number and its iteration, through k6's
//! own module for Redis. Latency is what k6 shows: the duration of an iteration.

use super::figures::{ToolFigures, latency};
use super::keys_of_users::{Job, Prepared};
use crate::run::cell::CellError;
use crate::run::stage::Stage;
use crate::traffic::iterations::Deed;
use crate::work::Phase;

const SCRIPT: &str = include_str!("../../../helpers/tools/k6.js");

/// Keys that each user reads in turn.
const KEYS_READ: usize = 100;
/// Keys that all users together delete: there is no time in which each deletes what there is.
const KEYS_DELETED: usize = 50_000;

/// Fills in what is read or deleted; the script and how to start it.
///
/// # Errors
/// See [`super::keys_of_users::fill`].
pub fn prepare(stage: &Stage<'_>, phase: &Phase, job: &Job) -> Result<Prepared, CellError> {
    let value = "v".repeat(job.value_bytes);
    let (deed, keys) = match job.deed {
        Deed::Set => ("set", 0),
        Deed::Get => ("get", KEYS_READ),
        Deed::Delete => ("delete", (KEYS_DELETED / phase.users).max(1)),
    };
    let pairs = (1..=phase.users).flat_map(|user| {
        let value = &value;
        (0..keys).map(move |iteration| (format!("k6:{user}:{iteration}"), value.clone()))
    });
    super::keys_of_users::fill(stage, pairs)?;
    // It refuses less than a second.
    let environment = [
        ("LAB_TARGET", format!("redis://{}", stage.target.address)),
        ("LAB_DEED", deed.to_owned()),
        ("LAB_USERS", phase.users.to_string()),
        ("LAB_SECONDS", stage.bench.measured().as_secs_f64().max(1.0).to_string()),
        ("LAB_KEYS", keys.to_string()),
        ("LAB_VALUE", value),
    ];
    Ok(Prepared {
        script: ("k6.js", SCRIPT),
        before: ["run", "--quiet", "--no-usage-report"].map(str::to_owned).into(),
        after: Vec::new(),
        environment: environment.map(|(name, text)| (name.to_owned(), text)).into(),
    })
}

/// What the script's summary says.
pub fn parsed(text: &str) -> Option<ToolFigures> {
    let json: serde_json::Value = serde_json::from_str(text.get(text.find('{')?..)?.trim()).ok()?;
    let us = |name: &str| json["latency_ms"][name].as_f64().map_or(f64::NAN, |ms| ms * 1e3);
    Some(ToolFigures {
        operations: json["iterations"].as_u64()?,
        seconds: json["milliseconds"].as_f64()? / 1e3,
        latency_us: latency(
            us("med"),
            us("p(90)"),
            us("p(99)"),
            us("p(99.9)"),
            us("p(99.99)"),
            us("max"),
        ),
        wrong: json["wrong"].as_u64()?,
        failed: json["failed"].as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_summary_is_read() {
        let text = r#"{"iterations":200,"wrong":1,"failed":2,"milliseconds":500.0,"latency_ms":
            {"med":0.5,"p(90)":3.5,"p(99)":36.5,"p(99.9)":52.5,"p(99.99)":53.5,"max":54.5}}"#;
        let told = parsed(text).unwrap();
        assert_eq!((told.operations, told.wrong, told.failed), (200, 1, 2));
        assert!((told.seconds - 0.5).abs() < 1e-9);
        assert!((told.latency_us.p50 - 500.0).abs() < 1e-6);
        assert!((told.latency_us.max - 54_500.0).abs() < 1e-6);
        assert!(super::parsed("error").is_none());
    }
}
