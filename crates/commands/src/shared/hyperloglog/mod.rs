//! The bytes of a HyperLogLog, as Redis has them.
//!
//! ```text
//! +------+----------+----------+-------------+-----------+
//! | HYLL | encoding | 3 unused | cardinality | registers |
//! +------+----------+----------+-------------+-----------+
//!  4      1          3          8, little endian; its highest bit: must be computed anew
//! ```
//!
//! A register holds the longest run of zeros, plus one, that the hash of an element of that
//! register began with. There are 16384 of 6 bits: packed (`dense`), or as runs (`sparse`).
//!
//! Clients can write any bytes into such a string, so every function here takes any bytes.

pub(crate) mod dense;
mod estimate;
mod hash;
pub(crate) mod sparse;

#[cfg(test)]
mod tests;

pub(crate) use estimate::{Histogram, estimate};
pub(crate) use hash::{Position, position};

/// The low bits of an element's hash say which register it belongs to.
const REGISTER_BITS: u32 = 14;
/// Number of registers.
pub(crate) const REGISTERS: usize = 1 << REGISTER_BITS;
/// The other bits of the hash.
const PATTERN_BITS: u32 = 64 - REGISTER_BITS;

/// Where the registers begin.
pub(crate) const HEADER_BYTES: usize = 16;
const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const CARDINALITY_AT: usize = 8;
/// The byte with the highest bit of the cardinality.
pub(crate) const STALE_AT: usize = 15;
const STALE: u8 = 0x80;

/// Why a string is no HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// Its header, or its length.
    Form,
    /// Its registers.
    Content,
}

/// How the registers are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Dense,
    Sparse,
}

/// The encoding of these bytes, if their header and length are those of a HyperLogLog.
#[inline]
pub(crate) fn encoding(bytes: &[u8]) -> Result<Encoding, Invalid> {
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
        return Err(Invalid::Form);
    }
    match bytes[ENCODING_AT] {
        0 if bytes.len() == dense::BYTES => Ok(Encoding::Dense),
        1 => Ok(Encoding::Sparse),
        _ => Err(Invalid::Form),
    }
}

/// An empty one. Its cardinality is 0, and valid.
pub(crate) fn empty() -> Vec<u8> {
    let mut bytes = header(Encoding::Sparse).to_vec();
    sparse::push_empty(&mut bytes);
    bytes
}

fn header(encoding: Encoding) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header[ENCODING_AT] = u8::from(encoding == Encoding::Sparse);
    header
}

/// The cardinality that was computed last, unless a register has changed since.
#[inline]
pub(crate) fn cached(bytes: &[u8]) -> Option<u64> {
    let cardinality = bytes[CARDINALITY_AT..HEADER_BYTES].first_chunk::<8>()?;
    (bytes[STALE_AT] & STALE == 0).then(|| u64::from_le_bytes(*cardinality))
}

/// Keeps the cardinality in the header; the range that was written.
pub(crate) fn cache(bytes: &mut [u8], cardinality: u64) -> std::ops::Range<usize> {
    let range = CARDINALITY_AT..HEADER_BYTES;
    bytes[range.clone()].copy_from_slice(&cardinality.to_le_bytes());
    range
}

/// Notes that the cardinality must be computed anew; whether that was not noted before.
#[inline]
pub(crate) fn invalidate(bytes: &mut [u8]) -> bool {
    let was_valid = bytes[STALE_AT] & STALE == 0;
    bytes[STALE_AT] |= STALE;
    was_valid
}

/// Makes a sparse one dense, with the same header otherwise.
pub(crate) fn make_dense(bytes: &mut Vec<u8>) -> Result<(), Invalid> {
    let mut registers = Registers::new();
    registers.merge_sparse(&bytes[HEADER_BYTES..])?;
    bytes.truncate(HEADER_BYTES);
    bytes[ENCODING_AT] = 0;
    bytes.resize(dense::BYTES, 0);
    registers.pack(&mut bytes[HEADER_BYTES..]);
    Ok(())
}

