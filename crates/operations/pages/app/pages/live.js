// What the server does now, and did in the last ten minutes.
import { one } from "../api.js";
import { Chart, Spark } from "../chart.js";
import { bytes, moment, nanoseconds, percent, short, whole } from "../format.js";
import { html, useMemo, useState } from "../lib.js";
import { useSamples } from "../samples.js";
import { attempt, Button, Empty, Head, Tabs } from "../widgets.js";

const RANGES = [["60", "1 min"], ["300", "5 min"], ["600", "10 min"]];
const TONES = ["gold", "blue", "teal", "violet", "coral", "pink", "lime", "text-faint"];

/** Over how many seconds the table of commands looks back. */
const TABLE_SECONDS = 10;

export function Live({ session }) {
  const { samples, state } = useSamples();
  const [range, setRange] = useState("300");
  const [paused, setPaused] = useState(null);
  const shown = useMemo(() => {
    const from = (paused ?? samples).slice(-Number(range));
    return from;
  }, [samples, range, paused]);
  const now = shown.at(-1);
  const words = { live: "live", connecting: "connecting", lost: "connection lost, trying again" };
  return html`
    <${Head} title="Live">
      <span class="state ${paused ? "" : state}" role="status"><i></i>${paused ? "paused" : words[state]}</span>
      <${Tabs} label="Time shown" value=${range} options=${RANGES} onChange=${setRange} />
      <${Button} icon=${paused ? "play" : "pause"} only label=${paused ? "Go on" : "Pause"} onClick=${() => setPaused(paused ? null : samples)} />
    </${Head}>
    ${state === "forbidden"
      ? html`<div class="card"><${Empty} title="Not for this user">These figures are for users who may run INFO.</${Empty}></div>`
      : now
        ? html`<${Tiles} samples=${shown} now=${now} /><${Charts} samples=${shown} now=${now} session=${session} />`
        : html`<div class="card"><${Empty} title="The first second">A sample comes each second.</${Empty}></div>`}
  `;
}

function Tile({ label, value, unit, more, values, tone }) {
  return html`<div class="card tile">
    <span class="label">${label}</span>
    <span class="value">${value}${unit && html`<small>${unit}</small>`}</span>
    <span class="more">${more}</span>
    <${Spark} values=${values} tone=${tone} />
  </div>`;
}

function Tiles({ samples, now }) {
  const of = (read) => samples.map(read);
  const peak = Math.max(...of((it) => it.rps));
  const [p99, p99Unit] = nanoseconds(now.lat[2]).split(" ");
  const [used, usedUnit] = bytes(now.used).split(" ");
  const [unsynced, unsyncedUnit] = bytes(now.log.unsynced).split(" ");
  const lookups = now.hits + now.misses;
  return html`<div class="tiles">
    <${Tile} label="Requests" value=${short(now.rps)} unit="/s" more="peak ${short(peak)}/s" values=${of((it) => it.rps)} tone="gold" />
    <${Tile} label="p99 latency" value=${p99} unit=${p99Unit} more="p50 ${nanoseconds(now.lat[1])} · p99.9 ${nanoseconds(now.lat[3])}" values=${of((it) => it.lat[2])} tone="blue" />
    <${Tile} label="Memory" value=${used} unit=${usedUnit} more=${now.maxmemory ? `of ${bytes(now.maxmemory)}` : `${bytes(now.rss)} resident`} values=${of((it) => it.used)} tone="violet" />
    <${Tile} label="CPU" value=${(now.cpu / 10).toFixed(now.cpu < 100 ? 1 : 0)} unit="%" more="of one core" values=${of((it) => it.cpu)} tone="teal" />
    <${Tile} label="Clients" value=${whole(now.clients)} more="${short(now.conns)} new/s" values=${of((it) => it.clients)} tone="pink" />
    <${Tile} label="Hit rate" value=${lookups ? ((now.hits / lookups) * 100).toFixed(0) : "–"} unit=${lookups ? "%" : ""} more="${short(now.hits)} hits · ${short(now.misses)} misses /s" values=${of((it) => (it.hits + it.misses ? it.hits / (it.hits + it.misses) : 0))} tone="lime" />
    <${Tile} label="Log not on disk" value=${unsynced} unit=${unsyncedUnit} more="${bytes(now.log_rate)}/s written" values=${of((it) => it.log.unsynced)} tone="coral" />
  </div>`;
}

