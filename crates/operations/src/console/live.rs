//! The samples of each second, as events.

use super::Console;
use super::api::Caller;
use super::rights;
use super::sessions::Watching;
use crate::body::{Answer, Body};
use crate::streams::{Events, Sent};
use bytes::Bytes;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// A response that lasts as long as its events come.
pub(super) fn streaming(events: &Events, receiver: Receiver<Bytes>) -> Answer {
    let mut answer = Response::new(Body::Events(receiver));
    answer.extensions_mut().insert(events.lasting());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

impl Console {
    /// Each sample from now on, while the user may see it.
    pub(super) fn live(self: &Arc<Self>, caller: &Caller) -> Answer {
        let (mut events, receiver) = self.streams.begin();
        let answer = streaming(&events, receiver);
        let (console, watching) = (Arc::clone(self), Watching::begin(&caller.session));
        let mut newest = self.history.follow();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    changed = newest.changed() => if changed.is_err() { return },
                    () = events.gone() => return,
                }
                let sample = newest.borrow_and_update().clone();
                let (user, node) = (console.user_of(&watching.0), console.state.0.node());
                let table = &node.accounts.commands;
                if !user.is_some_and(|user| rights::may(&user, table, "info")) {
                    events.send("end", b"\"the session is over\"");
                    return;
                }
                if events.send("sample", &sample) == Sent::Gone {
                    return;
                }
            }
        });
        answer
    }
}
