// Data to look at, written through the console's own requests.

exports.api = async function api(base, cookie, commands) {
  const answer = await fetch(`${base}api/command`, { method: "POST", headers: { "Content-Type": "application/json", Cookie: cookie }, body: JSON.stringify({ db: 0, commands }) });
  const { replies } = await answer.json();
  const error = replies.find((reply) => reply?.error);
  if (error) throw new Error(error.error);
  return replies;
};

exports.cookie = async function cookie(base, name, password) {
  const answer = await fetch(`${base}api/login`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name, password }) });
  return answer.headers.get("set-cookie").split(";")[0];
};

exports.fill = async function fill(base) {
  const cookie = await exports.cookie(base, "default", "secret");
  const commands = [["ACL", "SETUSER", "reader", "on", ">only", "~*", "&*", "+@read", "+@connection", "+info", "+slowlog|get", "+subscribe", "+psubscribe"]];
  const cities = ["Athens", "Berlin", "Lisbon", "Oslo", "Riga", "Vienna"];
  for (let at = 1; at <= 1200; at += 1) {
    const city = cities[at % cities.length];
    commands.push(["HSET", `user:${at}`, "name", `User ${at}`, "mail", `user${at}@example.com`, "city", city, "visits", String((at * 37) % 500)]);
    commands.push(["SET", `session:${city.toLowerCase()}:${at}`, `token-${at}`, "EX", String(600 + at)]);
    if (at % 3 === 0) commands.push(["ZADD", "leaderboard:weekly", String((at * 37) % 1000), `player:${at}`]);
    if (at % 4 === 0) commands.push(["RPUSH", "queue:mail", `{"to":"user${at}@example.com","template":"welcome"}`]);
    if (at % 5 === 0) commands.push(["SADD", "tags:blog", `tag-${at}`]);
    if (at % 6 === 0) commands.push(["XADD", "events:orders", "*", "order", String(at), "total", String(at * 7)]);
  }
  for (let at = 1; at <= 250; at += 1) commands.push(["LADON.SPACE", "INSERT", "users", JSON.stringify([at, `User ${at}`, 18 + (at % 60), { city: cities[at % 6] }])]);
  commands.push(["SET", "config:app", JSON.stringify({ theme: "dark", limits: { rate: 100, burst: [1, 2, 3] }, owners: ["ann", "bob"] })]);
  commands.push(["SET", "image:logo", { bytes: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0, 1, 2, 3]).toString("base64") }]);
  commands.push(["SET", "report:large", "lorem ipsum ".repeat(40000)]);
  for (let from = 0; from < commands.length; from += 900) await exports.api(base, cookie, commands.slice(from, from + 900));
};
