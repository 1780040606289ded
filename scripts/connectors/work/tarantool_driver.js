// Real work of tarantool-driver, the connector for Node.
//
// The driver forgets requests that are sent while it has half a reply. So it sends many at once only
// where no reply comes in between, and each writer of the crash has a connection of its own.
const { spawn } = require('child_process');
const assert = require('assert');
const TarantoolConnection = require('tarantool-driver');

const port = Number(process.env.IPROTO_PORT);
const SPACE = 700, ANY = 701, COUNTED = 702, LOG = 703;
const ADMIN = { port, host: '127.0.0.1', username: 'admin', password: 'secret', retryStrategy: () => 50 };
const UNIQUE = { unique: true }, TWICE = { unique: false };
const FORMAT = [{ name: 'id', type: 'unsigned' }, { name: 'name', type: 'string' },
	{ name: 'age', type: 'unsigned', is_nullable: true }];
const AGE = { field: 2, type: 'unsigned', is_nullable: true };
const DEFINITIONS = [
	['_space', [SPACE, 1, 'people', 'memtx', 0, {}, FORMAT]],
	['_index', [SPACE, 0, 'pk', 'tree', UNIQUE, [[0, 'unsigned']]]],
	['_index', [SPACE, 1, 'name', 'tree', UNIQUE, [[1, 'string']]]],
	['_index', [SPACE, 2, 'age', 'tree', TWICE, [AGE]]],
	['_index', [SPACE, 3, 'age_name', 'tree', UNIQUE, [AGE, { field: 1, type: 'string' }]]],
	['_index', [SPACE, 4, 'any_case', 'tree', TWICE, [{ field: 1, type: 'string', collation: 2 }]]],
	['_space', [ANY, 1, 'values', 'memtx', 0, {}, []]],
	['_index', [ANY, 0, 'pk', 'hash', UNIQUE, [[0, 'unsigned']]]],
	['_space', [COUNTED, 1, 'counted', 'memtx', 0, {}, []]],
	['_index', [COUNTED, 0, 'pk', 'tree', UNIQUE, [[0, 'unsigned']]]],
	['_sequence', [60, 1, 'counted_seq', 1, 1, 1000, 1, 0, false]],
	['_space_sequence', [COUNTED, 60, false, 0, '']],
	['_space', [LOG, 1, 'log', 'memtx', 0, {}, []]],
	['_index', [LOG, 0, 'pk', 'tree', UNIQUE, [[0, 'unsigned']]]],
	['_user', [40, 1, 'ann', 'user', { 'chap-sha1': 'lL3OvhkIPOKh+Vn9Avlkx69M/Ck=' }, [], 0]],
	['_priv', [1, 40, 'universe', 0, 8 | 16]],
	['_priv', [1, 40, 'role', 2, 4]],
	['_priv', [1, 40, 'space', SPACE, 1]],
];

let checks = 0;
const check = (what, got, expected) => {
	checks += 1;
	assert.deepStrictEqual(got, expected, `${what}: got ${JSON.stringify(got).slice(0, 300)}`);
};
const fails = async (what, work, words) => {
	checks += 1;
	await assert.rejects(work, error => {
		assert.match(error.message, words, what);
		return true;
	});
};
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
const firsts = rows => rows.map(row => row[0]);
let conn;
const ids = async (index, limit, offset, iterator, key) =>
	firsts(await conn.select('people', index, limit, offset, iterator, key));

async function logins() {
	const stranger = new TarantoolConnection({ ...ADMIN, password: 'wrong', lazyConnect: true });
	const refused = new Promise(resolve => stranger.on('error', error => resolve(error.message)));
	stranger.connect().catch(() => {});
	check('wrong password', await refused, 'User not found or supplied credentials are invalid');
	stranger.disconnect();
	const ann = new TarantoolConnection({ ...ADMIN, username: 'ann', password: 'test' });
	check('ann reads', await ann.select(SPACE, 0, 1, 0, 'eq', [1]), [[1, 'name1', 1]]);
	await fails('ann does not write', ann.insert(SPACE, [1, 'x', 1]), /Write access to space 'people' is denied for user 'ann'/);
	await fails('nor reads all', ann.select(ANY, 0, 1, 0, 'eq', [1]), /Read access to space 'values' is denied/);
	ann.disconnect();
}

