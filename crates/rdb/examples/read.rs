//! Reads an RDB file, and says what is in it and how fast that went.
//!
//! `cargo run --release -p ladon-rdb --example read -- FILE`

use std::fs::File;
use std::process::ExitCode;
use std::time::Instant;

use ladon_rdb::{Event, Reader};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: read FILE");
        return ExitCode::from(2);
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    };
    let begun = Instant::now();
    let mut reader = Reader::new(file);
    let (mut keys, mut elements) = (0_u64, 0_u64);
    for event in reader.by_ref() {
        match event {
            Ok(Event::Key(_)) => keys += 1,
            Ok(Event::Element(_)) => elements += 1,
            Ok(_) => (),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let megabytes = reader.offset() as f64 / 1e6;
    println!(
        "{keys} keys, {elements} elements, {megabytes:.1} MB in {seconds:.3} s: {:.0} MB/s",
        megabytes / seconds
    );
    ExitCode::SUCCESS
}
