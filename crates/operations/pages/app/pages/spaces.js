// Tarantool's spaces: what there is, how large it is, and the tuples by any index.
import { one, spaces as sizes, text } from "../api.js";
import { bytes, short, whole } from "../format.js";
import { html, useState } from "../lib.js";
import { Button, Empty, Failure, Head, SortHead, sorted, useLoaded } from "../widgets.js";
import { Grid } from "./space_grid.js";

/** Spaces with their formats, if this server and this user have the command; sizes alone otherwise. */
async function load(session) {
  if (!session.rights.includes("ladon.space|list")) return { rows: await sizes(), canOpen: false };
  const reply = await one(["LADON.SPACE", "LIST"]);
  const rows = JSON.parse(text(reply)).map((space) => ({ ...space, tuples: space.count }));
  return { rows, canOpen: true };
}

export function Spaces({ session }) {
  const [data, error, reload] = useLoaded(() => load(session));
  const [open, setOpen] = useState(null);
  const rows = data?.rows;
  const space = rows?.find(({ id }) => id === open);
  if (space) return html`<${Grid} key=${space.id} space=${space} session=${session} onBack=${() => { setOpen(null); reload(); }} />`;
  return html`
    <${Head} title="Spaces">
      ${rows && html`<span class="note">${whole(rows.length)} spaces, ${bytes(rows.reduce((sum, row) => sum + row.bytes, 0))}</span>`}
      <${Button} icon="refresh" label="Read again" onClick=${reload} />
    </${Head}>
    <${Failure} error=${error} />
    ${rows && html`<${List} rows=${rows} onOpen=${data.canOpen && setOpen} />`}
  `;
}

function List({ rows, onOpen }) {
  const [sort, setSort] = useState({ by: "bytes", down: true });
  const most = Math.max(...rows.map((row) => row.bytes), 1);
  const head = (name, label, numeric) => html`<${SortHead} name=${name} label=${label} sort=${sort} onSort=${setSort} numeric=${numeric} />`;
  return html`<section class="card scroll" tabindex="0" aria-label="Spaces">
    ${rows.length
      ? html`<table>
          <thead><tr>${head("id", "Id", true)}${head("name", "Name")}<th scope="col">Indexes</th>${head("tuples", "Tuples", true)}${head("bytes", "Memory", true)}<th scope="col"><span class="sr">Share</span></th><th scope="col" class="number">a tuple</th></tr></thead>
          <tbody>${sorted(rows, sort).map((row) => html`<tr key=${row.id}>
            <td class="number">${row.id}</td>
            <td class="mono">${onOpen ? html`<button type="button" class="plain" onClick=${() => onOpen(row.id)}><b>${row.name}</b></button>` : html`<b>${row.name}</b>`}</td>
            <td>${(row.indexes ?? []).map((index) => html`<span class="badge" key=${index.id}>${index.name}</span> `)}</td>
            <td class="number">${whole(row.tuples)}</td><td class="number">${bytes(row.bytes)}</td>
            <td class="share"><div class="bar"><i style=${{ width: `${(row.bytes / most) * 100}%` }}></i></div></td>
            <td class="number">${row.tuples ? `${short(Math.round(row.bytes / row.tuples))} B` : "–"}</td>
          </tr>`)}</tbody>
        </table>`
      : html`<${Empty} title="No spaces">Spaces come over IPROTO, Tarantool's protocol: <code>ladon space create</code> makes one.</${Empty}>`}
  </section>`;
}
