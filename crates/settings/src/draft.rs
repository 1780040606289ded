//! Values that are not in force yet: the working copy of a load or a `CONFIG SET`.

use crate::endpoint::{self, Endpoint};
use crate::kind::{Kind, Value};
use crate::origin::Origin;
use crate::primary::Primary;
use crate::setting::Setting;
use crate::table::{CORES, Id, TABLE};
use ladon_record::Gate;
use std::sync::{Arc, LazyLock};

/// Bytes of a password: as many as that of a user may have.
const PASSWORD_BYTES_MAX: usize = 64 << 10;

/// One value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A value for every setting, by `Id`.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    entries: Vec<Entry>,
}

impl Draft {
    /// The defaults.
    pub(crate) fn new() -> Draft {
        let entries = TABLE
            .iter()
            .map(|setting| Entry { value: default_value(setting), origin: Origin::Default });
        Draft { entries: entries.collect() }
    }

    pub(crate) fn entry(&self, id: Id) -> &Entry {
        &self.entries[id as usize]
    }

    /// The value as text.
    pub(crate) fn text(&self, setting: &Setting) -> String {
        setting.kind.format(&self.entry(setting.id).value)
    }

    /// As `text`; existing text is not copied.
    pub(crate) fn shared_text(&self, setting: &Setting) -> Arc<String> {
        match &self.entry(setting.id).value {
            Value::Text(text) => Arc::clone(text),
            Value::Number(_) => Arc::new(self.text(setting)),
        }
    }

    /// Sets one setting, and those that are another way to say the same.
    pub(crate) fn set(
        &mut self,
        setting: &Setting,
        input: &str,
        origin: &Origin,
    ) -> Result<(), String> {
        if setting.id == Id::requirepass && input.len() > PASSWORD_BYTES_MAX {
            return Err(format!("a password has at most {PASSWORD_BYTES_MAX} bytes"));
        }
        let value = setting.kind.parse(input, &self.entry(setting.id).value)?;
        self.entries[setting.id as usize] = Entry { value, origin: origin.clone() };
        self.settle(setting.id, origin)
    }

    /// Brings the settings that say the same as `changed` in other words in line with it.
    fn settle(&mut self, changed: Id, origin: &Origin) -> Result<(), String> {
        match changed {
            Id::gate => {
                let gate = self.gate();
                self.put(Id::appendonly, Value::Number((gate != Gate::None).into()), origin);
                if let Some(index) = appendfsync_of(gate) {
                    self.put(Id::appendfsync, Value::Number(index), origin);
                }
            }
            Id::appendonly => {
                let gate = match self.number(Id::appendonly) {
                    0 => Gate::None,
                    _ => self.appendfsync_gate(),
                };
                self.put(Id::gate, Value::Number(gate as i64), origin);
            }
            // Without appendonly it is what appendonly will mean once it is on.
            Id::appendfsync if self.gate() != Gate::None => {
                self.put(Id::gate, Value::Number(self.appendfsync_gate() as i64), origin);
            }
            Id::resp => self.split_resp(origin),
            Id::bind | Id::port | Id::unixsocket => self.join_resp(origin)?,
            _ => {}
        }
        Ok(())
    }

    fn split_resp(&mut self, origin: &Origin) {
        let endpoints = endpoint::parse_list(self.string(Id::resp)).unwrap_or_default();
        let hosts: Vec<String> = endpoints.iter().filter_map(Endpoint::bind_word).collect();
        let port = endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp { port, .. } => Some(i64::from(*port)),
            Endpoint::Unix(_) => None,
        });
        let path = endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Unix(path) => Some(path.display().to_string()),
            Endpoint::Tcp { .. } => None,
        });
        self.put(Id::bind, Value::text(hosts.join(" ")), origin);
        self.put(Id::port, Value::Number(port.unwrap_or(0)), origin);
        self.put(Id::unixsocket, Value::text(path.unwrap_or_default()), origin);
    }

    fn join_resp(&mut self, origin: &Origin) -> Result<(), String> {
        let port = u16::try_from(self.number(Id::port)).unwrap_or(0);
        let mut endpoints = Vec::new();
        if port != 0 {
            let hosts = self.string(Id::bind).split_ascii_whitespace();
            endpoints.extend(hosts.map(|host| Endpoint::from_bind_word(host, port)));
        }
        if !self.string(Id::unixsocket).is_empty() {
            endpoints.push(Endpoint::Unix(self.string(Id::unixsocket).into()));
        }
        let text = endpoint::format_list(&endpoints);
        // A path with a space in it cannot be represented in the list.
        if endpoint::parse_list(&text)? != endpoints {
            return Err("spaces and commas cannot be part of an address or a path".to_owned());
        }
        self.put(Id::resp, Value::text(text), origin);
        Ok(())
    }

    fn put(&mut self, id: Id, value: Value, origin: &Origin) {
        let entry = &mut self.entries[id as usize];
        if entry.value != value {
            *entry = Entry { value, origin: origin.clone() };
        }
    }

    fn number(&self, id: Id) -> i64 {
        match self.entry(id).value {
            Value::Number(number) => number,
            Value::Text(_) => 0,
        }
    }

    fn string(&self, id: Id) -> &str {
        match &self.entry(id).value {
            Value::Text(text) => text,
            Value::Number(_) => "",
        }
    }

    /// What no setting alone is wrong about: the name of one that the others do not allow, and why.
    pub(crate) fn contradiction(&self) -> Option<(Id, &'static str)> {
        let is_in_cluster = self.number(Id::cluster_enabled) != 0;
        if self.gate() == Gate::Quorum && !is_in_cluster {
            return Some((Id::gate, "the gate quorum is for nodes of a cluster (cluster-enabled)"));
        }
        let primary = self.text(&TABLE[Id::replicaof as usize]);
        if primary.is_empty() {
            return None;
        }
        if is_in_cluster {
            return Some((
                Id::replicaof,
                "a node of a cluster (cluster-enabled) follows its leader",
            ));
        }
        Primary::of(&primary).is_none().then_some((Id::replicaof, "it has to be HOST PORT"))
    }

    fn gate(&self) -> Gate {
        Gate::from_u8(self.number(Id::gate) as u8).unwrap_or_default()
    }

    fn appendfsync_gate(&self) -> Gate {
        let gates = [Gate::Write, Gate::EverySec, Gate::Fsync];
        let index = self.number(Id::appendfsync);
        gates.into_iter().find(|&gate| appendfsync_of(gate) == Some(index)).unwrap_or_default()
    }
}

