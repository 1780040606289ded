//! The description of the REST API, OpenAPI 3.1: the paths, with the formats of the server's spaces.

use serde_json::{Map, Value, json};

/// The document. `spaces` is what `LADON.SPACE LIST` answers.
pub fn document(spaces: &[u8]) -> String {
    let spaces: Value = serde_json::from_slice(spaces).unwrap_or_default();
    let mut paths = fixed_paths();
    let mut schemas = Map::new();
    schemas.insert("Error".to_owned(), error_schema());
    for space in spaces.as_array().into_iter().flatten() {
        if let Some(name) = space["name"].as_str() {
            schemas.insert(schema_name(name), tuple_schema(space, Shape::Whole));
            space_paths(name, space, &mut paths);
        }
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ladon",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Keys, spaces and functions of a Ladon server over HTTP; commands as JSON \
                            (POST /, /pipeline, /multi-exec) are not described here.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "security": [{}, {"bearer": []}, {"basic": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    });
    document.to_string()
}

fn error_schema() -> Value {
    json!({"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The name of a space's tuples, of the characters that a component may have.
fn schema_name(space: &str) -> String {
    let plain =
        |char: char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' };
    format!("space.{}", space.chars().map(plain).collect::<String>())
}

fn error(what: &str) -> Value {
    json!({"description": what, "content": {"application/json": {"schema": reference("Error")}}})
}

/// The responses that every request may have, and these.
fn responses(own: &[(&str, Value)]) -> Value {
    let mut all = Map::new();
    for (status, response) in own {
        all.insert((*status).to_owned(), response.clone());
    }
    for (status, what) in [
        ("400", "The request, or what it asks for, makes no sense"),
        ("401", "Credentials are needed, or are wrong"),
        ("403", "The user has no right to this, or another site's page asks"),
        ("413", "The body is too long"),
        ("503", "The server cannot serve this now"),
        ("507", "The server has no memory for this"),
    ] {
        all.entry(status).or_insert_with(|| error(what));
    }
    Value::Object(all)
}

fn json_response(what: &str, schema: Value) -> Value {
    json!({"description": what, "content": {"application/json": {"schema": schema}}})
}

fn json_body(schema: Value) -> Value {
    json!({"required": true, "content": {"application/json": {"schema": schema}}})
}

fn parameter(place: &str, name: &str, schema: Value) -> Value {
    json!({"in": place, "name": name, "required": place == "path", "schema": schema})
}

fn fixed_paths() -> Map<String, Value> {
    let mut paths = Map::new();
    let mut add = |path: &str, item: Value| paths.insert(path.to_owned(), item);
    add("/v1/keys", keys_path());
    add("/v1/keys/{key}", key_path());
    add("/v1/functions/{library}/{name}", function_path());
    add(
        "/v1/spaces",
        json!({"get": {
            "summary": "The spaces with their formats and indexes",
            "responses": responses(&[
                ("200", json_response("The spaces", json!({"type": "array", "items": {"type": "object"}}))),
            ]),
        }}),
    );
    paths
}

fn keys_path() -> Value {
    json!({"get": {
        "summary": "Some of the names of keys",
        "parameters": [
            parameter("query", "cursor", json!({"type": "string", "pattern": "^[0-9]{1,19}$"})),
            parameter("query", "match", json!({"type": "string"})),
            parameter("query", "count", json!({"type": "integer", "minimum": 1, "maximum": 10_000})),
            parameter("query", "type", json!({"type": "string"})),
        ],
        "responses": responses(&[("200", json_response("Names, and where to go on", json!({
            "type": "object", "required": ["cursor", "keys"], "properties": {
                "cursor": {"type": "string"},
                "keys": {"type": "array", "items": {"type": "string"}},
            },
        })))]),
    }})
}

fn key_path() -> Value {
    let key = parameter("path", "key", json!({"type": "string", "minLength": 1}));
    let ttl = parameter(
        "header",
        "Ladon-TTL",
        json!({
            "type": "string", "pattern": "^(keep|0\\.([1-9][0-9]{0,2}|0[1-9][0-9]?|00[1-9])|[1-9][0-9]{0,8}(\\.[0-9]{1,3})?)$",
            "description": "Seconds to live, or keep",
        }),
    );
    let bytes =
        json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}});
    let found = json!({
        "description": "The value: a string's bytes, or JSON",
        "headers": {
            "ETag": {"schema": {"type": "string"}},
            "Ladon-TTL": {"schema": {"type": "string"}},
            "Ladon-Type": {"schema": {"type": "string"}},
        },
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {
                "type": "object", "required": ["type", "ttl", "value"], "properties": {
                    "type": {"type": "string"}, "ttl": {"type": ["number", "null"]}, "value": {},
                },
            }},
        },
    });
    let done = json!({"description": "Done"});
    let failed = error("The condition does not hold");
    let absent = error("There is no such key");
    json!({
        "parameters": [key],
        "get": {
            "summary": "Read a key",
            "responses": responses(&[
                ("200", found), ("304", json!({"description": "As before"})),
                ("404", absent.clone()), ("409", error("A type that is read by commands only")),
            ]),
        },
        "put": {
            "summary": "Write a string",
            "parameters": [ttl],
            "description": "If-Match and If-None-Match make it a compare and set, by the ETag of GET.",
            "requestBody": {"content": bytes},
            "responses": responses(&[("204", done.clone()), ("412", failed.clone())]),
        },
        "patch": {
            "summary": "Change a value",
            "requestBody": json_body(patch_schema()),
            "responses": responses(&[("200", json_response("Results", json!({"type": "array"})))]),
        },
        "delete": {
            "summary": "Delete a key",
            "description": "If-Match makes it conditional, by the ETag of GET.",
            "responses": responses(&[("204", done), ("404", absent), ("412", failed)]),
        },
    })
}

