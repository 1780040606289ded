//! A piece of the log's memory, written by several threads at once.
//!
//! # Why this is sound
//! A chunk is plain heap memory behind a raw pointer; no `&mut` to its bytes ever exists.
//! [`crate::buffer::LogBuffer`] hands out disjoint ranges of it under a mutex, so two writers never
//! touch the same byte. A range is read only after its writer published it (release store of the
//! writer's mark, acquire load by the reader), so a read never races with the write, and every byte
//! read was written. A chunk is freed or reused only when all that was reserved in it has been
//! written to the file, which needs all of it to be published: no writer still holds a [`Place`].
//! What a chunk shares with others nobody writes to: it is behind an `Arc` that the chunk holds.
//! Loom checks exactly this protocol, each byte tracked (`tests/it/loom.rs`); Miri runs the unit
//! tests.

#[cfg(not(loom))]
pub(crate) use native::{Chunk, Place};
#[cfg(loom)]
pub(crate) use under_loom::{Chunk, Place};

#[cfg(not(loom))]
mod native {
    use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
    use std::ptr::NonNull;
    use std::sync::Arc;

    /// Heap memory of a fixed size: uninitialised, or with the bytes that it was created from.
    pub(crate) struct Chunk {
        start: NonNull<u8>,
        layout: Layout,
        /// The owner of the memory, if it is not the chunk itself; read-only.
        shared: Option<Arc<Vec<u8>>>,
    }

    // SAFETY: the memory is owned by the chunk; who touches which byte when is argued above.
    unsafe impl Send for Chunk {}
    // SAFETY: as for `Send`.
    unsafe impl Sync for Chunk {}

    impl Chunk {
        /// Allocates `capacity` bytes; aborts like `Vec` when there is no memory.
        pub(crate) fn new(capacity: usize) -> Chunk {
            let Ok(layout) = Layout::from_size_align(capacity.max(1), 64) else {
                panic!("a log record of {capacity} bytes cannot exist in memory");
            };
            // SAFETY: the size is not zero.
            let start = unsafe { alloc(layout) };
            let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
            Chunk { start, layout, shared: None }
        }

        /// Creates a chunk from these bytes without copying them.
        pub(crate) fn of(bytes: Box<[u8]>) -> Chunk {
            if bytes.is_empty() {
                return Chunk::new(0);
            }
            // The layout with which a box of these bytes was allocated.
            let layout = Layout::for_value(&*bytes);
            Chunk { start: NonNull::from(Box::leak(bytes)).cast(), layout, shared: None }
        }

        /// Creates a chunk from bytes that others share; read-only.
        pub(crate) fn shared(bytes: Arc<Vec<u8>>) -> Chunk {
            let layout = Layout::for_value(&bytes[..]);
            Chunk { start: NonNull::from(&bytes[..]).cast(), layout, shared: Some(bytes) }
        }

        pub(crate) fn capacity(&self) -> usize {
            self.layout.size()
        }

        /// The place `offset` bytes into the chunk.
        pub(crate) fn place(&self, offset: usize) -> Place {
            assert!(offset <= self.layout.size());
            // SAFETY: within the allocation or one past it.
            Place(unsafe { self.start.as_ptr().add(offset) })
        }
    }

    impl Drop for Chunk {
        fn drop(&mut self) {
            if self.shared.is_none() {
                // SAFETY: allocated in `new`, or as the box given to `of`, with this layout.
                unsafe { dealloc(self.start.as_ptr(), self.layout) }
            }
        }
    }

    /// The start of a reserved range.
    #[derive(Clone)]
    pub(crate) struct Place(*mut u8);

    // SAFETY: a `Place` is a plain address; its use is `unsafe` and argued at each use.
    unsafe impl Send for Place {}

    impl Place {
        /// Copies a frame here and fills in its CRC, the first four bytes.
        ///
        /// # Safety
        /// The caller has reserved `header.len() + payload.len()` bytes here and not yet published.
        #[inline]
        pub(crate) unsafe fn put_frame(&self, header: &[u8; 24], payload: &[u8]) {
            // SAFETY: the range is reserved for this caller alone, per this function's contract.
            unsafe {
                std::ptr::copy_nonoverlapping(header.as_ptr(), self.0, header.len());
                let behind = self.0.add(header.len());
                std::ptr::copy_nonoverlapping(payload.as_ptr(), behind, payload.len());
                let checked = header.len() - 4 + payload.len();
                let crc = crate::crc::crc32c(std::slice::from_raw_parts(self.0.add(4), checked));
                std::ptr::copy_nonoverlapping(crc.to_le_bytes().as_ptr(), self.0, 4);
            }
        }

