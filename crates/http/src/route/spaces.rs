//! `/v1/spaces/SPACE/PK`: spaces and their tuples, by `LADON.SPACE`, which answers JSON.

use super::check_query;
use crate::command::Commands;
use crate::request::head::{Head, Method, Refused};

/// How an answer's status follows from the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A document; nothing is 404.
    Found,
    /// What was stored.
    Stored,
    /// Nothing is left; nothing to delete is 404.
    Deleted,
}

/// A request for spaces.
#[derive(Debug)]
pub struct SpaceRequest {
    args: Vec<Vec<u8>>,
    /// Its body counts.
    pub takes_body: bool,
    /// How it is answered.
    pub answer: Answer,
}

impl SpaceRequest {
    /// Reads method and path behind `/v1/spaces`.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn of(head: &Head, segments: &[&[u8]]) -> Result<SpaceRequest, Refused> {
        let is_read = matches!(head.method, Method::Get | Method::Head);
        let request = |args: &[&[u8]], takes_body, answer| SpaceRequest {
            args: [&[&b"LADON.SPACE"[..]], args].concat().iter().map(|arg| arg.to_vec()).collect(),
            takes_body,
            answer,
        };
        match segments {
            [] if is_read => {
                check_query(head, &[])?;
                Ok(request(&[b"LIST"], false, Answer::Found))
            }
            [] => Err(Refused::not_allowed("GET, HEAD, OPTIONS")),
            [space] if is_read => {
                let mut request = request(&[b"SELECT", space], false, Answer::Found);
                request.take_query(head)?;
                Ok(request)
            }
            [space] if head.method == Method::Post => {
                check_query(head, &[])?;
                Ok(request(&[b"INSERT", space], true, Answer::Stored))
            }
            [_] => Err(Refused::not_allowed("GET, HEAD, POST, OPTIONS")),
            [space, pk @ ..] => {
                check_query(head, &[])?;
                let mut request = match head.method {
                    Method::Get | Method::Head => request(&[b"GET", space], false, Answer::Found),
                    Method::Put => request(&[b"REPLACE", space], true, Answer::Stored),
                    Method::Patch => request(&[b"UPDATE", space], true, Answer::Found),
                    Method::Delete => request(&[b"DELETE", space], false, Answer::Deleted),
                    _ => {
                        return Err(Refused::not_allowed("GET, HEAD, PUT, PATCH, DELETE, OPTIONS"));
                    }
                };
                request.args.extend(pk.iter().map(|part| part.to_vec()));
                Ok(request)
            }
        }
    }

    fn take_query(&mut self, head: &Head) -> Result<(), Refused> {
        check_query(head, &["index", "key", "iterator", "after", "limit", "offset"])?;
        for (name, value) in &head.target.query {
            // Nothing is the position in front of all.
            let is_start = name == b"after" && value.as_ref().is_none_or(Vec::is_empty);
            if name == b"_token" || is_start {
                continue;
            }
            let value = value.clone().unwrap_or_default();
            self.args.extend([name.to_ascii_uppercase(), value]);
        }
        Ok(())
    }

    /// The command. A body of JSON comes behind the space's name, in front of the primary key.
    pub fn command(self, body: &[u8]) -> Commands {
        let mut args: Vec<&[u8]> = self.args.iter().map(Vec::as_slice).collect();
        if self.takes_body {
            args.insert(3, body);
        }
        let mut commands = Commands::default();
        commands.add(&args);
        commands
    }
}
