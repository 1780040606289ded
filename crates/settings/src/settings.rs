//! The values in force.

use crate::draft::{Draft, default_value};
use crate::kind::Value;
use crate::origin::Origin;
use crate::output_limits::{self, OutputClass, OutputLimit};
use crate::rewrite::Source;
use crate::set::{self, SetError};
use crate::setting::Setting;
use crate::table::{COUNT, Id, TABLE, lookup};
use crate::users::UserLine;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::array;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The settings of one server, shared by its threads.
///
/// Reading a number is one relaxed load. Threads that keep something derived from settings
/// compare [`Settings::generation`] with the one they saw last. The accessors are in the table.
pub struct Settings {
    numbers: [AtomicI64; COUNT],
    texts: [ArcSwap<String>; COUNT],
    /// By class: hard bytes, soft bytes, soft seconds. Read for every reply that queues up.
    output_limits: [[AtomicU64; 3]; 3],
    generation: AtomicU64,
    /// The source of the fields above. Held while a change is checked and published.
    draft: Mutex<Draft>,
    pub(crate) source: Option<Source>,
    pub(crate) user_lines: Vec<UserLine>,
}

impl Settings {
    /// The defaults.
    pub fn new() -> Settings {
        Settings::from_draft(Draft::new(), None)
    }

    pub(crate) fn from_draft(draft: Draft, source: Option<Source>) -> Settings {
        let settings = Settings {
            numbers: array::from_fn(|_| AtomicI64::new(0)),
            texts: array::from_fn(|_| ArcSwap::from_pointee(String::new())),
            output_limits: Default::default(),
            generation: AtomicU64::new(0),
            draft: Mutex::new(draft),
            source,
            user_lines: Vec::new(),
        };
        settings.publish(&settings.draft.lock());
        settings
    }

    /// Grows with every change.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The limit on unread output of a class of connections.
    #[inline]
    pub fn output_limit(&self, class: OutputClass) -> OutputLimit {
        let [hard, soft, seconds] = &self.output_limits[class as usize];
        OutputLimit {
            hard_bytes: hard.load(Ordering::Relaxed),
            soft_bytes: soft.load(Ordering::Relaxed),
            soft_seconds: seconds.load(Ordering::Relaxed),
        }
    }

    /// Changes several settings, all or none, as `CONFIG SET` does. Returns the names (Ladon's) of
    /// those whose value changed, linked settings included, and of those that name a file, whose
    /// content may have changed.
    pub fn set_many(
        &self,
        pairs: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> Result<Vec<&'static str>, SetError> {
        self.change(pairs, false, |_, _| Ok(()))
    }

    /// As [`Settings::set_many`], subject to `apply`: it receives the settings as they would be and
    /// the names of those that changed. If it refuses one (with the setting's name and the reason),
    /// nothing changes.
    ///
    /// No other change runs in between; `apply` must not change settings itself. It has to act on
    /// what is [`When::Apply`](crate::When::Apply) (`resp`, `bind`, `port`), or refuse it.
    pub fn set_many_with(
        &self,
        pairs: &[(impl AsRef<str>, impl AsRef<str>)],
        apply: impl FnOnce(&Settings, &[&'static str]) -> Result<(), (&'static str, String)>,
    ) -> Result<Vec<&'static str>, SetError> {
        self.change(pairs, true, apply)
    }

    fn change(
        &self,
        pairs: &[(impl AsRef<str>, impl AsRef<str>)],
        follows: bool,
        apply: impl FnOnce(&Settings, &[&'static str]) -> Result<(), (&'static str, String)>,
    ) -> Result<Vec<&'static str>, SetError> {
        let mut present = self.draft.lock();
        let (next, changed) = Settings::changed(&present, pairs, follows)?;
        let preview = Settings::from_draft(next.clone(), None);
        apply(&preview, &changed)
            .map_err(|(name, reason)| SetError::Failed { name: name.to_owned(), reason })?;
        *present = next;
        self.publish(&present);
        Ok(changed)
    }

    /// Notes what a command has made of a setting that `CONFIG SET` cannot change (`REPLICAOF`).
    ///
    /// # Errors
    /// The value is none of this setting.
    pub fn note(&self, id: Id, value: &str) -> Result<(), String> {
        let mut present = self.draft.lock();
        present.set(&TABLE[id as usize], value, &Origin::ConfigSet)?;
        self.publish(&present);
        Ok(())
    }