/** Seconds, and one column for each of `reads`. */
function columns(samples, reads) {
  return [samples.map((it) => it.t / 1000), ...reads.map((read) => samples.map(read))];
}

/** On a logarithmic axis, nothing is no point. */
const positive = (read) => (sample) => read(sample) || null;

function Charts({ samples, now, session }) {
  const names = topCommands(samples);
  const rate = (name) => (it) => it.cmds.find((command) => command[0] === name)?.[1] ?? 0;
  const others = (it) => it.cmds.reduce((sum, [name, calls]) => sum + (names.includes(name) ? 0 : calls), 0);
  const byCommand = useMemo(() => columns(samples, [...names.map(rate), others]), [samples]);
  const latency = useMemo(() => columns(samples, [1, 2, 3].map((at) => positive((it) => it.lat[at]))), [samples]);
  const gate = useMemo(() => columns(samples, [1, 2, 3].map((at) => positive((it) => it.gate[at]))), [samples]);
  const network = useMemo(() => columns(samples, [(it) => it.in, (it) => it.out]), [samples]);
  const kinds = memoryKinds(samples);
  const memory = useMemo(() => columns(samples, kinds.map((kind) => (it) => it.mem[kind])), [samples]);
  const keyspace = useMemo(() => columns(samples, [(it) => it.hits, (it) => it.misses, (it) => it.expired, (it) => it.evicted]), [samples]);
  const percentiles = [{ label: "p50", tone: "teal" }, { label: "p99", tone: "blue" }, { label: "p99.9", tone: "coral" }];
  const toned = (label, at) => ({ label, tone: TONES[at % TONES.length] });
  return html`<div class="grid">
    <${Chart} title="Requests a second" note="by command" data=${byCommand} stacked format=${short} series=${[...names, "others"].map(toned)} />
    <${Chart} title="Latency of commands" note="without waiting for the gate" data=${latency} log format=${nanoseconds} series=${percentiles} />
    <${Commands} samples=${samples} on=${session.latency_tracking} />
    <${Chart} title="Waits at the gate" note=${`${whole(now.gate[0])} replies/s waited · gate ${session.gate}`} data=${gate} log format=${nanoseconds} series=${percentiles} />
    <${Chart} title="Memory by what it is for" note=${bytes(now.used)} data=${memory} stacked binary format=${bytes} series=${kinds.map((kind, at) => toned(kind.replace("_", " "), at))} />
    <${Chart} title="Network" note=${`in ${bytes(now.in)}/s · out ${bytes(now.out)}/s`} data=${network} binary format=${(value) => `${bytes(value)}/s`} series=${[{ label: "in", tone: "blue", fill: true }, { label: "out", tone: "gold", fill: true }]} />
    <${Chart} title="Keys looked up" note="a second" data=${keyspace} format=${short} series=${[{ label: "hits", tone: "teal" }, { label: "misses", tone: "coral" }, { label: "expired", tone: "violet" }, { label: "evicted", tone: "pink" }]} />
    <div class="grid">
      <${Threads} now=${now} />
      <${Log} now=${now} session=${session} />
    </div>
  </div>`;
}

/** The commands with most calls. */
function topCommands(samples) {
  const sums = new Map();
  for (const { cmds } of samples) for (const [name, calls] of cmds) sums.set(name, (sums.get(name) ?? 0) + calls);
  return [...sums].sort((one, other) => other[1] - one[1]).slice(0, 5).map(([name]) => name);
}

/** What takes memory at all, most first. */
function memoryKinds(samples) {
  const last = samples.at(-1).mem;
  const kinds = Object.keys(last).filter((kind) => samples.some((it) => it.mem[kind] > 65536));
  return (kinds.length ? kinds : ["keys"]).sort((one, other) => last[other] - last[one]).slice(0, 7);
}

