// Requests of another client, so that there is something to see.
const net = require("node:net");

const encode = (words) => `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;

exports.Load = class Load {
  constructor(port) {
    this.socket = net.connect(port, "127.0.0.1");
    this.socket.on("error", () => {});
    this.socket.on("data", () => {});
    this.closed = new Promise((resolve) => this.socket.on("close", resolve));
    this.socket.write(encode(["HELLO", "3", "AUTH", "default", "secret", "SETNAME", "shop-frontend"]));
    let at = 0;
    this.timer = setInterval(() => {
      const requests = [];
      const wave = 120 + Math.round(60 * Math.sin(at / 40));
      for (let one = 0; one < wave; one += 1) {
        const user = `user:${((at * 31 + one * 17) % 1300) + 1}`;
        requests.push(encode(["HGETALL", user]), encode(["GET", `cache:${one % 50}`]));
        if (one % 3 === 0) requests.push(encode(["SET", `cache:${one % 60}`, "x".repeat(100), "EX", "30"]));
        if (one % 5 === 0) requests.push(encode(["HINCRBY", user, "visits", "1"]), encode(["ZINCRBY", "leaderboard:weekly", "1", `player:${one}`]));
        if (one % 40 === 0) requests.push(encode(["LRANGE", "queue:mail", "0", "40"]));
      }
      at += 1;
      if (!this.socket.destroyed) this.socket.write(requests.join(""));
    }, 25);
  }

  stop() {
    clearInterval(this.timer);
    this.socket.destroy();
  }
};
