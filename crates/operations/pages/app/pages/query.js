// Commands and scripts, as the user who is logged in.
import { one, pairs, run, text } from "../api.js";
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Reply } from "../reply.js";
import { attempt, Button, Head, Tabs } from "../widgets.js";
import { words } from "../words.js";

const HISTORY = "ladon-console-history";
const HISTORY_MAX = 100;
const RESULTS_MAX = 50;

/** Lines with secrets are not kept. */
const isSecret = (line) => /^\s*(auth|hello|migrate|acl\s+setuser|config\s+set\s+\S*(pass|auth))/i.test(line);

function useHistory() {
  const [lines, setLines] = useState(() => {
    try {
      return JSON.parse(localStorage.getItem(HISTORY)) ?? [];
    } catch {
      return [];
    }
  });
  const keep = (next) => {
    setLines(next);
    try {
      localStorage.setItem(HISTORY, JSON.stringify(next));
    } catch {
      // It lasts as long as the page.
    }
  };
  const add = (line) => {
    if (!isSecret(line)) keep([line, ...lines.filter((other) => other !== line)].slice(0, HISTORY_MAX));
  };
  return [lines, add, () => keep([])];
}

export function Query({ session }) {
  const [mode, setMode] = useState("commands");
  const [db, setDb] = useState(0);
  const [results, setResults] = useState([]);
  const [busy, setBusy] = useState(false);
  const [draft, setDraft] = useState("PING");
  const [past, remember, forget] = useHistory();
  const next = useRef(0);

  /** Runs commands, and shows each under its own words. */
  const submit = async (titles, commands, kept) => {
    setBusy(true);
    await attempt(async () => {
      const { replies, ms, cut } = await run(commands, db);
      const shown = replies.map((reply, at) => ({ id: ++next.current, title: titles[at], reply, ms, count: commands.length }));
      if (cut) shown.push({ id: ++next.current, title: titles[replies.length] ?? "", reply: { error: cut }, ms, count: commands.length });
      setResults((before) => [...shown, ...before].slice(0, Math.max(RESULTS_MAX, shown.length)));
      remember(kept);
    });
    setBusy(false);
  };
  return html`
    <${Head} title="Query">
      <${Tabs} label="What to run" value=${mode} options=${[["commands", "Commands"], ["lua", "Lua"]]} onChange=${setMode} />
      <select aria-label="Database" value=${db} onChange=${(event) => setDb(Number(event.target.value))}>
        ${Array.from({ length: session.databases }, (_, number) => html`<option key=${number} value=${number}>db ${number}</option>`)}
      </select>
    </${Head}>
    <div class="query">
      <div class="results">
        ${mode === "commands"
          ? html`<${Commands} draft=${draft} setDraft=${setDraft} busy=${busy} onRun=${submit} past=${past} />`
          : html`<${Lua} session=${session} busy=${busy} onRun=${submit} />`}
        ${results.length > 0 && html`<div class="line"><h2>Replies</h2><${Button} kind="small" icon="trash" label="Clear" onClick=${() => setResults([])} /></div>`}
        ${results.map((result) => html`<section class="card result" key=${result.id} aria-label=${`Reply to ${result.title}`}>
          <header><code>${result.title}</code><span class="note">${result.ms} ms${result.count > 1 ? ` for ${result.count}` : ""}</span></header>
          <div class="reply" tabindex="0"><${Reply} value=${result.reply} /></div>
        </section>`)}
      </div>
      <section class="card" aria-label="History"><header><h2>History</h2>${past.length > 0 && html`<span class="note"><${Button} kind="small" label="Forget" onClick=${forget} /></span>`}</header>
        <div class="past">${past.map((line) => html`<button type="button" key=${line} title=${line} onClick=${() => { setMode("commands"); setDraft(line); }}>${line}</button>`)}
          ${!past.length && html`<span class="note pad">What you run is kept in this browser, without what looks like a password.</span>`}</div>
      </section>
    </div>
  `;
}

