// Commands that took long, or were large.
import { one, text } from "../api.js";
import { moment, nanoseconds, whole } from "../format.js";
import { html, useState } from "../lib.js";
import { attempt, Button, Empty, Failure, Head, SortHead, sorted, useLoaded } from "../widgets.js";

const SHOWN = 512;

async function load() {
  const [entries, limits] = await Promise.all([
    one(["SLOWLOG", "GET", String(SHOWN)]),
    one(["CONFIG", "GET", "slowlog-log-slower-than", "slowlog-max-len"]).catch(() => null),
  ]);
  const rows = entries.map(([id, at, micros, words, address, client]) => ({
    id, at: at * 1000, micros, words: words.map(text), command: text(words[0]).toLowerCase(), address: text(address), client: text(client),
  }));
  return { rows, limits: limits && Object.fromEntries(limits.map) };
}

export function SlowLog({ session }) {
  const [data, error, reload] = useLoaded(load);
  const [sort, setSort] = useState({ by: "at", down: true });
  const reset = async () => {
    if (await attempt(() => one(["SLOWLOG", "RESET"]), "The slow log is empty.")) reload();
  };
  const limits = data?.limits;
  const most = Math.max(...(data?.rows ?? []).map((row) => row.micros), 1);
  return html`
    <${Head} title="Slow log">
      ${limits && html`<span class="note">slower than ${nanoseconds(limits["slowlog-log-slower-than"] * 1000)}, the last ${whole(Number(limits["slowlog-max-len"]))}</span>`}
      <${Button} icon="refresh" label="Read again" onClick=${reload} />
      <${Button} icon="trash" kind="danger" label="Clear" right="slowlog|reset" session=${session} onClick=${reset} />
    </${Head}>
    <${Failure} error=${error} />
    ${data && html`<section class="card scroll" tabindex="0" aria-label="Slow commands">
      ${data.rows.length
        ? html`<table>
            <thead><tr>
              <${SortHead} name="at" label="When" sort=${sort} onSort=${setSort} numeric />
              <${SortHead} name="micros" label="Took" sort=${sort} onSort=${setSort} numeric />
              <th scope="col"><span class="sr">Share</span></th>
              <${SortHead} name="command" label="Command" sort=${sort} onSort=${setSort} />
              <${SortHead} name="address" label="Client" sort=${sort} onSort=${setSort} />
            </tr></thead>
            <tbody>${sorted(data.rows, sort).map((row) => html`<tr key=${row.id}>
              <td class="number">${moment(row.at)}</td>
              <td class="number"><b>${nanoseconds(row.micros * 1000)}</b></td>
              <td class="share"><div class="bar"><i style=${{ width: `${(row.micros / most) * 100}%` }}></i></div></td>
              <td class="mono wrap"><b>${row.words[0]}</b> ${row.words.slice(1).join(" ")}</td>
              <td>${row.client && html`${row.client} `}<span class="note mono">${row.address}</span></td>
            </tr>`)}</tbody>
          </table>`
        : html`<${Empty} title="Nothing was slow">Commands that take longer than slowlog-log-slower-than show up here.</${Empty}>`}
    </section>`}
  `;
}
