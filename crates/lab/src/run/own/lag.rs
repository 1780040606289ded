//! From a write's answer on one node to its copy on another.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::load::plain::Plain;
use crate::operation::{Answer, Operation};
use crate::results::schema::{Percentiles, Round};
use crate::run::cell::CellError;
use crate::run::round::percentiles_at;
use crate::run::stage::Stage;

/// A copy that does not come within this never will.
const LAG_MAX: Duration = Duration::from_secs(10);

/// Writes on the first node and reads on the second until the write is there; for as long as a
/// measurement takes, one write at a time.
pub(super) fn run(stage: &mut Stage<'_>, _: &str) -> Result<(), CellError> {
    let nodes = stage.instance.as_ref().map(|instance| instance.addresses()).unwrap_or_default();
    let &[one, other] = nodes.as_slice() else {
        return Err(CellError::Cannot("there are not two nodes".to_owned()));
    };
    let connect = |address: SocketAddr| -> Result<Plain, CellError> {
        let dialect = stage.subject.dialect().map_err(CellError::Cannot)?;
        Ok::<_, CellError>(Plain::connect(address, dialect)?)
    };
    let (mut master, mut replica) = (connect(one)?, connect(other)?);
    let ask = |which: &mut Plain, operation: &Operation| -> Result<Answer, CellError> {
        let mut answers = which.ask(std::slice::from_ref(operation))?;
        answers.pop().ok_or_else(|| CellError::Broken("no answer".to_owned()))
    };
    let mut lags: Vec<f64> = Vec::new();
    let began = Instant::now();
    while began.elapsed() < stage.bench.measured() || lags.is_empty() {
        let value = lags.len().to_string().into_bytes();
        let key = b"lag".to_vec();
        let write = Operation::Set { key: key.clone(), value: value.clone() };
        if ask(&mut master, &write)? != Answer::Done {
            return Err(CellError::Wrong("a write was not done".to_owned()));
        }
        let written = Instant::now();
        let read = Operation::Get { key };
        while ask(&mut replica, &read)? != Answer::Value(Some(value.clone())) {
            if written.elapsed() > LAG_MAX {
                return Err(CellError::Broken(format!("no copy within {LAG_MAX:?}")));
            }
        }
        lags.push(written.elapsed().as_secs_f64() * 1e6);
    }
    let seconds = began.elapsed().as_secs_f64();
    let operations = lags.len() as u64;
    let round = Round { latency_us: Some(percentiles(lags)), ..Round::new(seconds, operations) };
    stage.put("lag", None, round);
    Ok(())
}

/// Of at least one value.
fn percentiles(mut values: Vec<f64>) -> Percentiles {
    values.sort_by(f64::total_cmp);
    let at = |percent: f64| {
        // In this order 99.9 % of 1,000 is 999 exactly; the other way it is a little more.
        let rank = (percent * values.len() as f64 / 100.0).ceil() as usize;
        values[rank.clamp(1, values.len()) - 1]
    };
    percentiles_at(&[0.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0], at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_values_seen() {
        let found = percentiles((1..=1000).rev().map(f64::from).collect());
        assert_eq!((found.p50, found.p99, found.p999, found.max), (500.0, 990.0, 999.0, 1000.0));
        assert_eq!(percentiles(vec![7.0]).p99, 7.0);
    }
}
