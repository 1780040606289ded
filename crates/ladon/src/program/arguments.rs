//! The command line of `tarantool`, which `ladon tarantool` has as well
//! (`tarantool --help`; options end at the file, or at `--`).

use ladon_app::{Before, Program};

/// What it asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Help,
    Version,
    Run(Program),
}

/// The text of `--help`.
pub(super) const HELP: &str = "\
Usage: tarantool [OPTIONS] [FILE [ARGUMENTS]]

Runs a program in Lua. Without FILE, and without -e, it is read from the standard input.
  -h, --help     print this
  -v, --version  print the version
  -e EXPRESSION  run this first
  -l NAME        require this library first
  -i             a console after the program
  --             what follows are no options
  -              the program is the standard input
";

/// Reads the words behind the command's name.
///
/// # Errors
/// In words, as the original says it.
pub(super) fn read(words: &[String]) -> Result<Asked, String> {
    let mut program = Program::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = |short: char, rest: &str| match rest {
            "" => words.next().cloned().ok_or(format!("option requires an argument -- '{short}'")),
            rest => Ok(rest.to_owned()),
        };
        match word.as_str() {
            "-h" | "--help" => return Ok(Asked::Help),
            "-v" | "-V" | "--version" => return Ok(Asked::Version),
            "-i" => program.is_interactive = true,
            "--" => {
                program.file = words.next().map(Into::into);
                break;
            }
            long if long.starts_with("--") => {
                return Err(format!("unrecognized option '{long}'"));
            }
            short if short.starts_with("-e") => {
                program.before.push(Before::Run(value('e', &short[2..])?));
            }
            short if short.starts_with("-l") => {
                program.before.push(Before::Require(value('l', &short[2..])?));
            }
            short if short.len() > 1 && short.starts_with('-') => {
                let option = short.chars().nth(1).unwrap_or('-');
                return Err(format!("invalid option -- '{option}'"));
            }
            file => {
                program.file = Some(file.into());
                break;
            }
        }
    }
    program.arguments = words.cloned().collect();
    if program.file.is_none() && program.before.is_empty() && !program.is_interactive {
        program.file = Some("-".into());
    }
    Ok(Asked::Run(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn program(text: &str) -> Program {
        match read(&words(text)) {
            Ok(Asked::Run(program)) => program,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn options_end_at_the_file() {
        let found = program("-e x=1 -lfio -i a.lua -e 2 -- 3");
        let before = vec![Before::Run("x=1".into()), Before::Require("fio".into())];
        let arguments = words("-e 2 -- 3");
        let file = Some("a.lua".into());
        assert_eq!(found, Program { before, file, arguments, is_interactive: true });
        assert_eq!(program("-e 1 -- -e").file, Some("-e".into()));
        assert_eq!(program("- a").file, Some("-".into()));
        assert_eq!(program("- a").arguments, ["a"]);
    }

    #[test]
    fn without_a_file_the_program_is_the_standard_input() {
        assert_eq!(program("").file, Some("-".into()));
        assert_eq!(program("-e 1").file, None);
        assert_eq!(program("-i").file, None);
    }

    #[test]
    fn help_version_and_what_there_is_not() {
        assert_eq!(read(&words("-e 1 --version a.lua")), Ok(Asked::Version));
        assert_eq!(read(&words("-h")), Ok(Asked::Help));
        let refused = |text| read(&words(text)).expect_err(text);
        assert_eq!(refused("-x"), "invalid option -- 'x'");
        assert_eq!(refused("--what"), "unrecognized option '--what'");
        assert_eq!(refused("-e"), "option requires an argument -- 'e'");
    }
}
