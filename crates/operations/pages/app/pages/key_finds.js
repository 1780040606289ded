// Keys that are large, and keys that are asked for often.
import { identity, isError, one, pairs, run, text } from "../api.js";
import { bytes, short, whole } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { attempt, Button, Empty, Tabs } from "../widgets.js";

const SLICE = 500;
const SHOWN = 100;

/** Walks through all keys and keeps the largest. */
export function BigKeys({ db, session, chosen, onChoose }) {
  const [rows, setRows] = useState([]);
  const [seen, setSeen] = useState(null);
  const [total, setTotal] = useState(0);
  const running = useRef(false);
  useEffect(() => () => (running.current = false), []);
  const start = () => attempt(async () => {
    running.current = true;
    setTotal(await one(["DBSIZE"], db));
    let [cursor, count, largest] = ["0", 0, []];
    do {
      const [next, keys] = await one(["SCAN", cursor, "COUNT", String(SLICE)], db);
      cursor = text(next);
      for (let from = 0; from < keys.length; from += SLICE) {
        const some = keys.slice(from, from + SLICE);
        const { replies } = await run(some.flatMap((key) => [["MEMORY", "USAGE", key], ["TYPE", key]]), db);
        const found = some.map((key, at) => ({ key, size: replies[at * 2], type: text(replies[at * 2 + 1]) }));
        largest.push(...found.filter(({ size }) => typeof size === "number"));
      }
      largest = largest.sort((one, other) => other.size - one.size).slice(0, SHOWN);
      count += keys.length;
      setSeen(count);
      setRows(largest);
    } while (cursor !== "0" && running.current);
    running.current = false;
    setSeen(count);
  });
  return html`
    <div class="bar-top"><${Button} icon=${running.current ? "stop" : "play"} label=${running.current ? "Stop" : "Measure all keys"} right="memory|usage" session=${session}
      onClick=${() => { if (running.current) running.current = false; else start(); }} />
      <span class="note">the ${SHOWN} largest, by MEMORY USAGE</span></div>
    ${rows.length
      ? html`<${Found} rows=${rows} chosen=${chosen} onChoose=${onChoose} figure=${({ size }) => bytes(size)} share=${({ size }) => size / rows[0].size} head="Memory" />`
      : html`<${Empty} title="Not measured yet">All keys are visited in slices; other clients hardly notice.</${Empty}>`}
    <div class="bar-low" role="status">${seen !== null && html`<span>${whole(seen)} of about ${whole(total)} keys${running.current ? "…" : ""}</span>`}</div>
  `;
}

/** HOTKEYS: which keys take most time and traffic while somebody counts. */
export function HotKeys({ session, chosen, onChoose }) {
  const [seconds, setSeconds] = useState("10");
  const [left, setLeft] = useState(0);
  const [by, setBy] = useState("cpu");
  const [found, setFound] = useState(null);
  const open = useRef(true);
  useEffect(() => {
    open.current = true;
    return () => (open.current = false);
  }, []);
  const start = () => attempt(async () => {
    await one(["HOTKEYS", "RESET"]).catch(() => {});
    await one(["HOTKEYS", "START", "METRICS", "2", "CPU", "NET", "COUNT", "50", "DURATION", seconds]);
    for (let rest = Number(seconds); rest > 0 && open.current; rest -= 1) {
      setLeft(rest);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      setFound(hotKeys(await one(["HOTKEYS", "GET"])));
    }
    setLeft(0);
  });
  const rows = found?.[by] ?? [];
  const most = Math.max(...rows.map((row) => row.figure), 1);
  const figure = ({ figure }) => (by === "cpu" ? `${whole(figure)} µs` : bytes(figure));
  return html`
    <div class="bar-top">
      <${Button} icon="play" label=${left ? `Counting, ${left} s left` : "Count"} right="hotkeys|start" session=${session} disabled=${left > 0} onClick=${start} />
      <select aria-label="For how long" value=${seconds} onChange=${(event) => setSeconds(event.target.value)}>${["5", "10", "30", "60"].map((value) => html`<option key=${value} value=${value}>${value} s</option>`)}</select>
      <${Tabs} label="By" value=${by} options=${[["cpu", "Time"], ["net", "Traffic"]]} onChange=${setBy} />
    </div>
    ${rows.length
      ? html`<${Found} rows=${rows} chosen=${chosen} onChoose=${onChoose} figure=${figure} share=${(row) => row.figure / most} head=${by === "cpu" ? "Time" : "Traffic"} />`
      : html`<${Empty} title=${found ? "Nothing was asked for" : "Not counted yet"}>Requests are counted by key for some seconds, in all databases.</${Empty}>`}
  `;
}

/** Both lists of HOTKEYS GET. */
function hotKeys(reply) {
  const outer = Array.isArray(reply) && reply.length === 1 ? reply[0] : reply;
  const parts = new Map(pairs(outer).map(([name, value]) => [text(name), value]));
  const rows = (name) => pairs(parts.get(name) ?? []).map(([key, figure]) => ({ key, figure: Number(text(figure)) }));
  return { cpu: rows("by-cpu-time-us"), net: rows("by-net-bytes") };
}

function Found({ rows, chosen, onChoose, figure, share, head }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Keys found"><table>
    <thead><tr><th scope="col">Key</th><th scope="col"><span class="sr">Share</span></th><th scope="col" class="number">${head}</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${identity(row.key)}>
      <td class="mono"><button type="button" class="plain" aria-current=${row.key === chosen ? "true" : undefined} onClick=${() => onChoose(row.key)}>
        ${row.type && html`<span class="type ${row.type}" title=${row.type}></span>`}${text(row.key)}</button></td>
      <td><div class="bar"><i style=${{ width: `${share(row) * 100}%` }}></i></div></td>
      <td class="number">${figure(row)}</td>
    </tr>`)}</tbody>
  </table></div>`;
}
