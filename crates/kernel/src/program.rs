//! The program that runs beside the data, where there is one: what clients ask of it, and what it
//! answers.

use crate::client::clients::ClientInfo;
use crate::untaken::Counted;
use std::sync::Arc;

/// A program, which answers what clients call.
pub trait Program: Send + Sync {
    /// Leaves a request for it.
    ///
    /// # Errors
    /// The request, if it has too many.
    fn ask(&self, request: Request) -> Result<(), Request>;

    /// The fiber that runs, and for how many milliseconds it has been seen to run without a wait.
    fn running(&self) -> Option<(u64, u64)>;

    /// Ends a fiber, soon; one that never waits as well. Returns `false` if too many are to end.
    fn kill(&self, fiber: u64) -> bool;

    /// Leaves what it is to be told, of which there is one for each connection at most.
    fn tell(&self, request: Request);

    /// Whether it has functions to be called for this.
    fn wants(&self, kind: Kind) -> bool;

    /// It looks whether there is something to do.
    fn wake(&self);
}

/// What a client asks a program for.
pub struct Request {
    /// What is called.
    pub kind: Kind,
    /// The function's name, or the expression.
    pub name: Vec<u8>,
    /// The arguments: a MessagePack array, empty if there are none.
    pub arguments: Vec<u8>,
    /// Whose rights it has.
    pub user: User,
    /// The client.
    pub client: Arc<ClientInfo>,
    /// The number that the client has given the request.
    pub sync: u64,
    /// Where the answer goes, if anybody waits for it.
    pub asker: Option<Arc<dyn Asker>>,
}

/// A user, as long as it is there: who is made after it may get its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    /// Tarantool's number: 0 guest, 1 admin.
    pub number: u32,
    /// The version of all users and rights at which the last one before it was dropped that had its
    /// number; 0 for none.
    pub since: u64,
}

impl User {
    /// `admin`, who is never dropped.
    pub const ADMIN: User = User { number: 1, since: 0 };
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CALL.
    Call,
    /// CALL of before Tarantool 1.7: what is returned becomes tuples.
    Call16,
    /// EVAL.
    Eval,
    /// A client has connected. What is raised refuses it.
    Connect,
    /// A client has logged in, or tried to: the user's name, and whether it could. What is raised
    /// refuses it.
    Auth,
    /// A client has gone. Nobody gets the answer.
    Disconnect,
    /// A client was refused something, by the error whose message `name` is. Nobody gets the answer.
    Denied,
    /// A statement on a space that has triggers; `name` is its method, and the arguments are the
    /// space's number, the index's if it has one, and what the request has.
    Statement,
}

impl Kind {
    /// Whether the request may be postponed: what a session is told of may not.
    pub fn may_wait(self) -> bool {
        !matches!(self, Kind::Connect | Kind::Auth | Kind::Disconnect | Kind::Denied)
    }
}

/// Who has asked.
pub trait Asker: Send + Sync {
    /// Takes the answer, whose bytes were counted when it was made. Called once, from the program's
    /// thread, unless the request is postponed.
    fn answer(&self, answer: Answer, counted: Option<Counted>);

    /// Takes the request back: it is asked again once its connection has taken other answers.
    fn postpone(&self);

    /// Whether the connection has taken enough of its answers to get another one.
    fn has_room(&self) -> bool;

    /// Whether the client has read enough of its replies for another pushed value.
    fn has_room_to_push(&self) -> bool;

    /// Counts the bytes of an answer. `None` if answers that were not taken have all the room.
    fn count(&self, bytes: usize) -> Option<Counted>;

    /// Sends a MessagePack value ahead of the answer, once the log has come as far as this position.
    /// Returns `false` if what was not taken has all the room.
    fn push(&self, value: &[u8], depends: u64) -> bool;

    /// The thread that has the connection.
    fn thread(&self) -> usize;

    /// Wakes that thread, which finds what was answered.
    fn wake(&self);
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was returned, or what was raised.
    pub result: Result<Returned, Failed>,
    /// It may be shown when the log has come as far as this position.
    pub depends: u64,
}

impl Answer {
    /// Bytes of memory beside itself.
    pub fn bytes(&self) -> usize {
        match &self.result {
            Ok(returned) => returned.values.capacity(),
            Err(failed) => failed.message.capacity() + failed.class.capacity(),
        }
    }
}

/// What a function has returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    /// MessagePack values, one behind the other.
    pub values: Vec<u8>,
    /// How many.
    pub count: u32,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The code, of Tarantool's `errcode.h`.
    pub code: u32,
    /// The message.
    pub message: String,
    /// The class: `ClientError`, `LuajitError` ...
    pub class: String,
    /// Where it was raised: a file, and a line of it.
    pub place: Option<(String, u32)>,
    /// Further fields: a MessagePack map.
    pub fields: Option<Vec<u8>>,
    /// What it came of.
    pub cause: Option<Box<Failed>>,
}

impl Failed {
    /// An error that came of nothing else, raised at no place.
    pub fn new(code: u32, message: impl Into<String>, class: &str) -> Failed {
        let (message, class) = (message.into(), class.to_owned());
        Failed { code, message, class, place: None, fields: None, cause: None }
    }

    /// `ER_FUNCTION_TX_ACTIVE`: a function has returned with a transaction.
    pub fn transaction_left_open() -> Failed {
        Failed::new(30, "Transaction is active at return from function", "ClientError")
    }

    /// This one, and what it came of, one after the other.
    pub fn stack(&self) -> impl Iterator<Item = &Failed> {
        std::iter::successors(Some(self), |failed| failed.cause.as_deref())
    }
}
