// A reply of any shape, as people read it.
import { escaped, text } from "./api.js";
import { html } from "./lib.js";

/** Elements of one array that are shown. */
const SHOWN = 500;

export function Reply({ value }) {
  if (value === null) return html`<span class="nil">(nil)</span>`;
  if (typeof value === "number") return html`<span class="n">${value}</span>`;
  if (typeof value === "boolean") return html`<span class="n">${String(value)}</span>`;
  if (typeof value === "string") return html`<span class="s">${value === "" ? '""' : value}</span>`;
  if (Array.isArray(value)) return html`<${List} values=${value} />`;
  if ("error" in value) return html`<span class="err">${value.error}</span>`;
  if ("status" in value) return html`<span class="ok">${value.status}</span>`;
  if ("bytes" in value) return html`<span class="b">${escaped(value.bytes)}</span>`;
  if ("set" in value || "push" in value) return html`<${List} values=${value.set ?? value.push} />`;
  if ("map" in value) return html`<${Pairs} pairs=${value.map} />`;
  return html`<span class="n">${text(value)}</span>`;
}

const Rest = ({ count }) => count > SHOWN && html`<div class="nil">… ${count - SHOWN} more</div>`;

function List({ values }) {
  if (!values.length) return html`<span class="nil">(empty)</span>`;
  return html`<ol>${values.slice(0, SHOWN).map((value, at) => html`<li key=${at}><div><${Reply} value=${value} /></div></li>`)}</ol><${Rest} count=${values.length} />`;
}

function Pairs({ pairs }) {
  if (!pairs.length) return html`<span class="nil">(empty)</span>`;
  return html`<dl>${pairs.slice(0, SHOWN).map(([key, value], at) => html`<dt key=${`k${at}`} class="k">${text(key)}</dt><dd key=${`v${at}`}><${Reply} value=${value} /></dd>`)}</dl><${Rest} count=${pairs.length} />`;
}