/** Each command over the last seconds: the mean rate, and the worst percentiles. */
function recent(samples) {
  const last = samples.slice(-TABLE_SECONDS);
  const commands = new Map();
  for (const { cmds } of last) {
    for (const [name, calls, [, p50, p99, p999]] of cmds) {
      const known = commands.get(name) ?? { name, calls: 0, half: 0, p99: 0, p999: 0 };
      known.calls += calls;
      known.half += p50 * calls;
      known.p99 = Math.max(known.p99, p99);
      known.p999 = Math.max(known.p999, p999);
      commands.set(name, known);
    }
  }
  const rows = [...commands.values()].map((row) => ({ ...row, p50: row.half / Math.max(row.calls, 1), rate: row.calls / last.length }));
  return rows.sort((one, other) => other.rate - one.rate);
}

function Commands({ samples, on }) {
  const rows = recent(samples);
  const most = Math.max(...rows.map((row) => row.rate), 1);
  return html`<section class="card">
    <header><h2>Commands</h2><span class="note">last ${TABLE_SECONDS} s, worst percentiles</span></header>
    ${rows.length
      ? html`<div class="commands" tabindex="0" role="region" aria-label="Commands"><table>
          <thead><tr><th scope="col">Command</th><th scope="col"><span class="sr">Share</span></th><th scope="col" class="number">/s</th><th scope="col" class="number">p50</th><th scope="col" class="number">p99</th><th scope="col" class="number">p99.9</th></tr></thead>
          <tbody>${rows.map((row) => html`<tr key=${row.name}>
            <td class="mono">${row.name.replace("|", " ")}</td>
            <td><div class="bar"><i style=${{ width: `${(row.rate / most) * 100}%` }}></i></div></td>
            <td class="number">${row.rate < 10 ? row.rate.toFixed(1) : short(Math.round(row.rate))}</td>
            <td class="number">${nanoseconds(row.p50)}</td><td class="number">${nanoseconds(row.p99)}</td><td class="number">${nanoseconds(row.p999)}</td>
          </tr>`)}</tbody>
        </table></div>`
      : html`<${Empty} title="No requests">Nobody has asked for anything in the last ${TABLE_SECONDS} seconds.</${Empty}>`}
    ${!on && html`<p class="note" style=${{ padding: "0 16px 12px" }}>latency-tracking is off, so there are no percentiles.</p>`}
  </section>`;
}

function Threads({ now }) {
  return html`<section class="card">
    <header><h2>IO threads</h2><span class="note">busy</span></header>
    <div class="threads" tabindex="0" role="region" aria-label="IO threads">
      ${now.threads.map((permille, at) => html`<div key=${at}><span>io-${at}</span><div class="bar"><i style=${{ width: `${permille / 10}%` }}></i></div><span class="number">${percent(permille / 1000)}</span></div>`)}
    </div>
  </section>`;
}

function Log({ now, session }) {
  const { log, checkpoint } = now;
  const save = () => attempt(() => one(["BGSAVE"]), "A checkpoint is being made.");
  return html`<section class="card">
    <header><h2>Log</h2><span class="note"><span class="badge ${log.ok ? "good" : "bad"}">${log.ok ? "takes writes" : "refuses writes"}</span></span></header>
    <dl class="facts">
      <dt>Log kept</dt><dd>${bytes(log.kept)}</dd>
      <dt>To replay at a start</dt><dd>${bytes(log.replay)}</dd>
      <dt>Sync, p99</dt><dd>${nanoseconds(now.sync[2])}</dd>
      <dt>Changes since checkpoint</dt><dd>${short(checkpoint.changes)}</dd>
      <dt>Last checkpoint</dt><dd>${checkpoint.made ? moment(checkpoint.at * 1000) : "none yet"}</dd>
      ${checkpoint.made > 0 && html`<dt>Its size</dt><dd>${short(checkpoint.keys)} keys, ${bytes(checkpoint.bytes)}</dd>`}
    </dl>
    <div class="bar-low">
      ${checkpoint.running ? html`<span>making one: ${percent(checkpoint.permille / 1000)}</span>` : html`<span>${checkpoint.ok ? "" : "the last one failed"}</span>`}
      <${Button} kind="small" icon="save" label="Checkpoint" right="bgsave" session=${session} disabled=${checkpoint.running} onClick=${save} />
    </div>
  </section>`;
}