/// Numbers in strings.
const JSON_INTEGER: &str = "^-?(0|[1-9][0-9]*)$";
const JSON_NUMBER: &str = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$";

fn patch_schema() -> Value {
    let one = json!({"type": ["string", "number", "boolean"]});
    let some = json!({"type": "array", "minItems": 1, "items": one});
    let object = json!({"type": "object", "minProperties": 1, "additionalProperties": one});
    json!({
        "type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
            "incr": {"type": ["integer", "string"], "pattern": JSON_INTEGER},
            "incrbyfloat": {"type": ["number", "string"], "pattern": JSON_NUMBER},
            "append": one, "set": object, "unset": some, "push": some, "unshift": some, "add": some,
            "remove": some, "scores": {"type": "object", "minProperties": 1,
                "additionalProperties": {"type": ["number", "string"]}},
            "remove_scored": some,
            "ttl": {"type": ["number", "null"], "minimum": 0.001, "maximum": 1e10},
        },
    })
}

fn function_path() -> Value {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let query =
        |name| json!({"in": "query", "name": name, "schema": list.clone(), "explode": true});
    let anything = json!({
        "description": "The function's result",
        "content": {
            "application/json": {"schema": {}}, "text/plain": {"schema": {"type": "string"}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    });
    let absent = error("There is no such function");
    json!({
        "parameters": [
            parameter("path", "library", json!({"type": "string", "minLength": 1})),
            parameter("path", "name", json!({"type": "string", "minLength": 1})),
            query("key"), query("arg"),
        ],
        "get": {
            "summary": "Call a function that only reads",
            "responses": responses(&[("200", anything.clone()), ("404", absent.clone())]),
        },
        "post": {
            "summary": "Call a function",
            "requestBody": {"content": {"application/json": {"schema": {
                "type": "object", "additionalProperties": false,
                "properties": {"keys": list, "args": {"type": "array"}},
            }}}},
            "responses": responses(&[("200", anything), ("404", absent)]),
        },
    })
}

/// The schema of a field's type.
fn field_schema(field: &Value) -> Value {
    let kind = match field["type"].as_str().unwrap_or("any") {
        "unsigned" => json!({"type": "integer", "minimum": 0, "maximum": u64::MAX}),
        "integer" => json!({"type": "integer", "minimum": i64::MIN, "maximum": u64::MAX}),
        "number" | "double" => json!({"type": "number"}),
        "string" => json!({"type": "string"}),
        "boolean" => json!({"type": "boolean"}),
        "array" => json!({"type": "array"}),
        "map" => json!({"type": "object"}),
        "uuid" => json!({"type": "string", "format": "uuid"}),
        "datetime" => json!({"type": "string", "format": "date-time"}),
        _ => json!({}),
    };
    if field["is_nullable"] == json!(true) && kind != json!({}) {
        json!({"anyOf": [kind, {"type": "null"}]})
    } else {
        kind
    }
}

fn fields(space: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let fields = space["format"].as_array().into_iter().flatten();
    fields.filter_map(|field| Some((field["name"].as_str()?, field)))
}

/// What a tuple is, as a whole, as the body behind a primary key, or as changes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Whole,
    BehindKey,
    Changes,
}

fn tuple_schema(space: &Value, shape: Shape) -> Value {
    let key = space["primary_key"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_shown = |name: &str| shape == Shape::Whole || !key.iter().any(|part| part == name);
    let shown = || fields(space).filter(|(name, _)| is_shown(name));
    let properties: Map<String, Value> =
        shown().map(|(name, field)| (name.to_owned(), field_schema(field))).collect();
    let required: Vec<&str> = shown()
        .filter(|(_, field)| shape != Shape::Changes && field["is_nullable"] != json!(true))
        .map(|(name, _)| name)
        .collect();
    let mut schema = json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    });
    if shape == Shape::Changes {
        schema["minProperties"] = json!(1);
    }
    schema
}

