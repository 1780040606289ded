//! Spaces and functions.

use super::{Node, stop};
use crate::live::{bulk, call};
use std::process::Command;

#[test]
fn tuples_are_resources() {
    let node = Node::new(&[]);
    let iproto = format!("127.0.0.1:{}", node.other_port());
    let node = Node {
        more: vec![
            "--iproto".to_owned(),
            iproto.clone(),
            "--iproto-admin-password".to_owned(),
            "secret".to_owned(),
        ],
        ..node
    };
    let server = node.start();
    let ladon = |words: &str| {
        let run = Command::new(env!("CARGO_BIN_EXE_ladon"))
            .args(["space", "--iproto", &iproto])
            .args(words.split(' '))
            .env("LADON_IPROTO_PASSWORD", "secret")
            .output()
            .expect("runs");
        assert!(run.status.success(), "{words}: {}", String::from_utf8_lossy(&run.stderr));
    };
    ladon("create people --field id:unsigned --field name:string --field age:unsigned?");
    ladon("index people pk --part id:unsigned");
    let mut client = node.connect();
    for id in 1..=25 {
        let tuple = format!(r#"{{"id":{id},"name":"n{id}"}}"#);
        assert_eq!(client.ask("POST /v1/spaces/people", &tuple).text(), tuple);
    }
    let again = client.ask("POST /v1/spaces/people", r#"{"id":1,"name":"x"}"#);
    assert_eq!(again.status, 409, "{}", again.text());
    // All of them, by pages.
    let (mut seen, mut after) = (0, String::new());
    loop {
        let page = client.ask(&format!("GET /v1/spaces/people?limit=10{after}"), "");
        let page: serde_json::Value = serde_json::from_str(page.text()).expect("JSON");
        seen += page["tuples"].as_array().expect("tuples").len();
        match page["after"].as_str() {
            Some(position) => after = format!("&after={position}"),
            None => break,
        }
    }
    assert_eq!(seen, 25);
    let changed = client.ask("PATCH /v1/spaces/people/7", r#"{"age":36}"#);
    assert_eq!(changed.text(), r#"{"age":36,"id":7,"name":"n7"}"#);
    let put = client.ask("PUT /v1/spaces/people/30", r#"{"name":"thirty"}"#);
    assert_eq!(put.text(), r#"{"id":30,"name":"thirty"}"#);
    let other = client.ask("PUT /v1/spaces/people/30", r#"{"id":31,"name":"x"}"#);
    assert_eq!(other.status, 400, "{}", other.text());
    assert_eq!(client.ask("DELETE /v1/spaces/people/30", "").status, 204);
    for (head, status) in [
        ("DELETE /v1/spaces/people/30", 404),
        ("GET /v1/spaces/people/30", 404),
        ("GET /v1/spaces/people/x", 404),
        ("GET /v1/spaces/nobody", 404),
        ("GET /v1/spaces/_user", 404),
        ("GET /v1/spaces/people?index=none", 404),
        ("GET /v1/spaces/people?limit=1001", 400),
        ("GET /v1/spaces/people?after=!", 404),
        ("GET /v1/spaces/people?order=up", 400),
    ] {
        assert_eq!(client.ask(head, "").status, status, "{head}");
    }
    let api = client.ask("GET /v1/openapi.json", "");
    let api: serde_json::Value = serde_json::from_str(api.text()).expect("JSON");
    let age = &api["components"]["schemas"]["space.people"]["properties"]["age"];
    assert_eq!(age["anyOf"][0]["type"], "integer", "{age}");
    assert!(api["paths"]["/v1/spaces/people/{pk0}"]["patch"].is_object());
    stop(server);
}

#[test]
fn a_function_is_a_handler() {
    const CODE: &str = "#!lua name=shop\n\
        redis.register_function('buy', function(keys, args)\n\
          redis.call('SET', keys[1], args[1])\n\
          return cjson.encode({value = redis.call('GET', keys[1])})\n\
        end)\n\
        redis.register_function{function_name='look', flags={'no-writes'},\n\
          callback=function(keys) return redis.call('GET', keys[1]) end}\n\
        redis.register_function{function_name='list', flags={'no-writes'},\n\
          callback=function(keys, args) return {1, 'two', args} end}";
    let node = Node::new(&[]);
    let server = node.start();
    let mut redis = server.connect().expect("connects");
    assert_eq!(call(&mut redis, &["FUNCTION", "LOAD", CODE]), bulk("shop"));
    let mut client = node.connect();
    let bought = client.ask("POST /v1/functions/shop/buy", r#"{"keys":["k"],"args":[{"a":1}]}"#);
    assert_eq!(bought.text(), r#"{"value":"{\"a\":1}"}"#);
    assert_eq!(bought.header("content-type"), Some("application/json"));
    let looked = client.ask("GET /v1/functions/shop/look?key=k", "");
    assert_eq!(looked.text(), r#"{"a":1}"#);
    client.run(r#"["SET","k","plain"]"#);
    let looked = client.ask("GET /v1/functions/shop/look?key=k", "");
    assert_eq!(looked.header("content-type"), Some("text/plain; charset=utf-8"));
    let listed = client.ask("GET /v1/functions/shop/list?arg=x&arg=y", "");
    assert_eq!(listed.text(), r#"[1,"two",["x","y"]]"#);
    // GET does not write, and a library has its own functions only.
    assert_eq!(client.ask("GET /v1/functions/shop/buy?key=k&arg=1", "").status, 400);
    assert_eq!(client.ask("GET /v1/functions/other/look?key=k", "").status, 404);
    assert_eq!(client.ask("POST /v1/functions/shop/buy", "[]").status, 400);
    stop(server);
}
