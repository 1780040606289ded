//! Random streams of clients and servers, of words that they know.

use crate::check::check;
use ladon_testkit::Random;

const LINES: [&[u8]; 16] = [
    b"GET /get/a",
    b"POST /",
    b"POST /pipeline",
    b"POST /multi-exec",
    b"PUT /v1/keys/k",
    b"PUT /v1/keys/k?type=zset",
    b"GET /v1/keys/k",
    b"PATCH /v1/keys/k",
    b"DELETE /v1/keys/k",
    b"GET /v1/keys?count=3",
    b"GET /v1/spaces/s/1",
    b"PUT /v1/spaces/s/1",
    b"POST /v1/functions/l/f?key=a",
    b"GET /v1/openapi.json",
    b"POST /subscribe/a",
    b"OPTIONS /x",
];

const HEADERS: [&[u8]; 12] = [
    b"Authorization: Bearer a:b\r\n",
    b"Authorization: Basic !\r\n",
    b"Connection: close\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 7\r\n",
    b"Expect: 100-continue\r\n",
    b"Origin: https://a.b\r\n",
    b"Upstash-Encoding: base64\r\n",
    b"Accept: application/json\r\n",
    b"If-Match: \"0123456789abcdef\"\r\n",
    b"Ladon-TTL: 1.5\r\n",
    b"X: y\r\n z\r\n",
];

const BODIES: [&[u8]; 12] = [
    b"[\"GET\",\"k\"]",
    b"[[\"GET\",\"k\"],[\"INCR\",1.5e3]]",
    b"[\"SELECT\",1]",
    b"[\"\\ud83d\\ude00\\n\",true]",
    b"{\"a\":\"b\"}",
    b"{\"incr\":1,\"ttl\":null}",
    b"[[\"m\",1.5]]",
    b"{\"keys\":[\"k\"],\"args\":[{}]}",
    b"[]",
    b"[[",
    b"4\r\n[\"GE\r\n5\r\nT\",\"k\r\n2\r\n\"]\r\n0\r\n\r\n",
    b"1234567",
];

const REPLIES: [&[u8]; 18] = [
    b"+OK\r\n",
    b"+QUEUED\r\n",
    b"-ERR x \"y\r\n",
    b"-NOAUTH x\r\n",
    b"-WRONGPASS x\r\n",
    b":12\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"$0\r\n\r\n",
    b"$3\r\na\xc3\n\r\n",
    b"$2\r\n[]\r\n",
    b"*0\r\n",
    b"*1\r\n",
    b"*2\r\n",
    b"*3\r\n",
    b"*3\r\n+zset\r\n:5\r\n*2\r\n$1\r\nm\r\n$3\r\n1.5\r\n",
    b"*3\r\n+string\r\n:-1\r\n$2\r\nhi\r\n",
    b"?",
];

fn request(random: &mut Random, stream: &mut Vec<u8>) {
    stream.extend_from_slice(random.pick(&LINES));
    stream.extend_from_slice(random.pick(&[&b" HTTP/1.1\r\n"[..], b" HTTP/1.0\r\n"]));
    stream.extend_from_slice(b"Host: x\r\n");
    let body = random.pick(&BODIES);
    for _ in 0..random.below(3) {
        stream.extend_from_slice(random.pick(&HEADERS));
    }
    if random.chance(2, 3) {
        stream.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    stream.extend_from_slice(b"\r\n");
    if random.chance(5, 6) {
        stream.extend_from_slice(body);
    }
}

#[test]
fn random_streams_are_survived() {
    let mut random = Random::new(34);
    for _ in 0..20_000 {
        let mut stream = Vec::new();
        for _ in 0..1 + random.below(4) {
            request(&mut random, &mut stream);
        }
        if random.chance(1, 5) {
            let at = random.below(stream.len() as u64) as usize;
            stream[at] = random.below(255) as u8;
        }
        stream.push(0xff);
        for _ in 0..random.below(12) {
            stream.extend_from_slice(random.pick(&REPLIES));
        }
        check(&stream);
    }
}