/// Raises a register to at least `count`; whether it was lower. A sparse one becomes dense if it
/// would outgrow `sparse_bytes_max`, or if it cannot express the count.
pub(crate) fn raise(
    bytes: &mut Vec<u8>,
    position: Position,
    sparse_bytes_max: usize,
    cursor: &mut sparse::Cursor,
) -> Result<bool, Invalid> {
    if encoding(bytes)? == Encoding::Sparse {
        match sparse::raise(bytes, position, sparse_bytes_max, cursor)? {
            sparse::Raised::No => return Ok(false),
            sparse::Raised::Yes => return Ok(true),
            sparse::Raised::MustBeDense => make_dense(bytes)?,
        }
    }
    Ok(dense::raise(&mut bytes[HEADER_BYTES..], position).is_some())
}

/// The estimate of these bytes' registers.
pub(crate) fn count(bytes: &[u8]) -> Result<u64, Invalid> {
    let registers = &bytes[HEADER_BYTES..];
    let histogram = match encoding(bytes)? {
        Encoding::Dense => dense::histogram(registers),
        Encoding::Sparse => sparse::histogram(registers)?,
    };
    Ok(estimate(&histogram))
}

/// Registers of a byte each: the maxima of several HyperLogLogs.
pub(crate) struct Registers(Box<[u8; REGISTERS]>);

impl Registers {
    pub(crate) fn new() -> Registers {
        let zeros = vec![0; REGISTERS].into_boxed_slice();
        Registers(zeros.try_into().unwrap_or_else(|_| unreachable!("that many were made")))
    }

    /// Raises each register to that of `bytes`; returns how they were encoded.
    pub(crate) fn merge(&mut self, bytes: &[u8]) -> Result<Encoding, Invalid> {
        let encoding = encoding(bytes)?;
        match encoding {
            Encoding::Dense => dense::merge_into(&mut self.0, &bytes[HEADER_BYTES..]),
            Encoding::Sparse => self.merge_sparse(&bytes[HEADER_BYTES..])?,
        }
        Ok(encoding)
    }

    /// Raises a register.
    pub(crate) fn raise(&mut self, position: Position) {
        let register = &mut self.0[position.index];
        *register = position.count.max(*register);
    }

    fn merge_sparse(&mut self, runs: &[u8]) -> Result<(), Invalid> {
        let mut first = 0;
        for run in sparse::runs(runs) {
            let end = first + run.length;
            let registers = self.0.get_mut(first..end).ok_or(Invalid::Content)?;
            if run.value != 0 {
                registers.iter_mut().for_each(|register| *register = run.value.max(*register));
            }
            first = end;
        }
        if first == REGISTERS { Ok(()) } else { Err(Invalid::Content) }
    }

    fn pack(&self, packed: &mut [u8]) {
        for (index, &count) in self.0.iter().enumerate().filter(|(_, count)| **count != 0) {
            dense::raise(packed, Position { index, count });
        }
    }

    /// Those that are not 0.
    pub(crate) fn nonzero(&self) -> impl Iterator<Item = Position> {
        let all = self.0.iter().enumerate().map(|(index, &count)| Position { index, count });
        all.filter(|position| position.count != 0)
    }

    #[cfg(test)]
    pub(crate) fn as_bytes(&self) -> &[u8; REGISTERS] {
        &self.0
    }

    pub(crate) fn histogram(&self) -> Histogram {
        let (groups, _) = self.0.as_chunks::<8>();
        Histogram::of_groups(groups.iter().copied())
    }
}

/// Estimates how many distinct elements there are, in a fixed amount of memory: what `PFCOUNT` of a
/// HyperLogLog of the same elements answers.
pub(crate) struct Distinct(Registers);

impl Distinct {
    pub(crate) fn new() -> Distinct {
        Distinct(Registers::new())
    }

    pub(crate) fn add(&mut self, element: &[u8]) {
        self.0.raise(position(element));
    }

    pub(crate) fn estimate(&self) -> u64 {
        estimate(&self.0.histogram())
    }
}
