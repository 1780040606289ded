//! The memory that the kernel receives into.
//!
//! A provided buffer ring: the kernel takes a buffer when bytes have arrived, so idle connections
//! hold none. Buffers that small messages use are touched in their first page only, and only as
//! many are offered as the traffic needs: more after the kernel ran out.
//!
//! Each buffer starts one cache line further into its page than the one before. Were they all
//! page aligned, the first lines of all buffers would fight for the same few sets of the caches.
//!
//! Soundness. A buffer is at any time either the kernel's (offered, or being filled) or ours
//! (between its completion and `give_back`). [`ReceiveBuffers::take`] is the only way to read one;
//! it checks index and length against what was set up, reads only while the buffer is ours, and
//! gives it back afterwards. That an index is ours is the kernel's promise: a completion that
//! names a buffer hands it over, once. The bytes it names are initialised, as the kernel wrote
//! them. Memory and ring outlive the kernel's use: the owner drops this only after the io_uring
//! is closed with no receive in flight, or never (see `ring.rs`).

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

pub(super) const GROUP: u16 = 0;
/// What one completion can carry. Larger ones make a turn's footprint larger than the caches,
/// smaller ones make large values cost more completions.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;
/// At most 8 MiB per thread, and that only under load; a power of two.
const BUFFERS_MAX: u16 = 512;
/// Enough for 50 busy connections.
const BUFFERS_AT_FIRST: u16 = 64;
const CACHE_LINE: usize = 64;
const STRIDE: usize = BUFFER_BYTES + CACHE_LINE;

pub(super) struct ReceiveBuffers {
    entries: Mapping,
    memory: Mapping,
    /// Buffers from this index on were not offered yet.
    offered: u16,
    tail: u16,
}

impl ReceiveBuffers {
    pub(super) fn register(uring: &IoUring) -> io::Result<ReceiveBuffers> {
        let entries = Mapping::new(BUFFERS_MAX as usize * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(BUFFERS_MAX as usize * STRIDE)?;
        // SAFETY: page aligned, large enough, and outlives its use (see above).
        unsafe {
            uring.submitter().register_buf_ring_with_flags(
                entries.address.as_ptr() as u64,
                BUFFERS_MAX,
                GROUP,
                0,
            )?;
        }
        let mut buffers = ReceiveBuffers { entries, memory, offered: 0, tail: 0 };
        buffers.offer_up_to(BUFFERS_AT_FIRST);
        Ok(buffers)
    }

    /// Doubles the number of offered buffers after the kernel has run out.
    pub(super) fn offer_more(&mut self) {
        self.offer_up_to(self.offered.saturating_mul(2));
    }

    /// Passes the `length` bytes that the kernel put into buffer `index` to `read`, then returns
    /// the buffer to the kernel.
    ///
    /// # Panics
    /// If the kernel names a buffer or a length that it was never given.
    pub(super) fn take<T>(
        &mut self,
        index: u16,
        length: usize,
        read: impl FnOnce(&[u8]) -> T,
    ) -> T {
        assert!(index < self.offered && length <= BUFFER_BYTES, "not a buffer of ours");
        // SAFETY: inside the mapping, initialised and ours until `give_back` (see above).
        let bytes = unsafe {
            let start = self.memory.address.as_ptr().add(index as usize * STRIDE);
            std::slice::from_raw_parts(start, length)
        };
        let result = read(bytes);
        self.give_back(index);
        result
    }

    fn offer_up_to(&mut self, count: u16) {
        let count = count.min(BUFFERS_MAX);
        for index in self.offered..count {
            self.offered = index + 1;
            self.give_back(index);
        }
    }

    fn give_back(&mut self, index: u16) {
        let entries = self.entries.address.as_ptr().cast::<BufRingEntry>();
        // SAFETY: inside the mappings. The kernel reads an entry only below the tail, and there
        // are never more buffers than entries, so this entry is ours until the tail moves.
        unsafe {
            let entry = &mut *entries.add((self.tail & (BUFFERS_MAX - 1)) as usize);
            entry.set_addr(self.memory.address.as_ptr().add(index as usize * STRIDE) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(index);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Anonymous memory: zeroed, page aligned, and real only where it was touched.
struct Mapping {
    address: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(length: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh mapping, wherever the kernel likes.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { address, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and borrowed by nobody any more.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.length) };
    }
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Mapping {}
