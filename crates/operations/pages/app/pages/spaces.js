// Tarantool's spaces: what there is, and how large it is.
import { spaces } from "../api.js";
import { bytes, short, whole } from "../format.js";
import { html, useState } from "../lib.js";
import { Button, Empty, Failure, Head, SortHead, sorted, useLoaded } from "../widgets.js";

export function Spaces() {
  const [rows, error, reload] = useLoaded(spaces);
  const [sort, setSort] = useState({ by: "bytes", down: true });
  const most = Math.max(...(rows ?? []).map((row) => row.bytes), 1);
  const head = (name, label, numeric) => html`<${SortHead} name=${name} label=${label} sort=${sort} onSort=${setSort} numeric=${numeric} />`;
  return html`
    <${Head} title="Spaces">
      ${rows && html`<span class="note">${whole(rows.length)} spaces, ${bytes(rows.reduce((sum, row) => sum + row.bytes, 0))}</span>`}
      <${Button} icon="refresh" label="Read again" onClick=${reload} />
    </${Head}>
    <${Failure} error=${error} />
    ${rows && html`<section class="card scroll" tabindex="0" aria-label="Spaces">
      ${rows.length
        ? html`<table>
            <thead><tr>${head("id", "Id", true)}${head("name", "Name")}${head("tuples", "Tuples", true)}${head("bytes", "Memory", true)}<th scope="col"><span class="sr">Share</span></th><th scope="col" class="number">a tuple</th></tr></thead>
            <tbody>${sorted(rows, sort).map((row) => html`<tr key=${row.id}>
              <td class="number">${row.id}</td><td class="mono"><b>${row.name}</b></td><td class="number">${whole(row.tuples)}</td><td class="number">${bytes(row.bytes)}</td>
              <td class="share"><div class="bar"><i style=${{ width: `${(row.bytes / most) * 100}%` }}></i></div></td>
              <td class="number">${row.tuples ? `${short(Math.round(row.bytes / row.tuples))} B` : "–"}</td>
            </tr>`)}</tbody>
          </table>`
        : html`<${Empty} title="No spaces">Spaces come over IPROTO, Tarantool's protocol: <code>ladon space create</code> makes one.</${Empty}>`}
    </section>`}
  `;
}
