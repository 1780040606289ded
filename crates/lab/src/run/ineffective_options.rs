//! Options of `ladon-lab run` that change nothing in some of the works: an option that is taken and
//! ignored would be believed.
//!
//! Found by planning each work with the option and without it, so that a new work or option needs
//! no line here.

use super::error::RunError;
use super::options::RunArguments;
use crate::work::{Scale, Step, Work};

/// What to tell the user before the run: of each option, the works that take no part of it, or only
/// its first value.
///
/// # Errors
/// An option that none of the works uses.
pub fn notes(
    arguments: &RunArguments,
    works: &[&Work],
    scale: &Scale,
) -> Result<Vec<String>, RunError> {
    if let Some(users) = scale.clients.iter().find(|users| **users > scale.connections_max) {
        let (most, option) = (scale.connections_max, "--clients");
        let text =
            format!("{option}: {users} are more than the {most} connections that are possible");
        return Err(RunError::Argument(text + "; see ladon-lab doctor"));
    }
    let mut notes = Vec::new();
    for option in sizes(scale) {
        let Sizes { name, without, first } = option;
        let plan = |work: &Work, scale: &Scale| format!("{:?}", (work.plan)(scale));
        let unused = |work: &&&Work| plan(work, scale) == plan(work, &without);
        say(name, works, unused, &mut notes)?;
        if let Some(first) = first {
            let only_first: Vec<&str> = works
                .iter()
                .filter(|work| !unused(work) && plan(work, scale) == plan(work, &first))
                .map(|work| work.name)
                .collect();
            if !only_first.is_empty() {
                notes.push(format!("{name}: only its first value in {}", only_first.join(", ")));
            }
        }
    }
    let measures = |step: &Step| matches!(step, Step::Measure(_));
    let by_itself = |work: &&&Work| !(work.plan)(scale).steps.iter().any(measures);
    if arguments.rate.is_some() {
        say("--rate", works, by_itself, &mut notes)?;
    }
    if arguments.tool.is_some() {
        say("--tool", works, by_itself, &mut notes)?;
        if arguments.rate.is_some() {
            let text = "--rate and --tool: the tools send as fast as they are answered";
            return Err(RunError::Argument(text.to_owned()));
        }
    }
    Ok(notes)
}

/// An option of sizes: the scale without it, and with only its first value where it has several.
struct Sizes {
    name: &'static str,
    without: Scale,
    first: Option<Scale>,
}

fn sizes(scale: &Scale) -> Vec<Sizes> {
    let with = |change: &dyn Fn(&mut Scale)| {
        let mut other = scale.clone();
        change(&mut other);
        other
    };
    let mut all = Vec::new();
    let mut list = |name, values: &[usize], set: &dyn Fn(&mut Scale, &[usize])| {
        if !values.is_empty() {
            let first = (values.len() > 1).then(|| with(&|scale| set(scale, &values[..1])));
            all.push(Sizes { name, without: with(&|scale| set(scale, &[])), first });
        }
    };
    list("--clients", &scale.clients, &|scale, values| scale.clients = values.to_vec());
    list("--pipeline", &scale.pipeline, &|scale, values| scale.pipeline = values.to_vec());
    list("--value-size", &scale.value_bytes, &|scale, values| scale.value_bytes = values.to_vec());
    if scale.distribution.is_some() {
        let without = with(&|scale| scale.distribution = None);
        all.push(Sizes { name: "--dist", without, first: None });
    }
    all
}

fn say(
    name: &str,
    works: &[&Work],
    unused: impl Fn(&&&Work) -> bool,
    notes: &mut Vec<String>,
) -> Result<(), RunError> {
    let names: Vec<&str> = works.iter().filter(unused).map(|work| work.name).collect();
    if names.len() == works.len() {
        return Err(RunError::Argument(format!("{name} changes nothing in {}", names.join(", "))));
    }
    if !names.is_empty() {
        notes.push(format!("{name} changes nothing in {}", names.join(", ")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::works::by_name;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArguments,
    }

    fn told(words: &str, works: &[&str]) -> Result<Vec<String>, String> {
        let arguments = Line::parse_from(["run"].into_iter().chain(words.split(' '))).run;
        let works: Vec<&Work> = works.iter().map(|name| by_name(name).unwrap()).collect();
        notes(&arguments, &works, &arguments.scale(10_000, 1, 1)).map_err(|error| error.to_string())
    }

    #[test]
    fn what_an_option_does_not_change_is_said() {
        assert_eq!(told("--clients 10,20", &["counter"]).unwrap(), [""; 0]);
        assert_eq!(
            told("--clients 10,20", &["counter", "durability", "cluster"]).unwrap(),
            [
                "--clients changes nothing in cluster",
                "--clients: only its first value in durability"
            ]
        );
        // Not even where it says what is done anyway.
        assert_eq!(
            told("--pipeline 4,8 --rate 1000", &["kv", "stall"]).unwrap(),
            [
                "--pipeline changes nothing in stall",
                "--pipeline: only its first value in kv",
                "--rate changes nothing in stall"
            ]
        );
    }

    #[test]
    fn what_would_change_nothing_at_all_is_refused() {
        for (words, works, word) in [
            ("--dist zipf", vec!["sets", "counter"], "--dist changes nothing in sets, counter"),
            ("--rate 5", vec!["stall"], "--rate"),
            ("--tool k6", vec!["memory"], "--tool"),
            ("--tool k6 --rate 5", vec!["kv"], "--rate and --tool"),
            ("--clients 20000", vec!["kv"], "more than the 10000 connections"),
        ] {
            let error = told(words, &works).unwrap_err();
            assert!(error.contains(word), "{words}: {error}");
        }
    }
}
