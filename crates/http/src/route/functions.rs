//! `/v1/functions/LIBRARY/NAME`: a function of Redis as a handler next to the data.

use super::{check_query, keys};
use crate::command::{Commands, number};
use crate::request::head::{Head, Method, Refused};
use serde_json::Value;

/// A call.
#[derive(Debug)]
pub struct FunctionCall {
    library: Vec<u8>,
    name: Vec<u8>,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
    /// It must not write.
    is_read_only: bool,
}

impl FunctionCall {
    /// `GET` calls with what the query has, and must not write; `POST` also with a JSON body,
    /// `{"keys":["k"],"args":["a"]}`.
    ///
    /// # Errors
    /// When the request makes no sense.
    pub fn of(head: &Head, library: &[u8], name: &[u8]) -> Result<FunctionCall, Refused> {
        let is_read_only = match head.method {
            Method::Get | Method::Head => true,
            Method::Post => false,
            _ => return Err(Refused::not_allowed("GET, HEAD, POST, OPTIONS")),
        };
        check_query(head, &["key", "arg"])?;
        let values = |name| head.target.values(name).map(<[u8]>::to_vec).collect();
        Ok(FunctionCall {
            library: library.to_vec(),
            name: name.to_vec(),
            keys: values("key"),
            args: values("arg"),
            is_read_only,
        })
    }

    /// The command, with the keys and arguments of a body behind those of the query.
    ///
    /// # Errors
    /// When the body is not what it should be.
    pub fn command(mut self, body: &[u8]) -> Result<Commands, Refused> {
        if !body.is_empty() {
            self.take_body(body)?;
        }
        let count = number(self.keys.len());
        let word: &[u8] = if self.is_read_only { b"LADON.FCALL_RO" } else { b"LADON.FCALL" };
        let start = [word, &self.library, &self.name, &count];
        let rest = self.keys.iter().chain(&self.args).map(Vec::as_slice);
        let args: Vec<&[u8]> = start.into_iter().chain(rest).collect();
        let mut commands = Commands::default();
        commands.add(&args);
        Ok(commands)
    }

    fn take_body(&mut self, body: &[u8]) -> Result<(), Refused> {
        let wrong = |why: String| Refused::new(400, why);
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| wrong(format!("the body is not JSON: {error}")))?;
        let shape = || wrong("the body is {\"keys\":[..],\"args\":[..]}".to_owned());
        for (name, value) in value.as_object().ok_or_else(shape)? {
            let list = value.as_array().ok_or_else(shape)?;
            match name.as_str() {
                "keys" => {
                    let keys = list.iter().map(keys::scalar).collect::<Option<Vec<_>>>();
                    self.keys.extend(keys.ok_or_else(shape)?);
                }
                // What is no plain value stays JSON, for `cjson.decode`.
                "args" => self.args.extend(
                    list.iter().map(|it| keys::scalar(it).unwrap_or(it.to_string().into_bytes())),
                ),
                _ => return Err(shape()),
            }
        }
        Ok(())
    }
}