/// The schema of a part of the primary key in a path.
fn part_schema(space: &Value, name: &Value) -> Value {
    let field = fields(space).find(|(found, _)| Some(*found) == name.as_str());
    let kind = field.map(|(_, field)| field_schema(field)).unwrap_or_default();
    match kind["type"].as_str() {
        Some("integer" | "number" | "boolean") => kind,
        _ => json!({"type": "string", "minLength": 1}),
    }
}

fn space_paths(name: &str, space: &Value, paths: &mut Map<String, Value>) {
    let escaped = crate::request::target::encoded(name.as_bytes());
    let tuple = reference(&schema_name(name));
    let found = json_response("The tuple", tuple.clone());
    let stored = json_response("The tuple as it was stored", tuple.clone());
    let absent = error("There is no such tuple");
    let conflict = error("Another tuple has the key");
    let text = json!({"type": "string"});
    let indexes: Vec<&Value> =
        space["indexes"].as_array().into_iter().flatten().map(|index| &index["name"]).collect();
    paths.insert(format!("/v1/spaces/{escaped}"), json!({
        "get": {
            "summary": format!("Tuples of {name}"),
            "parameters": [
                parameter("query", "index", json!({"type": "string", "enum": indexes})),
                parameter("query", "key", text.clone()),
                parameter("query", "iterator", json!({
                    "type": "string", "enum": ["eq", "req", "all", "lt", "le", "ge", "gt"],
                })),
                parameter("query", "after", text.clone()),
                parameter("query", "limit", json!({"type": "integer", "minimum": 0, "maximum": 1000})),
            ],
            "responses": responses(&[("404", error("There is no such index, key or position")), ("200",
                json_response("Tuples, and where to go on", json!({
                    "type": "object", "required": ["tuples"], "properties": {
                        "tuples": {"type": "array", "items": tuple.clone()},
                        "after": {"type": ["string", "null"]},
                    },
                })))]),
        },
        "post": {
            "summary": format!("Insert a tuple into {name}"),
            "requestBody": json_body(tuple.clone()),
            "responses": responses(&[("200", stored.clone()), ("409", conflict.clone())]),
        },
    }));
    let key = space["primary_key"].as_array().map(Vec::as_slice).unwrap_or_default();
    if key.is_empty() {
        return;
    }
    let names: Vec<String> = (0..key.len()).map(|part| format!("pk{part}")).collect();
    let path: String = names.iter().map(|name| format!("/{{{name}}}")).collect();
    let parameters: Vec<Value> = names
        .iter()
        .zip(key)
        .map(|(name, part)| parameter("path", name, part_schema(space, part)))
        .collect();
    paths.insert(format!("/v1/spaces/{escaped}{path}"), json!({
        "parameters": parameters,
        "get": {"summary": format!("A tuple of {name}"),
            "responses": responses(&[("200", found.clone()), ("404", absent.clone())])},
        "put": {"summary": format!("Replace a tuple of {name}"), "requestBody": json_body(tuple_schema(space, Shape::BehindKey)),
            "responses": responses(&[("200", stored), ("404", absent.clone()), ("409", conflict.clone())])},
        "patch": {"summary": format!("Change fields of a tuple of {name}"),
            "requestBody": json_body(tuple_schema(space, Shape::Changes)),
            "responses": responses(&[("200", found), ("404", absent.clone()), ("409", conflict)])},
        "delete": {"summary": format!("Delete a tuple of {name}"),
            "responses": responses(&[("204", json!({"description": "Deleted"})), ("404", absent)])},
    }));
}
