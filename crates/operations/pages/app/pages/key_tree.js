// The tree of keys. Keys come in slices of SCAN, and only the rows that are seen are made.
import { all, isError, one, run, text } from "../api.js";
import { bytes, duration, short, whole } from "../format.js";
import { html, useEffect, useMemo, useRef, useState } from "../lib.js";
import { Icon } from "../icons.js";
import { Tree } from "../tree.js";
import { attempt, Button, dialog, Empty, toast } from "../widgets.js";

const ROW = 28;
const SLICE = 1000;
/** Keys that come without being asked for. */
const FIRST = 5000;
/** Keys that a page holds. */
const MOST = 500000;
/** Matches of a pattern whose branches are opened. */
const OPEN_MAX = 200;
const TYPES = ["string", "hash", "list", "set", "zset", "stream"];

/** Text that stands for itself in a pattern. */
const literal = (name) => name.replace(/[*?[\]\\^]/g, "\\$&");

export function KeyTree({ db, session, chosen, changes, onChoose, onGone }) {
  const [pattern, setPattern] = useState("");
  const [type, setType] = useState("");
  const [delimiter, setDelimiter] = useState(":");
  const [progress, setProgress] = useState({ seen: 0, total: 0, done: false, busy: false });
  const [version, setVersion] = useState(0);
  const [open, setOpen] = useState(new Set());
  const [error, setError] = useState(null);
  // The branch at the cursor, if there is one.
  const [branch, setBranch] = useState(null);
  const scan = useRef({ turn: 0, cursor: "0", keys: [] });
  const tree = useRef(new Tree(":"));

  const load = async (wanted, turn = scan.current.turn) => {
    const current = scan.current;
    const until = Math.min(current.keys.length + wanted, MOST);
    setProgress((now) => ({ ...now, busy: true }));
    try {
      do {
        const glob = pattern && (/[*?[]/.test(pattern) ? pattern : `*${pattern}*`);
        const command = ["SCAN", current.cursor, ...(glob ? ["MATCH", glob] : []), "COUNT", String(SLICE), ...(type ? ["TYPE", type] : [])];
        const [cursor, keys] = await one(command, db);
        if (turn !== scan.current.turn) return;
        current.cursor = text(cursor);
        current.keys.push(...keys);
        keys.forEach((key) => tree.current.add(key));
        setVersion((count) => count + 1);
        setProgress((now) => ({ ...now, seen: tree.current.size, done: current.cursor === "0" }));
      } while (current.cursor !== "0" && current.keys.length < until && !current.stop);
    } catch (refused) {
      setError(refused);
    }
    // Few matches are all shown.
    if (pattern && tree.current.size <= OPEN_MAX) setOpen(new Set(tree.current.paths()));
    current.stop = false;
    setProgress((now) => ({ ...now, busy: false }));
  };

  useEffect(() => {
    const timer = setTimeout(() => {
      scan.current = { turn: scan.current.turn + 1, cursor: "0", keys: [] };
      tree.current = new Tree(delimiter);
      setError(null);
      setVersion((count) => count + 1);
      setProgress({ seen: 0, total: 0, done: false, busy: true });
      one(["DBSIZE"], db).then((total) => setProgress((now) => ({ ...now, total })), () => {});
      load(FIRST);
    }, 200);
    return () => clearTimeout(timer);
  }, [pattern, type, db, changes]);
  useEffect(() => () => scan.current.turn++, []);

  const cutAt = (next) => {
    setDelimiter(next);
    tree.current = new Tree(next);
    scan.current.keys.forEach((key) => tree.current.add(key));
    setOpen(new Set());
    setVersion((count) => count + 1);
  };
  const rows = useMemo(() => tree.current.rows(open), [version, open]);
  const toggle = (path, to = !open.has(path)) => {
    const next = new Set(open);
    if (to) next.add(path);
    else next.delete(path);
    setOpen(next);
  };
  const remove = async (path) => {
    const removed = await removeBranch(path, db);
    if (removed) onGone();
  };
  const { seen, total, done, busy } = progress;
  return html`
    <div class="bar-top">
      <div class="searchbox"><${Icon} name="search" /><input type="search" aria-label="Pattern" placeholder="Part of a name, or a pattern: user:*" value=${pattern} onInput=${(event) => setPattern(event.target.value)} /></div>
      <select aria-label="Type" value=${type} onChange=${(event) => setType(event.target.value)}>
        <option value="">all types</option>${TYPES.map((name) => html`<option key=${name}>${name}</option>`)}
      </select>
      <input class="delimiter" aria-label="Delimiter" title="Delimiter" value=${delimiter} maxlength="4" onInput=${(event) => cutAt(event.target.value)} />
    </div>
    ${error && html`<p class="failure" role="alert">${error.message}</p>`}
    ${rows.length || busy
      ? html`<${Rows} rows=${rows} db=${db} session=${session} chosen=${chosen} onChoose=${onChoose} onToggle=${toggle} onRemove=${remove} onBranch=${setBranch} />`
      : !error && html`<${Empty} title=${total ? "Nothing matches" : "No keys"}>${total ? "Another pattern or type may." : `Database ${db} is empty.`}</${Empty}>`}
    <div class="bar-low" role="status">
      <span>${whole(seen)} shown${total > 0 && ` of ${whole(total)} keys`}${busy && "…"}</span>
      ${!done && !busy && html`<${Button} kind="small" label="More" onClick=${() => load(FIRST)} /><${Button} kind="small" label="All" onClick=${() => load(MOST)} />`}
      ${branch && rows.length > 0 && html`<${Button} kind="small danger" icon="trash" label=${`Remove ${branch}*`} right="unlink" session=${session} onClick=${() => remove(branch)} />`}
      ${busy && !done && html`<${Button} kind="small" icon="stop" label="Stop" onClick=${() => (scan.current.stop = true)} />`}
    </div>
  `;
}

/** The part of the rows that is seen. */
function Rows({ rows, db, session, chosen, onChoose, onToggle, onRemove, onBranch }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  const details = useDetails(rows, top, height, db, session);
  useEffect(() => {
    const resized = new ResizeObserver(() => setHeight(box.current?.clientHeight ?? 0));
    resized.observe(box.current);
    return () => resized.disconnect();
  }, []);
  const at = Math.min(active, rows.length - 1);
  const path = rows[at]?.branch?.path ?? null;
  useEffect(() => onBranch(path), [path]);
  const go = (next) => {
    const clamped = Math.max(0, Math.min(rows.length - 1, next));
    setActive(clamped);
    const { current } = box;
    if (clamped * ROW < current.scrollTop) current.scrollTop = clamped * ROW;
    if ((clamped + 1) * ROW > current.scrollTop + current.clientHeight) current.scrollTop = (clamped + 1) * ROW - current.clientHeight;
  };
  const enter = (row) => (row.branch ? onToggle(row.branch.path) : onChoose(row.leaf.key));
  const parentOf = (index) => rows.findLastIndex((row, before) => before < index && row.depth < rows[index].depth);
  const pressed = (event) => {
    const row = rows[at];
    const page = Math.floor(height / ROW) - 1;
    const actions = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + page),
      PageUp: () => go(at - page),
      Home: () => go(0),
      End: () => go(rows.length - 1),
      Enter: () => enter(row),
      " ": () => enter(row),
      ArrowRight: () => (row.branch && !row.isOpen ? onToggle(row.branch.path, true) : go(at + 1)),
      ArrowLeft: () => (row.branch && row.isOpen ? onToggle(row.branch.path, false) : go(Math.max(parentOf(at), 0))),
      Delete: () => row.branch && session.rights.includes("unlink") && onRemove(row.branch.path),
    };
    const action = row && actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  const first = Math.max(0, Math.floor(top / ROW) - 8);
  const shown = rows.slice(first, Math.ceil((top + height) / ROW) + 8);
  return html`<div class="tree" ref=${box} role="tree" aria-label="Keys" tabindex="0" aria-activedescendant=${rows.length ? `row-${at}` : undefined}
      onKeyDown=${pressed} onScroll=${(event) => setTop(event.target.scrollTop)}>
    <div role="none" style=${{ height: `${rows.length * ROW}px` }}>
      ${shown.map((row, offset) => html`<${Row} key=${row.id} row=${row} index=${first + offset} isActive=${first + offset === at}
        isChosen=${row.leaf && chosen !== null && row.leaf.key === chosen} detail=${details.get(row.id)}
        onEnter=${() => { setActive(first + offset); enter(row); }} />`)}
    </div>
  </div>`;
}

