//! The io_uring itself: requests in, completions out.
//!
//! A send comes in one of two forms. The *quiet* one asks for no completion if the kernel takes
//! everything at once, and for a completion with an error or a short count otherwise
//! (`IOSQE_CQE_SKIP_SUCCESS`, with `MSG_DONTWAIT` so that it never waits and `MSG_WAITALL` so that
//! a short count is a failure). It runs inside the system call that submits it, so after that call
//! every quiet send without a completion is done. Without this, the completions of a turn's sends
//! would end the very wait that submitted them, and each turn would cost two system calls. The
//! *waiting* one completes when everything is sent.
//!
//! Soundness. The kernel may use a request's memory until its completion:
//! - a buffer to be sent is owned by `outgoing` from the push until its completion was reaped, or
//!   until it is known that a quiet send is done; a `Vec`'s bytes do not move with it, nor do those
//!   behind an `Arc`, which nobody can change while this is one of its holders;
//! - receive buffers are never freed before this is dropped (see `buffers.rs`).
//!
//! Dropping cancels all requests and waits for that; if it cannot be sure, it leaks the memory.
//! Requests other than sends and receives carry no pointers.

use super::buffers::{BUFFER_BYTES, GROUP, ReceiveBuffers};
use super::token::{self, Kind};
use crate::{ConnId, Outgoing};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use std::collections::VecDeque;
use std::io;
use std::mem::{self, ManuallyDrop};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::{Duration, Instant};

/// Requests of one turn before a system call in between; 64 bytes each.
const SUBMISSIONS: u32 = 512;
/// Completions before the kernel has to keep them elsewhere; 16 bytes each.
const COMPLETIONS: u32 = 4096;
/// A larger buffer probably exceeds the socket's, so the quiet form would fail.
const QUIET_BYTES_MAX: usize = 64 * 1024;
/// The kernel's own limit is just below 2 GiB.
const SEND_BYTES_MAX: usize = 1 << 30;
/// How long dropping waits for the kernel to release the buffers.
const LET_GO: Duration = Duration::from_secs(1);

pub(super) struct Ring {
    uring: IoUring,
    receive_buffers: ManuallyDrop<ReceiveBuffers>,
    /// By slot.
    outgoing: Vec<Option<Sending>>,
    /// Slots of quiet sends whose outcome is not known yet.
    quiet: Vec<u32>,
    /// Requests for which the submission queue had no room, or that came before the start.
    waiting: VecDeque<squeue::Entry>,
    /// Receives and sends whose memory the kernel may use, or that wait to be submitted.
    in_flight: usize,
    started: bool,
    offered_more: bool,
    /// The last system call took all requests.
    all_submitted: bool,
}

struct Sending {
    conn: ConnId,
    buffer: Outgoing,
    sent: usize,
    fd: RawFd,
    quiet: bool,
    abandoned: bool,
}

/// A completed request.
pub(super) enum Event {
    Accepted {
        token: u64,
        result: io::Result<OwnedFd>,
        more: bool,
    },
    Received {
        token: u64,
        result: io::Result<Received>,
        more: bool,
    },
    Woken {
        more: bool,
    },
    /// All of the buffer was sent.
    Sent {
        token: u64,
        buffer: Outgoing,
    },
    /// Sending failed; the buffer is gone.
    SendFailed {
        token: u64,
        error: io::Error,
    },
}

/// Bytes in a receive buffer, to be taken with [`Ring::take`].
pub(super) struct Received {
    buffer: u16,
    length: usize,
}

impl Received {
    pub(super) fn is_end(&self) -> bool {
        self.length == 0
    }

    /// Whether more bytes may have been there.
    pub(super) fn fills_its_buffer(&self) -> bool {
        self.length == BUFFER_BYTES
    }
}

