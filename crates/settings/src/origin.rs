//! Where a value came from.

use std::fmt;
use std::path::PathBuf;

/// Where a setting's value came from; later layers win over earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    #[default]
    Default,
    /// Ladon's own TOML file.
    File {
        /// The file, as it was named.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
    },
    /// A redis.conf, or a file that it includes.
    RedisConf {
        /// The file, as it was named.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment(String),
    /// A flag on the command line.
    Flag(String),
    /// `CONFIG SET` on the running server.
    ConfigSet,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } | Origin::RedisConf { path, line } => {
                write!(f, "{}:{line}", path.display())
            }
            Origin::Environment(name) => f.write_str(name),
            Origin::Flag(flag) => write!(f, "--{flag}"),
            Origin::ConfigSet => f.write_str("CONFIG SET"),
        }
    }
}
