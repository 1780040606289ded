// One key: what it is, and its value.
import { all, checked, isError, one, text } from "../api.js";
import { bytes, duration, whole } from "../format.js";
import { html } from "../lib.js";
import { attempt, Button, dialog, Empty, Failure, Field, toast, useLoaded } from "../widgets.js";
import { StringValue } from "./value_string.js";
import { Elements, VIEWS } from "./value_elements.js";

const LENGTH = { string: "STRLEN", hash: "HLEN", list: "LLEN", set: "SCARD", zset: "ZCARD", stream: "XLEN" };

async function describe(name, db) {
  const type = text(await one(["TYPE", name], db));
  if (type === "none") return { type };
  const commands = [["PTTL", name], ["OBJECT", "ENCODING", name], ["MEMORY", "USAGE", name]];
  if (LENGTH[type]) commands.push([LENGTH[type], name]);
  const [ttl, encoding, size, length] = await all(commands, db);
  const figure = (reply) => (typeof reply === "number" ? reply : undefined);
  return { type, ttl: figure(ttl) ?? -1, encoding: isError(encoding) ? undefined : text(encoding), size: figure(size), length: figure(length) };
}

export function KeyValue({ db, name, session, onRenamed, onGone }) {
  const [key, error, reload] = useLoaded(() => describe(name, db));
  if (error) return html`<div class="value-head"><${Failure} error=${error} /></div>`;
  if (!key) return html`<div aria-busy="true"></div>`;
  if (key.type === "none") return html`<${Empty} title="The key is gone">It was removed, or its time was over.</${Empty}>`;
  const act = (commands, done) => attempt(async () => (await all(commands, db)).forEach(checked), done);
  const rename = async () => {
    const asked = await dialog(html`<${Field} label="New name" name="name" value=${text(name)} required autocomplete="off" />`, { title: "Rename", action: "Rename" });
    if (!asked) return;
    const moved = await attempt(() => one(["RENAMENX", name, asked.name], db));
    if (moved === 1) onRenamed(asked.name);
    else if (moved !== undefined) toast("There is a key of this name.", "bad");
  };
  const remove = async () => {
    const asked = await dialog(html`<p><code>${text(name)}</code> will be removed.</p>`, { title: "Remove the key", action: "Remove", danger: true });
    if (asked && (await act([["UNLINK", name]], "The key was removed."))) onGone();
  };
  const expire = async () => {
    const seconds = key.ttl >= 0 ? Math.ceil(key.ttl / 1000) : "";
    const asked = await dialog(html`<${Field} label="Seconds from now" name="seconds" type="number" min="1" value=${seconds} hint="Nothing for no expiry." />`, { title: "Time to live" });
    if (!asked) return;
    const command = asked.seconds ? ["EXPIRE", name, asked.seconds] : ["PERSIST", name];
    if (await act([command])) reload();
  };
  const copy = () => attempt(() => navigator.clipboard.writeText(text(name)), "The name was copied.");
  const changed = (gone) => (gone ? onGone() : reload());
  return html`
    <div class="value-head">
      <div class="line">
        <span class="badge ${key.type}">${key.type}</span><span class="name">${text(name)}</span>
        <${Button} icon="copy" only kind="small" label="Copy the name" onClick=${copy} />
        <${Button} icon="refresh" only kind="small" label="Read again" onClick=${reload} />
        <${Button} icon="edit" only kind="small" label="Rename" right="renamenx" session=${session} onClick=${rename} />
        <${Button} icon="trash" only kind="small danger" label="Remove" right="unlink" session=${session} onClick=${remove} />
      </div>
      <div class="meta">
        ${key.length !== undefined && html`<span><b>${whole(key.length)}</b> ${key.type === "string" ? "bytes" : "elements"}</span>`}
        ${key.size !== undefined && html`<span><b>${bytes(key.size)}</b> of memory</span>`}
        ${key.encoding && html`<span>${key.encoding}</span>`}
        <span>${key.ttl >= 0 ? html`expires in <b>${duration(key.ttl / 1000)}</b>` : "no expiry"}</span>
        <${Button} kind="small" label="TTL" right="expire" session=${session} onClick=${expire} />
      </div>
    </div>
    <div class="value-body">
      ${key.type === "string"
        ? html`<${StringValue} db=${db} name=${name} length=${key.length} session=${session} onChanged=${reload} />`
        : VIEWS[key.type]
          ? html`<${Elements} view=${VIEWS[key.type]} db=${db} name=${name} length=${key.length} session=${session} onChanged=${changed} />`
          : html`<${Empty} title=${`No view for ${key.type}`}>The Query page runs its commands.</${Empty}>`}
    </div>
  `;
}