function Row({ row, index, isActive, isChosen, detail, onEnter }) {
  const style = { top: `${index * ROW}px`, paddingLeft: `${10 + row.depth * 17}px` };
  const { branch, leaf } = row;
  const shape = branch ? { "aria-expanded": String(row.isOpen) } : { "aria-selected": String(!!isChosen) };
  return html`<div role="treeitem" id=${`row-${index}`} aria-level=${row.depth + 1} class=${`${isActive ? "active" : ""} ${branch ? "branch" : ""}`} style=${style} ...${shape} onClick=${onEnter}>
    ${branch
      ? html`<svg class="icon twist" viewBox="0 0 24 24" aria-hidden="true"><path d="M9 5l7 7-7 7" /></svg><span class="name">${branch.name || "(empty)"}</span><span class="count">${short(branch.count)}</span>`
      : html`<span class="type ${detail?.type ?? ""}" title=${detail?.type}></span><span class="name" title=${leaf.full}>${leaf.name || "(empty)"}</span>
          ${detail?.ttl >= 0 && html`<span class="ttl">${duration(detail.ttl / 1000)}</span>`}${detail?.size > 0 && html`<span class="size">${bytes(detail.size)}</span>`}`}
  </div>`;
}

/** Type, TTL and size of the keys that are seen. */
function useDetails(rows, top, height, db, session) {
  const known = useRef(new Map());
  const [, show] = useState(0);
  useEffect(() => {
    const timer = setTimeout(async () => {
      const seen = rows.slice(Math.floor(top / ROW), Math.ceil((top + height) / ROW));
      const missing = seen.filter((row) => row.leaf && !known.current.has(row.id));
      if (!missing.length) return;
      const sizes = session.rights.includes("memory|usage");
      const each = sizes ? 3 : 2;
      const commands = missing.flatMap(({ leaf: { key } }) => [["TYPE", key], ["PTTL", key], ...(sizes ? [["MEMORY", "USAGE", key]] : [])]);
      const { replies } = await run(commands, db).catch(() => ({ replies: [] }));
      missing.forEach((row, at) => {
        const [type, ttl, size] = replies.slice(at * each, at * each + each);
        if (type !== undefined && !isError(type)) known.current.set(row.id, { type: text(type), ttl: Number(ttl), size: sizes && !isError(size) ? size : 0 });
      });
      show((count) => count + 1);
    }, 120);
    return () => clearTimeout(timer);
  }, [rows, top, height]);
  return known.current;
}

/** Removes all keys whose names begin so, once somebody has written how. */
async function removeBranch(path, db) {
  const asked = await dialog(
    html`<p>All keys of database ${db} that begin with <code>${path}</code> will be removed, also those that are not shown. Write the beginning to confirm:</p>
      <input name="path" aria-label="Beginning" autocomplete="off" required />`,
    { title: "Remove a branch", action: "Remove", danger: true },
  );
  if (!asked) return false;
  if (asked.path !== path) {
    toast("That is not the beginning; nothing was removed.", "bad");
    return false;
  }
  let removed = 0;
  const done = await attempt(async () => {
    let cursor = "0";
    do {
      const [next, keys] = await one(["SCAN", cursor, "MATCH", `${literal(path)}*`, "COUNT", String(SLICE)], db);
      cursor = text(next);
      const replies = keys.length ? await all([["UNLINK", ...keys]], db) : [];
      for (const reply of replies) {
        if (isError(reply)) throw new Error(reply.error);
        removed += reply;
      }
    } while (cursor !== "0");
  });
  if (removed) toast(`${whole(removed)} keys were removed.`);
  return done && removed > 0;
}
