//! Packed collections by hand: nothing of the crate under test makes them.

/// A ziplist of entries, each without the length of the one before it.
pub fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
    let (mut body, mut before, mut tail) = (Vec::new(), 0, 10);
    for entry in entries {
        tail = 10 + body.len();
        let start = body.len();
        if before < 254 {
            body.push(before as u8);
        } else {
            body.push(0xfe);
            body.extend_from_slice(&(before as u32).to_le_bytes());
        }
        body.extend_from_slice(entry);
        before = body.len() - start;
    }
    let mut out = (body.len() as u32 + 11).to_le_bytes().to_vec();
    out.extend_from_slice(&(tail as u32).to_le_bytes());
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&body);
    out.push(0xff);
    out
}

/// A listpack of entries, each without its length behind it.
pub fn listpack(entries: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        body.extend_from_slice(entry);
        match entry.len() {
            0..128 => body.push(entry.len() as u8),
            length @ 128..16384 => {
                body.extend_from_slice(&[(length >> 7) as u8, (length & 127) as u8 | 128]);
            }
            _ => panic!("longer entries are not made by hand"),
        }
    }
    let mut out = (body.len() as u32 + 7).to_le_bytes().to_vec();
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&body);
    out.push(0xff);
    out
}

/// A string of a file, not compressed.
pub fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x80];
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
    out
}

/// Parts one after the other.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A file without checksum (up to version 4) or with one that is not to be checked.
pub fn file(head: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = head.as_bytes().to_vec();
    out.extend_from_slice(&parts.concat());
    out.push(0xff);
    if !matches!(head, "REDIS0001" | "REDIS0002" | "REDIS0003" | "REDIS0004") {
        out.extend_from_slice(&[0; 8]);
    }
    out
}

/// A key with its value.
pub fn key(encoding: u8, name: &str, value: &[u8]) -> Vec<u8> {
    join(&[&[encoding], &string(name.as_bytes()), value])
}
