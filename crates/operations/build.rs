//! Compresses the console's pages (`pages/`) into the program.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let pages = Path::new("pages");
    println!("cargo::rerun-if-changed=pages");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let mut files = Vec::new();
    find(pages, &mut files)?;
    files.sort();
    let mut code = "static ASSETS: &[Asset] = &[\n".to_owned();
    for (number, file) in files.iter().enumerate() {
        let content = std::fs::read(file)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&content)?;
        let compressed = out.join(format!("{number}.gz"));
        std::fs::write(&compressed, encoder.finish()?)?;
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let path = file.strip_prefix(pages).map_err(io::Error::other)?;
        let etag = format!("\"{:016x}\"", hasher.finish());
        let line = format!(
            "    Asset {{ path: {path:?}, bytes: include_bytes!({compressed:?}), etag: {etag:?} }},"
        );
        writeln!(code, "{line}").map_err(io::Error::other)?;
    }
    code.push_str("];\n");
    std::fs::write(out.join("assets.rs"), code)
}

/// All files of a folder, and of those in it.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
