// Work of memjs (binary protocol) and memcached (text) on a server: node work.js PORT
'use strict'
const assert = require('assert')
const util = require('util')
const port = process.argv[2]

async function memjs () {
  const client = require('memjs').Client.create(`127.0.0.1:${port}`, { failover: false, timeout: 5 })
  assert.strictEqual(await client.set('js:a', 'value', { expires: 100 }), true)
  assert.strictEqual((await client.get('js:a')).value.toString(), 'value')
  assert.strictEqual((await client.get('js:none')).value, null)
  assert.strictEqual(await client.add('js:a', 'other', {}), false)
  assert.strictEqual(await client.replace('js:a', 'other', {}), true)
  assert.strictEqual(await client.append('js:a', '!'), true)
  assert.strictEqual((await client.get('js:a')).value.toString(), 'other!')
  assert.strictEqual((await client.increment('js:n', 5, { initial: 7 })).value, 7)
  assert.strictEqual((await client.increment('js:n', 5, { initial: 7 })).value, 12)
  assert.strictEqual((await client.decrement('js:n', 20, {})).value, 0)
  assert.strictEqual(await client.touch('js:a', 50), true)
  assert.strictEqual(await client.delete('js:a'), true)
  assert.strictEqual(await client.delete('js:a'), false)
  const large = Buffer.alloc(900000, 'x')
  assert.strictEqual(await client.set('js:large', large, {}), true)
  assert.ok((await client.get('js:large')).value.equals(large))
  const many = [...Array(1000).keys()]
  await Promise.all(many.map(n => client.set(`js:${n}`, `${n}`, {})))
  const values = await Promise.all(many.map(n => client.get(`js:${n}`)))
  values.forEach((got, n) => assert.strictEqual(got.value.toString(), `${n}`))
  client.close()
}

async function memcached () {
  const client = new (require('memcached'))(`127.0.0.1:${port}`)
  const call = (name, ...args) => util.promisify(client[name].bind(client))(...args)
  assert.strictEqual(await call('set', 'mc:a', { some: ['json'] }, 100), true)
  assert.deepStrictEqual(await call('get', 'mc:a'), { some: ['json'] })
  const versioned = await call('gets', 'mc:a')
  assert.strictEqual(await call('cas', 'mc:a', 'new', versioned.cas, 100), true)
  assert.strictEqual(await call('cas', 'mc:a', 'newer', versioned.cas, 100), false)
  assert.strictEqual(await call('set', 'mc:n', 5, 100), true)
  assert.strictEqual(await call('incr', 'mc:n', 3), 8)
  assert.strictEqual(await call('decr', 'mc:n', 10), 0)
  await call('set', 'mc:b', 'b', 100)
  assert.deepStrictEqual(await call('getMulti', ['mc:a', 'mc:b', 'mc:none']), { 'mc:a': 'new', 'mc:b': 'b' })
  assert.strictEqual(await call('touch', 'mc:b', 10), true)
  assert.strictEqual(await call('del', 'mc:b'), true)
  assert.ok((await call('stats'))[0].curr_items > 0)
  assert.ok((await call('items'))[0])
  client.end()
}

memjs().then(memcached).then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
