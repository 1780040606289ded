//! What is measured: a system that the lab starts, or a server that runs already.

use super::attach::Attached;
use crate::dialects::Dialect;
use crate::dialects::sql::SqlKind;
use crate::operation::OperationKind;
use crate::systems::registry::Found;
use crate::systems::system::{DriverKind, Promise, Setting};
use crate::work::{Settings, Work};

/// See the module.
pub enum Subject {
    /// Found here, and started for each pass.
    Found(Box<Found>),
    /// Running elsewhere; only measured.
    Attached(Box<Attached>),
}

/// One setting to measure a subject at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectSetting {
    /// One of the system's.
    Started(Setting),
    /// However it is.
    AsAttached,
}

impl SubjectSetting {
    /// In the system's own words.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Started(setting) => setting.name.to_owned(),
            Self::AsAttached => "as attached".to_owned(),
        }
    }
}

impl Subject {
    /// Its name in tables.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Found(found) => found.program.label.clone(),
            Self::Attached(attached) => attached.name.clone(),
        }
    }

    /// All settings to measure it at, weakest first.
    #[must_use]
    pub fn settings(&self) -> Vec<SubjectSetting> {
        match self {
            Self::Found(found) => {
                found.system.settings().into_iter().map(SubjectSetting::Started).collect()
            }
            Self::Attached(_) => vec![SubjectSetting::AsAttached],
        }
    }

    /// The weakest setting that promises `promise` or more; the strongest where none does.
    #[must_use]
    pub fn setting_for(&self, promise: Promise) -> SubjectSetting {
        let settings = self.settings();
        let enough = settings.iter().find(|setting| match setting {
            SubjectSetting::Started(setting) => setting.promise >= promise,
            SubjectSetting::AsAttached => true,
        });
        *enough.unwrap_or(&settings[settings.len() - 1])
    }

    /// What an acknowledged write is worth at a setting of it.
    #[must_use]
    pub fn promise(&self, setting: &SubjectSetting) -> &'static str {
        if let Self::Found(found) = self
            && !found.system.is_store()
        {
            return "no store";
        }
        let promise = match (self, setting) {
            (_, SubjectSetting::Started(setting)) => Some(setting.promise),
            (Self::Attached(attached), SubjectSetting::AsAttached) => attached.told().promise,
            (Self::Found(_), SubjectSetting::AsAttached) => None,
        };
        promise.map_or("unknown", Promise::name)
    }

    /// What speaks to it.
    ///
    /// # Errors
    /// Why nothing does, in words.
    pub fn dialect(&self) -> Result<Box<dyn Dialect>, String> {
        match self {
            Self::Attached(attached) => Ok(attached.dialect()),
            Self::Found(found) => {
                let title = found.system.title();
                let none = || {
                    format!(
                        "{title} is asked through its own client; this is done in the lab's own \
                         protocols only"
                    )
                };
                found.system.driver().dialect().ok_or_else(none)
            }
        }
    }

    /// Whether it can do operations of this kind.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn can_do(&self, kind: OperationKind) -> Result<(), String> {
        match self {
            Self::Found(found) => {
                if let Some(dialect) = found.system.driver().dialect() {
                    dialect.can(kind)?;
                }
                found.system.can_do(kind)
            }
            Self::Attached(attached) => attached.dialect().can(kind).map_err(|reason| match kind {
                OperationKind::InsertRow | OperationKind::FindByGroup
                    if attached.driver() == DriverKind::Resp =>
                {
                    "attached: it does not know FT.CREATE, so it has no secondary indexes"
                        .to_owned()
                }
                _ => reason,
            }),
        }
    }

    /// Whether requests reach it this way.
    #[must_use]
    pub fn speaks(&self, driver: DriverKind) -> bool {
        match self {
            Self::Found(found) => found.system.driver() == driver,
            Self::Attached(attached) => attached.driver() == driver,
        }
    }

    /// Whether it answers requests for pages, in either form.
    #[must_use]
    pub fn speaks_http(&self) -> bool {
        self.speaks(DriverKind::Http) || self.speaks(DriverKind::HttpCommands)
    }

    /// How statements of SQL reach it.
    ///
    /// # Errors
    /// That none do, in words.
    pub fn sql(&self) -> Result<SqlKind, String> {
        match self {
            Self::Found(found) => {
                let title = found.system.title();
                found.system.sql().ok_or_else(|| format!("{title} is not asked in SQL here"))
            }
            Self::Attached(_) => Err("attached: no tables are made on it".to_owned()),
        }
    }

    /// Whether it takes several requests of one connection at a time.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn can_pipeline(&self) -> Result<(), String> {
        match self {
            Self::Found(found) => found.system.can_pipeline(),
            Self::Attached(_) => Ok(()),
        }
    }
}

/// Every system at every setting that `work` goes through.
#[must_use]
pub fn pairs<'a>(
    work: &Work,
    subjects: &'a [Subject],
    promise: Promise,
) -> Vec<(&'a Subject, SubjectSetting)> {
    let settings = |subject: &'a Subject| match work.settings {
        Settings::All => subject.settings(),
        Settings::Chosen => vec![subject.setting_for(promise)],
    };
    // A web program is measured as one, and nowhere else.
    let takes_part = |subject: &&Subject| match subject {
        Subject::Found(found) => found.system.only_in().is_none_or(|only| only == work.name),
        Subject::Attached(_) => true,
    };
    let all = subjects
        .iter()
        .filter(takes_part)
        .flat_map(|subject| settings(subject).into_iter().map(move |setting| (subject, setting)));
    all.collect()
}
