// Who is connected.
import { one, text } from "../api.js";
import { bytes, duration, whole } from "../format.js";
import { html, useState } from "../lib.js";
import { Icon } from "../icons.js";
import { attempt, Button, dialog, Empty, Failure, Head, SortHead, sorted, useEvery, useLoaded } from "../widgets.js";

const SHOWN = 1000;

const FLAGS = { N: "", O: "monitor", x: "MULTI", b: "waits", d: "dirty", c: "closing", u: "unblocked", A: "closing", t: "tracking", P: "Pub/Sub", U: "unix", R: "redirect lost", B: "broadcast", e: "no evict", T: "no touch", r: "read only" };

/** The lines of CLIENT LIST. */
function clients(list) {
  const lines = list.trim().split("\n").filter(Boolean);
  return lines.map((line) => {
    const fields = Object.fromEntries(line.trim().split(" ").map((field) => {
      const at = field.indexOf("=");
      return [field.slice(0, at), field.slice(at + 1)];
    }));
    const number = (name) => Number(fields[name] ?? 0);
    return {
      id: number("id"), addr: fields.addr, name: fields.name, user: fields.user, db: number("db"), age: number("age"), idle: number("idle"),
      cmd: (fields.cmd ?? "").replace("|", " "), memory: number("tot-mem"), unread: number("omem"), lib: [fields["lib-name"], fields["lib-ver"]].filter(Boolean).join(" "),
      state: [...(fields.flags ?? "")].map((flag) => FLAGS[flag] ?? flag).filter(Boolean),
    };
  });
}

export function Clients({ session }) {
  const [rows, error, reload] = useLoaded(async () => clients(text(await one(["CLIENT", "LIST"]))));
  const [every, setEvery] = useState(true);
  const [filter, setFilter] = useState("");
  const [sort, setSort] = useState({ by: "id", down: false });
  useEvery(every ? 2000 : 0, reload, []);
  const words = filter.toLowerCase();
  const found = (rows ?? []).filter((row) => [row.addr, row.name, row.user, row.cmd, row.lib, String(row.id), ...row.state].join(" ").toLowerCase().includes(words));
  const kill = async (row) => {
    const asked = await dialog(html`<p>The connection ${row.id} of <code>${row.addr}</code> (${row.name || row.user}) will be closed.</p>`, { title: "Close a connection", action: "Close it", danger: true });
    if (!asked) return;
    const killed = await attempt(() => one(["CLIENT", "KILL", "ID", String(row.id)]), "The connection was closed.");
    if (killed !== undefined) reload();
  };
  const head = (name, label, numeric) => html`<${SortHead} name=${name} label=${label} sort=${sort} onSort=${setSort} numeric=${numeric} />`;
  return html`
    <${Head} title="Clients">
      <label class="check"><input type="checkbox" checked=${every} onChange=${() => setEvery(!every)} />every 2 s</label>
      <div class="searchbox"><${Icon} name="search" /><input type="search" aria-label="Filter" placeholder="Address, name, user, command" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></div>
      <${Button} icon="refresh" only label="Read again" onClick=${reload} />
    </${Head}>
    <${Failure} error=${error} />
    ${rows && html`<section class="card scroll" tabindex="0" aria-label="Connections">
      ${found.length
        ? html`<table>
            <thead><tr>${head("id", "Id", true)}${head("addr", "Address")}${head("name", "Name")}${head("user", "User")}${head("cmd", "Last command")}${head("db", "db", true)}${head("age", "Age", true)}${head("idle", "Idle", true)}${head("memory", "Memory", true)}<th scope="col">State</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
            <tbody>${sorted(found, sort).slice(0, SHOWN).map((row) => html`<tr key=${row.id}>
              <td class="number">${row.id}</td><td class="mono">${row.addr}</td>
              <td>${row.name || html`<span class="note">–</span>`}${row.lib && html` <span class="note">${row.lib}</span>`}</td>
              <td>${row.user}</td><td class="mono">${row.cmd}</td><td class="number">${row.db}</td>
              <td class="number">${duration(row.age)}</td><td class="number">${duration(row.idle)}</td>
              <td class="number">${bytes(row.memory)}${row.unread > 0 && html`<br /><span class="note">${bytes(row.unread)} unread</span>`}</td>
              <td>${row.state.map((state) => html`<span class="badge" key=${state}>${state}</span> `)}</td>
              <td class="actions"><${Button} icon="close" only kind="small danger" label="Close" right="client|kill" session=${session} onClick=${() => kill(row)} /></td>
            </tr>`)}</tbody>
          </table>`
        : html`<${Empty} title="Nobody matches" />`}
    </section>
    <p class="note" role="status">${whole(found.length)} of ${whole(rows.length)} connections${found.length > SHOWN ? `, the first ${whole(SHOWN)} shown` : ""}. Each command of the console is a connection of its own.</p>`}
  `;
}
