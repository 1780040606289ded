// Parts that several pages use.
import { html, render, useEffect, useRef, useState } from "./lib.js";
import { Icon } from "./icons.js";

/** A button with an icon. `right` is the command that it needs; without it, it says so. */
export function Button({ icon, label, right, session, kind = "", only, disabled, ...rest }) {
  const lacks = right && !session.rights.includes(right);
  const title = lacks ? `${session.user} may not run ${right.replace("|", " ").toUpperCase()}` : only ? label : undefined;
  return html`<button type="button" class="button ${kind} ${only ? "only" : ""}" title=${title}
    aria-label=${only ? label : undefined} disabled=${disabled || lacks} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${!only && label}
  </button>`;
}

/** Nothing to see, and why. */
export const Empty = ({ title, children }) => html`<div class="empty"><strong>${title}</strong>${children && html`<p>${children}</p>`}</div>`;

/** An error where its subject would be. */
export const Failure = ({ error }) => error && html`<p class="failure" role="alert">${error.message ?? error}</p>`;

/** The head of a page. */
export const Head = ({ title, children }) => html`<header class="head"><h1>${title}</h1><div class="tools">${children}</div></header>`;

/** A switch between views. */
export const Tabs = ({ label, value, options, onChange }) => html`<div class="tabs" role="group" aria-label=${label}>
  ${options.map(([key, name]) => html`<button type="button" key=${key} aria-pressed=${key === value} onClick=${() => onChange(key)}>${name}</button>`)}
</div>`;

/** A labelled input. */
export function Field({ label, hint, as = "input", ...rest }) {
  return html`<label class="field"><span>${label}</span>${as === "textarea" ? html`<textarea ...${rest}></textarea>` : html`<input ...${rest} />`}${hint && html`<small>${hint}</small>`}</label>`;
}

/** Asks in a dialog; resolves to the form's values, or to null. */
export function dialog(content, { title, action = "Save", danger = false }) {
  return new Promise((resolve) => {
    const root = document.createElement("div");
    document.body.append(root);
    const finish = (value) => {
      render(null, root);
      root.remove();
      resolve(value);
    };
    render(html`<${Dialog} title=${title} action=${action} danger=${danger} onEnd=${finish}>${content}</${Dialog}>`, root);
  });
}

function Dialog({ title, action, danger, children, onEnd }) {
  const box = useRef(null);
  useEffect(() => {
    box.current.showModal();
    box.current.querySelector("input, textarea, select")?.focus();
  }, []);
  const submit = (event) => {
    event.preventDefault();
    onEnd(Object.fromEntries(new FormData(event.target)));
  };
  return html`<dialog ref=${box} aria-label=${title} onCancel=${() => onEnd(null)}>
    <form onSubmit=${submit}>
      <h2>${title}</h2>
      ${children}
      <footer>
        <button type="button" class="button" onClick=${() => onEnd(null)}>Cancel</button>
        <button type="submit" class="button ${danger ? "danger" : "primary"}">${action}</button>
      </footer>
    </form>
  </dialog>`;
}

const toasts = { list: [], listeners: new Set(), next: 0 };

/** Says something for some seconds. */
export function toast(message, kind = "ok") {
  const id = ++toasts.next;
  const show = () => toasts.listeners.forEach((listener) => listener([...toasts.list]));
  toasts.list = [...toasts.list.slice(-3), { id, message, kind }];
  show();
  setTimeout(() => {
    toasts.list = toasts.list.filter((toast) => toast.id !== id);
    show();
  }, kind === "ok" ? 3000 : 7000);
}

export function Toasts() {
  const [list, set] = useState([]);
  useEffect(() => {
    toasts.listeners.add(set);
    return () => toasts.listeners.delete(set);
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${list.map(({ id, message, kind }) => html`<div key=${id} class="toast ${kind}">${message}</div>`)}
  </div>`;
}

/** Does something that may be refused, and says so. */
export async function attempt(action, done) {
  try {
    const result = await action();
    if (done) toast(done);
    return result ?? true;
  } catch (error) {
    toast(error.message, "bad");
    return undefined;
  }
}

/** Loads when the page opens and whenever `needs` change: `[data, error, reload]`. */
export function useLoaded(load, needs = []) {
  const [state, set] = useState([undefined, undefined]);
  const turn = useRef(0);
  const reload = async () => {
    const mine = ++turn.current;
    let next;
    try {
      next = [await load(), undefined];
    } catch (error) {
      next = [undefined, error];
    }
    if (mine === turn.current) set(next);
  };
  useEffect(() => {
    reload();
    return () => turn.current++;
  }, needs);
  return [...state, reload];
}

/** Calls something every so often while the page is open and seen. */
export function useEvery(ms, action, needs = []) {
  useEffect(() => {
    if (!ms) return undefined;
    const timer = setInterval(() => document.hidden || action(), ms);
    return () => clearInterval(timer);
  }, [ms, ...needs]);
}

/** A heading that sorts its column. */
export function SortHead({ name, label, sort, onSort, numeric }) {
  const isIt = sort.by === name;
  const direction = isIt ? (sort.down ? "descending" : "ascending") : "none";
  return html`<th scope="col" class=${numeric ? "number" : ""} aria-sort=${direction}>
    <button type="button" onClick=${() => onSort({ by: name, down: isIt ? !sort.down : !!numeric })}>
      ${label}<span aria-hidden="true">${isIt ? (sort.down ? " ↓" : " ↑") : ""}</span>
    </button>
  </th>`;
}

/** Rows in the order of `sort`. */
export function sorted(rows, { by, down }) {
  const factor = down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [one[by], other[by]];
    return factor * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
}
