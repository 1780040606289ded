//! AES in the modes of `crypto.cipher`, fed in parts. The block cipher is the crate `aes`.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256, Block};

/// Bytes of a block, and of an initialization vector.
pub(crate) const BLOCK: usize = 16;

/// A mode of operation (NIST SP 800-38A).
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Ecb,
    Cbc,
    Cfb,
    Ofb,
}

impl Mode {
    pub(crate) fn named(name: &[u8]) -> Option<Mode> {
        match name {
            b"ecb" => Some(Mode::Ecb),
            b"cbc" => Some(Mode::Cbc),
            b"cfb" => Some(Mode::Cfb),
            b"ofb" => Some(Mode::Ofb),
            _ => None,
        }
    }

    /// Bytes that its initialization vector has.
    pub(crate) fn iv_bytes(self) -> usize {
        if self == Mode::Ecb { 0 } else { BLOCK }
    }
}

enum Aes {
    Short(Box<Aes128>),
    Middle(Box<Aes192>),
    Long(Box<Aes256>),
}

impl Aes {
    fn new(key: &[u8]) -> Option<Aes> {
        Some(match key.len() {
            16 => Aes::Short(Box::new(Aes128::new_from_slice(key).ok()?)),
            24 => Aes::Middle(Box::new(Aes192::new_from_slice(key).ok()?)),
            32 => Aes::Long(Box::new(Aes256::new_from_slice(key).ok()?)),
            _ => return None,
        })
    }

    fn encrypt(&self, bytes: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Block::from(bytes);
        match self {
            Aes::Short(aes) => aes.encrypt_block(&mut block),
            Aes::Middle(aes) => aes.encrypt_block(&mut block),
            Aes::Long(aes) => aes.encrypt_block(&mut block),
        }
        block.into()
    }

    fn decrypt(&self, bytes: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Block::from(bytes);
        match self {
            Aes::Short(aes) => aes.decrypt_block(&mut block),
            Aes::Middle(aes) => aes.decrypt_block(&mut block),
            Aes::Long(aes) => aes.decrypt_block(&mut block),
        }
        block.into()
    }
}

/// A text on its way through the cipher.
pub(crate) struct Cipher {
    aes: Aes,
    mode: Mode,
    encrypts: bool,
    /// The last block of the secret text; in the streaming modes, the bytes to mix with.
    chain: [u8; BLOCK],
    /// Bytes of `chain` that the streaming modes have used.
    used: usize,
    /// Bytes that are no whole block yet; when decrypting, the last whole block too.
    pending: Vec<u8>,
}

fn mix(left: [u8; BLOCK], right: [u8; BLOCK]) -> [u8; BLOCK] {
    std::array::from_fn(|place| left[place] ^ right[place])
}

impl Cipher {
    /// `None` if the key or the vector has no right length.
    pub(crate) fn new(mode: Mode, encrypts: bool, key: &[u8], iv: &[u8]) -> Option<Cipher> {
        let chain = match mode.iv_bytes() {
            0 => [0; BLOCK],
            _ => iv.try_into().ok()?,
        };
        Some(Cipher {
            aes: Aes::new(key)?,
            mode,
            encrypts,
            chain,
            used: BLOCK,
            pending: Vec::new(),
        })
    }

    fn has_blocks(&self) -> bool {
        matches!(self.mode, Mode::Ecb | Mode::Cbc)
    }

    /// Takes more of the text, and appends what can be said already.
    pub(crate) fn update(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if !self.has_blocks() {
            self.stream(bytes, out);
            return;
        }
        self.pending.extend_from_slice(bytes);
        // The last block of a secret text has the padding.
        let kept = if self.encrypts { 0 } else { 1 };
        let whole = self.pending.len().saturating_sub(kept) / BLOCK * BLOCK;
        let blocks: Vec<u8> = self.pending.drain(..whole).collect();
        for block in blocks.chunks_exact(BLOCK) {
            let block = block.try_into().expect("a block is as long as one");
            out.extend_from_slice(&self.block(block));
        }
    }

    fn block(&mut self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        match (self.mode, self.encrypts) {
            (Mode::Cbc, true) => {
                self.chain = self.aes.encrypt(mix(block, self.chain));
                self.chain
            }
            (Mode::Cbc, false) => {
                let plain = mix(self.aes.decrypt(block), self.chain);
                self.chain = block;
                plain
            }
            (_, true) => self.aes.encrypt(block),
            (_, false) => self.aes.decrypt(block),
        }
    }

    fn stream(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for byte in bytes {
            if self.used == BLOCK {
                (self.chain, self.used) = (self.aes.encrypt(self.chain), 0);
            }
            let mixed = byte ^ self.chain[self.used];
            if self.mode == Mode::Cfb {
                self.chain[self.used] = if self.encrypts { mixed } else { *byte };
            }
            self.used += 1;
            out.push(mixed);
        }
    }

    /// The end of the text. Fails if the secret text has no right padding (PKCS #7).
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), &'static str> {
        if !self.has_blocks() {
            return Ok(());
        }
        if self.encrypts {
            let missing = BLOCK - self.pending.len();
            self.update(&vec![missing as u8; missing], out);
            return Ok(());
        }
        let Ok(last) = <[u8; BLOCK]>::try_from(self.pending.as_slice()) else {
            return Err("wrong final block length");
        };
        let plain = self.block(last);
        let count = usize::from(plain[BLOCK - 1]);
        let is_padded = (1..=BLOCK).contains(&count)
            && plain[BLOCK - count..].iter().all(|byte| usize::from(*byte) == count);
        if !is_padded {
            return Err("bad decrypt");
        }
        out.extend_from_slice(&plain[..BLOCK - count]);
        Ok(())
    }
}
