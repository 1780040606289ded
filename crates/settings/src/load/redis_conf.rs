//! An existing redis.conf: Ladon applies what it understands, and reports every other line.

use super::Loader;
use crate::directives::{self, Directive};
use crate::glob::Glob;
use crate::kind::{Kind, Unlike};
use crate::origin::Origin;
use crate::rewrite::{Format, Source};
use crate::setting::Setting;
use crate::table::{Id, lookup};
use crate::words;
use ladon_record::Gate;
use std::io;
use std::path::{Path, PathBuf};

/// A file that includes itself would have no end.
const INCLUDE_DEPTH_MAX: usize = 16;

/// What one load of a redis.conf and its included files remembers between lines.
#[derive(Default)]
struct Progress {
    depth: usize,
    /// `save` lines add up; the first one replaces the value from before the file.
    save: Option<String>,
}

impl Loader {
    /// Reads the file at `path` and what it includes; problems are kept for [`Loader::finish`].
    pub fn redis_conf(&mut self, path: &Path) {
        self.source = Some(Source { path: path.to_owned(), format: Format::RedisConf });
        let gate_before = self.draft.text(&crate::TABLE[Id::gate as usize]);
        self.conf_file(path, &mut Progress::default());
        let gate = self.draft.entry(Id::gate).clone();
        // Said aloud, since it is laxer than what Ladon does without a file.
        if self.draft.text(&crate::TABLE[Id::gate as usize]) == Gate::None.name()
            && gate_before != Gate::None.name()
            && self.draft.entry(Id::appendonly).origin == gate.origin
        {
            let text = "appendonly no: replies do not wait for the log (gate none); it is still \
                        written, in the background";
            self.warn(&gate.origin, text.to_owned());
        }
    }

    fn conf_file(&mut self, path: &Path, progress: &mut Progress) {
        let at = |line| Origin::RedisConf { path: path.to_owned(), line };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.problem(&at(0), format!("cannot be read: {error}")),
        };
        progress.depth += 1;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let origin = at(index + 1);
            match words::split(line).as_deref() {
                Some([name, arguments @ ..]) => {
                    self.directive(name, arguments, &origin, progress);
                }
                Some([]) => {}
                None => self.problem(&origin, "unbalanced quotes in configuration line".to_owned()),
            }
        }
        progress.depth -= 1;
    }

    fn directive(
        &mut self,
        name: &str,
        arguments: &[String],
        origin: &Origin,
        progress: &mut Progress,
    ) {
        if name.eq_ignore_ascii_case("include") {
            return self.include(arguments, origin, progress);
        }
        if name.eq_ignore_ascii_case("user") {
            return self.user(arguments, origin);
        }
        if let Some(setting) = lookup(name) {
            return self.setting(setting, name, arguments, origin, progress);
        }
        match directives::lookup(name) {
            Some(directive) if directive.asks_for_nothing(arguments) => {}
            Some(Directive { unlike, reason, .. }) => {
                let text = format!("{name} is not supported: {reason}");
                self.unsupported(*unlike, name, origin, text);
            }
            None => self.problem(origin, format!("unknown directive '{name}'")),
        }
    }

    fn setting(
        &mut self,
        setting: &'static Setting,
        name: &str,
        arguments: &[String],
        origin: &Origin,
        progress: &mut Progress,
    ) {
        let value = match (setting.kind, arguments) {
            (Kind::SavePoints, _) => {
                let more = arguments.join(" ");
                let save = progress.save.get_or_insert_default();
                match more.is_empty() {
                    true => save.clear(),
                    false => save.push_str(&format!(" {more}")),
                }
                save.clone()
            }
            (Kind::OutputLimits | Kind::Percentiles | Kind::Endpoints, _) => arguments.join(" "),
            _ if setting.id == Id::bind => arguments.join(" "),
            _ if setting.id == Id::replicaof && is_no_one(arguments) => String::new(),
            _ if setting.id == Id::replicaof => arguments.join(" "),
            (Kind::Fixed { .. }, [_, ..]) => arguments.join(" "),
            (_, [value]) => value.clone(),
            _ => {
                return self.problem(origin, format!("{name}: wrong number of arguments"));
            }
        };
        match setting.kind {
            // Not an error of the file: Redis would take it.
            Kind::Fixed { unlike, reason } if !value.eq_ignore_ascii_case(setting.default) => {
                let only = setting.default;
                let text = format!("{name} {value} is not supported, only '{only}': {reason}");
                self.unsupported(unlike, name, origin, text);
            }
            // Made by this process, perhaps as another user, it would keep Redis from its own log.
            _ if setting.id == Id::logfile && !value.is_empty() => {
                let text = format!(
                    "logfile {value} is not used: it is the log of Redis' own service; name Ladon's \
                     with --logfile or in a file for --config"
                );
                self.warn_without_effect(name, origin, text);
            }
            _ => self.set(name, &value, origin),
        }
    }

    fn unsupported(&mut self, unlike: Unlike, name: &str, origin: &Origin, text: String) {
        match unlike {
            Unlike::Harmless => self.warn_without_effect(name, origin, text),
            Unlike::Promise => self.problem(origin, text),
        }
    }

    fn include(&mut self, arguments: &[String], origin: &Origin, progress: &mut Progress) {
        let [pattern] = arguments else {
            return self.problem(origin, "include: wrong number of arguments".to_owned());
        };
        if progress.depth >= INCLUDE_DEPTH_MAX {
            let text = format!("include: more than {INCLUDE_DEPTH_MAX} files deep");
            return self.problem(origin, text);
        }
        match expand(pattern) {
            Ok(paths) => paths.iter().for_each(|path| self.conf_file(path, progress)),
            Err(error) => self.problem(origin, format!("include {pattern}: {error}")),
        }
    }
}

/// How a redis.conf says that the server is not a replica.
fn is_no_one(arguments: &[String]) -> bool {
    arguments.join(" ").eq_ignore_ascii_case("no one")
}

/// The files that an include names: itself, or in the order of their names those of a directory
/// that match the pattern in its last part.
fn expand(pattern: &str) -> io::Result<Vec<PathBuf>> {
    let path = Path::new(pattern);
    let is_pattern = |text: &str| text.contains(['*', '?', '[']);
    let directory = path.parent().unwrap_or(Path::new(""));
    let Some(last) = path.file_name().and_then(|name| name.to_str()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if is_pattern(&directory.to_string_lossy()) {
        let text = "a pattern may only stand in the last part of the path";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    if !is_pattern(last) {
        return Ok(vec![path.to_owned()]);
    }
    let listed = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let (mut paths, glob) = (Vec::new(), Glob::new(last.as_bytes(), false));
    for entry in std::fs::read_dir(listed)? {
        let name = entry?.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".") && !last.starts_with('.');
        if !hidden && glob.matches(name.as_encoded_bytes()) {
            paths.push(directory.join(name));
        }
    }
    paths.sort();
    Ok(paths)
}
