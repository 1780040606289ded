// The console: who is logged in, which page is open.
import { logout, onLoggedOut, session as readSession } from "./api.js";
import { html, render, useEffect, useState } from "./lib.js";
import { Login } from "./login.js";
import { Shell } from "./shell.js";
import { Toasts } from "./widgets.js";

const page = () => location.hash.replace(/^#\//, "").split("/")[0] || "live";

function App() {
  // undefined: not known yet; null: nobody is logged in.
  const [session, setSession] = useState(undefined);
  const [open, setOpen] = useState(page());
  const read = async () => setSession(await readSession());
  useEffect(() => {
    read().catch(() => setSession(null));
    onLoggedOut(() => setSession(null));
    const moved = () => setOpen(page());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  const leave = async () => {
    // The session may be over already.
    await logout().catch(() => {});
    setSession(null);
  };
  if (session === undefined) return html`<main class="login" aria-busy="true"></main>`;
  return html`
    ${session ? html`<${Shell} session=${session} page=${open} onLeave=${leave} />` : html`<${Login} onDone=${read} />`}
    <${Toasts} />
  `;
}

render(html`<${App} />`, document.getElementById("app"));