    /// What [`Settings::set_many_with`] would pass to `apply` now.
    ///
    /// # Errors
    /// As there.
    pub fn preview(
        &self,
        pairs: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> Result<(Settings, Vec<&'static str>), SetError> {
        let (next, changed) = Settings::changed(&self.draft.lock(), pairs, true)?;
        Ok((Settings::from_draft(next, None), changed))
    }

    /// The settings after a change, and the names of those that change or whose file may have.
    fn changed(
        present: &Draft,
        pairs: &[(impl AsRef<str>, impl AsRef<str>)],
        follows: bool,
    ) -> Result<(Draft, Vec<&'static str>), SetError> {
        let next = set::change(present, pairs, follows)?;
        let is_named =
            |setting: &Setting| pairs.iter().any(|(name, _)| setting.has_name(name.as_ref()));
        let changed: Vec<&'static str> = TABLE
            .iter()
            .filter(|setting| {
                present.entry(setting.id).value != next.entry(setting.id).value
                    || setting.names_a_file && is_named(setting)
            })
            .map(|setting| setting.name)
            .collect();
        Ok((next, changed))
    }

    /// Where a setting's value came from; `None` for a name that no setting has.
    pub fn origin(&self, name: &str) -> Option<Origin> {
        let setting = lookup(name)?;
        Some(self.draft.lock().entry(setting.id).origin.clone())
    }

    /// A setting's value as text, as `CONFIG GET` shows it.
    pub fn value(&self, id: Id) -> String {
        self.draft.lock().text(&TABLE[id as usize])
    }

    /// Whether a setting has another value than the built-in one.
    pub fn is_default(&self, id: Id) -> bool {
        self.draft.lock().entry(id).value == default_value(&TABLE[id as usize])
    }

    pub(crate) fn draft(&self) -> Draft {
        self.draft.lock().clone()
    }

    #[inline]
    pub(crate) fn number(&self, id: Id) -> i64 {
        self.numbers[id as usize].load(Ordering::Relaxed)
    }

    /// The text of any setting. Choices are numbers inside and have their word here as well.
    pub(crate) fn text(&self, id: Id) -> Arc<String> {
        self.texts[id as usize].load_full()
    }

    fn publish(&self, draft: &Draft) {
        for setting in TABLE {
            let index = setting.id as usize;
            if let Value::Number(number) = draft.entry(setting.id).value {
                self.numbers[index].store(number, Ordering::Relaxed);
            }
            let text = draft.shared_text(setting);
            if **self.texts[index].load() != *text {
                self.texts[index].store(text);
            }
        }
        let limits = draft.shared_text(&TABLE[Id::client_output_buffer_limit as usize]);
        if let Ok(limits) = output_limits::parse(&limits, Default::default()) {
            for (stored, limit) in self.output_limits.iter().zip(limits) {
                stored[0].store(limit.hard_bytes, Ordering::Relaxed);
                stored[1].store(limit.soft_bytes, Ordering::Relaxed);
                stored[2].store(limit.soft_seconds, Ordering::Relaxed);
            }
        }
        // A thread that sees the new generation sees the new values.
        self.generation.fetch_add(1, Ordering::Release);
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new()
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = TABLE.iter().filter(|setting| !setting.sensitive);
        f.debug_map().entries(shown.map(|setting| (setting.name, self.value(setting.id)))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientMemory, Endpoint, IoBackend, LogLevel};
    use ladon_record::Gate;

    #[test]
    fn accessors_give_the_defaults_in_their_types() {
        let settings = Settings::new();
        assert_eq!(settings.gate(), Gate::EverySec);
        assert_eq!(settings.maxmemory(), 0);
        assert_eq!(settings.proto_max_bulk_len(), 512 << 20);
        assert_eq!(settings.maxmemory_clients(), ClientMemory::Unlimited);
        assert_eq!(settings.loglevel(), LogLevel::Notice);
        assert_eq!(settings.io_backend(), IoBackend::Auto);
        assert_eq!(settings.appendfsync(), "everysec");
        assert_eq!(settings.latency_tracking_info_percentiles(), [50.0, 99.0, 99.9]);
        assert!(settings.io_threads() >= 1);
        assert_eq!(settings.save(), []);
        assert_eq!(
            settings.resp(),
            [Endpoint::Tcp { host: "127.0.0.1".into(), port: 6379, optional: false }]
        );
        let pubsub = settings.output_limit(OutputClass::PubSub);
        assert_eq!((pubsub.hard_bytes, pubsub.soft_seconds), (32 << 20, 60));
        assert_eq!(settings.client_output_buffer_limit()[2], pubsub);
    }

    #[test]
    fn a_change_is_seen_with_its_generation_and_origin() {
        let settings = Settings::new();
        let before = settings.generation();
        let pairs = [("MaxMemory", "1kb"), ("maxmemory-clients", "5%"), ("hz", "10")];
        assert_eq!(settings.set_many(&pairs).unwrap(), ["maxmemory-clients", "maxmemory"]);
        assert!(settings.generation() > before);
        assert_eq!(settings.maxmemory(), 1024);
        assert_eq!(settings.maxmemory_clients(), ClientMemory::PercentOfMaxmemory(5));
        assert_eq!(settings.origin("maxmemory"), Some(Origin::ConfigSet));
        assert_eq!(settings.origin("timeout"), Some(Origin::Default));
        assert_eq!(settings.origin("nosuch"), None);
    }

    #[test]
    fn a_refusal_leaves_everything_as_it_was() {
        let settings = Settings::new();
        settings.set_many(&[("maxmemory", "5"), ("timeout", "x")]).unwrap_err();
        let refused = settings.set_many_with(&[("maxmemory", "5")], |next, changed| {
            assert_eq!((next.maxmemory(), changed), (5, &["maxmemory"][..]));
            Err(("maxmemory", "no".to_owned()))
        });
        assert!(refused.is_err());
        assert_eq!((settings.maxmemory(), settings.generation()), (0, 1));
    }
}
