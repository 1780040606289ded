// A string: as text, as JSON, as bytes.
import { attempt, Button, Empty, Failure, Tabs, useLoaded } from "../widgets.js";
import { html, useEffect, useState } from "../lib.js";
import { isBytes, one, text } from "../api.js";
import { bytes, whole } from "../format.js";

/** Bytes that are read of a string. */
const SHOWN = 256 * 1024;

function prettyJson(value) {
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return null;
  }
}

/** Sixteen bytes a line, with their letters. */
function hexDump(value) {
  const all = isBytes(value) ? Uint8Array.from(atob(value.bytes), (letter) => letter.charCodeAt(0)) : new TextEncoder().encode(text(value));
  const lines = [];
  for (let at = 0; at < Math.min(all.length, 16384); at += 16) {
    const some = [...all.slice(at, at + 16)];
    const hex = some.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = some.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

export function StringValue({ db, name, length, session, onChanged }) {
  const isCut = length > SHOWN;
  const [value, error, reload] = useLoaded(() => one(isCut ? ["GETRANGE", name, "0", String(SHOWN - 1)] : ["GET", name], db), [length]);
  const [view, setView] = useState("text");
  const [draft, setDraft] = useState(null);
  const pretty = value !== undefined && !isBytes(value) ? prettyJson(text(value)) : null;
  useEffect(() => {
    if (value === undefined) return;
    setDraft(null);
    setView(isBytes(value) ? "hex" : pretty !== null && /^[[{]/.test(text(value).trimStart()) ? "json" : "text");
  }, [value]);
  if (error) return html`<${Failure} error=${error} />`;
  if (value === undefined) return html`<div aria-busy="true"></div>`;
  if (value === null) return html`<${Empty} title="The key is gone" />`;
  const views = [["text", "Text"], ...(pretty !== null ? [["json", "JSON"]] : []), ["hex", "Bytes"]];
  const canEdit = !isBytes(value) && !isCut && view === "text" && session.rights.includes("set");
  const save = async () => {
    const done = await attempt(() => one(["SET", name, draft, "KEEPTTL", "XX"], db), "Saved.");
    if (done) {
      setDraft(null);
      reload();
      onChanged();
    }
  };
  return html`
    <div class="bar-top">
      <${Tabs} label="Shown as" value=${view} options=${views} onChange=${setView} />
      <span class="note">${isCut ? `the first ${bytes(SHOWN)} of ${bytes(length)}, to be read only` : isBytes(value) ? `${whole(length)} bytes that are no text` : ""}</span>
    </div>
    ${view === "text"
      ? html`<textarea aria-label="Value" spellcheck="false" readonly=${!canEdit} value=${draft ?? text(value)} onInput=${(event) => setDraft(event.target.value)}></textarea>`
      : html`<pre tabindex="0">${view === "json" ? pretty : hexDump(value)}</pre>`}
    <div class="bar-low">
      <span>${draft !== null && draft !== text(value) ? "not saved" : ""}</span>
      <${Button} kind="small" label="Undo" disabled=${draft === null} onClick=${() => setDraft(null)} />
      <${Button} kind="small primary" icon="save" label="Save" right="set" session=${session} disabled=${!canEdit || draft === null || draft === text(value)} onClick=${save} />
    </div>
  `;
}
