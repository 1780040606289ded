// One request of Redis' protocol per iteration, keys made of user and iteration: what the published k6
// scripts of Redis against Tarantool do. Told by the environment:
//
//   LAB_TARGET   redis://HOST:PORT
//   LAB_DEED     set, get or delete
//   LAB_USERS    virtual users, each with a client of its own
//   LAB_SECONDS  how long, for set and get
//   LAB_KEYS     keys of each user that are there already, for get and delete
//   LAB_VALUE    the value of every key
import redis from 'k6/experimental/redis';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';

const deed = __ENV.LAB_DEED;
const keys = Number(__ENV.LAB_KEYS);
const users = Number(__ENV.LAB_USERS);
const value = __ENV.LAB_VALUE;
const client = new redis.Client(__ENV.LAB_TARGET);
const wrong = new Counter('lab_wrong');
const failed = new Counter('lab_failed');

export const options = {
  scenarios: {
    lab: deed === 'delete'
      ? { executor: 'per-vu-iterations', vus: users, iterations: keys, maxDuration: '10m' }
      : { executor: 'constant-vus', vus: users, duration: `${__ENV.LAB_SECONDS}s` },
  },
  summaryTrendStats: ['med', 'p(90)', 'p(99)', 'p(99.9)', 'p(99.99)', 'max'],
};

export default async function () {
  const iteration = exec.vu.iterationInScenario;
  const place = deed === 'get' ? iteration % keys : iteration;
  const key = `k6:${exec.vu.idInTest}:${place}`;
  try {
    if (!(await request(key))) {
      wrong.add(1);
    }
  } catch {
    failed.add(1);
  }
}

async function request(key) {
  if (deed === 'set') {
    return (await client.set(key, value)) === 'OK';
  }
  if (deed === 'get') {
    return (await client.get(key)) === value;
  }
  return (await client.del(key)) === 1;
}

export function handleSummary(data) {
  const count = (name) => (data.metrics[name] ? data.metrics[name].values.count : 0);
  const latency = data.metrics.iteration_duration;
  return {
    stdout: JSON.stringify({
      iterations: count('iterations'),
      wrong: count('lab_wrong'),
      failed: count('lab_failed'),
      milliseconds: data.state.testRunDurationMs,
      latency_ms: latency ? latency.values : {},
    }),
  };
}
