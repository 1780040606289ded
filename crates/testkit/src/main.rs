//! `ladon-testkit`: packs and unpacks fuzz corpora.

use ladon_testkit::corpus;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: ladon-testkit unpack TARGET FOLDER   writes fuzz/corpus/TARGET.txt's inputs to files of their own
       ladon-testkit pack TARGET FOLDER     makes fuzz/corpus/TARGET.txt of the files in FOLDER";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["unpack", target, folder] => corpus::unpack(&corpus::file_of(target), Path::new(folder)),
        ["pack", target, folder] => corpus::pack(Path::new(folder), &corpus::file_of(target)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(count) => {
            println!("{count} inputs");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ladon-testkit: {error}");
            ExitCode::FAILURE
        }
    }
}
