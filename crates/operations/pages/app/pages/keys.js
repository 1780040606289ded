// Keys: a tree, what is large, what is hot, and the value of the chosen one.
import { html, useState } from "../lib.js";
import { Head, Tabs } from "../widgets.js";
import { KeyTree } from "./key_tree.js";
import { BigKeys, HotKeys } from "./key_finds.js";
import { KeyValue } from "./key_value.js";
import { askNewKey } from "./key_new.js";
import { Button, Empty } from "../widgets.js";
import { identity } from "../api.js";

const VIEWS = [["tree", "Tree"], ["big", "Big"], ["hot", "Hot"]];

export function Keys({ session }) {
  const [db, setDb] = useState(0);
  const [view, setView] = useState("tree");
  const [chosen, setChosen] = useState(null);
  // Counts up when keys have come or gone.
  const [changes, setChanges] = useState(0);
  const changed = (key) => {
    setChosen(key);
    setChanges((count) => count + 1);
  };
  const add = async () => {
    const key = await askNewKey(db);
    if (key !== undefined && key !== null) changed(key);
  };
  const choose = (next) => {
    setDb(next);
    setChosen(null);
  };
  const List = { tree: KeyTree, big: BigKeys, hot: HotKeys }[view];
  return html`
    <${Head} title="Keys">
      <${Tabs} label="Which keys" value=${view} options=${VIEWS} onChange=${setView} />
      <select aria-label="Database" value=${db} onChange=${(event) => choose(Number(event.target.value))}>
        ${Array.from({ length: session.databases }, (_, number) => html`<option key=${number} value=${number}>db ${number}</option>`)}
      </select>
      <${Button} icon="plus" label="New key" right="set" session=${session} onClick=${add} />
    </${Head}>
    <div class="panes">
      <section class="card" aria-label="Keys">
        <${List} key=${`${view}${db}`} db=${db} session=${session} chosen=${chosen} changes=${changes} onChoose=${setChosen} onGone=${() => changed(null)} />
      </section>
      <section class="card" aria-label="Value">
        ${chosen === null
          ? html`<${Empty} title="No key is chosen">Choose one on the left: arrow keys and Enter work, too.</${Empty}>`
          : html`<${KeyValue} key=${`${db}${identity(chosen)}`} db=${db} name=${chosen} session=${session} onRenamed=${changed} onGone=${() => changed(null)} />`}
      </section>
    </div>
  `;
}
