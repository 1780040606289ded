//! `CONFIG GET`, and what the server knows of each setting besides: where its value came from, when
//! it may change, what it means.

use super::api::Caller;
use super::{Console, Refusal, json, refusal};
use crate::access::Peer;
use crate::body::Answer;
use crate::live::Object;
use hyper::StatusCode;
use ladon_settings::{Settings, TABLE, When, lookup};
use serde_json::Value as Json;

impl Console {
    /// As the user may read it: the server is asked, so that a refusal is the server's.
    pub(super) async fn settings(&self, caller: &Caller, peer: &Peer) -> Result<Answer, Refusal> {
        let command = ["CONFIG", "GET", "*"].map(|word| word.as_bytes().to_vec()).to_vec();
        let (replies, ended) = self.call(caller, peer, 0, &[command]).await?;
        let unavailable = |text: &str| refusal(StatusCode::SERVICE_UNAVAILABLE, text);
        ended.map_err(|error| unavailable(&error.to_string()))?;
        let reply: Json = serde_json::from_slice(&replies)
            .map_err(|_| unavailable("the reply cannot be read"))?;
        if let Some(error) = reply.get("error").and_then(Json::as_str) {
            return Err(refusal(StatusCode::FORBIDDEN, error));
        }
        let pairs = reply.get("map").and_then(Json::as_array).cloned().unwrap_or_default();
        let value_of = |name: &str| {
            let pair = pairs.iter().find(|pair| pair[0].as_str() == Some(name))?;
            pair[1].as_str().map(str::to_owned)
        };
        let settings = &self.state.0.node().settings;
        let shown = TABLE
            .iter()
            .filter_map(|setting| Some(describe(settings, setting.name, &value_of(setting.name)?)));
        let shown: Vec<String> = shown.collect();
        Ok(json(format!("[{}]", shown.join(","))))
    }
}

/// One setting. A secret is not shown.
fn describe(settings: &Settings, name: &str, value: &str) -> String {
    let mut out = Object::new();
    out.text("name", name);
    let Some(setting) = lookup(name) else {
        return out.text("value", value).raw("aliases", "[]").end();
    };
    match setting.sensitive && !value.is_empty() {
        true => out.raw("value", "null"),
        false => out.text("value", value),
    };
    let aliases = serde_json::json!(setting.aliases).to_string();
    let origin = settings.origin(name).unwrap_or_default();
    let is_live = matches!(setting.when, When::Live | When::Apply);
    out.raw("aliases", &aliases)
        .text("default", setting.default)
        .text("origin", &origin.to_string())
        .flag("changed", value != setting.default)
        .flag("live", is_live)
        .text("section", setting.section)
        .text("doc", setting.doc.trim());
    out.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_says_where_it_came_from_and_no_secret() {
        let settings = Settings::new();
        settings.set_many(&[("maxclients", "77"), ("requirepass", "secret")]).expect("settings");
        let json: Json =
            serde_json::from_str(&describe(&settings, "maxclients", "77")).expect("JSON");
        assert_eq!(json["origin"], "CONFIG SET");
        assert_eq!((&json["changed"], &json["live"]), (&Json::from(true), &Json::from(true)));
        let json = describe(&settings, "requirepass", "secret");
        assert!(!json.contains("secret") && json.contains("\"value\":null"), "{json}");
    }
}