impl Ring {
    pub(super) fn new() -> io::Result<Ring> {
        let uring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_clamp()
            .setup_submit_all()
            // Completions are prepared inside our own system call, without interrupts in between,
            // and without locks, because only one thread submits.
            .setup_single_issuer()
            .setup_defer_taskrun()
            // That thread is the one that polls first, not the one that opens.
            .setup_r_disabled()
            .build(SUBMISSIONS)?;
        let parameters = uring.params();
        if !(parameters.is_feature_nodrop()
            && parameters.is_feature_ext_arg()
            && parameters.is_feature_skip_cqe_on_success())
        {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel's io_uring is too old",
            ));
        }
        let receive_buffers = ManuallyDrop::new(ReceiveBuffers::register(&uring)?);
        Ok(Ring {
            uring,
            receive_buffers,
            outgoing: Vec::new(),
            quiet: Vec::new(),
            waiting: VecDeque::new(),
            in_flight: 0,
            started: false,
            offered_more: false,
            all_submitted: true,
        })
    }

    /// Binds the ring to the calling thread; every other call that enters the kernel has to come
    /// from the same thread.
    pub(super) fn start(&mut self) -> io::Result<()> {
        if !self.started {
            self.uring.submitter().register_enable_rings()?;
            self.started = true;
        }
        Ok(())
    }

    pub(super) fn accept(&mut self, token: u64, fd: RawFd) {
        let accept = opcode::AcceptMulti::new(Fd(fd)).flags(libc::SOCK_CLOEXEC).build();
        self.push(accept.user_data(token));
    }

    /// Receives whatever comes, until it is cancelled.
    pub(super) fn receive(&mut self, conn: ConnId, fd: RawFd) {
        self.push_receive(conn, opcode::RecvMulti::new(Fd(fd), GROUP).build());
    }

    /// Receives once, what one buffer holds at most.
    pub(super) fn receive_buffer(&mut self, conn: ConnId, fd: RawFd) {
        let receive = opcode::Recv::new(Fd(fd), ptr::null_mut(), BUFFER_BYTES as u32)
            .buf_group(GROUP)
            .build()
            .flags(squeue::Flags::BUFFER_SELECT);
        self.push_receive(conn, receive);
    }

    fn push_receive(&mut self, conn: ConnId, receive: squeue::Entry) {
        self.in_flight += 1;
        self.push(receive.user_data(token::of_connection(Kind::Receive, conn)));
    }

    pub(super) fn watch(&mut self, fd: RawFd) {
        let poll = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32).multi(true).build();
        self.push(poll.user_data(token::plain(Kind::Wake)));
    }

    /// Cancels the request with this token; it completes with `ECANCELED`, if it was not over.
    pub(super) fn cancel(&mut self, token: u64) {
        let cancel = opcode::AsyncCancel::new(token).build().flags(squeue::Flags::SKIP_SUCCESS);
        self.push(cancel.user_data(token::plain(Kind::Cancel)));
    }

    pub(super) fn send(&mut self, conn: ConnId, fd: RawFd, buffer: Outgoing) {
        let slot = conn.slot as usize;
        if slot >= self.outgoing.len() {
            self.outgoing.resize_with(slot + 1, || None);
        }
        assert!(self.outgoing[slot].is_none(), "one buffer in flight per connection");
        let quiet = buffer.len() <= QUIET_BYTES_MAX;
        self.outgoing[slot] = Some(Sending { conn, buffer, sent: 0, fd, quiet, abandoned: false });
        self.push_send(slot);
    }

    /// Cancels what is in flight on this connection: it completes as failed, or as sent if it was
    /// done already.
    pub(super) fn cancel_send(&mut self, conn: ConnId) {
        if let Some(Some(outgoing)) = self.outgoing.get_mut(conn.slot as usize) {
            outgoing.abandoned = true;
            // A quiet one never waits.
            if !outgoing.quiet {
                self.cancel(token::of_connection(Kind::Send, conn));
            }
        }
    }

    /// A send of this connection is in flight: its buffer is the kernel's.
    pub(super) fn is_sending(&self, conn: ConnId) -> bool {
        self.outgoing.get(conn.slot as usize).is_some_and(Option::is_some)
    }

    /// Submits everything and waits for a completion, at most for `timeout` (`None`: no limit).
    pub(super) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.offered_more = false;
        self.submit_waiting();
        let timeout = if self.waiting.is_empty() { timeout } else { Some(Duration::ZERO) };
        let result = match timeout {
            None => self.uring.submit_and_wait(1),
            Some(Duration::ZERO) => self.submit(),
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                let arguments = SubmitArgs::new().timespec(&timeout);
                self.uring.submitter().submit_with_args(1, &arguments)
            }
        };
        self.all_submitted = self.waiting.is_empty() && self.uring.submission().is_empty();
        match result {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // Timeout; interrupted by a signal; the kernel wants completions reaped first, or
                // is short of memory for requests: the rest is submitted with the next call.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Completions are waiting inside the kernel, for lack of room.
    pub(super) fn overflowed(&mut self) -> bool {
        self.uring.submission().cq_overflow()
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        loop {
            let completion = self.uring.completion().next()?;
            let (token, result) = (completion.user_data(), completion.result());
            let more = cqueue::more(completion.flags());
            match token::kind(token) {
                Kind::Cancel => {}
                Kind::Wake => return Some(Event::Woken { more }),
                Kind::Accept => {
                    // SAFETY: a non-negative result of an accept is a fresh descriptor.
                    let result = check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
                    return Some(Event::Accepted { token, result, more });
                }
                Kind::Receive => {
                    self.in_flight -= usize::from(!more);
                    let buffer = cqueue::buffer_select(completion.flags());
                    let result = self.receive_completed(result, buffer);
                    return Some(Event::Received { token, result, more });
                }
                Kind::Send => {
                    if let Some(event) = self.send_completed(token, result) {
                        return Some(event);
                    }
                }
            }
        }
    }

    /// Passes received bytes to `read` and returns their buffer to the kernel.
    pub(super) fn take<T>(&mut self, received: Received, read: impl FnOnce(&[u8]) -> T) -> T {
        self.receive_buffers.take(received.buffer, received.length, read)
    }

    /// Called once all completions are reaped: reports the quiet sends that the kernel has taken.
    /// `false` if some are not known yet, so that the next wait must not block.
    pub(super) fn settle_quiet_sends(&mut self, mut report: impl FnMut(ConnId, Outgoing)) -> bool {
        if self.quiet.is_empty() {
            return true;
        }
        // Requests may have been queued since, for what completed: receives of one buffer always
        // are.
        if !self.all_submitted || self.uring.submission().cq_overflow() {
            // Not all sends were submitted, or a failure is still kept inside the kernel.
            return false;
        }
        for slot in self.quiet.drain(..) {
            if let Some(done) = self.outgoing[slot as usize].take_if(|outgoing| outgoing.quiet) {
                self.in_flight -= 1;
                report(done.conn, done.buffer);
            }
        }
        true
    }

    fn receive_completed(&mut self, result: i32, buffer: Option<u16>) -> io::Result<Received> {
        match (result, buffer) {
            (1.., Some(buffer)) => return Ok(Received { buffer, length: result as usize }),
            // Handed over without being used.
            (_, Some(buffer)) => self.receive_buffers.take(buffer, 0, |_| ()),
            (_, None) => {}
        }
        // Many receives may find no buffer in one turn; that is one shortage.
        if result == -libc::ENOBUFS && !self.offered_more {
            self.offered_more = true;
            self.receive_buffers.offer_more();
        }
        check(result).map(|_| Received { buffer: u16::MAX, length: 0 })
    }

    fn send_completed(&mut self, token: u64, result: i32) -> Option<Event> {
        let slot = token::slot(token) as usize;
        let outgoing = self.outgoing.get_mut(slot)?.as_mut()?;
        self.in_flight -= 1;
        let was_quiet = mem::replace(&mut outgoing.quiet, false);
        let failed = match check(result) {
            Ok(count) => {
                outgoing.sent += count as usize;
                let length = outgoing.buffer.len();
                assert!(outgoing.sent <= length, "{} of {length} bytes were sent", outgoing.sent);
                None
            }
            Err(error) if was_quiet && error.raw_os_error() == Some(libc::EAGAIN) => None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) => Some(error),
        };
        if failed.is_none() && outgoing.sent == outgoing.buffer.len() {
            let buffer = self.outgoing[slot].take()?.buffer;
            return Some(Event::Sent { token, buffer });
        }
        let abandoned = || io::Error::from_raw_os_error(libc::ECANCELED);
        if let Some(error) = failed.or_else(|| outgoing.abandoned.then(abandoned)) {
            self.outgoing[slot] = None;
            return Some(Event::SendFailed { token, error });
        }
        self.push_send(slot);
        None
    }

    fn push_send(&mut self, slot: usize) {
        let Some(outgoing) = self.outgoing[slot].as_ref() else { return };
        let rest = &outgoing.buffer[outgoing.sent..];
        let rest = &rest[..rest.len().min(SEND_BYTES_MAX)];
        let mut flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        if outgoing.quiet {
            flags |= libc::MSG_DONTWAIT;
        }
        let mut send = opcode::Send::new(Fd(outgoing.fd), rest.as_ptr(), rest.len() as u32)
            .flags(flags)
            .build()
            .user_data(token::of_connection(Kind::Send, outgoing.conn));
        if outgoing.quiet {
            self.quiet.push(slot as u32);
            send = send.flags(squeue::Flags::SKIP_SUCCESS);
        }
        self.in_flight += 1;
        self.push(send);
    }

    fn push(&mut self, entry: squeue::Entry) {
        if !self.waiting.is_empty() || !self.try_push(&entry) {
            self.waiting.push_back(entry);
            self.submit_waiting();
        }
    }

    fn submit_waiting(&mut self) {
        while let Some(entry) = self.waiting.pop_front() {
            if self.try_push(&entry) {
                continue;
            }
            self.waiting.push_front(entry);
            // If the kernel takes nothing now, the next poll tries again, and returns the error if
            // it is permanent.
            if !self.started || !matches!(self.submit(), Ok(1..)) {
                return;
            }
        }
    }

    fn try_push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: what the entry points to lives long enough; see the top of the file.
        unsafe { self.uring.submission().push(entry) }.is_ok()
    }

    /// Submits, and prepares what has completed, without waiting.
    fn submit(&mut self) -> io::Result<usize> {
        let count = self.uring.submission().len() as u32;
        // SAFETY: no argument is passed.
        unsafe {
            self.uring.submitter().enter::<libc::sigset_t>(
                count,
                0,
                EnterFlags::GETEVENTS.bits(),
                None,
            )
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let until = Instant::now() + LET_GO;
        for outgoing in self.outgoing.iter_mut().flatten() {
            outgoing.abandoned = true;
        }
        while self.started && self.in_flight > 0 && Instant::now() < until {
            // Fails on another thread than the ring's own.
            if self.enter(Some(Duration::ZERO)).is_err() {
                break;
            }
            let cancelled = self
                .uring
                .submitter()
                .register_sync_cancel(Some(Timespec::from(LET_GO)), CancelBuilder::any());
            if cancelled.is_err_and(|error| error.raw_os_error() != Some(libc::ENOENT))
                || self.enter(Some(Duration::ZERO)).is_err()
            {
                break;
            }
            while let Some(event) = self.next_event() {
                if let Event::Received { result: Ok(received), .. } = event
                    && !received.is_end()
                {
                    self.take(received, |_| ());
                }
            }
            self.settle_quiet_sends(|_, _| ());
        }
        if self.in_flight == 0 || !self.started {
            // SAFETY: no receive is in flight, and nobody uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.receive_buffers) };
        } else {
            mem::forget(mem::take(&mut self.outgoing));
        }
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result) }
}
