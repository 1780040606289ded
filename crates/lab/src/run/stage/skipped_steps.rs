//! Which of a plan's steps need not be tried, as their cells stay empty whatever happens.

use crate::run::cell::CellOutcome;
use crate::run::load_tool::Tool;
use crate::run::subject::Subject;
use crate::systems::system::{Capability, DriverKind};
use crate::traffic::Asked;
use crate::work::{Plan, Step, Work};

/// Which steps of `plan` are worth doing: not those of cells that stayed empty in an earlier start,
/// and not what the subject says that it cannot do; the latter's cells go to `outcomes`, with the
/// reason.
#[must_use]
pub(super) fn worth_doing(
    work: &Work,
    plan: &Plan,
    subject: &Subject,
    tool: Option<Tool>,
    known_empty: &[(String, Option<f64>)],
    outcomes: &mut Vec<CellOutcome>,
) -> Vec<bool> {
    let cannot =
        |asked: &Asked| asked.kinds().into_iter().find_map(|kind| subject.can_do(kind).err());
    let is_known = |(part, x): &(String, Option<f64>)| {
        known_empty.iter().any(|known| (&known.0, known.1) == (part, *x))
    };
    let mut reason_for_all = match subject {
        Subject::Found(found) => found.system.can(Capability::Nodes(work.topology)).err(),
        Subject::Attached(_) => None,
    };
    if work.name == "web" && !subject.speaks_http() {
        reason_for_all = Some("it speaks no HTTP".to_owned());
    }
    let mut worth = Vec::new();
    for step in &plan.steps {
        let reason = reason_for_all.clone().or_else(|| match step {
            Step::Prepare(asked) => cannot(asked),
            Step::Measure(phase) => cannot(&phase.asked),
            Step::Crash { .. } => None,
            // A run by a tool has no figures of another load generator between the tool's.
            Step::Custom(_) if tool.is_some() => {
                Some("only the lab's own driver does that, and --tool asks for another".to_owned())
            }
            Step::Load(custom) | Step::Custom(custom) if custom.sql => subject.sql().err(),
            Step::Load(custom) | Step::Custom(custom) => {
                let other = custom.redis_commands && !subject.speaks(DriverKind::Resp);
                // Measurements that a work makes by itself use the lab's own dialects.
                let alone = || {
                    let reason = subject.dialect().err()?;
                    let memory = "; and what a Java machine takes is its heap, which grows by rules \
                                  of its own, more than what the data take";
                    Some(reason + if work.name == "memory" { memory } else { "" })
                };
                other.then(|| "only driven in Redis' protocol".to_owned()).or_else(alone)
            }
        });
        if let Some(reason) = reason {
            empty_cells(std::slice::from_ref(step), &reason, outcomes);
            if !step.fills_cells() {
                // What prepares the others is theirs as well.
                reason_for_all = Some(reason);
            }
            worth.push(false);
            continue;
        }
        let cells = step.cells();
        worth.push(cells.is_empty() || !cells.iter().all(is_known));
    }
    worth
}

/// Leaves all cells of `steps` empty, with the reason.
pub(super) fn empty_cells(steps: &[Step], reason: &str, outcomes: &mut Vec<CellOutcome>) {
    for (part, x) in steps.iter().flat_map(Step::cells) {
        outcomes.push((part, x, Err(reason.to_owned())));
    }
}
