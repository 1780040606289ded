//! What a response carries: bytes that are there, or events that come.

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::Receiver;

/// A response of this port.
pub(crate) type Answer = Response<Body>;

/// The body of a response.
pub enum Body {
    /// All of it.
    Whole(Full<Bytes>),
    /// Pieces, until the sender is dropped.
    Events(Receiver<Bytes>),
}

impl Body {
    /// These bytes.
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Body {
        Body::Whole(Full::new(bytes.into()))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Body::Whole(whole) => Pin::new(whole).poll_frame(context),
            Body::Events(events) => {
                events.poll_recv(context).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(whole) => whole.is_end_stream(),
            Body::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(whole) => whole.size_hint(),
            Body::Events(_) => SizeHint::default(),
        }
    }
}
