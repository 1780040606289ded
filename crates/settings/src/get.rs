//! `CONFIG GET`.

use crate::glob::Glob;
use crate::settings::Settings;
use crate::table::{TABLE, lookup};

impl Settings {
    /// The settings whose name matches any of the patterns, with their values, as `CONFIG GET`
    /// answers: each name once, and a name that is not a pattern as the client wrote it.
    pub fn get(&self, patterns: &[impl AsRef<[u8]>]) -> Vec<(String, String)> {
        let draft = self.draft();
        let mut found: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: String| {
            if !found.iter().any(|(earlier, _)| earlier.eq_ignore_ascii_case(name)) {
                found.push((name.to_owned(), value));
            }
        };
        for pattern in patterns {
            let pattern = pattern.as_ref();
            if !pattern.iter().any(|byte| b"[*?".contains(byte)) {
                let name = str::from_utf8(pattern).unwrap_or_default();
                if let Some(setting) = lookup(name) {
                    add(name, draft.text(setting));
                }
                continue;
            }
            let glob = Glob::new(pattern, true);
            for setting in TABLE.iter().filter(|setting| !setting.hidden) {
                for name in setting.names() {
                    if glob.matches(name.as_bytes()) {
                        add(name, draft.text(setting));
                    }
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], expected: &[(&str, &str)]) {
        let found = Settings::new().get(patterns);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn patterns_names_and_aliases() {
        check(&["nosuch", "x*"], &[]);
        check(&["GATE"], &[("GATE", "everysec")]);
        check(&["DIR", "data", "dat?"], &[("DIR", "./ladon-data"), ("data", "./ladon-data")]);
        check(
            &["maxmemory-p*", "MAXMEMORY", "maxmemor[y]"],
            &[("maxmemory-policy", "noeviction"), ("MAXMEMORY", "0")],
        );
        check(&["key-load*"], &[]);
        check(&["key-load-delay"], &[("key-load-delay", "0")]);
        check(&["*of"], &[("replicaof", ""), ("slaveof", "")]);
        check(&["d[ai]*r*"], &[("dir", "./ladon-data")]);
    }
}
