//! Which arguments are secrets, to be kept out of `MONITOR` and `SLOWLOG`.

use crate::command::args::is;
use ladon_settings::lookup;

/// Replaces a secret.
const REDACTED: &[u8] = b"(redacted)";

/// The arguments as other clients may see them.
pub(crate) fn shown<'a>(args: &'a [&'a [u8]]) -> impl ExactSizeIterator<Item = &'a [u8]> {
    let secrets = Secrets::of(args);
    args.iter().enumerate().map(
        move |(index, arg)| {
            if secrets.hides(args, index) { REDACTED } else { *arg }
        },
    )
}

/// Where a command's secrets are.
#[derive(Clone, Copy)]
enum Secrets {
    None,
    /// All arguments.
    Auth,
    /// The user and the password after the word AUTH, at this position.
    Hello(usize),
    /// The values of secret settings.
    ConfigSet,
    /// All from this position on.
    From(usize),
    /// The words behind AUTH and AUTH2.
    Migrate,
}

impl Secrets {
    fn of(args: &[&[u8]]) -> Secrets {
        match args.first() {
            Some(name) if is(name, "auth") => Secrets::Auth,
            Some(name) if is(name, "hello") => {
                let word = args.iter().skip(2).position(|arg| is(arg, "auth"));
                word.map_or(Secrets::None, |at| Secrets::Hello(at + 2))
            }
            Some(name) if is(name, "config") && args.get(1).is_some_and(|arg| is(arg, "set")) => {
                Secrets::ConfigSet
            }
            Some(name) if is(name, "acl") => {
                let names_users =
                    |word: &&[u8]| ["setuser", "deluser", "getuser"].iter().any(|it| is(word, it));
                let hides = args.get(1).is_some_and(names_users);
                if hides { Secrets::From(2) } else { Secrets::None }
            }
            Some(name) if is(name, "migrate") => Secrets::Migrate,
            _ => Secrets::None,
        }
    }

    fn hides(self, args: &[&[u8]], index: usize) -> bool {
        match self {
            Secrets::None => false,
            Secrets::Auth => index > 0,
            Secrets::Hello(word) => index > word && index <= word + 2,
            Secrets::From(first) => index >= first,
            Secrets::Migrate => {
                let behind = |word: &str, most: usize| {
                    (1..=most).any(|back| index >= 6 + back && is(args[index - back], word))
                };
                behind("auth", 1) || behind("auth2", 2)
            }
            Secrets::ConfigSet => {
                index >= 3
                    && index % 2 == 1
                    && str::from_utf8(args[index - 1])
                        .ok()
                        .and_then(lookup)
                        .is_some_and(|setting| setting.sensitive)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[track_caller]
    fn check(command: &str, expected: &str) {
        let args: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let seen: Vec<&str> = shown(&args).map(|arg| str::from_utf8(arg).unwrap()).collect();
        assert_eq!(seen.join(" "), expected);
    }

    #[test]
    fn secrets_are_not_shown() {
        check("set auth x", "set auth x");
        check("AUTH u p", "AUTH (redacted) (redacted)");
        check("hello 3 AUTH u p setname n", "hello 3 AUTH (redacted) (redacted) setname n");
        check(
            "config set maxmemory 1 RequirePass x",
            "config set maxmemory 1 RequirePass (redacted)",
        );
        check("config get requirepass", "config get requirepass");
        check("acl setuser a >x", "acl setuser (redacted) (redacted)");
        check("ACL whoami", "ACL whoami");
        check(
            "migrate h 1 k 0 9 auth2 u p keys a",
            "migrate h 1 k 0 9 auth2 (redacted) (redacted) keys a",
        );
        check("migrate h 1 k 0 9 copy auth p", "migrate h 1 k 0 9 copy auth (redacted)");
    }
}
