// The tuples of one space: a page at a time, by any of its indexes.
import { one, text } from "../api.js";
import { bytes, whole } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { attempt, Button, dialog, Empty, Failure, Field, Head } from "../widgets.js";
import { words } from "../words.js";

const PAGE = "100";
const ITERATORS = [["eq", "="], ["ge", "≥"], ["gt", ">"], ["le", "≤"], ["lt", "<"]];

const call = async (command) => JSON.parse(text(await one(["LADON.SPACE", ...command])));

/** A tuple as `{field: value}`, whether it came as an object or as an array. */
function named(space, tuple) {
  if (!Array.isArray(tuple)) return tuple;
  return Object.fromEntries(tuple.map((value, at) => [space.format[at]?.name ?? `#${at + 1}`, value]));
}

const shown = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

export function Grid({ space, session, onBack }) {
  const [index, setIndex] = useState(space.indexes[0]?.name ?? "");
  const [iterator, setIterator] = useState("eq");
  const [key, setKey] = useState("");
  const [rows, setRows] = useState([]);
  const [after, setAfter] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(true);
  const turn = useRef(0);
  const load = async (from, before) => {
    const mine = ++turn.current;
    setBusy(true);
    try {
      const parts = words(key).flatMap((part) => ["KEY", part]);
      const by = parts.length ? [...parts, "ITERATOR", iterator] : [];
      const page = await call(["SELECT", space.name, "INDEX", index, ...by, ...(from ? ["AFTER", from] : []), "LIMIT", PAGE]);
      if (mine !== turn.current) return;
      setRows([...before, ...page.tuples.map((tuple) => ({ tuple, cells: named(space, tuple) }))]);
      setAfter(page.after);
      setError(null);
    } catch (refused) {
      if (mine === turn.current) setError(refused);
    }
    setBusy(false);
  };
  useEffect(() => {
    if (!index) return undefined;
    const timer = setTimeout(() => load(null, []), 200);
    return () => clearTimeout(timer);
  }, [index, iterator, key]);
  useEffect(() => () => turn.current++, []);
  const columns = [...new Set([...space.format.map((field) => field.name), ...rows.flatMap((row) => Object.keys(row.cells))])];
  const edit = async (row) => {
    const asked = await dialog(
      html`<p>Fields: ${space.format.map((field) => `${field.name} (${field.type})`).join(", ") || "any"}.</p>
        <${Field} label="The tuple as JSON" name="tuple" as="textarea" rows="12" value=${JSON.stringify(row?.tuple ?? emptyTuple(space), null, 2)} spellcheck="false" required />`,
      { title: row ? "Replace a tuple" : "Insert a tuple", action: row ? "Replace" : "Insert" },
    );
    if (!asked) return;
    const done = await attempt(() => call([row ? "REPLACE" : "INSERT", space.name, asked.tuple]), row ? "Replaced." : "Inserted.");
    if (done) load(null, []);
  };
  const remove = async (row) => {
    const primary = space.primary_key.map((field) => row.cells[field]);
    const asked = await dialog(html`<p>The tuple with the key <code>${primary.map(shown).join(", ")}</code> will be removed.</p>`, { title: "Remove a tuple", action: "Remove", danger: true });
    if (asked && (await attempt(() => call(["DELETE", space.name, ...primary.map(String)]), "Removed."))) load(null, []);
  };
  const parts = space.indexes.find((other) => other.name === index)?.parts ?? [];
  return html`
    <${Head} title=${space.name}>
      <span class="note">${whole(space.count)} tuples, ${bytes(space.bytes)}${space.mount ? `, mounted at ${space.mount}` : ""}</span>
      <${Button} label="All spaces" onClick=${onBack} />
      <${Button} icon="plus" label="Insert" right="ladon.space|insert" session=${session} onClick=${() => edit(null)} />
    </${Head}>
    ${!space.indexes.length
      ? html`<div class="card"><${Empty} title="No index yet"><code>ladon space index</code> makes the primary key; then tuples can be read.</${Empty}></div>`
      : html`<section class="card grid-card" aria-label="Space">
          <div class="bar-top">
            <select aria-label="Index" value=${index} onChange=${(event) => setIndex(event.target.value)}>${space.indexes.map((other) => html`<option key=${other.id} value=${other.name}>${other.name} (${other.type})</option>`)}</select>
            <select aria-label="Comparison" value=${iterator} onChange=${(event) => setIterator(event.target.value)}>${ITERATORS.map(([name, sign]) => html`<option key=${name} value=${name}>${sign}</option>`)}</select>
            <div class="searchbox plainbox"><input type="search" class="mono" aria-label="Key" placeholder=${parts.map((part) => `${part.field} (${part.type})`).join("  ")} value=${key} onInput=${(event) => setKey(event.target.value)} /></div>
          </div>
          <${Failure} error=${error} />
          <div class="scroll" tabindex="0" role="region" aria-label="Tuples" aria-busy=${busy}>
            ${rows.length || busy
              ? html`<table>
                  <thead><tr>${columns.map((column) => html`<th key=${column} scope="col">${column}${space.primary_key.includes(column) && html` <span class="badge gold">key</span>`}</th>`)}<th scope="col"><span class="sr">Actions</span></th></tr></thead>
                  <tbody>${rows.map((row, at) => html`<tr key=${at}>
                    ${columns.map((column) => html`<td key=${column} class="mono"><span class="clip">${column in row.cells ? shown(row.cells[column]) : ""}</span></td>`)}
                    <td class="actions"><${Button} icon="edit" only kind="small" label="Replace" right="ladon.space|replace" session=${session} onClick=${() => edit(row)} />
                      <${Button} icon="trash" only kind="small danger" label="Remove" right="ladon.space|delete" session=${session} onClick=${() => remove(row)} /></td>
                  </tr>`)}</tbody>
                </table>`
              : !error && html`<${Empty} title=${key ? "Nothing matches" : "No tuples"} />`}
          </div>
          <div class="bar-low"><span>${whole(rows.length)} shown</span>${after && html`<${Button} kind="small" label="More" disabled=${busy} onClick=${() => load(after, rows)} />`}</div>
        </section>`}
  `;
}

/** What an insertion begins with. */
const emptyTuple = (space) => Object.fromEntries(space.format.map((field) => [field.name, ["unsigned", "integer", "number", "double"].includes(field.type) ? 0 : field.type === "boolean" ? false : ""]));
