//! Requests in their lives.

use super::Reply;
use crate::history::AskedGate;
use crate::spaces::contents::{State, code};
use crate::spaces::request::{Call, Request, Who};
use ladon_record::Gate;

/// A request in its life.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) client: u64,
    pub(crate) who: Who,
    pub(crate) stream: u64,
    pub(crate) request: Request,
    /// When it was sent, in steps.
    pub(crate) begin: u64,
    pub(crate) gate: AskedGate,
    /// When its reply came, in steps.
    pub(crate) end: Option<u64>,
    pub(crate) may_be_lost: bool,
    /// Changes before the first part of its work, if that has several.
    pub(crate) began: Option<usize>,
    /// What it did when it ran.
    pub(crate) ran: Option<Ran>,
}

#[derive(Clone, Debug)]
pub(crate) struct Ran {
    /// The reply that the node made; of one that is made in slices, what it has to be.
    pub(crate) made: Reply,
    /// Changes before it.
    pub(super) position: usize,
    /// It has made the change with this number.
    pub(super) changed: Option<usize>,
    pub(super) is_in_transaction: bool,
    /// It was refused: nothing happened.
    pub(super) is_refused: bool,
    /// It is a conflict, or an error of a definition, that was there after so many changes.
    pub(super) met: Option<usize>,
}

impl Operation {
    /// Its reply has come, and what it shows is permanent.
    pub(crate) fn is_firm(&self) -> bool {
        self.end.is_some() && !self.may_be_lost
    }

    /// Whether its user has the rights here that it had when it ran, as far as the reply shows that.
    pub(super) fn had_rights(&self, ran: &Ran, state: &State) -> bool {
        let is_denied = state.denies(self.who, &self.request);
        match ran.made {
            Reply::Error(code::ACCESS_DENIED) => is_denied,
            // It may be one that comes before rights.
            Reply::Error(_) => true,
            _ => !is_denied,
        }
    }

    /// At a crash: whether that may take back what the reply shows.
    pub(crate) fn lose(&mut self, is_cut: bool, synced_step: u64) {
        self.may_be_lost = match self.gate.gate() {
            Gate::None => true,
            Gate::Write => is_cut,
            Gate::EverySec => is_cut && self.end.unwrap_or(0) > synced_step,
            Gate::Fsync | Gate::Quorum => false,
        };
    }

    pub(crate) fn show(&self) -> String {
        let end = self.end.map_or("never".to_owned(), |end| end.to_string());
        let request = show_request(&self.request);
        let made = self.ran.as_ref().map(|ran| {
            let made = crate::history::shortened(format!("{:?}", ran.made).as_bytes());
            format!("at {} made {made}, change {:?}", ran.position, ran.changed)
        });
        let (client, stream, gate) = (self.client, self.stream, self.gate);
        let client = format!("{:?} {client}", self.who);
        let made = made.unwrap_or_default();
        format!("[{} .. {end}] {gate:?} {client}.{stream} {request} {made}", self.begin)
    }
}

fn show_request(request: &Request) -> String {
    match request {
        Request::Write(space, it) if it.call == Call::Delete => {
            let by = if it.by_group { format!("group {}", it.row.group) } else { String::new() };
            format!("Delete {space} {:?} {by}", it.id)
        }
        Request::Call(procedure) => format!("Call {}", procedure.show()),
        other => crate::history::shortened(format!("{other:?}").as_bytes()),
    }
}
