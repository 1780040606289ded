// What smaller libraries do with Redis: locks by Redlock, rate limits, Socket.IO's adapter, node-redis
// with consumer groups, functions and client-side pushes: node_clients.js PORT. Exit status 1 if a
// check failed.
const port = +process.argv[2];
const Redis = require('ioredis');
const { createClient } = require('redis');
const Redlock = require('redlock');
const { RateLimiterRedis } = require('rate-limiter-flexible');
const { Server } = require('socket.io');
const { io } = require('socket.io-client');
const { createAdapter } = require('@socket.io/redis-adapter');
const http = require('http');
const sleep = ms => new Promise(done => setTimeout(done, ms));
const check = (isRight, what) => {
  console.log((isRight ? 'ok   ' : 'FAIL ') + what);
  if (!isRight) process.exitCode = 1;
};

async function locks() {
  const redlock = new Redlock([new Redis(port)], { retryCount: 100, retryDelay: 10 });
  redlock.on('clientError', () => {});
  let inside = 0, most = 0, entered = 0;
  await Promise.all(Array.from({ length: 20 }, async () => {
    const lock = await redlock.lock('lock', 5000);
    most = Math.max(most, ++inside); entered++;
    await sleep(5);
    inside--;
    await lock.unlock();
  }));
  check(most === 1 && entered === 20, 'Redlock: one at a time');
  let lock = await redlock.lock('lock', 100);
  lock = await lock.extend(2000);
  await sleep(200);
  let refused = false;
  try { await new Redlock([new Redis(port)], { retryCount: 0 }).lock('lock', 100); } catch { refused = true; }
  check(refused, 'Redlock: an extended lock lasts');
  await lock.unlock();
}

async function limits() {
  const limiter = new RateLimiterRedis({ storeClient: new Redis(port), points: 10, duration: 1 });
  const outcomes = await Promise.allSettled(Array.from({ length: 25 }, () => limiter.consume('user')));
  check(outcomes.filter(one => one.status === 'fulfilled').length === 10, 'rate limiter: ten of 25');
  await sleep(1100);
  check((await limiter.consume('user')).remainingPoints === 9, 'rate limiter: a new second');
}

async function rooms() {
  const servers = await Promise.all([0, 1].map(async () => {
    const pub = new Redis(port), sub = pub.duplicate(), server = http.createServer();
    const socket = new Server(server, { adapter: createAdapter(pub, sub) });
    socket.on('connection', one => one.join('room'));
    await new Promise(done => server.listen(0, done));
    return { socket, port: server.address().port };
  }));
  const clients = servers.map(server => io(`http://127.0.0.1:${server.port}`));
  await Promise.all(clients.map(client => new Promise(done => client.on('connect', done))));
  await sleep(200);
  const heard = clients.map(client => new Promise(done => client.on('news', done)));
  servers[0].socket.to('room').emit('news', 'hello');
  const all = await Promise.race([Promise.all(heard), sleep(3000)]);
  check(String(all) === 'hello,hello', 'Socket.IO: a message reaches the clients of both servers');
  check((await servers[1].socket.in('room').fetchSockets()).length === 2, 'Socket.IO: who is in a room');
  clients.forEach(client => client.close());
}

async function nodeRedis() {
  for (const RESP of [2, 3]) {
    const client = await createClient({ RESP, socket: { port } }).connect();
    await client.flushAll();
    await client.xGroupCreate('stream', 'group', '0', { MKSTREAM: true });
    for (let n = 0; n < 10; n++) await client.xAdd('stream', '*', { n: String(n) });
    const read = await client.xReadGroup('group', 'me', { key: 'stream', id: '>' }, { COUNT: 4 });
    const messages = Array.isArray(read) ? read[0].messages : Object.values(read)[0];
    check(messages.length === 4, `node-redis, RESP${RESP}: a consumer group`);
    check((await client.xPending('stream', 'group')).pending === 4, `node-redis, RESP${RESP}: pending`);
    const code = "#!lua name=lib\nredis.register_function('add', function(k, a) return redis.call('incrby', k[1], a[1]) end)";
    await client.functionLoad(code, { REPLACE: true });
    check((await client.fCall('add', { keys: ['n'], arguments: ['5'] })) === 5, `node-redis, RESP${RESP}: a function`);
    const other = await client.duplicate().connect();
    const heard = new Promise(done => other.pSubscribe('news.*', (text, channel) => done(channel + text)));
    await sleep(100);
    await client.publish('news.today', '!');
    check((await heard) === 'news.today!', `node-redis, RESP${RESP}: a pattern`);
    const [, n] = await client.multi().set('k', 'v').incr('n').exec();
    check(n === 6, `node-redis, RESP${RESP}: a transaction`);
    other.destroy(); client.destroy();
  }
}

(async () => {
  for (const part of [locks, limits, rooms, nodeRedis]) await part();
  process.exit();
})().catch(error => { console.log('FAIL ' + error.stack); process.exit(1); });
