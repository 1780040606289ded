//! What is known about one setting, apart from its value.

use crate::kind::{Kind, Unlike};
use crate::table::Id;

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// `CONFIG SET` changes it on the running server.
    Live,
    /// `CONFIG SET` changes it, if the server can follow at once (open another port): only
    /// [`Settings::set_many_with`](crate::Settings::set_many_with) takes another value.
    Apply,
    /// At start only; `CONFIG SET` refuses it, as Redis does with the settings of that name.
    Start,
    /// At start only, but not so in Redis (or unknown there): `CONFIG SET` takes the value that
    /// it has, so that tools which write back all that they read keep working.
    Restart,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Which one it is.
    pub id: Id,
    /// Ladon's name: flag, TOML key and name in `CONFIG`.
    pub name: &'static str,
    /// Redis' names for the same thing, equally good everywhere.
    pub aliases: &'static [&'static str],
    /// What it may be.
    pub kind: Kind,
    /// Its default, as text.
    pub default: &'static str,
    /// When it may change.
    pub when: When,
    /// The setting that says the same, and more; only that one is written to a TOML file.
    pub part_of: Option<&'static str>,
    /// Shown when asked for by its name only, not to patterns.
    pub hidden: bool,
    /// Under which heading the documents have it.
    pub section: &'static str,
    /// A secret: `ladon config` does not show it.
    pub sensitive: bool,
    /// It names a file whose content counts: to set it again is a change, whatever its value.
    pub names_a_file: bool,
    /// Its meaning, in one paragraph.
    pub doc: &'static str,
}

impl Setting {
    /// Every name, Ladon's own first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether this is one of its names, in any case.
    pub fn has_name(&self, name: &str) -> bool {
        self.names().any(|known| known.eq_ignore_ascii_case(name))
    }
}

// The vocabulary in which the table is written. `id` and `doc` are filled in by the table.
#[allow(missing_docs, reason = "each makes the kind of its name")]
impl Setting {
    pub(crate) const fn new(name: &'static str, kind: Kind, default: &'static str) -> Setting {
        Setting {
            id: Id::gate,
            name,
            aliases: &[],
            kind,
            default,
            when: When::Live,
            part_of: None,
            hidden: false,
            section: "",
            sensitive: false,
            names_a_file: false,
            doc: "",
        }
    }

    pub(crate) const fn bool(name: &'static str, default: &'static str) -> Setting {
        Setting::new(name, Kind::Bool, default)
    }

    pub(crate) const fn integer(
        name: &'static str,
        min: i64,
        max: i64,
        default: &'static str,
    ) -> Setting {
        Setting::new(name, Kind::Integer { min, max }, default)
    }

    pub(crate) const fn memory(name: &'static str, min: i64, default: &'static str) -> Setting {
        Setting::new(name, Kind::Memory { min }, default)
    }

    pub(crate) const fn choice(
        name: &'static str,
        choices: &'static [&'static str],
        default: &'static str,
    ) -> Setting {
        Setting::new(name, Kind::Choice(choices), default)
    }

    pub(crate) const fn text(name: &'static str, default: &'static str) -> Setting {
        Setting::new(name, Kind::Text, default)
    }

    /// One value only; another one in a redis.conf is a warning.
    pub(crate) const fn fixed(
        name: &'static str,
        value: &'static str,
        reason: &'static str,
    ) -> Setting {
        Setting::new(name, Kind::Fixed { unlike: Unlike::Harmless, reason }, value)
    }

    /// One value only; another one in a redis.conf keeps the server from starting.
    pub(crate) const fn promise(
        name: &'static str,
        value: &'static str,
        reason: &'static str,
    ) -> Setting {
        Setting::new(name, Kind::Fixed { unlike: Unlike::Promise, reason }, value)
    }

    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Setting {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn start(mut self) -> Setting {
        self.when = When::Start;
        self
    }

    pub(crate) const fn apply(mut self) -> Setting {
        self.when = When::Apply;
        self
    }

    pub(crate) const fn hidden(mut self) -> Setting {
        self.hidden = true;
        self
    }

    pub(crate) const fn restart(mut self) -> Setting {
        self.when = When::Restart;
        self
    }

    pub(crate) const fn part_of(mut self, other: &'static str) -> Setting {
        self.part_of = Some(other);
        self
    }

    pub(crate) const fn names_a_file(mut self) -> Setting {
        self.names_a_file = true;
        self
    }

    pub(crate) const fn sensitive(mut self) -> Setting {
        self.sensitive = true;
        self
    }

    pub(crate) const fn describe(
        mut self,
        id: Id,
        section: &'static str,
        doc: &'static str,
    ) -> Setting {
        self.id = id;
        self.section = section;
        self.doc = doc;
        self
    }
}
