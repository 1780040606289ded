// What BullMQ's queues do: bullmq.js PORT. Exit status 1 if a check failed.
const { Queue, Worker, QueueEvents, FlowProducer } = require('bullmq');
const connection = { host: '127.0.0.1', port: +process.argv[2], maxRetriesPerRequest: null };
const check = (ok, what) => { console.log((ok ? 'ok   ' : 'FAIL ') + what); if (!ok) process.exitCode = 1; };
const sleep = ms => new Promise(r => setTimeout(r, ms));
(async () => {
  const name = 'q' + Date.now();
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  await events.waitUntilReady();
  const completed = [], failed = [], progressed = [];
  events.on('completed', e => completed.push(e.jobId));
  events.on('failed', e => failed.push(e));
  events.on('progress', e => progressed.push(e));
  const seen = new Map();
  const worker = new Worker(name, async job => {
    seen.set(job.id, (seen.get(job.id) || 0) + 1);
    if (job.name === 'fails') throw new Error('on purpose');
    if (job.name === 'progress') { await job.updateProgress(50); }
    if (job.name === 'once' && job.attemptsMade < 2) throw new Error('again');
    return { square: (job.data.n || 0) ** 2 };
  }, { connection, concurrency: 20 });
  // 1. Many jobs, in bulk.
  const N = 2000, began = Date.now();
  for (let i = 0; i < N; i += 100)
    await queue.addBulk(Array.from({ length: 100 }, (_, k) => ({ name: 'plain', data: { n: i + k } })));
  while (completed.length < N && Date.now() - began < 60000) await sleep(20);
  console.log(`     ${N} jobs in ${Date.now() - began} ms`);
  check(completed.length === N && [...seen.values()].every(c => c === 1), 'each job ran once');
  // 2. Results, progress, failures, retries with backoff.
  const p = await queue.add('progress', { n: 7 });
  check((await p.waitUntilFinished(events)).square === 49, 'result comes back');
  await sleep(100); check(progressed.some(e => e.jobId === p.id && e.data === 50), 'progress is an event');
  const f = await queue.add('fails', {});
  let message; try { await f.waitUntilFinished(events); } catch (e) { message = e.message; }
  check(message === 'on purpose', 'failure comes back');
  const o = await queue.add('once', { n: 3 }, { attempts: 5, backoff: { type: 'exponential', delay: 30 } });
  check((await o.waitUntilFinished(events)).square === 9 && seen.get(o.id) === 3, 'retries');
  // 3. Delayed, prioritized, LIFO, deduplicated.
  const t = Date.now(); const d = await queue.add('plain', { n: 2 }, { delay: 300 });
  await d.waitUntilFinished(events); const late = Date.now() - t;
  check(late >= 290 && late < 2000, `delayed job (${late} ms)`);
  await worker.pause();
  const order = [];
  for (const [n, opts] of [[1, { priority: 3 }], [2, { priority: 1 }], [3, { priority: 2 }]])
    await queue.add('plain', { n }, opts);
  const waiting = await queue.getPrioritized(); check(waiting.map(j => j.data.n).join() === '2,3,1', 'priorities');
  const same = await Promise.all([1, 2, 3].map(() => queue.add('plain', {}, { jobId: 'unique' })));
  check(same.every(j => j.id === 'unique') && (await queue.getJobCounts('waiting')).waiting === 1, 'same id once');
  worker.resume(); await sleep(300);
  const counts = await queue.getJobCounts();
  check(counts.waiting === 0 && counts.prioritized === 0 && counts.active === 0, 'queue is empty ' + JSON.stringify(counts));
  // 4. Schedulers.
  await queue.upsertJobScheduler('tick', { every: 100 }, { name: 'plain', data: { n: 5 } });
  const before = completed.length; await sleep(1000);
  check(completed.length - before >= 5, `scheduler ticks (${completed.length - before})`);
  await queue.removeJobScheduler('tick');
  // 5. Flows: children before the parent.
  const flow = new FlowProducer({ connection });
  const tree = await flow.add({ name: 'plain', queueName: name, data: { n: 10 }, children: [
    { name: 'plain', queueName: name, data: { n: 1 } }, { name: 'plain', queueName: name, data: { n: 2 } }] });
  await tree.job.waitUntilFinished(events);
  const values = Object.values(await tree.job.getChildrenValues());
  check(values.map(v => v.square).sort().join() === '1,4', 'flow');
  // 6. Rate limit.
  const limited = 'l' + name, lq = new Queue(limited, { connection });
  let ran = 0; const lw = new Worker(limited, async () => { ran++; }, { connection, limiter: { max: 5, duration: 500 } });
  await lq.addBulk(Array.from({ length: 20 }, () => ({ name: 'x', data: {} })));
  await sleep(700); check(ran >= 5 && ran <= 10, `rate limit (${ran})`);
  // 7. Stalled job of a dead worker is taken over.
  const stalled = 's' + name, sq = new Queue(stalled, { connection });
  let runs = 0, release;
  const dead = new Worker(stalled, () => new Promise(r => { runs++; release = r; }), { connection, lockDuration: 500, skipLockRenewal: true, skipStalledCheck: true });
  dead.on('error', () => {}); // That its lock is gone is what is wanted.
  await sq.add('x', {}); while (!runs) await sleep(10);
  const heir = new Worker(stalled, async () => { runs++; return 'done'; }, { connection, stalledInterval: 300, lockDuration: 500 });
  const until = Date.now() + 8000; while (runs < 2 && Date.now() < until) await sleep(50);
  check(runs === 2, 'stalled job is run by another worker'); release();
  // 8. Clean, drain, obliterate.
  const cleaned = await queue.clean(0, 10000, 'completed'); check(cleaned.length >= 1000, `clean (${cleaned.length})`);
  await Promise.all([heir, lw, worker].map(w => w.close())); await dead.close(true);
  for (const q of [queue, lq, sq]) await q.obliterate({ force: true });
  await Promise.all([events.close(), flow.close(), queue.close(), lq.close(), sq.close()]);
  process.exit();
})().catch(e => { console.log('FAIL ' + e.stack); process.exit(1); });
