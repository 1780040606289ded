// BullMQ adds and runs jobs for twelve seconds while somebody kills the server again and again:
// bullmq_crash.js PORT. Exit status 1 if a job that was acknowledged is lost, or one ran twice.
const { Queue, Worker } = require('bullmq');
const connection = { host: '127.0.0.1', port: +process.argv[2], maxRetriesPerRequest: null, retryStrategy: () => 50 };
const sleep = ms => new Promise(r => setTimeout(r, ms));
(async () => {
  const name = 'crash';
  const quiet = what => what.on('error', () => {});
  const queue = new Queue(name, { connection: { ...connection, maxRetriesPerRequest: 0 } }); quiet(queue);
  const acknowledged = new Set(), completed = new Map();
  let unknown = 0;
  const worker = new Worker(name, async job => { await sleep(2); return job.data.n; },
    { connection, concurrency: 10, lockDuration: 2000, stalledInterval: 1000, maxStalledCount: 10 }); quiet(worker);
  worker.on('completed', job => completed.set(job.id, (completed.get(job.id) || 0) + 1));
  const end = Date.now() + 12000;
  for (let n = 0; Date.now() < end; n++) {
    try { await queue.add('x', { n }, { jobId: 'job' + n }); acknowledged.add('job' + n); }
    catch { unknown++; await sleep(100); }
    if (n % 10 === 0) await sleep(5);
  }
  const until = Date.now() + 30000;
  let open;
  do {
    await sleep(500);
    try { open = await queue.getJobCounts(); } catch { continue; }
  } while ((!open || open.waiting + open.active + open.delayed > 0) && Date.now() < until);
  const states = await Promise.all([...acknowledged].map(id => queue.getJobState(id)));
  const lost = states.filter(state => state !== 'completed').length;
  const twice = [...completed.values()].filter(count => count > 1).length;
  console.log(JSON.stringify({ acknowledged: acknowledged.size, unknown, lost, twice, open }));
  if (lost || acknowledged.size < 500) console.log([...new Set(states)]);
  process.exit(lost || twice || acknowledged.size < 500 ? 1 : 0);
})();