async function reads() {
	await conn.insert('people', [1, 'name1', 1]); // now the driver knows the space's id
	const all = [];
	for (let number = 2; number <= 1000; number += 1) {
		all.push(conn.insert('people', [number, 'name' + number, number === 500 ? null : number % 10]));
	}
	await Promise.all(all);
	check('eq', await ids('pk', 3, 0, 'eq', [5]), [5]);
	check('req', await ids('age', 3, 0, 'req', [5]), [995, 985, 975]);
	check('ge', await ids('pk', 3, 0, 'ge', [5]), [5, 6, 7]);
	check('gt', await ids('pk', 3, 1, 'gt', [5]), [7, 8, 9]);
	check('le', await ids('pk', 3, 0, 'le', [5]), [5, 4, 3]);
	check('lt', await ids('pk', 3, 0, 'lt', [5]), [4, 3, 2]);
	check('all', await ids('pk', 2, 998, 'all', []), [999, 1000]);
	check('second index', await ids('name', 1, 0, 'eq', ['name77']), [77]);
	check('nil', await ids('age', 5, 0, 'eq', [null]), [500]);
	check('a part of the key', await ids('age_name', 2, 0, 'eq', [3]), [103, 113]);
	check('the whole key', await ids('age_name', 2, 0, 'eq', [3, 'name13']), [13]);
	check('collation', await ids('any_case', 2, 0, 'eq', ['NAME13']), [13]);
	check('a callback', await new Promise((resolve, reject) =>
		conn.selectCb('people', 'pk', 1, 0, 'eq', [7], resolve, reject)), [[7, 'name7', 7]]);
}

