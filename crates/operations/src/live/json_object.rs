//! Writing a JSON object, member by member.

/// An object that is being written. Names are plain words of this crate.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Object {
        Object("{".to_owned())
    }

    /// A member whose value is JSON already.
    pub(crate) fn raw(&mut self, name: &str, json: &str) -> &mut Object {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(json);
        self
    }

    /// A number.
    pub(crate) fn number(&mut self, name: &str, value: u64) -> &mut Object {
        self.raw(name, &value.to_string())
    }

    /// Numbers.
    pub(crate) fn numbers(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = u64>,
    ) -> &mut Object {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        self.raw(name, &format!("[{}]", values.join(",")))
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Object {
        let json = serde_json::Value::from(value).to_string();
        self.raw(name, &json)
    }

    pub(crate) fn flag(&mut self, name: &str, value: bool) -> &mut Object {
        self.raw(name, if value { "true" } else { "false" })
    }

    pub(crate) fn end(&mut self) -> String {
        let mut json = std::mem::take(&mut self.0);
        json.push('}');
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_json() {
        let json = Object::new()
            .number("a", 1)
            .numbers("b", [2, 3])
            .text("c", "\"\n")
            .flag("d", true)
            .raw("e", "null")
            .end();
        assert_eq!(json, r#"{"a":1,"b":[2,3],"c":"\"\n","d":true,"e":null}"#);
    }
}
