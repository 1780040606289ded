// ioredis and node-redis over TLS, with a client's certificate.
//
//   node node.js FOLDER PORT
const assert = require('assert');
const fs = require('fs');
const Redis = require('ioredis');
const { createClient } = require('redis');

const [folder, port] = [process.argv[2], Number(process.argv[3])];
const tls = {
  ca: fs.readFileSync(`${folder}/ca.crt`),
  cert: fs.readFileSync(`${folder}/client.crt`),
  key: fs.readFileSync(`${folder}/client.key`),
  servername: 'localhost',
};

async function ioredis() {
  const client = new Redis({ host: '127.0.0.1', port, tls });
  const listener = client.duplicate();
  const heard = new Promise((resolve) => listener.on('message', (_, text) => resolve(text)));
  await listener.subscribe('news');
  const long = 'x'.repeat(1 << 20);
  await client.set('node', long);
  assert.strictEqual(await client.get('node'), long);
  const replies = await Promise.all(Array.from({ length: 1000 }, () => client.incr('node:count')));
  assert.strictEqual(replies[999], 1000);
  await client.publish('news', 'it works');
  assert.strictEqual(await heard, 'it works');
  client.disconnect();
  listener.disconnect();
  console.log('ioredis: ok');
}

async function refused() {
  const { cert, key, ...without } = tls;
  const client = new Redis({ host: '127.0.0.1', port, tls: without, retryStrategy: null, lazyConnect: true });
  client.on('error', () => {});
  await assert.rejects(async () => { await client.connect(); await client.ping(); });
  client.disconnect();
  console.log('ioredis without a certificate: refused');
}

async function nodeRedis() {
  const client = createClient({ socket: { host: '127.0.0.1', port, tls: true, ...tls } });
  await client.connect();
  await client.hSet('node:hash', { field: 'value' });
  assert.strictEqual(await client.hGet('node:hash', 'field'), 'value');
  await client.close();
  console.log('node-redis: ok');
}

ioredis().then(refused).then(nodeRedis).catch((error) => {
  console.error(error);
  process.exit(1);
});
