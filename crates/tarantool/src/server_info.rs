//! `CALL "box.info"`: what clients ask of a server. It has what is known here, and nothing else.

use crate::session::VERSION;
use crate::statements::Running;
use ladon_msgpack::write;

/// The value of one fact.
enum Fact {
    Text(String),
    Number(u64),
    Switch(bool),
}

impl Running<'_, '_> {
    /// The facts as a map, if the function is this one.
    pub(crate) fn server_info(&self, function: &str) -> Option<Vec<u8>> {
        if function != "box.info" {
            return None;
        }
        let node = self.thread.node;
        let uptime = self.thread.now_ms.saturating_sub(node.started_ms) / 1000;
        let facts = [
            ("version", Fact::Text(VERSION.to_owned())),
            ("package", Fact::Text("Ladon".to_owned())),
            ("id", Fact::Number(1)),
            ("ro", Fact::Switch(!node.may_change())),
            ("uuid", Fact::Text(self.session.instance_uuid(node))),
            ("status", Fact::Text("running".to_owned())),
            ("uptime", Fact::Number(uptime)),
            ("pid", Fact::Number(node.process.facts().process_id.into())),
        ];
        let mut out = Vec::new();
        write::map(&mut out, facts.len() as u32);
        for (name, fact) in facts {
            write::str(&mut out, name.as_bytes());
            match fact {
                Fact::Text(text) => write::str(&mut out, text.as_bytes()),
                Fact::Number(number) => write::uint(&mut out, number),
                Fact::Switch(is_on) => write::bool(&mut out, is_on),
            }
        }
        Some(out)
    }
}
