//! Which file of a crate imports which, from the sources' text: every path that begins with
//! `crate`, `super`, `self` or the name of a module below, in a `use` or in code. Unit tests at the
//! end of a file are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module's path below the crate: `["kernel", "ctx"]`; empty for `lib.rs`.
pub type Module = Vec<String>;

/// Each module's imports.
pub struct Graph(pub BTreeMap<Module, BTreeSet<Module>>);

impl Graph {
    /// Of the crate in this folder: a test's own is `env!("CARGO_MANIFEST_DIR")`.
    ///
    /// # Panics
    /// If a source cannot be read.
    pub fn of_crate(folder: &str) -> Graph {
        let root = Path::new(folder).join("src");
        let mut sources = BTreeMap::new();
        read_folder(&root, &mut Vec::new(), &mut sources);
        let modules: BTreeSet<Module> = sources.keys().cloned().collect();
        let edges = sources.iter().map(|(module, text)| {
            let paths = paths_in(&code_of(text));
            let targets = paths.iter().filter_map(|path| resolve(module, path, &modules));
            (module.clone(), targets.filter(|target| target != module).collect())
        });
        Graph(edges.collect())
    }

    fn reachable<'a>(&'a self, from: &'a Module) -> BTreeSet<&'a Module> {
        let (mut found, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            open.extend(self.0[module].iter().filter(|next| found.insert(*next)));
        }
        found
    }

    /// The modules that import each other, directly or not: the largest such set.
    pub fn largest_circle(&self) -> Vec<&Module> {
        let reachable: BTreeMap<_, _> =
            self.0.keys().map(|module| (module, self.reachable(module))).collect();
        let circle_of = |module: &Module| {
            let others = reachable[module].iter().copied();
            others.filter(|other| reachable[other].contains(module)).collect::<Vec<_>>()
        };
        self.0.keys().map(circle_of).max_by_key(Vec::len).unwrap_or_default()
    }

    /// Checks that `may_import` allows every import: it gets the first folders, or files, below the
    /// crate of the importing and of the imported module; empty for `lib.rs`.
    ///
    /// # Panics
    /// With the imports that it does not allow.
    #[track_caller]
    pub fn check_folders(&self, may_import: impl Fn(&str, &str) -> bool) {
        fn folder(module: &Module) -> &str {
            module.first().map_or("", String::as_str)
        }
        let edges = self.0.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to)));
        let wrong: Vec<String> = edges
            .filter(|(from, to)| !may_import(folder(from), folder(to)))
            .map(|(from, to)| format!("{} -> {}", from.join("/"), to.join("/")))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Checks that no more than `most` modules import each other.
    ///
    /// # Panics
    /// With their names, if more do.
    #[track_caller]
    pub fn check_circle(&self, most: usize) {
        let circle = self.largest_circle();
        let names: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
        assert!(circle.len() <= most, "{} files: {}", circle.len(), names.join(" "));
    }
}

fn read_folder(folder: &Path, at: &mut Module, sources: &mut BTreeMap<Module, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_str().expect("a plain name").to_owned();
        if path.is_dir() {
            at.push(stem);
            read_folder(&path, at, sources);
            at.pop();
            continue;
        }
        let own = (stem != "mod" && stem != "lib").then_some(stem);
        let module = at.iter().cloned().chain(own).collect();
        sources.insert(module, std::fs::read_to_string(&path).expect("a source"));
    }
}

/// A file's own code: no comments, and no unit tests, whose `super` is the file itself.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every path in a text, the trees of `use` spelt out: `crate::ctx::{Ctx, After}` is two.
fn paths_in(text: &str) -> Vec<Vec<String>> {
    let (mut paths, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(is_word) {
        rest = &rest[at..];
        let before = rest;
        rest = path(rest, &mut Vec::new(), &mut paths);
        assert!(rest.len() < before.len(), "a path has letters");
    }
    paths.retain(|path| path.len() > 1);
    paths
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Reads one path or tree of paths behind `before`; returns the text after it.
fn path<'a>(text: &'a str, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = path(rest, before, paths).trim_start();
            let Some(after) = rest.strip_prefix(',') else { break };
            rest = after;
        }
        return rest.strip_prefix('}').unwrap_or(rest);
    }
    let end = text.find(|letter| !is_word(letter)).unwrap_or(text.len());
    before.push(text[..end].to_owned());
    let mut rest = &text[end..];
    if let Some(after) = rest.strip_prefix("::")
        && after.trim_start().starts_with(|letter| is_word(letter) || letter == '{')
    {
        rest = path(after, before, paths);
    } else {
        paths.push(before.clone());
    }
    before.pop();
    rest
}

/// The module that a path in `module` leads into; `None` if it leads out of the crate or is no
/// module's.
fn resolve(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let child = |name: &String| module.iter().chain([name]).cloned().collect::<Module>();
    let (mut found, mut rest) = match path[0].as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module[..module.len().checked_sub(1)?].to_vec(), &path[1..]),
        _ if modules.contains(&child(&path[0])) => (child(&path[0]), &path[1..]),
        _ => return None,
    };
    while let Some((name, after)) = rest.split_first() {
        let next: Module = found.iter().chain([name]).cloned().collect();
        match name.as_str() {
            "super" => _ = found.pop(),
            _ if modules.contains(&next) => found = next,
            _ => break,
        }
        rest = after;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_the_compiler_reads_them() {
        let modules: BTreeSet<Module> = [&[][..], &["a"], &["a", "b"], &["a", "c"], &["d"]]
            .into_iter()
            .map(|path| path.iter().map(|&name| name.to_owned()).collect())
            .collect();
        let found = |text: &str| -> Vec<String> {
            let at = vec!["a".to_owned(), "b".to_owned()];
            let paths = paths_in(text);
            paths
                .iter()
                .filter_map(|path| resolve(&at, path, &modules))
                .map(|it| it.join("/"))
                .collect()
        };
        assert_eq!(found("use crate::{a::{self, c::{X, Y}}, d::Z};"), ["a", "a/c", "a/c", "d"]);
        assert_eq!(
            found("use super::c; fn f() { crate::d::g(); super::super::h() }"),
            ["a/c", "d", ""]
        );
        assert_eq!(found("use std::a; other::a::b()"), [""; 0]);
    }
}