async function changes() {
	await fails('duplicate', conn.insert('people', [1, 'other', 1]), /Duplicate key exists in unique index .?pk/);
	await fails('duplicate of a second index', conn.insert('people', [9999, 'name1', 1]), /unique index .?name/);
	await fails('wrong type', conn.insert('people', ['x', 'other', 1]), /expected unsigned/);
	await fails('no such space', conn.select(999, 0, 1, 0, 'eq', [1]), /Space '999' does not exist/);
	await fails('no such index', conn.select(SPACE, 9, 1, 0, 'eq', [1]), /No index #9 is defined in space 'people'/);
	await fails('an update of a wrong type', conn.update('people', 'pk', [1], [['+', 1, 1]]), /Argument type in operation '\+'/);
	await fails('of the primary key', conn.update('people', 'pk', [1], [['=', 0, 7777]]), /part of primary index/);
	await fails('eval', conn.eval('return 1'), /does not support EVAL/);
	check('nothing of it happened', await ids('pk', 1, 0, 'eq', [1]), [1]);
	check('replace', await conn.replace('people', [1, 'one', 10]), [[1, 'one', 10]]);
	check('update', await conn.update('people', 'pk', [1], [['+', 2, 5], ['=', 1, 'uno']]), [[1, 'uno', 15]]);
	check('and, or, xor', [
		await conn.update('people', 'pk', [1], [['&', 2, 6]]),
		await conn.update('people', 'pk', [1], [['|', 2, 1]]),
		await conn.update('people', 'pk', [1], [['^', 2, 2]]),
	].map(rows => rows[0][2]), [6, 7, 5]);
	check('splice', await conn.update('people', 'pk', [1], [[':', 1, 0, 1, 'U']]), [[1, 'Uno', 5]]);
	check('insert and delete a field', await conn.update('people', 'pk', [1], [['!', 3, 'x'], ['#', 3, 1]]), [[1, 'Uno', 5]]);
	check('update by another index', await conn.update('people', 'name', ['Uno'], [['-', 2, 4]]), [[1, 'Uno', 1]]);
	await conn.upsert('people', [['+', 2, 1]], [2000, 'new', 1]);
	await conn.upsert('people', [['+', 2, 1]], [2000, 'new', 1]);
	check('upsert', await conn.delete('people', 'pk', [2000]), [[2000, 'new', 2]]);
	// The driver calls by CALL_16.
	check('call select', await conn.call('box.space.people:select', [2]), [[2, 'name2', 2]]);
	check('call get', await conn.call('box.space.people:get', [2]), [[2, 'name2', 2]]);
	check('call count', await conn.call('box.space.people.index.pk:count'), [[1000]]);
	const piped = await conn.pipeline().insert('people', [3000, 'piped', 1]).update('people', 'pk', [3000], [['+', 2, 1]])
		.insert('people', [3000, 'twice', 1]).delete('people', 'pk', [3000]).exec();
	check('pipeline', piped.map(([error, rows]) => error ? error.message.slice(0, 13) : rows),
		[[[3000, 'piped', 1]], [[3000, 'piped', 2]], 'Duplicate key', [[3000, 'piped', 2]]]);
	check('sequence', [await conn.insert('counted', [null, 'a']), await conn.insert('counted', [null, 'b'])],
		[[[1, 'a']], [[2, 'b']]]);
	check('ping', await conn.ping(), true);
}

const UUID = '64d22e4d-ac92-4a23-899a-e59f34af5479';
const VALUES = [1, UUID, -12.34, new Date(Date.UTC(2024, 1, 29, 1, 2, 3)), 5000000000, 1.5, null, true,
	{ a: [1, { b: 2 }] }, '\u00e4\u4e2d'.repeat(50000)];

async function values() {
	const { packUuid, packDecimal, packInteger } = conn;
	const row = [...VALUES];
	row.splice(1, 2, packUuid(UUID), packDecimal(-12.34));
	row.splice(4, 1, packInteger(5000000000));
	// Its insert and replace know no extension types.
	await conn.call('box.space.values:insert', row);
	check('extension types', await conn.select(ANY, 0, 1, 0, 'eq', [1]), [VALUES]);
}

// The driver forgets names when a reply has another version of the schema.
async function schemaChanges() {
	const other = new TarantoolConnection(ADMIN);
	await other.insert('_index', [SPACE, 5, 'nick', 'tree', TWICE, [{ field: 3, type: 'string', is_nullable: true }]]);
	await conn.update('people', 'pk', [2], [['!', 3, 'two']]);
	check('the new index', await ids('nick', 1, 0, 'eq', ['two']), [2]);
	await other.update('_space', 0, [SPACE], [['=', 2, 'persons']]);
	await conn.ping();
	check('the new name', firsts(await conn.select('persons', 'nick', 1, 0, 'eq', ['two'])), [2]);
	await fails('the old name', conn.select('people', 'nick', 1, 0, 'eq', ['two']), /space is not defined/);
	await other.update('_space', 0, [SPACE], [['=', 2, 'people']]);
	await other.delete('_index', 0, [SPACE, 5]);
	await conn.ping();
	await fails('the index is gone', conn.select('people', 'nick', 1, 0, 'eq', ['two']), /index is not defined/);
	await conn.update('people', 'pk', [2], [['#', 3, 1]]);
	other.disconnect();
}

// Kills the server while it takes writes: returns what it acknowledged.
async function crashUnderLoad() {
	const acknowledged = new Map();
	const writers = [...Array(6).keys()].map(async writer => {
		const own = new TarantoolConnection({ ...ADMIN, retryStrategy: () => null });
		own.on('error', () => {});
		try {
			for (let number = writer * 1000000; ; number += 1) {
				await own.insert(LOG, [number, 'text ' + number, 0]);
				acknowledged.set(number, 0);
				await own.update(LOG, 0, [number], [['+', 2, 1]]);
				acknowledged.set(number, 1);
			}
		} catch (error) {
			assert.match(error.message, /[Cc]onnection|ECONN|EPIPE/);
		}
	});
	await sleep(500);
	const status = await new Promise(resolve => spawn(process.env.SERVER, ['crash'], { stdio: 'ignore' }).on('exit', resolve));
	check('the server starts again', status, 0);
	await Promise.all(writers);
	return acknowledged;
}

async function main() {
	conn = new TarantoolConnection(ADMIN);
	conn.on('error', () => {});
	for (const [space, row] of DEFINITIONS) {
		await conn.insert(space, row);
	}
	await reads();
	await logins();
	await changes();
	await values();
	await schemaChanges();
	const acknowledged = await crashUnderLoad();
	let found = null;
	for (let attempt = 0; attempt < 100 && !found; attempt += 1) {
		found = await conn.select('people', 'pk', 1, 0, 'eq', [1]).catch(() => null);
		await sleep(50);
	}
	check('reconnects, and the data is there', found, [[1, 'Uno', 1]]);
	check('all of it', (await conn.select('people', 'pk', 5000, 0, 'all', [])).length, 1000);
	check('extension types after the crash', await conn.select(ANY, 0, 1, 0, 'eq', [1]), [VALUES]);
	check('the sequence goes on', await conn.insert('counted', [null, 'c']), [[3, 'c']]);
	const rows = new Map((await conn.select(LOG, 0, 10000000, 0, 'all', [])).map(row => [row[0], row]));
	check('some writes were acknowledged', acknowledged.size > 20, true);
	const lost = [...acknowledged].filter(([number, times]) => {
		const row = rows.get(number);
		return !row || row[2] < times || row[1] !== 'text ' + number;
	});
	check(`lost, of ${acknowledged.size} acknowledged rows`, lost.slice(0, 3), []);
	check('no more than one unanswered write of each', rows.size <= acknowledged.size + 6, true);
	console.log(`  ${checks} checks passed`);
	process.exit(0);
}

process.on('exit', code => code === 0 || console.log(`  after ${checks} checks`));
main().catch(error => {
	console.log(error);
	process.exit(1);
});
