//! `CONFIG SET`: all or nothing, with Redis' words when it is nothing.

use crate::draft::Draft;
use crate::origin::Origin;
use crate::setting::{Setting, When};
use crate::table::lookup;
use thiserror::Error;

/// Why nothing was changed. Displays as the error reply, without its `ERR ` in front.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetError {
    /// There is no such setting.
    #[error("Unknown option or number of arguments for CONFIG SET - '{name}'")]
    Unknown {
        /// As the client wrote it.
        name: String,
    },
    /// This setting cannot have this value, or cannot change.
    #[error("CONFIG SET failed (possibly related to argument '{name}') - {reason}")]
    Failed {
        /// As the client wrote it.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// The draft with the changes, or the error of the first invalid one. `follows`: the server will
/// act on settings that it has to follow at once.
pub(crate) fn change(
    present: &Draft,
    pairs: &[(impl AsRef<str>, impl AsRef<str>)],
    follows: bool,
) -> Result<Draft, SetError> {
    // As in Redis, the names are checked before any of the values.
    let mut settings: Vec<&'static Setting> = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let name = name.as_ref();
        let setting = lookup(name).ok_or_else(|| SetError::Unknown { name: name.to_owned() })?;
        let failed =
            |reason: &str| SetError::Failed { name: name.to_owned(), reason: reason.to_owned() };
        match setting.when {
            When::Live => {}
            When::Apply if follows => {}
            When::Apply | When::Restart
                if present.shared_text(setting).as_str() == value.as_ref() => {}
            When::Start | When::Apply | When::Restart => {
                return Err(failed("can't set immutable config"));
            }
        }
        if settings.iter().any(|earlier| earlier.id == setting.id) {
            return Err(failed("duplicate parameter"));
        }
        settings.push(setting);
    }
    let mut next = present.clone();
    for (setting, (name, value)) in settings.into_iter().zip(pairs) {
        next.set(setting, value.as_ref(), &Origin::ConfigSet)
            .map_err(|reason| SetError::Failed { name: name.as_ref().to_owned(), reason })?;
    }
    if let Some((id, reason)) = next.contradiction() {
        let name = crate::TABLE[id as usize].name.to_owned();
        return Err(SetError::Failed { name, reason: reason.to_owned() });
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use crate::Settings;

    /// One argument list of `CONFIG SET` and the error it must give, in Redis 7.2's words.
    #[track_caller]
    fn check(pairs: &[(&str, &str)], expected: &str) {
        let error = Settings::new().set_many(pairs).expect_err("must be refused");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn errors_are_those_of_redis() {
        let unknown = "Unknown option or number of arguments for CONFIG SET - 'nosuch'";
        let failed = |name: &str, reason: &str| {
            format!("CONFIG SET failed (possibly related to argument '{name}') - {reason}")
        };
        check(&[("nosuch", "1")], unknown);
        check(&[("maxmemory", "1"), ("nosuch", "3")], unknown);
        check(&[("nosuch", "1"), ("databases", "3")], unknown);
        let immutable = "can't set immutable config";
        check(&[("databases", "1"), ("nosuch", "3")], &failed("databases", immutable));
        check(&[("databases", "16")], &failed("databases", immutable));
        check(&[("port", "7")], &failed("port", immutable));
        check(
            &[("maxmemory", "1"), ("MAXMEMORY", "2")],
            &failed("MAXMEMORY", "duplicate parameter"),
        );
        check(&[("maxmemory", "abc")], &failed("maxmemory", "argument must be a memory value"));
        check(&[("appendonly", "maybe")], &failed("appendonly", "argument must be 'yes' or 'no'"));
        check(&[("save", "1")], &failed("save", "Invalid save parameters"));
        check(
            &[("notify-keyspace-events", "KEy")],
            &failed(
                "notify-keyspace-events",
                "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
            ),
        );
    }

    #[test]
    fn a_setting_that_the_server_has_to_follow_needs_one_that_does() {
        let settings = Settings::new();
        settings.set_many(&[("port", "7")]).unwrap_err();
        let changed = settings
            .set_many_with(&[("port", "7")], |next, changed| {
                assert_eq!((next.port(), changed), (7, &["resp", "port"][..]));
                Ok(())
            })
            .unwrap();
        assert_eq!(changed, ["resp", "port"]);
        let taken = "Unable to listen on this port. Check server logs.";
        let refused = settings.set_many_with(&[("maxmemory", "9"), ("port", "8")], |_, _| {
            Err(("port", taken.to_owned()))
        });
        assert_eq!(
            refused.unwrap_err().to_string(),
            format!("CONFIG SET failed (possibly related to argument 'port') - {taken}")
        );
        assert_eq!((settings.port(), settings.maxmemory()), (7, 0));
    }

    /// Settings that Redis' own test of "write back all that was read" leaves out, as far as they
    /// exist here.
    const IMMUTABLE_IN_REDIS: [&str; 14] = [
        "aclfile",
        "unixsocket",
        "unixsocketperm",
        "tcp-backlog",
        "io-threads",
        "databases",
        "logfile",
        "enable-debug-command",
        "enable-protected-configs",
        "enable-module-command",
        "replicaof",
        "slaveof",
        "cluster-enabled",
        "daemonize",
    ];

    #[test]
    fn writing_back_all_that_was_read_is_accepted_but_for_what_redis_refuses_too() {
        let settings = Settings::new();
        let before = settings.get(&["*"]);
        for (name, value) in &before {
            let refused = settings.set_many(&[(name, value)]).is_err();
            assert_eq!(refused, IMMUTABLE_IN_REDIS.contains(&name.as_str()), "{name}");
        }
        assert_eq!(settings.get(&["*"]), before);
    }
}
