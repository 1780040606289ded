// Values of many elements: hashes, lists, sets, sorted sets, streams, page by page.
import { all, checked, identity, isBytes, items, one, pairs, text } from "../api.js";
import { whole } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { Icon } from "../icons.js";
import { attempt, Button, dialog, Empty, Failure, Field } from "../widgets.js";

const PAGE = 100;

/** What a list's element becomes before it is removed: nobody else has it. */
const tombstone = () => `removed:${crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`}`;

const scanArguments = (cursor, match) => [cursor, ...(match ? ["MATCH", /[*?[]/.test(match) ? match : `*${match}*`] : []), "COUNT", String(PAGE)];

/** Reads pages by a cursor; the first is "0". */
const scanned = (command, rows) => async ({ name, db, at, match }) => {
  const [cursor, found] = await one([command, name, ...scanArguments(at ?? "0", match)], db);
  return { rows: rows(found), next: text(cursor) === "0" ? null : text(cursor) };
};

/** Reads pages by numbers of elements. */
const ranged = (read) => async ({ name, db, at = 0 }) => {
  const rows = await read(name, at, db);
  return { rows, next: rows.length === PAGE ? at + PAGE : null };
};

/**
 * How each type is shown and changed. A row is `{id, cells, ...}`; `edits` says which cell is the one
 * that can change, `set` and `remove` make the commands.
 */
export const VIEWS = {
  hash: {
    heads: ["Field", "Value"],
    filters: true,
    load: scanned("HSCAN", (found) => pairs(found).map(([field, value]) => ({ id: identity(field), cells: [field, value] }))),
    rights: { set: "hset", remove: "hdel", add: "hset" },
    fields: [["field", "Field"], ["value", "Value", "textarea"]],
    add: (name, { field, value }) => [["HSET", name, field, value]],
    set: (name, { cells: [field] }, value) => [["HSET", name, field, value]],
    remove: (name, { cells: [field] }) => [["HDEL", name, field]],
  },
  list: {
    heads: ["#", "Value"],
    load: ranged(async (name, at, db) => {
      const found = await one(["LRANGE", name, String(at), String(at + PAGE - 1)], db);
      return found.map((value, offset) => ({ id: String(at + offset), at: at + offset, cells: [String(at + offset), value] }));
    }),
    rights: { set: "lset", remove: "lrem", add: "rpush" },
    fields: [["value", "Value, at the end", "textarea"]],
    add: (name, { value }) => [["RPUSH", name, value]],
    set: (name, { at }, value) => [["LSET", name, String(at), value]],
    remove: (name, { at }) => {
      const mark = tombstone();
      return [["MULTI"], ["LSET", name, String(at), mark], ["LREM", name, "1", mark], ["EXEC"]];
    },
  },
  set: {
    heads: ["Member"],
    filters: true,
    load: scanned("SSCAN", (found) => items(found).map((member) => ({ id: identity(member), cells: [member] }))),
    rights: { remove: "srem", add: "sadd" },
    fields: [["value", "Member", "textarea"]],
    add: (name, { value }) => [["SADD", name, value]],
    remove: (name, { cells: [member] }) => [["SREM", name, member]],
  },
  zset: {
    heads: ["Score", "Member"],
    edits: 0,
    numbers: [0],
    load: ranged(async (name, at, db) => {
      const found = await one(["ZRANGE", name, String(at), String(at + PAGE - 1), "WITHSCORES"], db);
      return pairs(found).map(([member, score]) => ({ id: identity(member), cells: [text(score), member] }));
    }),
    rights: { set: "zadd", remove: "zrem", add: "zadd" },
    fields: [["field", "Score"], ["value", "Member", "textarea"]],
    add: (name, { field, value }) => [["ZADD", name, field, value]],
    set: (name, { cells: [, member] }, score) => [["ZADD", name, "XX", score, member]],
    remove: (name, { cells: [, member] }) => [["ZREM", name, member]],
  },
  stream: {
    heads: ["Id", "Fields"],
    load: async ({ name, db, at = "+" }) => {
      const found = await one(["XREVRANGE", name, at, "-", "COUNT", String(PAGE)], db);
      const shown = (fields) => pairs(fields).map(([field, value]) => `${text(field)}: ${text(value)}`).join("\n");
      const rows = found.map(([id, fields]) => ({ id: text(id), cells: [text(id), shown(fields)] }));
      return { rows, next: rows.length === PAGE ? `(${rows.at(-1).id}` : null };
    },
    rights: { remove: "xdel", add: "xadd" },
    fields: [["field", "Field"], ["value", "Value", "textarea"]],
    add: (name, { field, value }) => [["XADD", name, "*", field, value]],
    remove: (name, { id }) => [["XDEL", name, id]],
  },
};

export function Elements({ view, db, name, length, session, onChanged }) {
  const [rows, setRows] = useState([]);
  const [next, setNext] = useState(null);
  const [match, setMatch] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(true);
  const turn = useRef(0);
  const load = async (at, before) => {
    const mine = ++turn.current;
    setBusy(true);
    try {
      let page = await view.load({ name, db, at, match });
      // A slice of a scan may hold nothing that matches.
      for (let tries = 0; !page.rows.length && page.next !== null && tries < 50 && mine === turn.current; tries += 1) page = await view.load({ name, db, at: page.next, match });
      if (mine !== turn.current) return;
      const known = new Set(before.map((row) => row.id));
      setRows([...before, ...page.rows.filter((row) => !known.has(row.id))]);
      setNext(page.next);
      setError(null);
    } catch (refused) {
      if (mine === turn.current) setError(refused);
    }
    setBusy(false);
  };
  useEffect(() => {
    const timer = setTimeout(() => load(undefined, []), match ? 250 : 0);
    return () => clearTimeout(timer);
  }, [match]);
  useEffect(() => () => turn.current++, []);

  const change = async (commands, done) => {
    const changed = await attempt(async () => (await all(commands, db)).forEach(checked), done);
    if (!changed) return;
    await load(undefined, []);
    onChanged(length === 1 && done === "Removed.");
  };
  const add = async () => {
    const fields = view.fields.map(([key, label, as]) => html`<${Field} key=${key} label=${label} name=${key} as=${as} required=${key === "field"} autocomplete="off" rows="4" />`);
    const asked = await dialog(html`${fields}`, { title: "Add an element", action: "Add" });
    if (asked) change(view.add(name, asked), "Added.");
  };
  const edit = async (row) => {
    const at = view.edits ?? view.heads.length - 1;
    const asked = await dialog(html`<${Field} label=${view.heads[at]} name="value" as=${view.numbers?.includes(at) ? "input" : "textarea"} rows="10" value=${text(row.cells[at])} spellcheck="false" />`, { title: "Change an element" });
    if (asked) change(view.set(name, row, asked.value), "Saved.");
  };
  const remove = async (row) => {
    const asked = await dialog(html`<p>This element will be removed: <code>${text(row.cells[0]).slice(0, 200)}</code></p>`, { title: "Remove an element", action: "Remove", danger: true });
    if (asked) change(view.remove(name, row), "Removed.");
  };
  // Bytes that are no text cannot be edited as text.
  const editable = (row) => view.set && !row.cells.some(isBytes);
  return html`
    <div class="bar-top">
      ${view.filters && html`<div class="searchbox"><${Icon} name="search" /><input type="search" aria-label="Filter" placeholder="Filter" value=${match} onInput=${(event) => setMatch(event.target.value)} /></div>`}
      <${Button} kind="small" icon="plus" label="Add" right=${view.rights.add} session=${session} onClick=${add} />
    </div>
    <${Failure} error=${error} />
    <div class="scroll" tabindex="0" role="region" aria-label="Elements" aria-busy=${busy}>
      ${rows.length || busy
        ? html`<table>
            <thead><tr>${view.heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}<th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>${rows.map((row) => html`<tr key=${row.id}>
              ${row.cells.map((cell, at) => html`<td key=${at} class="mono wrap">${shownCell(cell)}</td>`)}
              <td class="actions">
                ${view.set && html`<${Button} icon="edit" only kind="small" label="Change" right=${view.rights.set} session=${session} disabled=${!editable(row)} onClick=${() => edit(row)} />`}
                <${Button} icon="trash" only kind="small danger" label="Remove" right=${view.rights.remove} session=${session} onClick=${() => remove(row)} />
              </td>
            </tr>`)}</tbody>
          </table>`
        : !error && html`<${Empty} title="Nothing matches" />`}
    </div>
    <div class="bar-low"><span>${whole(rows.length)} of ${whole(length ?? rows.length)} shown</span>
      ${next !== null && html`<${Button} kind="small" label="More" disabled=${busy} onClick=${() => load(next, rows)} />`}</div>
  `;
}

/** A long cell is cut. */
function shownCell(cell) {
  const shown = text(cell);
  return shown.length > 2000 ? `${shown.slice(0, 2000)}… (${whole(shown.length)})` : shown;
}
