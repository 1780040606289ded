// Every setting, where its value came from, and what it means.
import { one, settings } from "../api.js";
import { html, useState } from "../lib.js";
import { Icon } from "../icons.js";
import { attempt, Button, dialog, Empty, Failure, Field, Head, useLoaded } from "../widgets.js";

export function Settings({ session }) {
  const [all, error, reload] = useLoaded(settings);
  const [filter, setFilter] = useState("");
  const [changedOnly, setChangedOnly] = useState(false);
  const words = filter.toLowerCase().split(" ").filter(Boolean);
  const matches = (setting) => {
    const text = `${setting.name} ${setting.aliases.join(" ")} ${setting.doc} ${setting.value} ${setting.origin}`.toLowerCase();
    return words.every((word) => text.includes(word)) && (!changedOnly || setting.origin !== "default");
  };
  const found = (all ?? []).filter(matches);
  const sections = [...new Set(found.map((setting) => setting.section))];
  const change = async (setting) => {
    const asked = await dialog(
      html`<p>${setting.doc}</p><${Field} label=${setting.name} name="value" value=${setting.value ?? ""} type=${setting.value === null ? "password" : "text"} autocomplete="off" spellcheck="false" hint=${`Default: ${setting.default || "empty"}`} />
        <p class="note">This lasts until the next start; CONFIG REWRITE keeps it.</p>`,
      { title: "Change a setting", action: "Set" },
    );
    if (asked && (await attempt(() => one(["CONFIG", "SET", setting.name, asked.value]), `${setting.name} is set.`))) reload();
  };
  return html`
    <${Head} title="Settings">
      <label class="check"><input type="checkbox" checked=${changedOnly} onChange=${() => setChangedOnly(!changedOnly)} />only those that somebody set</label>
      <div class="searchbox"><${Icon} name="search" /><input type="search" aria-label="Filter" placeholder="Name, meaning, value, origin" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></div>
    </${Head}>
    <${Failure} error=${error} />
    ${all && !found.length && html`<div class="card"><${Empty} title="Nothing matches" /></div>`}
    ${sections.map((section) => html`<h2 class="section-title" key=${`h${section}`}>${section}</h2>
      <section class="card" key=${section} aria-label=${section}>
        ${found.filter((setting) => setting.section === section).map((setting) => html`<${Setting} key=${setting.name} setting=${setting} session=${session} onChange=${() => change(setting)} />`)}
      </section>`)}
  `;
}

function Setting({ setting, session, onChange }) {
  const { name, aliases, value, origin, live, doc } = setting;
  const isSet = origin !== "default";
  return html`<div class="setting ${isSet ? "changed" : ""}">
    <div>
      <div class="title">${name}${!live && html`<span class="badge">at start</span>`}${isSet && html`<span class="badge gold">${origin}</span>`}</div>
      <div class="doc"><${Doc} text=${doc} />${aliases.length > 0 && html` <span class="alias">Also ${aliases.join(", ")}.</span>`}</div>
    </div>
    <div class="value">${value === null ? "••••••••" : value === "" ? html`<span class="note">empty</span>` : value}</div>
    <${Button} icon="edit" only kind="small" label=${live ? `Change ${name}` : `${name} changes at a start only`} right="config|set" session=${session} disabled=${!live} onClick=${onChange} />
  </div>`;
}

/** Words in backticks are code. */
const Doc = ({ text }) => html`${text.split("`").map((part, at) => (at % 2 ? html`<code key=${at}>${part}</code>` : part))}`;
