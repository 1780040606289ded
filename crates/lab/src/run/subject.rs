//! What is measured: a system that the lab starts, or a server that runs already.

use super::attach::Attached;
use crate::dialects::Dialect;
use crate::systems::registry::Found;
use crate::systems::system::{Promise, Setting};

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

    /// What an acknowledged write is worth.
    #[must_use]
    pub fn promise(&self) -> String {
        match self {
            Self::Started(setting) => setting.promise.name().to_owned(),
            Self::AsAttached => "unknown".to_owned(),
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

    /// What speaks to it.
    ///
    /// # Errors
    /// Why nothing does, in words.
    pub fn dialect(&self) -> Result<Box<dyn Dialect>, String> {
        match self {
            Self::Attached(attached) => Ok(Box::new(attached.dialect())),
            Self::Found(found) => {
                let driver = found.system.driver();
                let none = || format!("no driver for {driver:?} in this version of the lab");
                driver.dialect().ok_or_else(none)
            }
        }
    }
}
