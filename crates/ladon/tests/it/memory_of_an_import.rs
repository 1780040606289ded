//! An import takes at most 64 MB beside the data, whatever one value's size. Counted by the kernel: the
//! most that the process ever had.

use ladon_crash::ladon_check;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const MIB: u64 = 1 << 20;
/// Beside the data; what a process without data takes is in it.
const BESIDE_MAX: u64 = 64 * MIB;

/// A file of RDB with one key, whose encoding is `encoding`.
fn file(path: &Path, encoding: u8, value: impl FnOnce(&mut dyn Write)) {
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    out.write_all(b"REDIS0010\xfe\0").and_then(|()| out.write_all(&[encoding])).expect("room");
    out.write_all(b"\x03key").expect("room");
    value(&mut out);
    // Without a checksum.
    out.write_all(&[0xff, 0, 0, 0, 0, 0, 0, 0, 0]).and_then(|()| out.flush()).expect("room");
}

fn length(out: &mut dyn Write, length: u64) {
    out.write_all(&[0x81]).and_then(|()| out.write_all(&length.to_be_bytes())).expect("room");
}

/// Imports the file; returns the most memory that this took.
fn peak_of_import(path: &Path, data: &Path) -> u64 {
    let mut ladon = Command::new(env!("CARGO_BIN_EXE_ladon"))
        .args(["import", path.to_str().unwrap(), "--data", data.to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .expect("ladon runs");
    let status = format!("/proc/{}/status", ladon.id());
    let mut peak = 0;
    let ended = loop {
        // Nothing once it has ended.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) * 1024);
        match ladon.try_wait().expect("it can be awaited") {
            Some(status) => break status,
            None => sleep(Duration::from_millis(1)),
        }
    };
    assert!(ended.success(), "{ended}");
    peak
}

fn check(name: &str, data_bytes: u64, encoding: u8, value: impl FnOnce(&mut dyn Write)) {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, data) = (dir.path().join("file.rdb"), dir.path().join("data"));
    file(&path, encoding, value);
    let peak = peak_of_import(&path, &data);
    let (code, report) =
        ladon_check(Path::new(env!("CARGO_BIN_EXE_ladon")), &data).expect("checks");
    assert_eq!(code, Some(0), "{report}");
    assert!(
        peak >= data_bytes,
        "{name}: {peak} bytes are less than the data: nothing was measured"
    );
    let beside = (peak - data_bytes) / MIB;
    assert!(peak <= data_bytes + BESIDE_MAX, "{name}: {beside} MiB beside the data");
}

#[test]
fn of_a_long_string() {
    let bytes = 192 * MIB;
    check("a string", bytes, 0, |out| {
        length(out, bytes);
        (0..bytes / MIB).for_each(|n| out.write_all(&[n as u8; MIB as usize]).expect("room"));
    });
}

/// Six megabytes of the file are 512 of the string.
#[test]
fn of_a_compressed_string() {
    /// LZF: "copy 264 bytes from the byte before".
    const COPY: [u8; 3] = [0xe0, 0xff, 0];
    let copies = 512 * MIB / 264;
    let bytes = 1 + copies * 264;
    check("a compressed string", bytes, 0, |out| {
        out.write_all(&[0xc3]).expect("room");
        length(out, 2 + copies * COPY.len() as u64);
        length(out, bytes);
        out.write_all(b"\0v").expect("room");
        (0..copies).for_each(|_| out.write_all(&COPY).expect("room"));
    });
}

#[test]
fn of_a_long_list() {
    let (elements, bytes) = (2_000_000_u64, 100);
    check("a list", elements * bytes, 1, |out| {
        length(out, elements);
        for n in 0..elements {
            // Nothing that a list would keep compressed.
            let hash = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let text = format!("{hash:020}{:020}{:020}{:020}{n:020}", hash >> 3, hash << 7, !hash);
            out.write_all(&[0x40, 100])
                .and_then(|()| out.write_all(text.as_bytes()))
                .expect("room");
        }
    });
}
