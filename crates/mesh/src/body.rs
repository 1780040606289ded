//! The bytes of messages on their way out, where they are: those of the log are copied into the
//! kernel alone.

use crate::outbox::Outgoing;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// Shorter parts are copied together: that costs less than to name each of them to the kernel.
const COPIED_MAX: usize = 2 << 10;

/// The bytes of a message, in one part or several.
#[derive(Clone, Debug, Default)]
pub struct Body {
    parts: VecDeque<Bytes>,
    length: usize,
}

impl FromIterator<Bytes> for Body {
    fn from_iter<I: IntoIterator<Item = Bytes>>(parts: I) -> Body {
        let parts = VecDeque::from_iter(parts);
        let length = parts.iter().map(Bytes::len).sum();
        Body { parts, length }
    }
}

impl From<Bytes> for Body {
    fn from(part: Bytes) -> Body {
        Body::from_iter([part])
    }
}

impl From<Vec<u8>> for Body {
    fn from(part: Vec<u8>) -> Body {
        Bytes::from(part).into()
    }
}

impl Body {
    /// Bytes of all parts.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Moves the first bytes, so many of them, into the batch.
    pub(crate) fn move_to(&mut self, batch: &mut Batch, count: usize) {
        let mut left = count.min(self.length);
        self.length -= left;
        while left > 0
            && let Some(first) = self.parts.front_mut()
        {
            let part = first.split_to(left.min(first.len()));
            if first.is_empty() {
                self.parts.pop_front();
            }
            left -= part.len();
            batch.put_part(part);
        }
    }
}

#[derive(Debug)]
enum Part {
    /// So many bytes of those that were copied.
    Copied(usize),
    Shared(Bytes),
}

/// What a link sends next.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    copied: Vec<u8>,
    parts: Vec<Part>,
    bytes: usize,
    /// Messages whose last frame is in it. They go after their parts do: see [`Outgoing`].
    ended: Vec<Outgoing>,
}

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
        self.copied.clear();
        self.parts.clear();
        self.ended.clear();
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.copied.extend_from_slice(bytes);
        match self.parts.last_mut() {
            Some(Part::Copied(length)) => *length += bytes.len(),
            _ => self.parts.push(Part::Copied(bytes.len())),
        }
    }

    fn put_part(&mut self, part: Bytes) {
        if part.len() < COPIED_MAX {
            return self.put(&part);
        }
        self.bytes += part.len();
        self.parts.push(Part::Shared(part));
    }

    /// The message has no more frames.
    pub(crate) fn end(&mut self, message: Outgoing) {
        self.ended.push(message);
    }

    fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut copied = &self.copied[..];
        let slice = |part| match part {
            &Part::Copied(length) => {
                let (slice, behind) = copied.split_at(length);
                copied = behind;
                IoSlice::new(slice)
            }
            Part::Shared(part) => IoSlice::new(part),
        };
        self.parts.iter().map(slice).collect()
    }

    /// Writes all of it.
    pub(crate) async fn write_to<W: AsyncWrite + Unpin>(&self, half: &mut W) -> io::Result<()> {
        let mut slices = self.slices();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            let written = half.write_vectored(left).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut left, written);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    impl Batch {
        /// All bytes.
        pub(crate) fn to_vec(&self) -> Vec<u8> {
            self.slices().iter().flat_map(|slice| slice.iter().copied()).collect()
        }
    }

    /// Takes seven bytes at once, of several parts.
    #[derive(Default)]
    struct Narrow(Vec<u8>);

    impl AsyncWrite for Narrow {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(context, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let before = self.0.len();
            let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
            self.0.extend(bytes.take(7));
            Poll::Ready(Ok(self.0.len() - before))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn parts_go_out_in_their_order_wherever_they_are() {
        let lengths = [0, 1, 3 * COPIED_MAX, COPIED_MAX - 1, COPIED_MAX, 0, 5000, 2];
        let part = |length: usize| Bytes::from_iter((0..length).map(|at| (at * length) as u8));
        let parts: Vec<Bytes> = lengths.into_iter().map(part).collect();
        let all = parts.concat();
        for step in [1, 7, COPIED_MAX, 5000, all.len()] {
            let (mut body, mut out) = (Body::from_iter(parts.clone()), Narrow::default());
            let mut batch = Batch::default();
            while !body.is_empty() {
                batch.clear();
                let before = body.len();
                batch.put(b"-");
                body.move_to(&mut batch, step);
                assert_eq!(batch.len(), 1 + before - body.len());
                assert_eq!(before - body.len(), step.min(before));
                batch.write_to(&mut out).await.unwrap();
                assert!(out.0.ends_with(&batch.to_vec()));
            }
            let is_mark = |at: &usize| at.is_multiple_of(step + 1);
            let bytes = (0..out.0.len()).filter(|at| !is_mark(at)).map(|at| out.0[at]);
            assert!(bytes.eq(all.iter().copied()), "in steps of {step}");
        }
    }
}
