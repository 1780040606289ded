//! Systems and clients in Java: their jars, fetched by Maven from the descriptions in `helpers/`,
//! and the lab's own classes around them, compiled by `javac`.
//!
//! A client is a library, so the lab has a Java program around it that [`crate::run::helper`]
//! commands: [`helpers::JAVA`] is the same for all systems, and each adds its `Store`, the one
//! class that knows the client, and its `Main`.

use std::path::{Path, PathBuf};

use super::helpers::{self, JAVA, Source, Step};
use super::program_paths::{self, ProgramPaths, on_path};
use super::system::{Missing, Program, Promise, Setting};

/// What a machine must have for it.
pub const INSTALL: &str = "apt-get install --no-install-recommends default-jdk-headless maven (the lab \
                           fetches the jars and compiles its client by itself)";

/// A certain release of the plugin, so that a build is the same tomorrow.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// The `java` of this machine as the program of a system that is a jar, and what to say of it where
/// a part cannot be had.
///
/// # Errors
/// That there is no Java, and how to get it.
pub fn found(
    system: &'static str,
    places: &ProgramPaths,
) -> Result<(Program, impl Fn(String) -> Missing + Copy), Missing> {
    let java = places.program(system, on_path("java"), &["-version"], INSTALL)?;
    Ok((java, move |reason| Missing { system, reason, install: INSTALL.to_owned() }))
}

/// The settings of a system that keeps nothing on a disk, as free editions do.
#[must_use]
pub fn memory_only() -> Vec<Setting> {
    vec![Setting { name: "memory only", promise: Promise::None }]
}

/// The folder with all jars that `description` (a `pom.xml`) requires, and their dependencies.
///
/// # Errors
/// What is missing or failed, in words.
pub fn jars(
    places: &ProgramPaths,
    name: &str,
    description: &'static str,
) -> Result<PathBuf, String> {
    let maven = program("mvn", "fetch its jars with")?;
    let step = [&maven, "--batch-mode", "--quiet", PLUGIN, "-DoutputDirectory=."];
    helpers::built(places, name, &[("pom.xml", description)], &[step.map(str::to_owned).into()])
}

/// The folder with the compiled `sources` against what lies on `class_path`, for Java `release` and
/// later.
///
/// # Errors
/// As [`jars`].
pub fn classes(
    places: &ProgramPaths,
    name: &str,
    sources: &[Source],
    class_path: &str,
    release: &str,
) -> Result<PathBuf, String> {
    let javac = program("javac", "compile its client with")?;
    let options = [&javac, "--release", release, "-Xlint:-options", "-d", ".", "-cp", class_path];
    let mut step: Step = options.map(str::to_owned).into();
    step.extend(sources.iter().map(|(file, _)| (*file).to_owned()));
    helpers::built(places, name, sources, &[step])
}

/// The folder with the program that [`crate::run::helper`] commands: what all have in common, and
/// `own`, against the client on `class_path`.
///
/// # Errors
/// As [`jars`].
pub fn client(
    places: &ProgramPaths,
    name: &str,
    own: &[Source],
    class_path: &str,
) -> Result<PathBuf, String> {
    let sources = [JAVA, own].concat();
    let folder = classes(places, name, &sources, class_path, "17")?;
    program_paths::first_file(&folder.join("Main.class")).map(|_| folder)
}

/// Everything in a folder of jars.
#[must_use]
pub fn all_in(folder: &Path) -> String {
    folder.join("*").display().to_string()
}

/// The release of an artifact that a description asks for.
#[must_use]
pub fn release<'a>(description: &'a str, artifact: &str) -> &'a str {
    let named = format!("<artifactId>{artifact}</artifactId><version>");
    let behind = description.split_once(&named).map_or("", |(_, behind)| behind);
    behind.split('<').next().unwrap_or_default()
}

fn program(name: &str, purpose: &str) -> Result<String, String> {
    let found = on_path(name).into_iter().find(|path| path.is_file());
    found.map(|path| path.display().to_string()).ok_or(format!("no {name} to {purpose}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_stand_in_the_descriptions() {
        let description = "<artifactId>a</artifactId><version>1.2</version> <artifactId>ab</artifactId><version>3</version>";
        assert_eq!((release(description, "a"), release(description, "ab")), ("1.2", "3"));
        assert_eq!(release(description, "b"), "");
    }
}
