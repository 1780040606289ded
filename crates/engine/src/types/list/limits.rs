//! The maximum size of a chunk (`list-max-listpack-size`), and which chunks are compressed
//! (`list-compress-depth`).

/// How large a chunk may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// In bytes of a listpack; `usize::MAX` where elements are counted.
    bytes: usize,
    /// In elements; `usize::MAX` where bytes are counted.
    count: usize,
    /// Elements of at least so many bytes have a chunk of their own.
    large: usize,
    /// Chunks at each end of a list that are not compressed; 0 for all.
    pub(super) depth: usize,
}

/// Redis' default for a large element.
pub const LARGE_BYTES: usize = 1 << 30;

/// Even if elements are counted, a chunk of more than one stays below this.
const SAFE_BYTES: usize = 8192;

/// Bytes of a listpack of a single short string, besides the string.
const SINGLE_EXTRA_BYTES: usize = 9;

/// Redis' upper bound for the bytes of an entry besides its element.
const ENTRY_EXTRA_BYTES: usize = 8;

impl ListLimits {
    /// `list-max-listpack-size`: elements for each chunk, or -1 to -5 for 4, 8, 16, 32 or 64 KiB.
    pub fn of_setting(setting: i64) -> ListLimits {
        let (large, depth) = (LARGE_BYTES, 0);
        if setting >= 0 {
            let count = usize::try_from(setting).unwrap_or(usize::MAX).clamp(1, u16::MAX.into());
            return ListLimits { bytes: usize::MAX, count, large, depth };
        }
        let doublings = setting.max(-5).unsigned_abs() - 1;
        ListLimits { bytes: 4096 << doublings, count: usize::MAX, large, depth }
    }

    /// Elements of at least so many bytes have a chunk of their own.
    pub fn with_large(self, large: usize) -> ListLimits {
        ListLimits { large, ..self }
    }

    /// A list that gets a second chunk compresses chunks with this many or more on either side.
    pub fn with_depth(self, depth: usize) -> ListLimits {
        ListLimits { depth, ..self }
    }

    /// Whether this many elements of this many bytes are too much for one chunk.
    #[inline]
    pub(super) fn exceeded(self, bytes: usize, count: usize) -> bool {
        if self.bytes != usize::MAX {
            return bytes > self.bytes;
        }
        bytes > SAFE_BYTES || count > self.count
    }

    /// Whether a chunk of `count` elements in `bytes` takes another one of `len` bytes.
    #[inline]
    pub(super) fn admit(self, bytes: usize, count: usize, len: usize) -> bool {
        len < self.large
            && !self.exceeded(bytes.saturating_add(len + ENTRY_EXTRA_BYTES), count + 1)
            && !(count == 1 && self.may_be_large(bytes))
    }

    /// Whether the only element of a chunk of so many bytes is a large one.
    fn may_be_large(self, bytes: usize) -> bool {
        bytes >= self.large.saturating_add(SINGLE_EXTRA_BYTES)
    }

    /// Whether the remaining chunk of a shrunken list is small enough to be the whole list: half of
    /// a chunk's limit, so that a list at the limit does not convert back and forth.
    pub(super) fn is_small(self, bytes: usize, count: usize) -> bool {
        bytes <= self.bytes / 2
            && count <= self.count / 2
            && !(count == 1 && self.may_be_large(bytes))
    }
}
