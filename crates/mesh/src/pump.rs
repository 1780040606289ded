//! What both ends of a link do with their connection: read, write, stay alive, end.

use crate::body::Batch;
use crate::frame::BadFrame;
use crate::mesh::Limits;
use crate::outbox::{Outbox, alive};
use std::io;
use std::pin::pin;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes read at once.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Bytes of a turn: some 100 us.
const TURN_BYTES: usize = 256 << 10;
/// As long may the text of a refusal take to leave, and what is under way to arrive.
const FAREWELL: Duration = Duration::from_millis(500);

/// Why a link ended.
#[derive(Debug, Error)]
pub(crate) enum Ended {
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the other side closed the connection")]
    Closed,
    #[error("the other side was silent for {} ms", .0.as_millis())]
    Silent(Duration),
    #[error("the other side took no bytes for {} ms", .0.as_millis())]
    Stalled(Duration),
    #[error("the other side ends the link: {0}")]
    Refused(String),
    #[error("the other side sent {0}")]
    Bad(#[from] BadFrame),
    #[error("this node ends the link: {0}")]
    Told(String),
    #[error("this node has ended the link")]
    Said,
}

/// A turn of a link's reading or writing. Others on the thread come between two turns, also if the
/// connection could go on and on.
#[derive(Debug, Default)]
pub(crate) struct Turn(usize);

impl Turn {
    /// So many bytes were moved.
    pub(crate) async fn moved(&mut self, bytes: usize) {
        self.0 += bytes;
        if self.0 >= TURN_BYTES {
            self.0 = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// Reads some bytes, which have to come within `silence`.
pub(crate) async fn read<R: AsyncRead + Unpin>(
    half: &mut R,
    buffer: &mut [u8],
    silence: Duration,
) -> Result<usize, Ended> {
    match timeout(silence, half.read(buffer)).await {
        Err(_) => Err(Ended::Silent(silence)),
        Ok(Ok(0)) => Err(Ended::Closed),
        Ok(read) => Ok(read?),
    }
}

/// Writes what is in the outbox, or now and then that this side is there.
async fn write<W: AsyncWrite + Unpin>(half: &mut W, outbox: &Outbox, limits: &Limits) -> Ended {
    let mut out = Batch::default();
    let mut turn = Turn::default();
    loop {
        out.clear();
        let is_last = outbox.fill(&mut out);
        if out.is_empty() {
            // An idle link keeps no buffer.
            out = Batch::default();
            if timeout(limits.alive_interval, outbox.wait()).await.is_ok() {
                continue;
            }
            out.put(&alive());
        }
        let written = async {
            out.write_to(half).await?;
            half.flush().await?;
            if is_last { half.shutdown().await } else { Ok(()) }
        };
        match timeout(limits.silence_max, written).await {
            Err(_) => return Ended::Stalled(limits.silence_max),
            Ok(Err(error)) => return error.into(),
            Ok(Ok(())) if is_last => return Ended::Said,
            Ok(Ok(())) => turn.moved(out.len()).await,
        }
    }
}

/// Runs `reader` beside the writing of the outbox until one of them ends. If that is this side's
/// decision, the other one hears why.
pub(crate) async fn drive<R, W>(
    (from, to): (&mut R, &mut W),
    outbox: &Outbox,
    limits: &Limits,
    reader: impl AsyncFnOnce(&mut R) -> Ended,
) -> Ended
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut writer = pin!(write(to, outbox, limits));
    let ended = tokio::select! {
        ended = reader(from) => ended,
        ended = &mut writer => return ended,
    };
    let told = match &ended {
        Ended::Bad(error) => Some(format!("it got {error}")),
        Ended::Told(text) => Some(text.clone()),
        _ => None,
    };
    if let Some(text) = told {
        outbox.refuse(text);
        let until = Instant::now() + FAREWELL;
        let _ = timeout_at(until, writer).await;
        // If unread bytes were left, the kernel would reset the connection, and the text be lost.
        let mut rest = [0; 4096];
        while let Ok(Ok(1..)) = timeout_at(until, from.read(&mut rest)).await {}
    }
    ended
}
