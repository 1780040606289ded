//! Certificates and keys out of PEM files. Every error names its file.

use crate::config::TlsError;
use pkcs8::EncryptedPrivateKeyInfoRef;
use pkcs8::der::pem::PemLabel;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A bundle of all of the world's authorities has a fifth of this.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Files of a directory of authorities that are read.
const FILES_MAX: usize = 1024;
/// Bytes of all of them.
const DIRECTORY_BYTES_MAX: usize = 4 << 20;

fn bad(path: &Path, reason: impl ToString) -> TlsError {
    TlsError::File { path: path.to_owned(), reason: reason.to_string() }
}

/// The bytes of a regular file. Another would never end (`/dev/zero`), or never begin (a FIFO).
fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|error| bad(path, error))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(bad(path, "it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| bad(path, error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(bad(path, format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

fn certificates_in(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>();
    found.map_err(|error| bad(path, error))
}

/// A certificate and those that lead to its authority.
pub(crate) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = certificates_in(path, &read(path)?)?;
    if chain.is_empty() {
        return Err(bad(path, "there is no certificate in it (-----BEGIN CERTIFICATE-----)"));
    }
    Ok(chain)
}

/// A private key, which `password` opens if it is encrypted.
pub(crate) fn key(path: &Path, password: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path)?;
    if let Ok(key) = PrivateKeyDer::from_pem_slice(&bytes) {
        // Old-fashioned encryption is a header of a section that looks like any other.
        if bytes.windows(10).any(|window| window == b"Proc-Type:") {
            return Err(bad(
                path,
                "this way of encrypting a key is not supported; openssl pkcs8 -topk8 -v2 aes256 \
                 makes one that is",
            ));
        }
        return Ok(key);
    }
    let text = str::from_utf8(&bytes).unwrap_or_default();
    let label = EncryptedPrivateKeyInfoRef::PEM_LABEL;
    let Some(start) = text.find(&format!("-----BEGIN {label}-----")) else {
        return Err(bad(path, "there is no private key in it"));
    };
    if password.is_empty() {
        return Err(bad(path, "the key is encrypted, and tls-key-file-pass is empty"));
    }
    let (_, document) =
        pkcs8::SecretDocument::from_pem(&text[start..]).map_err(|error| bad(path, error))?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| bad(path, error))?;
    let key = encrypted
        .decrypt(password)
        .map_err(|_| bad(path, "tls-key-file-pass does not open the key"))?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// The authorities in a file and in the files of a directory.
pub(crate) fn authorities(
    file: Option<&Path>,
    directory: Option<&Path>,
) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    let mut add = |path: &Path, found: Vec<CertificateDer<'static>>| {
        for certificate in found {
            store.add(certificate).map_err(|error| bad(path, error))?;
        }
        Ok::<(), TlsError>(())
    };
    if let Some(file) = file {
        add(file, chain(file)?)?;
    }
    if let Some(directory) = directory {
        let mut total = 0;
        for path in files_of(directory)? {
            // Directories of OpenSSL have other things too, lists of revoked certificates for one.
            let bytes = read(&path)?;
            total += bytes.len();
            if total > DIRECTORY_BYTES_MAX {
                let reason = format!("its files have more than {DIRECTORY_BYTES_MAX} bytes");
                return Err(bad(directory, reason));
            }
            add(&path, certificates_in(&path, &bytes)?)?;
        }
    }
    Ok(store)
}

fn files_of(directory: &Path) -> Result<Vec<PathBuf>, TlsError> {
    let entries = fs::read_dir(directory).map_err(|error| bad(directory, error))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| bad(directory, error))?.path();
        if path.is_file() {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(bad(directory, format!("it has more than {FILES_MAX} files")));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.is_ok_and(|status| status.success()));
        for path in [&fifo, Path::new("/dev/zero"), dir.path()] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.ends_with("it is no regular file"), "{error}");
        }
        let long = dir.path().join("long");
        fs::File::create(&long).unwrap().set_len(1 << 40).unwrap();
        assert!(read(&long).unwrap_err().to_string().contains("longer than"));
    }
}