        /// Copies a header here whose CRC is complete; its payload is in another chunk.
        ///
        /// # Safety
        /// The caller has reserved `header.len()` bytes here and not yet published.
        pub(crate) unsafe fn put_header(&self, header: &[u8; 24]) {
            // SAFETY: the range is reserved for this caller alone, per this function's contract.
            unsafe { std::ptr::copy_nonoverlapping(header.as_ptr(), self.0, header.len()) }
        }

        /// Copies a frame here that is complete.
        ///
        /// # Safety
        /// The caller has reserved `frame.len()` bytes here and not yet published.
        pub(crate) unsafe fn put_whole(&self, frame: &[u8]) {
            // SAFETY: the range is reserved for this caller alone, per this function's contract.
            unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), self.0, frame.len()) }
        }

        /// Shows `length` bytes from here to `reader`.
        ///
        /// # Safety
        /// All of them are published and not yet released.
        pub(crate) unsafe fn read<R>(&self, length: usize, reader: impl FnOnce(&[u8]) -> R) -> R {
            // SAFETY: published, so initialised and written by nobody; not released, so allocated.
            reader(unsafe { std::slice::from_raw_parts(self.0, length) })
        }
    }
}

#[cfg(loom)]
mod under_loom {
    use loom::cell::UnsafeCell;
    use std::sync::Arc;

    struct Cells(Box<[UnsafeCell<u8>]>);

    // SAFETY: loom checks every access, which is what this version is for.
    unsafe impl Send for Cells {}
    // SAFETY: as for `Send`.
    unsafe impl Sync for Cells {}

    /// The same, with every byte tracked by loom.
    pub(crate) struct Chunk(Arc<Cells>);

    impl Chunk {
        pub(crate) fn new(capacity: usize) -> Chunk {
            Chunk(Arc::new(Cells((0..capacity.max(1)).map(|_| UnsafeCell::new(0)).collect())))
        }

        pub(crate) fn of(bytes: Box<[u8]>) -> Chunk {
            Chunk(Arc::new(Cells(bytes.iter().map(|&byte| UnsafeCell::new(byte)).collect())))
        }

        pub(crate) fn shared(bytes: Arc<Vec<u8>>) -> Chunk {
            Chunk::of(bytes.as_slice().into())
        }

        pub(crate) fn capacity(&self) -> usize {
            self.0.0.len()
        }

        pub(crate) fn place(&self, offset: usize) -> Place {
            assert!(offset <= self.capacity());
            Place(self.0.clone(), offset)
        }
    }

    #[derive(Clone)]
    pub(crate) struct Place(Arc<Cells>, usize);

    impl Place {
        pub(crate) unsafe fn put_frame(&self, header: &[u8; 24], payload: &[u8]) {
            let mut frame = [&header[..], payload].concat();
            let crc = crate::crc::crc32c(&frame[4..]);
            frame[..4].copy_from_slice(&crc.to_le_bytes());
            for (cell, byte) in self.0.0[self.1..].iter().zip(frame) {
                // SAFETY: the range is reserved for this caller alone; loom checks that.
                cell.with_mut(|cell| unsafe { *cell = byte });
            }
        }

        pub(crate) unsafe fn put_header(&self, header: &[u8; 24]) {
            // SAFETY: as this function's contract says.
            unsafe { self.put_whole(header) }
        }

        pub(crate) unsafe fn put_whole(&self, frame: &[u8]) {
            for (cell, byte) in self.0.0[self.1..].iter().zip(frame) {
                // SAFETY: the range is reserved for this caller alone; loom checks that.
                cell.with_mut(|cell| unsafe { *cell = *byte });
            }
        }

        pub(crate) unsafe fn read<R>(&self, length: usize, reader: impl FnOnce(&[u8]) -> R) -> R {
            let cells = self.0.0[self.1..self.1 + length].iter();
            // SAFETY: published and not released; loom checks that.
            let bytes: Vec<u8> = cells.map(|cell| cell.with(|cell| unsafe { *cell })).collect();
            reader(&bytes)
        }
    }
}
