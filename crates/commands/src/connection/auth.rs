//! Authentication: AUTH, and what HELLO shares with it.

use ladon_kernel::client::clients::DEFAULT_USER;
use ladon_kernel::command::error::{CommandError, CommandResult};
use ladon_kernel::ctx::Ctx;

pub(crate) fn auth(ctx: &mut Ctx<'_>, args: &[&[u8]]) -> CommandResult {
    let (user, password) = match args {
        [_, password] if ctx.node.requires_login() => (DEFAULT_USER.as_bytes(), *password),
        [_, _] => {
            return Err(CommandError::text(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        [_, user, password] => (*user, *password),
        _ => return Err(CommandError::Syntax),
    };
    log_in(ctx, user, password)?;
    ctx.reply.ok();
    Ok(())
}

/// Authenticates the connection if the password is right; any password is right while none is
/// required.
pub(crate) fn log_in(ctx: &mut Ctx<'_>, user: &[u8], password: &[u8]) -> CommandResult {
    let required = ctx.node.settings.requirepass();
    let right = required.is_empty() || is_same(required.as_bytes(), password);
    if user != DEFAULT_USER.as_bytes() || !right {
        return Err(CommandError::text(
            "WRONGPASS invalid username-password pair or user is disabled.",
        ));
    }
    ctx.session.authenticated = true;
    Ok(())
}

/// Compares in a time that does not depend on the position of the first difference.
fn is_same(secret: &[u8], guess: &[u8]) -> bool {
    let differences = guess
        .iter()
        .enumerate()
        .fold(0, |sum, (at, &byte)| sum | byte ^ secret.get(at).copied().unwrap_or(!byte));
    differences == 0 && secret.len() == guess.len()
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn only_the_same_is_the_same() {
        for (secret, guess, same) in [
            ("abc", "abc", true),
            ("abc", "abd", false),
            ("abc", "ab", false),
            ("ab", "abc", false),
        ] {
            assert_eq!(is_same(secret.as_bytes(), guess.as_bytes()), same, "{secret} {guess}");
        }
        assert!(!is_same(b"a", b""));
    }
}
