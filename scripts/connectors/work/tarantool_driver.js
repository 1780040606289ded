// Real work of tarantool-driver, the connector for Node.
const { execFileSync } = require('child_process');
const assert = require('assert');
const TarantoolConnection = require('tarantool-driver');

const port = Number(process.env.IPROTO_PORT);
const SPACE = 700, ANY = 701;
let checks = 0;
const check = (what, got, expected) => {
	checks += 1;
	assert.deepStrictEqual(got, expected, what);
};
const fails = async (what, work, words) => {
	checks += 1;
	await assert.rejects(work, error => {
		assert.match(error.message, words, what);
		return true;
	});
};

async function main() {
	const options = { port, host: '127.0.0.1', username: 'admin', password: 'secret', retryStrategy: () => 50 };
	const conn = new TarantoolConnection(options);
	const format = [{ name: 'id', type: 'unsigned' }, { name: 'name', type: 'string' },
		{ name: 'age', type: 'unsigned', is_nullable: true }];
	await conn.insert('_space', [SPACE, 1, 'people', 'memtx', 0, {}, format]);
	await conn.insert('_index', [SPACE, 0, 'pk', 'tree', { unique: true }, [[0, 'unsigned']]]);
	await conn.insert('_index', [SPACE, 1, 'name', 'tree', { unique: true }, [[1, 'string']]]);
	await conn.insert('_index', [SPACE, 2, 'age', 'tree', { unique: false },
		[{ field: 2, type: 'unsigned', is_nullable: true }]]);
	await conn.insert('_space', [ANY, 1, 'values', 'memtx', 0, {}, []]);
	await conn.insert('_index', [ANY, 0, 'pk', 'hash', { unique: true }, [[0, 'unsigned']]]);
	const stranger = new TarantoolConnection({ ...options, password: 'wrong', lazyConnect: true });
	const refused = new Promise(resolve => stranger.on('error', error => resolve(error.message)));
	await fails('wrong password', stranger.connect(), /./);
	check('refused', await refused, 'User not found or supplied credentials are invalid');
	stranger.disconnect();

	const all = [];
	for (let number = 1; number <= 1000; number += 1) {
		all.push(conn.insert('people', [number, 'name' + number, number % 10]));
	}
	await Promise.all(all);
	const ids = async (index, limit, offset, iterator, key) =>
		(await conn.select('people', index, limit, offset, iterator, key)).map(row => row[0]);
	check('eq', await ids('pk', 3, 0, 'eq', [5]), [5]);
	check('req', await ids('age', 3, 0, 'req', [5]), [995, 985, 975]);
	check('ge', await ids('pk', 3, 0, 'ge', [5]), [5, 6, 7]);
	check('gt', await ids('pk', 3, 1, 'gt', [5]), [7, 8, 9]);
	check('le', await ids('pk', 3, 0, 'le', [5]), [5, 4, 3]);
	check('lt', await ids('pk', 3, 0, 'lt', [5]), [4, 3, 2]);
	check('all', await ids('pk', 2, 998, 'all', []), [999, 1000]);
	check('second index', await ids('name', 1, 0, 'eq', ['name77']), [77]);
	await fails('duplicate', conn.insert('people', [1, 'other', 1]), /Duplicate key exists in unique index .?pk/);
	await fails('duplicate of a second index', conn.insert('people', [9999, 'name1', 1]), /unique index .?name/);
	await fails('wrong type', conn.insert('people', ['x', 'other', 1]), /expected unsigned/);
	await fails('no such space', conn.select(999, 0, 1, 0, 'eq', [1]), /does not exist/);
	check('replace', await conn.replace('people', [1, 'one', 10]), [[1, 'one', 10]]);
	check('update', await conn.update('people', 'pk', [1], [['+', 2, 5], ['=', 1, 'uno']]), [[1, 'uno', 15]]);
	check('splice', await conn.update('people', 'pk', [1], [[':', 1, 0, 1, 'U']]), [[1, 'Uno', 15]]);
	check('update by another index', await conn.update('people', 'name', ['Uno'], [['-', 2, 5]]), [[1, 'Uno', 10]]);
	await conn.upsert('people', [['+', 2, 1]], [2000, 'new', 1]);
	await conn.upsert('people', [['+', 2, 1]], [2000, 'new', 1]);
	check('upsert', await conn.delete('people', 'pk', [2000]), [[2000, 'new', 2]]);
	check('call select', await conn.call('box.space.people:select', [2]), [[[2, 'name2', 2]]]);
	check('call get', await conn.call('box.space.people:get', [2]), [[2, 'name2', 2]]);
	await fails('eval', conn.eval('return 1'), /does not support EVAL/);
	check('ping', await conn.ping(), true);

	const { packUuid, packDecimal, packInteger } = conn;
	const uuid = '64d22e4d-ac92-4a23-899a-e59f34af5479';
	const when = new Date(Date.UTC(2024, 1, 29, 1, 2, 3));
	const row = [1, packUuid(uuid), packDecimal(-12.34), when, packInteger(5000000000), 1.5, null, true, { a: [1, { b: 2 }] }];
	await conn.insert(ANY, row);
	const values = [1, uuid, -12.34, when, 5000000000, 1.5, null, true, { a: [1, { b: 2 }] }];
	check('extension types', await conn.select(ANY, 0, 1, 0, 'eq', [1]), [values]);

	execFileSync(process.env.SERVER, ['crash']);
	let found = null;
	for (let attempt = 0; attempt < 100 && !found; attempt += 1) {
		found = await conn.select('people', 'pk', 1, 0, 'eq', [1]).catch(() => null);
		await new Promise(resolve => setTimeout(resolve, 50));
	}
	check('reconnects, and the data is there', found, [[1, 'Uno', 10]]);
	check('all of it', (await conn.select('people', 'pk', 5000, 0, 'all', [])).length, 1000);
	check('extension types after the crash', await conn.select(ANY, 0, 1, 0, 'eq', [1]), [values]);
	console.log(`  ${checks} checks passed`);
	process.exit(0);
}

main().catch(error => {
	console.log(error);
	process.exit(1);
});