/// The index in `APPENDFSYNC_NAMES` of the word for a gate; the gate `none` has none.
fn appendfsync_of(gate: Gate) -> Option<i64> {
    match gate {
        Gate::None => None,
        Gate::EverySec => Some(0),
        // As far as Redis' words go.
        Gate::Fsync | Gate::Quorum => Some(1),
        Gate::Write => Some(2),
    }
}

/// What the process may use, at most 256. Files of the system are read to find out: once.
static CORES_HERE: LazyLock<i64> = LazyLock::new(|| {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(256)) as i64
});

/// A default of the table as a value; the test below checks that each one can be read.
pub(crate) fn default_value(setting: &Setting) -> Value {
    if setting.default == CORES {
        return Value::Number(*CORES_HERE);
    }
    let nothing = match setting.kind {
        Kind::Fixed { .. } => Value::text(setting.default),
        _ if setting.kind.is_number() => Value::Number(0),
        _ => Value::text(""),
    };
    setting.kind.parse(setting.default, &nothing).unwrap_or(nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup;

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for setting in TABLE.iter().filter(|setting| setting.default != CORES) {
            let value = default_value(setting);
            let text = setting.kind.format(&value);
            assert_eq!(setting.kind.parse(setting.default, &value), Ok(value), "{}", setting.name);
            match setting.kind {
                Kind::Memory { .. } => {}
                _ => assert_eq!(text, setting.default, "{}", setting.name),
            }
        }
    }

    #[track_caller]
    fn check(steps: &[(&str, &str)], expected: &[(&str, &str)]) {
        let mut draft = Draft::new();
        for (name, value) in steps {
            draft.set(lookup(name).unwrap(), value, &Origin::ConfigSet).unwrap();
        }
        for (name, value) in expected {
            assert_eq!(draft.text(lookup(name).unwrap()), *value, "{name} after {steps:?}");
        }
    }

    #[test]
    fn appendonly_and_appendfsync_map_on_gates() {
        check(&[], &[("gate", "everysec"), ("appendonly", "yes"), ("appendfsync", "everysec")]);
        check(&[("gate", "fsync")], &[("appendonly", "yes"), ("appendfsync", "always")]);
        check(&[("gate", "write")], &[("appendonly", "yes"), ("appendfsync", "no")]);
        check(&[("gate", "none")], &[("appendonly", "no"), ("appendfsync", "everysec")]);
        check(&[("appendonly", "no")], &[("gate", "none")]);
        check(&[("appendfsync", "always")], &[("gate", "fsync")]);
        check(&[("appendfsync", "no")], &[("gate", "write")]);
        // In either order, and remembered while appendonly is off.
        let off_then_on = [("appendonly", "no"), ("appendfsync", "always"), ("appendonly", "yes")];
        check(&off_then_on[..2], &[("gate", "none"), ("appendfsync", "always")]);
        check(&off_then_on, &[("gate", "fsync")]);
    }

    #[test]
    fn bind_port_and_unixsocket_are_parts_of_resp() {
        check(&[("port", "7")], &[("resp", "127.0.0.1:7")]);
        check(&[("bind", "* -::1"), ("port", "7")], &[("resp", "*:7 -[::1]:7")]);
        check(&[("unixsocket", "/s")], &[("resp", "127.0.0.1:6379 unix:/s")]);
        check(&[("port", "0"), ("unixsocket", "/s")], &[("resp", "unix:/s")]);
        check(&[("port", "0"), ("port", "8")], &[("resp", "127.0.0.1:8")]);
        check(
            &[("resp", "[::1]:9,unix:/s")],
            &[("bind", "::1"), ("port", "9"), ("unixsocket", "/s")],
        );
    }
}
