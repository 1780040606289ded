//! Packed fuzz corpora: every input that is kept for a fuzz target, in one text file.
//!
//! ```text
//! # a comment
//! "*1\r\n$4\r\nPING\r\n"      one input a line, in quotes; bytes that are not printable ASCII,
//! "\x00\xff"                  quotes and backslashes are escaped as in Rust's byte strings
//! ```
//!
//! [`pack`] writes inputs sorted and each once, so the same inputs always make the same file, and a
//! change of the corpus is a diff of lines.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A corpus with fewer inputs than this is an error: replaying them would prove nothing.
const INPUTS_MIN: usize = 20;

/// The packed corpus of a fuzz target of this repository.
pub fn file_of(target: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    folder.join(target).with_extension("txt")
}

/// Runs `check` on each input that is kept for `target`, and says on standard output which.
///
/// # Panics
/// If the corpus cannot be read or has next to nothing, and if `check` does.
pub fn replay(target: &str, check: fn(&[u8])) {
    let file = file_of(target);
    let inputs = read(&file).unwrap_or_else(|error| panic!("{error}"));
    for (line, input) in &inputs {
        println!("{}:{line}", file.display());
        check(input);
    }
    assert!(inputs.len() >= INPUTS_MIN, "only {} inputs in {}", inputs.len(), file.display());
}

/// Writes each input of a packed corpus to a separate file in `folder`, named by its line.
///
/// # Errors
/// A corpus or a folder that is not usable.
pub fn unpack(file: &Path, folder: &Path) -> io::Result<usize> {
    let inputs = read(file)?;
    fs::create_dir_all(folder)?;
    for (line, input) in &inputs {
        fs::write(folder.join(format!("{line:05}")), input)?;
    }
    Ok(inputs.len())
}

/// Makes a packed corpus of the files in `folder`, in the place of what `file` holds.
///
/// # Errors
/// A corpus or a folder that cannot be used.
pub fn pack(folder: &Path, file: &Path) -> io::Result<usize> {
    let mut inputs = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(|error| in_file(folder, &error))? {
        inputs.insert(fs::read(entry?.path())?);
    }
    fs::write(file, text_of(&inputs))?;
    Ok(inputs.len())
}

/// Inputs with the numbers of their lines.
fn read(file: &Path) -> io::Result<Vec<(usize, Vec<u8>)>> {
    let text = fs::read_to_string(file).map_err(|error| in_file(file, &error))?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#'));
    let inputs = lines.map(|(number, line)| {
        let input = input_of(line);
        let wrong = || format!("{}:{number}: no input: {line}", file.display());
        input.map(|input| (number, input)).ok_or_else(|| io::Error::other(wrong()))
    });
    inputs.collect()
}

fn in_file(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

fn text_of(inputs: &BTreeSet<Vec<u8>>) -> String {
    inputs.iter().map(|input| format!("\"{}\"\n", input.escape_ascii())).collect()
}

/// The bytes that a line means; `None` if it is not well-formed.
fn input_of(line: &str) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut input = Vec::new();
    while let Some(byte) = rest.next() {
        input.push(match byte {
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                quoted @ (b'\\' | b'"' | b'\'') => quoted,
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                _ => return None,
            },
            b'"' => return None,
            plain @ b' '..=b'~' => plain,
            _ => return None,
        });
    }
    Some(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_unpacking_gives_the_same_inputs() {
        let all: Vec<u8> = (0..=255).collect();
        let inputs: BTreeSet<Vec<u8>> =
            [&b""[..], b" ", b"\"", b"\\", b"#", &all].map(<[u8]>::to_vec).into();
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("in"), dir.path().join("packed.txt"));
        fs::create_dir(&folder).unwrap();
        for (number, input) in inputs.iter().enumerate() {
            fs::write(folder.join(number.to_string()), input).unwrap();
        }
        fs::write(folder.join("again"), b"#").unwrap();
        assert_eq!(pack(&folder, &file).unwrap(), inputs.len());
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.is_ascii() && text.lines().count() == inputs.len(), "{text}");

        let (folder, again) = (dir.path().join("out"), dir.path().join("again.txt"));
        assert_eq!(unpack(&file, &folder).unwrap(), inputs.len());
        let files = fs::read_dir(&folder).unwrap();
        let found: BTreeSet<_> = files.map(|it| fs::read(it.unwrap().path()).unwrap()).collect();
        assert_eq!(found, inputs);
        pack(&folder, &again).unwrap();
        assert_eq!(fs::read_to_string(&again).unwrap(), text);
    }

    #[test]
    fn a_line_that_is_no_input_is_an_error_with_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("packed.txt");
        for line in
            ["", "a", "\"", "\"a", "\"\\", "\"\\\"", "\"\\x4\"", "\"\\q\"", "\"a\"b\"", "\"é\""]
        {
            fs::write(&file, format!("# comment\n\"fine\"\n{line}\n")).unwrap();
            let error = read(&file).expect_err(line).to_string();
            assert!(error.contains("packed.txt:3: "), "{error}");
        }
        fs::write(&file, "# comment\n\"fine\"\n").unwrap();
        assert_eq!(read(&file).unwrap(), [(2, b"fine".to_vec())]);
    }
}
