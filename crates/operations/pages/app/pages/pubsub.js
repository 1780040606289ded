// Messages of channels as they come.
import { all, items, one, pairs, text } from "../api.js";
import { bytes, clock, whole } from "../format.js";
import { html, useEffect, useRef, useState } from "../lib.js";
import { Icon } from "../icons.js";
import { attempt, Button, Empty, Field, Head, useEvery, useLoaded } from "../widgets.js";

/** Messages that the page keeps. */
const KEPT = 1000;

const isPattern = (name) => /[*?[]/.test(name);

export function PubSub({ session }) {
  const [names, setNames] = useState([]);
  const [draft, setDraft] = useState("");
  const { messages, leftOut, state, clear } = useTail(names);
  const add = (name) => {
    setDraft("");
    if (name && !names.includes(name)) setNames([...names, name]);
  };
  const mayListen = session.rights.includes("subscribe") || session.rights.includes("psubscribe");
  return html`
    <${Head} title="Pub/Sub">
      <span class="state ${state.kind}" role="status"><i></i>${state.text}</span>
      <${Button} icon="trash" label="Clear" onClick=${clear} disabled=${!messages.length} />
    </${Head}>
    <div class="query fill">
      <section class="card stream" aria-label="Messages">
        <form class="bar-top" onSubmit=${(event) => { event.preventDefault(); add(draft.trim()); }}>
          <div class="searchbox"><${Icon} name="pubsub" /><input aria-label="Channel or pattern" placeholder="A channel, or a pattern: news.*" value=${draft} disabled=${!mayListen} onInput=${(event) => setDraft(event.target.value)} /></div>
          <button class="button primary" disabled=${!mayListen || !draft.trim()}>Listen</button>
        </form>
        ${names.length > 0 && html`<div class="bar-top chips">${names.map((name) => html`<span class="chip" key=${name}>${name}
          <button type="button" aria-label=${`Stop listening to ${name}`} onClick=${() => setNames(names.filter((other) => other !== name))}><${Icon} name="close" /></button></span>`)}</div>`}
        ${messages.length
          ? html`<div class="scroll" tabindex="0" role="log" aria-label="Messages"><table>
              <thead><tr><th scope="col" class="number">At</th><th scope="col">Channel</th><th scope="col">Message</th><th scope="col" class="number">Size</th></tr></thead>
              <tbody>${messages.map((message) => html`<tr key=${message.id}><td class="number">${clock(message.at)}</td><td class="mono">${message.channel}</td><td class="mono wrap">${message.text}</td><td class="number">${bytes(message.size)}</td></tr>`)}</tbody>
            </table></div>`
          : html`<${Empty} title=${names.length ? "No message yet" : "Listening to nothing"}>${names.length ? "Messages show up as they come." : "Keyspace events are messages, too: __keyevent@0__:* once notify-keyspace-events is set."}</${Empty}>`}
        ${leftOut > 0 && html`<div class="bar-low" role="status">${whole(leftOut)} messages came too fast to be shown</div>`}
      </section>
      <div class="results">
        <${Publish} session=${session} />
        <${Channels} onChoose=${add} />
      </div>
    </div>
  `;
}

/** Listens to channels, on a connection of the server's own. */
function useTail(names) {
  const [messages, setMessages] = useState([]);
  const [leftOut, setLeftOut] = useState(0);
  const [state, setState] = useState({ kind: "", text: "not listening" });
  const next = useRef(0);
  useEffect(() => {
    if (!names.length) {
      setState({ kind: "", text: "not listening" });
      return undefined;
    }
    const query = names.map((name) => `${isPattern(name) ? "pattern" : "channel"}=${encodeURIComponent(name)}`).join("&");
    const source = new EventSource(`api/tail?${query}`);
    let waiting = [];
    // A page that draws each message of a flood draws nothing else.
    const timer = setInterval(() => {
      if (!waiting.length) return;
      const news = waiting.reverse();
      waiting = [];
      setMessages((before) => [...news, ...before].slice(0, KEPT));
    }, 150);
    setState({ kind: "", text: "connecting" });
    source.addEventListener("open", () => setState({ kind: "live", text: "listening" }));
    source.addEventListener("message", (event) => {
      const [channel, , message, size] = JSON.parse(event.data);
      waiting.push({ id: ++next.current, at: Date.now(), channel: text(channel), text: text(message), size });
    });
    source.addEventListener("left_out", (event) => setLeftOut((count) => count + Number(event.data)));
    source.addEventListener("end", (event) => {
      source.close();
      setState({ kind: "lost", text: JSON.parse(event.data) });
    });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) return setState({ kind: "lost", text: "connection lost, trying again" });
      // The reason is in the answer, which an EventSource does not show.
      fetch(`api/tail?${query}`).then(async (answer) => {
        const why = answer.ok ? "connection lost" : (await answer.json()).error;
        setState({ kind: "lost", text: why });
      }, () => setState({ kind: "lost", text: "the server cannot be reached" }));
      return undefined;
    });
    return () => {
      clearInterval(timer);
      source.close();
    };
  }, [names]);
  const clear = () => {
    setMessages([]);
    setLeftOut(0);
  };
  return { messages, leftOut, state, clear };
}

function Publish({ session }) {
  const send = async (event) => {
    event.preventDefault();
    const { channel, message } = Object.fromEntries(new FormData(event.target));
    await attempt(async () => {
      const count = await one(["PUBLISH", channel, message]);
      return count;
    }, "Published.");
  };
  return html`<section class="card"><header><h2>Publish</h2></header>
    <form class="editor" onSubmit=${send}>
      <${Field} label="Channel" name="channel" required autocomplete="off" />
      <${Field} label="Message" name="message" as="textarea" rows="3" />
      <button class="button" disabled=${!session.rights.includes("publish")}>Publish</button>
    </form>
  </section>`;
}

function Channels({ onChoose }) {
  const [rows, error, reload] = useLoaded(async () => {
    const names = items(await one(["PUBSUB", "CHANNELS"])).slice(0, 200);
    const [counts] = names.length ? await all([["PUBSUB", "NUMSUB", ...names]]) : [[]];
    return names.map((name, at) => ({ name: text(name), count: pairs(counts)[at]?.[1] }));
  });
  useEvery(5000, reload, []);
  return html`<section class="card"><header><h2>Channels with subscribers</h2></header>
    ${error ? html`<p class="note pad">${error.message}</p>` : html`<div class="past">
      ${(rows ?? []).map(({ name, count }) => html`<button type="button" key=${name} onClick=${() => onChoose(name)}>${name} <span class="note">${count}</span></button>`)}
      ${rows && !rows.length && html`<span class="note pad">none</span>`}
    </div>`}
  </section>`;
}
