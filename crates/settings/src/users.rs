//! Users that a configuration declares, and the file of users. What their rules mean is not known
//! here.

use crate::origin::Origin;
use crate::rewrite::replace;
use crate::settings::Settings;
use std::io;
use std::path::Path;

/// The name of the users' list in Ladon's own file.
pub(crate) const TOML_NAME: &str = "users";

/// A `user` line of a redis.conf, or an element of `users` in Ladon's own file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserLine {
    /// Where it is.
    pub origin: Origin,
    /// The user's name and the rules.
    pub words: Vec<String>,
}

impl Settings {
    /// The users that the configuration declares, in its order.
    pub fn user_lines(&self) -> &[UserLine] {
        &self.user_lines
    }

    /// The content of the file of users (`aclfile`).
    ///
    /// # Errors
    /// What the file system says.
    pub fn read_users_file(&self) -> io::Result<Vec<u8>> {
        std::fs::read(self.aclfile())
    }

    /// Replaces the file of users. Either the old file or the new one is there, whenever the
    /// machine stops.
    ///
    /// # Errors
    /// What the file system says; the file is as it was.
    pub fn write_users_file(&self, text: &[u8]) -> io::Result<()> {
        replace(Path::new(&self.aclfile()), text)
    }
}
