//! Redis' protocol: what it keeps of a connection.

use super::Held;
use ladon_engine::Garbage;
use ladon_resp::{Limits, Parser, Progress, Proto, Reply};
use std::sync::Arc;

/// A connection's part.
#[derive(Default)]
pub(crate) struct Resp {
    pub(crate) parser: Parser,
    /// The request that lent an argument, to be run again once it has the argument back.
    pub(crate) again: Option<Box<Again>>,
}

impl Resp {
    pub(super) fn read_again(&mut self) {
        self.parser = Parser::new();
    }

    #[inline]
    pub(super) fn held(&self) -> Held {
        let partial = self.parser.partial();
        let again = self.again.as_ref().map_or(0, |again| again.bytes);
        Held {
            parsed: partial.unfinished,
            arguments: partial.argument_bytes + again,
            memory: partial.parser_bytes + again,
        }
    }

    pub(super) fn leave(self) -> Vec<Garbage> {
        self.again.map(|again| Garbage::of(again.lent)).into_iter().collect()
    }
}

/// Answers what ends the connection.
pub(crate) fn refuse(text: &str, proto: Proto, out: &mut Vec<u8>) {
    Reply::new(out, proto).error(text);
}

pub(super) fn begins_with_request(unread: &[u8], limits: &Limits) -> bool {
    let parsed = Parser::new().parse(unread, limits, &mut Vec::new());
    !matches!(parsed, Ok(Progress::Incomplete { .. }))
}

/// A request that was removed from the input because the memory of one of its arguments is lent.
pub(crate) struct Again {
    /// The arguments, with an empty one in place of the lent one.
    pub(crate) args: Vec<Vec<u8>>,
    /// Size of all arguments in bytes.
    pub(crate) bytes: usize,
    /// Index of the lent argument.
    pub(crate) at: usize,
    /// The lent argument; empty until it is given back.
    pub(crate) lent: Arc<Vec<u8>>,
}

impl Again {
    /// Copies of the arguments, except for the one at `at`, which is lent.
    pub(crate) fn keeping(args: &[&[u8]], at: usize) -> Again {
        let short = |(other, arg): (usize, &&[u8])| {
            if other == at { Vec::new() } else { arg.to_vec() }
        };
        let bytes = args.iter().map(|arg| arg.len()).sum();
        Again {
            args: args.iter().enumerate().map(short).collect(),
            bytes,
            at,
            lent: Arc::default(),
        }
    }

    /// All arguments, once the lent one is given back.
    pub(crate) fn arguments(&self) -> Vec<&[u8]> {
        let own = self.args.iter().map(Vec::as_slice).enumerate();
        own.map(|(at, arg)| if at == self.at { self.lent.as_slice() } else { arg }).collect()
    }
}