function Commands({ draft, setDraft, busy, onRun, past }) {
  const box = useRef(null);
  const [help, setHelp] = useState(null);
  const [at, setAt] = useState(-1);
  const first = useMemo(() => currentLine(draft, box.current?.selectionStart ?? draft.length).trim().split(/\s+/).slice(0, 2), [draft]);
  useEffect(() => {
    const timer = setTimeout(async () => setHelp(await syntaxOf(first)), 250);
    return () => clearTimeout(timer);
  }, [first.join(" ")]);
  const submit = () => attempt(async () => {
    const lines = draft.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
    if (!lines.length) return;
    setAt(-1);
    await onRun(lines, lines.map(words), draft.trim());
  });
  const pressed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey || !(event.shiftKey || draft.includes("\n")))) {
      event.preventDefault();
      submit();
    }
    const older = event.key === "ArrowUp" && !draft.slice(0, event.target.selectionStart).includes("\n");
    const newer = event.key === "ArrowDown" && !draft.slice(event.target.selectionEnd).includes("\n");
    if (!(older || newer) || !past.length) return;
    const next = Math.max(-1, Math.min(past.length - 1, at + (older ? 1 : -1)));
    event.preventDefault();
    setAt(next);
    setDraft(next < 0 ? "" : past[next]);
  };
  return html`<section class="card editor" aria-label="Commands">
    <textarea ref=${box} aria-label="Commands, one a line" spellcheck="false" autocapitalize="off" rows="5" value=${draft} onInput=${(event) => setDraft(event.target.value)} onKeyDown=${pressed}></textarea>
    <div class="help" aria-live="polite">${help ? html`<code>${help.syntax}</code> ${help.summary}` : "One command a line; quotes as in redis-cli. Enter runs a single line, Ctrl+Enter all of them, the arrows bring back earlier ones."}</div>
    <div class="line"><${Button} kind="primary" icon="play" label=${busy ? "Running…" : "Run"} disabled=${busy || !draft.trim()} onClick=${submit} /><span class="note">Each run is a connection of its own: MULTI to EXEC have to be in one run.</span></div>
  </section>`;
}

const currentLine = (draft, at) => draft.slice(draft.lastIndexOf("\n", at - 1) + 1).split("\n")[0];

const known = new Map();

/** What COMMAND DOCS says of a command: its arguments in one line, and its summary. */
async function syntaxOf([name, second]) {
  if (!name || !/^[a-z.]+$/i.test(name)) return null;
  const wanted = name.toLowerCase();
  if (!known.has(wanted)) {
    const reply = await one(["COMMAND", "DOCS", wanted]).catch(() => null);
    known.set(wanted, reply ? pairs(reply)[0]?.[1] : null);
  }
  const facts = (docs) => new Map(pairs(docs).map(([key, value]) => [text(key), value]));
  let docs = known.get(wanted);
  if (!docs) return null;
  let title = wanted.toUpperCase();
  const subcommands = facts(docs).get("subcommands");
  const sub = second && subcommands && pairs(subcommands).find(([full]) => text(full) === `${wanted}|${second.toLowerCase()}`);
  if (sub) {
    docs = sub[1];
    title += ` ${second.toUpperCase()}`;
  }
  const all = facts(docs);
  return { syntax: [title, ...(all.get("arguments") ?? []).map(argument)].join(" "), summary: text(all.get("summary")) };
}

/** One argument of COMMAND DOCS, as manuals write it. */
function argument(docs) {
  const facts = new Map(pairs(docs).map(([key, value]) => [text(key), value]));
  const flags = (facts.get("flags")?.set ?? facts.get("flags") ?? []).map(text);
  const token = facts.has("token") ? text(facts.get("token")) : "";
  const inner = facts.get("arguments");
  const type = text(facts.get("type"));
  let shown = text(facts.get("display_text") ?? facts.get("name"));
  if (type === "pure-token") shown = "";
  if (inner) shown = inner.map(argument).join(type === "oneof" ? " | " : " ");
  let full = [token, shown].filter(Boolean).join(" ");
  if (flags.includes("multiple")) full = `${full} [${full} …]`;
  return flags.includes("optional") ? `[${full}]` : type === "oneof" ? `<${full}>` : full;
}

function Lua({ session, busy, onRun }) {
  const [script, setScript] = useState("-- KEYS and ARGV are the script's\nreturn redis.call('DBSIZE')");
  const [keys, setKeys] = useState("");
  const [args, setArgs] = useState("");
  const submit = () => attempt(async () => {
    const names = words(keys);
    const command = ["EVAL", script, String(names.length), ...names, ...words(args)];
    await onRun([`EVAL ${script.split("\n").find((line) => line.trim() && !line.startsWith("--")) ?? ""}`], [command], `EVAL '${script.replace(/\n/g, " ")}' ${names.length} ${keys} ${args}`.trim());
  });
  const pressed = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submit();
    }
  };
  return html`<section class="card editor" aria-label="Script">
    <textarea aria-label="Script" spellcheck="false" rows="10" value=${script} onInput=${(event) => setScript(event.target.value)} onKeyDown=${pressed}></textarea>
    <div class="two">
      <label class="field"><span>KEYS</span><input class="mono" value=${keys} placeholder="key1 key2" onInput=${(event) => setKeys(event.target.value)} /></label>
      <label class="field"><span>ARGV</span><input class="mono" value=${args} placeholder='1 "two words"' onInput=${(event) => setArgs(event.target.value)} /></label>
    </div>
    <div class="line"><${Button} kind="primary" icon="play" label=${busy ? "Running…" : "Run"} right="eval" session=${session} disabled=${busy} onClick=${submit} /><span class="note">Ctrl+Enter runs it, too.</span></div>
  </section>`;
}
