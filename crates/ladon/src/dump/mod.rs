//! `ladon dump DIR`: every checkpoint and every log record of a data directory, readably.

mod json;
mod text;

use crate::check;
use crate::exit::Exit;
use crate::output::with_stdout;
use clap::ArgMatches;
use ladon_log::checkpoint::format::{CheckpointHeader, PartKind, checkpoint_begin};
use ladon_log::checkpoint::reader::{CheckpointError, CheckpointReader, Part};
use ladon_log::reader::{Frame, SegmentEnd, SegmentOpenError, SegmentReader};
use ladon_log::segment::{HeaderFault, SegmentHeader, segment_base};
use ladon_log::verify::verify_dir;
use ladon_platform::{Disk, SystemDisk};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The output format; each method writes complete lines.
trait Format {
    fn checkpoint(
        &self,
        out: &mut dyn Write,
        file: &str,
        header: &CheckpointHeader,
    ) -> io::Result<()>;
    fn part(&self, out: &mut dyn Write, file: &str, part: &Part) -> io::Result<()>;
    fn segment(&self, out: &mut dyn Write, file: &str, header: &SegmentHeader) -> io::Result<()>;
    fn frame(&self, out: &mut dyn Write, file: &str, frame: &Frame<'_>) -> io::Result<()>;
}

/// Prints the directory.
pub fn run(matches: &ArgMatches) -> Exit {
    let Some(dir) = matches.get_one::<PathBuf>("dir") else { return Exit::Usage };
    let mut files = match SystemDisk.list(dir) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("ladon dump: cannot list {}: {error}", dir.display());
            return Exit::Refused;
        }
    };
    files.sort();
    if !files.iter().any(|path| checkpoint_begin(path).is_some() || segment_base(path).is_some()) {
        eprintln!("ladon dump: there is no data in {}", dir.display());
        return Exit::Refused;
    }
    let format: &dyn Format = match matches.get_flag("json") {
        true => &json::Json,
        false => &text::Text,
    };
    let printed = with_stdout(|out| {
        let mut worst = Ok(());
        let checkpoints = files.iter().filter(|path| checkpoint_begin(path).is_some());
        let segments = files.iter().filter(|path| segment_base(path).is_some());
        for path in checkpoints {
            worst = worst.and(dump_checkpoint(out, format, path)?);
        }
        for path in segments {
            worst = worst.and(dump_segment(out, format, path)?);
        }
        Ok(worst)
    });
    match printed {
        Err(exit) => exit,
        Ok(Ok(())) => Exit::Ok,
        Ok(Err(Trouble::Refused)) => Exit::Refused,
        // A torn end is ordinary after a crash; only a check of the whole directory distinguishes
        // it from damage.
        Ok(Err(Trouble::Unreadable)) => match verify_dir(&SystemDisk, dir) {
            Ok(report) if report.is_sound() => Exit::Ok,
            Ok(report) if report.damages.is_empty() => Exit::NotNeeded,
            Ok(_) => Exit::Damaged,
            Err(error) => check::exit_of(&error),
        },
    }
}

/// Why a file could not be printed to its end; already reported.
enum Trouble {
    /// The surroundings, or a newer version's format.
    Refused,
    /// Its bytes.
    Unreadable,
}

fn dump_checkpoint(
    out: &mut dyn Write,
    format: &dyn Format,
    path: &Path,
) -> io::Result<Result<(), Trouble>> {
    let file = name(path);
    let reader = match CheckpointReader::open(&SystemDisk, path) {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(tell_checkpoint(path, error))),
    };
    format.checkpoint(out, &file, reader.header())?;
    loop {
        match reader.next_part() {
            Ok(Some(part)) if part.kind == PartKind::End => {}
            Ok(Some(part)) => format.part(out, &file, &part)?,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(tell_checkpoint(path, error))),
        }
    }
}

fn dump_segment(
    out: &mut dyn Write,
    format: &dyn Format,
    path: &Path,
) -> io::Result<Result<(), Trouble>> {
    let file = name(path);
    let mut reader = match SegmentReader::open(&SystemDisk, path) {
        Ok(reader) => reader,
        Err(SegmentOpenError::Io(error)) => return Ok(Err(tell_io(path, &error))),
        Err(SegmentOpenError::Header(HeaderFault::Newer(found))) => {
            return Ok(Err(tell_newer(path, found)));
        }
        Err(SegmentOpenError::Header(HeaderFault::Bad(found))) => {
            eprintln!("{}: at byte 0: {found}", path.display());
            return Ok(Err(Trouble::Unreadable));
        }
    };
    format.segment(out, &file, reader.header())?;
    loop {
        let batch = match reader.next_batch() {
            Ok(batch) => batch,
            Err(error) => return Ok(Err(tell_io(path, &error))),
        };
        for frame in batch.frames() {
            format.frame(out, &file, &frame)?;
        }
        match reader.end() {
            Some(SegmentEnd::Bad { offset, found }) if batch.is_empty() => {
                eprintln!("{}: at byte {offset}: {found}", path.display());
                return Ok(Err(Trouble::Unreadable));
            }
            _ if batch.is_empty() => return Ok(Ok(())),
            _ => {}
        }
    }
}

fn tell_checkpoint(path: &Path, error: CheckpointError) -> Trouble {
    match error {
        CheckpointError::Io(error) => tell_io(path, &error),
        CheckpointError::Newer(found) => tell_newer(path, found),
        CheckpointError::Damaged(damage) => {
            eprintln!("{damage}");
            Trouble::Unreadable
        }
    }
}

fn tell_io(path: &Path, error: &io::Error) -> Trouble {
    eprintln!("ladon dump: cannot read {}: {error}", path.display());
    Trouble::Refused
}

fn tell_newer(path: &Path, format: u32) -> Trouble {
    let path = path.display();
    eprintln!("{path} has format {format}: use the newer version of Ladon that wrote it");
    Trouble::Refused
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
