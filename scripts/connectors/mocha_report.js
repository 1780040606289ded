// A reporter of mocha: adds each result to the file REPORT, as a line of JSON.
const fs = require('fs');

module.exports = function (runner) {
	const write = (kind, test, error) => fs.appendFileSync(process.env.REPORT, JSON.stringify([kind, {
		fullTitle: test.fullTitle(),
		err: error ? String(error.message) : '',
	}]) + '\n');
	runner.on('pass', test => write('pass', test));
	runner.on('fail', (test, error) => write('fail', test, error));
};
